/* config.h - the flags of a run. harness/study/study.h decides which of their values hold. */
#ifndef LRNN_HARNESS_STUDY_CONFIG_H
#define LRNN_HARNESS_STUDY_CONFIG_H

#include "core/label.h"
#include "models/net.h"

/* The choices of --precision, in the order of enum precision. The double build has its own alone. */
#if REAL_IS_DOUBLE
#define CONFIG_PRECISIONS REAL_NAME
#else
#define CONFIG_PRECISIONS REAL_NAME " tf32 bf16"
#endif

/* --keep-weights, in the order of its choices. */
enum keep_weights { KEEP_NONE, KEEP_BEST, KEEP_ALL };

/* --decay-all, in the order of its choices. */
enum decay_all { DECAY_AS_NET, DECAY_ALL, DECAY_AS_MIXER };

struct config {
    struct backbone net; /* first, so that backbone_options apply to a struct config too */
    int64_t steps, stop_after, epochs, batch, warmup, eval_every, patience, seed, threads;
    double lr, lr_min, warmup_least, decay, beta1, beta2, clip, stop_at, budget, checkpoint_every;
    int schedule, precision, keep_weights, decay_all; /* the enums above */
    bool force, force_resume, quiet, json;
    char device[OPTION_TEXT], kernel[OPTION_TEXT], out[OPTION_TEXT], profile[OPTION_TEXT];
    char match[OPTION_TEXT];                        /* as setup_match reads it; empty once it has chosen the size */
    char from[OPTION_TEXT], from_xxh3[OPTION_TEXT]; /* file of the first weights, and its content; "" = drawn */
};

/* How long a run is, from its flags and the examples it trains on. */
struct run_length {
    int64_t steps_per_epoch;
    int64_t schedule_steps; /* over which the learning rate goes its way */
    int64_t steps;          /* that the run takes at most: those, or the first of them (--stop-after) */
    int64_t eval_every;
};

/* Gives the length and writes it into the flags: steps, eval-every, no stop-after that ends nothing, and no epochs but
 * those that come to the steps, so that one run has one name. */
struct run_length config_length(struct config *c, int64_t n_train);

/* Gives epochs for steps and steps for epochs, since either says how long a run is. NULL: the flag is neither. */
const char *config_other_length(const char *flag);

/* ST_USAGE: the epochs are more steps than --steps may have. */
enum status config_check_length(const struct config *c, int64_t n_train, struct error *e);

extern const struct option config_options[]; /* all flags of a run but the backbone's */

/* Defaults of every flag. */
enum status config_default(struct config *c, struct error *e);

/* Sets a flag by name; knows the backbone's too. */
enum status config_set(struct config *c, const char *name, const char *value, struct error *e);

/* Likewise; a bad value is told with its origin: "papers/x.plan line 7". */
enum status config_set_from(struct config *c, const char *origin, const char *name, const char *value, struct error *e);

#endif
