/* kernel_run.c - see kernel_run.h. */
#include "harness/perf/kernel_run.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/graph_walk.h"
#include "core/philox.h"

/* Fills with values in [-0.7, 0.7), so that products of transitions stay bounded, also complex ones. */
static void fill_input(const struct tensor *t, int i, void *values) {
    struct rng r = rng_at(1, STREAM_TEST, (uint64_t)i);
    for (int64_t j = 0; j < tensor_count(t); j++) {
        if (t->dtype == DT_I32)
            ((int32_t *)values)[j] = (int32_t)rng_below(&r, (uint64_t)t->limit);
        else
            ((real *)values)[j] = (real)(1.4 * rng_uniform(&r) - 0.7);
    }
}

static void fill_gradient(const struct tensor *t, real *values) {
    struct rng r = rng_at(2, STREAM_TEST, 0);
    for (int64_t j = 0; j < tensor_count(t); j++) values[j] = (real)(2 * rng_uniform(&r) - 1);
}

/* Fills the inputs through host memory, wherever the graph is. */
static enum status fill(struct graph *g, struct error *e) {
    size_t bytes = g->root ? tensor_bytes(g->root) : 1;
    for (int i = 0; i < g->n_tensors; i++)
        if (tensor_bytes(g->tensors[i]) > bytes) bytes = tensor_bytes(g->tensors[i]);
    void *values = malloc(bytes);
    if (!values) return fail(e, ST_MEMORY, "no memory for inputs of %zu MB", bytes >> 20);
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i];
        if (t->producer >= 0 || t->base || t->param) continue;
        fill_input(t, i, values);
        graph_put(g, t, values);
    }
    if (g->root && tensor_count(g->root) > 1) { /* a loss has gradient 1, which graphs set themselves */
        fill_gradient(g->root, values);
        place_put(g->options.place, g->root->grad, values, tensor_bytes(g->root));
    }
    free(values);
    return ST_OK;
}

static enum status build(struct kernel_run *r, const struct op *op, const struct op_sizes *sizes, struct error *e) {
    const struct error *misfit = &r->graph.error;
    op_sizes_format(op, sizes, r->shape, sizeof r->shape);
    if (!op->build(&r->graph, sizes))
        return fail(e, ST_USAGE, "%s has no variant %" PRId64 ", expected 0 to %d", op->name, sizes->variant,
                    op_variants(op) - 1);
    return misfit->status == ST_OK ? ST_OK : fail(e, misfit->status, "%s", misfit->text);
}

enum status kernel_run_open(struct kernel_run *r, const struct op *op, const struct kernel *kernel,
                            const struct op_sizes *sizes, const char **why, struct error *e) {
    struct graph_options options = {.precision = r->precision,
                                    .training = true,
                                    .place = r->place,
                                    .kernel = kernel ? kernel->name : NULL,
                                    .kernels = kernel_list()};
    *why = NULL;
    r->live = &r->state;
    if (r->place && r->place->device != DEVICE_CPU) {
        TRY(place_reserve(r->place, &r->there, sizeof r->state, e));
        r->live = (struct step_state *)(void *)r->there.base;
    }
    TRY(graph_create(&r->graph, &options, NULL, e));
    TRY(build(r, op, sizes, e));
    for (int i = 0; i < r->graph.n_calls; i++)
        if (r->graph.calls[i].op == op) r->call = &r->graph.calls[i];
    if (!r->call) return fail(e, ST_USAGE, "%s has no call at these sizes", op->name);
    if (kernel && kernel->applicable && !kernel->applicable(r->call, why)) {
        if (!*why) *why = "it does not apply";
        return ST_OK;
    }
    *why = NULL;
    bool backward = kernel_reference(op)->backward && r->call->n_out > 0 && r->call->out[0]->needs_grad;
    if (backward) graph_set_root(&r->graph, r->call->out[0]);
    TRY(graph_plan(&r->graph, e));
    TRY(fill(&r->graph, e));
    r->cost[PASS_FORWARD] = graph_cost(&r->graph, PASS_FORWARD);
    if (backward) r->cost[PASS_BACKWARD] = graph_cost(&r->graph, PASS_BACKWARD);
    r->cost[PASS_BOTH].flops = r->cost[PASS_FORWARD].flops + r->cost[PASS_BACKWARD].flops;
    r->cost[PASS_BOTH].bytes = r->cost[PASS_FORWARD].bytes + r->cost[PASS_BACKWARD].bytes;
    return ST_OK;
}

void kernel_run_sample(struct kernel_run *r) {
    double start = perf_time_s();
    graph_forward(&r->graph, r->live);
    double middle = perf_time_s();
    samples_add(&r->time[PASS_FORWARD], middle - start);
    if (!r->graph.root) return;
    graph_backward(&r->graph, r->live);
    double end = perf_time_s();
    samples_add(&r->time[PASS_BACKWARD], end - middle);
    samples_add(&r->time[PASS_BOTH], end - start);
}

void kernel_run_forward(void *run) {
    struct kernel_run *r = run;
    graph_forward(&r->graph, r->live);
}

void kernel_run_close(struct kernel_run *r) {
    graph_free(&r->graph);
    arena_free(&r->there);
}
