/* numerics.c - see numerics.h. */
#include "harness/study/numerics.h"

#include <stdlib.h>
#include <string.h>

#include "core/op.h"

#define NUMERICS_BASE "1" /* of every run; raised when a change reaches all of them */

/* A run, as far as its numerics depend on it. */
struct subject {
    const struct config *config;
    const struct task *task;
    const struct model_choice *model;
};

static bool model_is(const struct model_choice *model, const char *name) {
    return strcmp(model->model->name, name) == 0;
}

/* Heads that lay side by side read the first one's state in the chunk kernel of the delta rule. */
static bool uses_delta(const struct subject *s) {
    return model_is(s->model, "deltanet") || model_is(s->model, "deltaproduct");
}

/* The value of a model's option, or "" if it has none of that name. */
static void option_of(const struct model_choice *model, const char *name, char *value, size_t size) {
    const struct option *o = option_find(model->model->options, name);
    value[0] = 0;
    if (o) option_format_value(o, model->inst, value, size);
}

static bool option_is(const struct model_choice *model, const char *name, const char *wanted) {
    char value[OPTION_TEXT + 1];
    option_of(model, name, value, sizeof value);
    return strcmp(value, wanted) == 0;
}

/* Several states a head started all alike, on a saddle. */
static bool uses_track(const struct subject *s) {
    return model_is(s->model, "plstm") && !option_is(s->model, "track", "1") && !option_is(s->model, "track-init", "0");
}

/* The norm stood alone under the clip. */
static bool uses_clip(const struct subject *s) {
    return s->config->clip > 0;
}

/* The first step of a warm-up ran at lr / warmup. */
static bool uses_warmup(const struct subject *s) {
    return s->config->warmup > 0;
}

/* Intervals of the log-ODE form: a shorter last one counted where a string filled the graph alone, and two structures
 * kept what is of token nets. */
static bool uses_interval(const struct subject *s) {
    return model_is(s->model, "slice") && !option_is(s->model, "interval", "1");
}

/* Nodes without a token had gates, and the sides of a grid followed from the graph's length. */
static bool uses_grid(const struct subject *s) {
    return model_is(s->model, "plstm2d");
}

/* The normaliser of P-mode counted edges that lead behind a sequence's end. */
static bool uses_branches(const struct subject *s) {
    bool p_mode = option_is(s->model, "mode", "P") || option_is(s->model, "mode", "PD");
    return model_is(s->model, "plstm-graph") && p_mode && !option_is(s->model, "edges", "path");
}

/* A chain went on behind a sequence's end, and so did a tree whose leaves were given. */
static bool uses_chain(const struct subject *s) {
    return model_is(s->model, "myosotis") &&
           (option_is(s->model, "arity", "1") || !option_is(s->model, "leaves", "all"));
}

/* 2: the update ran with the tuned kernels whatever was forced. 3: in double the loss lost the digits that the largest
 * logit has before its point. 4: in double batch norm's sums over thousands of rows lost digits. */
static bool uses_reference(const struct subject *s) {
    return strcmp(s->config->kernel, "reference") == 0 || strcmp(s->config->kernel, "cross_entropy_ref") == 0;
}

/* Batch norm decayed and the embedding did not. */
static bool uses_s5(const struct subject *s) {
    return s->config->net.kind == BACKBONE_S5 && s->config->decay > 0;
}

/* SLiCE's steps had no bound. */
static bool uses_flow(const struct subject *s) {
    return model_is(s->model, "slice");
}

/* Nets of the SLiCE paper. */
static bool is_slice_net(const struct config *config) {
    int kind = config->net.kind;
    return kind != BACKBONE_MAD_LM && kind != BACKBONE_S5 && kind != BACKBONE_VISION;
}

/* The biases of SLiCE's nets started at 0. */
static bool uses_biases(const struct subject *s) {
    return is_slice_net(s->config);
}

/* There was dropout behind the last layer too, and not between layers alone. */
static bool uses_stacked(const struct subject *s) {
    struct backbone net = backbone_resolved(&s->config->net, s->model->model);
    return net.kind == BACKBONE_STACKED && s->config->net.dropout > 0;
}

/* mLSTM and attention had the wrapper of the other baselines. */
static bool uses_wrapper(const struct subject *s) {
    int kind = backbone_resolved(&s->config->net, s->model->model).kind;
    return s->config->net.kind == BACKBONE_SLICE_PAPER &&
           (kind == BACKBONE_SLICE_XLSTM || kind == BACKBONE_SLICE_TRANSFORMER);
}

/* Its maps started at the framework's default, and its norm was a weight to those who decay weights alone. */
static bool uses_mlstm(const struct subject *s) {
    return model_is(s->model, "mlstm");
}

/* What mixers exempt from decay was exempt in the nets of SLiCE and MAD too, whose loops decay it. */
static bool uses_tags(const struct subject *s) {
    bool untagged = is_slice_net(s->config) || s->config->net.kind == BACKBONE_MAD_LM;
    bool state = model_is(s->model, "lru") || model_is(s->model, "mamba2") || model_is(s->model, "myosotis") ||
                 (model_is(s->model, "deltaproduct") && option_is(s->model, "forget", "yes"));
    return untagged && state && s->config->decay > 0;
}

/* Linear maps in front of the auto-encoder's code started as in other nets. */
static bool uses_decoded(const struct subject *s) {
    return strcmp(s->task->name, "compression") == 0;
}

/* On CUDA the tensor cores rounded the factors their own way. */
static bool uses_tf32(const struct subject *s) {
    return s->config->precision == PRECISION_TF32;
}

/* Above 8 the reference computed, asked or not. */
static bool uses_order(const struct subject *s) {
    char m[OPTION_TEXT + 1];
    option_of(s->model, "m", m, sizeof m);
    bool gated = model_is(s->model, "bdlru") || model_is(s->model, "hlru");
    return gated && strtol(m, NULL, 10) > 8 && strcmp(s->config->kernel, "reference") != 0;
}

/* A part starts at version 1, which is not written. */
static const struct {
    const char *name;
    int version;
    bool (*used)(const struct subject *s);
} parts[] = {
    {"delta", 2, uses_delta},     {"track", 2, uses_track},       {"clip", 2, uses_clip},
    {"warmup", 2, uses_warmup},   {"interval", 2, uses_interval}, {"grid", 2, uses_grid},
    {"dag", 2, uses_branches},    {"chain", 2, uses_chain},       {"ref", 4, uses_reference},
    {"s5", 2, uses_s5},           {"tags", 2, uses_tags},         {"tf32", 2, uses_tf32},
    {"flow", 2, uses_flow},       {"biases", 2, uses_biases},     {"decoded", 2, uses_decoded},
    {"stacked", 2, uses_stacked}, {"order", 2, uses_order},       {"wrapper", 2, uses_wrapper},
    {"mlstm", 2, uses_mlstm},
};

enum status numerics_of(const struct config *config, const struct task *task, const struct model_choice *model,
                        char *text, size_t size, struct error *e) {
    const struct subject subject = {config, task, model};
    size_t used = (size_t)snprintf(text, size, "%s", NUMERICS_BASE);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (!parts[i].used(&subject)) continue;
        used += (size_t)snprintf(text + used, size - used, "+%s.%d", parts[i].name, parts[i].version);
        if (used >= size)
            return fail(e, ST_FAIL, "the numerics version of a run has more than %zu characters", size - 1);
    }
    return ST_OK;
}

enum status numerics_of_labels(const struct config *config, const char *task_label, const char *model_label, char *text,
                               size_t size, struct error *e) {
    struct task_choice *task = calloc(1, sizeof *task);
    struct model_choice *model = calloc(1, sizeof *model);
    enum status status = task && model ? ST_OK : fail(e, ST_MEMORY, "no memory for the options of task and model");
    if (status == ST_OK) status = task_parse(task, task_label, e);
    if (status == ST_OK) status = model_parse(model, model_label, e);
    if (status == ST_OK) status = numerics_of(config, task->task, model, text, size, e);
    free(task);
    free(model);
    return status;
}

enum status numerics_of_stored(const char *stored, char *text, size_t size, struct error *e) {
    struct config config;
    char task[LABEL_TEXT] = "", model[LABEL_TEXT] = "";
    TRY(config_default(&config, e));
    TRY(config_read_text(stored, "the configuration", &config, task, model, e));
    return numerics_of_labels(&config, task, model, text, size, e);
}
