/* check_cuda_values.c - values on a device: an evaluation batch is a part of its split, which begins wherever the one
 * before has ended, on no boundary that loads of several values could count on; and what products alone read is stored
 * rounded. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_plan.h"
#include "core/graph_walk.h"
#include "harness/run/trainer.h"
#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "kernels/lib/round.h"
#include "kernels/norm/norm.h"
#include "tests/cuda/cuda_cases.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/program.h"
#include "tests/lib/support.h"

#define TASK "shapes:size=13,n_train=70,n_val=100,n_test=70"

static void begin(void) {
    start_kernels();
    program_begin();
}

/* 33 images of 169 pixels of 3 channels: the second batch begins 3 values after a boundary of 16 bytes. */
static double validation_loss(const char *device, enum precision precision) {
    struct setup *s = small_run_of(TASK, program_folder, "gelu", "bdlru:m=2,blocks=4", "batch", "33");
    struct trainer t;
    struct scores scores;
    struct error e = {ST_OK, ""};
    snprintf(s->spec.config.device, sizeof s->spec.config.device, "%s", device);
    s->spec.config.precision = (int)precision;
    s->spec.config.quiet = true;
    ck_assert_msg(trainer_create(&t, s, &e) == ST_OK, "%s", e.text);
    trainer_evaluate(&t, SPLIT_VAL, &scores);
    ck_assert_int_eq(scores.sequences, 100);
    trainer_free(&t);
    small_run_free(s);
    return scores.loss;
}

START_TEST(batches_of_values_begin_anywhere) {
    static const enum precision precisions[] = {PRECISION_FULL, PRECISION_TF32, PRECISION_BF16};
    if (REAL_IS_DOUBLE && precisions[_i] != PRECISION_FULL) return; /* double has no such products */
    double there = validation_loss("cuda", precisions[_i]), here = validation_loss("cpu", PRECISION_FULL);
    ck_assert_msg(fabs(there - here) < (precisions[_i] == PRECISION_FULL ? 1e-4 : 2e-2) * here,
                  "precision %d: validation loss %.9g, on the CPU %.9g", precisions[_i], there, here);
}
END_TEST

/* So many strings of another length that their bytes, counted in an integer, would wrap to 0. */
START_TEST(what_no_memory_holds_is_sent) {
    struct setup *s = small_run_of("a5-slice:length=20,extra_length=11,n_train=300,n_val=20", program_folder, "none",
                                   "lru:state=4", "device", "cuda");
    ck_assert_int_gt(s->spec.task.shape.second.examples, INT32_MAX);
    ck_assert_uint_eq(batches_resident_bytes(&s->spec, &s->shapes), 0);
    small_run_free(s);
}
END_TEST

/* Copies whole vectors, bytes after them, and memory that begins within one. */
START_TEST(copies_are_whole) {
    static const size_t sizes[][2] = {{1, 0}, {16, 0}, {4096 * 16 + 5, 0}, {40000, 4}};
    static char from[70000], to[70000];
    struct place p;
    struct arena memory = {0};
    struct error e;
    size_t bytes = sizes[_i][0], offset = sizes[_i][1];
    ck_assert_msg(place_open(&p, "cuda", &e) == ST_OK, "%s", e.text);
    ck_assert_int_eq(place_reserve(&p, &memory, 2 * sizeof from, &e), ST_OK);
    for (size_t i = 0; i < sizeof from; i++) from[i] = (char)(i % 251 + 1);
    memset(to, 0, sizeof to);
    place_put(&p, memory.base, from, sizeof from);
    place_put(&p, memory.base + sizeof from, to, sizeof to);
    place_copy(&p, memory.base + sizeof from + offset, memory.base + offset, bytes);
    place_get(&p, to, memory.base + sizeof from, sizeof to);
    for (size_t i = 0; i < sizeof to; i++) ck_assert_int_eq(to[i], i >= offset && i < offset + bytes ? from[i] : 0);
    arena_free(&memory);
    place_close(&p);
}
END_TEST

/* --- factors of products ------------------------------------------------------------------------------------------ */

static struct tensor *param(struct graph *g, const char *name, int64_t rows, int64_t cols) {
    struct param_spec spec = {.name = name, .rank = 2, .dims = {rows, cols}, .init = {.kind = INIT_NORMAL, .b = 0.3}};
    if (cols == 0) spec = (struct param_spec){.name = name, .rank = 1, .dims = {rows}, .init = spec.init};
    return graph_param(g, &spec);
}

#define ROWS  37 /* of D columns; heads of HEADS, and blocks of M that are N */
#define D     8
#define N     3
#define M     2
#define INNER 12

/* A net with each place where a product meets another op. */
struct product_net {
    struct params params;
    struct graph graph;
    struct tensor *x, *normed, *z, *v, *h, *mixed, *a, *b, *inner, *branch, *logits;
};

/* joins: w1 and w2 are neighbours, so that their products can be joined; else w2 comes long before w1. keeps:
 * everything stays readable, so that nothing is stored rounded. */
static void open_product_net(struct product_net *t, const struct place *place, enum precision precision, bool joins,
                             bool keeps) {
    struct graph_options options = {
        .training = true, .guards = true, .precision = precision, .place = place, .kernels = kernel_list()};
    struct error e;
    struct graph *g = &t->graph;
    struct tensor *sum;
    memset(t, 0, sizeof *t);
    ck_assert_int_eq(params_create(&t->params, &e), ST_OK);
    t->params.place = place;
    ck_assert_int_eq(graph_create(g, &options, &t->params, &e), ST_OK);
    t->x = graph_input(g, "x", 3, (int64_t[]){1, ROWS, D}, true);
    if (!joins) param(g, "w2", INNER, D);
    t->normed = rmsnorm(g, t->x, param(g, "norm", D, 0), 1e-5);
    t->z = linear(g, t->normed, param(g, "gates", N * M * (M + 1), D), param(g, "bias", N * M * (M + 1), 0));
    t->v = linear(g, t->normed, param(g, "v", N * M, D), NULL);
    t->h = scan_block(g, t->z, t->v, N, M, GATE_SOFTMAX);
    t->mixed = linear(g, t->h, param(g, "out", D, N * M), NULL);
    struct tensor *again = add_norm(g, t->x, t->mixed, param(g, "norm2", D, 0), NULL, 1e-5, &sum);
    t->a = linear(g, again, param(g, "w1", INNER, D), NULL);
    t->b = linear(g, again, param(g, "w2", INNER, D), NULL);
    t->inner = silu_mul(g, t->a, t->b);
    t->branch = linear(g, t->inner, param(g, "w3", D, INNER), NULL);
    t->logits = linear(g, add(g, sum, t->branch), param(g, "head", 5, D), param(g, "head_bias", 5, 0));
    struct tensor *kept[] = {t->normed, t->v, t->h, t->mixed, t->a, t->b, t->inner, t->branch, again};
    for (size_t i = 0; i < sizeof kept / sizeof *kept && keeps; i++) tensor_keep(kept[i]);
    graph_set_root(g, frobenius(g, t->logits, NULL));
    ck_assert_msg(g->error.status == ST_OK, "%s", g->error.text);
    ck_assert_int_eq(params_reserve(&t->params, true, &e), ST_OK);
    ck_assert_msg(graph_plan(g, &e) == ST_OK, "%s", e.text);
    params_init(&t->params, 3);
}

/* Asserts that the copy has the values rounded, and returns 1. Numbers of bf16 are the upper halves of floats. */
static int expect_rounded(const struct product_net *t, const real *values, const void *copy, int64_t n) {
    const struct graph_options *o = &t->graph.options;
    real exact[ROWS * N * M * (M + 1)], found[ROWS * N * M * (M + 1)];
    uint16_t halves[ROWS * N * M * (M + 1)] = {0};
    bool bf16 = o->precision == PRECISION_BF16;
    place_get(o->place, exact, values, (size_t)n * sizeof *values);
    place_get(o->place, bf16 ? (void *)halves : found, copy, (size_t)n * (bf16 ? sizeof *halves : sizeof *found));
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)halves[i] << 16;
        float half;
        memcpy(&half, &bits, sizeof half);
        ck_assert((bf16 ? (real)half : found[i]) == rounded(o->precision, exact[i]));
    }
    return 1;
}

/* Asserts that a buffer of the plan has so many bytes for each number of the tensor. */
static void expect_bytes(const struct graph *g, const struct tensor *t, int buffer, size_t each) {
    ck_assert_int_ge(buffer, 0);
    ck_assert_uint_eq(g->plan->buffers[buffer].used, (size_t)tensor_count(t) * each);
}

/* What products read has 2 bytes in bf16; the bytes of a step are counted so. */
static void expect_small_factors(const struct product_net *t, const struct product_net *unrounded) {
    const struct graph *g = &t->graph;
    size_t each = g->options.precision == PRECISION_BF16 ? 2 : 4;
    expect_bytes(g, t->normed, t->normed->plan.value_buffer, each);
    expect_bytes(g, t->inner, t->inner->plan.value_buffer, each);
    expect_bytes(g, t->branch, t->branch->plan.grad_buffer, each);
    expect_bytes(g, t->h, t->h->plan.value_buffer, 4);
    expect_bytes(g, t->h, t->h->plan.factor_buffer, each);
    expect_bytes(g, t->z, t->z->plan.grad_factor_buffer, each);
    struct cost forward = graph_cost(g, PASS_FORWARD), other = graph_cost(&unrounded->graph, PASS_FORWARD);
    const struct tensor *rounded[] = {t->normed, t->normed, t->normed, t->inner, t->inner};
    double fewer = 0; /* a write and the reads of each */
    for (int i = 0; i < 5; i++) fewer += (double)(4 - each) * (double)tensor_count(rounded[i]);
    ck_assert(other.bytes - forward.bytes >= fewer);
}

/* Looks at the rounded copies before the products that read them: of h in forward, of dz in backward. The gates' call
 * comes once more at the end of the walk. */
struct copies_seen {
    const struct product_net *of;
    int n;
};

static void look_at_copies(void *watcher, const struct call *c, enum pass pass) {
    struct copies_seen *seen = watcher;
    const struct product_net *t = seen->of;
    if (c && pass == PASS_FORWARD && c->in[0] == t->h)
        seen->n += expect_rounded(t, tensor_real(t->h), t->h->factor, tensor_count(t->h));
    if (c && pass == PASS_BACKWARD && c->out[0] == t->z && seen->n % 2 == 1)
        seen->n += expect_rounded(t, t->z->grad, t->z->grad_factor, tensor_count(t->z));
}

/* Walks forward and backward; the gradients of the parameters are then in params.host. */
static void walk_product_net(struct product_net *t) {
    real x[ROWS * D];
    struct error e;
    for (int i = 0; i < ROWS * D; i++) x[i] = (real)(i * 37 % 41 - 20) / 13;
    graph_put(&t->graph, t->x, x);
    graph_forward(&t->graph, NULL);
    graph_backward(&t->graph, NULL);
    ck_assert_msg(place_wait(&t->graph.options.place[0], &e) == ST_OK, "%s", e.text);
    ck_assert_int_lt(t->graph.plan->first_guard_failure, 0);
    params_fetch(&t->params, t->params.grad);
}

static void close_product_net(struct product_net *t) {
    graph_free(&t->graph);
    params_free(&t->params);
}

/* The bits equal those of a graph in which each product rounds its factors itself. */
START_TEST(producers_round_what_products_alone_read) {
    static struct product_net by_producers, by_products;
    struct place place;
    struct error e;
    if (REAL_IS_DOUBLE) return; /* double has no such products */
    ck_assert_msg(place_open(&place, "cuda", &e) == ST_OK, "%s", e.text);
    open_product_net(&by_producers, &place, _i ? PRECISION_BF16 : PRECISION_TF32, false, false);
    open_product_net(&by_products, &place, _i ? PRECISION_BF16 : PRECISION_TF32, false, true);
    const struct product_net *t = &by_producers;
    ck_assert(t->normed->rounded && t->inner->rounded);
    ck_assert(t->v->grad_rounded && t->mixed->grad_rounded && t->a->grad_rounded && t->b->grad_rounded);
    ck_assert(t->branch->grad_rounded);
    ck_assert(!t->h->rounded && !t->logits->grad_rounded && !t->x->rounded); /* the scan's gradient reads h */
    ck_assert(t->h->copied && t->z->grad_copied && !t->v->grad_copied && !t->normed->copied);
    struct copies_seen seen = {t, 0};
    by_producers.graph.plan->watch = look_at_copies;
    by_producers.graph.plan->watcher = &seen;
    ck_assert(!by_products.normed->rounded && !by_products.a->grad_rounded);
    expect_small_factors(&by_producers, &by_products);
    for (int step = 0; step < 2; step++) { /* the second time with other parameters in the same memory */
        walk_product_net(&by_producers);
        walk_product_net(&by_products);
        size_t bytes = (size_t)t->params.floats * sizeof(real);
        ck_assert_mem_eq(t->params.host, by_products.params.host, bytes);
        params_init(&by_producers.params, 4);
        params_init(&by_products.params, 4);
        ck_assert_int_eq(seen.n, 2 * (step + 1));
    }
    close_product_net(&by_producers);
    close_product_net(&by_products);
    place_close(&place);
}
END_TEST

/* --- products that are joined ------------------------------------------------------------------------------------- */

/* Only the sum of both products' dx may have other last bits, and what comes before it in the net. */
START_TEST(joined_products_have_the_values_of_two) {
    static const double bounds[] = {1e-5, 2e-3, 1.6e-2};
    static struct product_net one, two;
    struct place place;
    struct error e;
    real losses[2];
    if (REAL_IS_DOUBLE && _i != PRECISION_FULL) return; /* double has no such products */
    ck_assert_msg(place_open(&place, "cuda", &e) == ST_OK, "%s", e.text);
    open_product_net(&one, &place, (enum precision)_i, true, false);
    open_product_net(&two, &place, (enum precision)_i, false, false);
    ck_assert(one.a->pitch == 2 * INNER && tensor_real(one.b) == tensor_real(one.a) + INNER);
    ck_assert((char *)one.b->grad == (char *)one.a->grad + INNER * precision_bytes((enum precision)_i) &&
              two.a->pitch == 0 && one.z->pitch == 0);
    walk_product_net(&one);
    walk_product_net(&two);
    place_get(&place, &losses[0], one.graph.root->data, sizeof *losses);
    place_get(&place, &losses[1], two.graph.root->data, sizeof *losses);
    ck_assert_mem_eq(&losses[0], &losses[1], sizeof *losses);
    for (const struct param *p = one.params.list; p < one.params.list + one.params.n; p++) {
        const real *got = one.params.host + p->offset;
        const real *want = two.params.host + params_find(&two.params, p->name)->offset;
        double most = 0, error = 0, bound = p->name[0] == 'w' || p->name[0] == 'h' ? 0 : bounds[_i]; /* w1, head, .. */
        for (int64_t k = 0; k < p->count; k++) {
            most = fmax(most, fabs((double)want[k]));
            error = fmax(error, fabs((double)(got[k] - want[k])));
        }
        ck_assert_msg(most > 0 && error <= bound * most, "%s: error %g of %g", p->name, error, most);
    }
    close_product_net(&one);
    close_product_net(&two);
    place_close(&place);
}
END_TEST

/* --- gradients of weights that are computed together -------------------------------------------------------------- */

#define MAPS      36 /* more than one launch takes */
#define LONG_ROWS 270

/* A chain of maps y = x + map(x) of changing width, every third with a bias; the last two share their weight. */
static void open_chain(struct graph *g, struct params *params, const struct place *place, enum precision precision,
                       struct tensor **x) {
    struct graph_options options = {
        .training = true, .guards = true, .precision = precision, .place = place, .kernels = kernel_list()};
    struct error e;
    char name[16];
    ck_assert_int_eq(params_create(params, &e), ST_OK);
    params->place = place;
    ck_assert_int_eq(graph_create(g, &options, params, &e), ST_OK);
    *x = graph_input(g, "x", 2, (int64_t[]){LONG_ROWS, D}, true);
    struct tensor *y = *x;
    for (int i = 0; i < MAPS / 2; i++) {
        int64_t inner = i == 0 ? 133 : 1 + i * 7 % 20;
        snprintf(name, sizeof name, "up%d", i);
        struct tensor *w = param(g, name, inner, D);
        snprintf(name, sizeof name, "bias%d", i);
        struct tensor *middle = linear(g, y, w, i % 3 ? NULL : param(g, name, inner, 0));
        snprintf(name, sizeof name, "down%d", i);
        y = add(g, y, linear(g, activate(g, middle, ACT_TANH), param(g, name, D, inner), NULL));
    }
    struct tensor *shared = param(g, "shared", D, D);
    y = linear(g, activate(g, linear(g, y, shared, NULL), ACT_TANH), shared, NULL);
    graph_set_root(g, frobenius(g, y, NULL));
    ck_assert_msg(g->error.status == ST_OK, "%s", g->error.text);
    ck_assert_int_eq(params_reserve(params, true, &e), ST_OK);
    ck_assert_msg(graph_plan(g, &e) == ST_OK, "%s", e.text);
    params_init(params, 3);
}

/* Compares with the CPU. Roundings of tf32 and bf16 grow along the chain. */
START_TEST(weights_get_their_gradients_together) {
    static const double bounds[] = {1e-4, 4e-3, 3e-2};
    enum precision precision = (enum precision)_i;
    struct params here, there;
    struct graph on_cpu, on_device;
    struct place place;
    struct error e;
    struct tensor *x;
    static real values[LONG_ROWS * D];
    if (REAL_IS_DOUBLE && precision != PRECISION_FULL) return; /* double has no such products */
    for (int i = 0; i < LONG_ROWS * D; i++) values[i] = (real)(i * 37 % 41 - 20) / 13;
    ck_assert_msg(place_open(&place, "cuda", &e) == ST_OK, "%s", e.text);
    open_chain(&on_cpu, &here, NULL, precision, &x);
    graph_put(&on_cpu, x, values);
    graph_forward(&on_cpu, NULL);
    graph_backward(&on_cpu, NULL);
    open_chain(&on_device, &there, &place, precision, &x);
    ck_assert_int_eq(on_cpu.plan->deferred.n, 0);
    /* but the first: another call adds to the gradient of its input, which is the graph's */
    ck_assert_int_eq(on_device.plan->deferred.n, REAL_IS_DOUBLE ? 0 : MAPS - 1);
    graph_put(&on_device, x, values);
    graph_forward(&on_device, NULL);
    graph_backward(&on_device, NULL);
    ck_assert_msg(place_wait(&place, &e) == ST_OK, "%s", e.text);
    ck_assert_int_lt(on_device.plan->first_guard_failure, 0);
    params_fetch(&there, there.grad);
    for (int p = 0; p < here.n; p++) {
        const real *want = here.grad + here.list[p].offset, *got = there.host + there.list[p].offset;
        double most = 0, error = 0;
        for (int64_t k = 0; k < here.list[p].count; k++) {
            most = fmax(most, fabs((double)want[k]));
            error = fmax(error, fabs((double)(got[k] - want[k])));
        }
        ck_assert_msg(most > 0 && error <= bounds[precision] * most, "%s: error %g of %g", here.list[p].name, error,
                      most);
    }
    graph_free(&on_cpu);
    params_free(&here);
    graph_free(&on_device);
    params_free(&there);
    place_close(&place);
}
END_TEST

Suite *check_cuda_values(void);
Suite *check_cuda_values(void) {
    Suite *suite = suite_create("cuda_values");
    TCase *tests = tcase_create("values");
    tcase_add_checked_fixture(tests, begin, program_end);
    tcase_add_test(tests, what_no_memory_holds_is_sent);
    tcase_add_loop_test(tests, batches_of_values_begin_anywhere, 0, 3);
    tcase_add_loop_test(tests, copies_are_whole, 0, 4);
    tcase_add_loop_test(tests, producers_round_what_products_alone_read, 0, 2);
    tcase_add_loop_test(tests, joined_products_have_the_values_of_two, 0, PRECISION_COUNT);
    tcase_add_loop_test(tests, weights_get_their_gradients_together, 0, PRECISION_COUNT);
    suite_add_tcase(suite, tests);
    return suite;
}
