/* layers.c - `lrnn perf layers`: one layer of every mixer, forward and backward, as a Markdown table of tokens/s. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/graph_walk.h"
#include "core/philox.h"
#include "harness/perf/perf.h"
#include "harness/store/clock.h"
#include "harness/store/machine.h"
#include "harness/store/record.h"
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

/* Median seconds of forward and backward; the first walk warms up. */
static double time_layer(struct layer_run *r, double seconds) {
    struct samples *s = calloc(1, sizeof *s);
    double begin = time_now_s();
    if (!s) return NAN;
    for (int i = 0; i < 3 || (i < PERF_SAMPLES && time_now_s() - begin < seconds); i++) {
        double start = time_now_s();
        graph_forward(&r->graph, &r->state);
        graph_backward(&r->graph, &r->state);
        if (i > 0) samples_add(s, time_now_s() - start);
    }
    double median = samples_median(s);
    free(s);
    return median;
}

/* One cell; *params receives the trained parameters. NAN and the sentence in *e where the mixer does not fit. */
static double measure_cell(const char *model, struct dims d, double seconds, int64_t *params, struct error *e) {
    struct layer_run *r = calloc(1, sizeof *r);
    double spent = NAN;
    if (!r) return NAN;
    if (open_layer(r, model, d, e) == ST_OK) {
        *params = params_trained(&r->params);
        spent = time_layer(r, seconds);
    }
    graph_free(&r->graph);
    params_free(&r->params);
    free(r);
    return spent;
}

enum status perf_layers(const struct perf_layers_request *q, struct error *e) {
    struct machine machine;
    struct error why = {ST_OK, ""};
    machine_read(&machine);
    printf(
        "# Speed of the mixers\n\n`./lrnn perf layers --seconds %g --threads %d > docs/performance.md`: %s, " REAL_NAME
        ", %d thread%s: one layer, forward and backward,\nD = %" PRId64 ", batch %" PRId64
        ", default options; tokens a second, median. A tree's tokens are its leaves.\n\n",
        q->seconds, q->threads, machine.cpu, q->threads, q->threads == 1 ? "" : "s", q->dim, q->batch);
    printf("| mixer | parameters |");
    for (int t = 0; t < N_LENGTHS; t++) printf(" T = %" PRId64 " |", lengths[t]);
    printf("\n|---|---:|");
    for (int t = 0; t < N_LENGTHS; t++) printf("---:|");
    printf("\n");
    for (const struct model *const *m = model_list(); *m; m++) {
        if ((*m)->hidden) continue;
        double spent[N_LENGTHS];
        int64_t params = 0;
        for (int t = 0; t < N_LENGTHS; t++)
            spent[t] = measure_cell((*m)->name, (struct dims){q->batch, lengths[t], q->dim}, q->seconds, &params, &why);
        printf("| %s | %" PRId64 " |", (*m)->name, params);
        for (int t = 0; t < N_LENGTHS; t++) {
            if (isfinite(spent[t]))
                printf(" %.3gk |", (double)(q->batch * lengths[t]) / spent[t] / 1e3);
            else
                printf(" - |");
        }
        printf("\n");
        fflush(stdout);
    }
    if (why.status != ST_OK) printf("\n-: %s\n", why.text);
    (void)e;
    return ST_OK;
}
