/* history.h - the history of gates: a file of JSON lines, one per gate, to which lines are only appended (line_append
 * in logs.h).
 *
 * A line is an object:
 *   gate      1, the version of this format
 *   date commit dirty version machine epoch real     date, build, machine and precision
 *   name      name of the plan or the baseline
 *   verdict   verdict of the whole gate: same, improved, inconclusive, regressed
 *   figures   list of {name, figure, value, judged, low, high, sense, bound, verdict, seeds, values}
 *   xxh3      the XXH3-128 of the line's bytes before this key; lines of earlier versions of the program have none
 * `value` is the figure, the mean of `values`. `judged`, with its interval low .. high, was compared with the bound; it
 * is the value or its ratio to the baseline. Numbers that do not apply are null. */
#ifndef LRNN_HARNESS_STORE_HISTORY_H
#define LRNN_HARNESS_STORE_HISTORY_H

#include <jansson.h>
#include <stdio.h>

#include "core/status.h"

#define HISTORY_VERSION 1
#define HISTORY_FILE    "gate.jsonl" /* its default name in a folder of results */

struct history {
    json_t **lines; /* owned, in the order of the file */
    int n, later;   /* later: number of lines of later versions, which are skipped */
};

/* Reads a file. Invalid lines are skipped, and reported to `broken` (may be NULL) as "PATH line N: reason". A missing
 * file gives an empty history. ST_FAIL: it cannot be read. */
enum status history_read(struct history *h, const char *path, FILE *broken, struct error *e);
void history_free(struct history *h);

/* Appends an object, a text in one line, to the file, with its hash. ST_FAIL with path and reason; ST_MEMORY. */
enum status history_append(const char *path, const char *object, struct error *e);

#endif
