/* row_label.h - the names of a table's rows: the mixer, and those options that distinguish the rows. */
#ifndef LRNN_HARNESS_ROWS_ROW_LABEL_H
#define LRNN_HARNESS_ROWS_ROW_LABEL_H

#include <stdbool.h>

#include "harness/store/record.h"

/* Whether the run was made under an older numerics version than this program's, so that it cannot be repeated bit for
 * bit. False also if the record does not say, or if the run uses parts that this program lacks. */
bool row_outdated(const struct run_record *r);

/* Whether the net of a run (row_key) could see later inputs although its task forbids this: a bidirectional net on a
 * causal task. */
bool key_sees_future(const struct label *key);
#define FUTURE_MARK "^" /* mark after the name and each number of such a run */
#define FUTURE_NOTE FUTURE_MARK " could see the inputs after each position, which the task forbids (allow-non-causal)"

/* Writes the mixer of a run as on the command line, without options at their default but with its order m. Then follow
 * FUTURE_MARK if it applies, and the numerics version of an outdated run. Unknown options stay unchanged. */
void row_mixer(const struct run_record *r, char *text, size_t size);

/* A row to be named. */
struct row_name {
    const struct label *key; /* row_key of its runs */
    /* the table of the row; rows of different tables, such as tasks side by side, may have equal names */
    const char *table;
    char *text; /* the mixer; options that distinguish the row are appended */
    size_t size;
    bool needed; /* used by row_names_tell_apart */
};

/* Appends " key=value" to the names. First come flags in which at least two of the n rows differ. If rows of the same
 * table still have equal names, keys follow that depend on sizes or on the program (steps, numerics). `skip` says which
 * keys to leave out; NULL: none. */
void row_names_tell_apart(struct row_name *rows, int n, bool (*skip)(const void *context, const char *key),
                          const void *context);

/* Compares labels as texts, but numbers in them by value: "dim=64" comes before "dim=128". */
int row_label_compare(const char *a, const char *b);

#endif
