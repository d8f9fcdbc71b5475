/* status.h - how far the sweeps of a folder are, and who does what: from their lists (planned.h), the records and the
 * claims. */
#ifndef LRNN_HARNESS_POOL_STATUS_H
#define LRNN_HARNESS_POOL_STATUS_H

#include <stdio.h>

#include "core/status.h"

/* Prints a line a sweep: runs done, failed, in work and left, its share of the work, whether nobody is at work on it;
 * then a line a run that is in work or was left. *left: runs of all sweeps that have no record, each once. ST_DATA: no
 * such folder, or something in it is damaged. */
enum status status_print(const char *out, FILE *f, int *left, struct error *e);

#endif
