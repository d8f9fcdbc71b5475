/* merge.h - the records of several folders in one. */
#ifndef LRNN_HARNESS_STORE_MERGE_H
#define LRNN_HARNESS_STORE_MERGE_H

#include "core/status.h"

struct merge_count {
    int records, known, weights; /* taken over; there already; files of weights taken over */
    int other;                   /* of those that are there already: trained by themselves, to another record */
};

struct store_count {
    int records, bare; /* all; those whose record names weights that are not there */
    int unknown;       /* those whose machine machines.csv has no row of */
};

/* Takes the records of `from`, and the weights that they name, over into `out`; a run that is there already stays,
 * and gets its weights if they are missing. All records are read and checked first, in both folders: on an error
 * before that nothing has been written. ST_DATA: a record is damaged, of another schema, cannot be read, or is where
 * nothing looks for its run; weights are there and not those that a record names; `from` has no records.
 * ST_FAIL: `out` cannot be written. */
enum status store_merge(const char *from, const char *out, struct merge_count *count, struct error *e);

/* The checks alone. */
enum status store_check(const char *from, struct store_count *count, struct error *e);

#endif
