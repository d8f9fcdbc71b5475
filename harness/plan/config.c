/* config.c - flags, config files, and the resolution of a run; see config.h. */
#include "harness/plan/config.h"

#include <errno.h>
#include <stdarg.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/numerics.h"
#include "harness/store/files.h"
#include "harness/store/version.h"

#define HOST_BYTES ((size_t)256 << 20) /* address space for the tables of a task; committed as used */
#define AT(field)  offsetof(struct config, field)

#if REAL_IS_DOUBLE
#define PRECISIONS REAL_NAME
#else
#define PRECISIONS REAL_NAME " tf32"
#endif

const struct option config_options[] = {
    {"steps", OPT_INT, AT(steps), "auto", 1, 1e12, NULL, "optimiser steps; auto = epochs x steps an epoch", OPT_AUTO},
    {"epochs", OPT_INT, AT(epochs), "20", 1, 1e9, NULL, "passes over the training examples", 0},
    {"batch", OPT_INT, AT(batch), "128", 1, 1 << 24, NULL, "sequences a step", 0},
    {"lr", OPT_REAL, AT(lr), "0.001", 0, 1e6, NULL, "peak learning rate of AdamW", 0},
    {"lr-min", OPT_REAL, AT(lr_min), "1e-05", 0, 1e6, NULL, "floor of the cosine schedules", 0},
    {"decay", OPT_REAL, AT(decay), "0", 0, 100, NULL, "decoupled weight decay", 0},
    {"beta1", OPT_REAL, AT(beta1), "0.9", 0, 0.999999, NULL, "AdamW beta1", 0},
    {"beta2", OPT_REAL, AT(beta2), "0.999", 0, 0.999999, NULL, "AdamW beta2", 0},
    {"schedule", OPT_CHOICE, AT(schedule), "constant", 0, 0, "constant cosine cosine-epoch mad-const mad-cosine",
     "learning rate over steps; mad-const: MAD's effective one, constant; mad-cosine: its declared one, per epoch to "
     "1e-6 over 200 epochs whatever the run's length",
     0},
    {"warmup", OPT_INT, AT(warmup), "0", 0, 1e12, NULL, "steps of linear warm-up from rate 0", 0},
    {"clip", OPT_REAL, AT(clip), "0", 0, 1e9, NULL, "global gradient norm is clipped to this, as torch does; 0 = off",
     0},
    {"eval-every", OPT_INT, AT(eval_every), "auto", 1, 1e12, NULL,
     "steps between validations; auto = an epoch, at most 200 a run", OPT_AUTO},
    {"stop-at", OPT_REAL, AT(stop_at), "0.999", 0, 2, NULL, "stop when the validation metric reaches this; 2 = never",
     0},
    {"patience", OPT_INT, AT(patience), "0", 0, 1e9, NULL,
     "stop after so many validations in a row without a gain; 0 = never", 0},
    {"min-gain", OPT_REAL, AT(min_gain), "0", 0, 1, NULL, "what --patience counts as a gain in the validation metric",
     0},
    {"seed", OPT_INT, AT(seed), "1", 0, 9e18, NULL, "of initialisation, data and order", OPT_SEED},
    {"precision", OPT_CHOICE, AT(precision), REAL_NAME, 0, 0, PRECISIONS, "of matrix products; tf32 on CUDA alone", 0},
    {"allow-non-causal", OPT_BOOL, AT(allow_non_causal), "no", 0, 0, NULL, "run a non-causal mixer on a causal task",
     0},
    {"kernel", OPT_TEXT_FIELD, AT(kernel), "", 0, 0, NULL, "force this kernel, or 'reference'", 0},
    {"device", OPT_TEXT_FIELD, AT(device), "cpu", 0, 0, NULL, "where it runs: cpu, cuda or cuda:N", 0},
    {"budget", OPT_TIME, AT(budget), "0s", 0, 1e9, NULL, "stop after this time; 0 = no limit", 0},
    {"threads", OPT_INT, AT(threads), "auto", 1, 4096, NULL, "CPU threads of one run; auto = all cores (bench: 1)",
     OPT_AUTO | OPT_RUNTIME},
    {"checkpoint-every", OPT_TIME, AT(checkpoint_every), "60s", 0, 1e9, NULL, "time between checkpoints; 0 = none",
     OPT_RUNTIME},
    {"ahead", OPT_BOOL, AT(ahead), "yes", 0, 0, NULL, "a thread makes the next training batch during a step",
     OPT_RUNTIME},
    {"keep-weights", OPT_CHOICE, AT(keep_weights), "yes", 0, 0, "no yes all",
     "keep the best weights in OUT/weights, for `lrnn export`; all: those of the last step as well", OPT_RUNTIME},
    {"from", OPT_TEXT_FIELD, AT(from), "", 0, 0, NULL,
     "safetensors file of the weights to start from, named as `lrnn export` names them; none = drawn from the seed",
     OPT_RUNTIME | OPT_PLACE},
    {"from-xxh3", OPT_TEXT_FIELD, AT(from_xxh3), "", 0, 0, NULL,
     "XXH3-128 that the file of --from has to have; found by itself, and part of what the run is", OPT_LATER},
    {"out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records and exports",
     OPT_RUNTIME | OPT_PLACE},
    {"profile", OPT_TEXT_FIELD, AT(profile), "train", 0, 0, NULL, "name noted in the record", OPT_RUNTIME},
    {"quiet", OPT_BOOL, AT(quiet), "no", 0, 0, NULL, "no progress", OPT_RUNTIME},
    {"json", OPT_BOOL, AT(json), "no", 0, 0, NULL, "result as one JSON line", OPT_RUNTIME},
    {"no-color", OPT_BOOL, AT(no_color), "no", 0, 0, NULL, "plain output", OPT_RUNTIME},
    {0}};

enum status config_default(struct config *c, struct error *e) {
    memset(c, 0, sizeof *c);
    TRY(options_default(backbone_options, c, e));
    return options_default(config_options, c, e);
}

enum status config_set(struct config *c, const char *name, const char *value, struct error *e) {
    const struct option *table = option_find(backbone_options, name) ? backbone_options : config_options;
    return options_set(table, c, "the configuration", name, value, e);
}

/* --- config files --------------------------------------------------------------------------------------------------- */

/* One line's option of the task or the model. */
static enum status add_option(struct label *l, const char *key, const char *value, struct error *e) {
    if (label_get(l, key)) return fail(e, ST_USAGE, "option '%.60s' is given twice", key);
    return label_add(l, key, value, e);
}

/* "s5" or "s5:length=8" behind "task="; the options may stand in lines of their own, before or behind this one. */
static enum status set_name(struct label *l, const char *kind, const char *text, struct error *e) {
    struct label named;
    TRY(label_parse(&named, kind, text, e));
    TRY(label_set_name(l, label_name(&named), e));
    for (int i = 0; i < named.n; i++) TRY(add_option(l, label_key(&named, i), label_value(&named, i), e));
    return ST_OK;
}

static enum status set_line(const char *key, const char *value, struct config *c, struct label *task,
                            struct label *model, struct error *e) {
    if (!strcmp(key, "task")) return set_name(task, "task", value, e);
    if (!strcmp(key, "model")) return set_name(model, "model", value, e);
    if (!strncmp(key, "task.", 5)) return add_option(task, key + 5, value, e);
    if (!strncmp(key, "model.", 6)) return add_option(model, key + 6, value, e);
    return config_set(c, key, value, e);
}

static enum status config_line(char *line, const char *path, int number, struct config *c, struct label *task,
                               struct label *model, struct error *e) {
    struct error why = {ST_OK, ""};
    line += strspn(line, " \t");
    line[strcspn(line, "\r\n")] = 0;
    if (!*line || *line == '#') return ST_OK;
    char *equals = strchr(line, '=');
    if (!equals) return fail(e, ST_USAGE, "%s line %d: '%s' is not of the form key=value", path, number, line);
    *equals = 0;
    if (set_line(line, equals + 1, c, task, model, &why) == ST_OK) return ST_OK;
    return fail(e, why.status, "%s line %d: %.900s", path, number, why.text);
}

static enum status read_lines(FILE *file, const char *path, struct config *c, char task[LABEL_TEXT],
                              char model[LABEL_TEXT], struct error *e) {
    struct label task_label = {0}, model_label = {0};
    char line[1024];
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        if (!strchr(line, '\n') && !feof(file))
            return fail(e, ST_USAGE, "%s line %d is longer than %zu bytes", path, number, sizeof line - 2);
        TRY(config_line(line, path, number, c, &task_label, &model_label, e));
    }
    if (ferror(file)) return fail(e, ST_DATA, "cannot read config file %s to its end", path);
    if (task_label.used) TRY(label_format(&task_label, task, LABEL_TEXT, e));
    return model_label.used ? label_format(&model_label, model, LABEL_TEXT, e) : ST_OK;
}

enum status config_read(const char *path, struct config *c, char task[LABEL_TEXT], char model[LABEL_TEXT],
                        struct error *e) {
    FILE *file = fopen(path, "r");
    if (!file) return fail(e, ST_DATA, "cannot read config file %s: %s", path, strerror(errno));
    enum status status = read_lines(file, path, c, task, model, e);
    fclose(file);
    return status;
}

enum status config_read_text(const char *text, const char *name, struct config *c, char task[LABEL_TEXT],
                             char model[LABEL_TEXT], struct error *e) {
    char *copy = strdup(text); /* fmemopen wants bytes that may be written */
    FILE *file = copy ? fmemopen(copy, strlen(copy) + 1, "r") : NULL;
    enum status status = file ? read_lines(file, name, c, task, model, e) : fail(e, ST_FAIL, "no memory for %s", name);
    if (file) fclose(file);
    free(copy);
    return status;
}

/* --- resolution ------------------------------------------------------------------------------------------------------- */

/* Appends printf-style text to the description of a run, which becomes its identity: no part of it may be missing. */
static enum status append(char text[CONFIG_TEXT], struct error *e, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static enum status append(char text[CONFIG_TEXT], struct error *e, const char *format, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    int more = vsnprintf(text + used, CONFIG_TEXT - used, format, args);
    va_end(args);
    if (more >= 0 && used + (size_t)more < CONFIG_TEXT) return ST_OK;
    return fail(e, ST_USAGE, "the configuration of the run is longer than %d characters; shorten names of files",
                CONFIG_TEXT - 1);
}

static enum status append_options(char text[CONFIG_TEXT], const char *prefix, const struct option *table,
                                  const void *object, unsigned skip, struct error *e) {
    for (const struct option *o = table; o->name; o++) {
        char value[OPTION_TEXT + 1];
        option_format_value(o, object, value, sizeof value);
        if (!option_left_out(o, value, skip)) TRY(append(text, e, "%s%s=%s\n", prefix, o->name, value));
    }
    return ST_OK;
}

static enum status describe(const struct setup *s, const struct config *config, const struct model_choice *model,
                            unsigned skip, char text[CONFIG_TEXT], struct error *e) {
    text[0] = 0;
    TRY(append(text, e, "task=%s\n", s->task.task->name));
    TRY(append_options(text, "task.", s->task.task->options, s->task.inst, skip & OPT_LATER, e));
    TRY(append(text, e, "model=%s\n", model->model->name));
    TRY(append_options(text, "model.", model->model->options, model->inst, skip & OPT_LATER, e));
    TRY(append_options(text, "", backbone_options, config, skip, e));
    return append_options(text, "", config_options, config, skip, e);
}

/* What identifies a run are the sizes that the model was fitted to, and the kind of its device, not which of several. */
static enum status describe_identity(const struct setup *s, unsigned skip, char text[CONFIG_TEXT], struct error *e) {
    struct config config = s->config;
    config.device[strcspn(config.device, ":")] = 0;
    TRY(describe(s, &config, &s->model, skip | OPT_RUNTIME | OPT_LATER, text, e));
    return append(text, e, "task-version=%d\ndevice-kind=%s\ndtype=%s\nnumerics=%s\n", s->task.task->version,
                  config.device, REAL_NAME, s->numerics);
}

/* The identity of the run, and of its cell: the same with the seed left out. What is read again is what was asked for. */
static enum status identify(struct setup *s, struct error *e) {
    char cell[CONFIG_TEXT];
    TRY(describe(s, &s->config, &s->parsed, OPT_PLACE, s->config_text, e));
    TRY(describe_identity(s, 0, s->identity, e));
    TRY(describe_identity(s, OPT_SEED, cell, e));
    record_hash(s->identity, s->run_id);
    record_hash(cell, s->cell_id);
    return ST_OK;
}

/* "bdlru:m=5,blocks=64;swiglu": the mixer's options that are not at their default or say how large it is, and the MLP. What was
 * derived from the sizes is left out. */
static enum status name_model(struct setup *s, struct error *e) {
    const struct model *model = s->model.model;
    struct label label;
    char mixer[RECORD_TEXT], mlp[OPTION_TEXT + 1];
    TRY(label_of(&label, model->name, model->options, s->model.inst, OPT_AUTO, e));
    TRY(label_shorten(&label, model->options, OPT_BLOCKS | OPT_ORDER, e));
    TRY(label_format(&label, mixer, sizeof mixer, e));
    option_format_value(option_find(backbone_options, "mlp"), &s->config, mlp, sizeof mlp);
    int n = snprintf(s->model_label, sizeof s->model_label, "%s;%s", mixer, mlp);
    if (n > 0 && (size_t)n < sizeof s->model_label) return ST_OK;
    return fail(e, ST_USAGE, "model %s: its options are longer than %zu characters together; shorten them", model->name,
                sizeof s->model_label - 1);
}

static enum status check_fit(const struct setup *s, struct error *e) {
    const struct config *c = &s->config;
    const struct task_shape *shape = &s->task.shape;
    const size_t profile_bytes = sizeof((struct run *)0)->profile;
    enum device device;
    int index;
    if (strlen(c->profile) >= profile_bytes)
        return fail(e, ST_USAGE, "--profile %.60s is longer than the %zu characters that a record has for it",
                    c->profile, profile_bytes - 1);
    TRY(place_parse(c->device, &device, &index, e));
    if (c->precision != PRECISION_NATIVE && device == DEVICE_CPU)
        return fail(e, ST_USAGE,
                    "--precision tf32 is a mode of CUDA devices; use --device cuda or --precision " REAL_NAME);
    if (shape->needs_causal && !net_causal(&c->net, &s->model) && !c->allow_non_causal)
        return fail(e, ST_USAGE,
                    "task %s needs a causal mixer and %s is not; --allow-non-causal runs it and marks the row",
                    s->task.name, s->model.model->causal ? "a bidirectional one" : s->model.model->name);
    if (shape->auto_encoder && c->net.kind != BACKBONE_MAD_LM)
        return fail(e, ST_USAGE, "task %s is decoded from one vector a sequence; that needs --backbone mad-lm",
                    s->task.name);
    bool vocabulary = shape->vocab_out > c->net.dim;
    int64_t width = vocabulary ? shape->vocab_out : c->net.dim;
    int64_t T = shape->T_eval > shape->T ? shape->T_eval : shape->T;
    double bytes = (double)c->batch * (double)T * (double)width * sizeof(real);
    if (bytes > (double)machine_memory_bytes())
        return fail(e, ST_USAGE,
                    "batch %" PRId64 " x length %" PRId64 " x %s %" PRId64
                    " needs %.0f MB for one activation but the machine has %zu MB; lower one of them",
                    c->batch, T, vocabulary ? "vocabulary" : "width", width, bytes / 1048576,
                    machine_memory_bytes() >> 20);
    return ST_OK;
}

/* The model at the lengths of evaluation and of training; keeps the latter. A tree has parameters by its levels: where lengths
 * differ, the tree of the longest serves all of them, and shorter sequences leave more of its leaves empty. */
static enum status fit_lengths(struct setup *s, struct error *e) {
    const struct task_shape *shape = &s->task.shape;
    int64_t test = task_length(shape, SPLIT_TEST), longest = test > shape->T ? test : shape->T, nodes;
    if (shape->T_extra > longest) longest = shape->T_extra;
    if (s->parsed.model->nodes && (test != shape->T || shape->T_extra))
        TRY(s->parsed.model->nodes(s->parsed.inst, longest, &nodes, e));
    for (int split = SPLIT_TEST; split >= SPLIT_TRAIN; split--) {
        struct dims dims = {s->config.batch, task_length(&s->task.shape, (enum split)split), s->config.net.dim};
        s->model = s->parsed;
        TRY(model_fit(&s->model, &dims, e));
    }
    return ST_OK;
}

struct net_shape setup_net_shape(const struct setup *s, enum split split) {
    const struct task_shape *t = &s->task.shape;
    enum readout readout = t->auto_encoder ? READOUT_DECODED : t->per_sequence ? READOUT_SEQUENCE : READOUT_POSITIONS;
    return (struct net_shape){s->config.batch, task_length(t, split), t->vocab_in, t->vocab_out, readout};
}

int64_t setup_extra_batch(const struct setup *s) {
    if (!s->task.shape.T_extra) return 0;
    return s->config.batch > 10 ? s->config.batch / 10 : 1;
}

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* What a run starts from is part of what it is: the file's content, not its place. */
static enum status resolve_start(struct config *c, struct error *e) {
    char hash[HASH_HEX], *bytes;
    size_t size;
    struct error why;
    if (!*c->from) return ST_OK;
    if (file_read_hashed(c->from, machine_memory_bytes() / 2, &bytes, &size, hash, &why) != ST_OK)
        return fail(e, ST_DATA, "--from: %.900s", why.text);
    free(bytes);
    if (*c->from_xxh3 && strcmp(hash, c->from_xxh3) != 0)
        return fail(e, ST_DATA,
                    "--from: the XXH3-128 of %s is %s, expected %.40s: it is not the file that the run "
                    "starts from",
                    c->from, hash, c->from_xxh3);
    memcpy(c->from_xxh3, hash, sizeof hash);
    return ST_OK;
}

void setup_length(struct setup *s) {
    const struct config *c = &s->config;
    s->steps_per_epoch = ceil_div(s->task.shape.examples[SPLIT_TRAIN], c->batch);
    s->steps = c->steps ? c->steps : c->epochs * s->steps_per_epoch;
}

/* A rate that changes between epochs alone would stay 0 for all of the first one under a shorter warm-up. */
static enum status check_schedule(const struct setup *s, struct error *e) {
    char name[OPTION_TEXT + 1];
    int64_t spare = s->config.warmup % s->steps_per_epoch, whole = s->config.warmup - spare + s->steps_per_epoch;
    if (setup_schedule(s).kind != SCHEDULE_COSINE_EPOCH || spare == 0) return ST_OK;
    option_format_value(option_find(config_options, "schedule"), &s->config, name, sizeof name);
    return fail(e, ST_USAGE,
                "--schedule %s changes the rate between epochs alone, and --warmup %" PRId64
                " is no whole number of epochs "
                "of %" PRId64 " steps; take --warmup %" PRId64 " or --schedule cosine",
                name, s->config.warmup, s->steps_per_epoch, whole);
}

enum status setup_resolve(struct setup *s, struct error *e) {
    struct config *c = &s->config;
    TRY(resolve_start(c, e));
    TRY(arena_reserve(&s->host, HOST_BYTES, e));
    TRY(task_open(&s->task, (uint64_t)c->seed, &s->host, e));
    TRY(check_fit(s, e));
    s->parsed = s->model;
    TRY(fit_lengths(s, e));
    setup_length(s);
    c->steps = s->steps;
    TRY(check_schedule(s, e));
    int64_t most = ceil_div(s->steps, 200);
    s->eval_every = c->eval_every ? c->eval_every : s->steps_per_epoch > most ? s->steps_per_epoch : most;
    c->eval_every = s->eval_every;
    TRY(numerics_of(s, s->numerics, sizeof s->numerics, e));
    TRY(identify(s, e));
    return name_model(s, e);
}

void setup_free(struct setup *s) {
    arena_free(&s->host);
}

struct schedule setup_schedule(const struct setup *s) {
    const struct config *c = &s->config;
    struct schedule schedule = {.kind = SCHEDULE_CONSTANT,
                                .lr = c->lr,
                                .lr_min = c->lr_min,
                                .warmup = c->warmup,
                                .total = s->steps,
                                .steps_per_epoch = s->steps_per_epoch};
    switch ((enum run_schedule)c->schedule) {
    case RUN_CONSTANT:
    case RUN_MAD_CONST:
        break;
    case RUN_COSINE:
        schedule.kind = SCHEDULE_COSINE;
        break;
    case RUN_COSINE_EPOCH:
        schedule.kind = SCHEDULE_COSINE_EPOCH;
        break;
    case RUN_MAD_COSINE: /* athms/mad-lab mad/configs.py: T_max 200 epochs, eta_min 1e-6 */
        schedule.kind = SCHEDULE_COSINE_EPOCH;
        schedule.lr_min = 1e-6;
        schedule.total = 200 * s->steps_per_epoch;
        break;
    }
    return schedule;
}
