/* perf_log.h - perf.csv: speed is measured apart from training, whose runs share the machine. */
#ifndef LRNN_HARNESS_STORE_PERF_LOG_H
#define LRNN_HARNESS_STORE_PERF_LOG_H

#include <stdbool.h>

#include "core/status.h"
#include "harness/store/perf_row.h"

/* Appends one row to OUT/perf.csv (header written first), flushed and fsynced. */
enum status perf_append(const char *out, const struct perf_row *row, struct error *e);

/* Whether both are of one build, machine, system and number of threads. A build is its sources, committed or not, flags
 * and compiler; of rows without a hash of sources the commit stands for them. A system is the kernel and the libraries
 * that the machine has at that time (machine.h); a row that does not say them is of any. */
bool perf_is_alike(const struct perf_row *a, const struct perf_row *b);

/* Whether a row takes the place of an earlier one of the same thing. A quiet one stands against those beside other work
 * that follow it and are alike. */
bool perf_replaces(const struct perf_row *row, const struct perf_row *earlier);

/* The latest row of that cell by that rule, or false. */
bool perf_latest(const char *out, const char *cell_id, struct perf_row *row);

/* The latest of those that are alike `like`: another machine that shares the folder hides none of them. */
bool perf_latest_alike(const char *out, const char *cell_id, const struct perf_row *like, struct perf_row *row);

#endif
