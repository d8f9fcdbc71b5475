/* rerun.h - repeats a recorded run: gives the command, and checks whether the bits agree. */
#ifndef LRNN_HARNESS_RUN_RERUN_H
#define LRNN_HARNESS_RUN_RERUN_H

#include "harness/store/record.h"

/* Writes the command "lrnn train s3 bdlru:m=5 --lr 0.001 ..." with every flag that decides the result and is not at its
 * default. ST_DATA: the stored configuration cannot be read; ST_USAGE: `text` is too short for it. */
enum status rerun_command(const struct run_record *r, char *text, size_t size, struct error *e);

/* Tells whether the rerun of a recorded run can agree only up to rounding. The reasons are that its matrix products
 * used other kernels than `now` names, or that a second build continued the run. now: those of the second run; NULL:
 * there is none yet, and on a CPU they are this program's, on a device not known. `text` gets the reason as a part of a
 * sentence, or "". */
bool rerun_rounds(const struct run *run, const char *now, char *text, size_t size);

struct rerun_result {
    bool agrees;
    char text[512];             /* what agrees, or the first difference */
    char products[RECORD_TEXT]; /* run_products of the second run */
};

/* Trains the run again in OUT/rerun, and compares every point of the curve, every evaluation and the best weights. Then
 * removes OUT/rerun unless `keep`. ST_DATA: this program would give the run another id (another version of its task or
 * numerics, or another precision), so bits cannot be compared. ST_USAGE: OUT/rerun has a record of that run from an
 * earlier call with `keep`. Other errors as train_run. */
enum status rerun_do(const struct run_record *r, const char *out, int64_t threads, bool keep,
                     struct rerun_result *result, struct error *e);

#endif
