/* train.c - trains one run and writes its record. The file has five parts: the graphs; a training step; an evaluation;
 * the loop, which checks the loss, validates and finds a reason to stop; the test and the record. trainer.c has what
 * devices need. In this file, a device is a GPU. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_plan.h"
#include "core/graph_walk.h"
#include "harness/run/checkpoint.h"
#include "harness/run/products.h"
#include "harness/run/signals.h"
#include "harness/run/train.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "kernels/lib/parallel.h"

/* On a device, the host queues a group of several steps, waits for these steps and then reads the loss. */
#define LOOK_EVERY_MS 1e3 /* longest time that a group should take, in milliseconds */

/* --- the graphs --------------------------------------------------------------------------------------------------- */

enum status trainer_create(struct trainer *t, const struct setup *setup, struct error *e) {
    TRY(trainer_open_place(t, setup, setup->spec.config.device, e));
    const struct graph_source from = {&setup->spec, &setup->shapes, &t->place};
    TRY(graphs_build_training(&t->train, &from, &t->params, &t->nets, e));
    TRY(graphs_build_evaluation(&t->eval, &from, &t->params, &t->eval_net, e));
    batches_init(&t->batches, &from, &t->nets);
    TRY(trainer_check_memory(t, e));
    TRY(params_reserve(&t->params, true, e));
    TRY(graph_plan(&t->train, e));
    TRY(batches_start(&t->batches, e));
    TRY(trainer_start_evaluation(t, true, e));
    TRY(graphs_build_update(&t->update, &from, &t->params, tensor_real(t->nets.main.loss), e));
    TRY(graph_plan(&t->update, e));
    TRY(trainer_first_weights(t, e));
    struct graph_list graphs = trainer_graphs(t);
    return graphs_check_forced(&graphs, from.spec, e);
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

/* Computes one training step: takes the batch, runs the training graph forward and backward, and runs the update graph,
 * which changes the parameters. */
static void walk_step(struct trainer *t) {
    batches_take(&t->batches, t->live);
    graph_forward(&t->train, t->live);
    graph_backward(&t->train, t->live);
    graph_forward(&t->update, t->live);
}

/* Does one training step. On the CPU the update graph increases state.step; for a device trainer_queue does so. */
void trainer_step(struct trainer *t) {
    double start = time_now_s();
    batches_next(&t->batches, t->state.step);
    double filled = time_now_s();
    if (t->place.device == DEVICE_CPU)
        walk_step(t);
    else
        trainer_queue(t, walk_step);
    t->data_s += filled - start;
    t->step_s += time_now_s() - filled;
}

/* --- an evaluation ------------------------------------------------------------------------------------------------ */

bool trainer_evaluate(struct trainer *t, enum split split, struct scores *scores) {
    double start = time_now_s();
    struct split_store *store = split == SPLIT_TEST ? &t->test : &t->val;
    struct batch b;
    real loss;
    int64_t B = t->setup->spec.config.batch, n = t->setup->spec.task.shape.examples[split];
    bool whole = true;
    metrics_reset(&t->metrics);
    for (int64_t first = 0; first < n && whole; first += B) {
        int64_t in_use = split_store_select(store, first, &t->eval_net, &b);
        if (!t->evaluates) place_load_begin(&t->place);
        graph_forward(&t->eval, t->live);
        if (!t->evaluates) {
            place_load_end(&t->place);
            products_save(&t->place);
        }
        t->evaluates = true;
        graph_get(&t->eval, t->eval_net.predictions, t->predictions);
        graph_get(&t->eval, t->eval_net.loss, &loss);
        if (place_wait(&t->place, NULL) != ST_OK)
            return false; /* the device failed, so the predictions are not valid */
        metrics_add(&t->metrics, b.targets, t->predictions, b.lengths, in_use, b.labels, (double)loss);
        whole = first + B >= n || !signal_received();
    }
    if (whole) *scores = metrics_scores(&t->metrics);
    t->eval_s += time_now_s() - start;
    return whole;
}

double trainer_metric(const struct trainer *t, const struct scores *scores) {
    return t->setup->spec.task.shape.metric == METRIC_MACRO_ACC ? scores->macro_acc : scores->acc;
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

/* Does one or several steps and then reads the loss. The CPU does one step; a device does steps for about a second, so
 * that signals and checkpoints need not wait long. If a validation is due earlier, the device does fewer steps. With
 * --log-steps it does one. */
static enum status take_steps(struct running *r, struct error *e) {
    struct trainer *t = &r->trainer;
    const struct shapes *s = &t->setup->shapes;
    int64_t before = t->state.step, count = r->log.file || r->n_samples == 0 ? 1 : trainer_sync_every(t);
    if (count > 1) {
        double fit = LOOK_EVERY_MS / (double)r->step_ms[(r->n_samples - 1) % STEP_SAMPLES];
        if (fit < (double)count) count = fit > 1 ? (int64_t)fit : 1;
    }
    int64_t until = before + count, validation = (before / s->eval_every + 1) * s->eval_every;
    if (until > validation) until = validation;
    if (until > s->steps) until = s->steps;
    double start = time_now_s();
    while (t->state.step < until) trainer_step(t);
    TRY(trainer_sync(t, e));
    r->step_ms[r->n_samples++ % STEP_SAMPLES] = (float)(1e3 * (time_now_s() - start) / (double)(until - before));
    r->n_steps_here += until - before;
    r->validated = false;
    return step_log_add(&r->log, &t->state, e);
}

/* Tells whether the loss or the gradient norm of a step was NaN or infinite. If so, sets the run's status and the
 * detail that the record will show. */
static bool diverged(struct running *r) {
    struct trainer *t = &r->trainer;
    if (!t->state.frozen) return false;
    double loss = t->state.loss;
    int64_t step = t->state.frozen_step;
    char loss_text[40], norm[40];
    format_double(loss, loss_text, sizeof loss_text);
    format_double(t->state.grad_norm, norm, sizeof norm);
    const char *tensor = trainer_find_nonfinite(t, step);
    r->status = isinf(loss) || !tensor ? RUN_DIVERGED : RUN_NAN;
    t->state.step = step + 1; /* a device may have done more steps, but these changed no parameter */
    trainer_set_state(t);
    if (tensor)
        snprintf(r->detail, sizeof r->detail, "step %" PRId64 ": loss %s, first value that is not finite in %s",
                 step + 1, loss_text, tensor);
    else
        snprintf(r->detail, sizeof r->detail,
                 "step %" PRId64 ": loss %s, the square of the gradient's norm %s overflows " REAL_NAME "; use --clip",
                 step + 1, loss_text, norm);
    struct scores none = {loss, NAN, NAN, NAN, NAN, NAN, 0, 0};
    running_add_point(r, SPLIT_TRAIN, 0, &none, "nan");
    return true;
}

/* Tells whether a validation follows the current step. */
static bool is_due(const struct trainer *t) {
    const struct shapes *s = &t->setup->shapes;
    return t->state.step > 0 && (t->state.step % s->eval_every == 0 || t->state.step == s->steps);
}

/* Validates the current parameters, and stores a copy of them in t->best if they are the best so far. With --select
 * last it always stores them. The last step is always validated, so in the end t->best has the parameters of the last
 * step. Returns false if a signal came during the validation; then nothing has changed. */
static bool validate(struct running *r) {
    struct trainer *t = &r->trainer;
    struct run_progress *p = &r->progress;
    struct scores s, test, train = {NAN, NAN, NAN, NAN, NAN, NAN, 0, 0};
    bool test_each = t->setup->spec.config.test_each;
    if (!trainer_evaluate(t, SPLIT_VAL, &s) || (test_each && !trainer_evaluate(t, SPLIT_TEST, &test))) return false;
    if (t->state.loss_steps) p->train_loss = t->state.loss_sum / (double)t->state.loss_steps;
    t->state.loss_sum = 0;
    t->state.loss_steps = 0;
    trainer_set_state(t);
    train.loss = p->train_loss;
    if (test_each) running_add_test(r, &test);
    running_add_point(r, SPLIT_TRAIN, 0, &train, "eval");
    running_add_point(r, SPLIT_VAL, 0, &s, "eval"); /* added last, because a progress report shows the newest point */
    r->validated = true;
    r->metric = trainer_metric(t, &s);
    if (p->solved_step < 0 && r->metric >= t->setup->spec.task.shape.solved) p->solved_step = t->state.step;
    bool gain = r->metric > p->gained;
    p->stale = gain ? 0 : p->stale + 1;
    if (gain) p->gained = r->metric;
    bool last = t->setup->spec.config.select == SELECT_LAST;
    if (last || t->best_step < 0 || r->metric > trainer_metric(t, &t->best_val)) {
        memcpy(t->best, params_fetch(&t->params, t->params.value), (size_t)t->params.floats * sizeof(real));
        t->best_step = t->state.step;
        t->best_val = s;
    }
    return true;
}

static bool has_nan(const struct running *r) {
    return r->status == RUN_NAN;
}

static bool has_diverged(const struct running *r) {
    return r->status == RUN_DIVERGED;
}

static bool at_target(const struct running *r) {
    return r->validated && r->metric >= r->trainer.setup->spec.config.stop_at;
}

static bool without_gain(const struct running *r) {
    int64_t patience = r->trainer.setup->spec.config.patience;
    return r->validated && patience && r->progress.stale >= patience;
}

static bool at_end(const struct running *r) {
    return r->validated && r->trainer.state.step == r->trainer.setup->shapes.steps;
}

static bool at_budget(const struct running *r) {
    return at_end(r) && r->trainer.setup->shapes.steps < r->trainer.setup->shapes.schedule_steps;
}

/* The reasons to end a run. `holds` tells whether the reason applies; the record gets `name` as its `stop_reason`. If
 * several reasons apply, the first in the table counts. To add a reason, add a row. */
static const struct {
    const char *name;
    bool (*holds)(const struct running *r);
} stops[] = {
    {"nan", has_nan},           {"diverged", has_diverged}, {"target", at_target},
    {"patience", without_gain}, {"budget", at_budget},      {"steps", at_end},
};

static const char *reason_to_stop(const struct running *r) {
    for (size_t i = 0; i < sizeof stops / sizeof *stops; i++)
        if (stops[i].holds(r)) return stops[i].name;
    return NULL;
}

static enum status save(struct running *r, struct error *e) {
    r->progress.wall_s = running_wall_s(r);
    r->last_checkpoint = time_now_s();
    return running_written(r->hooks, checkpoint_write(&r->trainer, &r->progress, e));
}

/* Saves a checkpoint, from which the same command continues. Returns 128 + the number of the received signal. */
static enum status interrupted(struct running *r, const char *when, struct error *e) {
    TRY(save(r, e));
    return fail(e, (enum status)(128 + signal_received()),
                "stopped %sat step %" PRId64 " of %" PRId64 "; the same command goes on from there", when,
                r->trainer.state.step, r->trainer.setup->shapes.steps);
}

/* Trains until there is a reason to stop or a signal. A run that was interrupted during a validation continues with
 * this validation. */
static enum status train_loop(struct running *r, struct error *e) {
    struct trainer *t = &r->trainer;
    double save_every = t->setup->spec.config.checkpoint_every;
    while (!(r->stop_reason = reason_to_stop(r))) {
        if (!is_due(t) || r->validated) TRY(take_steps(r, e));
        if (diverged(r)) continue;
        if (is_due(t) && !validate(r)) return interrupted(r, "while validating ", e);
        running_report(r, false);
        if (signal_received() && !reason_to_stop(r)) return interrupted(r, "", e);
        if (save_every > 0 && time_now_s() - r->last_checkpoint >= save_every) TRY(save(r, e));
    }
    return ST_OK;
}

/* --- test and record ---------------------------------------------------------------------------------------------- */

/* Exchanges the net's parameters (after the last step) with the best parameters, which are in t->best. */
static void exchange_best(struct trainer *t) {
    real *last = params_fetch(&t->params, t->params.value);
    for (int64_t i = 0; i < t->params.floats; i++) {
        real value = last[i];
        last[i] = t->best[i];
        t->best[i] = value;
    }
    params_store(&t->params, t->params.value);
}

/* Evaluates the test set with the parameters that validation chose, and writes the record. If a signal comes, restores
 * the parameters of the last step and saves a checkpoint instead. A run that diverged is not tested. */
static enum status test_and_record(struct running *r, struct run *row, struct error *e) {
    struct trainer *t = &r->trainer;
    if (r->status == RUN_OK) exchange_best(t);
    if (r->status == RUN_OK && !trainer_evaluate(t, SPLIT_TEST, &r->test)) {
        exchange_best(t);
        return interrupted(r, "while testing ", e);
    }
    TRY(trainer_sync(t, e));
    enum status status = run_record_write(r, row, e);
    if (status <= 128) return status;
    exchange_best(t);
    return interrupted(r, "while recording ", e);
}

/* --- from first to last ------------------------------------------------------------------------------------------- */

/* Builds the trainer, and restores the checkpoint if there is one. A run that is trained again (reuse->again) ignores
 * the checkpoint and begins at its first step. Its earlier record is set aside only after all checks have passed. */
static enum status begin(struct running *r, struct setup *setup, const struct reuse *reuse, struct error *e) {
    struct run_progress *p = &r->progress;
    struct trainer *t = &r->trainer;
    const char *device = setup->spec.config.device;
    int64_t at_once = 2 + (setup->spec.config.test_each ? TASK_TEST_LENGTHS : 0);
    p->curve_capacity = at_once * (setup->shapes.steps / setup->shapes.eval_every + 32);
    p->curve = calloc((size_t)p->curve_capacity, sizeof *p->curve);
    p->solved_step = -1;
    p->gained = -1;
    p->train_loss = NAN;
    if (!p->curve) return fail(e, ST_MEMORY, "no memory for a curve of %" PRId64 " points", p->curve_capacity);
    time_now_text(p->started, sizeof p->started);
    bool shared = r->hooks && r->hooks->create, resumed = false;
    TRY(shared ? r->hooks->create(r->hooks->context, t, setup, e) : trainer_create(t, setup, e));
    if (t->device_bytes && !setup->spec.config.quiet) {
        struct place_info info;
        char text[PLACE_NOTE];
        fprintf(stderr, "%s: the run takes %zu MB of device memory\n", device, t->device_bytes >> 20);
        if (place_describe(&t->place, &info, NULL) == ST_OK && place_code_note(&info, text))
            fprintf(stderr, "%s: %s\n", device, text);
    }
    if (!reuse->again) TRY(checkpoint_read(t, p, &resumed, e));
    for (int64_t i = p->n_curve - 1; i >= 0 && p->curve[i].step == t->state.step; i--)
        r->validated |= p->curve[i].split == SPLIT_VAL;
    /* If the restored step is the best step, the metric of this step is known. So a run that had reached the target
     * stops at once. */
    r->metric = t->best_step == t->state.step ? trainer_metric(t, &t->best_val) : -INFINITY;
    if (r->hooks && r->hooks->log_steps) TRY(step_log_open(&r->log, r->hooks->log_steps, t->state.step, e));
    TRY(reuse_release(reuse, &setup->spec.config, setup->id.run_id, e));
    r->sitting_wall_s = resumed ? p->wall_s : 0;
    r->began = r->last_checkpoint = time_now_s();
    return ST_OK;
}

static enum status run_all(struct running *r, struct setup *setup, const struct reuse *reuse, struct run *row,
                           struct error *e) {
    TRY(begin(r, setup, reuse, e));
    TRY(train_loop(r, e));
    TRY(step_log_close(&r->log, e));
    running_report(r, true);
    TRY(test_and_record(r, row, e));
    checkpoint_remove(setup->spec.config.out, setup->id.run_id);
    return ST_OK;
}

enum status train_run(struct setup *setup, const struct train_hooks *hooks, struct run *row, struct error *e) {
    const struct config *c = &setup->spec.config;
    char folder[RECORD_TEXT];
    snprintf(folder, sizeof folder, "%s/runs/%.2s", c->out, setup->id.run_id);
    TRY(running_written(hooks, make_folder(folder, e))); /* fails before training if the folder cannot be written */
    struct reuse reuse = reuse_find(c, setup->id.run_id, false);
    if (!reuse_wanted(&reuse)) {
        reuse_tell(reuse.other, 1);
        if (!reuse.failed) checkpoint_remove(c->out, setup->id.run_id);
        if (!hooks || !hooks->log_steps) return ST_OK;
        return fail(e, ST_USAGE,
                    "run %s has a record in %s and is not trained again, so --log-steps has no steps; choose another "
                    "folder by --out",
                    setup->id.run_id, c->out);
    }
    TRY(running_written(hooks, folder_links_check(folder, e)));
    if (!reuse.again) TRY(checkpoint_admit(&setup->spec, setup->id.run_id, e));
    snprintf(folder, sizeof folder, "%s/" WEIGHTS_FOLDER, c->out);
    if (c->keep_weights != KEEP_NONE) TRY(running_written(hooks, make_folder(folder, e)));
    TRY(parallel_start(c->threads, NULL, e));
    struct running *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for a run");
    r->hooks = hooks;
    enum status status = run_all(r, setup, &reuse, row, e);
    free(r->progress.curve);
    if (r->log.file) fclose(r->log.file);
    trainer_free(&r->trainer);
    free(r);
    return status;
}
