/* seeds.h - whether a task is still learned: small cells whose runs all solve their task, with many seeds. */
#ifndef LRNN_HARNESS_GATE_SEEDS_H
#define LRNN_HARNESS_GATE_SEEDS_H

#include "harness/gate/trace.h"

int seeds_count(void);
void seeds_name(int cell, char name[TRACE_TEXT]);

/* The cell of that name, or -1. */
int seeds_find(const char *name);

/* The numerics version of the cell of that name; "" where there is none. */
enum status seeds_numerics(const char *name, char text[NUMERICS_TEXT], struct error *e);

/* Trains the cell with seeds first..first+n-1; nothing is written. metric[i] and *solved (which is added to) are those
 * of the test split with the last weights; a run whose loss is not finite has a metric of 0. Errors: as
 * trainer_create. */
enum status seeds_run(int cell, int first, int n, double *metric, int *solved, struct error *e);

#endif
