/* limit_row.h - how many steps a run takes in a time: a row of limits.csv. */
#ifndef LRNN_HARNESS_STORE_LIMIT_ROW_H
#define LRNN_HARNESS_STORE_LIMIT_ROW_H

#include <stdint.h>

#include "harness/store/record.h"

struct limit_row {
    char run_id[RUN_ID_HEX]; /* of the run before it had those steps: a --budget is a part of it */
    double seconds;          /* of training that it was given */
    int64_t steps;           /* that it takes in them */
    double time_ns;          /* of a step, the mean of a few, on which this rests */
    int64_t threads;
    char commit[64], machine_id[17], started[32];
};

#endif
