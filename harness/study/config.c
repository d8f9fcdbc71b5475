/* config.c - the flags of a run; see config.h. */
#include "harness/study/config.h"

#include <inttypes.h>
#include <string.h>

#include "core/schedule.h"

#define AT(field) offsetof(struct config, field)

/* The choices of --schedule, each after a blank, and their help. */
#define SCHEDULE_NAME(id, name, changes, floor, epochs, rate, help) " " name
#define SCHEDULE_HELP(id, name, changes, floor, epochs, rate, help) "; " name ": " help

const struct option config_options[] = {
    {"steps", OPT_INT, AT(steps), "auto", 1, 1e12, NULL, "optimiser steps; auto = epochs x steps per epoch", OPT_AUTO},
    {"stop-after", OPT_INT, AT(stop_after), "auto", 1, 1e12, NULL,
     "step after which training ends; the schedule is still that of all steps; auto = the last step", OPT_AUTO},
    {"epochs", OPT_INT, AT(epochs), "20", 1, 1e9, NULL, "passes over the training examples", 0},
    {"batch", OPT_INT, AT(batch), "128", 1, 1 << 24, NULL, "sequences per step", 0},
    {"lr", OPT_REAL, AT(lr), "0.001", 0, 1e6, NULL, "peak learning rate of AdamW", OPT_RATE},
    {"lr-min", OPT_REAL, AT(lr_min), "1e-05", 0, 1e6, NULL, "floor of the cosine schedules", 0},
    {"lr-min-share", OPT_REAL, AT(lr_min_share), "0", 0, 1, NULL,
     "floor of the cosine schedules as a share of --lr; 0 = use --lr-min", 0},
    {"decay", OPT_REAL, AT(decay), "0", 0, 100, NULL, "decoupled weight decay", 0},
    {"decay-all", OPT_CHOICE, AT(decay_all), "auto", 0, 0, "auto yes no",
     "what --decay acts on; yes = all, no = not what the mixer's authors exempt, auto = as in the paper", 0},
    {"match", OPT_TEXT_FIELD, AT(match), "", 0, 0, NULL,
     "size to come nearest to: params=N chooses the width, state=N the width or a mixer's option", 0},
    {"beta1", OPT_REAL, AT(beta1), "0.9", 0, 0.999999, NULL, "AdamW beta1", 0},
    {"beta2", OPT_REAL, AT(beta2), "0.999", 0, 0.999999, NULL, "AdamW beta2", 0},
    {"schedule", OPT_CHOICE, AT(schedule), "constant", 0, 0, &SCHEDULES(SCHEDULE_NAME)[1],
     "learning rate after the warm-up" SCHEDULES(SCHEDULE_HELP), 0},
    {"warmup", OPT_INT, AT(warmup), "0", 0, 1e12, NULL, "steps of linear warm-up from rate 0", 0},
    {"warmup-least", OPT_REAL, AT(warmup_least), "0", 0, 1, NULL, "lowest rate of the warm-up, as a share of --lr", 0},
    {"curriculum", OPT_TEXT_FIELD, AT(curriculum), "", 0, 0, NULL,
     "longest training sequence in each equal part of the run, such as 8:16:32; default: the task's length", 0},
    {"clip", OPT_REAL, AT(clip), "0", 0, 1e9, NULL,
     "largest global norm of the gradient, clipped as torch does; 0 = off", 0},
    {"eval-every", OPT_INT, AT(eval_every), "auto", 1, 1e12, NULL,
     "steps between validations; auto = an epoch, at most 200 per run", OPT_AUTO},
    {"select", OPT_CHOICE, AT(select), "best", 0, 0, "best last",
     "parameters to test and save: those with the best validation value, or those of the last step", 0},
    {"test-each", OPT_BOOL, AT(test_each), "no", 0, 0, NULL,
     "score the test examples at each validation too, each length apart, for curves; nothing else changes", 0},
    {"stop-at", OPT_REAL, AT(stop_at), "0.999", 0, 2, NULL, "validation metric at which training stops; 2 = never", 0},
    {"patience", OPT_INT, AT(patience), "0", 0, 1e9, NULL,
     "validations in a row without a gain after which training stops; 0 = never", 0},
    {"seed", OPT_INT, AT(seed), "1", 0, 9e18, NULL, "seed of initialisation, data and order", OPT_SEED},
    {"precision", OPT_CHOICE, AT(precision), REAL_NAME, 0, 0, CONFIG_PRECISIONS,
     "type to which inputs of matrix products are rounded; all else stays in " REAL_NAME, OPT_OPEN},
    {"kernel", OPT_TEXT_FIELD, AT(kernel), "", 0, 0, NULL,
     "kernel to use wherever its op occurs, or 'reference' for the reference kernels of all ops", OPT_OPEN},
    {"device", OPT_TEXT_FIELD, AT(device), "cpu", 0, 0, NULL, "processor to train on: cpu, cuda or cuda:N", OPT_OPEN},
    {"budget", OPT_TIME, AT(budget), "0s", 0, 1e9, NULL,
     "longest training time; steps timed before the run turn it into a --stop-after; 0 = no limit", OPT_OPEN},
    {"threads", OPT_INT, AT(threads), "auto", 1, 4096, NULL,
     "CPU threads of one run; auto = all cores, in `lrnn bench` one", OPT_AUTO | OPT_RUNTIME},
    {"checkpoint-every", OPT_TIME, AT(checkpoint_every), "60s", 0, 1e9, NULL, "time between checkpoints; 0 = none",
     OPT_RUNTIME},
    {"keep-weights", OPT_CHOICE, AT(keep_weights), "yes", 0, 0, "no yes all",
     "save the best weights in OUT/weights, for `lrnn export`; all: also those of the last step", OPT_RUNTIME},
    {"from", OPT_TEXT_FIELD, AT(from), "", 0, 0, NULL,
     "safetensors file of the initial weights, as `lrnn export` writes it; default: drawn from the seed",
     OPT_RUNTIME | OPT_HERE | OPT_FILLED},
    {"from-xxh3", OPT_TEXT_FIELD, AT(from_xxh3), "", 0, 0, NULL,
     "XXH3-128 of the file of --from, found by the program; part of the run's identity", OPT_FOUND},
    {"force", OPT_BOOL, AT(force), "no", 0, 0, NULL,
     "train the run although it has a record; the old record is kept as ID.json.replaced", OPT_RUNTIME | OPT_HERE},
    {"force-resume", OPT_BOOL, AT(force_resume), "no", 0, 0, NULL,
     "resume also from a checkpoint of another build; the record then says so", OPT_RUNTIME | OPT_HERE},
    {"out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records and exports",
     OPT_RUNTIME | OPT_HERE | OPT_FILLED},
    {"profile", OPT_TEXT_FIELD, AT(profile), "custom", 0, 0, NULL,
     "take sizes, learning rate and training length from this profile; custom = from no profile", OPT_RUNTIME},
    {"quiet", OPT_BOOL, AT(quiet), "no", 0, 0, NULL, "print no progress", OPT_RUNTIME | OPT_HERE},
    {"json", OPT_BOOL, AT(json), "no", 0, 0, NULL, "print the result as one JSON line", OPT_RUNTIME | OPT_HERE},
    {0}};

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* A run that does not set eval-every validates once per epoch, but at most 200 times. */
struct run_length config_length(struct config *c, int64_t n_train) {
    struct run_length l = {.steps_per_epoch = ceil_div(n_train, c->batch)};
    l.schedule_steps = c->steps ? c->steps : c->epochs * l.steps_per_epoch;
    l.steps = c->stop_after && c->stop_after < l.schedule_steps ? c->stop_after : l.schedule_steps;
    int64_t least = ceil_div(l.schedule_steps, 200);
    l.eval_every = c->eval_every ? c->eval_every : l.steps_per_epoch > least ? l.steps_per_epoch : least;
    c->steps = l.schedule_steps;
    c->eval_every = l.eval_every;
    if (l.steps == l.schedule_steps) c->stop_after = 0;
    if ((double)c->epochs * (double)l.steps_per_epoch != (double)l.schedule_steps)
        (void)config_set(c, "epochs", option_find(config_options, "epochs")->value, NULL);
    return l;
}

const char *config_other_length(const char *flag) {
    return !strcmp(flag, "steps") ? "epochs" : !strcmp(flag, "epochs") ? "steps" : NULL;
}

enum status config_check_length(const struct config *c, int64_t n_train, struct error *e) {
    int64_t steps = ceil_div(n_train, c->batch);
    double most = option_find(config_options, "steps")->max;
    if (c->steps || (double)c->epochs * (double)steps <= most) return ST_OK;
    return fail(e, ST_USAGE,
                "--epochs %" PRId64 " of %" PRId64 " steps each are more than the %.0f steps that a run may have; take "
                "fewer epochs, or --steps",
                c->epochs, steps, most);
}

enum status config_default(struct config *c, struct error *e) {
    memset(c, 0, sizeof *c);
    TRY(options_default(backbone_options, c, e));
    return options_default(config_options, c, e);
}

enum status config_set_from(struct config *c, const char *origin, const char *name, const char *value,
                            struct error *e) {
    const struct option *table = option_find(backbone_options, name) ? backbone_options : config_options;
    return options_set(table, c, origin, name, value, e);
}

enum status config_set(struct config *c, const char *name, const char *value, struct error *e) {
    return config_set_from(c, "the configuration", name, value, e);
}
