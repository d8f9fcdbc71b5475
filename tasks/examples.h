/* examples.h - shared by tasks that draw their examples: options for their number and length, random numbers, and the
 * shape of a task with one label per sequence. */
#ifndef LRNN_TASKS_EXAMPLES_H
#define LRNN_TASKS_EXAMPLES_H

#include "core/philox.h"
#include "tasks/task.h"

#define EXAMPLES_ROW(NAME, OFFSET, VALUE, HELP, FLAGS)                                                                 \
    { NAME, OPT_INT, OFFSET, VALUE, 1, 1e9, NULL, HELP, FLAGS }

/* Option rows for the int64_t MEMBER[SPLIT_COUNT] of TYPE: the default number of examples of each split, and the plural
 * name of an example. */
#define EXAMPLES_OPTIONS(TYPE, MEMBER, TRAIN, VAL, TEST, WHAT)                                                         \
    EXAMPLES_ROW("n_train", offsetof(TYPE, MEMBER[SPLIT_TRAIN]), TRAIN, "training " WHAT, OPT_AXIS),                   \
        EXAMPLES_ROW("n_val", offsetof(TYPE, MEMBER[SPLIT_VAL]), VAL, "validation " WHAT, 0),                          \
        EXAMPLES_ROW("n_test", offsetof(TYPE, MEMBER[SPLIT_TEST]), TEST, "test " WHAT, 0)

/* Random numbers of one example. The split is in the high bits of the index, so two splits never share numbers under
 * one seed; validation and test do not depend on the seed. */
LRNN_INLINE struct rng example_rng(uint64_t seed, enum split split, int64_t index) {
    return rng_at(split == SPLIT_TRAIN ? seed : 0, STREAM_DATA, (uint64_t)index | (uint64_t)split << 60);
}

/* Checks the options min_length and max_length. ST_USAGE: min_length is larger than max_length. */
LRNN_INLINE enum status check_length_range(const char *task, int64_t min, int64_t max, struct error *e) {
    if (max >= min) return ST_OK;
    return fail(e, ST_USAGE, "%s: no length is at least min_length=%lld and at most max_length=%lld", task,
                (long long)min, (long long)max);
}

/* A uniform integer of min..max. */
LRNN_INLINE int64_t draw_length(struct rng *r, int64_t min, int64_t max) {
    return min + (int64_t)rng_below(r, (uint64_t)(max - min + 1));
}

/* The shape of a task with T inputs and one of `labels` labels per sequence, all equally frequent. The caller fills in
 * inputs and the number of examples. */
LRNN_INLINE void shape_of_labels(struct task_shape *out, int64_t T, int64_t labels) {
    out->T = T;
    out->vocab_out = labels;
    out->per_sequence = true;
    out->needs_causal = false;
    out->chance = out->floor = 1 / (double)labels;
    out->solved = 0.99;
    out->metric = METRIC_ACC;
}

#endif
