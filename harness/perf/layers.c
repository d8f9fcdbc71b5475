/* layers.c - `lrnn perf layers`: one layer of every mixer, forward and backward, as a Markdown table of tokens/s and as
 * rows of perf.csv. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/graph_walk.h"
#include "core/philox.h"
#include "harness/perf/perf.h"
#include "harness/perf/sitting.h"
#include "harness/store/machine.h"
#include "harness/store/machine_log.h"
#include "harness/store/perf_log.h"
#include "harness/store/record.h"
#include "kernels/kernel.h"
#include "models/model.h"

static const int64_t lengths[] = {64, 512, 2048};
#define N_LENGTHS (int)(sizeof lengths / sizeof lengths[0])

struct layer_run {
    struct params params;
    struct graph graph;
    struct step_state state;
};

static void fill_normal(struct tensor *t, real *data, uint64_t stream) {
    struct rng r = rng_at(1, STREAM_TEST, stream);
    for (int64_t i = 0; i < tensor_count(t); i++) data[i] = (real)rng_normal(&r);
}

/* The mixer alone on x (B,nodes,D), its parameters as at the start of training. */
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
    fill_normal(x, tensor_real(x), 0);
    fill_normal(y, y->grad, 1);
    return ST_OK;
}

static enum status walk(void *context, struct error *e) {
    struct layer_run *r = context;
    (void)e;
    graph_forward(&r->graph, &r->state);
    graph_backward(&r->graph, &r->state);
    return ST_OK;
}

/* One number; *params receives the trained parameters. A mixer that does not fit: the sentence is in *e. */
static enum status measure_cell(const char *model, struct dims d, double seconds, int64_t *params, struct sitting *s,
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

/* The number as a row of OUT/perf.csv, of which tools/layers_table.awk makes results/tables/speed.md. */
static enum status keep(const struct perf_layers_request *q, const char *model, int64_t T, int64_t params,
                        const struct sitting *s, struct error *e) {
    struct perf_row row = {.bench = "layer", .pass = "fwd+bwd"};
    struct machine m;
    if (!*q->out) return ST_OK;
    machine_read(&m);
    sitting_describe(&row, &m, (int)q->threads);
    snprintf(row.shape, sizeof row.shape, "%.100s B%" PRId64 " T%" PRId64 " D%" PRId64 " params%" PRId64, model,
             q->batch, T, q->dim, params);
    sitting_fill(s, (double)(q->batch * T), &row);
    TRY(machines_export(q->out, &m, e));
    return perf_append(q->out, &row, e);
}

/* A row of the page: a mixer at every length. */
static enum status print_mixer(const struct perf_layers_request *q, const char *model, struct error *misfit,
                               struct error *e) {
    int64_t params = 0;
    struct sitting s[N_LENGTHS];
    bool fits[N_LENGTHS];
    for (int t = 0; t < N_LENGTHS; t++) {
        struct dims d = {.B = q->batch, .T = lengths[t], .D = q->dim};
        fits[t] = measure_cell(model, d, q->seconds, &params, &s[t], misfit) == ST_OK;
        if (fits[t]) TRY(keep(q, model, lengths[t], params, &s[t], e));
    }
    printf("| %s | %" PRId64 " |", model, params);
    for (int t = 0; t < N_LENGTHS; t++) {
        if (fits[t])
            printf(" %.3gk%s |", (double)(q->batch * lengths[t]) / s[t].median / 1e3,
                   sitting_is_quiet(&s[t]) ? "" : "!");
        else
            printf(" - |");
    }
    printf("\n");
    fflush(stdout);
    return ST_OK;
}

enum status perf_layers(const struct perf_layers_request *q, struct error *e) {
    struct machine machine;
    struct error why = {ST_OK, ""};
    machine_read(&machine);
    printf("%s, " REAL_NAME ", %d thread%s: one layer, forward and backward, D = %" PRId64 ", batch %" PRId64
           ", default options;\ntokens a second, median; ! where the machine was not quiet. A tree's tokens are its "
           "leaves.\n\n",
           machine.cpu, (int)q->threads, q->threads == 1 ? "" : "s", q->dim, q->batch);
    printf("| mixer | parameters |");
    for (int t = 0; t < N_LENGTHS; t++) printf(" T = %" PRId64 " |", lengths[t]);
    printf("\n|---|---:|");
    for (int t = 0; t < N_LENGTHS; t++) printf("---:|");
    printf("\n");
    for (const struct model *const *m = model_list(); *m; m++)
        if (!(*m)->hidden) TRY(print_mixer(q, (*m)->name, &why, e));
    if (why.status != ST_OK) printf("\n-: %s\n", why.text);
    return ST_OK;
}
