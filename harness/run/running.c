/* running.c - the outputs of a run: during training the points of its curve, progress and the log of steps; at its end
 * the record with setup, results, speed and surroundings. See running.h. */
#include "harness/run/running.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/run/products.h"
#include "harness/run/weights.h"
#include "harness/store/clock.h"
#include "harness/store/machine.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "harness/store/version.h"

#define PROGRESS_EVERY 0.2 /* seconds */
#define POSITIONS_MOST 64  /* most points of the accuracy by position */
#define PRODUCTS_ROOM  64  /* bytes of the record's kernels, at least, for what computed the products */
#define LOG_HEADER     "step,loss,grad_norm,lr\n"

double running_wall_s(const struct running *r) {
    return r->sitting_wall_s + time_now_s() - r->began;
}

/* Counts the tokens of a step: all positions of all documents in its batch, padding included. */
static int64_t step_tokens(const struct spec *s) {
    return s->config.batch * task_documents(&s->task.shape) * s->task.shape.T;
}

enum status running_written(const struct train_hooks *hooks, enum status status) {
    if (status == ST_FAIL && hooks && hooks->unwritten) *hooks->unwritten = true;
    return status;
}

void running_add_point(struct running *r, enum split split, int64_t length, const struct scores *s, const char *event) {
    const struct trainer *t = &r->trainer;
    struct run_progress *p = &r->progress;
    if (p->n_curve == p->curve_capacity) return; /* cannot happen: the curve has room for every validation */
    int64_t tokens = t->state.step * step_tokens(&t->setup->spec);
    struct curve_point point = {.step = t->state.step,
                                .tokens = tokens,
                                .wall_s = running_wall_s(r),
                                .split = split,
                                .length = length,
                                .loss = s->loss,
                                .acc = s->acc,
                                .macro_acc = s->macro_acc,
                                .seq_acc = s->seq_acc,
                                .last_acc = s->last_acc,
                                .lr = t->state.lr,
                                .grad_norm = t->state.grad_norm,
                                .tok_per_s = t->step_s > 0 ? (double)tokens / t->step_s : NAN};
    snprintf(point.event, sizeof point.event, "%s", event);
    p->curve[p->n_curve++] = point;
}

void running_add_test(struct running *r, const struct scores *all) {
    const struct metrics *m = &r->trainer.metrics;
    int64_t lengths[TASK_TEST_LENGTHS];
    int n = 0;
    for (int64_t length = 0; length <= m->longest; length++) {
        if (metrics_of_length(m, length).sequences == 0) continue;
        if (n < TASK_TEST_LENGTHS) lengths[n] = length;
        n++;
    }
    bool each = n > 1 && n <= TASK_TEST_LENGTHS;
    for (int i = 0; i < n && each; i++) {
        struct scores s = metrics_of_length(m, lengths[i]);
        running_add_point(r, SPLIT_TEST, lengths[i], &s, "eval");
    }
    if (!each) running_add_point(r, SPLIT_TEST, 0, all, "eval");
}

void running_report(struct running *r, bool now) {
    double time = time_now_s();
    if (!r->hooks || !r->hooks->progress || (!now && time - r->last_progress < PROGRESS_EVERY)) return;
    const struct trainer *t = &r->trainer;
    const struct run_progress *p = &r->progress;
    const struct curve_point *latest = p->n_curve ? &p->curve[p->n_curve - 1] : NULL;
    bool macro = t->setup->spec.task.shape.metric == METRIC_MACRO_ACC;
    int64_t tokens_here = r->n_steps_here * step_tokens(&t->setup->spec);
    struct progress progress = {.step = t->state.step,
                                .steps = t->setup->shapes.steps,
                                .loss = t->state.loss,
                                .acc = !latest ? NAN
                                       : macro ? latest->macro_acc
                                               : latest->acc,
                                .tok_per_s = (double)tokens_here / (time - r->began),
                                .wall_s = running_wall_s(r)};
    r->hooks->progress(r->hooks->context, &progress);
    r->last_progress = time;
}

/* --- the log of steps --------------------------------------------------------------------------------------------- */

static enum status cannot_write(const struct step_log *log, struct error *e) {
    return fail(e, ST_FAIL, "--log-steps: cannot write %s: %s", log->path, strerror(errno));
}

static enum status lines_missing(const struct step_log *log, int64_t done, struct error *e) {
    return fail(e, ST_DATA,
                "--log-steps: the run goes on after step %" PRId64 " of its checkpoint, and %s does not hold the "
                "steps up to there; go on without a log, or begin anew in another folder (--out)",
                done, log->path);
}

enum status step_log_open(struct step_log *log, const char *path, int64_t done, struct error *e) {
    char line[256];
    int64_t step, kept = 0;
    log->path = path;
    log->file = fopen(path, done ? "r+e" : "we");
    if (!log->file && done && errno == ENOENT) return lines_missing(log, done, e);
    if (!log->file) return cannot_write(log, e);
    setvbuf(log->file, log->buffer, _IOLBF, sizeof log->buffer);
    if (!done) return fputs(LOG_HEADER, log->file) >= 0 ? ST_OK : cannot_write(log, e);
    bool header = fgets(line, sizeof line, log->file) && !strcmp(line, LOG_HEADER);
    while (header && kept < done && fgets(line, sizeof line, log->file) && strchr(line, '\n') &&
           sscanf(line, "%" SCNd64 ",", &step) == 1 && step == kept + 1)
        kept++;
    if (kept < done || !header) return lines_missing(log, done, e);
    long end = ftell(log->file);
    bool cut = end >= 0 && fseek(log->file, end, SEEK_SET) == 0 && ftruncate(fileno(log->file), end) == 0;
    return cut ? ST_OK : cannot_write(log, e);
}

enum status step_log_add(struct step_log *log, const struct step_state *state, struct error *e) {
    char loss[40], norm[40], rate[40];
    if (!log->file) return ST_OK;
    format_double(state->loss, loss, sizeof loss);
    format_double(state->grad_norm, norm, sizeof norm);
    format_double(state->lr, rate, sizeof rate);
    int n = fprintf(log->file, "%" PRId64 ",%s,%s,%s\n", state->step, loss, norm, rate);
    return n > 0 ? ST_OK : cannot_write(log, e);
}

enum status step_log_close(struct step_log *log, struct error *e) {
    FILE *file = log->file;
    log->file = NULL;
    return !file || fclose(file) == 0 ? ST_OK : cannot_write(log, e);
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
    row->flop_step = graphs_step_flops(&r->trainer.train);
    if (n) {
        row->tok_per_s = (double)step_tokens(&s->spec) / (row->step_ms_med * 1e-3);
        row->tflops = row->flop_step / (row->step_ms_med * 1e-3) * 1e-12;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    /* if several runs share the process, they share its peak memory */
    bool shared = r->hooks && r->hooks->create;
    if (!shared) row->peak_host_bytes = (int64_t)usage.ru_maxrss * 1024;
    if (r->trainer.device_bytes) row->peak_dev_bytes = (int64_t)r->trainer.device_bytes;
    row->data_s = r->trainer.data_s;
    row->train_s = r->trainer.step_s;
    row->eval_s = r->trainer.eval_s;
    row->wall_s = running_wall_s(r);
}

/* Reads the model's integer option that has the flag; -1: the model has no such option. */
static int64_t model_size(const struct shapes *s, enum option_flag flag) {
    for (const struct option *o = s->model.model->options; o->name; o++)
        if (o->type == OPT_INT && (o->flags & flag)) return *(const int64_t *)(s->model.inst + o->offset);
    return -1;
}

static void fill_test_split(const struct test_split *test, struct run *row) {
    memcpy(row->split_hash, test->hash, sizeof row->split_hash);
    row->seq_chance = test->seq_chance;
}

static void fill_setup(const struct setup *s, struct run *row) {
    const struct config *c = &s->spec.config;
    const struct task_shape *shape = &s->spec.task.shape;
    snprintf(row->run_id, sizeof row->run_id, "%s", s->id.run_id);
    snprintf(row->cell_id, sizeof row->cell_id, "%s", s->id.cell_id);
    snprintf(row->suite, sizeof row->suite, "%s", s->spec.task.task->suite);
    snprintf(row->task, sizeof row->task, "%s", s->spec.task.name);
    snprintf(row->model, sizeof row->model, "%s", s->shapes.model.model->name);
    snprintf(row->layers, sizeof row->layers, "%s", s->id.model_label);
    row->task_version = task_version(&s->spec.task);
    row->seed = row->data_seed = (uint64_t)c->seed;
    row->n_train = shape->examples[SPLIT_TRAIN];
    row->n_val = shape->examples[SPLIT_VAL];
    row->n_test = shape->examples[SPLIT_TEST];
    row->vocab = shape->vocab_out;
    row->len_train = shape->T;
    row->len_test = task_length(shape, SPLIT_TEST);
    row->d_model = c->net.dim;
    row->n_layers = c->net.layers;
    row->block = model_size(&s->shapes, OPT_BLOCKS);
    row->order = model_size(&s->shapes, OPT_ORDER);
    row->state_floats = net_state_floats(&c->net, &s->shapes.model);
    snprintf(row->optimizer, sizeof row->optimizer, "adamw");
    row->lr = c->lr;
    option_format_value(option_find(config_options, "schedule"), c, row->schedule, sizeof row->schedule);
    row->warmup_steps = c->warmup;
    row->weight_decay = c->decay;
    row->beta1 = c->beta1;
    row->beta2 = c->beta2;
    row->grad_clip = c->clip;
    row->batch = c->batch;
    row->max_steps = s->shapes.schedule_steps;
    option_format_value(option_find(config_options, "precision"), c, row->dtype, sizeof row->dtype);
    snprintf(row->profile, sizeof row->profile, "%.31s", c->profile);
    option_format_value(option_find(backbone_options, "backbone"), c, row->backbone, sizeof row->backbone);
    const struct backbone net = backbone_resolved(&c->net, s->shapes.model.model);
    option_format_value(option_find(backbone_options, "mlp"), &net, row->mlp, sizeof row->mlp);
    option_format_value(option_find(backbone_options, "norm"), &net, row->norm, sizeof row->norm);
    if (!backbone_takes_parts(&net)) snprintf(row->norm, sizeof row->norm, "none");
    row->metric = shape->metric;
    row->chance = shape->chance;
}

static void fill_results(const struct running *r, struct run *row) {
    const struct trainer *t = &r->trainer;
    row->params = params_trained(&t->params);
    row->params_nonemb = row->params;
    for (int i = 0; i < t->params.n; i++) { /* without embedding and head, which grow with the vocabulary */
        const struct param *q = &t->params.list[i];
        bool outer = strcmp(q->name, "embedding") == 0 || strncmp(q->name, "head.", 5) == 0;
        if (outer && q->spec.group != PARAM_CONST) row->params_nonemb -= q->count;
    }
    row->status = r->status;
    snprintf(row->status_detail, sizeof row->status_detail, "%s", r->detail);
    snprintf(row->stop_reason, sizeof row->stop_reason, "%s", r->stop_reason);
    row->steps = t->state.step;
    row->tokens = t->state.step * step_tokens(&t->setup->spec);
    if (t->place.device != DEVICE_CPU) {
        row->walked = t->steps_queued > 1 ? !t->capture : -1;
        row->beside = r->hooks && r->hooks->beside ? r->hooks->beside(r->hooks->context) : 0;
    }
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
    row->solved = row->metric_value >= t->setup->spec.task.shape.solved;
}

/* Sets the columns about device, machine and build. place NULL: the run never got a place on its device. */
static void fill_environment(const struct setup *s, const struct place *place, struct run *row) {
    const struct build_info *b = build_info();
    const char *asked = s->spec.config.device;
    struct machine m;
    struct place_info info;
    enum device device;
    int index;
    machine_read(&m);
    bool cuda = place_parse(asked, &device, &index, NULL) == ST_OK && device == DEVICE_CUDA;
    snprintf(row->backend, sizeof row->backend, cuda ? "cuda" : "cpu");
    snprintf(row->device, sizeof row->device, "%s", cuda ? asked : m.cpu);
    if (cuda && place && place_describe(place, &info, NULL) == ST_OK) {
        snprintf(row->device, sizeof row->device, "%s", info.name);
        snprintf(row->driver, sizeof row->driver, "%s", info.driver);
    }
    snprintf(row->machine_id, sizeof row->machine_id, "%s", m.id);
    snprintf(row->env_epoch, sizeof row->env_epoch, "%s", m.env_epoch);
    row->threads = omp_get_max_threads();
    row->deterministic = strcmp(row->backend, "cpu") == 0; /* bits are promised only on the CPU */
    snprintf(row->version, sizeof row->version, "%s", b->version);
    snprintf(row->numerics, sizeof row->numerics, "%s", s->id.numerics);
    snprintf(row->git_commit, sizeof row->git_commit, "%s", b->commit);
    snprintf(row->source_id, sizeof row->source_id, "%s", b->sources);
    row->git_dirty = b->dirty;
    snprintf(row->build_id, sizeof row->build_id, "%s", b->flags);
    snprintf(row->compiler, sizeof row->compiler, "%s", b->compiler);
    time_now_text(row->finished, sizeof row->finished);
    row->attempt = record_attempt(s->spec.config.out, s->id.run_id);
}

static struct eval_point evaluation(const struct trainer *t, const struct scores *s, int64_t length) {
    return (struct eval_point){.step = t->best_step,
                               .split = SPLIT_TEST,
                               .length = length,
                               .n = s->sequences,
                               .loss = s->loss,
                               .acc = s->acc,
                               .macro_acc = s->macro_acc,
                               .seq_acc = s->seq_acc,
                               .last_acc = s->last_acc};
}

struct eval_point *trainer_list_evaluations(const struct trainer *t, const struct scores *test, int64_t *n) {
    const struct metrics *m = &t->metrics; /* the test split was evaluated last */
    struct eval_point *list = calloc((size_t)m->longest + 2 + POSITIONS_MOST, sizeof *list);
    if (!list) return NULL;
    list[0] = evaluation(t, test, task_length(&t->setup->spec.task.shape, SPLIT_TEST));
    *n = 1;
    for (int64_t length = 0; length <= m->longest; length++) {
        struct scores s = metrics_of_length(m, length);
        if (s.sequences == 0 || s.sequences == test->sequences) continue;
        list[*n] = evaluation(t, &s, length);
        snprintf(list[(*n)++].difficulty, sizeof list->difficulty, EVAL_BY_LENGTH);
    }
    int64_t T = list[0].length, width = (T + POSITIONS_MOST - 1) / POSITIONS_MOST;
    for (int64_t first = 0; first < T && test->scored > test->sequences; first += width) {
        int64_t end = first + width < T ? first + width : T;
        struct scores s = metrics_of_positions(m, first, end);
        if (s.scored == 0) continue;
        list[*n] = evaluation(t, &s, end);
        snprintf(list[(*n)++].difficulty, sizeof list->difficulty, EVAL_BY_POSITION);
    }
    return list;
}

/* Names the kernels of the run and what computed its matrix products, such as "embedding_cpu ... adamw_cpu, oneDNN
 * AVX512_CORE". */
static enum status fill_kernels(const struct running *r, struct run *row, struct error *e) {
    struct graph_list graphs = trainer_graphs(&r->trainer);
    TRY(graphs_kernels(&graphs, row->kernel, sizeof row->kernel - PRODUCTS_ROOM, e));
    strcat(row->kernel, ", ");
    size_t n = strlen(row->kernel);
    products_name(&r->trainer.place, row->kernel + n, sizeof row->kernel - n);
    return ST_OK;
}

/* Writes weights and record. The weights get their names only after this process's record has been accepted. */
static enum status write_files(const struct running *r, struct run_record *record, struct error *e) {
    const struct config *c = &r->trainer.setup->spec.config;
    const real *last = c->keep_weights == KEEP_ALL ? r->trainer.best : NULL;
    struct weights_kept kept = {.best = ""};
    bool won = false;
    if (c->keep_weights != KEEP_NONE && r->status == RUN_OK)
        TRY(weights_write(&r->trainer.params, last, c->out, &record->run, &kept, e));
    enum status status = record_write(c->out, record, &won, e);
    enum status settled = weights_settle(&kept, won, status == ST_OK ? e : NULL);
    return status == ST_OK ? settled : status;
}

/* Makes a record with what is known before training, and with facts about machine and build. place NULL: the run never
 * got a place. The caller frees the record; NULL: no memory. */
static struct run_record *begin_record(const struct setup *s, const struct place *place, const char *started,
                                       struct error *e) {
    struct run_record *record = calloc(1, sizeof *record);
    if (!record) {
        fail(e, ST_MEMORY, "no memory for the run record");
        return NULL;
    }
    record_init(record);
    fill_setup(s, &record->run);
    fill_environment(s, place, &record->run);
    snprintf(record->run.started, sizeof record->run.started, "%s", started);
    snprintf(record->config, sizeof record->config, "%s", s->id.config_text);
    snprintf(record->identity, sizeof record->identity, "%s", s->id.text);
    return record;
}

enum status run_record_write(struct running *r, struct run *row, struct error *e) {
    struct run_record *record = begin_record(r->trainer.setup, &r->trainer.place, r->progress.started, e);
    if (!record) return e->status;
    fill_results(r, &record->run);
    fill_speed(r, &record->run);
    record->run.resumed = r->progress.resumed;
    record->run.mixed_builds = r->progress.mixed_builds || !products_are(&r->trainer.place, r->progress.products);
    record->curve = r->progress.curve;
    record->n_curve = r->progress.n_curve;
    enum status status = ST_OK;
    if (r->status == RUN_OK && !(record->evals = trainer_list_evaluations(&r->trainer, &r->test, &record->n_evals)))
        status = fail(e, ST_MEMORY, "no memory for the evaluations of the run");
    struct test_split test; /* a signal does not stop this: a run that ended in NaN has no state to save */
    if (status == ST_OK) status = split_store_hash(&r->trainer.test, r->status == RUN_OK, &test, e);
    if (status == ST_OK) fill_test_split(&test, &record->run);
    if (status == ST_OK) status = fill_kernels(r, &record->run, e);
    if (status == ST_OK) status = running_written(r->hooks, write_files(r, record, e));
    if (row) *row = record->run;
    free(record->evals);
    free(record);
    return status;
}

enum status record_failure(const struct setup *s, enum run_status status, const char *detail, const char *started,
                           int threads, struct error *e) {
    struct run_record *record = begin_record(s, NULL, started, e);
    struct test_split test;
    if (!record) return e->status;
    record->run.threads = threads;
    record->run.status = status;
    record->run.solved = 0;
    snprintf(record->run.status_detail, sizeof record->run.status_detail, "%s", detail);
    snprintf(record->run.stop_reason, sizeof record->run.stop_reason, "%s", run_status_names[status]);
    enum status put = test_split_read(&s->spec.task, true, &test, e);
    if (put == ST_OK) fill_test_split(&test, &record->run);
    if (put == ST_OK) put = record_write(s->spec.config.out, record, NULL, e);
    free(record);
    return put;
}
