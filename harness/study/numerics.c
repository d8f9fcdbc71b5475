/* numerics.c - see numerics.h. */
#include "harness/study/numerics.h"

#include <stdlib.h>
#include <string.h>

#include "harness/study/study.h"
#include "harness/study/graphs.h"
#include "kernels/kernel.h"

/* Appends "+NAME.VERSION" if the version was raised and `text` does not have it yet. */
static enum status add(const char *name, int version, char *text, size_t size, struct error *e) {
    char part[NUMERICS_TEXT];
    if (version <= 1) return ST_OK;
    int length = snprintf(part, sizeof part, "+%s.%d", name, version);
    for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
        if (at[length] == '+' || at[length] == 0) return ST_OK;
    size_t used = strlen(text);
    if (used + (size_t)length < size && (size_t)length < sizeof part) {
        memcpy(text + used, part, (size_t)length + 1);
        return ST_OK;
    }
    return fail(e, ST_FAIL, "the numerics version %s%s has more than %zu characters; raise NUMERICS_BASE instead", text,
                part, size - 1);
}

enum status numerics_add_graph(const struct graph *g, char *text, size_t size, struct error *e) {
    const char *forced = g->options.kernel;
    bool reference = forced && strcmp(forced, "reference") == 0;
    for (int i = 0; i < g->n_calls; i++) {
        const struct op *op = g->calls[i].op;
        TRY(add(op->name, op->version, text, size, e));
        for (const struct kernel *const *k = g->options.kernels; *k; k++)
            if ((*k)->op == op && (reference ? (*k)->reference : (*k)->device == graph_device(g)))
                TRY(add((*k)->name, (*k)->version, text, size, e));
    }
    return ST_OK;
}

static bool any_op_or_kernel(void) {
    bool any = false;
    for (const struct op *const *op = op_list(); *op; op++) any = any || (*op)->version > 1;
    for (const struct kernel *const *k = kernel_list(); *k; k++) any = any || (*k)->version > 1;
    return any;
}

static bool any_net(void) {
    bool any = false;
    for (const struct model *const *m = model_list(); *m; m++) any = any || (*m)->version > 1 || (*m)->undecayed;
    for (int kind = 0; kind < BACKBONE_COUNT; kind++)
        any = any || backbone_traits(&(struct backbone){.kind = kind})->version > 1;
    return any;
}

/* Builds the graphs of the step and of the update. Their calls are all that a training computes. */
static enum status add_graphs(const struct spec *s, const struct shapes *shapes, char *text, size_t size,
                              struct error *e) {
    struct place place = {0};
    const struct graph_source from = {s, shapes, &place};
    struct params params = {0};
    struct graph train = {0}, update = {0};
    struct step_nets nets;
    enum status status = place_parse(s->config.device, &place.device, &place.index, e);
    if (status == ST_OK) status = params_create(&params, e);
    if (status == ST_OK) status = graphs_build_training(&train, &from, &params, &nets, e);
    if (status == ST_OK) status = graphs_build_update(&update, &from, &params, NULL, e);
    if (status == ST_OK) status = numerics_add_graph(&train, text, size, e);
    if (status == ST_OK) status = numerics_add_graph(&update, text, size, e);
    graph_free(&train);
    graph_free(&update);
    params_free(&params);
    return status;
}

enum status setup_numerics(const struct spec *s, const struct shapes *shapes, char *text, size_t size,
                           struct error *e) {
    char backbone[OPTION_TEXT + 1];
    const struct model *model = s->model.model;
    const struct backbone net = backbone_resolved(&s->config.net, model);
    snprintf(text, size, "%s", NUMERICS_BASE);
    TRY(add(model->name, model->version, text, size, e));
    option_format_value(option_find(backbone_options, "backbone"), &s->config.net, backbone, sizeof backbone);
    TRY(add(backbone, backbone_traits(&net)->version, text, size, e));
    if (s->config.decay_all == DECAY_AS_MIXER && model->undecayed)
        TRY(add("decay-all", DECAY_ALL_VERSION, text, size, e));
    return any_op_or_kernel() ? add_graphs(s, shapes, text, size, e) : ST_OK;
}

enum status numerics_of_labels(const struct config *config, const char *task_label, const char *model_label, char *text,
                               size_t size, struct error *e) {
    struct setup *s = setup_make(config, task_label, model_label, e);
    if (!s) return e ? e->status : ST_USAGE;
    enum status status = text_copy(s->id.numerics, text, size, e);
    setup_free(s);
    return status;
}

enum status numerics_of_stored(const char *stored, char *text, size_t size, struct error *e) {
    struct config config;
    char task[LABEL_TEXT] = "", model[LABEL_TEXT] = "";
    if (!any_op_or_kernel() && !any_net()) return text_copy(NUMERICS_BASE, text, size, e);
    TRY(config_default(&config, e));
    TRY(config_read_text(stored, "the configuration", &config, task, model, e));
    struct label mixer;
    bool unknown = label_parse(&mixer, "model", model, NULL) == ST_OK && !model_find(label_name(&mixer));
    /* the mixer is unknown, so this program has no versions for it */
    if (unknown) return text_copy(NUMERICS_BASE, text, size, e);
    return numerics_of_labels(&config, task, model, text, size, e);
}
