/* perf_log.h - perf.csv: speed is measured apart from training, whose runs share the machine. */
#ifndef LRNN_HARNESS_PERF_LOG_H
#define LRNN_HARNESS_PERF_LOG_H

#include <stdbool.h>

#include "core/status.h"
#include "harness/store/perf_row.h"

/* Appends one row to OUT/perf.csv (header written first), flushed and fsynced. */
enum status perf_append(const char *out, const struct perf_row *row, struct error *e);

/* The latest row of that cell, or false. A quiet one stands against those beside other work that follow it with the
 * same commit, build, machine and threads, until one of another comes. */
bool perf_latest(const char *out, const char *cell_id, struct perf_row *row);

#endif
