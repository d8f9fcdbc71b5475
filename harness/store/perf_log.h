/* perf_log.h - perf.csv: speed is measured apart from training, whose runs share the machine. */
#ifndef LRNN_HARNESS_PERF_LOG_H
#define LRNN_HARNESS_PERF_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "harness/store/record.h"

struct perf_row {
    char sitting[32], bench[64], shape[256], dtype[16], pass[8];
    int64_t samples; /* steps measured */
    double time_ns_med, time_ns_mad, time_ns_p95, tok_per_s;
    int64_t threads;
    char commit[64], build_id[RECORD_TEXT], machine_id[17], started[32];
    char cell_id[RUN_ID_HEX]; /* joins the table's row; empty if none */
};

/* Appends one row to OUT/perf.csv (header written first), flushed and fsynced. */
enum status perf_append(const char *out, const struct perf_row *row, struct error *e);

/* Latest row of that cell, or false. */
bool perf_latest(const char *out, const char *cell_id, struct perf_row *row);

#endif
