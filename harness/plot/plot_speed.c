/* plot_speed.c - throughput over length. */
#include "harness/plot/plot_speed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plot/gnuplot.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"

#define SPEED_MOST 64 /* models */

#define N_SIZES 4

static const char *const sizes[N_SIZES] = {" B", " D", " L", " V"};

struct speed_row {
    char model[256];
    char size[N_SIZES][24]; /* " B32", or "" where the shape does not say */
    double length, speed;
};

/* Of the shape "bdlru:m=5 B32 T64 D128" what stands before " B", with the precision of its products unless it is fp32,
 * the number behind " T", and the other sizes. */
static bool read_row(const struct csv_table *t, int row, struct speed_row *r) {
    const char *shape = csv_cell(t, row, "shape"), *dtype = csv_cell(t, row, "dtype");
    const char *B = strstr(shape, " B"), *T = strstr(shape, " T");
    *r = (struct speed_row){.speed = csv_cell_real(t, row, "tok_per_s")};
    if (!B || !T) return false;
    bool plain = !*dtype || !strcmp(dtype, "fp32");
    snprintf(r->model, sizeof r->model, "%.*s%s%s", (int)(B - shape), shape, plain ? "" : " ", plain ? "" : dtype);
    for (int k = 0; k < N_SIZES; k++) {
        const char *size = strstr(B, sizes[k]);
        if (size) snprintf(r->size[k], sizeof r->size[k], "%.*s", 1 + (int)strcspn(size + 1, " "), size);
    }
    r->length = atof(T + 2);
    return r->length > 0 && r->speed > 0;
}

/* Adds the sizes in which rows differ to the names of the models. */
static void name_rows(struct speed_row *rows, int n) {
    for (int k = 0; k < N_SIZES; k++) {
        bool differs = false;
        for (int i = 0; i < n; i++) differs = differs || strcmp(rows[i].size[k], rows[0].size[k]) != 0;
        for (int i = 0; i < n && differs; i++)
            strncat(rows[i].model, rows[i].size[k], sizeof rows->model - strlen(rows[i].model) - 1);
    }
}

static bool is_wanted(const struct speed_choice *choice, const char *cell_id) {
    for (int i = 0; i < choice->n_cells; i++)
        if (!strcmp(choice->cells[i], cell_id)) return true;
    return !choice->cells;
}

struct speeds {
    char model[SPEED_MOST][256];
    FILE *points[SPEED_MOST]; /* a block each */
    char *text[SPEED_MOST];
    size_t size[SPEED_MOST];
    int lengths[SPEED_MOST];
    int n;
};

static enum status add_speed(struct speeds *s, const char *model, double length, double speed, struct error *e) {
    int i = 0;
    while (i < s->n && strcmp(s->model[i], model) != 0) i++;
    if (i == SPEED_MOST)
        return fail(e, ST_USAGE, "perf.csv has more than %d models, too many for one plot of throughput", SPEED_MOST);
    if (i == s->n) {
        s->points[i] = open_memstream(&s->text[i], &s->size[i]);
        if (!s->points[i]) return fail(e, ST_MEMORY, "no memory to plot");
        snprintf(s->model[s->n++], sizeof s->model[0], "%s", model);
    }
    fprintf(s->points[i], "%.9g\t%.9g\n", length, speed);
    s->lengths[i]++;
    return ST_OK;
}

/* Of each model, its sizes and precision, and length the latest row. */
static enum status add_latest(struct speeds *s, const struct speed_row *rows, int n, struct error *e) {
    for (int i = 0; i < n; i++) {
        bool latest = true;
        for (int k = i + 1; k < n && latest; k++)
            latest = rows[k].length != rows[i].length || strcmp(rows[k].model, rows[i].model) != 0;
        if (latest) TRY(add_speed(s, rows[i].model, rows[i].length, rows[i].speed, e));
    }
    return ST_OK;
}

static enum status collect_speeds(struct speeds *s, const struct csv_table *t, const struct speed_choice *choice,
                                  struct error *e) {
    struct speed_row *rows = calloc((size_t)t->rows + 1, sizeof *rows);
    int n = 0;
    if (!rows) return fail(e, ST_MEMORY, "no memory to plot");
    for (int i = 0; i < t->rows; i++)
        if (is_wanted(choice, csv_cell(t, i, "cell_id"))) n += read_row(t, i, &rows[n]);
    name_rows(rows, n);
    enum status status = add_latest(s, rows, n, e);
    free(rows);
    return status;
}

/* Models that were measured at one length alone are no line. Returns how many are. */
static int print_speeds(FILE *script, FILE *data, struct speeds *s, int *longest) {
    int n = 0;
    *longest = 0;
    for (int i = 0; i < s->n; i++) {
        fflush(s->points[i]);
        if (s->lengths[i] < 2) continue;
        n++;
        *longest = (int)strlen(s->model[i]) > *longest ? (int)strlen(s->model[i]) : *longest;
        fprintf(data, "%s\n\n", s->text[i]);
    }
    gnuplot_longest(script, *longest);
    fprintf(script, "n = %d\narray name[%d]\n", n, n + 1);
    for (int i = 0, k = 0; i < s->n; i++) {
        if (s->lengths[i] < 2) continue;
        fprintf(script, "name[%d] = ", ++k);
        gnuplot_quoted(script, s->model[i]);
        fputc('\n', script);
    }
    gnuplot_setting(script, "heading", "throughput over length");
    gnuplot_setting(script, "subheading", "perf.csv: each model alone, the latest measurement");
    return n;
}

static void speeds_free(struct speeds *s) {
    for (int i = 0; i < s->n; i++) {
        fclose(s->points[i]);
        free(s->text[i]);
    }
    free(s);
}

static enum status draw_speeds(struct speeds *s, unsigned formats, const char *path, const char *out, const char *to,
                               struct error *e) {
    struct figure figure = {.stem = "throughput", .kind = "throughput", .formats = formats};
    char *text[2] = {NULL, NULL};
    size_t size[2];
    FILE *script = open_memstream(&text[0], &size[0]), *data = open_memstream(&text[1], &size[1]);
    enum status status = ST_OK;
    int longest = 0, n = script && data ? print_speeds(script, data, s, &longest) : -1;
    figure.height = figure_height(n, longest);
    if (n == 0) {
        status = fail(e, ST_USAGE, "no model in %s was measured at two lengths; lrnn perf layers --out %s does that",
                      path, out);
        fclose(script);
        fclose(data);
    } else {
        status = gnuplot_draw_streams(&figure, script, data, text, to, e);
    }
    free(text[0]);
    free(text[1]);
    return status;
}

enum status plot_throughput(const struct speed_choice *choice, unsigned formats, const char *out, const char *to,
                            struct error *e) {
    char path[PATH_BYTES];
    struct csv_table t;
    TRY(path_format(path, sizeof path, e, "%s/perf.csv", out));
    struct speeds *s = calloc(1, sizeof *s);
    if (!s) return fail(e, ST_MEMORY, "no memory to plot");
    enum status status = csv_read(&t, path, e);
    if (status == ST_OK) {
        status = collect_speeds(s, &t, choice, e);
        if (status == ST_OK) status = draw_speeds(s, formats, path, out, to, e);
        csv_free(&t);
    }
    speeds_free(s);
    return status;
}
