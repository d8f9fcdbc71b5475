/* leftovers.h - temporary files that a killed process has left in a folder of run records: files .NAME.PID.*.tmp
 * (temporary_open) in OUT/runs/AB, OUT/checkpoints, OUT/claims and OUT/weights. */
#ifndef LRNN_HARNESS_STORE_LEFTOVERS_H
#define LRNN_HARNESS_STORE_LEFTOVERS_H

#include "core/status.h"
#include "harness/store/files.h"

/* Removes those of a run whose process is no longer there. Call it with the run's claim, because another machine's
 * process is not seen here. */
void leftovers_remove(const char *out, const char *run_id);

/* Counts those of all runs; `first` (PATH_BYTES) becomes the path of one. ST_DATA: a folder cannot be read. */
enum status leftovers_count(const char *out, int *n, char *first, struct error *e);

#endif
