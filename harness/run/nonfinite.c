/* nonfinite.c - finds the first tensor that is not finite: computes a step once more and checks each op. */
#include <math.h>

#include "core/graph_walk.h"
#include "harness/run/trainer.h"

#define FINITE_AT_ONCE 16384 /* number of values that are fetched together */

static bool all_finite(const struct trainer *t, const real *x, int64_t n) {
    real part[FINITE_AT_ONCE];
    for (int64_t at = 0; at < n; at += FINITE_AT_ONCE) {
        int64_t count = n - at < FINITE_AT_ONCE ? n - at : FINITE_AT_ONCE;
        place_get(&t->place, part, x + at, (size_t)count * sizeof *part);
        for (int64_t i = 0; i < count; i++)
            if (!isfinite(part[i])) return false;
    }
    return true;
}

/* Names the first trained parameter whose part of an array is not finite. Running statistics are not checked: they are
 * written by an op before the step stops, and then this op is named. */
static const char *bad_param(const struct trainer *t, const real *array) {
    for (int i = 0; i < t->params.n; i++) {
        const struct param *p = &t->params.list[i];
        if (p->spec.group != PARAM_CONST && !all_finite(t, array + p->offset, p->count)) return p->name;
    }
    return NULL;
}

/* Names the input of a net if it is real-valued and not finite; else NULL. */
static const char *bad_input(const struct trainer *t, const struct net *net) {
    const struct tensor *x = net->input;
    bool values = x && x->dtype == DT_REAL;
    return values && !all_finite(t, tensor_real(x), tensor_count(x)) ? x->name : NULL;
}

/* Names the first tensor of the current step that is not finite. It checks the inputs, then each op's output, then each
 * gradient. */
static const char *bad_in_step(struct trainer *t) {
    struct exec x = {.place = &t->place, .training = true, .state = t->live};
    batches_next(&t->batches, t->state.step);
    batches_take(&t->batches, t->live);
    const char *bad = bad_input(t, &t->train_net);
    if (!bad) bad = bad_input(t, &t->second_net);
    if (bad) return bad;
    for (struct call *c = t->train.calls; c < t->train.calls + t->train.n_calls; c++) {
        c->kernel->forward(c, &x);
        for (int j = 0; j < c->n_out; j++)
            if (c->out[j]->dtype == DT_REAL && !all_finite(t, tensor_real(c->out[j]), tensor_count(c->out[j])))
                return c->out[j]->name;
    }
    graph_backward(&t->train, t->live);
    return bad_param(t, t->params.grad);
}

const char *trainer_find_nonfinite(struct trainer *t, int64_t step) {
    int64_t reached = t->state.step;
    const char *bad = bad_param(t, t->params.value);
    if (bad) return bad;
    t->state.step = step; /* dropout's masks depend on the step, and so does the batch on a device */
    trainer_set_state(t);
    bad = bad_in_step(t);
    t->state.step = reached;
    trainer_set_state(t);
    return bad;
}
