/* site_history.c - the data file of the page History: the figures of all gates, as series over time with the places
 * where they change (stats_steps). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/rows/stats.h"
#include "harness/site/script.h"
#include "harness/site/site_parts.h"
#include "harness/store/history.h"
#include "harness/store/schema.h"

/* A figure of a cell or a bench over the gates of one name; times, speeds and memory of one machine. */
struct series {
    const char *gate, *name, *figure, *machine; /* borrowed from the lines; machine "": of all */
    int n, *line;                               /* of the history, and the figure's */
    double *value;
    const json_t **at;
};

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* Tells figures that another machine changes by their unit: a bench's or a plan's speed is named by it, a column of
 * runs.csv has it. */
static bool is_of_machine(const char *figure) {
    static const char *const units[] = {"s", "ms", "tokens/s", "1e12/s", "bytes"};
    const struct field *column = table_field(&runs_table, figure);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(column ? column->unit : figure, units[i])) return true;
    return false;
}

/* Adds a point to its series, which may be new; lines: how many a series can have at most. ST_MEMORY. */
static enum status add_point(struct series **list, int *n, const json_t *line, const json_t *figure, int number,
                             int lines, struct error *e) {
    const char *gate = text_of(line, "name"), *name = text_of(figure, "name"), *kind = text_of(figure, "figure");
    const char *machine = is_of_machine(kind) ? text_of(line, "machine") : "";
    const json_t *value = json_object_get(figure, "value");
    int i = 0;
    if (!json_is_number(value)) return ST_OK; /* steps that were never reached */
    while (i < *n && (strcmp((*list)[i].name, name) != 0 || strcmp((*list)[i].figure, kind) != 0 ||
                      strcmp((*list)[i].gate, gate) != 0 || strcmp((*list)[i].machine, machine) != 0))
        i++;
    if (i == *n) {
        struct series *longer = realloc(*list, (size_t)(*n + 1) * sizeof *longer);
        if (!longer) return fail(e, ST_MEMORY, "no memory for the history");
        *list = longer;
        longer[(*n)++] = (struct series){gate,
                                         name,
                                         kind,
                                         machine,
                                         0,
                                         calloc((size_t)lines, sizeof(int)),
                                         calloc((size_t)lines, sizeof(double)),
                                         calloc((size_t)lines, sizeof(void *))};
    }
    struct series *s = &(*list)[i];
    if (!s->line || !s->value || !s->at) return fail(e, ST_MEMORY, "no memory for the history");
    if (s->n && s->line[s->n - 1] == number) return ST_OK; /* by two lines of one plan */
    s->line[s->n] = number;
    s->at[s->n] = figure;
    s->value[s->n++] = json_number_value(value);
    return ST_OK;
}

static enum status put_series(FILE *f, const struct series *s, struct error *e) {
    int *steps = calloc((size_t)s->n + 1, sizeof *steps);
    if (!steps) return fail(e, ST_MEMORY, "no memory for the history");
    int n_steps = stats_steps(s->value, s->n, steps);
    put_open(f, NULL, '{');
    put_text(f, "gate", s->gate);
    put_text(f, "name", s->name);
    put_text(f, "figure", s->figure);
    put_text(f, "machine", s->machine);
    put_open(f, "points", '['); /* number of the gate, value, verdict */
    for (int i = 0; i < s->n; i++) {
        put_open(f, NULL, '[');
        put_int(f, NULL, s->line[i]);
        put_real(f, NULL, s->value[i]);
        put_text(f, NULL, text_of(s->at[i], "verdict"));
        put_close(f, ']');
    }
    put_close(f, ']');
    put_open(f, "steps", '['); /* which point, and the medians before it and from it on */
    for (int i = 0; i < n_steps; i++) {
        put_open(f, NULL, '[');
        put_int(f, NULL, steps[i]);
        put_real(f, NULL, stats_median(s->value + steps[i] - STATS_STEP, STATS_STEP));
        put_real(f, NULL, stats_median(s->value + steps[i], STATS_STEP));
        put_close(f, ']');
    }
    put_close(f, ']');
    put_close(f, '}');
    free(steps);
    return ST_OK;
}

static void put_gates(FILE *f, const struct history *h) {
    static const char *const keys[] = {"date", "commit", "machine", "name", "verdict"};
    put_text(f, "columns", "date commit machine name verdict");
    put_open(f, "gates", '[');
    for (int i = 0; i < h->n; i++) {
        put_open(f, NULL, '[');
        for (int k = 0; k < 5; k++) put_text(f, NULL, text_of(h->lines[i], keys[k]));
        put_close(f, ']');
    }
    put_close(f, ']');
}

static void put_broken(FILE *f, const char *broken) {
    put_open(f, "broken", '[');
    for (const char *line = broken; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char text[1024];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
        put_text(f, NULL, text);
    }
    put_close(f, ']');
}

static enum status put_history(FILE *f, const struct history *h, struct error *e) {
    struct series *list = NULL;
    enum status status = ST_OK;
    int n = 0;
    for (int i = 0; i < h->n && status == ST_OK; i++) {
        const json_t *figures = json_object_get(h->lines[i], "figures");
        for (size_t k = 0; k < json_array_size(figures) && status == ST_OK; k++)
            status = add_point(&list, &n, h->lines[i], json_array_get(figures, k), i, h->n, e);
    }
    put_gates(f, h);
    put_int(f, "later", h->later);
    put_int(f, "window", STATS_STEP);
    put_open(f, "series", '[');
    for (int i = 0; i < n && status == ST_OK; i++) status = put_series(f, &list[i], e);
    put_close(f, ']');
    for (int i = 0; i < n; i++) {
        free(list[i].line);
        free(list[i].value);
        free(list[i].at);
    }
    free(list);
    return status;
}

enum status site_write_history(struct site *site, const struct history *h, const char *broken, struct error *e) {
    struct printed data;
    TRY(script_begin(&data, "history", e));
    enum status status = put_history(data.f, h, e);
    put_broken(data.f, broken);
    return status == ST_OK ? script_write(site, &data, "history", e) : printed_end(&data, status, "a page", e);
}
