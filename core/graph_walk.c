/* graph_walk.c - the two walks over a planned graph; see graph_walk.h. */
#include "core/graph_walk.h"

void graph_put(struct graph *g, struct tensor *t, const void *from) {
    place_put(g->options.place, t->data, from, tensor_bytes(t));
}

void graph_get(const struct graph *g, const struct tensor *t, void *to) {
    place_get(g->options.place, to, t->data, tensor_bytes(t));
}

void graph_get_grad(const struct graph *g, const struct tensor *t, real *to) {
    place_get(g->options.place, to, t->grad, (size_t)tensor_count(t) * sizeof(real));
}

static struct exec exec_of(const struct graph *g, struct step_state *state) {
    return (struct exec){.place = g->options.place, .training = g->options.training, .state = state};
}

static void tell(const struct graph *g, const struct call *c, enum pass pass) {
    if (g->plan->watch) g->plan->watch(g->plan->watcher, c, pass);
}

void graph_forward(struct graph *g, struct step_state *state) {
    struct exec x = exec_of(g, state);
    for (int i = 0; i < g->n_calls; i++) {
        tell(g, &g->calls[i], PASS_FORWARD);
        if (g->options.guards) guard_before(g, i);
        g->calls[i].kernel->forward(&g->calls[i], &x);
        if (g->options.guards) guard_after(g, i, i);
    }
    tell(g, NULL, PASS_FORWARD);
}

/* Writes 1 into the gradient of a scalar root, and 0 into the gradients of parameters that the root does not depend on.
 */
static void seed_gradients(struct graph *g) {
    const struct place *place = g->options.place;
    if (tensor_count(g->root) == 1 && !graph_keeps_root(g)) place_fill(place, g->root->grad, 1, 1);
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i];
        if (t->param && t->param->spec.group != PARAM_CONST && !t->plan.has_grad)
            place_set(place, g->params->grad + t->param->offset, 0, (size_t)t->param->count * sizeof(real));
    }
}

/* Computes the gradients that calls have left for the end of the walk. For a watcher this is work of the first of them.
 */
static void finish(struct graph *g, const struct exec *x) {
    const struct deferred *d = &g->plan->deferred;
    if (d->n == 0) return;
    tell(g, d->calls[0], PASS_BACKWARD);
    if (g->options.guards) guard_before(g, 2 * g->n_calls);
    d->calls[0]->kernel->finish(d, x);
    if (g->options.guards) guard_after(g, 2 * g->n_calls, d->calls[0]->index);
}

void graph_backward(struct graph *g, struct step_state *state) {
    struct exec x = exec_of(g, state);
    seed_gradients(g);
    for (int i = g->n_calls - 1; i >= 0; i--) {
        struct call *c = &g->calls[i];
        if (!c->plan.active) continue;
        tell(g, c, PASS_BACKWARD);
        int time = graph_backward_time(g, i);
        if (g->options.guards) guard_before(g, time);
        if (c->plan.zero_dout) place_set(x.place, c->out[0]->grad, 0, tensor_bytes(c->out[0]));
        c->kernel->backward(c, &x);
        if (g->options.guards) guard_after(g, time, i);
    }
    finish(g, &x);
    tell(g, NULL, PASS_BACKWARD);
}
