/* history.h - the history of a gate: a file of JSON lines, one a gate, which only grows (line_append in logs.h).
 *
 * A line is an object:
 *   gate      1, the version of this format
 *   date commit dirty version machine epoch real     when, by which build, where, in which precision
 *   name      of the plan or the baseline
 *   verdict   of the whole gate: same, improved, inconclusive, regressed
 *   figures   list of {name, figure, value, judged, low, high, sense, bound, verdict, seeds, values}
 * `value` is the figure itself, the mean of `values`; `judged` is what was compared with the bound, with its interval:
 * the value, or a ratio to the baseline. A number that does not apply is null. */
#ifndef LRNN_HARNESS_STORE_HISTORY_H
#define LRNN_HARNESS_STORE_HISTORY_H

#include <jansson.h>
#include <stdio.h>

#include "core/status.h"

#define HISTORY_VERSION 1
#define HISTORY_FILE    "gate.jsonl" /* in a folder of results, unless the command line names another */

struct history {
    json_t **lines; /* owned, in the order of the file */
    int n, later;   /* later: lines of a later version, which are passed over */
};

/* Reads a file. `broken` gets a line, "PATH line N: reason", on each that is none; NULL: nobody wants to know. No file
 * is an empty history. ST_FAIL: it cannot be read. */
enum status history_read(struct history *h, const char *path, FILE *broken, struct error *e);
void history_free(struct history *h);

#endif
