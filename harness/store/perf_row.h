/* perf_row.h - one measurement of speed, a row of perf.csv. */
#ifndef LRNN_HARNESS_STORE_PERF_ROW_H
#define LRNN_HARNESS_STORE_PERF_ROW_H

#include <stdint.h>

#include "harness/store/record.h"

struct perf_row {
    char sitting[32], bench[64], shape[256], dtype[16], pass[8];
    int64_t samples; /* measurements: of a step, or of several together (measure.h, speed.c) */
    double time_ns_med, time_ns_mad, time_ns_p95, tok_per_s;
    int64_t threads;
    char commit[64], build_id[RECORD_TEXT], machine_id[17], started[32];
    char cell_id[RUN_ID_HEX]; /* joins the table's row; empty if none */
    double foreign;           /* share of the cores' time that other processes used */
    int64_t warm_up, quiet;   /* windows of warm-up, -1: they never agreed; 1: alone, warm and steady */
    char source_id[17], compiler[RECORD_TEXT], device[16]; /* "" in rows made before there were these columns */
    char env_epoch[17];                                    /* so, too: the machine's system and libraries */
};

#endif
