/* train.h - one run: the trainer's machinery (graphs, data, optimiser) and the run from first step to record. */
#ifndef LRNN_HARNESS_TRAIN_H
#define LRNN_HARNESS_TRAIN_H

#include <signal.h>

#include "harness/plan/config.h"
#include "harness/run/feeder.h"
#include "harness/run/metrics.h"
#include "harness/run/resident.h"
#include "harness/run/split_store.h"
#include "harness/run/staging.h"

/* A net with its optimiser and its data, stepping. Deterministic: what step s does is a function of the setup, the
 * parameters, moments and state alone. */
struct trainer {
    const struct setup *setup;
    struct place place; /* where it runs */
    struct params params;
    struct graph train, eval, update;
    struct net train_net, eval_net;
    struct net extra_net;    /* the training batch of another length, in the graph `train`, if the task has one */
    struct feeder feeder;    /* of training batches */
    struct step_state state; /* on a device as of the latest trainer_sync, but for the step */
    struct step_state *live; /* what the ops read and write: &state, or its like in the device's memory */
    struct arena there;      /* owns live on a device */
    size_t resident;         /* bytes of the training data where it lies on the device whole; 0: batches are sent */
    struct resident data;    /* those */
    struct staging staging;  /* or batches on their way there */
    struct place_recording *recording; /* a whole step, captured once; NULL on the CPU and before the second step */
    int64_t steps_queued;              /* since the trainer was made */
    size_t device_bytes;               /* that the run takes; 0 on the CPU */
    struct metrics metrics;
    struct split_store val, test; /* their examples */
    int32_t *predictions;         /* of a batch, on the host */
    struct arena host;            /* segments, metric tables, the best parameters so far */
    real *best;                   /* copy of params.value at best_step */
    int64_t best_step;            /* -1 = none yet */
    struct scores best_val;
    double data_s, step_s, eval_s; /* seconds spent: waiting for training batches, stepping, evaluating */
};

/* Builds and initialises everything; the first step has not run. Errors: sizes that do not fit, memory. */
enum status trainer_create(struct trainer *t, const struct setup *setup, struct error *e);
void trainer_free(struct trainer *t);

/* The evaluation half alone: trainer_evaluate and trainer_metric work, and give the bits that the whole trainer gives.
 * The parameters are zeros until the caller fills them. */
enum status trainer_create_evaluation(struct trainer *t, const struct setup *setup, struct error *e);

/* One optimiser step: the batch of step state.step, forward, backward, update. On a device it is queued, and its loss is
 * known after trainer_sync. */
void trainer_step(struct trainer *t);

/* Waits for the steps queued and reads the state. Errors: ST_DEVICE, what failed on the device. */
enum status trainer_sync(struct trainer *t, struct error *e);

/* What the host has changed in t->state counts from here on. */
void trainer_set_state(struct trainer *t);

/* Steps that may be queued before a trainer_sync, where nothing else asks for one. */
int64_t trainer_sync_every(const struct trainer *t);

/* Scores of the whole validation or test split with the current parameters. */
void trainer_evaluate(struct trainer *t, enum split split, struct scores *scores);

/* Primary metric of the task. */
double trainer_metric(const struct trainer *t, const struct scores *scores);

/* Name of the first tensor, in forward order, that holds a value that is not finite for the batch of step `step`; NULL if
 * none does. */
const char *trainer_find_nonfinite(struct trainer *t, int64_t step);

/* --- a whole run -------------------------------------------------------------------------------------------------------- */

struct progress {
    int64_t step, steps;
    double loss, acc; /* latest training loss; latest validation metric (NAN before the first) */
    double tok_per_s, wall_s;
};

struct train_hooks {
    void (*progress)(void *context, const struct progress *p); /* about five times a second; or NULL */
    void *context;
};

/* Trains, validates, tests the best parameters, writes the record under config.out. A record already there is not done
 * again. Divergence is a record too. *record, if not NULL, receives the finished run's row.
 * Errors: ST_FAIL (cannot write), 130 or 143 as a status when a signal asked to stop: a checkpoint has then been written
 * and the same command goes on from it. */
enum status train_run(struct setup *setup, const struct train_hooks *hooks, struct run *row, struct error *e);

/* The record of a run that ended without writing one (its process was killed, ran out of memory or of time). */
enum status record_failure(const struct setup *s, enum run_status status, const char *detail, const char *started,
                           struct error *e);

/* SIGUSR1 ends training as if its budget were used up: the best parameters are tested and the record is written.
 * First SIGINT or SIGTERM asks to save and stop; the second ends the process at once. */
void signals_install(void);
void signals_raise_stop(void); /* as if SIGTERM had come */
int signal_received(void);     /* 0, SIGINT or SIGTERM */

/* --- checkpoints: OUT/checkpoints/<run_id>.ckpt ------------------------------------------------------------------------- */

struct run_progress {
    struct curve_point *curve;
    int64_t n_curve, curve_capacity;
    double wall_s;       /* of earlier sittings */
    int64_t resumed;     /* times */
    int64_t solved_step; /* first validation at or above the task's solved threshold; -1 */
    int64_t stale;       /* validations in a row without a gain */
    double gained;       /* metric at the latest gain; -1 before the first */
    double train_loss;   /* mean over the last validation interval */
    char started[32];
};

enum status checkpoint_write(const struct trainer *t, const struct run_progress *p, struct error *e);

/* *found = false when there is none. A corrupt one is renamed to .corrupt, named on stderr, and counts as none. */
enum status checkpoint_read(struct trainer *t, struct run_progress *p, bool *found, struct error *e);
void checkpoint_remove(const struct setup *setup);

#endif
