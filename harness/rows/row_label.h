/* row_label.h - the names of a table's rows: the mixer, then only the options that distinguish its rows. */
#ifndef LRNN_HARNESS_ROWS_ROW_LABEL_H
#define LRNN_HARNESS_ROWS_ROW_LABEL_H

#include <stdbool.h>

#include "harness/store/record.h"

/* Whether the run has an older numerics version than this program, so that it cannot be repeated bit for bit. False
 * also if the record does not say, or uses parts that this program lacks. */
bool row_outdated(const struct run_record *r);

/* Whether a run (row_key) could see later inputs that its targets must not depend on: a bidirectional net on a causal
 * task. */
bool key_sees_future(const struct label *key);
#define FUTURE_MARK "^" /* mark after each name and number of such a run */
#define FUTURE_NOTE FUTURE_MARK " could see the inputs after each position, which the task forbids (allow-non-causal)"

/* Writes the mixer of a run as on the command line, without options at their default but with its order m; then
 * FUTURE_MARK and, for an outdated run, the numerics version. Unknown options stay unchanged. */
void row_mixer(const struct run_record *r, char *text, size_t size);

/* A row to be named. */
struct row_name {
    const struct label *key; /* row_key of its runs */
    const char *table;       /* rows of different tables, such as tasks side by side, may have equal names */
    char *text;              /* its mixer; distinguishing options are appended */
    size_t size;
    bool needed; /* used by row_names_tell_apart */
};

/* Appends " key=value" to the names: first every flag in which any two of the n rows differ, then, if rows of one table
 * still have equal names, keys that follow from sizes or the program (steps, numerics). `skip` says which keys to leave
 * out; NULL: none. */
void row_names_tell_apart(struct row_name *rows, int n, bool (*skip)(const void *context, const char *key),
                          const void *context);

/* Compares labels, but numbers in them by value: "dim=64" before "dim=128". */
int row_label_compare(const char *a, const char *b);

#endif
