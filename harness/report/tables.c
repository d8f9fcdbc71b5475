/* report.c - prints the tables: for people (terminal, Markdown, LaTeX) from one sheet of cells, and summary.csv. */
#include "harness/report/report.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/schema.h"
#include "harness/report/rows.h"
#include "harness/report/text.h"

const char *const report_format_names = "term md latex csv";

/* --- the sheet: what all formats for people print ------------------------------------------------------------------- */

enum column { MODEL, PARAMS, STATE, LR, ACC, INTERVAL, SOLVED, SEQ_ACC, SPEED, BEST, PUBLISHED, DIFF, COLUMNS };

static const char *const headings[COLUMNS] = {"model",  "params",  "state", "lr",      "acc",       "95% CI or values",
                                              "solved", "seq acc", "tok/s", "best of", "published", "diff"};

#define CELL_BYTES (2 * RECORD_TEXT + 16)

struct cells {
    char text[COLUMNS][CELL_BYTES];
};

static void put(char *cell, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(char *cell, const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(cell, CELL_BYTES, format, args);
    va_end(args);
}

/* 950, 12.3k, 1.38M; "-" if it does not apply. */
static void put_count(char *cell, double value) {
    if (!isfinite(value) || value < 0)
        put(cell, "-");
    else if (value < 1e4)
        put(cell, "%.0f", value);
    else if (value < 1e5)
        put(cell, "%.1fk", value / 1e3);
    else if (value < 999.5e3)
        put(cell, "%.0fk", value / 1e3);
    else
        put(cell, "%.2fM", value / 1e6);
}

static void put_real(char *cell, const char *format, double value) {
    char number[64];
    snprintf(number, sizeof number, format, value);
    put(cell, "%s", isfinite(value) ? number : "-");
}

/* The interval, or the values themselves where there are too few for one. */
static void put_interval(char *cell, const struct report_row *row) {
    if (row->interval.kind != INTERVAL_NONE) {
        put(cell, "[%.3f, %.3f]", row->interval.low, row->interval.high);
        return;
    }
    int used = 0;
    for (int i = 0; i < row->n && used < CELL_BYTES; i++)
        used += snprintf(cell + used, (size_t)(CELL_BYTES - used), "%s%.3f", i ? " " : "", row->value[i]);
}

static void make_cells(struct cells *c, const struct report_row *row, int first_note) {
    const struct run *run = row->run;
    put(c->text[MODEL], "%s", row->label);
    if (row->n_failed_all > 0) {
        size_t used = strlen(c->text[MODEL]);
        snprintf(c->text[MODEL] + used, CELL_BYTES - used, row->n_failed_all == 1 ? " [%d]" : " [%d-%d]", first_note,
                 first_note + row->n_failed_all - 1);
    }
    put_count(c->text[PARAMS], (double)run->params);
    put_count(c->text[STATE], (double)run->state_floats);
    put(c->text[LR], "%g", row->lr);
    put_real(c->text[ACC], "%.4f", row->mean);
    put_interval(c->text[INTERVAL], row);
    put(c->text[SOLVED], "%d/%d [%.2f, %.2f]", row->solved, row->n, row->solve_rate.low, row->solve_rate.high);
    put_real(c->text[SEQ_ACC], "%.4f", row->seq_acc);
    put_count(c->text[SPEED], row->tok_per_s);
    put_real(c->text[BEST], "%.4f", row->best);
    size_t used = strlen(c->text[BEST]);
    snprintf(c->text[BEST] + used, CELL_BYTES - used, " (%d)", row->n_all);
    put_real(c->text[PUBLISHED], "%.3f", row->published);
    put_real(c->text[DIFF], "%+.3f", row->delta);
}

/* --- notes ---------------------------------------------------------------------------------------------------------- */

/* Everything a reader needs beside the cells, one line each through `line`. */
struct notes {
    FILE *f;
    const char *before, *after; /* of each line */
    void (*print)(FILE *f, const char *text);
};

static void note(const struct notes *n, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(const struct notes *n, const char *format, ...) {
    char text[4096];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fputs(n->before, n->f);
    n->print(n->f, text);
    fputs(n->after, n->f);
}

static void note_failures(const struct notes *n, const struct report_table *t) {
    int number = 0;
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < t->rows[k].n_all; i++) {
            const struct run *run = &t->rows[k].all[i]->run;
            if (!run_failed(run)) continue;
            const char *status = run->status == RUN_OK ? "no test result" : run_status_names[run->status];
            note(n, "[%d] %s, lr %g, seed %llu: %s%s%s%s; counted as chance, %.4f", ++number, t->rows[k].label, run->lr,
                 (unsigned long long)run->seed, status, run->status_detail[0] ? " (" : "", run->status_detail,
                 run->status_detail[0] ? ")" : "", run_chance(run));
        }
}

static void note_protocol(const struct notes *n, const struct report_table *t, bool has_published) {
    int least = t->rows[0].n, most_grid = 1;
    bool uneven = false;
    for (int k = 0; k < t->n_rows; k++) {
        const struct report_row *row = &t->rows[k];
        least = row->n < least ? row->n : least;
        most_grid = row->n_all > most_grid ? row->n_all : most_grid;
        uneven = uneven || row->n_all != row->n_rates * row->n;
    }
    note(n,
         "acc: val-mean, the mean test %s over the seeds of the learning rate with the best mean validation accuracy.",
         strcmp(t->rows[0].run->metric, "macro_acc") == 0 ? "macro accuracy" : "token accuracy");
    if (least < 5) note(n, "Fewer than 5 seeds: the seeds' values instead of an interval.");
    note(n, "solved: runs that reached the task's threshold, exact 95%% interval of the rate. seq acc: whole sequences "
            "right.");
    note(n, "best of (n): the largest test value of all n runs, every rate and seed, as the papers report it. diff = "
            "best - "
            "published.");
    if (most_grid > 1)
        note(n, "The largest of n grows by luck alone: of %d equal normal draws it lies %.2f sd above their mean.",
             most_grid, stats_normal_max_mean(most_grid));
    if (uneven) note(n, "The grid is not complete: the rates have different numbers of seeds.");
    bool speed_missing = false;
    for (int k = 0; k < t->n_rows; k++) speed_missing = speed_missing || !isfinite(t->rows[k].tok_per_s);
    if (speed_missing) note(n, "tok/s: measured alone, after training, by lrnn bench; - where that has not been done.");
    if (!has_published) note(n, "The published numbers (results/published.csv) were not found.");
}

static void note_all(const struct notes *n, const struct report_table *t, bool has_published) {
    note_failures(n, t);
    note_protocol(n, t, has_published);
}

/* --- formats -------------------------------------------------------------------------------------------------------- */

static void make_title(const struct report_table *t, char *text, size_t size) {
    const struct run *run = t->rows[0].run;
    snprintf(text, size, "%s, profile %s: %d model%s, %d run%s, %lld training sequences of length %lld, chance %.4f",
             t->task, t->profile, t->n_rows, t->n_rows == 1 ? "" : "s", t->n_runs, t->n_runs == 1 ? "" : "s",
             (long long)run->n_train, (long long)run->len_train, run_chance(run));
}

static void print_term(FILE *f, const struct report_table *t, const struct cells *cells, bool has_published) {
    int width[COLUMNS], total = 0;
    char title[2 * RECORD_TEXT];
    for (int c = 0; c < COLUMNS; c++) {
        width[c] = width_of(headings[c]);
        for (int k = 0; k < t->n_rows; k++)
            if (width_of(cells[k].text[c]) > width[c]) width[c] = width_of(cells[k].text[c]);
        total += width[c] + (c ? 2 : 0);
    }
    make_title(t, title, sizeof title);
    print_plain(f, title);
    fputs("\n\n", f);
    for (int c = 0; c < COLUMNS; c++) print_padded(f, headings[c], width[c], c == MODEL, c ? "  " : "");
    fputc('\n', f);
    for (int i = 0; i < total; i++) fputc('-', f);
    fputc('\n', f);
    for (int k = 0; k < t->n_rows; k++) {
        for (int c = 0; c < COLUMNS; c++) print_padded(f, cells[k].text[c], width[c], c == MODEL, c ? "  " : "");
        fputc('\n', f);
    }
    fputc('\n', f);
    note_all(&(struct notes){f, "", "\n", print_plain}, t, has_published);
}

static void print_markdown(FILE *f, const struct report_table *t, const struct cells *cells, bool has_published) {
    char title[2 * RECORD_TEXT];
    make_title(t, title, sizeof title);
    fputs("### ", f);
    print_md(f, title);
    fputs("\n\n", f);
    for (int c = 0; c < COLUMNS; c++) fprintf(f, "| %s ", headings[c]);
    fputs("|\n", f);
    for (int c = 0; c < COLUMNS; c++) fputs(c == MODEL ? "|:--" : "|--:", f);
    fputs("|\n", f);
    for (int k = 0; k < t->n_rows; k++) {
        for (int c = 0; c < COLUMNS; c++) {
            fputs("| ", f);
            print_md(f, cells[k].text[c]);
            fputc(' ', f);
        }
        fputs("|\n", f);
    }
    fputc('\n', f);
    note_all(&(struct notes){f, "- ", "\n", print_md}, t, has_published);
}

static void print_tex(FILE *f, const struct report_table *t, const struct cells *cells, bool has_published) {
    char title[2 * RECORD_TEXT];
    make_title(t, title, sizeof title);
    fputs("% needs \\usepackage{booktabs}\n\\begin{table}\n\\caption{", f);
    print_latex(f, title);
    fputs("}\n\\begin{tabular}{l", f);
    for (int c = 1; c < COLUMNS; c++) fputc('r', f);
    fputs("}\n\\toprule\n", f);
    for (int c = 0; c < COLUMNS; c++) {
        fputs(c ? " & " : "", f);
        print_latex(f, headings[c]);
    }
    fputs(" \\\\\n\\midrule\n", f);
    for (int k = 0; k < t->n_rows; k++) {
        for (int c = 0; c < COLUMNS; c++) {
            const char *text = cells[k].text[c];
            bool sign = c == DIFF && (*text == '-' || *text == '+') && text[1];
            fputs(c ? " & " : "", f);
            if (sign)
                fprintf(f, "$%s$", text);
            else
                print_latex(f, text);
        }
        fputs(" \\\\\n", f);
    }
    fputs("\\bottomrule\n\\end{tabular}\n\n\\footnotesize\n", f);
    note_all(&(struct notes){f, "", "\\\\\n", print_latex}, t, has_published);
    fputs("\\end{table}\n", f);
}

/* --- summary.csv ---------------------------------------------------------------------------------------------------- */

/* solved: by every seed at the chosen rate; partly: by some; unsolved: by none; failed: no run ended well. */
static const char *verdict(const struct report_row *row) {
    if (row->n_failed == row->n) return "failed";
    return row->solved == row->n ? "solved" : row->solved > 0 ? "partly" : "unsolved";
}

static void comma_real(FILE *f, double value) {
    fputc(',', f);
    csv_real(f, value);
}

static void comma_int(FILE *f, int64_t value) {
    fputc(',', f);
    csv_int(f, value);
}

static void print_summary_header(FILE *f) {
    fputs("schema,cell_id,model", f);
    for (int i = 0; report_row_keys[i]; i++) fprintf(f, ",%s", report_row_keys[i]);
    fputs(",protocol,n,n_failed,mean,ci_lo,ci_hi,ci_kind,median,iqm,best,solve_k,solve_n,solve_lo,solve_hi,lr_chosen,"
          "published,delta,verdict,n_grid,n_failed_grid,seq_acc,params,state_floats,tok_per_s,chance\n",
          f);
}

static void print_summary_row(FILE *f, const struct report_row *row) {
    fprintf(f, "%d,%s,", RECORD_SCHEMA, row->chosen[0]->run.cell_id);
    csv_text(f, row->run->model);
    for (int i = 0; report_row_keys[i]; i++) {
        fputc(',', f);
        field_print(table_field(&runs_table, report_row_keys[i]), row->run, f);
    }
    fputs(",val-mean", f);
    comma_int(f, row->n);
    comma_int(f, row->n_failed);
    comma_real(f, row->mean);
    comma_real(f, row->interval.low);
    comma_real(f, row->interval.high);
    fprintf(f, ",%s", interval_kind_name(row->interval.kind));
    comma_real(f, row->median);
    comma_real(f, row->iqm);
    comma_real(f, row->best);
    comma_int(f, row->solved);
    comma_int(f, row->n);
    comma_real(f, row->solve_rate.low);
    comma_real(f, row->solve_rate.high);
    comma_real(f, row->lr);
    comma_real(f, row->published);
    comma_real(f, row->delta);
    fprintf(f, ",%s", verdict(row));
    comma_int(f, row->n_all);
    comma_int(f, row->n_failed_all);
    comma_real(f, row->seq_acc);
    comma_int(f, row->run->params);
    comma_int(f, row->run->state_floats);
    comma_real(f, row->tok_per_s);
    comma_real(f, run_chance(row->run));
    fputc('\n', f);
}

static void print_summary(FILE *f, const struct report_tables *tables) {
    print_summary_header(f);
    for (int i = 0; i < tables->n; i++)
        for (int k = 0; k < tables->list[i].n_rows; k++) print_summary_row(f, &tables->list[i].rows[k]);
}

enum status report_summary(const struct record_set *set, const char *out, struct error *e) {
    struct report_tables tables;
    char path[PATH_BYTES], *text = NULL;
    size_t size = 0;
    TRY(path_format(path, sizeof path, e, "%s/summary.csv", out));
    TRY(report_tables_make(&tables, set, NULL, out, e));
    FILE *f = open_memstream(&text, &size);
    if (f) print_summary(f, &tables);
    report_tables_free(&tables);
    bool whole = f && !ferror(f);
    whole = f && fclose(f) == 0 && whole;
    enum status status =
        whole ? write_file_atomic(path, text, size, e) : fail(e, ST_FAIL, "no memory to write %s", path);
    free(text);
    return status;
}

/* --- entry ---------------------------------------------------------------------------------------------------------- */

static enum status print_table(const struct report_table *t, enum report_format format, bool has_published, FILE *f,
                               struct error *e) {
    struct cells *cells = calloc((size_t)t->n_rows, sizeof *cells);
    if (!cells) return fail(e, ST_FAIL, "no memory to print a table of %d rows", t->n_rows);
    int number = 1;
    for (int k = 0; k < t->n_rows; k++) {
        make_cells(&cells[k], &t->rows[k], number);
        number += t->rows[k].n_failed_all;
    }
    if (format == REPORT_TERM)
        print_term(f, t, cells, has_published);
    else if (format == REPORT_MD)
        print_markdown(f, t, cells, has_published);
    else
        print_tex(f, t, cells, has_published);
    free(cells);
    return ST_OK;
}

enum status report_print(const struct record_set *set, const struct report_filter *filter, enum report_format format,
                         const char *out, FILE *stream, struct error *e) {
    struct report_tables tables;
    TRY(report_tables_make(&tables, set, filter, out, e));
    enum status status = ST_OK;
    if (format == REPORT_CSV) print_summary(stream, &tables);
    for (int i = 0; format != REPORT_CSV && i < tables.n && status == ST_OK; i++) {
        if (i) fputc('\n', stream);
        status = print_table(&tables.list[i], format, tables.has_published, stream, e);
    }
    report_tables_free(&tables);
    return status;
}
