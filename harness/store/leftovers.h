/* leftovers.h - temporary files that a killed process has left in a folder of run records: files .NAME.PID.*.tmp
 * (temporary_open) in OUT/runs/AB, OUT/checkpoints, OUT/claims and OUT/weights.
 *
 * The name does not say on which machine the process is. So a file counts only if this machine has no such process and
 * the file is LEFTOVER_S old by the clock of the file system: then no other machine is writing it. */
#ifndef LRNN_HARNESS_STORE_LEFTOVERS_H
#define LRNN_HARNESS_STORE_LEFTOVERS_H

#include "core/status.h"
#include "harness/store/files.h"

#define LEFTOVER_S 600.0 /* seconds without a write; as many as make a claim stale */

/* Removes those of a run, except in OUT/claims, where processes that want the run write at any time. */
void leftovers_remove(const char *out, const char *run_id);

/* Counts those of all runs; `first` (PATH_BYTES) becomes the path of one. ST_DATA: a folder cannot be read; the others
 * are counted. */
enum status leftovers_count(const char *out, int *n, char *first, struct error *e);

#endif
