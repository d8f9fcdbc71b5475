/* expect.h - what a plan expects of its runs: lines
 *
 *     expect FIGURE >= BOUND [of baseline] [for WORD...]
 *
 * with >=, <= or =. They hold for every cell of the plan, that is for every row of its tables, or for those of the
 * named tasks and mixers, each with some of its options or none, as tables call it ("s3", "bdlru:m=5"). A FIGURE is
 *
 *   acc            the task's primary metric on the test split
 *   solved         the share of seeds that reach the task's threshold
 *   steps_to_90    the first validated step with a primary metric of 0.90 or more; any whole number from 1 to 100
 *   tokens/s       training speed on one core
 *   a column       any number of runs.csv (`lrnn schema runs`): test_loss, test_seq_acc, params, train_s, ...
 *
 * A bound of so much "of baseline" is that times the baseline's figure of the same seed. */
#ifndef LRNN_HARNESS_GATE_EXPECT_H
#define LRNN_HARNESS_GATE_EXPECT_H

#include "harness/gate/verdict.h"
#include "harness/store/record.h"
#include "harness/study/plan_file.h"

#define EXPECT_MOST  64
#define FIGURE_BYTES 48
#define FIGURE_SPEED "tokens/s"

struct expectation {
    int line; /* of the plan */
    char figure[FIGURE_BYTES];
    enum sense sense;
    double bound;
    bool of_baseline;
    char words[LABEL_TEXT / 8]; /* blank-separated; "": it holds for all cells */
};

/* Reads the lines of a plan. ST_USAGE, with file and line: another form, no such figure (with the nearest), a bound
 * that the figure cannot have, too many lines, or none. */
enum status expectations_read(const struct plan_file *plan, const char *path, struct expectation *list, int *n,
                              struct error *e);

/* Whether it holds for a cell of that task and mixer, both as labels. */
bool expectation_is_for(const struct expectation *x, const struct label *task, const struct label *mixer);

/* ST_USAGE, with file and line: a word names none of the cells. */
enum status expectation_check_words(const struct expectation *x, const char *path, const struct label *tasks,
                                    const struct label *mixers, int n, struct error *e);

/* The figure of a run, but its speed. INFINITY: steps that it never reached; NAN: it has none. */
double figure_of(const char *figure, const struct run_record *r);

#endif
