/* merge.h - merges the records of one folder into another. */
#ifndef LRNN_HARNESS_STORE_MERGE_H
#define LRNN_HARNESS_STORE_MERGE_H

#include "core/status.h"

struct merge_count {
    int records, known, weights; /* records copied; records already there; weight files copied */
    int other;                   /* of `known`, those whose record differs, because the run was trained twice */
};

struct store_count {
    int records, bare; /* all records; those that name missing weights */
    int unknown;       /* records whose machine is not in machines.csv */
};

/* Copies the records of `from`, with the weights that they name, into `out`. A run that `out` already has stays, and
 * gets its weights if they are missing. All records of both folders are checked before anything is written. ST_DATA: a
 * record is damaged, of another schema, unreadable, or in the wrong folder; weights are not those that a record names;
 * `from` has no records. ST_FAIL: `out` cannot be written. */
enum status store_merge(const char *from, const char *out, struct merge_count *count, struct error *e);

/* Makes only the checks. */
enum status store_check(const char *from, struct store_count *count, struct error *e);

#endif
