/* op_run.c - see op_run.h. */
#include "tests/lib/op_run.h"

#include "core/graph_walk.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- one example ------------------------------------------------------------------------------------------------- */

int op_count(void) {
    int n = 0;
    while (op_list()[n]) n++;
    return n;
}

bool differentiable(const struct op *op) {
    return kernel_reference(op)->backward != NULL;
}

bool input_has_grad(const struct call *c, int i) {
    return c->in[i] && c->in[i]->needs_grad && !(c->op->no_grad_in >> i & 1);
}

unsigned real_outputs(const struct call *c) {
    unsigned bits = 0;
    for (int j = 0; j < c->n_out; j++)
        if (c->out[j]->dtype == DT_REAL && c->out[j]->needs_grad) bits |= 1u << j;
    return bits;
}

static struct tensor *like(struct graph *g, const char *name, const struct tensor *t) {
    return graph_input(g, name, t->rank, t->dims, false);
}

struct call *imitate(struct graph *g, const struct imitation *like) {
    const struct call *c = like->of;
    g->options.precision = c->precision;
    struct tensor *in[OP_MAX_IN] = {0};
    for (int i = 0; i < c->n_in; i++) {
        const struct tensor *t = c->in[i];
        if (!t) continue;
        int64_t dims[TENSOR_MAX_RANK];
        for (int a = 0; a < t->rank; a++) dims[a] = a == 0 && (like->cut >> i & 1) ? like->batch : t->dims[a];
        in[i] = t->dtype == DT_REAL ? graph_input(g, "in", t->rank, dims, t->needs_grad)
                                    : graph_input_ids(g, "in", t->rank, dims, t->limit, t->ignorable);
    }
    return graph_call(g, c->op, c->attr, c->attr_bytes, in, c->n_in);
}

static struct call *call_of(struct graph *g, const struct op *op) {
    for (int i = g->n_calls - 1; i >= 0; i--)
        if (g->calls[i].op == op) return &g->calls[i];
    ck_abort_msg("%s makes no call of itself", op->name);
    return NULL;
}

static void build_loss(struct op_run *r) {
    struct call *c = r->call;
    struct tensor *loss = NULL;
    for (int j = 0; j < c->n_out; j++) {
        tensor_keep(c->out[j]);
        if (!(r->what.outputs >> j & 1)) continue;
        r->weight_out[j] = like(&r->g, "w", c->out[j]);
        loss = dot(&r->g, c->out[j], r->weight_out[j], loss);
    }
    for (int i = 0; i < c->n_in && r->what.prefilled; i++) {
        if (!input_has_grad(c, i)) continue;
        r->weight_in[i] = like(&r->g, "w_in", c->in[i]);
        loss = dot(&r->g, c->in[i], r->weight_in[i], loss);
    }
    graph_set_root(&r->g, loss);
}

/* --- tensors elsewhere -------------------------------------------------------------------------------------------- */

/* After planning: host copies for all tensors of their own, and the pointers lead there. */
static void come_home(struct op_run *r) {
    struct error e = {0};
    ck_assert_int_le(r->g.n_tensors, RUN_TENSORS);
    ck_assert_msg(place_reserve(r->what.place, &r->state_there, sizeof r->state, &e) == ST_OK, "%s", e.text);
    for (int i = 0; i < r->g.n_tensors; i++) {
        struct tensor *t = r->g.tensors[i];
        if (t->base) continue;
        r->data_there[i] = t->data;
        r->grad_there[i] = t->grad;
        t->data = r->data_here[i] = calloc(1, tensor_bytes(t));
        if (t->grad) t->grad = r->grad_here[i] = calloc(1, tensor_bytes(t));
        ck_assert(t->data && (t->grad || !r->grad_there[i]));
    }
}

static void point(struct op_run *r, void *const *data, real *const *grad) {
    for (int i = 0; i < r->g.n_tensors; i++) {
        struct tensor *t = r->g.tensors[i], *base = tensor_base(t);
        t->data = data[base->id];
        t->grad = grad[base->id];
    }
}

/* Before a walk: what the host filled goes there. Returns the step state there. */
static struct step_state *leave_home(struct op_run *r) {
    const struct place *p = r->what.place;
    for (int i = 0; i < r->g.n_tensors; i++) {
        const struct tensor *t = r->g.tensors[i];
        if (!t->base && t->producer < 0) place_put(p, r->data_there[i], r->data_here[i], tensor_bytes(t));
    }
    place_put(p, r->state_there.base, &r->state, sizeof r->state);
    point(r, r->data_there, r->grad_there);
    return (struct step_state *)(void *)r->state_there.base;
}

static void return_home(struct op_run *r) {
    const struct place *p = r->what.place;
    struct error e = {0};
    for (int i = 0; i < r->g.n_tensors; i++) {
        const struct tensor *t = r->g.tensors[i];
        if (t->base) continue;
        place_get(p, r->data_here[i], r->data_there[i], tensor_bytes(t));
        if (r->grad_there[i]) place_get(p, r->grad_here[i], r->grad_there[i], tensor_bytes(t));
    }
    place_get(p, &r->state, r->state_there.base, sizeof r->state);
    ck_assert_msg(place_wait(p, &e) == ST_OK, "%s", e.text);
    point(r, r->data_here, r->grad_here);
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

static bool is_filled(const struct call *c, int i) {
    const struct tensor *t = c->in[i];
    return t && t->producer < 0 && !t->base;
}

/* Element k of input i as the test fills it. An optimiser's moments are not negative. */
static double input_value(const struct op_run *r, int i, int64_t k) {
    const struct tensor *t = r->call->in[i];
    double value = fill_value(t, r->what.draw, r->what.fill, !r->differentiable, k);
    if (t->dtype != DT_REAL) return value;
    return (real)((r->what.scale > 0 ? r->what.scale : 1) * value);
}

static void fill_run(struct op_run *r) {
    fill_inputs(&r->g, r->what.fill, !r->differentiable);
    for (int i = 0; i < r->call->n_in && (r->what.scale > 0 || r->what.draw > 0); i++) {
        struct tensor *t = r->call->in[i];
        for (int64_t k = 0; is_filled(r->call, i) && k < tensor_count(t); k++) set_value(t, k, input_value(r, i, k));
    }
}

const char *trial_sizes(const struct trial_op *what) {
    static char text[256];
    op_sizes_format(what->op, &what->sizes, text, sizeof text);
    return text;
}

static void build(struct graph *g, const struct trial_op *what) {
    if (what->like)
        imitate(g, what->like);
    else
        ck_assert_msg((what->build ? what->build : what->op->build)(g, &what->sizes), "%s has no variant %d",
                      what->op->name, (int)what->sizes.variant);
    ck_assert_msg(g->error.status == ST_OK, "%s %s: %s", what->op->name, trial_sizes(what), g->error.text);
}

/* Every real input of the graph up or down by its last bit, by draw number `nudge`. */
static void nudge_inputs(struct graph *g, int nudge) {
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i];
        struct rng rng = rng_at((uint64_t)i, STREAM_TEST, (uint64_t)nudge);
        if (t->producer >= 0 || t->base || t->dtype != DT_REAL) continue;
        for (int64_t k = 0; k < tensor_count(t); k++) {
            double up = rng_u32(&rng) & 1 ? REAL_EPSILON : -REAL_EPSILON;
            tensor_real(t)[k] = (real)((double)tensor_real(t)[k] * (1 + up));
        }
    }
}

bool run_open(struct op_run *r, const struct trial_op *what) {
    *r = (struct op_run){.what = *what, .differentiable = differentiable(what->op), .state = first_state()};
    open_graph(&r->g, NULL, true, what->guards, what->kernel);
    r->g.options.place = what->place;
    build(&r->g, what);
    r->call = call_of(&r->g, what->op);
    if (r->differentiable) {
        unsigned all = real_outputs(r->call);
        ck_assert_msg(all & 1, "%s %s: no gradient flows into output 0", what->op->name, trial_sizes(what));
        if (what->outputs & ~all) {
            graph_free(&r->g);
            return false;
        }
        build_loss(r);
    }
    plan_graph(&r->g);
    if (what->place) come_home(r);
    fill_run(r);
    if (what->nudge > 0) nudge_inputs(&r->g, what->nudge);
    return true;
}

void run_walk(struct op_run *r) {
    struct step_state *state = r->what.place ? leave_home(r) : &r->state;
    graph_forward(&r->g, state);
    if (r->differentiable) graph_backward(&r->g, state);
    if (r->what.place) return_home(r);
}

void run_close(struct op_run *r) {
    for (int i = 0; i < RUN_TENSORS; i++) {
        free(r->data_here[i]);
        free(r->grad_here[i]);
    }
    arena_free(&r->state_there);
    graph_free(&r->g);
}

/* Other ops may be called too, which must run on the same device. */
static bool others_have_kernels(const struct graph *g, enum device device) {
    for (int i = 0; i < g->n_calls; i++) {
        bool found = false;
        for (const struct kernel *const *k = g->options.kernels; *k && !found; k++)
            found = (*k)->op == g->calls[i].op && (*k)->device == device;
        if (!found) return false;
    }
    return true;
}

bool kernel_applies(const struct kernel *k, const struct trial_op *what) {
    struct graph g;
    const char *why = "";
    open_graph(&g, NULL, true, false, "reference");
    g.options.place = what->place;
    build(&g, what);
    bool applies = (!k->applicable || k->applicable(call_of(&g, what->op), &why)) && others_have_kernels(&g, k->device);
    graph_free(&g);
    return applies;
}

unsigned output_bits(const struct op *op, const struct op_sizes *s) {
    struct graph g;
    struct trial_op what = {.op = op, .sizes = *s};
    if (!differentiable(op)) return 1;
    open_graph(&g, NULL, true, false, "reference");
    build(&g, &what);
    unsigned bits = real_outputs(call_of(&g, op));
    graph_free(&g);
    return bits;
}

int run_input_changed(const struct op_run *r) {
    const struct call *c = r->call;
    for (int i = 0; i < c->n_in; i++) {
        if (!is_filled(c, i) || (c->op->mutates >> i & 1)) continue;
        for (int64_t k = 0; k < tensor_count(c->in[i]); k++)
            if (value_at(c->in[i], k) != input_value(r, i, k)) return i;
    }
    return -1;
}
