/* dyck.c - Dyck-(k,m): brackets of k kinds nested at most m deep; after each closing bracket, which kind must be closed
 * next?
 *
 * Hewitt et al. 2020, "RNNs can generate bounded hierarchical languages with optimal memory". A string opens when
 * nothing is open, closes when m are, and else does either with probability 1/2; the kind of a new bracket is uniform.
 * It is cut at its length and may leave brackets open. Ids: kind c opens as c and closes as k + c. The label after a
 * closing bracket is the kind of the innermost open one, or k where none is open. Positions after an opening bracket
 * are not scored: the answer there is the bracket itself. */
#include <string.h>

#include "tasks/examples.h"

#define MAX_DEPTH 64

struct dyck {
    int64_t kinds, depth, length, eval_length, examples[SPLIT_COUNT];
    char test_length[OPTION_TEXT];
    uint64_t seed; /* set by open */
};

static const struct option options[] = {
    {"kinds", OPT_INT, offsetof(struct dyck, kinds), "8", 1, 1024, NULL, "kinds of brackets", OPT_AXIS},
    {"depth", OPT_INT, offsetof(struct dyck, depth), "5", 2, MAX_DEPTH, NULL, "most brackets open at once", OPT_AXIS},
    {"length", OPT_INT, offsetof(struct dyck, length), "84", 4, 16384, NULL, "brackets of a training string",
     OPT_AXIS | OPT_LENGTH},
    {"eval_length", OPT_INT, offsetof(struct dyck, eval_length), "180", 4, 16384, NULL,
     "brackets of a validation or test string", OPT_AXIS | OPT_TESTED},
    EXAMPLES_OPTIONS(struct dyck, examples, "100000", "1000", "4000", "strings"),
    TEST_LENGTH_OPTION(struct dyck, test_length),
    {0},
};

static enum status dyck_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct dyck *d = inst;
    (void)host;
    (void)e;
    d->seed = seed;
    return ST_OK;
}

/* The floor is the commonest answer. Far from the start the depth after a closing bracket is uniform in 0..m-1, so one
 * answer in m is "none is open". Short strings, which begin at depth 0, have more of them. */
static void dyck_shape(const void *inst, struct task_shape *out) {
    const struct dyck *d = inst;
    double none = 1.0 / (double)d->depth, kind = (1 - none) / (double)d->kinds;
    out->T = d->length;
    out->T_eval = d->eval_length;
    out->vocab_in = 2 * d->kinds;
    out->vocab_out = d->kinds + 1;
    out->needs_causal = true;
    memcpy(out->examples, d->examples, sizeof out->examples);
    out->chance = 1.0 / (double)(d->kinds + 1);
    out->floor = none > kind ? none : kind;
    out->solved = 0.999;
    out->metric = METRIC_ACC;
}

static void dyck_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct dyck *d = inst;
    struct rng r = example_rng(d->seed, split, index);
    int64_t T = split == SPLIT_TRAIN ? d->length : d->eval_length;
    int32_t open[MAX_DEPTH], depth = 0, kinds = (int32_t)d->kinds;
    for (int64_t t = 0; t < T; t++) {
        bool opens = depth == 0 || (depth < d->depth && rng_below(&r, 2) == 1);
        if (opens) {
            open[depth++] = x->tokens[t] = (int32_t)rng_below(&r, (uint64_t)kinds);
            continue;
        }
        x->tokens[t] = kinds + open[--depth];
        x->targets[t] = depth > 0 ? open[depth - 1] : kinds;
    }
    x->length = (int32_t)T;
}

_Static_assert(sizeof(struct dyck) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_dyck = {
    .name = "dyck",
    .summary = "which bracket must be closed next? nested to a bounded depth (Hewitt et al. 2020)",
    .suite = "dyck",
    .about = "Trained on 84 brackets and tested on 180, nested at most `depth` deep. The source trains language "
             "models; here the\n"
             "kind of the innermost open bracket is the label after each closing one. Chance is one in kinds + 1; the "
             "trivial\n"
             "answer is that none is open, right once in `depth`.\n"
             "Hewitt et al. 2020 (arXiv 2010.07515): an RNN needs no more than a multiple of depth * log(kinds) hidden "
             "units,\n"
             "and no net needs fewer.",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct dyck),
    .open = dyck_open,
    .shape = dyck_shape,
    .fill = dyck_fill,
};
