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
    {"steps", OPT_INT, AT(steps), "auto", 0, 1e12, NULL, "optimiser steps; auto = epochs x steps an epoch", OPT_AUTO},
    {"epochs", OPT_INT, AT(epochs), "20", 1, 1e9, NULL, "passes over the training examples", 0},
    {"batch", OPT_INT, AT(batch), "128", 1, 1 << 24, NULL, "sequences a step", 0},
    {"lr", OPT_REAL, AT(lr), "0.001", 0, 1e6, NULL, "peak learning rate of AdamW", 0},
    {"lr-min", OPT_REAL, AT(lr_min), "1e-05", 0, 1e6, NULL, "floor of the cosine schedules", 0},
    {"decay", OPT_REAL, AT(decay), "0", 0, 100, NULL, "decoupled weight decay", 0},
    {"beta1", OPT_REAL, AT(beta1), "0.9", 0, 0.999999, NULL, "AdamW beta1", 0},
    {"beta2", OPT_REAL, AT(beta2), "0.999", 0, 0.999999, NULL, "AdamW beta2", 0},
    {"schedule", OPT_CHOICE, AT(schedule), "constant", 0, 0, "constant cosine cosine-epoch mad-const mad-cosine",
     "learning rate over steps; mad-const: MAD's effective one, constant; mad-cosine: its declared one, per epoch to "
     "1e-6 "
     "over 200 epochs whatever the run's length",
     0},
    {"warmup", OPT_INT, AT(warmup), "0", 0, 1e12, NULL, "steps of linear warm-up", 0},
    {"clip", OPT_REAL, AT(clip), "0", 0, 1e9, NULL, "global gradient norm is clipped to this; 0 = off", 0},
    {"eval-every", OPT_INT, AT(eval_every), "auto", 0, 1e12, NULL,
     "steps between validations; auto = an epoch, at most 200 a run", OPT_AUTO},
    {"stop-at", OPT_REAL, AT(stop_at), "0.999", 0, 2, NULL, "stop when the validation metric reaches this; 2 = never",
     0},
    {"patience", OPT_INT, AT(patience), "0", 0, 1e9, NULL,
     "stop after so many validations in a row without a gain; 0 = never", 0},
    {"min-gain", OPT_REAL, AT(min_gain), "0", 0, 1, NULL, "what --patience counts as a gain in the validation metric",
     0},
    {"seed", OPT_INT, AT(seed), "1", 0, 9e18, NULL, "of initialisation, data and order", 0},
    {"precision", OPT_CHOICE, AT(precision), REAL_NAME, 0, 0, PRECISIONS, "of matrix products; tf32 on CUDA alone", 0},
    {"allow-non-causal", OPT_BOOL, AT(allow_non_causal), "no", 0, 0, NULL, "run a non-causal mixer on a causal task",
     0},
    {"kernel", OPT_TEXT_FIELD, AT(kernel), "", 0, 0, NULL, "force this kernel, or 'reference'", 0},
    {"device", OPT_TEXT_FIELD, AT(device), "cpu", 0, 0, NULL, "where it runs: cpu, cuda or cuda:N", 0},
    {"budget", OPT_TIME, AT(budget), "0s", 0, 1e9, NULL, "stop after this time; 0 = no limit", 0},
    {"threads", OPT_INT, AT(threads), "auto", 0, 4096, NULL, "CPU threads of one run; auto = all cores (bench: 1)",
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

/* The parts of a "NAME:key=value,.." text while a file is read. */
struct named {
    char name[RECORD_TEXT], options[CONFIG_TEXT];
};

static void add_option(struct named *n, const char *key, const char *value) {
    size_t used = strlen(n->options);
    snprintf(n->options + used, sizeof n->options - used, "%s%s=%s", used ? "," : "", key, value);
}

static enum status config_line(char *line, const char *path, int number, struct config *c, struct named *task,
                               struct named *model, struct error *e) {
    line += strspn(line, " \t");
    line[strcspn(line, "\r\n")] = 0;
    if (!*line || *line == '#') return ST_OK;
    char *equals = strchr(line, '=');
    if (!equals) return fail(e, ST_USAGE, "%s line %d: '%s' is not of the form key=value", path, number, line);
    *equals = 0;
    const char *value = equals + 1;
    if (!strcmp(line, "task"))
        snprintf(task->name, sizeof task->name, "%s", value);
    else if (!strcmp(line, "model"))
        snprintf(model->name, sizeof model->name, "%s", value);
    else if (!strncmp(line, "task.", 5))
        add_option(task, line + 5, value);
    else if (!strncmp(line, "model.", 6))
        add_option(model, line + 6, value);
    else {
        struct error inner = {ST_OK, ""};
        if (config_set(c, line, value, &inner) != ST_OK)
            return fail(e, inner.status, "%s line %d: %.900s", path, number, inner.text);
    }
    return ST_OK;
}

static void join_named(const struct named *n, char text[CONFIG_TEXT]) {
    if (*n->name || *n->options)
        snprintf(text, CONFIG_TEXT, "%.500s%s%.3500s", n->name, *n->options ? ":" : "", n->options);
}

static enum status read_lines(FILE *file, const char *path, struct config *c, char task[CONFIG_TEXT],
                              char model[CONFIG_TEXT], struct error *e) {
    struct named *names = calloc(2, sizeof *names);
    char line[1024];
    enum status status = names ? ST_OK : fail(e, ST_FAIL, "out of memory reading %s", path);
    for (int number = 1; status == ST_OK && fgets(line, sizeof line, file); number++) {
        if (!strchr(line, '\n') && !feof(file))
            status = fail(e, ST_USAGE, "%s line %d is longer than %zu bytes", path, number, sizeof line - 2);
        else
            status = config_line(line, path, number, c, &names[0], &names[1], e);
    }
    if (status == ST_OK && ferror(file)) status = fail(e, ST_DATA, "cannot read config file %s to its end", path);
    if (status == ST_OK) {
        join_named(&names[0], task);
        join_named(&names[1], model);
    }
    free(names);
    return status;
}

enum status config_read(const char *path, struct config *c, char task[CONFIG_TEXT], char model[CONFIG_TEXT],
                        struct error *e) {
    FILE *file = fopen(path, "r");
    if (!file) return fail(e, ST_DATA, "cannot read config file %s: %s", path, strerror(errno));
    enum status status = read_lines(file, path, c, task, model, e);
    fclose(file);
    return status;
}

enum status config_read_text(const char *text, const char *name, struct config *c, char task[CONFIG_TEXT],
                             char model[CONFIG_TEXT], struct error *e) {
    char *copy = strdup(text); /* fmemopen wants bytes that may be written */
    FILE *file = copy ? fmemopen(copy, strlen(copy) + 1, "r") : NULL;
    enum status status = file ? read_lines(file, name, c, task, model, e) : fail(e, ST_FAIL, "no memory for %s", name);
    if (file) fclose(file);
    free(copy);
    return status;
}

/* --- resolution ------------------------------------------------------------------------------------------------------- */

/* Appends printf-style text to a fixed buffer. */
static void append(char *buffer, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void append(char *buffer, size_t size, const char *format, ...) {
    size_t used = strlen(buffer);
    va_list args;
    va_start(args, format);
    vsnprintf(buffer + used, size - used, format, args);
    va_end(args);
}

static void append_options(char *buffer, const char *prefix, const struct option *table, const void *object,
                           unsigned skip) {
    for (const struct option *o = table; o->name; o++) {
        char value[OPTION_TEXT + 1];
        option_format_value(o, object, value, sizeof value);
        if (option_left_out(o, value, skip)) continue;
        append(buffer, CONFIG_TEXT, "%s%s=%s\n", prefix, o->name, value);
    }
}

/* What identifies a run are the sizes that the model was fitted to; what is read again are those that were asked for. */
static void describe(const struct setup *s, const struct model_choice *model, char text[CONFIG_TEXT], unsigned skip) {
    text[0] = 0;
    append(text, CONFIG_TEXT, "task=%s\n", s->task.task->name);
    append_options(text, "task.", s->task.task->options, s->task.inst, skip & OPT_LATER);
    append(text, CONFIG_TEXT, "model=%s\n", model->model->name);
    append_options(text, "model.", model->model->options, model->inst, skip & OPT_LATER);
    append_options(text, "", backbone_options, &s->config, skip);
    append_options(text, "", config_options, &s->config, skip);
}

/* The identity of the run, and of its cell: the same with the seed left out. */
static void identify(struct setup *s) {
    char device[sizeof s->config.device];
    describe(s, &s->parsed, s->config_text, OPT_PLACE);
    memcpy(device, s->config.device, sizeof device);
    s->config.device[strcspn(device, ":")] = 0; /* which of several devices it was is not part of what a run is */
    describe(s, &s->model, s->identity, OPT_RUNTIME | OPT_LATER);
    append(s->identity, sizeof s->identity, "task-version=%d\ndevice-kind=%s\ndtype=%s\nnumerics=%s\n",
           s->task.task->version, s->config.device, REAL_NAME, s->numerics);
    memcpy(s->config.device, device, sizeof device);
    record_hash(s->identity, s->run_id);
    char *cell = strdup(s->identity), *seed = cell ? strstr(cell, "\nseed=") : NULL;
    if (seed) memmove(seed, strchr(seed + 1, '\n'), strlen(strchr(seed + 1, '\n')) + 1);
    record_hash(cell ? cell : s->identity, s->cell_id);
    free(cell);
}

void model_short_label(const struct model_choice *choice, char *buffer, size_t size) {
    struct model_choice plain = {.model = choice->model};
    buffer[0] = 0;
    append(buffer, size, "%s", choice->model->name);
    if (options_default(plain.model->options, plain.inst, NULL) != ST_OK) return;
    const char *separator = ":";
    for (const struct option *o = choice->model->options; o->name; o++) {
        char value[OPTION_TEXT + 1], standard[OPTION_TEXT + 1];
        option_format_value(o, choice->inst, value, sizeof value);
        option_format_value(o, plain.inst, standard, sizeof standard);
        bool size_of_model = !strcmp(o->name, "m") || !strcmp(o->name, "blocks") || !strcmp(o->name, "channels");
        if (!size_of_model && !strcmp(value, standard)) continue;
        if (o->flags & OPT_AUTO) continue; /* derived from the sizes */
        append(buffer, size, "%s%s=%s", separator, o->name, value);
        separator = ",";
    }
}

static enum status check_fit(const struct setup *s, struct error *e) {
    const struct config *c = &s->config;
    const struct task_shape *shape = &s->task.shape;
    enum device device;
    int index;
    TRY(place_parse(c->device, &device, &index, e));
    if (c->precision != 0 && device == DEVICE_CPU)
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

enum status setup_resolve(struct setup *s, struct error *e) {
    struct config *c = &s->config;
    TRY(resolve_start(c, e));
    TRY(arena_reserve(&s->host, HOST_BYTES, e));
    TRY(task_open(&s->task, (uint64_t)c->seed, &s->host, e));
    TRY(check_fit(s, e));
    s->parsed = s->model;
    TRY(fit_lengths(s, e));
    s->steps_per_epoch = ceil_div(s->task.shape.examples[SPLIT_TRAIN], c->batch);
    s->steps = c->steps ? c->steps : c->epochs * s->steps_per_epoch;
    c->steps = s->steps;
    int64_t most = ceil_div(s->steps, 200);
    s->eval_every = c->eval_every ? c->eval_every : s->steps_per_epoch > most ? s->steps_per_epoch : most;
    c->eval_every = s->eval_every;
    TRY(numerics_of(s, s->numerics, sizeof s->numerics, e));
    identify(s);
    char label[RECORD_TEXT - 32];
    model_short_label(&s->model, label, sizeof label);
    static const char *const mlps[] = {"none", "swiglu", "gelu"};
    snprintf(s->model_label, sizeof s->model_label, "%s;%s", label, mlps[c->net.mlp]);
    return ST_OK;
}

void setup_free(struct setup *s) {
    arena_free(&s->host);
}

enum { MAD_CONST = SCHEDULE_COSINE_EPOCH + 1, MAD_COSINE }; /* of --schedule, behind enum schedule_kind */

struct schedule setup_schedule(const struct setup *s) {
    const struct config *c = &s->config;
    struct schedule schedule = {.kind = (enum schedule_kind)c->schedule,
                                .lr = c->lr,
                                .lr_min = c->lr_min,
                                .warmup = c->warmup,
                                .total = s->steps,
                                .steps_per_epoch = s->steps_per_epoch};
    if (c->schedule == MAD_CONST) schedule.kind = SCHEDULE_CONSTANT;
    if (c->schedule == MAD_COSINE) { /* athms/mad-lab mad/configs.py: T_max 200 epochs, eta_min 1e-6 */
        schedule.kind = SCHEDULE_COSINE_EPOCH;
        schedule.lr_min = 1e-6;
        schedule.total = 200 * s->steps_per_epoch;
    }
    return schedule;
}
