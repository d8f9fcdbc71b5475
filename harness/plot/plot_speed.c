/* plot_speed.c - throughput over length. */
#include "harness/plot/plot.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plot/gnuplot.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/logs.h"
#include "harness/store/schema.h"

#define SPEED_MOST 64 /* lines */

/* Facts that distinguish rows of one model: sizes of the shape, then device, threads and machine. */
#define N_SIZES 4
#define N_APART (N_SIZES + 3)

static const char *const sizes[N_SIZES] = {" B", " D", " L", " V"};

struct speed_row {
    struct perf_row perf;
    char name[320];          /* the model; name_lines appends distinguishing facts */
    char apart[N_APART][32]; /* " B32"; "": the row does not say */
    double length;
    int line;
};

/* Reads the shape "bdlru:m=5 B32 T64 D128": the name before " B" (with the precision of products unless fp32), the
 * length after " T", and the facts in `apart`. */
static bool read_row(const struct csv_table *t, int row, struct speed_row *r) {
    *r = (struct speed_row){.length = 0};
    table_from_csv(&perf_table, t, row, &r->perf);
    const struct perf_row *p = &r->perf;
    const char *B = strstr(p->shape, " B"), *T = strstr(p->shape, " T");
    if (!B || !T) return false;
    bool plain = !*p->dtype || !strcmp(p->dtype, "fp32"), other = *p->device && strcmp(p->device, "cpu") != 0;
    snprintf(r->name, sizeof r->name, "%.*s%s%s", (int)(B - p->shape), p->shape, plain ? "" : " ",
             plain ? "" : p->dtype);
    for (int k = 0; k < N_SIZES; k++) {
        const char *size = strstr(B, sizes[k]);
        if (size) snprintf(r->apart[k], sizeof r->apart[k], "%.*s", 1 + (int)strcspn(size + 1, " "), size);
    }
    snprintf(r->apart[N_SIZES], sizeof r->apart[0], " %s", other ? p->device : "cpu");
    if (p->threads > 0) snprintf(r->apart[N_SIZES + 1], sizeof r->apart[0], " threads=%" PRId64, p->threads);
    if (*p->machine_id) snprintf(r->apart[N_SIZES + 2], sizeof r->apart[0], " on %.8s", p->machine_id);
    r->length = atof(T + 2);
    return r->length > 0 && p->tok_per_s > 0;
}

static bool is_same_line(const struct speed_row *a, const struct speed_row *b) {
    bool same = !strcmp(a->name, b->name);
    for (int k = 0; k < N_APART; k++) same = same && !strcmp(a->apart[k], b->apart[k]);
    return same;
}

/* Appends the facts in which lines differ to their names. */
static void name_lines(struct speed_row *rows, int n) {
    for (int k = 0; k < N_APART; k++) {
        bool differs = false;
        for (int i = 0; i < n; i++) differs = differs || strcmp(rows[i].apart[k], rows[0].apart[k]) != 0;
        for (int i = 0; i < n && differs; i++)
            strncat(rows[i].name, rows[i].apart[k], sizeof rows->name - strlen(rows[i].name) - 1);
    }
}

static bool is_wanted(const struct speed_choice *choice, const char *cell_id) {
    for (int i = 0; i < choice->n_cells; i++)
        if (!strcmp(choice->cells[i], cell_id)) return true;
    return !choice->cells;
}

/* Keeps one row per line and length, by the rule of perf_replaces. Returns their number. */
static int keep_latest(struct speed_row *rows, int n) {
    int kept = 0;
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < kept && (rows[k].length != rows[i].length || !is_same_line(&rows[k], &rows[i]))) k++;
        if (k == kept || perf_replaces(&rows[i].perf, &rows[k].perf)) rows[k] = rows[i];
        kept += k == kept;
    }
    return kept;
}

/* Orders lines as they first appear in the file, and rows of a line by length, because gnuplot joins points in file
 * order. */
static int by_line_and_length(const void *left, const void *right) {
    const struct speed_row *a = left, *b = right;
    int order = (a->line > b->line) - (a->line < b->line);
    return order ? order : (a->length > b->length) - (a->length < b->length);
}

/* Returns how many of the n rows belong to the line of the first row. */
static int rows_of_line(const struct speed_row *rows, int n) {
    int k = 1;
    while (k < n && rows[k].line == rows[0].line) k++;
    return k;
}

/* Numbers the lines, leaving out models measured at only one length. Returns the number of rows. */
static int make_lines(struct speed_row *rows, int n, int *lines) {
    int kept = 0;
    *lines = 0;
    for (int i = 0; i < n; i++) {
        rows[i].line = i;
        for (int k = 0; k < i && rows[i].line == i; k++)
            if (is_same_line(&rows[k], &rows[i])) rows[i].line = k;
    }
    qsort(rows, (size_t)n, sizeof *rows, by_line_and_length);
    for (int i = 0, of; i < n; i += of) {
        of = rows_of_line(&rows[i], n - i);
        if (of < 2) continue;
        memmove(&rows[kept], &rows[i], (size_t)of * sizeof *rows);
        kept += of;
        ++*lines;
    }
    return kept;
}

/* The rows to draw. */
struct speeds {
    struct speed_row *rows;
    int n, lines, longest; /* characters of a name */
};

static enum status collect_speeds(struct speeds *s, const struct csv_table *t, const struct speed_choice *choice,
                                  struct error *e) {
    int n = 0;
    s->rows = calloc((size_t)t->rows + 1, sizeof *s->rows);
    if (!s->rows) return fail(e, ST_MEMORY, "no memory to plot");
    for (int i = 0; i < t->rows; i++)
        if (is_wanted(choice, csv_cell(t, i, "cell_id"))) n += read_row(t, i, &s->rows[n]);
    s->n = make_lines(s->rows, keep_latest(s->rows, n), &s->lines);
    name_lines(s->rows, s->n);
    if (s->lines > SPEED_MOST)
        return fail(e, ST_USAGE, "perf.csv has %d models, more than %d, too many for one plot of throughput", s->lines,
                    SPEED_MOST);
    for (int i = 0; i < s->n; i++) {
        int length = (int)strlen(s->rows[i].name);
        s->longest = length > s->longest ? length : s->longest;
    }
    return ST_OK;
}

static void print_speeds(FILE *script, FILE *data, const void *speeds) {
    const struct speeds *s = speeds;
    gnuplot_longest(script, s->longest);
    fprintf(script, "feet = 0\nn = %d\narray name[%d]\n", s->lines, s->lines + 1);
    for (int i = 0, line = 0, of; i < s->n; i += of) {
        of = rows_of_line(&s->rows[i], s->n - i);
        gnuplot_element(script, "name", ++line, "%s", s->rows[i].name);
        for (int k = i; k < i + of; k++) gnuplot_row(data, 2, (double[]){s->rows[k].length, s->rows[k].perf.tok_per_s});
        gnuplot_end_block(data);
    }
    gnuplot_setting(script, "heading", "throughput over length");
    gnuplot_setting(script, "subheading", "perf.csv: each model alone, the latest measurement");
}

enum status plot_throughput(const struct speed_choice *choice, const struct plot_view *view, const char *out,
                            const char *to, struct error *e) {
    char path[PATH_BYTES];
    struct csv_table t;
    struct speeds s = {.rows = NULL};
    TRY(path_format(path, sizeof path, e, "%s/perf.csv", out));
    TRY(csv_read(&t, path, e));
    enum status status = collect_speeds(&s, &t, choice, e);
    if (status == ST_OK && s.lines == 0)
        status = fail(e, ST_USAGE, "no model in %s was measured at two lengths; lrnn perf layers --out %s does that",
                      path, out);
    if (status == ST_OK)
        status = gnuplot_draw(&(struct figure){.stem = "throughput",
                                               .kind = "throughput",
                                               .height = figure_height(s.lines, s.longest),
                                               .formats = view->formats,
                                               .told = view->told},
                              print_speeds, &s, to, e);
    csv_free(&t);
    free(s.rows);
    return status;
}
