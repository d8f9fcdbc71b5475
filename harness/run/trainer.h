/* trainer.h - the machinery of a run: graphs, data, optimiser, stepping and evaluating; run.h makes a run of it. */
#ifndef LRNN_HARNESS_RUN_TRAINER_H
#define LRNN_HARNESS_RUN_TRAINER_H

#include "harness/study/graphs.h"
#include "harness/run/buckets.h"
#include "harness/run/feeder.h"
#include "harness/run/metrics.h"
#include "harness/run/batches/resident.h"
#include "harness/run/batches/split_store.h"
#include "harness/run/batches/staging.h"

/* A net with its optimiser and its data, stepping. Deterministic: what step s does is a function of the setup, the
 * parameters, moments and state alone. */
struct trainer {
    const struct setup *setup;
    struct place place; /* where it runs */
    struct params params;
    struct graph train, eval, update;
    struct net train_net, eval_net;
    struct net second_net;         /* the training batch of another length, in the graph `train`, if the task has one */
    struct buckets buckets, parts; /* smaller graphs than `train` and `eval`, for the parts of a batch; none without
                                      --buckets */
    struct feeder feeder;          /* of training batches */
    struct step_state state;       /* on a device as of the latest trainer_sync, but for the step */
    struct step_state *live;       /* what the ops read and write: &state, or its like in the device's memory */
    struct arena there;            /* owns live on a device */
    size_t resident;        /* bytes of the training data where it lies on the device whole; 0: batches are sent */
    struct resident data;   /* those */
    struct staging staging; /* or batches on their way there */
    struct place_capture *capture; /* a whole step, captured once; NULL on the CPU and before the second step */
    int64_t steps_queued;          /* since the trainer was made */
    size_t device_bytes;           /* that the run takes; 0 on the CPU */
    struct metrics metrics;
    struct split_store val, test; /* their examples */
    int32_t *predictions;         /* of a batch, on the host */
    struct arena host;            /* predictions, metric tables, the best parameters so far */
    real *best;                   /* copy of params.value at best_step; the two are exchanged for the test */
    int64_t best_step;            /* -1 = none yet */
    struct scores best_val;
    double data_s, step_s, eval_s; /* seconds spent: waiting for training batches, stepping, evaluating */
};

/* Builds and initialises everything; the first step has not run. Errors: sizes that do not fit, memory, a forced kernel
 * that has nothing to compute; 130 or 143 as a status when a signal asked to stop while examples were made. */
enum status trainer_create(struct trainer *t, const struct setup *setup, struct error *e);

/* The graphs that it walks. */
struct graph_list trainer_graphs(const struct trainer *t);

/* What a whole step costs at the least: both passes of the largest batch, the update, and taking resident data. */
struct cost trainer_step_cost(const struct trainer *t);
void trainer_free(struct trainer *t);

/* The evaluation half alone: trainer_evaluate and trainer_metric work, and give the bits that the whole trainer gives.
 * The parameters are zeros until the caller fills them. */
enum status trainer_create_evaluation(struct trainer *t, const struct setup *setup, struct error *e);

/* The parameters alone, on the CPU, as the first step finds them. Errors: as trainer_create; ST_USAGE, ST_DATA: a run
 * that starts from a file, without the file. */
enum status trainer_create_initial(struct trainer *t, const struct setup *setup, struct error *e);

/* One optimiser step: the batch of step state.step, forward, backward, update. On a device it is queued, and its loss
 * is known after trainer_sync. */
void trainer_step(struct trainer *t);

/* Waits for the steps queued and reads the state. Errors: ST_DEVICE, what failed on the device. */
enum status trainer_sync(struct trainer *t, struct error *e);

/* What the host has changed in t->state counts from here on. */
void trainer_set_state(struct trainer *t);

/* Steps that may be queued before a trainer_sync, where nothing else asks for one. */
int64_t trainer_sync_every(const struct trainer *t);

/* Scores of the whole validation or test split with the current parameters; false, and no scores, where a signal asked
 * to stop before the last batch. */
bool trainer_evaluate(struct trainer *t, enum split split, struct scores *scores);

/* Primary metric of the task. */
double trainer_metric(const struct trainer *t, const struct scores *scores);

/* Name of the first tensor, in forward order, that holds a value that is not finite for the batch of step `step`; NULL
 * if none does. */
const char *trainer_find_nonfinite(struct trainer *t, int64_t step);

#endif
