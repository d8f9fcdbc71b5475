/* gate.h - whether a build is as accurate and as fast as a baseline: rows with a verdict each, and their worst. */
#ifndef LRNN_HARNESS_GATE_GATE_H
#define LRNN_HARNESS_GATE_GATE_H

#include "harness/gate/baseline.h"
#include "harness/gate/compare.h"
#include "harness/sheet/sheet.h"

/* Result of one comparison, or why there is none. */
struct gate_row {
    const char *kind; /* "trace", "seeds", "throughput" or "expect" */
    char name[TRACE_TEXT + 16];
    enum verdict verdict;
    bool compared;
    double seconds; /* spent */
    char detail[512];
    /* The figure that is judged, its interval and its bound; figure "": there is none. */
    char figure[FIGURE_BYTES];
    double value, low, high, bound;
    enum sense sense;
    struct baseline_figure made; /* of which values; n 0: none */
    struct compare_row speed;    /* of throughput, and of a plan's speed beside another program */
    bool busy;                   /* a plan's speed beside more load than the request allows, so no baseline */
};

#define GATE_ROWS (BASELINE_TRACES + BASELINE_FIGURES)

struct gate_result {
    char left_out[64]; /* "41 of 49 benches": those that were not timed; "": none, or no speed was asked for */
    char chosen[512];  /* in what the reader made it compare otherwise than by itself: "--force: ..."; "": in nothing */
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

/* Adds a row for each bench of the request's names (blank-separated; "" = the usual ones). Errors: as
 * gate_throughput_check; as compare_builds, with the rows of what was compared before that. */
enum status gate_throughput(const struct baseline *b, const struct compare_request *q, const char *names,
                            struct gate_result *r, struct error *e);

/* --- a plan ------------------------------------------------------------------------------------------------------- */

struct plan_gate {
    const char *plan;                /* path */
    const char *out;                 /* folder to make for the runs' records; if it is there, "OUT-2" and so on */
    const struct baseline *baseline; /* NULL: this run makes it */
    int jobs;                        /* runs at a time; 0: one per core */
    bool quiet;
    /* The comparison of speeds. a: the program whose steps are timed in turns with this one's; "": speeds "of baseline"
     * are compared with the baseline's figures. b: this program. */
    struct compare_request compare;
};

/* Trains the plan's runs and adds a row for each expectation and cell, and one for each figure of the baseline that no
 * expectation asks for any more. Errors: as request_plan, expectations_read, runner_do, compare_builds; ST_USAGE: the
 * baseline is of another precision. */
enum status gate_plan(const struct plan_gate *q, struct gate_result *r, struct error *e);

/* Sets a baseline's figures to those of the rows. ST_USAGE: more than it has room for. */
enum status gate_plan_baseline(const struct gate_result *r, struct baseline *b, struct error *e);

/* Finds a busy row; NULL: there is none. */
const struct gate_row *gate_busy(const struct gate_result *r);

/* Adds a table of what another baseline would change: each figure before and after. */
void gate_plan_changes(const struct baseline *before, const struct baseline *after, struct sheet *s);

/* Gives the worst verdict. ST_FAIL: nothing was compared. */
enum status gate_worst(const struct gate_result *r, enum verdict *worst, struct error *e);

/* Prints the result as tables, for programs as one with a row per comparison; as Markdown that begins with the verdict,
 * for a pull request; and as a JUnit file (written whole or not at all): a regression is a failure, a row that could
 * not be decided or compared is skipped; properties of each test case are the figure, its interval and its bound. */
enum status gate_print(const struct gate_result *r, const struct sheet_format *format, FILE *f, struct error *e);
enum status gate_summary(const struct gate_result *r, enum verdict worst, FILE *f, struct error *e);
enum status gate_junit(const struct gate_result *r, const char *path, struct error *e);

/* Appends the result to a history (harness/store/history.h); `name` is that of the plan or the baseline. ST_FAIL. */
enum status gate_history(const struct gate_result *r, const char *name, enum verdict worst, const char *path,
                         struct error *e);

/* Writes a picture of the verdict as SVG, for a README. ST_FAIL. */
enum status gate_badge(enum verdict worst, const char *path, struct error *e);

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
