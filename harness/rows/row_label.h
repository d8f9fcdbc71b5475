/* row_label.h - the names of a table's rows: the mixer, then the options that tell its rows apart, and no more. */
#ifndef LRNN_HARNESS_ROWS_ROW_LABEL_H
#define LRNN_HARNESS_ROWS_ROW_LABEL_H

#include <stdbool.h>

#include "harness/store/record.h"

/* Whether the program's numbers have changed since the run, so that it cannot be repeated bit for bit and is unlike a
 * run made now. False also where the record does not say, or has parts that this program lacks. */
bool row_outdated(const struct run_record *r);

/* Whether a run could see the inputs after a position whose target must not depend on them: a net that looks both ways
 * on a causal task, as its key says (row_key). */
bool key_sees_future(const struct label *key);
#define FUTURE_MARK "^" /* after each name and number of such a run */
#define FUTURE_NOTE FUTURE_MARK " could see the inputs after each position, which the task forbids (allow-non-causal)"

/* Writes the mixer of a run as the command line names it, without options at their default but with its order m; then
 * the mark of one that could see the future, and the numerics version of an outdated run. Options that this program
 * does not know stay as they are. */
void row_mixer(const struct run_record *r, char *text, size_t size);

/* A row to be named. */
struct row_name {
    const struct label *key; /* row_key of its runs */
    const char *table;       /* rows of different tables, such as tasks side by side, may read alike */
    char *text;              /* its mixer; what tells it apart is appended */
    size_t size;
    bool needed; /* for row_names_tell_apart alone */
};

/* Appends " key=value" to the names: first of every flag in which any two of the n rows differ, then, where rows of one
 * table still read alike, of what follows from the sizes or the program (steps, numerics). Keys for which `skip` says
 * so are left out; NULL: none. */
void row_names_tell_apart(struct row_name *rows, int n, bool (*skip)(const void *context, const char *key),
                          const void *context);

/* Compares labels, but numbers in them by value: "dim=64" before "dim=128". */
int row_label_compare(const char *a, const char *b);

#endif
