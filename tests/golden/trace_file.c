/* trace_file.c - see trace_file.h. */
#include "tests/golden/trace_file.h"

#include <string.h>

#include "tests/testing.h"

void golden_run(const struct trace *t, const char *kernel, struct trace_row *row) {
    struct error e = {0};
    ck_assert_msg(trace_run(t, kernel, row, &e) == ST_OK, "%s %s: %s", t->task, t->model, e.text);
}

/* Rows of a file; false at its end. A line that is not a row ends the test. */
static bool trace_read(FILE *f, struct trace_row *row) {
    char line[TRACE_LINE];
    do {
        if (!fgets(line, sizeof line, f)) return false;
    } while (line[0] == '#');
    ck_assert_msg(trace_parse(line, row), "not a row of golden traces: %s", line);
    return true;
}

bool trace_find_row(const char *path, const char *name, const char *precision, const char *arithmetic,
                    struct trace_row *row) {
    FILE *f = fopen(path, "r");
    bool found = false;
    while (f && !found && trace_read(f, row))
        found = !strcmp(row->name, name) && !strcmp(row->real, precision) && !strcmp(row->arithmetic, arithmetic);
    if (f) fclose(f);
    return found;
}

static void trace_write(FILE *f, const struct trace_row *row) {
    char line[TRACE_LINE];
    trace_format(row, line);
    fprintf(f, "%s\n", line);
}

/* --- another file ------------------------------------------------------------------------------------------------- */

/* Rows of another build go over as they are, if their trace is still listed. */
static void keep_rows(const char *path, const char *precision, const char *arithmetic, FILE *to) {
    struct trace t;
    struct trace_row row;
    FILE *f = fopen(path, "r");
    while (f && trace_read(f, &row))
        if (!strcmp(row.real, precision) && !strcmp(row.arithmetic, arithmetic) && trace_find(row.name, &t))
            trace_write(to, &row);
    if (f) fclose(f);
}

static void write_rows(const char *path, FILE *to) {
    struct trace t;
    struct trace_row row, before;
    for (int i = 0; trace_at(i, &t); i++) {
        golden_run(&t, "reference", &row);
        trace_write(to, &row);
        bool changed =
            trace_find_row(path, row.name, row.real, row.arithmetic, &before) && !trace_same_bits(&row, &before);
        ck_assert_msg(
            !changed || strcmp(row.numerics, before.numerics) != 0,
            "%s has other bits than %s under the same numerics version %s; raise the version of what changed in "
            "harness/study/numerics.c first",
            row.name, path, row.numerics);
    }
}

void trace_update(const char *path) {
    static const char *const builds[][2] = {{"fp32", "fma"}, {"fp32", "plain"}, {"fp64", "fma"}, {"fp64", "plain"}};
    char next[TRACE_TEXT];
    snprintf(next, sizeof next, "%s.new", path);
    FILE *f = fopen(next, "w");
    ck_assert_msg(f != NULL, "cannot write %s", next);
    fputs("# Golden traces, written by `make golden`. Columns: name, precision, arithmetic, numerics version, loss of "
          "steps 1, 10 "
          "and 50, hash of the weights.\n",
          f);
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        if (!strcmp(builds[i][0], REAL_NAME) && !strcmp(builds[i][1], trace_arithmetic()))
            write_rows(path, f);
        else
            keep_rows(path, builds[i][0], builds[i][1], f);
    }
    ck_assert_msg(fclose(f) == 0 && rename(next, path) == 0, "cannot write %s", path);
}
