/* compare.h - throughput of two builds in one sitting: pairs of sittings in random order, a fresh process of either
 * build for every five pairs (docs/ci.md). A process serves a bench, an op or a training step at fixed sizes on one
 * core; the gate asks it for sittings (perf/measure.h), one at a time, through its standard input and output. */
#ifndef LRNN_HARNESS_GATE_COMPARE_H
#define LRNN_HARNESS_GATE_COMPARE_H

#include <stdint.h>
#include <stdio.h>

#include "harness/gate/verdict.h"

/* --- a bench ------------------------------------------------------------------------------------------------------ */

#define GATE_PROTOCOL "lrnn-gate-1"
#define GATE_SECONDS  5.0 /* of a sitting at most: with its warm-up it takes up to 11 times as long (measure.h) */

struct gate_bench {
    const char *name;
    const char *op;    /* NULL: a training step */
    const char *sizes; /* "key=value key=value": of the op, or flags of the run */
    const char *task, *model;
    const char *config; /* a training step of the run that this file configures; NULL: of a bench of the list */
};

/* Returns all benches, the usual ones first; ends with name == NULL. */
const struct gate_bench *gate_benches(void);

/* Finds the bench of that name. ST_USAGE: unknown, with the nearest. */
enum status gate_bench_find(const char *name, const struct gate_bench **bench, struct error *e);

/* Serves a bench until `from` ends: first the line "lrnn-gate-1 <tab> precision <tab> compiler <tab> flags <tab>
 * commit", then for each line that it reads a sitting of at least `seconds` and the line "MEDIAN SAMPLES", in seconds.
 * `delay`: each call then takes so much of its own time longer, by spinning: a slow-down that is real, for the
 * self-test. Errors: the bench cannot be built. */
enum status gate_serve(const struct gate_bench *bench, double seconds, double delay, FILE *from, FILE *to,
                       struct error *e);

/* --- two builds --------------------------------------------------------------------------------------------------- */

#define GATE_PAIRS   20
#define GATE_ROUND   5 /* pairs of one process */
#define GATE_MAX     (2 * GATE_PAIRS * 5)
#define GATE_BENCHES 64

struct compare_request {
    const char *a, *b;  /* programs: the baseline and the one under test */
    double delay;       /* injected into b (above) */
    double seconds;     /* of a sitting, at most GATE_SECONDS */
    int pairs;          /* at first; twice as many are taken anew if these are inconclusive or a regression */
    double load;        /* share of the cores' time that others may use; a row with more is inconclusive */
    uint64_t seed;      /* of the order of pairs */
    bool force;         /* also where compiler or flags differ, or a is of another commit */
    const char *commit; /* which a must be of, as the baseline is; NULL: any */
    int patience_ms; /* how long a program may say nothing; 0: a minute. A step of a run may take as long as it takes */
};

struct compare_row {
    const struct gate_bench *bench;
    double floor;   /* set by the caller: gate_floor */
    double seconds; /* spent */
    double a, b;    /* median seconds of a call */
    struct pairs pairs;
    double foreign; /* share of the cores' time that other processes used; NAN: the system does not say */
    enum verdict verdict;
    bool measured; /* false: there are no times, as `detail` says: the baseline's program lacks the bench (same), or the
                      one under test does not serve it, or ended in it (regressed) */
    char detail[256];
};

/* Sets the benches of rows (GATE_BENCHES) by blank-separated names, one of which may stand for all that begin so
 * ("step-*", the step of every mixer); "": the usual ones. ST_USAGE: a name that is no bench. */
enum status gate_benches_choose(const char *names, struct compare_row *rows, int *n, struct error *e);

/* Measures and judges all rows together; after an error those that have been measured. Errors: ST_FAIL: a program does
 * not start or says nothing for too long, or the baseline's ended in the middle; ST_DATA: there is none; ST_USAGE: it
 * has another precision, or (without `force`) another compiler, other flags or another commit; 128 + a signal that came
 * meanwhile. */
enum status compare_builds(const struct compare_request *q, struct compare_row *rows, int n, struct error *e);

/* Sets verdict and detail of rows that have been measured; part of compare_builds. */
void compare_judge(struct compare_row *rows, int n, double load);

/* ST_DATA: there is no such program, or it may not be started. */
enum status program_check(const char *program, struct error *e);

#endif
