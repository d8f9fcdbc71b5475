/* op_shapes.c - see op_shapes.h. */
#include "harness/perf/op_shapes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph.h"
#include "harness/store/files.h"

#define MOST_SHAPES 1000
#define MOST_BYTES  ((size_t)1 << 20)

/* Returns the flag's name for a size named by its letter (docs/design.md). */
static const char *size_name(const char *word) {
    static const char *const letters[][2] = {{"B", "batch"}, {"T", "length"}, {"N", "blocks"},
                                             {"D", "dim"},   {"V", "vocab"},  {"H", "heads"}};
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (!strcmp(word, letters[i][0])) return letters[i][1];
    return word;
}

static enum status set_size(const struct op *op, struct op_sizes *sizes, const char *where, const char *name,
                            const char *value, struct error *e) {
    name = size_name(name);
    TRY(options_set(op_sizes_options, sizes, where, name, value, e));
    if (op_reads_size(op, name) || !strcmp(name, "variant")) return ST_OK;
    return fail(e, ST_USAGE, "%s: %s has no size %s; it has %s", where, op->name, name, op->sizes);
}

static enum status add_shape(struct op_shapes *s, const struct op_sizes *sizes, struct error *e) {
    if (s->n == MOST_SHAPES) return fail(e, ST_USAGE, "perf op: more than %d shapes; measure fewer", MOST_SHAPES);
    struct op_sizes *more = realloc(s->list, (size_t)(s->n + 1) * sizeof *more);
    if (!more) return fail(e, ST_MEMORY, "no memory for a list of shapes");
    s->list = more;
    s->list[s->n++] = *sizes;
    return ST_OK;
}

/* --- a file ------------------------------------------------------------------------------------------------------- */

static enum status read_line(struct op_shapes *s, const struct op *op, const struct op_sizes *base, char *line,
                             const char *where, struct error *e) {
    struct op_sizes sizes = *base;
    char *state = NULL, *word = strtok_r(line, " \t\r", &state);
    if (!word || *word == '#') return ST_OK;
    for (; word; word = strtok_r(NULL, " \t\r", &state)) {
        char *value = strchr(word, '=');
        if (!value) return fail(e, ST_USAGE, "%s: expected sizes as length=64, got '%.60s'", where, word);
        *value++ = 0;
        TRY(set_size(op, &sizes, where, word, value, e));
    }
    return add_shape(s, &sizes, e);
}

static enum status read_file(struct op_shapes *s, const struct op *op, const struct op_sizes *base, const char *path,
                             struct error *e) {
    char *text, where[PATH_BYTES + 32];
    size_t size;
    enum status status = file_read(path, MOST_BYTES, &text, &size, e);
    TRY(status);
    int number = 0;
    for (char *line = text, *next; line && status == ST_OK; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        snprintf(where, sizeof where, "%s line %d", path, ++number);
        status = read_line(s, op, base, line, where, e);
    }
    free(text);
    if (status == ST_OK && s->n == 0)
        return fail(e, ST_USAGE, "%s has no shape; expected a line for each, for example 'length=64 m=5'", path);
    return status;
}

/* --- a sweep ------------------------------------------------------------------------------------------------------ */

/* Combines every shape of the list with every value of an axis; `text` lists the values. */
static enum status multiply(struct op_shapes *s, const struct op *op, const char *name, char *text, struct error *e) {
    struct op_shapes all = {0};
    enum status status = ST_OK;
    char *state = NULL, value[32], *dots = strstr(text, "..");
    int64_t from = 0, to = 0;
    if (!text[strspn(text, ",")])
        return fail(e, ST_USAGE, "--sweep %s: expected sizes as %s=64..4096 or %s=2,4, got '%s'", name, name, name,
                    text);
    if (dots) {
        *dots = 0;
        if (!parse_int64(text, &from) || !parse_int64(dots + 2, &to) || from < 1 || to < from)
            return fail(e, ST_USAGE, "--sweep %s=%s..%s: expected whole numbers from 1 on, the smaller first", name,
                        text, dots + 2);
    }
    for (char *word = dots ? text : strtok_r(text, ",", &state); word && status == ST_OK;) {
        if (dots) snprintf(value, sizeof value, "%" PRId64, from);
        for (int i = 0; i < s->n && status == ST_OK; i++) {
            struct op_sizes sizes = s->list[i];
            status = set_size(op, &sizes, "--sweep", name, dots ? value : word, e);
            if (status == ST_OK) status = add_shape(&all, &sizes, e);
        }
        if (dots)
            word = (from *= 2) <= to ? text : NULL;
        else
            word = strtok_r(NULL, ",", &state);
    }
    free(s->list);
    *s = all;
    return status;
}

static enum status read_sweep(struct op_shapes *s, const struct op *op, const struct op_sizes *base, const char *sweep,
                              struct error *e) {
    char text[OPTION_TEXT], *state = NULL;
    snprintf(text, sizeof text, "%s", sweep);
    TRY(add_shape(s, base, e));
    for (char *axis = strtok_r(text, " \t", &state); axis; axis = strtok_r(NULL, " \t", &state)) {
        char *values = strchr(axis, '=');
        if (!values || !values[1])
            return fail(e, ST_USAGE, "--sweep: expected sizes as T=64..4096 or m=2,4, got '%s'", axis);
        *values++ = 0;
        TRY(multiply(s, op, axis, values, e));
    }
    return ST_OK;
}

enum status op_shapes_make(struct op_shapes *s, const struct op *op, const struct op_sizes *base, const char *file,
                           const char *sweep, struct error *e) {
    *s = (struct op_shapes){0};
    enum status status = *file ? read_file(s, op, base, file, e) : read_sweep(s, op, base, sweep, e);
    if (status != ST_OK) {
        free(s->list);
        *s = (struct op_shapes){0};
    }
    return status;
}
