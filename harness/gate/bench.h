/* bench.h - benches of the gate: an op or a training step at fixed sizes on one core, in a process that a gate has
 * started and asks for sittings (perf/measure.h), one at a time, through its standard input and output. */
#ifndef LRNN_HARNESS_GATE_BENCH_H
#define LRNN_HARNESS_GATE_BENCH_H

#include <stdio.h>

#include "core/status.h"

#define GATE_PROTOCOL "lrnn-gate-1"
#define GATE_SECONDS  5.0 /* of a sitting at most: with its warm-up it takes up to 11 times as long (measure.h) */

struct gate_bench {
    const char *name;
    const char *op;    /* NULL: a training step */
    const char *sizes; /* "key=value key=value": of the op, or flags of the run */
    const char *task, *model;
};

const struct gate_bench *gate_benches(void); /* ends with name == NULL */

/* Finds the bench of that name. ST_USAGE: unknown, with the nearest. */
enum status gate_bench_find(const char *name, const struct gate_bench **bench, struct error *e);

/* Serves a bench until `from` ends: first the line "lrnn-gate-1 <tab> precision <tab> compiler <tab> flags <tab>
 * commit", then for each line that it reads a sitting of at least `seconds` and the line "MEDIAN SAMPLES", in seconds.
 * `delay`: each call then takes so much of its own time longer, by spinning: a slow-down that is real, for the
 * self-test. Errors: the bench cannot be built. */
enum status gate_serve(const struct gate_bench *bench, double seconds, double delay, FILE *from, FILE *to,
                       struct error *e);

#endif
