/* mad.h - shared by the MAD tasks and MQAR: sizes, splits, the roles of ids, strings read as next-token examples.
 *
 * Poli et al. 2024, "Mechanistic design and scaling of hybrid architectures" (athms/mad-lab). Validation is ours: MAD
 * has none. Validation and test do not depend on the seed. */
#ifndef LRNN_TASKS_MAD_MAD_H
#define LRNN_TASKS_MAD_MAD_H

#include "core/philox.h"
#include "tasks/task.h"

#define MAD_MAX_VOCAB  16384
#define MAD_MAX_LENGTH 16384

/* --- sizes and splits --------------------------------------------------------------------------------------------- */

struct mad {
    int64_t vocab, length, n_train, n_val, n_test;
    char test_length[OPTION_TEXT];
    uint64_t seed; /* of the training split; set by open */
};

#define MAD_ROW(NAME, KIND, OFFSET, VALUE, MIN, MAX, HELP, FLAGS)                                                      \
    { NAME, KIND, OFFSET, VALUE, MIN, MAX, NULL, HELP, FLAGS }

/* Option rows of the member `mad` of TYPE; the values are defaults. */
#define MAD_OPTIONS(TYPE, VOCAB, LENGTH, N_TRAIN, N_HELD_OUT)                                                          \
    MAD_ROW("vocab", OPT_INT, offsetof(TYPE, mad.vocab), VOCAB, 4, MAD_MAX_VOCAB, "token ids, special ones included",  \
            OPT_AXIS),                                                                                                 \
        MAD_ROW("length", OPT_INT, offsetof(TYPE, mad.length), LENGTH, 2, MAD_MAX_LENGTH, "tokens of a sequence",      \
                OPT_AXIS | OPT_LENGTH | OPT_TESTED),                                                                   \
        MAD_ROW("n_train", OPT_INT, offsetof(TYPE, mad.n_train), N_TRAIN, 1, 1e9, "training sequences", OPT_AXIS),     \
        MAD_ROW("n_val", OPT_INT, offsetof(TYPE, mad.n_val), N_HELD_OUT, 1, 1e9,                                       \
                "validation sequences, the same for every seed", 0),                                                   \
        MAD_ROW("n_test", OPT_INT, offsetof(TYPE, mad.n_test), N_HELD_OUT, 1, 1e9,                                     \
                "test sequences, the same for every seed", 0),                                                         \
        TEST_LENGTH_OPTION(TYPE, mad.test_length)

/* A task's `about`: MAD's protocol, between the changes of the baseline and what is said of this task alone. */
#define MAD_ABOUT(CHANGES, OWN)                                                                                        \
    "MAD's baseline, and these changes of it, one at a time (--variants yes):\n" CHANGES ".\n"                         \
    "MAD trains each for 200 epochs of batch 128 at three rates and two weight decays. A task's score is the\n"        \
    "mean over these settings of the best of the six test accuracies (--profile mad). An accuracy is the mean\n"       \
    "recall over the classes. MAD has no validation examples; these here are extra.\n" OWN

/* Names the plan of BD-LRU's table; the end of an `about`. */
#define HLRU_ABOUT                                                                                                     \
    "\nTable 1 of BD-LRU (arXiv 2602.12021), at length 64 with 20000 examples, is `lrnn bench hlru-table1`."

/* Random numbers of one example. No two splits share any. */
struct rng mad_rng(const struct mad *m, enum split split, int64_t index);

/* The shape of a task with T inputs and targets spread evenly over `answers` ids. Chance and floor are the accuracy of
 * one constant answer, the metric is MAD's macro accuracy, and a run counts as solved where MAD ends it. */
void mad_shape(const struct mad *m, int64_t T, int64_t answers, struct task_shape *out);

/* --- roles of ids ------------------------------------------------------------------------------------------------- */

/* Keys are ids from 0, values follow, then noise; special ids are the last ones of the vocabulary. */
struct mad_ids {
    int32_t keys, values, noise; /* how many; the first value is id `keys` */
};

struct mad_noise {
    int64_t vocab; /* ids set aside */
    double share;  /* probability of noise */
};

#define MAD_NOISE_OPTIONS(TYPE, WHAT)                                                                                  \
    MAD_ROW("noise_vocab", OPT_INT, offsetof(TYPE, noise.vocab), "0", 0, MAD_MAX_VOCAB, "ids for noise alone",         \
            OPT_AXIS),                                                                                                 \
        MAD_ROW("noise", OPT_REAL, offsetof(TYPE, noise.share), "0", 0, 0.95, WHAT, OPT_AXIS)

/* Checks the noise. ST_USAGE: there is noise, but no id for it. */
enum status mad_check_noise(const char *task, const struct mad_noise *noise, struct error *e);

/* Halves the vocabulary without the `noise_vocab` and `special` ids into keys and values; an odd id becomes a value.
 * ST_USAGE: fewer than min_keys or min_values are left. */
enum status mad_deal_ids(const char *task, const struct mad *m, int64_t noise_vocab, int64_t special, int64_t min_keys,
                         int64_t min_values, struct mad_ids *ids, struct error *e);

/* Whether noise comes next. */
LRNN_INLINE bool mad_is_noise(const struct mad_noise *noise, struct rng *r) {
    return noise->share > 0 && rng_uniform(r) < noise->share;
}

/* A random one of `count` ids from `first` on. */
LRNN_INLINE int32_t mad_draw(struct rng *r, int32_t first, int32_t count) {
    return first + (int32_t)rng_below(r, (uint64_t)count);
}

/* --- strings ------------------------------------------------------------------------------------------------------ */

enum mad_query { QUERY_MULTI, QUERY_SINGLE };

#define MAD_QUERY_OPTION(TYPE)                                                                                         \
    {                                                                                                                  \
        "query", OPT_CHOICE, offsetof(TYPE, query), "multi", 0, 0, "multi single",                                     \
            "multi: every key shown before is a question; single: only the last one, after a marker", 0                \
    }

/* A string that becomes an example of next-token prediction: id number n is the input at n and the target at n - 1. In
 * training every id is a target, elsewhere the answers alone. */
struct mad_string {
    struct example *x;
    int32_t T, n; /* inputs; ids so far. An id after the last input is a target only */
    bool training;
};

LRNN_INLINE void mad_put(struct mad_string *s, int32_t id, bool answer) {
    if (s->n < s->T) s->x->tokens[s->n] = id;
    if (s->n > 0 && (answer || s->training)) s->x->targets[s->n - 1] = id;
    s->n++;
}

#endif
