/* support.c - see support.h. */
#include "tests/lib/support.h"

#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/batch.h"
#include "core/graph_walk.h"
#include "core/philox.h"
#include "kernels/lib/gemm.h"
#include "kernels/route/route.h"
#include "kernels/train/train.h"

void start_kernels(void) {
    gemm_init();
    omp_set_num_threads(1); /* threads that wait for each other on a busy machine cost minutes */
}

char own_folder[SCRATCH_BYTES];

void own_folder_begin(void) {
    start_kernels();
    scratch_make(own_folder);
}

void own_folder_end(void) {
    scratch_remove(own_folder);
}

struct place own_device;

void own_device_begin(void) {
    struct error e = {0};
    start_kernels();
    ck_assert_msg(place_open(&own_device, "cuda", &e) == ST_OK, "%s", e.text);
}

void own_device_end(void) {
    place_close(&own_device);
}

/* --- dot --------------------------------------------------------------------------------------------------------- */

static void dot_infer(struct graph *g, struct call *c) {
    if (!c->in[0] || !c->in[1]) return;
    if (tensor_count(c->in[0]) != tensor_count(c->in[1]))
        graph_fail(g, ST_FAIL, "dot: %s and %s differ in size", c->in[0]->name, c->in[1]->name);
    else
        graph_output(g, c, DT_REAL, 1, (int64_t[]){1});
}

static struct cost dot_cost(const struct call *c, enum pass pass) {
    (void)pass;
    double n = (double)tensor_count(c->in[0]);
    return (struct cost){2 * n, 2 * n * sizeof(real)};
}

static const struct op op_dot = {
    .name = "dot",
    .maths = "y = before + sum_i x_i w_i",
    .source = "",
    .needs_in = 2,
    .no_grad_in = 2,
    .infer = dot_infer,
    .cost = dot_cost,
};

static void dot_forward(const struct call *c, const struct exec *x) {
    (void)x;
    const real *a = tensor_real(c->in[0]), *w = tensor_real(c->in[1]);
    double sum = c->in[2] ? tensor_real(c->in[2])[0] : 0;
    for (int64_t i = 0; i < tensor_count(c->in[0]); i++) sum += (double)a[i] * w[i];
    tensor_real(c->out[0])[0] = (real)sum;
}

static void dot_backward(const struct call *c, const struct exec *x) {
    (void)x;
    const real *w = tensor_real(c->in[1]);
    real dy = call_dout(c, 0)[0];
    for (int64_t i = 0; c->din[0] && i < tensor_count(c->in[0]); i++)
        c->din[0][i] = (call_accumulates(c, 0) ? c->din[0][i] : 0) + dy * w[i];
    if (c->din[2]) c->din[2][0] = (call_accumulates(c, 2) ? c->din[2][0] : 0) + dy;
}

static const struct kernel kernel_dot = {
    .name = "dot_ref",
    .op = &op_dot,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = dot_forward,
    .backward = dot_backward,
};

/* Computes it for a device on the host: the loss is not what a device is tested for. */
static void dot_elsewhere_forward(const struct call *c, const struct exec *x) {
    size_t bytes = tensor_bytes(c->in[0]);
    real *a = malloc(bytes), *w = malloc(bytes), before = 0;
    ck_assert(a && w);
    place_get(x->place, a, c->in[0]->data, bytes);
    place_get(x->place, w, c->in[1]->data, bytes);
    if (c->in[2]) place_get(x->place, &before, c->in[2]->data, sizeof before);
    double sum = (double)before;
    for (int64_t i = 0; i < tensor_count(c->in[0]); i++) sum += (double)a[i] * w[i];
    before = (real)sum;
    place_put(x->place, c->out[0]->data, &before, sizeof before);
    free(a);
    free(w);
}

/* d[i] (+)= dy w[i]; w NULL: 1 */
static void add_elsewhere(const struct call *c, const struct exec *x, int input, const void *weights, real dy) {
    int64_t n = tensor_count(c->in[input]);
    size_t bytes = (size_t)n * sizeof(real);
    real *d = calloc(1, bytes), *w = malloc(bytes);
    ck_assert(d && w);
    if (call_accumulates(c, input)) place_get(x->place, d, c->din[input], bytes);
    if (weights) place_get(x->place, w, weights, bytes);
    for (int64_t i = 0; i < n; i++) d[i] += weights ? dy * w[i] : dy;
    place_put(x->place, c->din[input], d, bytes);
    free(d);
    free(w);
}

static void dot_elsewhere_backward(const struct call *c, const struct exec *x) {
    real dy;
    place_get(x->place, &dy, call_dout(c, 0), sizeof dy);
    if (c->din[0]) add_elsewhere(c, x, 0, c->in[1]->data, dy);
    if (c->din[2]) add_elsewhere(c, x, 2, NULL, dy);
}

static const struct kernel kernel_dot_elsewhere = {
    .name = "dot_elsewhere",
    .op = &op_dot,
    .device = DEVICE_CUDA,
    .forward = dot_elsewhere_forward,
    .backward = dot_elsewhere_backward,
};

struct tensor *dot(struct graph *g, struct tensor *x, struct tensor *w, struct tensor *before) {
    struct call *c = graph_call(g, &op_dot, NULL, 0, (struct tensor *[]){x, w, before}, 3);
    return c ? c->out[0] : NULL;
}

const struct kernel *const *test_kernels(void) {
    static const struct kernel *list[512];
    size_t n = 0, own = 3; /* kernels of dot, and the end */
    for (const struct kernel *const *k = kernel_list(); *k; k++) {
        ck_assert_uint_lt(n + own, sizeof list / sizeof *list);
        list[n++] = *k;
    }
    list[n++] = &kernel_dot;
    list[n] = &kernel_dot_elsewhere;
    return list;
}

/* --- graphs ------------------------------------------------------------------------------------------------------ */

void open_graph(struct graph *g, struct params *p, bool training, bool guards, const char *kernel) {
    struct error e = {0};
    struct graph_options options = {
        .training = training, .guards = guards, .kernel = kernel, .kernels = test_kernels()};
    ck_assert_msg(graph_create(g, &options, p, &e) == ST_OK, "%s", e.text);
}

void plan_graph(struct graph *g) {
    struct error e = {0};
    ck_assert_msg(graph_plan(g, &e) == ST_OK, "%s", e.text);
}

struct tensor *input3(struct graph *g, const char *name, int64_t a, int64_t b, int64_t c, bool needs_grad) {
    return graph_input(g, name, b == 0 ? 1 : c == 0 ? 2 : 3, (int64_t[]){a, b, c}, needs_grad);
}

double call_work(const struct call *c) {
    struct cost f = c->op->cost(c, PASS_FORWARD), b = c->op->cost(c, PASS_BACKWARD);
    return f.flops + b.flops + 8 * (f.bytes + b.bytes);
}

/* --- values ------------------------------------------------------------------------------------------------------ */

double fill_value(const struct tensor *t, int64_t draw, enum fill fill, bool positive, int64_t i) {
    struct rng r = rng_at((uint64_t)t->id | (uint64_t)draw << 32, STREAM_TEST, (uint64_t)i);
    uint32_t word = rng_u32(&r);
    double uniform = rng_u32(&r) * 0x1p-32;
    if (t->dtype == DT_I32) return t->ignorable && word % 4 == 0 ? IGNORED : (double)rng_below(&r, (uint64_t)t->limit);
    double sign = positive || (word & 1) ? 1 : -1;
    if (fill == FILL_WHOLE) return (double)(word % 3) * sign + 0.0; /* not -0 */
    if (fill == FILL_NET && t->rank == 2) sign /= sqrt((double)t->dims[1]);
    return sign * (0.1 + (fill == FILL_WIDE && t->rank == 3 ? 29.9 : 0.8) * uniform);
}

void fill_tensor(struct tensor *t, enum fill fill, bool positive) {
    for (int64_t i = 0; i < tensor_count(t); i++) set_value(t, i, fill_value(t, 0, fill, positive, i));
}

void fill_inputs(struct graph *g, enum fill fill, bool positive) {
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i];
        if (t->producer < 0 && !t->base && !t->param) fill_tensor(t, fill, positive);
    }
}

double value_at(const struct tensor *t, int64_t i) {
    return t->dtype == DT_I32 ? (double)tensor_i32(t)[i] : (double)tensor_real(t)[i];
}

void set_value(struct tensor *t, int64_t i, double value) {
    if (t->dtype == DT_I32)
        tensor_i32(t)[i] = (int32_t)value;
    else
        tensor_real(t)[i] = (real)value;
}

real *copy_reals(const real *x, int64_t n) {
    real *copy = malloc((size_t)n * sizeof *copy);
    ck_assert_ptr_nonnull(copy);
    return memcpy(copy, x, (size_t)n * sizeof *copy);
}

struct step_state first_state(void) {
    return (struct step_state){.seed = 12345, .step = 3, .lr = 1e-3};
}

/* --- comparing --------------------------------------------------------------------------------------------------- */

struct difference compare_reals(const real *got, const real *want, int64_t n) {
    struct difference d = {.at = 0, .got = got[0], .want = want[0], .error = -1};
    for (int64_t i = 0; i < n; i++) {
        double error = fabs((double)got[i] - (double)want[i]);
        if (!isfinite(error)) error = INFINITY;
        if (isfinite(want[i]) && fabs((double)want[i]) > d.scale) d.scale = fabs((double)want[i]);
        if (error > d.error) {
            d.at = i;
            d.got = got[i];
            d.want = want[i];
            d.error = error;
        }
    }
    return d;
}

void expect_close(const real *got, const real *want, int64_t n, double bound, const char *what) {
    struct difference d = compare_reals(got, want, n);
    double allowed = bound * fmax(1, d.scale);
    ck_assert_msg(d.error <= allowed, "%s: element %lld is %.9g, want %.9g, off by %.3g, allowed %.3g", what,
                  (long long)d.at, d.got, d.want, d.error, allowed);
}

void expect_near(double got, double want, double bound, const char *what) {
    if (!(fabs(got - want) <= bound)) ck_abort_msg("%s: %.9g, want %.9g within %.3g", what, got, want, bound);
}

void expect_at_most(double value, double bound, const char *what) {
    if (!(value <= bound)) ck_abort_msg("%s: %.9g is more than %.9g", what, value, bound);
}

void expect_same_bits(const void *got, const void *want, int64_t n, const char *what) {
    const real *a = got, *b = want;
    if (!memcmp(a, b, (size_t)n * sizeof *a)) return;
    int64_t i = 0;
    while (!memcmp(a + i, b + i, sizeof *a)) i++;
    ck_abort_msg("%s: the bits differ, first at element %lld of %lld: %.17g and %.17g", what, (long long)i,
                 (long long)n, (double)a[i], (double)b[i]);
}

/* --- nets -------------------------------------------------------------------------------------------------------- */

/* The optimiser's inputs are memory that exists already: the loss of the net, the flat blocks of the parameters. */
static struct tensor *external(struct graph *g, const char *name, int64_t n, real *data) {
    struct tensor *t = graph_input(g, name, 1, (int64_t[]){n}, false);
    ck_assert_ptr_nonnull(t);
    t->data = data;
    return t;
}

static void build_update(struct trial *t, const char *kernel) {
    struct params *p = &t->params;
    struct error e = {0};
    struct step_attr begin = {.schedule = {.kind = SCHEDULE_CONSTANT, .lr = 1e-2}, .clip = 1};
    t->segments[0] = (struct adamw_segment){0, p->floats, 0.1, 1};
    struct adamw_attr attr = {
        .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8, .clip = begin.clip, .n_segments = 1, .segments = t->segments};
    struct graph_options options = {.kernel = kernel, .kernels = test_kernels()};
    ck_assert_msg(graph_create(&t->update, &options, NULL, &e) == ST_OK, "%s", e.text);
    struct tensor *grad = external(&t->update, "grad", p->floats, p->grad);
    step_begin(&t->update, external(&t->update, "loss", 1, t->net.loss->data), grad, &begin);
    adamw(&t->update, external(&t->update, "value", p->floats, p->value), grad,
          external(&t->update, "moment1", p->floats, p->moment1),
          external(&t->update, "moment2", p->floats, p->moment2), &attr);
    plan_graph(&t->update);
}

void trial_open(struct trial *t, const struct trial_shape *s, uint64_t seed) {
    struct error e = {0};
    struct model_choice choice;
    struct backbone b = {.dim = s->D,
                         .layers = s->layers,
                         .mlp = s->mlp,
                         .norm = s->norm,
                         .dropout = s->dropout,
                         .layer_scale = s->layer_scale,
                         .top_levels = s->top_levels,
                         .kind = s->kind,
                         .pool = s->pool,
                         .bidirectional = s->bidirectional,
                         .degree_code = s->degree_code,
                         .positions = s->positions,
                         .encoder = s->encoder,
                         .ssm_lr_factor = 1};
    struct net_shape shape = {.B = s->B,
                              .T = s->T,
                              .vocab_in = s->channels ? 0 : s->V,
                              .channels = s->channels,
                              .vocab_out = s->V,
                              .height = s->height,
                              .width = s->width,
                              .links = s->links,
                              .readout = s->readout};
    *t = (struct trial){.state = {.seed = seed}};
    ck_assert_msg(params_create(&t->params, &e) == ST_OK, "%s", e.text);
    ck_assert_msg(model_parse(&choice, s->model, &e) == ST_OK, "%s: %s", s->model, e.text);
    struct dims dims = {.B = s->B, .T = s->T, .D = s->D, .height = s->height, .width = s->width, .links = s->links};
    ck_assert_msg(model_fit(&choice, &dims, &e) == ST_OK, "%s: %s", s->model, e.text);
    open_graph(&t->graph, &t->params, !s->evaluation, s->guards, s->kernel ? s->kernel : "");
    t->graph.options.precision = s->precision;
    ck_assert_msg(net_build(&t->net, &t->graph, &b, &choice, &shape, &e) == ST_OK, "%s: %s", s->model, e.text);
    tensor_keep(t->net.logits);
    ck_assert_msg(params_reserve(&t->params, true, &e) == ST_OK, "%s", e.text);
    params_init(&t->params, seed);
    plan_graph(&t->graph);
    build_update(t, s->kernel && !strcmp(s->kernel, "reference") ? "reference" : "");
    trial_fill(t, seed, 0);
}

void trial_fill(struct trial *t, uint64_t seed, int64_t step) {
    struct rng r = rng_at(seed, STREAM_DATA, (uint64_t)step);
    const struct tensor *in = t->net.input;
    int64_t targets = tensor_count(t->net.targets), B = in->dims[0], T = in->dims[1];
    for (int64_t i = 0; t->net.links && i < tensor_count(t->net.links); i++) tensor_i32(t->net.links)[i] = IGNORED;
    for (int64_t i = 0; i < tensor_count(in); i++) {
        if (in->dtype == DT_I32)
            tensor_i32(in)[i] = (int32_t)rng_below(&r, (uint64_t)in->limit);
        else
            tensor_real(in)[i] = (real)(2 * rng_uniform(&r) - 1);
        int32_t target = (int32_t)rng_below(&r, (uint64_t)t->net.targets->limit);
        if (i < targets) tensor_i32(t->net.targets)[i] = rng_below(&r, 8) ? target : IGNORED;
    }
    for (int64_t b = 0; b < B; b++)
        tensor_i32(t->net.lengths)[b] = (int32_t)(T - (int64_t)rng_below(&r, (uint64_t)(T + 1) / 2));
}

void trial_step(struct trial *t, uint64_t seed) {
    trial_fill(t, seed, t->state.step);
    graph_forward(&t->graph, &t->state);
    graph_backward(&t->graph, &t->state);
    graph_forward(&t->update, &t->state);
}

void trial_close(struct trial *t) {
    graph_free(&t->update);
    graph_free(&t->graph);
    params_free(&t->params);
}

/* --- gradients of whole nets ------------------------------------------------------------------------------------- */

/* d loss / d *x by the five-point stencil, h = 1e-5: truncation h^4 / 30 times the fifth derivative, rounding about
 * 1e-10. Three points are not enough for mixers that divide by the length of a vector, whose third derivative is large.
 * The gates of relu have kinks. One within 2 h of a draw is seldom within h / 8 as well. */
static double loss_slope(struct trial *t, real *x, double h) {
    static const double offset[4] = {-2, -1, 1, 2}, factor[4] = {1, -8, 8, -1};
    double before = *x, sum = 0;
    for (int i = 0; i < 4; i++) {
        *x = (real)(before + offset[i] * h);
        graph_forward(&t->graph, &t->state);
        sum += factor[i] * tensor_real(t->graph.root)[0];
    }
    *x = (real)before;
    return sum / (12 * h);
}

/* Marks, by id, the tensors that reach an input that makes a choice: no difference shows their gradient. */
static void mark_choices(const struct graph *g, bool *seen) {
    for (int i = g->n_calls - 1; i >= 0; i--) {
        const struct call *c = &g->calls[i];
        bool reaches = false;
        for (int j = 0; j < c->n_out; j++) reaches |= seen[tensor_base(c->out[j])->id];
        for (int j = 0; j < c->n_in; j++)
            if (c->in[j] && (reaches || route_chooses(c->op, j))) seen[tensor_base(c->in[j])->id] = true;
    }
}

static bool reaches_a_choice(const struct graph *g, const bool *seen, const struct param *param) {
    for (int i = 0; i < g->n_tensors; i++)
        if (g->tensors[i]->param == param && seen[tensor_base(g->tensors[i])->id]) return true;
    return false;
}

void expect_gradients(struct trial *t, uint64_t draw) {
    struct params *p = &t->params;
    for (int i = 0; i < p->n; i++) /* biases and gains away from their 0 and 1; nothing of the size of the kinks */
        for (int64_t k = 0; k < p->list[i].count && p->list[i].spec.group != PARAM_CONST; k++)
            p->value[p->list[i].offset + k] += (real)(0.1 * sin((double)(k + i)));
    graph_forward(&t->graph, &t->state);
    graph_backward(&t->graph, &t->state);
    real *grad = copy_reals(p->grad, p->floats);
    bool *choices = calloc((size_t)t->graph.n_tensors, sizeof *choices);
    ck_assert_ptr_nonnull(choices);
    mark_choices(&t->graph, choices);
    struct rng r = rng_at(1, STREAM_TEST, draw);
    for (int i = 0; i < p->n; i++) {
        const struct param *param = &p->list[i];
        double scale = 0;
        if (param->spec.group == PARAM_CONST || reaches_a_choice(&t->graph, choices, param)) continue;
        for (int64_t k = 0; k < param->count; k++) scale = fmax(scale, fabs((double)grad[param->offset + k]));
        for (int sample = 0; sample < 6; sample++) {
            int64_t k = (int64_t)rng_below(&r, (uint64_t)param->count);
            double h = 1e-5, got = grad[param->offset + k], bound = 1e-6 * scale + 1e-9;
            double want = loss_slope(t, p->value + param->offset + k, h);
            if (!(fabs(got - want) <= bound)) {
                bound += 15e-9; /* rounding is 16 times as large there */
                want = loss_slope(t, p->value + param->offset + k, h / 16);
            }
            ck_assert_msg(fabs(got - want) <= bound, "d loss / d %s[%lld] is %.9g, differences say %.9g", param->name,
                          (long long)k, got, want);
        }
    }
    free(choices);
    free(grad);
}
