/* check_graph.c - building, the memory plan and the two walks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/dense/dense.h"
#include "tests/lib/support.h"

static void expect_plan_error(struct graph *g, enum status status, const char *const *names, int n) {
    struct error e = {0};
    ck_assert_int_eq(graph_plan(g, &e), status);
    for (int i = 0; i < n; i++)
        ck_assert_msg(strstr(e.text, names[i]) != NULL, "\"%s\" lacks \"%s\"", e.text, names[i]);
    ck_assert_ptr_null(g->memory.base); /* nothing was allocated */
    graph_free(g);
}

/* --- building --------------------------------------------------------------------------------------------------- */

START_TEST(first_error_sticks_and_surfaces_in_the_plan) {
    struct graph g;
    open_graph(&g, NULL, true, false, "");
    struct tensor *a = input3(&g, "left", 3, 4, 0, true), *b = input3(&g, "right", 3, 5, 0, true);
    struct tensor *bad = add(&g, a, b);
    ck_assert_ptr_null(bad);
    ck_assert_ptr_null(mul(&g, bad, a)); /* NULL passes through */
    ck_assert_ptr_null(input3(&g, "later", 0, 0, 0, false));
    ck_assert_ptr_null(activate(&g, a, ACT_TANH)); /* even what would be right */
    graph_set_root(&g, bad);
    expect_plan_error(&g, ST_USAGE, (const char *[]){"add", "4", "5"}, 3);
}
END_TEST

START_TEST(impossible_sizes_are_named) {
    struct graph g;
    open_graph(&g, NULL, true, false, "");
    ck_assert_ptr_null(input3(&g, "tokens", 3, -2, 0, false));
    expect_plan_error(&g, ST_USAGE, (const char *[]){"tokens", "-2"}, 2);
    open_graph(&g, NULL, true, false, "");
    ck_assert_ptr_null(graph_input(&g, "wide", 2, (int64_t[]){4294967296, 4294967296}, false));
    expect_plan_error(&g, ST_USAGE, (const char *[]){"wide", "4294967296"}, 2);
    open_graph(&g, NULL, true, false, "");
    struct tensor *x = input3(&g, "x", 6, 4, 0, false);
    ck_assert_ptr_null(graph_reshape(&g, x, 2, (int64_t[]){5, 5}));
    expect_plan_error(&g, ST_FAIL, (const char *[]){"x", "24", "25"}, 3);
    open_graph(&g, NULL, true, false, "");
    activate(&g, input3(&g, "x", (int64_t)1 << 40, 0, 0, true), ACT_TANH);
    expect_plan_error(&g, ST_MEMORY, (const char *[]){REAL_IS_DOUBLE ? "16777216 MB" : "8388608 MB", "machine has"}, 2);
}
END_TEST

START_TEST(a_net_of_too_many_calls_is_told_what_to_lower) {
    struct graph g;
    open_graph(&g, NULL, false, false, "");
    struct tensor *x = input3(&g, "x", 1, 0, 0, false);
    graph_builder(&g)->layer = 6;
    g.calls_capacity = 2;
    for (int i = 0; i < 3; i++) x = activate(&g, x, ACT_TANH);
    ck_assert_ptr_null(x);
    expect_plan_error(&g, ST_USAGE, (const char *[]){"at most 2 calls", "layer 7", "lower --layers"}, 3);
    open_graph(&g, NULL, false, false, "");
    g.tensors_capacity = 2;
    for (int i = 0; i < 3; i++) x = input3(&g, "x", 1, 0, 0, false);
    ck_assert_ptr_null(x);
    expect_plan_error(&g, ST_USAGE, (const char *[]){"at most 2 tensors", "layer 1", "lower --layers"}, 3);
    open_graph(&g, NULL, false, false, "");
    g.host.fail_after = 1; /* as a full arena does */
    ck_assert_ptr_null(input3(&g, "x", 1, 0, 0, false));
    expect_plan_error(&g, ST_USAGE, (const char *[]){"at most 192 MB", "layer 1", "lower --layers"}, 3);
}
END_TEST

START_TEST(one_tensor_twice_in_a_call_is_refused) {
    struct graph g;
    open_graph(&g, NULL, true, false, "");
    struct tensor *x = input3(&g, "twin", 6, 4, 0, true);
    ck_assert_ptr_null(mul(&g, x, graph_reshape(&g, x, 2, (int64_t[]){6, 4})));
    expect_plan_error(&g, ST_FAIL, (const char *[]){"twin", "mul"}, 2);
}
END_TEST

/* Whether a run has the op of a forced kernel is a question to all of its graphs (graphs_check_forced). */
START_TEST(a_kernel_is_forced_where_its_op_is) {
    struct graph g;
    struct error e = {0};
    open_graph(&g, NULL, true, false, "linear_ref");
    activate(&g, linear(&g, input3(&g, "x", 4, 4, 0, true), input3(&g, "w", 4, 4, 0, true), NULL), ACT_TANH);
    ck_assert_int_eq(graph_plan(&g, &e), ST_OK);
    ck_assert_str_eq(g.calls[0].kernel->name, "linear_ref");
    ck_assert(!g.calls[1].kernel->reference);
    graph_free(&g);
    open_graph(&g, NULL, true, false, "reference");
    struct tensor *x = input3(&g, "x", 4, 4, 0, true), *w = input3(&g, "w", 4, 4, 0, true);
    activate(&g, linear(&g, x, w, NULL), ACT_TANH);
    ck_assert_int_eq(graph_plan(&g, &e), ST_OK);
    for (int i = 0; i < g.n_calls; i++) ck_assert(g.calls[i].kernel->reference);
    graph_free(&g);
    struct graph_options none = {.kernels = (const struct kernel *const[]){NULL}};
    ck_assert_int_eq(graph_create(&g, &none, NULL, &e), ST_OK);
    activate(&g, input3(&g, "x", 4, 0, 0, true), ACT_TANH);
    const char *const wanted[] = {"activate", "no kernel of this op is registered for the device"};
    expect_plan_error(&g, ST_USAGE, wanted, 2);
}
END_TEST

static bool never_applies(const struct call *c, const char **why) {
    (void)c, (void)why;
    return false;
}

START_TEST(a_kernel_that_gives_no_reason_is_refused_without_another_ones) {
    static const struct kernel mute = {.name = "mute", .op = &op_activate, .applicable = never_applies};
    struct graph_options options = {.kernels = (const struct kernel *const[]){&mute, NULL}, .kernel = "mute"};
    struct graph g;
    struct error e = {0};
    ck_assert_int_eq(graph_create(&g, &options, NULL, &e), ST_OK);
    activate(&g, input3(&g, "x", 4, 0, 0, true), ACT_TANH);
    expect_plan_error(&g, ST_USAGE, (const char *[]){"kernel mute does not apply: it gives no reason"}, 1);
}
END_TEST

START_TEST(scopes_name_parameters) {
    struct graph g;
    struct params p;
    ck_assert_int_eq(params_create(&p, NULL), ST_OK);
    open_graph(&g, &p, true, false, "");
    struct param_spec spec = {.name = "w", .rank = 1, .dims = {3}};
    graph_scope_push(&g, "layers.0");
    graph_scope_pop(&g);
    struct tensor *outer = graph_param(&g, &spec);
    ck_assert_str_eq(outer->name, "w"); /* a part with a dot in it is taken off whole */
    graph_scope_push(&g, "layers.0");
    graph_scope_push(&g, "mixer");
    struct tensor *w = graph_param(&g, &spec);
    ck_assert_str_eq(w->name, "layers.0.mixer.w");
    ck_assert_ptr_eq(graph_param(&g, &spec), w); /* the same parameter is the same tensor */
    spec.rank = 2;
    spec.dims[1] = 2;
    ck_assert_ptr_null(graph_param(&g, &spec));
    expect_plan_error(&g, ST_FAIL, (const char *[]){"layers.0.mixer.w"}, 1);
    params_free(&p);
}
END_TEST

START_TEST(scopes_that_nest_too_deep_are_named) {
    struct graph g;
    const char *const says[] = {"parameter names nest too deep or are too long at", "deep.and.on"};
    open_graph(&g, NULL, false, false, "");
    for (int i = 0; i < 17; i++) graph_scope_push(&g, i < 16 ? "a" : "deep.and.on");
    expect_plan_error(&g, ST_FAIL, says, 2);
    open_graph(&g, NULL, false, false, "");
    for (int i = 0; i < 12; i++) graph_scope_push(&g, "deep.and.on");
    expect_plan_error(&g, ST_FAIL, says, 2);
}
END_TEST

START_TEST(a_term_without_room_is_told) {
    static const struct graph_term term = {.weight = 1};
    struct graph g;
    open_graph(&g, NULL, true, false, "");
    g.host.fail_after = 1;
    graph_keep_term(&g, &term);
    ck_assert_ptr_null(graph_builder(&g)->terms);
    expect_plan_error(&g, ST_USAGE, (const char *[]){"at most 192 MB", "layer 1", "lower --layers"}, 3);
}
END_TEST

START_TEST(parameters_that_cannot_be_declared_are_named) {
    struct params p;
    struct error e = {0};
    struct param_spec spec = {.name = "w", .rank = 2, .dims = {3, 4}}, other = spec;
    ck_assert_int_eq(params_create(&p, NULL), ST_OK);
    other.layout = (struct layout){.rank = 1, .dims = {11}};
    ck_assert_ptr_null(params_declare(&p, "w", &other, &e));
    ck_assert_int_eq(e.status, ST_FAIL);
    ck_assert_str_eq(e.text,
                     "parameter 'w' of 12 elements cannot be declared: its layout has another number of elements");
    ck_assert_ptr_nonnull(params_declare(&p, "w", &spec, &e));
    other = (struct param_spec){.name = "w", .rank = 2, .dims = {4, 3}};
    ck_assert_ptr_null(params_declare(&p, "w", &other, &e));
    ck_assert_str_eq(e.text, "parameter 'w' is declared twice with different shapes");
    ck_assert_int_eq(params_reserve(&p, false, &e), ST_OK);
    ck_assert_ptr_nonnull(params_declare(&p, "w", &spec, &e)); /* it is there */
    ck_assert_ptr_null(params_declare(&p, "v", &spec, &e));
    ck_assert_int_eq(e.status, ST_FAIL);
    ck_assert_str_eq(e.text, "parameter 'v' of 12 elements cannot be declared: memory is already reserved");
    params_free(&p);
}
END_TEST

/* --- the memory plan --------------------------------------------------------------------------------------------- */

/* Replays the walks over a map of who wrote each unit of the block last, and checks every read against it. Knows
 * nothing of lifetimes: only what the calls read and write. */
struct replay {
    const struct graph *g;
    const void **owner; /* by unit of ARENA_ALIGN bytes */
};

static void claim(struct replay *r, const void *data, size_t bytes, const void *who) {
    const char *base = r->g->memory.base, *at = data;
    if (!data || at < base || at >= base + r->g->plan->bytes) return; /* parameters live elsewhere */
    ck_assert_uint_le((size_t)(at - base) + bytes, r->g->plan->bytes);
    for (size_t u = (size_t)(at - base) / ARENA_ALIGN; u * ARENA_ALIGN < (size_t)(at - base) + bytes; u++)
        r->owner[u] = who;
}

static void expect_owned(struct replay *r, const void *data, size_t bytes, const void *who, const char *what,
                         int call) {
    const char *base = r->g->memory.base, *at = data;
    if (!data || at < base || at >= base + r->g->plan->bytes) return;
    for (size_t u = (size_t)(at - base) / ARENA_ALIGN; u * ARENA_ALIGN < (size_t)(at - base) + bytes; u++)
        if (r->owner[u] != who)
            ck_abort_msg("call %d (%s) reads %s, but that memory was written by another since", call,
                         r->g->calls[call].op->name, what);
}

/* A value is known by its data pointer's tensor, a gradient by the address of the field. */
static const void *value_of(struct tensor *t) {
    return tensor_base(t);
}

static const void *gradient_of(struct tensor *t) {
    return &tensor_base(t)->grad;
}

static size_t grad_bytes(const struct tensor *t) {
    return (size_t)tensor_count(t) * sizeof(real);
}

static void replay_workspace(struct replay *r, const struct call *c, enum pass pass) {
    size_t bytes = c->kernel->workspace ? c->kernel->workspace(c, pass) : 0;
    if (bytes) ck_assert_ptr_nonnull(c->scratch[pass]);
    claim(r, c->scratch[pass], bytes, c);
}

static void replay_forward(struct replay *r, const struct call *c) {
    for (int j = 0; j < c->n_in; j++)
        if (c->in[j])
            expect_owned(r, c->in[j]->data, tensor_bytes(c->in[j]), value_of(c->in[j]), c->in[j]->name, c->index);
    for (int j = 0; j < c->n_out; j++) claim(r, c->out[j]->data, tensor_bytes(c->out[j]), value_of(c->out[j]));
    replay_workspace(r, c, PASS_FORWARD);
    for (int j = 0; j < c->n_in; j++) /* the outputs and the workspace lie on no input */
        if (c->in[j])
            expect_owned(r, c->in[j]->data, tensor_bytes(c->in[j]), value_of(c->in[j]), c->in[j]->name, c->index);
    for (int j = 0; j < c->n_out; j++)
        expect_owned(r, c->out[j]->data, tensor_bytes(c->out[j]), value_of(c->out[j]), c->out[j]->name, c->index);
}

/* Lists the values that the gradient of a call may read. */
static void replay_backward_reads(struct replay *r, const struct call *c) {
    for (int j = 0; j < c->n_in; j++)
        if (c->in[j] && (c->op->needs_in >> j & 1))
            expect_owned(r, c->in[j]->data, tensor_bytes(c->in[j]), value_of(c->in[j]), c->in[j]->name, c->index);
    for (int j = 0; j < c->n_out; j++) {
        if (c->op->needs_out >> j & 1)
            expect_owned(r, c->out[j]->data, tensor_bytes(c->out[j]), value_of(c->out[j]), c->out[j]->name, c->index);
        if (c->out[j]->grad)
            expect_owned(r, c->out[j]->grad, grad_bytes(c->out[j]), gradient_of(c->out[j]), "its gradient", c->index);
    }
}

static void replay_backward(struct replay *r, const struct call *c) {
    if (c->plan.zero_dout) claim(r, c->out[0]->grad, grad_bytes(c->out[0]), gradient_of(c->out[0]));
    ck_assert_ptr_nonnull(c->out[0]->grad);
    for (int j = 0; j < c->n_in; j++)
        if (c->din[j] && call_accumulates(c, j))
            expect_owned(r, c->din[j], grad_bytes(c->in[j]), gradient_of(c->in[j]), "the gradient it adds to",
                         c->index);
    for (int j = 0; j < c->n_in; j++)
        if (c->din[j]) claim(r, c->din[j], grad_bytes(c->in[j]), gradient_of(c->in[j]));
    replay_workspace(r, c, PASS_BACKWARD);
    replay_backward_reads(r, c); /* after the writes: none of them lies on what is read */
}

static void replay(const struct graph *g) {
    struct replay r = {g, calloc(g->plan->bytes / ARENA_ALIGN + 1, sizeof(void *))};
    ck_assert_ptr_nonnull(r.owner);
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i];
        if (t->producer < 0 && !t->base) claim(&r, t->data, tensor_bytes(t), value_of(t));
    }
    if (g->root && g->root->grad) claim(&r, g->root->grad, grad_bytes(g->root), gradient_of(g->root));
    for (int i = 0; i < g->n_calls; i++) replay_forward(&r, &g->calls[i]);
    for (int i = g->n_calls - 1; i >= 0; i--)
        if (g->calls[i].plan.active) replay_backward(&r, &g->calls[i]);
    for (int i = 0; i < g->n_tensors && g->n_calls; i++) { /* what stays readable */
        struct tensor *t = g->tensors[i];
        if (!t->keep || t->base) continue;
        expect_owned(&r, t->data, tensor_bytes(t), value_of(t), t->name, 0);
        if (t->grad) expect_owned(&r, t->grad, grad_bytes(t), gradient_of(t), t->name, 0);
    }
    free(r.owner);
}

static const struct trial_shape small = {.B = 3, .T = 7, .V = 11, .D = 12, .layers = 2, .mlp = MLP_SWIGLU};

START_TEST(no_value_is_overwritten_before_its_last_reader) {
    for (int variant = 0; variant < 4; variant++) {
        struct trial t;
        struct trial_shape s = small;
        s.model = small_models()[_i];
        s.evaluation = variant == 1;
        s.guards = variant == 2;
        s.kernel = variant == 3 ? "reference" : "";
        s.mlp = variant == 3 ? MLP_GELU : MLP_SWIGLU;
        s.norm = variant == 3 ? NORM_LAYER : NORM_RMS;
        s.dropout = 0.2;
        trial_open(&t, &s, 1);
        replay(&t.graph);
        replay(&t.update);
        trial_close(&t);
    }
}
END_TEST

START_TEST(a_deep_net_reuses_memory) {
    struct trial t;
    struct trial_shape s = small;
    s.model = "bdlru:m=2,blocks=6";
    s.layers = 12;
    trial_open(&t, &s, 1);
    size_t training = t.graph.plan->bytes;
    ck_assert_msg(training * 10 < t.graph.plan->sum_bytes * 9, "%zu of %zu bytes: nothing is shared", training,
                  t.graph.plan->sum_bytes);
    replay(&t.graph);
    trial_close(&t);
    s.evaluation = true;
    trial_open(&t, &s, 1);
    ck_assert_msg(t.graph.plan->bytes * 4 < training, "evaluation takes %zu bytes, training %zu", t.graph.plan->bytes,
                  training);
    trial_close(&t);
}
END_TEST

START_TEST(measuring_tells_what_planning_takes) {
    struct graph g;
    size_t measured;
    open_graph(&g, NULL, true, false, "");
    struct tensor *x = input3(&g, "x", 4, 100, 0, true);
    for (int i = 0; i < 5; i++) x = activate(&g, x, ACT_TANH);
    graph_set_root(&g, dot(&g, x, input3(&g, "w", 4, 100, 0, false), NULL));
    ck_assert_int_eq(graph_measure(&g, &measured, NULL), ST_OK);
    ck_assert_ptr_null(g.memory.base);
    plan_graph(&g);
    ck_assert_uint_eq(measured, g.plan->bytes);
    ck_assert_uint_ge(g.memory.size, measured);
    replay(&g);
    graph_free(&g);
}
END_TEST

/* In guard mode every buffer is filled with NaN when its life begins: whatever read memory that nobody wrote, or that
 * somebody else wrote, would differ. */
START_TEST(no_result_depends_on_memory_nobody_wrote) {
    struct trial plain, guarded;
    struct trial_shape s = small;
    s.model = small_models()[_i];
    s.dropout = 0.1;
    s.norm = _i % 2 ? NORM_LAYER : NORM_RMS;
    s.mlp = _i % 3 ? MLP_SWIGLU : MLP_GELU;
    trial_open(&plain, &s, 5);
    s.guards = true;
    trial_open(&guarded, &s, 5);
    for (int step = 0; step < 3; step++) {
        trial_step(&plain, 5);
        trial_step(&guarded, 5);
        ck_assert_int_eq(guarded.graph.plan->first_guard_failure, -1);
        int64_t n = plain.params.floats;
        ck_assert_msg(isfinite(plain.state.loss), "%s: loss %g", s.model, plain.state.loss);
        expect_same_bits(guarded.net.logits->data, plain.net.logits->data, tensor_count(plain.net.logits), "logits");
        expect_same_bits(guarded.params.grad, plain.params.grad, n, "gradients");
        expect_same_bits(guarded.params.value, plain.params.value, n, "weights");
    }
    trial_close(&plain);
    trial_close(&guarded);
}
END_TEST

/* --- the walks --------------------------------------------------------------------------------------------------- */

/* L = <x a + x b + tanh x, w>: dx = w (a + b + 1 - tanh^2 x). Three readers of x, one of them through a view. */
START_TEST(gradients_of_a_fan_out_add_up) {
    struct graph g;
    struct step_state state = first_state();
    open_graph(&g, NULL, true, true, "");
    struct tensor *x = input3(&g, "x", 4, 8, 0, true), *flat = graph_reshape(&g, x, 1, (int64_t[]){32});
    struct tensor *a = input3(&g, "a", 4, 8, 0, true), *b = input3(&g, "b", 32, 0, 0, true),
                  *w = input3(&g, "w", 4, 8, 0, false);
    struct tensor *second = graph_reshape(&g, mul(&g, flat, b), 2, (int64_t[]){4, 8});
    graph_set_root(&g, dot(&g, add(&g, add(&g, mul(&g, x, a), second), activate(&g, x, ACT_TANH)), w, NULL));
    plan_graph(&g);
    fill_inputs(&g, FILL_SMALL, false);
    for (int run = 0; run < 2; run++) { /* the second run overwrites, it does not add to the first */
        graph_forward(&g, &state);
        graph_backward(&g, &state);
        for (int i = 0; i < 32; i++) {
            double t = tanh((double)tensor_real(x)[i]), wi = tensor_real(w)[i];
            double dx = wi * ((double)tensor_real(a)[i] + tensor_real(b)[i] + 1 - t * t);
            ck_assert_double_eq_tol(x->grad[i], dx, 8 * REAL_EPSILON);
            ck_assert_double_eq_tol(a->grad[i], wi * tensor_real(x)[i], 2 * REAL_EPSILON);
            ck_assert_double_eq_tol(b->grad[i], wi * tensor_real(x)[i], 2 * REAL_EPSILON);
        }
    }
    ck_assert_ptr_eq(flat->grad, x->grad);
    ck_assert_int_eq(g.plan->first_guard_failure, -1);
    graph_free(&g);
}
END_TEST

/* A root of many elements in the middle: its gradient is what the caller puts there, and what comes after it, or has no
 * path to it, gets zero. */
START_TEST(root_in_the_middle_leaves_the_rest_without_gradient) {
    struct graph g;
    struct params p;
    struct step_state state = first_state();
    ck_assert_int_eq(params_create(&p, NULL), ST_OK);
    open_graph(&g, &p, true, true, "");
    struct init one = {.kind = INIT_CONST, .a = 1};
    struct tensor *early = graph_param(&g, &(struct param_spec){.name = "early", .rank = 1, .dims = {8}, .init = one});
    struct tensor *late = graph_param(&g, &(struct param_spec){.name = "late", .rank = 1, .dims = {8}, .init = one});
    struct tensor *aside = graph_param(&g, &(struct param_spec){.name = "aside", .rank = 1, .dims = {8}, .init = one});
    struct tensor *x = input3(&g, "x", 4, 8, 0, true);
    struct tensor *middle = scale(&g, x, early);
    struct tensor *end = scale(&g, middle, late);
    scale(&g, x, aside);
    graph_set_root(&g, middle);
    tensor_keep(end);
    ck_assert_int_eq(params_reserve(&p, true, NULL), ST_OK);
    params_init(&p, 1);
    plan_graph(&g);
    replay(&g);
    fill_inputs(&g, FILL_SMALL, false);
    graph_forward(&g, &state);
    for (int64_t i = 0; i < p.floats; i++) p.grad[i] = 77;
    for (int i = 0; i < 32; i++) middle->grad[i] = (real)i;
    graph_backward(&g, &state);
    for (int i = 0; i < 32; i++) ck_assert_double_eq(x->grad[i], i);
    for (int c = 0; c < 8; c++) {
        double want = 0;
        for (int r = 0; r < 4; r++) want += (r * 8 + c) * (double)tensor_real(x)[r * 8 + c];
        ck_assert_double_eq_tol(early->grad[c], want, 32 * 8 * REAL_EPSILON);
        ck_assert_double_eq(p.grad[params_find(&p, "late")->offset + c], 0);
        ck_assert_double_eq(p.grad[params_find(&p, "aside")->offset + c], 0);
    }
    graph_free(&g);
    params_free(&p);
}
END_TEST

START_TEST(walks_repeat_bit_for_bit) {
    struct trial t;
    struct trial_shape s = small;
    s.model = small_models()[_i];
    s.dropout = 0.3;
    trial_open(&t, &s, 9);
    graph_forward(&t.graph, &t.state);
    graph_backward(&t.graph, &t.state);
    real *first = copy_reals(t.params.grad, t.params.floats);
    graph_forward(&t.graph, &t.state);
    graph_backward(&t.graph, &t.state);
    expect_same_bits(t.params.grad, first, t.params.floats, "gradients of the second walk");
    ck_assert_double_gt(graph_cost(&t.graph, PASS_FORWARD).flops, 0);
    ck_assert_double_gt(graph_cost(&t.graph, PASS_BACKWARD).flops, graph_cost(&t.graph, PASS_FORWARD).flops);
    free(first);
    trial_close(&t);
}
END_TEST

/* --- guards ------------------------------------------------------------------------------------------------------ */

/* y = x, with one element too many written: forward if spill_forward, else by the gradient. */
static bool spill_forward;
#define SPILL_SIZE 13 /* no whole unit of the plan: the guard begins right after it all the same */

static void spill_infer(struct graph *g, struct call *c) {
    graph_output(g, c, DT_REAL, c->in[0]->rank, c->in[0]->dims);
}

static struct cost spill_cost(const struct call *c, enum pass pass) {
    (void)c, (void)pass;
    return (struct cost){1, 1};
}

static const struct op op_spill = {.name = "spill", .infer = spill_infer, .cost = spill_cost};

static void run_spill_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t n = tensor_count(c->in[0]);
    for (int64_t i = 0; i < n; i++) tensor_real(c->out[0])[i] = tensor_real(c->in[0])[i];
    if (spill_forward) tensor_real(c->out[0])[n] = 1;
}

static void run_spill_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t n = tensor_count(c->in[0]);
    for (int64_t i = 0; i < n; i++) c->din[0][i] = call_dout(c, 0)[i];
    if (!spill_forward) c->din[0][n] = 1;
}

static const struct kernel kernel_spill = {.name = "spill_ref",
                                           .op = &op_spill,
                                           .reference = true,
                                           .forward = run_spill_forward,
                                           .backward = run_spill_backward};

START_TEST(guards_name_the_call_that_writes_too_far) {
    const struct kernel *kernels[300];
    int n = 0;
    for (const struct kernel *const *k = test_kernels(); *k; k++) kernels[n++] = *k;
    kernels[n++] = &kernel_spill;
    kernels[n] = NULL;
    for (int forward = 0; forward < 2; forward++) {
        struct graph g;
        struct error e = {0};
        struct step_state state = first_state();
        spill_forward = forward;
        struct graph_options options = {.training = true, .guards = true, .kernels = kernels};
        ck_assert_int_eq(graph_create(&g, &options, NULL, &e), ST_OK);
        struct tensor *x = input3(&g, "x", SPILL_SIZE, 0, 0, true);
        struct tensor *y = activate(&g, x, ACT_TANH);
        struct call *c = graph_call(&g, &op_spill, NULL, 0, &y, 1);
        ck_assert_int_eq(c->index, 1);
        graph_set_root(&g, activate(&g, c->out[0], ACT_TANH));
        plan_graph(&g);
        fill_inputs(&g, FILL_SMALL, false);
        for (int i = 0; i < SPILL_SIZE; i++) g.root->grad[i] = 1;
        ck_assert_int_eq(g.plan->first_guard_failure, -1);
        graph_forward(&g, &state);
        ck_assert_int_eq(g.plan->first_guard_failure, forward ? 1 : -1);
        graph_backward(&g, &state);
        ck_assert_int_eq(g.plan->first_guard_failure, 1);
        graph_free(&g);
    }
}
END_TEST

Suite *check_graph(void);
Suite *check_graph(void) {
    Suite *suite = suite_create("graph");
    TCase *tests = tcase_create("graph");
    int models = 0;
    while (small_models()[models]) models++;
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_test(tests, first_error_sticks_and_surfaces_in_the_plan);
    tcase_add_test(tests, impossible_sizes_are_named);
    tcase_add_test(tests, one_tensor_twice_in_a_call_is_refused);
    tcase_add_test(tests, a_net_of_too_many_calls_is_told_what_to_lower);
    tcase_add_test(tests, a_kernel_is_forced_where_its_op_is);
    tcase_add_test(tests, a_kernel_that_gives_no_reason_is_refused_without_another_ones);
    tcase_add_test(tests, scopes_name_parameters);
    tcase_add_test(tests, scopes_that_nest_too_deep_are_named);
    tcase_add_test(tests, a_term_without_room_is_told);
    tcase_add_test(tests, parameters_that_cannot_be_declared_are_named);
    tcase_add_loop_test(tests, no_value_is_overwritten_before_its_last_reader, 0, models);
    tcase_add_test(tests, a_deep_net_reuses_memory);
    tcase_add_test(tests, measuring_tells_what_planning_takes);
    tcase_add_loop_test(tests, no_result_depends_on_memory_nobody_wrote, 0, models);
    tcase_add_test(tests, gradients_of_a_fan_out_add_up);
    tcase_add_test(tests, root_in_the_middle_leaves_the_rest_without_gradient);
    tcase_add_loop_test(tests, walks_repeat_bit_for_bit, 0, models);
    tcase_add_test(tests, guards_name_the_call_that_writes_too_far);
    suite_add_tcase(suite, tests);
    return suite;
}
