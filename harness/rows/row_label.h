/* row_label.h - what a table calls its rows: the mixer, and behind it what tells its rows apart, and no more. */
#ifndef LRNN_HARNESS_ROWS_ROW_LABEL_H
#define LRNN_HARNESS_ROWS_ROW_LABEL_H

#include <stdbool.h>

#include "harness/store/record.h"

/* Whether the program's numbers have changed since for what the run uses: it cannot be repeated bit for bit, and is no
 * like of a run made now. No: also where the record does not say, or has what this program has not. */
bool row_outdated(const struct run_record *r);

/* The mixer of a run as the command line would name it: options at their default left out, but for its order m; behind
 * it the numerics version of a run that is outdated. What this program does not know of an old record stays as it
 * is. */
void row_mixer(const struct run_record *r, char *text, size_t size);

/* A row to be named. */
struct row_name {
    const struct label *key; /* row_key of its runs */
    const char *table;       /* rows of different tables, such as those of tasks side by side, may read alike */
    char *text;              /* its mixer; what tells it apart is appended */
    size_t size;
    bool needed; /* while they are told apart */
};

/* Appends " key=value" to the names: first of every flag in which any two of the n rows differ, then, where rows of one
 * table still read alike, of what follows from the sizes or the program (steps, numerics). Keys for which `skip` says
 * so are left out; NULL: none. */
void row_names_tell_apart(struct row_name *rows, int n, bool (*skip)(const void *context, const char *key),
                          const void *context);

#endif
