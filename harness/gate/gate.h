/* gate.h - whether a build is as accurate and as fast as a baseline: rows with a verdict each, and their worst. */
#ifndef LRNN_HARNESS_GATE_GATE_H
#define LRNN_HARNESS_GATE_GATE_H

#include "harness/gate/baseline.h"
#include "harness/gate/compare.h"
#include "harness/sheet/sheet.h"

/* Result of one comparison, or why there is none. */
struct gate_row {
    const char *kind; /* "trace", "seeds" or "throughput" */
    char name[TRACE_TEXT + 16];
    enum verdict verdict;
    bool compared;
    double seconds; /* spent */
    char detail[512];
    struct compare_row speed; /* of throughput */
};

#define GATE_ROWS (BASELINE_TRACES + BASELINE_BANKS + GATE_BENCHES)

struct gate_result {
    char chosen[512]; /* in what the reader made it compare otherwise than by itself: "--force: ..."; "": in nothing */
    int n;
    struct gate_row rows[GATE_ROWS];
};

/* Fills an empty baseline by this build: the first `traces` traces with either kernels, and banks of the
 * first `seeds` seeds, at most GATE_BANK. Errors: as trace_run and seeds_run. */
enum status gate_measure(struct baseline *b, int traces, int seeds, struct error *e);

/* Adds a row for each trace and bank of the baseline. A trace of another numerics version (--force) is inconclusive, a
 * bank of another is judged as usual, since what trains otherwise must solve the task too; one that this program lacks
 * is not compared. */
enum status gate_accuracy(const struct baseline *b, struct gate_result *r, struct error *e);

/* Checks a request of gate_throughput before anything is measured. ST_USAGE: a name that is no bench; ST_DATA: a
 * program that cannot be started. */
enum status gate_throughput_check(const struct compare_request *q, const char *names, struct error *e);

/* Adds a row for each bench of the request's names (blank-separated; "" = all). Errors: as gate_throughput_check; as
 * compare_builds, with the rows of what was compared before that. */
enum status gate_throughput(const struct baseline *b, const struct compare_request *q, const char *names,
                            struct gate_result *r, struct error *e);

/* Gives the worst verdict. ST_FAIL: nothing was compared. */
enum status gate_worst(const struct gate_result *r, enum verdict *worst, struct error *e);

/* Prints the result as tables, for programs as one with a row per comparison; and as a JUnit file (written whole or not
 * at all): a regression is a failure, a row that could not be decided or compared is skipped. */
enum status gate_print(const struct gate_result *r, const struct sheet_format *format, FILE *f, struct error *e);
enum status gate_junit(const struct gate_result *r, const char *path, struct error *e);

/* --- the gate's own test ------------------------------------------------------------------------------------------ */

#define SELF_TEST_DELAYS 8

struct self_test_request {
    int sittings;        /* of this build beside itself */
    int power;           /* beside itself with each of the delays */
    const char *delays;  /* in percent, blank-separated: "5 10" */
    const char *benches; /* that each sitting compares, blank-separated */
    struct compare_request compare;
};

/* Adds a row for the build beside itself, and one for each delay: how many sittings ended with which verdict, the share
 * of red ones with its exact 95 % interval, and the largest share of the cores that others used. The floors of the
 * benches go into `b`. Errors: as compare_builds; ST_USAGE: no such delays. */
enum status gate_self_test(const struct self_test_request *q, struct baseline *b, struct sheet *s, struct error *e);

#endif
