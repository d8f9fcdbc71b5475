/* run.c - a whole run: train, validate, keep the best, test it once, write the record. See run.h. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/run/test_split.h"
#include "harness/run/checkpoint.h"
#include "harness/run/reuse.h"
#include "harness/run/run.h"
#include "harness/run/signals.h"
#include "harness/run/step_log.h"
#include "harness/run/trainer.h"
#include "harness/run/weights.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/machine.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "harness/store/version.h"
#include "kernels/lib/gemm.h"

#define STEP_SAMPLES   512 /* latest step times kept for the medians */
#define PROGRESS_EVERY 0.2 /* seconds */
#define LOOK_EVERY_MS  1e3 /* of queued steps, on a device */

/* --- a run in progress -------------------------------------------------------------------------------------------- */

struct running {
    struct trainer trainer;
    struct run_progress progress;
    const struct train_hooks *hooks;
    double began, last_progress, last_checkpoint;
    double sitting_wall_s; /* wall time of earlier sittings, when this one began */
    float step_ms[STEP_SAMPLES];
    int64_t n_samples, n_steps_here;
    struct step_log log;
    const char *stop_reason;
    enum run_status status;
    char detail[RECORD_TEXT];
    struct scores test;
};

static double wall(const struct running *r) {
    return r->sitting_wall_s + time_now_s() - r->began;
}

/* Of a step: all positions of its batch, of every document of an example, padding included. */
static int64_t tokens_a_step(const struct setup *s) {
    return s->config.batch * task_documents(&s->task.shape) * s->task.shape.T;
}

static void add_point(struct running *r, enum split split, const struct scores *s, const char *event) {
    struct run_progress *p = &r->progress;
    if (p->n_curve == p->curve_capacity) return; /* cannot happen: sized for every validation */
    const struct setup *setup = r->trainer.setup;
    int64_t step = r->trainer.state.step, tokens = step * tokens_a_step(setup);
    double seconds = r->trainer.step_s;
    struct curve_point point = {.step = step,
                                .tokens = tokens,
                                .wall_s = wall(r),
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
    if (r->progress.solved_step < 0 && metric >= t->setup->task.shape.solved) r->progress.solved_step = t->state.step;
    bool gain = metric > r->progress.gained + t->setup->config.min_gain;
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
    return t->state.step > 0 && (t->state.step % t->setup->eval_every == 0 || t->state.step == t->setup->steps);
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
    int64_t tokens_here = r->n_steps_here * tokens_a_step(s);
    const struct run_progress *p = &r->progress;
    const struct curve_point *latest = p->n_curve ? &p->curve[p->n_curve - 1] : NULL;
    bool macro = s->task.shape.metric == METRIC_MACRO_ACC;
    struct progress progress = {.step = t->state.step,
                                .steps = s->steps,
                                .loss = t->state.loss,
                                .acc = !latest ? NAN
                                       : macro ? latest->macro_acc
                                               : latest->acc,
                                .tok_per_s = (double)tokens_here / (time - r->began),
                                .wall_s = wall(r)};
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
        snprintf(r->detail, sizeof r->detail, "step %" PRId64 ": loss %s, first value that is not finite in %s", step,
                 loss_text, tensor);
    else
        snprintf(r->detail, sizeof r->detail,
                 "step %" PRId64 ": loss %s, the gradient's norm %s has no square in " REAL_NAME "; --clip bounds it",
                 step, loss_text, norm);
    struct scores none = {loss, NAN, NAN, NAN, NAN, NAN, 0, 0};
    add_point(r, SPLIT_TRAIN, &none, "nan");
    return true;
}

/* After a step: why training ends here, or NULL. */
static const char *reason_to_stop(struct running *r, bool validated, double metric) {
    const struct config *c = &r->trainer.setup->config;
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

/* What came of writing into OUT. */
static enum status written(const struct train_hooks *hooks, enum status status) {
    if (status == ST_FAIL && hooks && hooks->unwritten) *hooks->unwritten = true;
    return status;
}

static enum status save(struct running *r, struct error *e) {
    r->progress.wall_s = wall(r);
    r->last_checkpoint = time_now_s();
    return written(r->hooks, checkpoint_write(&r->trainer, &r->progress, e));
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
    int64_t validation = (before / s->eval_every + 1) * s->eval_every;
    if (until > validation) until = validation;
    if (until > s->steps) until = s->steps;
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
                r->trainer.state.step, r->trainer.setup->steps);
}

/* Steps until done, stopped or interrupted. A run that was interrupted during a validation begins with it. */
static enum status train_loop(struct running *r, struct error *e) {
    struct trainer *t = &r->trainer;
    const struct setup *s = t->setup;
    r->stop_reason = reason_before(r);
    while (!r->stop_reason && (t->state.step < s->steps || !is_validated(r))) {
        if (!is_due(t) || is_validated(r)) TRY(next_steps(r, e));
        if (diverged(r)) break;
        bool due = is_due(t);
        double metric = NAN;
        if (due && !validate(r, &metric)) return interrupted(r, "while validating ", e);
        report_progress(r, false);
        r->stop_reason = reason_to_stop(r, due, metric);
        if (signal_received() && !r->stop_reason && t->state.step < s->steps) return interrupted(r, "", e);
        if (s->config.checkpoint_every > 0 && time_now_s() - r->last_checkpoint >= s->config.checkpoint_every)
            TRY(save(r, e));
    }
    if (!r->stop_reason) r->stop_reason = s->steps < s->schedule_steps ? "budget" : "steps";
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

/* --- the record --------------------------------------------------------------------------------------------------- */

static int compare_floats(const void *a, const void *b) {
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

static double quantile(const float *sorted, int64_t n, double q) {
    return n ? (double)sorted[(int64_t)(q * (double)(n - 1) + 0.5)] : NAN;
}

static void fill_speed(struct running *r, struct run *row) {
    const struct setup *s = r->trainer.setup;
    int64_t n = r->n_samples < STEP_SAMPLES ? r->n_samples : STEP_SAMPLES;
    float deviations[STEP_SAMPLES] = {0};
    qsort(r->step_ms, (size_t)n, sizeof *r->step_ms, compare_floats);
    row->step_ms_med = quantile(r->step_ms, n, 0.5);
    row->step_ms_p95 = quantile(r->step_ms, n, 0.95);
    for (int64_t i = 0; i < n; i++) deviations[i] = fabsf(r->step_ms[i] - (float)row->step_ms_med);
    qsort(deviations, (size_t)n, sizeof *deviations, compare_floats);
    row->step_ms_mad = quantile(deviations, n, 0.5);
    row->flop_step = graphs_step_flops(&r->trainer.train, s);
    if (n) {
        row->tok_per_s = (double)tokens_a_step(s) / (row->step_ms_med * 1e-3);
        row->tflops = row->flop_step / (row->step_ms_med * 1e-3) * 1e-12;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    bool shared = r->hooks && r->hooks->create; /* a process of several runs tells nothing of one */
    if (!shared) row->peak_host_bytes = (int64_t)usage.ru_maxrss * 1024;
    if (r->trainer.device_bytes) row->peak_dev_bytes = (int64_t)r->trainer.device_bytes;
    row->data_s = r->trainer.data_s;
    row->train_s = r->trainer.step_s;
    row->eval_s = r->trainer.eval_s;
    row->wall_s = wall(r);
}

/* The model's integer option of that flag, or -1. */
static int64_t model_size(const struct setup *s, enum option_flag flag) {
    for (const struct option *o = s->model.model->options; o->name; o++)
        if (o->type == OPT_INT && (o->flags & flag)) return *(const int64_t *)(s->model.inst + o->offset);
    return -1;
}

static enum status fill_test_split(const struct setup *s, struct run *row, struct error *e) {
    struct test_split test;
    TRY(test_split_read(&s->task, &test, e));
    memcpy(row->split_hash, test.hash, sizeof row->split_hash);
    row->seq_chance = test.seq_chance;
    return ST_OK;
}

static void fill_setup(const struct setup *s, struct run *row) {
    const struct config *c = &s->config;
    const struct task_shape *shape = &s->task.shape;
    snprintf(row->run_id, sizeof row->run_id, "%s", s->run_id);
    snprintf(row->cell_id, sizeof row->cell_id, "%s", s->cell_id);
    snprintf(row->suite, sizeof row->suite, "%s", s->task.task->suite);
    snprintf(row->task, sizeof row->task, "%s", s->task.name);
    snprintf(row->model, sizeof row->model, "%s", s->model.model->name);
    snprintf(row->layers, sizeof row->layers, "%s", s->model_label);
    row->task_version = s->task.task->version;
    row->seed = row->data_seed = (uint64_t)c->seed;
    row->n_train = shape->examples[SPLIT_TRAIN];
    row->n_val = shape->examples[SPLIT_VAL];
    row->n_test = shape->examples[SPLIT_TEST];
    row->vocab = shape->vocab_out;
    row->len_train = shape->T;
    row->len_test = task_length(shape, SPLIT_TEST);
    row->d_model = c->net.dim;
    row->n_layers = c->net.layers;
    row->block = model_size(s, OPT_BLOCKS);
    row->order = model_size(s, OPT_ORDER);
    row->state_floats = s->model.model->state_floats(s->model.inst, &s->model.dims) * c->net.layers *
                        (c->net.bidirectional && s->model.model->causal ? 2 : 1);
    snprintf(row->optimizer, sizeof row->optimizer, "adamw");
    row->lr = c->lr;
    option_format_value(option_find(config_options, "schedule"), c, row->schedule, sizeof row->schedule);
    row->warmup_steps = c->warmup;
    row->weight_decay = c->decay;
    row->beta1 = c->beta1;
    row->beta2 = c->beta2;
    row->grad_clip = c->clip;
    row->batch = c->batch;
    row->max_steps = s->schedule_steps;
    option_format_value(option_find(config_options, "precision"), c, row->dtype, sizeof row->dtype);
    snprintf(row->profile, sizeof row->profile, "%.31s", c->profile);
    option_format_value(option_find(backbone_options, "backbone"), c, row->backbone, sizeof row->backbone);
    option_format_value(option_find(backbone_options, "mlp"), c, row->mlp, sizeof row->mlp);
    option_format_value(option_find(backbone_options, "norm"), c, row->norm, sizeof row->norm);
    row->metric = shape->metric;
    row->chance = shape->chance;
}

/* Those of embedding and head: of the symbols, not of the net between them. */
static int64_t outer_params(const struct params *p) {
    int64_t n = 0;
    for (int i = 0; i < p->n; i++) {
        const struct param *q = &p->list[i];
        bool outer = strcmp(q->name, "embedding") == 0 || strncmp(q->name, "head.", 5) == 0;
        if (outer && q->spec.group != PARAM_CONST) n += q->count;
    }
    return n;
}

static void fill_results(const struct running *r, struct run *row) {
    const struct trainer *t = &r->trainer;
    row->params = params_trained(&t->params);
    row->params_nonemb = row->params - outer_params(&t->params);
    row->status = r->status;
    snprintf(row->status_detail, sizeof row->status_detail, "%s", r->detail);
    snprintf(row->stop_reason, sizeof row->stop_reason, "%s", r->stop_reason);
    row->steps = t->state.step;
    row->tokens = t->state.step * tokens_a_step(t->setup);
    row->best_step = t->best_step;
    row->solved_step = r->progress.solved_step;
    row->train_loss = r->progress.train_loss;
    if (t->best_step >= 0) {
        row->val_loss = t->best_val.loss;
        row->val_acc = t->best_val.acc;
        row->val_metric = trainer_metric(t, &t->best_val);
    }
    row->solved = 0;
    if (r->status != RUN_OK) return;
    row->test_loss = r->test.loss;
    row->test_acc = r->test.acc;
    row->test_macro_acc = r->test.macro_acc;
    row->test_seq_acc = r->test.seq_acc;
    row->test_last_acc = r->test.last_acc;
    row->test_nonfinite = r->test.nonfinite;
    row->metric_value = trainer_metric(t, &r->test);
    row->solved = row->metric_value >= t->setup->task.shape.solved;
}

/* place NULL: the run never got one. */
static void fill_device(const struct setup *s, const struct place *place, const char *cpu, struct run *row) {
    struct place_info info;
    enum device device;
    int index;
    bool cuda = place_parse(s->config.device, &device, &index, NULL) == ST_OK && device == DEVICE_CUDA;
    snprintf(row->backend, sizeof row->backend, cuda ? "cuda" : "cpu");
    snprintf(row->device, sizeof row->device, "%s", cuda ? s->config.device : cpu);
    if (!cuda || !place || place_describe(place, &info, NULL) != ST_OK) return;
    snprintf(row->device, sizeof row->device, "%s", info.name);
    snprintf(row->driver, sizeof row->driver, "%s", info.driver);
}

static void fill_environment(const struct setup *s, const struct place *place, struct run *row) {
    struct machine m;
    machine_read(&m);
    const struct build_info *b = build_info();
    fill_device(s, place, m.cpu, row);
    snprintf(row->machine_id, sizeof row->machine_id, "%s", m.id);
    snprintf(row->env_epoch, sizeof row->env_epoch, "%s", m.env_epoch);
    row->threads = omp_get_max_threads();
    row->deterministic = strcmp(row->backend, "cpu") == 0; /* of a device nobody has promised it */
    snprintf(row->version, sizeof row->version, "%s", b->version);
    snprintf(row->numerics, sizeof row->numerics, "%s", s->numerics);
    snprintf(row->git_commit, sizeof row->git_commit, "%s", b->commit);
    snprintf(row->source_id, sizeof row->source_id, "%s", b->sources);
    row->git_dirty = b->dirty;
    snprintf(row->build_id, sizeof row->build_id, "%s", b->flags);
    snprintf(row->compiler, sizeof row->compiler, "%s", b->compiler);
    time_now_text(row->finished, sizeof row->finished);
    row->attempt = record_attempt(s->config.out, s->run_id);
}

static struct eval_point evaluation(const struct running *r, const struct scores *s, int64_t length) {
    return (struct eval_point){.step = r->trainer.best_step,
                               .split = SPLIT_TEST,
                               .length = length,
                               .n = s->sequences,
                               .loss = s->loss,
                               .acc = s->acc,
                               .macro_acc = s->macro_acc,
                               .seq_acc = s->seq_acc,
                               .last_acc = s->last_acc};
}

/* The test split, and where its sequences differ in length each length by itself (difficulty "length"). The caller's to
 * free; NULL without memory. */
static struct eval_point *list_evaluations(const struct running *r, int64_t *n) {
    const struct metrics *m = &r->trainer.metrics; /* the test split was evaluated last */
    struct eval_point *list = calloc((size_t)m->longest + 2, sizeof *list);
    if (!list) return NULL;
    list[0] = evaluation(r, &r->test, task_length(&r->trainer.setup->task.shape, SPLIT_TEST));
    *n = 1;
    for (int64_t length = 0; length <= m->longest; length++) {
        struct scores s = metrics_of_length(m, length);
        if (s.sequences == 0 || s.sequences == r->test.sequences) continue;
        list[*n] = evaluation(r, &s, length);
        snprintf(list[(*n)++].difficulty, sizeof list->difficulty, "length");
    }
    return list;
}

/* "embedding_cpu linear_cpu ... adamw_cpu, oneDNN AVX512_CORE": what computed the run, and its matrix products. */
static enum status fill_kernels(const struct running *r, struct run *row, struct error *e) {
    struct graph_list graphs = trainer_graphs(&r->trainer);
    bool cuda = r->trainer.place.device != DEVICE_CPU;
    char products[64];
    int n = snprintf(products, sizeof products, ", %s", cuda ? "cuBLAS" : gemm_library());
    TRY(graphs_kernels(&graphs, row->kernel, sizeof row->kernel - (size_t)n, e));
    strcat(row->kernel, products);
    return ST_OK;
}

/* The record makes the run; the weights get their names when it is known that it is this process's. */
static enum status write_files(const struct running *r, struct run_record *record, struct error *e) {
    const struct config *c = &r->trainer.setup->config;
    const real *last = c->keep_weights == KEEP_ALL ? r->trainer.best : NULL;
    struct weights_kept kept = {.best = ""};
    bool won = false;
    if (c->keep_weights != KEEP_NONE && r->status == RUN_OK)
        TRY(weights_write(&r->trainer.params, last, c->out, &record->run, &kept, e));
    enum status status = record_write(c->out, record, &won, e);
    enum status settled = weights_settle(&kept, won, status == ST_OK ? e : NULL);
    return status == ST_OK ? settled : status;
}

static enum status write_record(struct running *r, struct run *row, struct error *e) {
    struct run_record *record = calloc(1, sizeof *record);
    if (!record) return fail(e, ST_MEMORY, "no memory for the run record");
    const struct setup *s = r->trainer.setup;
    record_init(record);
    fill_setup(s, &record->run);
    fill_results(r, &record->run);
    fill_speed(r, &record->run);
    fill_environment(s, &r->trainer.place, &record->run);
    memcpy(record->run.started, r->progress.started, sizeof record->run.started);
    record->run.resumed = r->progress.resumed;
    record->run.mixed_builds = r->progress.mixed_builds;
    snprintf(record->config, sizeof record->config, "%s", s->config_text);
    snprintf(record->identity, sizeof record->identity, "%s", s->identity);
    record->curve = r->progress.curve;
    record->n_curve = r->progress.n_curve;
    if (r->status == RUN_OK && !(record->evals = list_evaluations(r, &record->n_evals))) {
        free(record);
        return fail(e, ST_MEMORY, "no memory for the evaluations of the run");
    }
    enum status status = fill_test_split(s, &record->run, e);
    if (status == ST_OK) status = fill_kernels(r, &record->run, e);
    if (status == ST_OK) status = written(r->hooks, write_files(r, record, e));
    if (row) *row = record->run;
    free(record->evals);
    free(record);
    return status;
}

enum status record_failure(const struct setup *s, enum run_status status, const char *detail, const char *started,
                           int threads, struct error *e) {
    struct run_record *record = calloc(1, sizeof *record);
    if (!record) return fail(e, ST_MEMORY, "no memory for the run record");
    record_init(record);
    fill_setup(s, &record->run);
    fill_environment(s, NULL, &record->run);
    record->run.threads = threads;
    record->run.status = status;
    record->run.solved = 0;
    snprintf(record->run.status_detail, sizeof record->run.status_detail, "%s", detail);
    snprintf(record->run.stop_reason, sizeof record->run.stop_reason, "%s", run_status_names[status]);
    snprintf(record->run.started, sizeof record->run.started, "%s", started);
    snprintf(record->config, sizeof record->config, "%s", s->config_text);
    snprintf(record->identity, sizeof record->identity, "%s", s->identity);
    enum status put = fill_test_split(s, &record->run, e);
    if (put == ST_OK) put = record_write(s->config.out, record, NULL, e);
    free(record);
    return put;
}

/* --- from first to last ------------------------------------------------------------------------------------------- */

/* A run that is done again begins at its first step, and its record stays until nothing more can be in the way. */
static enum status begin(struct running *r, struct setup *setup, const struct reuse *reuse, struct error *e) {
    struct run_progress *p = &r->progress;
    p->curve_capacity = 2 * (setup->steps / setup->eval_every) + 64;
    p->curve = calloc((size_t)p->curve_capacity, sizeof *p->curve);
    p->solved_step = -1;
    p->gained = -1;
    p->train_loss = NAN;
    if (!p->curve) return fail(e, ST_MEMORY, "no memory for a curve of %" PRId64 " points", p->curve_capacity);
    time_now_text(p->started, sizeof p->started);
    bool shared = r->hooks && r->hooks->create;
    TRY(shared ? r->hooks->create(r->hooks->context, &r->trainer, setup, e) : trainer_create(&r->trainer, setup, e));
    if (r->trainer.device_bytes && !setup->config.quiet)
        fprintf(stderr, "%s: the run takes %zu MB of device memory\n", setup->config.device,
                r->trainer.device_bytes >> 20);
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
    TRY(write_record(r, row, e));
    checkpoint_remove(r->trainer.setup);
    return ST_OK;
}

enum status train_run(struct setup *setup, const struct train_hooks *hooks, struct run *row, struct error *e) {
    char folder[RECORD_TEXT];
    snprintf(folder, sizeof folder, "%s/runs/%.2s", setup->config.out, setup->run_id);
    TRY(written(hooks, make_folder(folder, e))); /* an unwritable output is said before training, not after */
    struct reuse reuse = reuse_find(setup, false);
    if (!reuse_wanted(&reuse)) {
        reuse_tell(reuse.other, 1);
        if (!reuse.failed) checkpoint_remove(setup);
        if (!hooks || !hooks->log_steps) return ST_OK;
        return fail(e, ST_USAGE,
                    "run %s is on record in %s, so no step is left for --log-steps; --out names another "
                    "folder",
                    setup->run_id, setup->config.out);
    }
    if (!reuse.again) TRY(checkpoint_admit(setup, e));
    snprintf(folder, sizeof folder, "%s/" WEIGHTS_FOLDER, setup->config.out);
    if (setup->config.keep_weights != KEEP_NONE) TRY(written(hooks, make_folder(folder, e)));
    if (setup->config.threads) omp_set_num_threads((int)setup->config.threads);
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
