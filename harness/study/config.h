/* config.h - the flags of a run. harness/study/study.h decides which values they get. */
#ifndef LRNN_HARNESS_STUDY_CONFIG_H
#define LRNN_HARNESS_STUDY_CONFIG_H

#include "core/label.h"
#include "models/net.h"

/* The choices of --precision, in the order of enum precision. The double build has only its own precision. */
#if REAL_IS_DOUBLE
#define CONFIG_PRECISIONS REAL_NAME
#else
#define CONFIG_PRECISIONS REAL_NAME " tf32 bf16"
#endif

/* --keep-weights, in the order of its choices. */
enum keep_weights { KEEP_NONE, KEEP_BEST, KEEP_ALL };

/* --decay-all, in the order of its choices. The version is of DECAY_AS_MIXER (numerics.h), for mixers that list
 * parameters in `undecayed`. */
enum decay_all { DECAY_AS_NET, DECAY_ALL, DECAY_AS_MIXER };
#define DECAY_ALL_VERSION 2

/* --select, in the order of its choices. */
enum select { SELECT_BEST, SELECT_LAST };

struct config {
    struct backbone net; /* first, so that backbone_options also work on a struct config */
    int64_t steps, stop_after, epochs, batch, warmup, eval_every, patience, seed, threads;
    double lr, lr_min, lr_min_share, warmup_least, decay, beta1, beta2, clip, stop_at, budget, checkpoint_every;
    int schedule, precision, keep_weights, decay_all, select; /* the enums above */
    bool test_each, force, force_resume, quiet, json;
    char device[OPTION_TEXT], kernel[OPTION_TEXT], out[OPTION_TEXT], profile[OPTION_TEXT];
    char curriculum[OPTION_TEXT]; /* see tasks/curriculum.h; "" = none */
    char match[OPTION_TEXT];      /* setup_match chooses the size and then empties this text */
    /* the file of the first weights and its hash; "" = the weights are drawn from the seed */
    char from[OPTION_TEXT], from_xxh3[OPTION_TEXT];
};

/* The length of a run; it follows from its flags and the number of training examples. */
struct run_length {
    int64_t steps_per_epoch;
    int64_t schedule_steps; /* steps of the learning rate's schedule */
    int64_t steps;          /* at most so many steps: schedule_steps, or fewer with --stop-after */
    int64_t eval_every;
};

/* Computes the length, and writes it into the flags, so that equal runs have equal names: it sets steps and eval-every,
 * removes a stop-after that has no effect, and makes epochs agree with steps. */
struct run_length config_length(struct config *c, int64_t n_train);

/* Returns the other flag that sets a run's length: "epochs" for "steps", "steps" for "epochs". Else NULL. */
const char *config_other_length(const char *flag);

/* ST_USAGE: the given epochs have more steps than --steps may have. */
enum status config_check_length(const struct config *c, int64_t n_train, struct error *e);

extern const struct option config_options[]; /* all flags of a run except the backbone's */

/* Sets every flag to its default. */
enum status config_default(struct config *c, struct error *e);

/* Sets a flag by name, also a flag of the backbone. */
enum status config_set(struct config *c, const char *name, const char *value, struct error *e);

/* Like config_set. The error for a bad value says where it was set (`origin`): "papers/x.plan line 7". */
enum status config_set_from(struct config *c, const char *origin, const char *name, const char *value, struct error *e);

#endif
