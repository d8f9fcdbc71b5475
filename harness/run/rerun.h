/* rerun.h - a run on record, once more: the command that repeats it, and whether its bits come out again. */
#ifndef LRNN_HARNESS_RUN_RERUN_H
#define LRNN_HARNESS_RUN_RERUN_H

#include "harness/store/record.h"

/* "lrnn train s3 bdlru:m=5 --lr 0.001 ...": every flag that is not at its default and decides the result. ST_DATA:
 * the stored configuration cannot be read; ST_USAGE: `text` is too short for it. */
enum status rerun_command(const struct run_record *r, char *text, size_t size, struct error *e);

/* Tells whether a run on record multiplied its matrices by other kernels than this program would on this CPU, or is one
 * of two builds: it then agrees to rounding, not bit for bit. `text` says which, as a part of a sentence; "" if not. */
bool rerun_rounds(const struct run *run, char *text, size_t size);

struct rerun_result {
    bool agrees;
    char text[512]; /* what agrees, or the first column that does not */
};

/* Trains it again in OUT/rerun, which is removed afterwards unless `keep`, and compares every point of the curve, every
 * evaluation and the best weights. ST_DATA: this program would give the run another id (its task or the numerics have
 * another version, or it computes in another precision), so the bits cannot be compared. ST_USAGE: OUT/rerun has a
 * record of that run, which an earlier `keep` has left. Other errors as train_run. */
enum status rerun_do(const struct run_record *r, const char *out, int64_t threads, bool keep,
                     struct rerun_result *result, struct error *e);

#endif
