/* trainer.h - the machine of a run: graphs, parameters, optimiser and batches, which steps and evaluates. train.h makes
 * a whole run of it; perf, gate and import use it directly:
 *
 *     trainer_create(&t, setup, e);
 *     while (...) trainer_step(&t);
 *     trainer_sync(&t, e);   t.state holds step, loss, norm
 *     trainer_free(&t);
 */
#ifndef LRNN_HARNESS_RUN_TRAINER_H
#define LRNN_HARNESS_RUN_TRAINER_H

#include "harness/run/batches/batches.h"
#include "harness/run/metrics.h"

/* Deterministic: what step s does is a function of the setup, the parameters, the moments and the state alone. */
struct trainer {
    const struct setup *setup; /* borrowed */
    struct place place;        /* where it runs */
    struct params params;

    struct graph train, eval, update; /* a training step, an evaluation, the optimiser */
    struct net train_net, eval_net;
    struct net second_net;  /* of the second batch of a step, in `train`; zeros if the task has none */
    struct batches batches; /* of training */
    struct split_store val, test;
    int32_t *predictions; /* (B, labels) of an evaluation, on the host */

    struct step_state state; /* on a device as of the latest trainer_sync, but for the step */
    struct step_state *live; /* read and written by the ops: &state, or its copy in device memory, owned by `there` */
    struct arena there;
    struct place_capture *capture; /* a whole step, captured once; NULL on the CPU and before the second step */
    int64_t steps_queued;          /* on a device, since the trainer was made */
    size_t device_bytes;           /* that the run takes; 0 on the CPU */

    struct metrics metrics;
    struct arena host; /* owns predictions, metric tables and the best parameters */
    real *best;        /* copy of params.value at best_step; the two are exchanged for the test */
    int64_t best_step; /* -1: none yet */
    struct scores best_val;
    double data_s, step_s, eval_s; /* seconds spent: waiting for training batches, stepping, evaluating */
};

/* Builds and initialises everything; the first step has not run. Errors: sizes that do not fit, memory, a forced kernel
 * that has nothing to compute; 130 or 143 as a status if a signal asked to stop while examples were made. */
enum status trainer_create(struct trainer *t, const struct setup *setup, struct error *e);

/* The evaluation half alone, on the CPU: trainer_evaluate works and gives the bits that the whole trainer gives. The
 * parameters are zeros until the caller fills them. */
enum status trainer_create_evaluation(struct trainer *t, const struct setup *setup, struct error *e);

/* The parameters alone, on the CPU, as the first step finds them. Errors: as trainer_create; ST_USAGE, ST_DATA: a run
 * that starts from a file, without the file. */
enum status trainer_create_initial(struct trainer *t, const struct setup *setup, struct error *e);
void trainer_free(struct trainer *t);

/* Makes a trainer by one of these functions in memory of its own; NULL: it cannot be made. trainer_close takes NULL as
 * well. */
struct trainer *trainer_open(enum status (*create)(struct trainer *t, const struct setup *s, struct error *e),
                             const struct setup *setup, struct error *e);
void trainer_close(struct trainer *t);

/* One optimiser step: the batch of step state.step, forward, backward, update. On a device it is queued, and its loss
 * is known after trainer_sync. */
void trainer_step(struct trainer *t);

/* Waits for the queued steps and reads the state. Errors: ST_DEVICE. */
enum status trainer_sync(struct trainer *t, struct error *e);

/* Hands the state to the ops after the host has changed it. */
void trainer_set_state(struct trainer *t);

/* Steps that may be queued before a trainer_sync, where nothing else asks for one. */
int64_t trainer_sync_every(const struct trainer *t);

/* Scores of the whole validation or test split with the current parameters; false, and no scores, if a signal asked to
 * stop before the last batch, or if the device failed, which place_wait says. */
bool trainer_evaluate(struct trainer *t, enum split split, struct scores *scores);

/* Primary metric of the task. */
double trainer_metric(const struct trainer *t, const struct scores *scores);

/* Name of the first tensor, in forward order, that holds a value that is not finite for the batch of step `step`; NULL
 * if none does. */
const char *trainer_find_nonfinite(struct trainer *t, int64_t step);

/* The graphs that it walks. */
struct graph_list trainer_graphs(const struct trainer *t);

/* Least cost of a whole step: both passes, the update, and taking resident data. */
struct cost trainer_step_cost(const struct trainer *t);

#endif
