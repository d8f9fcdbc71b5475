/* run.c - a whole run: train, validate, keep the best, test it once, write the record. See run.h. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "harness/run/checkpoint.h"
#include "harness/run/reuse.h"
#include "harness/run/run.h"
#include "harness/run/run_record.h"
#include "harness/run/signals.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"

#define PROGRESS_EVERY 0.2 /* seconds */
#define LOOK_EVERY_MS  1e3 /* of queued steps, on a device */

/* --- a run in progress -------------------------------------------------------------------------------------------- */

static void add_point(struct running *r, enum split split, const struct scores *s, const char *event) {
    struct run_progress *p = &r->progress;
    if (p->n_curve == p->curve_capacity) return; /* cannot happen: sized for every validation */
    const struct setup *setup = r->trainer.setup;
    int64_t step = r->trainer.state.step, tokens = step * running_step_tokens(setup);
    double seconds = r->trainer.step_s;
    struct curve_point point = {.step = step,
                                .tokens = tokens,
                                .wall_s = running_wall_s(r),
                                .split = split,
                                .loss = s->loss,
                                .acc = s->acc,
                                .macro_acc = s->macro_acc,
                                .seq_acc = s->seq_acc,
                                .last_acc = s->last_acc,
                                .lr = r->trainer.state.lr,
                                .grad_norm = r->trainer.state.grad_norm,
                                .tok_per_s = seconds > 0 ? (double)tokens / seconds : NAN};
    snprintf(point.event, sizeof point.event, "%s", event);
    p->curve[p->n_curve++] = point;
}

/* Validation at the current step; keeps the parameters if they are the best so far. False: a signal asked to stop
 * meanwhile, and all is as before. */
static bool validate(struct running *r, double *metric_found) {
    struct trainer *t = &r->trainer;
    struct scores s, train = {NAN, NAN, NAN, NAN, NAN, NAN, 0, 0};
    if (!trainer_evaluate(t, SPLIT_VAL, &s)) return false;
    if (t->state.loss_steps) r->progress.train_loss = t->state.loss_sum / (double)t->state.loss_steps;
    t->state.loss_sum = 0;
    t->state.loss_steps = 0;
    trainer_set_state(t);
    train.loss = r->progress.train_loss;
    add_point(r, SPLIT_TRAIN, &train, "eval");
    add_point(r, SPLIT_VAL, &s, "eval");
    double metric = trainer_metric(t, &s);
    if (r->progress.solved_step < 0 && metric >= t->setup->spec.task.shape.solved)
        r->progress.solved_step = t->state.step;
    bool gain = metric > r->progress.gained + t->setup->spec.config.min_gain;
    r->progress.stale = gain ? 0 : r->progress.stale + 1;
    if (gain) r->progress.gained = metric;
    if (t->best_step < 0 || metric > trainer_metric(t, &t->best_val)) {
        memcpy(t->best, params_fetch(&t->params, t->params.value), (size_t)t->params.floats * sizeof(real));
        t->best_step = t->state.step;
        t->best_val = s;
    }
    *metric_found = metric;
    return true;
}

/* Whether this step is one that is validated, and whether it has been. */
static bool is_due(const struct trainer *t) {
    return t->state.step > 0 &&
           (t->state.step % t->setup->shapes.eval_every == 0 || t->state.step == t->setup->shapes.steps);
}

static bool is_validated(const struct running *r) {
    const struct run_progress *p = &r->progress;
    for (int64_t i = p->n_curve - 1; i >= 0 && p->curve[i].step == r->trainer.state.step; i--)
        if (p->curve[i].split == SPLIT_VAL) return true;
    return false;
}

static void report_progress(struct running *r, bool now) {
    double time = time_now_s();
    if (!r->hooks || !r->hooks->progress || (!now && time - r->last_progress < PROGRESS_EVERY)) return;
    const struct trainer *t = &r->trainer;
    const struct setup *s = t->setup;
    int64_t tokens_here = r->n_steps_here * running_step_tokens(s);
    const struct run_progress *p = &r->progress;
    const struct curve_point *latest = p->n_curve ? &p->curve[p->n_curve - 1] : NULL;
    bool macro = s->spec.task.shape.metric == METRIC_MACRO_ACC;
    struct progress progress = {.step = t->state.step,
                                .steps = s->shapes.steps,
                                .loss = t->state.loss,
                                .acc = !latest ? NAN
                                       : macro ? latest->macro_acc
                                               : latest->acc,
                                .tok_per_s = (double)tokens_here / (time - r->began),
                                .wall_s = running_wall_s(r)};
    r->hooks->progress(r->hooks->context, &progress);
    r->last_progress = time;
}

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
    r->stop_reason = run_status_names[r->status];
    t->state.step = step + 1; /* on a device more were queued, which changed nothing */
    trainer_set_state(t);
    if (tensor)
        snprintf(r->detail, sizeof r->detail, "step %" PRId64 ": loss %s, first value that is not finite in %s",
                 step + 1, loss_text, tensor);
    else
        snprintf(r->detail, sizeof r->detail,
                 "step %" PRId64 ": loss %s, the gradient's norm %s has no square in " REAL_NAME "; --clip bounds it",
                 step + 1, loss_text, norm);
    struct scores none = {loss, NAN, NAN, NAN, NAN, NAN, 0, 0};
    add_point(r, SPLIT_TRAIN, &none, "nan");
    return true;
}

/* After a step: why training ends here, or NULL. */
static const char *reason_to_stop(struct running *r, bool validated, double metric) {
    const struct config *c = &r->trainer.setup->spec.config;
    if (validated && metric >= c->stop_at) return "target";
    if (validated && c->patience && r->progress.stale >= c->patience) return "patience";
    return NULL;
}

/* Why a run ends that a signal stopped behind its last validation, or NULL: what reaches the target is the best. */
static const char *reason_before(struct running *r) {
    struct trainer *t = &r->trainer;
    bool validated = is_due(t) && is_validated(r);
    return reason_to_stop(r, validated, t->best_step == t->state.step ? trainer_metric(t, &t->best_val) : -INFINITY);
}

static enum status save(struct running *r, struct error *e) {
    r->progress.wall_s = running_wall_s(r);
    r->last_checkpoint = time_now_s();
    return running_written(r->hooks, checkpoint_write(&r->trainer, &r->progress, e));
}

/* Steps that are queued before the host looks: on a device several, at most as many as the last ones took a second
 * for, so that a signal is obeyed and a checkpoint saved in time. A log looks at each. */
static int64_t steps_at_once(const struct running *r) {
    int64_t most = trainer_sync_every(&r->trainer);
    if (most <= 1 || r->log.file || r->n_samples == 0) return 1;
    double fit = LOOK_EVERY_MS / (double)r->step_ms[(r->n_samples - 1) % STEP_SAMPLES];
    return fit >= (double)most ? most : fit > 1 ? (int64_t)fit : 1;
}

/* Steps up to the next moment at which something is looked at: at most the next validation. */
static enum status next_steps(struct running *r, struct error *e) {
    struct trainer *t = &r->trainer;
    const struct setup *s = t->setup;
    int64_t before = t->state.step, until = before + steps_at_once(r);
    int64_t validation = (before / s->shapes.eval_every + 1) * s->shapes.eval_every;
    if (until > validation) until = validation;
    if (until > s->shapes.steps) until = s->shapes.steps;
    double start = time_now_s();
    while (t->state.step < until) trainer_step(t);
    TRY(trainer_sync(t, e));
    r->step_ms[r->n_samples++ % STEP_SAMPLES] = (float)(1e3 * (time_now_s() - start) / (double)(until - before));
    r->n_steps_here += until - before;
    return step_log_add(&r->log, &t->state, e);
}

/* A checkpoint, from which the same command goes on. */
static enum status interrupted(struct running *r, const char *when, struct error *e) {
    TRY(save(r, e));
    return fail(e, (enum status)(128 + signal_received()),
                "stopped %sat step %" PRId64 " of %" PRId64 "; the same command goes on from there", when,
                r->trainer.state.step, r->trainer.setup->shapes.steps);
}

/* Steps until done, stopped or interrupted. A run that was interrupted during a validation begins with it. */
static enum status train_loop(struct running *r, struct error *e) {
    struct trainer *t = &r->trainer;
    const struct setup *s = t->setup;
    r->stop_reason = reason_before(r);
    while (!r->stop_reason && (t->state.step < s->shapes.steps || !is_validated(r))) {
        if (!is_due(t) || is_validated(r)) TRY(next_steps(r, e));
        if (diverged(r)) break;
        bool due = is_due(t);
        double metric = NAN;
        if (due && !validate(r, &metric)) return interrupted(r, "while validating ", e);
        report_progress(r, false);
        r->stop_reason = reason_to_stop(r, due, metric);
        if (signal_received() && !r->stop_reason && t->state.step < s->shapes.steps) return interrupted(r, "", e);
        if (s->spec.config.checkpoint_every > 0 && time_now_s() - r->last_checkpoint >= s->spec.config.checkpoint_every)
            TRY(save(r, e));
    }
    if (!r->stop_reason) r->stop_reason = s->shapes.steps < s->shapes.schedule_steps ? "budget" : "steps";
    return ST_OK;
}

/* The parameters of the last step change places with the best. */
static void exchange_best(struct trainer *t) {
    real *last = params_fetch(&t->params, t->params.value);
    for (int64_t i = 0; i < t->params.floats; i++) {
        real value = last[i];
        last[i] = t->best[i];
        t->best[i] = value;
    }
    params_store(&t->params, t->params.value);
}

/* The test set is looked at once, with the parameters that validation chose. */
static enum status final_test(struct running *r, struct error *e) {
    struct trainer *t = &r->trainer;
    if (r->status != RUN_OK) return ST_OK;
    exchange_best(t);
    if (trainer_evaluate(t, SPLIT_TEST, &r->test)) return ST_OK;
    exchange_best(t);
    return interrupted(r, "while testing ", e);
}

/* The record, unless a signal asks to stop before it is written. */
static enum status put_on_record(struct running *r, struct run *row, struct error *e) {
    enum status status = run_record_write(r, row, e);
    if (status <= 128) return status;
    exchange_best(&r->trainer);
    return interrupted(r, "while recording ", e);
}

/* --- from first to last ------------------------------------------------------------------------------------------- */

static void tell_device(const struct trainer *t) {
    const char *device = t->setup->spec.config.device;
    struct place_info info;
    char text[PLACE_NOTE];
    fprintf(stderr, "%s: the run takes %zu MB of device memory\n", device, t->device_bytes >> 20);
    if (place_describe(&t->place, &info, NULL) == ST_OK && place_code_note(&info, text))
        fprintf(stderr, "%s: %s\n", device, text);
}

/* A run that is done again begins at its first step, and its record stays until nothing more can be in the way. */
static enum status begin(struct running *r, struct setup *setup, const struct reuse *reuse, struct error *e) {
    struct run_progress *p = &r->progress;
    p->curve_capacity = 2 * (setup->shapes.steps / setup->shapes.eval_every) + 64;
    p->curve = calloc((size_t)p->curve_capacity, sizeof *p->curve);
    p->solved_step = -1;
    p->gained = -1;
    p->train_loss = NAN;
    if (!p->curve) return fail(e, ST_MEMORY, "no memory for a curve of %" PRId64 " points", p->curve_capacity);
    time_now_text(p->started, sizeof p->started);
    bool shared = r->hooks && r->hooks->create;
    TRY(shared ? r->hooks->create(r->hooks->context, &r->trainer, setup, e) : trainer_create(&r->trainer, setup, e));
    if (r->trainer.device_bytes && !setup->spec.config.quiet) tell_device(&r->trainer);
    bool resumed = false;
    if (!reuse->again) TRY(checkpoint_read(&r->trainer, p, &resumed, e));
    if (r->hooks && r->hooks->log_steps) TRY(step_log_open(&r->log, r->hooks->log_steps, r->trainer.state.step, e));
    TRY(reuse_release(setup, reuse, e));
    r->sitting_wall_s = resumed ? p->wall_s : 0;
    r->began = r->last_checkpoint = time_now_s();
    return ST_OK;
}

static enum status run_all(struct running *r, struct run *row, struct error *e) {
    TRY(train_loop(r, e));
    TRY(step_log_close(&r->log, e));
    report_progress(r, true);
    TRY(final_test(r, e));
    TRY(trainer_sync(&r->trainer, e));
    TRY(put_on_record(r, row, e));
    checkpoint_remove(r->trainer.setup);
    return ST_OK;
}

enum status train_run(struct setup *setup, const struct train_hooks *hooks, struct run *row, struct error *e) {
    char folder[RECORD_TEXT];
    snprintf(folder, sizeof folder, "%s/runs/%.2s", setup->spec.config.out, setup->id.run_id);
    TRY(running_written(hooks, make_folder(folder, e))); /* an unwritable output is said before training, not after */
    struct reuse reuse = reuse_find(setup, false);
    if (!reuse_wanted(&reuse)) {
        reuse_tell(reuse.other, 1);
        if (!reuse.failed) checkpoint_remove(setup);
        if (!hooks || !hooks->log_steps) return ST_OK;
        return fail(e, ST_USAGE,
                    "run %s is on record in %s, so no step is left for --log-steps; --out names another "
                    "folder",
                    setup->id.run_id, setup->spec.config.out);
    }
    TRY(running_written(hooks, folder_links_check(folder, e)));
    if (!reuse.again) TRY(checkpoint_admit(setup, e));
    snprintf(folder, sizeof folder, "%s/" WEIGHTS_FOLDER, setup->spec.config.out);
    if (setup->spec.config.keep_weights != KEEP_NONE) TRY(running_written(hooks, make_folder(folder, e)));
    if (setup->spec.config.threads) omp_set_num_threads((int)setup->spec.config.threads);
    struct running *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for a run");
    r->hooks = hooks;
    enum status status = begin(r, setup, &reuse, e);
    if (status == ST_OK) status = run_all(r, row, e);
    free(r->progress.curve);
    step_log_discard(&r->log);
    trainer_free(&r->trainer);
    free(r);
    return status;
}
