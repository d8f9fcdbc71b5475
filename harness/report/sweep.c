/* sweeps.c - what several tasks were run together for: the fewest layers at each length, a task's settings and their
 * mean. A row a model, a column a task, from the rows of the tables. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/report/published.h"
#include "harness/report/rows.h"
#include "harness/report/text.h"
#include "harness/store/csv.h"

const char *const report_what_names = "tables layers settings";

#define REPORT_REACHED 0.9 /* Walker et al. 2025: more than 90 % */
#define CELL           96

/* A row of a table seen as an entry of a sweep. */
struct entry {
    const struct report_row *row;
    char family[RECORD_TEXT];         /* of tasks */
    char model[2 * RECORD_TEXT + 32]; /* the row's label without what tells it from rows of more layers */
    const char *task;
};

/* The entries of one family and profile, and the distinct models and tasks among them. */
struct sweep {
    const struct entry *entries;
    int n;
    const struct entry **models, **tasks; /* the first entry of each */
    int n_models, n_tasks;
};

/* --- which entries belong together ---------------------------------------------------------------------------------------- */

/* "a5-slice:length=3,n_val=100" -> "a5-slice:n_val=100" for layers, "a5-slice" for settings. */
static void name_family(const char *task, enum report_what what, char *family, size_t size) {
    size_t used = strcspn(task, ":");
    char separator = ':';
    snprintf(family, size, "%.*s", (int)used, task);
    for (const char *at = strchr(task, ':'); at && *at && what == REPORT_LAYERS; at = strchr(at + 1, ',')) {
        if (!strncmp(at + 1, "length=", 7)) continue;
        used = strlen(family);
        snprintf(family + used, size - used, "%c%.*s", separator, (int)strcspn(at + 1, ","), at + 1);
        separator = ',';
    }
}

static int same_family(const struct entry *a, const struct entry *b) {
    int order = strcmp(a->row->run->profile, b->row->run->profile);
    return order ? order : strcmp(a->family, b->family);
}

/* The rows are one array, in the order of the tables. */
static int by_place(const struct entry *a, const struct entry *b) {
    return (a->row > b->row) - (a->row < b->row);
}

static int by_length(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    int64_t x = a->row->run->len_train, y = b->row->run->len_train;
    int order = same_family(a, b);
    if (!order) order = (x > y) - (x < y);
    return order ? order : by_place(a, b);
}

/* The base has the shortest name. */
static int by_setting(const void *left, const void *right) {
    const struct entry *a = left, *b = right;
    size_t m = strlen(a->task), n = strlen(b->task);
    int order = same_family(a, b);
    if (!order) order = (m > n) - (m < n);
    if (!order) order = strcmp(a->task, b->task);
    return order ? order : by_place(a, b);
}

/* The order that the tables have models in is kept: entries come from there one task after another. */
static int place_of(const struct entry **list, int n, const struct entry *e, bool model) {
    int i = 0;
    while (i < n && strcmp(model ? list[i]->model : list[i]->task, model ? e->model : e->task) != 0) i++;
    return i;
}

static void find_members(struct sweep *s) {
    s->n_models = s->n_tasks = 0;
    for (int i = 0; i < s->n; i++) {
        const struct entry *e = &s->entries[i];
        int m = place_of(s->models, s->n_models, e, true), t = place_of(s->tasks, s->n_tasks, e, false);
        if (m == s->n_models) s->models[s->n_models++] = e;
        if (t == s->n_tasks) s->tasks[s->n_tasks++] = e;
    }
}

/* --- the number of a model and a task ----------------------------------------------------------------------------------------- */

struct value {
    int runs;             /* 0: nothing has been run */
    int64_t layers, most; /* fewest that reach the bound, 0 = none; most that were tried */
    double best, acc;     /* of the grid; mean at `layers`, or the best mean */
    const struct run *run;
};

static struct value value_of(const struct sweep *s, int model, int task) {
    struct value v = {.best = -INFINITY, .acc = -INFINITY};
    for (int i = 0; i < s->n; i++) {
        const struct entry *e = &s->entries[i];
        if (strcmp(e->model, s->models[model]->model) || strcmp(e->task, s->tasks[task]->task)) continue;
        const struct report_row *row = e->row;
        int64_t layers = row->run->n_layers;
        bool reached = row->mean > REPORT_REACHED, fewer = v.layers == 0 || layers < v.layers;
        v.runs += row->n_all;
        v.run = row->run;
        v.best = fmax(v.best, row->best);
        if (layers > v.most) v.most = layers;
        if (reached ? fewer : v.layers == 0 && row->mean > v.acc) v.acc = row->mean;
        if (reached && fewer) v.layers = layers;
    }
    return v;
}

/* The mean over all settings; NAN while one is missing. */
static double mean_best(const struct sweep *s, int model) {
    double sum = 0;
    for (int t = 0; t < s->n_tasks; t++) {
        struct value v = value_of(s, model, t);
        sum += v.runs ? v.best : NAN;
    }
    return sum / s->n_tasks;
}

/* --- sheets for people ---------------------------------------------------------------------------------------------------------- */

/* What a task changes of the first, its base: its options that the base has not. */
static void name_change(const struct sweep *s, int task, char cell[CELL]) {
    const char *base = s->tasks[0]->task, *name = s->tasks[task]->task;
    cell[0] = 0;
    for (const char *at = strchr(name, ':'); at && *at; at = strchr(at + 1, ',')) {
        char option[CELL];
        snprintf(option, sizeof option, "%.*s", (int)strcspn(at + 1, ","), at + 1);
        if (task && strstr(base, option)) continue;
        size_t used = strlen(cell);
        snprintf(cell + used, CELL - used, "%s%s", used ? "," : "", option);
    }
    if (!task || !*cell) snprintf(cell, CELL, "base");
}

struct sheet {
    int rows, columns; /* with the heading and the models' names */
    char (*cell)[CELL];
};

static char *cell_at(const struct sheet *sheet, int row, int column) {
    return sheet->cell[row * sheet->columns + column];
}

static void fill_layers(const struct sweep *s, const struct sheet *sheet) {
    for (int t = 0; t < s->n_tasks; t++) {
        snprintf(cell_at(sheet, 0, t + 1), CELL, "%" PRId64, s->tasks[t]->row->run->len_train);
        for (int m = 0; m < s->n_models; m++) {
            struct value v = value_of(s, m, t);
            char *cell = cell_at(sheet, m + 1, t + 1);
            if (!v.runs)
                snprintf(cell, CELL, "-");
            else if (v.layers)
                snprintf(cell, CELL, "%" PRId64, v.layers);
            else
                snprintf(cell, CELL, ">%" PRId64 " (%.2f)", v.most, v.acc);
        }
    }
}

static void put_number(char *cell, const char *format, double x) {
    char number[CELL];
    snprintf(number, sizeof number, format, x);
    snprintf(cell, CELL, "%s", isfinite(x) ? number : "-");
}

static void fill_settings(const struct sweep *s, const struct sheet *sheet, const struct published *published) {
    int last = s->n_tasks + 1;
    for (int t = 0; t < s->n_tasks; t++) name_change(s, t, cell_at(sheet, 0, t + 1));
    snprintf(cell_at(sheet, 0, last), CELL, "mean");
    snprintf(cell_at(sheet, 0, last + 1), CELL, "published");
    snprintf(cell_at(sheet, 0, last + 2), CELL, "diff");
    for (int m = 0; m < s->n_models; m++) {
        double mean = mean_best(s, m), theirs = NAN;
        for (int t = 0; t < s->n_tasks; t++) {
            struct value v = value_of(s, m, t);
            put_number(cell_at(sheet, m + 1, t + 1), "%.3f", v.runs ? v.best : NAN);
            if (t == 0 && v.run) theirs = published_value(published, v.run);
        }
        put_number(cell_at(sheet, m + 1, last), "%.3f", mean);
        put_number(cell_at(sheet, m + 1, last + 1), "%.3f", theirs);
        put_number(cell_at(sheet, m + 1, last + 2), "%+.3f", mean - theirs);
    }
}

static void print_line(FILE *f, const struct sheet *sheet, int row, const int *width, enum report_format format) {
    for (int c = 0; c < sheet->columns; c++) {
        const char *text = cell_at(sheet, row, c);
        if (format == REPORT_TERM) print_padded(f, text, width[c], c == 0, c ? "  " : "");
        if (format == REPORT_MD) {
            fputs("| ", f);
            print_md(f, text);
            fputc(' ', f);
        }
        if (format == REPORT_LATEX) {
            fputs(c ? " & " : "", f);
            print_latex(f, text);
        }
    }
    fputs(format == REPORT_MD ? "|\n" : format == REPORT_LATEX ? " \\\\\n" : "\n", f);
}

static void print_rule(FILE *f, const struct sheet *sheet, const int *width, enum report_format format) {
    for (int c = 0; c < sheet->columns; c++) {
        if (format == REPORT_MD) fputs(c ? "|--:" : "|:--", f);
        for (int i = 0; format == REPORT_TERM && i < width[c] + (c ? 2 : 0); i++) fputc('-', f);
    }
    fputs(format == REPORT_MD ? "|\n" : format == REPORT_LATEX ? "\\midrule\n" : "\n", f);
}

static enum status print_sheet(FILE *f, const struct sheet *sheet, enum report_format format, struct error *e) {
    int *width = calloc((size_t)sheet->columns, sizeof *width);
    if (!width) return fail(e, ST_FAIL, "no memory to print a table of %d columns", sheet->columns);
    for (int r = 0; r < sheet->rows; r++)
        for (int c = 0; c < sheet->columns; c++)
            if (width_of(cell_at(sheet, r, c)) > width[c]) width[c] = width_of(cell_at(sheet, r, c));
    if (format == REPORT_LATEX) {
        fputs("% needs \\usepackage{booktabs}\n\\begin{tabular}{l", f);
        for (int c = 1; c < sheet->columns; c++) fputc('r', f);
        fputs("}\n\\toprule\n", f);
    }
    for (int r = 0; r < sheet->rows; r++) {
        print_line(f, sheet, r, width, format);
        if (r == 0) print_rule(f, sheet, width, format);
    }
    if (format == REPORT_LATEX) fputs("\\bottomrule\n\\end{tabular}\n", f);
    free(width);
    return ST_OK;
}

static enum status print_sweep(FILE *f, const struct sweep *s, enum report_what what, enum report_format format,
                               const struct published *published, struct error *e) {
    bool settings = what == REPORT_SETTINGS;
    struct sheet sheet = {.rows = s->n_models + 1, .columns = s->n_tasks + (settings ? 4 : 1)};
    char title[2 * RECORD_TEXT];
    sheet.cell = calloc((size_t)sheet.rows * (size_t)sheet.columns, sizeof *sheet.cell);
    if (!sheet.cell) return fail(e, ST_FAIL, "no memory to print a table of %d rows", sheet.rows);
    snprintf(cell_at(&sheet, 0, 0), CELL, "%s", settings ? "model" : "model, length:");
    for (int m = 0; m < s->n_models; m++) snprintf(cell_at(&sheet, m + 1, 0), CELL, "%.90s", s->models[m]->model);
    if (settings)
        fill_settings(s, &sheet, published);
    else
        fill_layers(s, &sheet);
    snprintf(title, sizeof title,
             settings ? "%s, profile %s: best of the grid in each setting, and the mean, chance %.4f"
                      : "%s, profile %s: fewest layers above 90 %% at each length, chance %.4f",
             s->entries->family, s->entries->row->run->profile, run_chance(s->entries->row->run));
    fputs(format == REPORT_MD ? "### " : format == REPORT_LATEX ? "% " : "", f);
    print_plain(f, title);
    fputs("\n\n", f);
    enum status status = print_sheet(f, &sheet, format, e);
    free(sheet.cell);
    return status;
}

/* --- CSV ---------------------------------------------------------------------------------------------------------------------- */

static void print_csv_key(FILE *f, const struct sweep *s, int model, const char *setting) {
    const struct run *run = s->models[model]->row->run;
    fprintf(f, "%d,", RECORD_SCHEMA);
    csv_text(f, run->profile);
    fputc(',', f);
    csv_text(f, s->entries->family);
    fputc(',', f);
    csv_text(f, s->models[model]->row->run->model);
    fputc(',', f);
    csv_text(f, s->models[model]->model);
    fputc(',', f);
    csv_text(f, setting);
    fputc(',', f);
}

static void print_csv_value(FILE *f, const struct value *v, enum report_what what) {
    if (what == REPORT_LAYERS) {
        csv_int(f, v->layers ? v->layers : -1);
        fputc(',', f);
        csv_int(f, v->most);
        fputc(',', f);
        csv_real(f, v->acc);
    } else
        csv_real(f, v->best);
    fprintf(f, ",%d\n", v->runs);
}

static void print_sweep_csv(FILE *f, const struct sweep *s, enum report_what what) {
    for (int m = 0; m < s->n_models; m++) {
        int runs = 0;
        for (int t = 0; t < s->n_tasks; t++) {
            char setting[CELL];
            struct value v = value_of(s, m, t);
            runs += v.runs;
            if (!v.runs) continue;
            if (what == REPORT_LAYERS)
                snprintf(setting, sizeof setting, "%" PRId64, s->tasks[t]->row->run->len_train);
            else
                name_change(s, t, setting);
            print_csv_key(f, s, m, setting);
            print_csv_value(f, &v, what);
        }
        if (what == REPORT_LAYERS) continue;
        print_csv_key(f, s, m, "mean");
        csv_real(f, mean_best(s, m));
        fprintf(f, ",%d\n", runs);
    }
}

/* --- entry -------------------------------------------------------------------------------------------------------------------- */

static int gather_entries(const struct report_tables *tables, enum report_what what, struct entry *entries) {
    int n = 0;
    for (int i = 0; i < tables->n; i++)
        for (int k = 0; k < tables->list[i].n_rows; k++) {
            struct entry *e = &entries[n++];
            e->row = &tables->list[i].rows[k];
            e->task = e->row->run->task;
            name_family(e->task, what, e->family, sizeof e->family);
            snprintf(e->model, sizeof e->model, "%.*s (D %" PRId64 ")", (int)strcspn(e->row->label, " "), e->row->label,
                     e->row->run->d_model);
        }
    qsort(entries, (size_t)n, sizeof *entries, what == REPORT_LAYERS ? by_length : by_setting);
    return n;
}

static enum status print_sweeps(const struct report_tables *tables, struct entry *entries, const struct entry **room,
                                enum report_what what, enum report_format format, const struct published *published,
                                FILE *stream, struct error *e) {
    int n = gather_entries(tables, what, entries), printed = 0;
    if (format == REPORT_CSV)
        fprintf(stream, "schema,profile,task,model,layers,%s,n_runs\n",
                what == REPORT_LAYERS ? "length,fewest_layers,most_layers,acc" : "setting,best");
    for (int first = 0, last; first < n; first = last) {
        for (last = first; last < n && same_family(&entries[first], &entries[last]) == 0;) last++;
        struct sweep s = {.entries = entries + first, .n = last - first, .models = room, .tasks = room + n};
        find_members(&s);
        if (s.n_tasks < 2) continue;
        if (format == REPORT_CSV) {
            print_sweep_csv(stream, &s, what);
            printed++;
            continue;
        }
        if (printed++) fputc('\n', stream);
        TRY(print_sweep(stream, &s, what, format, published, e));
    }
    if (printed) return ST_OK;
    return fail(e, ST_DATA, "no task has been run %s; `lrnn bench %s` does",
                what == REPORT_LAYERS ? "at several lengths" : "with its changes",
                what == REPORT_LAYERS ? "a5-slice" : "in-context-recall --variants");
}

enum status report_print_what(const struct record_set *set, const struct report_filter *filter, enum report_what what,
                              enum report_format format, const char *out, FILE *stream, struct error *e) {
    struct report_tables tables;
    struct published published;
    if (what == REPORT_TABLES) return report_print(set, filter, format, out, stream, e);
    TRY(report_tables_make(&tables, set, filter, out, e));
    int rows = 0;
    for (int i = 0; i < tables.n; i++) rows += tables.list[i].n_rows;
    struct entry *entries = calloc((size_t)rows + 1, sizeof *entries);
    const struct entry **room = calloc(2 * ((size_t)rows + 1), sizeof *room);
    published_read(&published, out, NULL); /* report_tables_make has said that they are missing */
    enum status status = entries && room ? print_sweeps(&tables, entries, room, what, format, &published, stream, e)
                                         : fail(e, ST_FAIL, "no memory for a report of %d rows", rows);
    published_free(&published);
    free(room);
    free(entries);
    report_tables_free(&tables);
    return status;
}
