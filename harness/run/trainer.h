/* trainer.h - a trainer has the graphs, parameters, optimiser and batches of a run; it can do training steps and
 * evaluations. train.h uses it for a whole run; perf, gate and import use it directly:
 *
 *     trainer_create(&t, setup, e);
 *     while (...) trainer_step(&t);
 *     trainer_sync(&t, e);   t.state has step, loss, norm
 *     trainer_free(&t); */
#ifndef LRNN_HARNESS_RUN_TRAINER_H
#define LRNN_HARNESS_RUN_TRAINER_H

#include "harness/run/batches/batches.h"
#include "harness/run/metrics.h"

/* Deterministic: the result of a step depends only on the setup, the parameters, the moments and the state. */
struct trainer {
    const struct setup *setup; /* borrowed */
    struct place place;        /* the device and stream on which it runs */
    struct params params;

    struct graph train, eval, update; /* a training step, an evaluation, the optimiser */
    struct step_nets nets;            /* of `train` */
    struct net eval_net;
    struct batches batches; /* training batches */
    struct split_store val, test;
    int32_t *predictions; /* (B, labels) of an evaluation, in the host's memory */

    /* on a device, it is up to date only after trainer_sync; its step is always up to date */
    struct step_state state;
    /* the state that the ops read and write: &state, or its copy in device memory, owned by `there` */
    struct step_state *live;
    struct arena there;
    /* a captured step, which is replayed; NULL on the CPU and before the second step */
    struct place_capture *capture;
    bool evaluates;       /* it has evaluated a batch before */
    int64_t steps_queued; /* on a device, number of steps since the trainer was made */
    size_t device_bytes;  /* device memory of the run; 0 on the CPU */

    struct metrics metrics;
    struct arena host; /* owns predictions, metric tables and the best parameters */
    real *best;        /* copy of params.value at best_step; for the test the two are exchanged */
    int64_t best_step; /* -1: none yet */
    struct scores best_val;
    double data_s, step_s, eval_s; /* seconds spent waiting for training batches, doing steps, evaluating */
};

/* Builds and initialises everything that training needs. Errors: sizes that do not fit, memory, a forced kernel that
 * computes no op of the net; 130 or 143 as a status if a signal came while examples were made. */
enum status trainer_create(struct trainer *t, const struct setup *setup, struct error *e);

/* The parts of trainer_create. trainer_open_place opens the device and begins the parameters. trainer_check_memory
 * computes how much device memory the run needs, before anything is allocated, and fails if the device has less; if the
 * device also has room for the training data, they are kept there. trainer_first_weights gives the parameters their
 * values before the first step: drawn from the seed, or read from a file. */
enum status trainer_open_place(struct trainer *t, const struct setup *setup, const char *device, struct error *e);
enum status trainer_check_memory(struct trainer *t, struct error *e);
enum status trainer_first_weights(struct trainer *t, struct error *e);

/* Makes the validation and test examples, and plans the memory of the evaluation graph. The examples come first: inputs
 * of the graph point at stored examples, so they need no memory. On the CPU, the evaluation graph uses the memory of
 * the training graph, whose inputs are filled anew at every step. On a device the evaluation graph has its own memory,
 * because a training step may still be in progress. training: there is a training graph. */
enum status trainer_start_evaluation(struct trainer *t, bool training, struct error *e);

/* Builds only what trainer_evaluate needs, on the CPU. Its results have the bits of a whole trainer. The parameters are
 * zeros until the caller fills them. */
enum status trainer_create_evaluation(struct trainer *t, const struct setup *setup, struct error *e);

/* Builds only the parameters, on the CPU, with their values before the first step. Errors: as trainer_create; ST_USAGE
 * or ST_DATA if the run starts from a file that is missing. */
enum status trainer_create_initial(struct trainer *t, const struct setup *setup, struct error *e);
void trainer_free(struct trainer *t);

/* Allocates a trainer and makes it by one of the functions above; NULL: it cannot be made. trainer_close allows
 * NULL. */
struct trainer *trainer_open(enum status (*create)(struct trainer *t, const struct setup *s, struct error *e),
                             const struct setup *setup, struct error *e);
void trainer_close(struct trainer *t);

/* Does one training step: takes the batch of step state.step, runs forward and backward, updates the parameters. On a
 * device the step is queued, and its loss is known after trainer_sync. */
void trainer_step(struct trainer *t);

/* Queues a step on a device. `walk` launches its kernels. The first step loads the kernels, the second is captured, and
 * later steps replay it. */
void trainer_queue(struct trainer *t, void (*walk)(struct trainer *t));

/* Waits for the queued steps and reads the state. Errors: ST_DEVICE. */
enum status trainer_sync(struct trainer *t, struct error *e);

/* Sends the state to the ops after the host has changed it. */
void trainer_set_state(struct trainer *t);

/* Returns the number of steps that may be queued before a trainer_sync. */
int64_t trainer_sync_every(const struct trainer *t);

/* Computes the scores of the whole validation or test split with the current parameters. False: no scores, because a
 * signal came before the last batch, or because the device failed (place_wait gives the error). */
bool trainer_evaluate(struct trainer *t, enum split split, struct scores *scores);

/* Returns the task's primary metric from the scores. */
double trainer_metric(const struct trainer *t, const struct scores *scores);

/* Names the first tensor, in forward order, with a value that is not finite for the batch of that step; NULL: all
 * values are finite. */
const char *trainer_find_nonfinite(struct trainer *t, int64_t step);

/* Lists the trainer's graphs. */
struct graph_list trainer_graphs(const struct trainer *t);

/* Returns the least cost of a training step: both passes, the update, and copying the batch if the training data are on
 * the device. */
struct cost trainer_step_cost(const struct trainer *t);

#endif
