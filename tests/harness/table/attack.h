/* attack.h - legal commands that try to make a table, a figure or an export say something false: the records that they
 * need, how they are shown, what must stand there and what must not. */
#ifndef LRNN_TESTS_HARNESS_TABLE_ATTACK_H
#define LRNN_TESTS_HARNESS_TABLE_ATTACK_H

#include "tests/harness/table/fixture.h"

struct attack {
    const char *does; /* "validates on one example" */
    /* Statements, separated by " | ". Those after a run are about it:
     *   run LAYERS LR SEED VAL TEST   a run of S5 in the paper's setting ("bdlru:m=5;gelu")
     *   runs N LAYERS LR VAL TEST     N of them, of seeds 1 to N
     *   key NAME=VALUE                a line of its identity; "task TASK", "cut STEPS", "fail STATUS"
     *   mark dirty|mixed|replaced|outdated
     *   all STATEMENT                 of each run so far
     *   plan NAME [PAIRS]             makes it the plan's run of its task, rate and seed that has these lines; a name
     *                                 with a dot is a file of the folder
     *   speed TOK_PER_S THREADS DTYPE MACHINE DEVICE
     *   lost WHAT                     a claim of a process that is gone
     *   file NAME TEXT                a file in the folder of the records; "\n" by '/' */
    const char *runs;
    /* "REPORT FORMAT [where=...] [protocol=...] [confirm=N] [columns=...]", "plot KIND [where=...]", "site
     * [where=...]", "compare FORMAT" (one half of the records against the other), or "paper PLAN FORMAT
     * [tasks=...] [where=...]"; values have '+' for a blank. */
    const char *shown;
    const char *says;  /* what stands there, separated by " | "; never "" */
    const char *never; /* what does not; "": nothing is forbidden */
};

void attack_try(const struct attack *a);

/* A suite of n attacks, each with records and a folder of its own. */
Suite *attack_suite(const char *name, const TTest *test, int n);

#endif
