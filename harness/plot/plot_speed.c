/* plot_speed.c - throughput over length. */
#include "harness/plot/plot_speed.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plot/gnuplot.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"

#define SPEED_MOST 64 /* models */

/* Of the shape "bdlru:m=5 B32 T64 D128" what stands before " B", with the precision of its products unless it is fp32,
 * and the number behind " T". */
static bool read_model(const struct csv_table *t, int row, char *model, size_t size, double *length) {
    const char *shape = csv_cell(t, row, "shape"), *dtype = csv_cell(t, row, "dtype");
    const char *B = strstr(shape, " B"), *T = strstr(shape, " T");
    if (!B || !T) return false;
    bool plain = !*dtype || !strcmp(dtype, "fp32");
    snprintf(model, size, "%.*s%s%s", (int)(B - shape), shape, plain ? "" : " ", plain ? "" : dtype);
    *length = atof(T + 2);
    return *length > 0;
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

/* Of each model, precision and length the latest row of what `bench` measured. */
static enum status collect_speeds(struct speeds *s, const struct csv_table *t, struct error *e) {
    for (int row = 0; row < t->rows; row++) {
        char model[256], other[256];
        double length, same, speed = csv_cell_real(t, row, "tok_per_s");
        if (!read_model(t, row, model, sizeof model, &length) || !(speed > 0)) continue;
        bool latest = true;
        for (int k = row + 1; k < t->rows && latest; k++)
            latest = !(read_model(t, k, other, sizeof other, &same) && same == length && !strcmp(model, other));
        if (latest) TRY(add_speed(s, model, length, speed, e));
    }
    return ST_OK;
}

/* Models that were measured at one length alone are no line. Returns how many are. */
static int print_speeds(FILE *script, FILE *data, struct speeds *s) {
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        fflush(s->points[i]);
        if (s->lengths[i] < 2) continue;
        n++;
        fprintf(data, "%s\n\n", s->text[i]);
    }
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
    struct figure figure = {.stem = "throughput", .kind = "throughput", .height = FIGURE_HEIGHT, .formats = formats};
    char *text[2] = {NULL, NULL};
    size_t size[2];
    FILE *script = open_memstream(&text[0], &size[0]), *data = open_memstream(&text[1], &size[1]);
    enum status status = ST_OK;
    if (script && data && print_speeds(script, data, s) == 0) {
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

enum status plot_throughput(unsigned formats, const char *out, const char *to, struct error *e) {
    char path[PATH_BYTES];
    struct csv_table t;
    TRY(path_format(path, sizeof path, e, "%s/perf.csv", out));
    struct speeds *s = calloc(1, sizeof *s);
    if (!s) return fail(e, ST_MEMORY, "no memory to plot");
    enum status status = csv_read(&t, path, e);
    if (status == ST_OK) {
        status = collect_speeds(s, &t, e);
        if (status == ST_OK) status = draw_speeds(s, formats, path, out, to, e);
        csv_free(&t);
    }
    speeds_free(s);
    return status;
}
