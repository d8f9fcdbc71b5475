/* template.c - a task to copy. Each example is one random token, repeated; the target at every position is that token.
 *
 *   y_t = x_t = c,  c uniform over the vocabulary
 *
 * To make a new task, keeping `make test` green at every step:
 *   1. Copy this file to tasks/ROOM/NAME.c; replace `template` by NAME in struct, functions and `task_template`, set
 *      .name, .summary (ends with the source's short cite) and .suite, and take .hidden away.
 *   2. Add the line TASK(NAME) to tasks/list.def. Command line, tests and tables walk that list.
 *   3. Write the equation of the target into this banner and delete these steps.
 *   4. Options: one field in the struct and one row in the table each. Flag difficulty axes with OPT_AXIS.
 *   5. open: check options against each other (ST_USAGE names the numbers) and make tables on the host arena.
 *   6. shape: sizes, whether a target depends only on the past, and the three thresholds: chance, floor, solved.
 *   7. fill: one example out of (options, seed, split, index) and nothing else: no state, no allocation, any thread,
 *      any order. Test and validation must not depend on the seed. Targets arrive IGNORED: write the scored ones.
 *   8. tests/tasks/check_tasks.c covers it already; what is special about the task goes to
 *      tests/tasks/ROOM/check_NAME.c.
 *   9. Published configurations become rows of an alias table: see word_problem.c. */
#include <string.h>

#include "tasks/examples.h"

struct template {
    int64_t length, vocab, examples[SPLIT_COUNT];
    char test_length[OPTION_TEXT];
    uint64_t seed;
};

static const struct option options[] = {
    {"length", OPT_INT, offsetof(struct template, length), "8", 1, 4096, NULL, "tokens of a sequence",
     OPT_AXIS | OPT_LENGTH | OPT_TESTED},
    TEST_LENGTH_OPTION(struct template, test_length),
    {"vocab", OPT_INT, offsetof(struct template, vocab), "16", 1, 65536, NULL, "token ids", OPT_AXIS},
    EXAMPLES_OPTIONS(struct template, examples, "1000", "100", "100", "sequences"),
    {0},
};

static enum status template_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct template *task = inst;
    (void)host; /* tables would go here */
    (void)e;
    task->seed = seed;
    return ST_OK;
}

static void template_shape(const void *inst, struct task_shape *out) {
    const struct template *task = inst;
    out->T = task->length;
    out->vocab_in = out->vocab_out = task->vocab;
    out->needs_causal = true;
    memcpy(out->examples, task->examples, sizeof out->examples);
    out->chance = out->floor = 1.0 / (double)task->vocab;
    out->solved = 0.99;
    out->metric = METRIC_ACC;
}

static void template_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct template *task = inst;
    struct rng r = example_rng(task->seed, split, index);
    int32_t token = (int32_t)rng_below(&r, (uint64_t)task->vocab);
    for (int64_t t = 0; t < task->length; t++) x->tokens[t] = x->targets[t] = token;
    x->length = (int32_t)task->length;
}

_Static_assert(sizeof(struct template) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_template = {
    .name = "template",
    .summary = "one random token, repeated; a file to copy",
    .suite = "template",
    .hidden = true,
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct template),
    .open = template_open,
    .shape = template_shape,
    .fill = template_fill,
};
