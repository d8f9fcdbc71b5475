/* mixers.c - Markdown tables of every mixer: `lrnn perf layers` times one layer of each, `lrnn perf launches` counts
 * what a captured training step of each queues on a device. A count is the same on CUDA on the host. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_plan.h"
#include "core/graph_walk.h"
#include "core/philox.h"
#include "harness/perf/measure.h"
#include "harness/perf/perf.h"
#include "harness/run/trainer.h"
#include "harness/study/plan.h"
#include "kernels/kernel.h"
#include "models/model.h"

/* --- layers ------------------------------------------------------------------------------------------------------- */

static const int64_t lengths[] = {64, 512, 2048};
#define N_LENGTHS (int)(sizeof lengths / sizeof lengths[0])

struct layer_run {
    struct params params;
    struct graph graph;
    struct step_state state;
};

/* Builds only the mixer on x (B,nodes,D), with its initial parameters, random x and random output gradient. */
static enum status open_layer(struct layer_run *r, const char *model, struct dims tokens, struct error *e) {
    struct graph_options options = {.training = true, .kernels = kernel_list()};
    struct model_choice choice;
    TRY(model_parse(&choice, model, e));
    TRY(model_fit(&choice, &tokens, e));
    const struct dims d = choice.dims;
    TRY(params_create(&r->params, e));
    TRY(graph_create(&r->graph, &options, &r->params, e));
    struct tensor *x = graph_input(&r->graph, "x", 3, (int64_t[]){d.B, d.T, d.D}, true);
    struct tensor *y = choice.model->build(choice.inst, &r->graph, x);
    if (r->graph.error.status != ST_OK) return fail(e, r->graph.error.status, "%s", r->graph.error.text);
    graph_set_root(&r->graph, y);
    TRY(params_reserve(&r->params, true, e));
    TRY(graph_plan(&r->graph, e));
    params_init(&r->params, 1);
    struct rng for_x = rng_at(1, STREAM_TEST, 0), for_gradient = rng_at(1, STREAM_TEST, 1);
    real *values = tensor_real(x);
    for (int64_t i = 0; i < tensor_count(x); i++) values[i] = (real)rng_normal(&for_x);
    for (int64_t i = 0; i < tensor_count(y); i++) y->grad[i] = (real)rng_normal(&for_gradient);
    return ST_OK;
}

static enum status walk(void *context, struct error *e) {
    struct layer_run *r = context;
    (void)e;
    graph_forward(&r->graph, &r->state);
    graph_backward(&r->graph, &r->state);
    return ST_OK;
}

/* Measures a mixer at one length. *params: its number of trained parameters. Errors: the mixer does not fit. */
static enum status measure_layer(const char *model, struct dims d, double seconds, int64_t *params, struct sitting *s,
                                 struct error *e) {
    struct layer_run *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for a layer of %s", model);
    enum status status = open_layer(r, model, d, e);
    if (status == ST_OK) {
        *params = params_trained(&r->params);
        status = sitting_run_quiet(s, walk, r, seconds, e);
    }
    graph_free(&r->graph);
    params_free(&r->params);
    free(r);
    return status;
}

/* Prints the row of a mixer, and appends each number to OUT/perf.csv, from which tools/layers_table.awk makes
 * results/tables/speed.md. *misfit says why the mixer does not fit. */
static enum status print_layer(const struct perf_layers_request *q, const char *model, const struct machine *m,
                               struct error *misfit, struct error *e) {
    int64_t params = 0;
    char cells[N_LENGTHS * 32] = "";
    for (int t = 0; t < N_LENGTHS; t++) {
        struct dims d = {.B = q->batch, .T = lengths[t], .D = q->dim};
        struct perf_row row = {.bench = "layer", .pass = "fwd+bwd"};
        struct sitting s;
        double tokens = (double)(q->batch * lengths[t]);
        size_t used = strlen(cells);
        sitting_describe(&row, m, (int)q->threads);
        if (measure_layer(model, d, q->seconds, &params, &s, misfit) != ST_OK) {
            snprintf(cells + used, sizeof cells - used, " - |");
            continue;
        }
        snprintf(cells + used, sizeof cells - used, " %.3gk%s |", tokens / s.median / 1e3,
                 sitting_is_quiet(&s) ? "" : "!");
        snprintf(row.shape, sizeof row.shape, "%.100s B%" PRId64 " T%" PRId64 " D%" PRId64 " params%" PRId64, model,
                 q->batch, lengths[t], q->dim, params);
        sitting_fill(&s, tokens, &row);
        if (*q->out) TRY(sitting_append(q->out, &row, m, e));
    }
    printf("| %s | %" PRId64 " |%s\n", model, params, cells);
    fflush(stdout);
    return ST_OK;
}

enum status perf_layers(const struct perf_layers_request *q, struct error *e) {
    struct machine machine;
    struct error why = {ST_OK, ""};
    machine_read(&machine);
    printf("%s, " REAL_NAME ", %d thread%s: one layer, forward and backward, D = %" PRId64 ", batch %" PRId64
           ", default options;\ntokens a second, median; ! where the machine was not quiet. A tree's tokens are its "
           "leaves.\n\n| mixer | parameters |",
           machine.cpu, (int)q->threads, q->threads == 1 ? "" : "s", q->dim, q->batch);
    for (int t = 0; t < N_LENGTHS; t++) printf(" T = %" PRId64 " |", lengths[t]);
    printf("\n|---|---:|");
    for (int t = 0; t < N_LENGTHS; t++) printf("---:|");
    printf("\n");
    for (const struct model *const *m = model_list(); *m; m++)
        if (!(*m)->hidden) TRY(print_layer(q, (*m)->name, &machine, &why, e));
    if (why.status != ST_OK) printf("\n-: %s\n", why.text);
    return ST_OK;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

/* Counts of one step: training graph forward and backward, the optimiser's graph, and the graph of the resident data.
 * */
struct step_count {
    int64_t calls; /* calls: one per op and pass, the launches if each call were one kernel */
    int64_t launches;
    double scratch; /* bytes of scratch memory of the kernels */
    struct cost cost;
};

static void count_graph(struct step_count *n, const struct graph *g, bool backward) {
    int finish = backward && g->plan ? g->plan->finish_buffer : -1;
    if (finish >= 0) n->scratch += (double)g->plan->buffers[finish].used;
    for (int i = 0; i < g->n_calls; i++) {
        const struct call *c = &g->calls[i];
        bool both = backward && c->plan.active;
        n->calls += 1 + both;
        n->scratch += (double)c->scratch_bytes[PASS_FORWARD] + (both ? (double)c->scratch_bytes[PASS_BACKWARD] : 0);
    }
}

/* Counts the layers that a net needs to have each kind of the model's layers. */
static enum status count_layers(const char *model, int64_t *layers, struct error *e) {
    struct model_choice choice;
    TRY(model_parse(&choice, model, e));
    *layers = choice.model->period ? choice.model->period(choice.inst) : 1;
    if (*layers < 1) *layers = 1; /* setup_make says what is wrong with such options */
    return ST_OK;
}

/* Counts a step of the model on the request's device. Errors: the model does not fit; its step cannot be captured. */
static enum status count_mixer(const struct perf_launches_request *q, const char *model, int64_t layers,
                               struct step_count *n, struct error *e) {
    struct config c;
    char task[64];
    TRY(config_default(&c, e));
    snprintf(task, sizeof task, "s5:length=%" PRId64 ",n_train=%" PRId64, q->length, 4 * q->batch);
    TRY(config_set(&c, "device", q->device, e));
    TRY(config_set(&c, "precision", precision_name((enum precision)q->precision), e));
    c.net.dim = q->dim;
    c.net.layers = layers;
    c.batch = q->batch;
    TRY(config_set(&c, "epochs", "10", e));
    c.quiet = true;
    struct setup *s = setup_make(&c, task, model, e);
    if (!s) return e->status;
    struct trainer *t = trainer_open(trainer_create, s, e);
    enum status status = t ? ST_OK : e->status;
    for (int step = 0; step < 2 && t; step++) trainer_step(t); /* the second step is captured */
    if (t) status = trainer_sync(t, e);
    if (status == ST_OK && !t->capture)
        status = fail(e, ST_DEVICE, "a step cannot be captured: %s", place_capture_failure(&t->place));
    if (status == ST_OK) {
        n->launches = place_capture_launches(&t->place, t->capture);
        n->cost = trainer_step_cost(t);
        count_graph(n, &t->train, true);
        count_graph(n, &t->update, false);
        count_graph(n, &t->batches.taken, false);
    }
    trainer_close(t);
    setup_free(s);
    return status;
}

enum status perf_launches(const struct perf_launches_request *q, struct error *e) {
    static const char *const head =
        "| mixer | ops and passes | launches | bytes, MB | scratch, MB | MFLOP |\n|---|--:|--:|--:|--:|--:|\n";
    struct place place = {0};
    struct error why = {ST_OK, ""};
    TRY(place_open(&place, q->device, e));
    place_close(&place);
    for (const struct model *const *m = model_list(); *m; m++) {
        const char *name = q->model ? q->model : (*m)->name;
        struct step_count n = {0};
        int64_t layers = 1;
        char of[32] = "";
        if ((*m)->hidden && !q->model) continue;
        enum status status = count_layers(name, &layers, &why);
        if (status == ST_OK) status = count_mixer(q, name, layers, &n, &why);
        if (layers > 1) snprintf(of, sizeof of, ", %" PRId64 " layers", layers);
        if (status != ST_OK && q->model) return fail(e, status, "%s", why.text);
        if (m == model_list()) printf("%s", head);
        if (status == ST_OK)
            printf("| %s%s | %" PRId64 " | %" PRId64 " | %.4g | %.3g | %.4g |\n", name, of, n.calls, n.launches,
                   n.cost.bytes / 1e6, n.scratch / 1e6, n.cost.flops / 1e6);
        else
            printf("| %s%s | - | - | - | - | - |\n", name, of);
        fflush(stdout);
        if (q->model) break;
    }
    printf("\n%s, D = %" PRId64 ", batch %" PRId64 ", length %" PRId64 "%s.%s%s\n",
           precision_name((enum precision)q->precision), q->dim, q->batch, q->length,
           q->model ? "" : ", default options", why.status != ST_OK ? " -: " : "", why.status != ST_OK ? why.text : "");
    return ST_OK;
}
