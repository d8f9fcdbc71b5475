/* check_rounding.c - kernels whose results are sums that cancel: the largest magnitude of what is left says little
 * about the rounding on the way there, the magnitude of the terms does (op->terms), and in that measure they keep their
 * tolerance. */
#include <math.h>

#include "core/batch.h"
#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "kernels/norm/norm.h"
#include "kernels/train/train.h"
#include "kernels/tree/tree.h"
#include "tests/lib/op_compare.h"

#define DRAWS 400

/* --- shapes found by a fuzzer ------------------------------------------------------------------------------------- */

static struct tensor *reals(struct graph *g, int64_t a, int64_t b, int64_t c) {
    return input3(g, "x", a, b, c, true);
}

static bool build_cross_entropy(struct graph *g, int64_t rows, int64_t V) {
    struct tensor *logits = reals(g, 1, rows, V), *predictions;
    cross_entropy(g, logits, graph_input_ids(g, "t", 2, (int64_t[]){1, rows}, (int32_t)V, false), &predictions);
    return true;
}

/* Often its target has the largest logit, and 1 - p is all there is. */
static bool one_row(struct graph *g, const struct op_sizes *s) {
    (void)s;
    return build_cross_entropy(g, 1, 2);
}

static bool few_rows(struct graph *g, const struct op_sizes *s) {
    (void)s;
    return build_cross_entropy(g, 9, 7);
}

static bool one_output(struct graph *g, const struct op_sizes *s) {
    (void)s;
    struct tensor *x = reals(g, 1, 1, 405), *w = reals(g, 1, 405, 0);
    linear(g, x, w, reals(g, 1, 0, 0));
    return true;
}

static bool one_bias(struct graph *g, const struct op_sizes *s) {
    (void)s;
    struct tensor *x = reals(g, 2, 230, 9), *w = reals(g, 1, 9, 0);
    linear(g, x, w, reals(g, 1, 0, 0));
    return true;
}

static bool relu_companion(struct graph *g, const struct op_sizes *s) {
    (void)s;
    struct tensor *z = reals(g, 1, 50, 18);
    scan_companion(g, z, reals(g, 1, 50, 9), 9, 1, GATE_RELU, LAYOUT_COMPANION);
    return true;
}

static bool one_step_observer(struct graph *g, const struct op_sizes *s) {
    (void)s;
    struct tensor *z = reals(g, 1, 1, 10);
    scan_companion(g, z, reals(g, 1, 1, 2), 2, 4, GATE_SOFTMAX, LAYOUT_OBSERVER);
    return true;
}

static bool relu_blocks(struct graph *g, const struct op_sizes *s) {
    (void)s;
    struct tensor *z = reals(g, 2, 40, 12 * 13);
    scan_block(g, z, reals(g, 2, 40, 3 * 13), 13, 3, GATE_RELU);
    return true;
}

static bool one_coupling(struct graph *g, const struct op_sizes *s) {
    (void)s;
    const struct tree t = {.arity = 2, .levels = 5};
    struct tensor *w = reals(g, 28, 31, 1);
    tree_add(g, &t, w, reals(g, 1, 1, 0));
    return true;
}

/* Two numbers and their mean: what is left of them is small against both. */
static bool two_columns(struct graph *g, const struct op_sizes *s) {
    (void)s;
    struct tensor *x = reals(g, 3, 50, 2), *w = reals(g, 2, 0, 0);
    layernorm(g, x, w, reals(g, 2, 0, 0), 1e-5);
    return true;
}

static bool sums_in_two_columns(struct graph *g, const struct op_sizes *s) {
    (void)s;
    struct tensor *x = reals(g, 3, 50, 2), *branch = reals(g, 3, 50, 2), *w = reals(g, 2, 0, 0), *sum;
    add_norm(g, x, branch, w, reals(g, 2, 0, 0), 1e-5, &sum);
    return true;
}

static bool heads_of_two(struct graph *g, const struct op_sizes *s) {
    (void)s;
    struct tensor *x = reals(g, 3, 20, 6);
    layernorm_heads(g, x, reals(g, 3, 2, 0), 1e-5);
    return true;
}

/* The first input is base + amplitude times a uniform number of (-1, 1), the others the latter. */
static const struct {
    const char *kernel;
    bool (*build)(struct graph *g, const struct op_sizes *s);
    double base, amplitude;
    bool cancels; /* few_rows: the largest logit does, which is taken away before anything rounds */
} cases[] = {
    {"cross_entropy_cpu", one_row, 0, 60, true},
    {"cross_entropy_cpu", few_rows, 1e4, 1, false},
    {"linear_cpu", one_output, 0, 1, true},
    {"linear_cpu", one_bias, 0, 30, true},
    {"scan_companion_cpu", relu_companion, 0, 30, true},
    {"scan_companion_cpu", one_step_observer, 0, 30, true},
    {"scan_block_cpu", relu_blocks, 0, 1, true},
    {"tree_add_cpu", one_coupling, 0, 30, true},
    {"layernorm_cpu", two_columns, 0, 30, true},
    {"add_norm_cpu", sums_in_two_columns, 0, 30, true},
    {"layernorm_heads_cpu", heads_of_two, 0, 1, true},
};

/* --- draws -------------------------------------------------------------------------------------------------------- */

static void fill(struct graph *g, int draw, double base, double amplitude) {
    struct rng rng = rng_at(7, STREAM_TEST, (uint64_t)draw);
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i];
        if (t->producer >= 0 || t->base) continue;
        for (int64_t k = 0; k < tensor_count(t); k++) {
            double uniform = 2 * (rng_u32(&rng) * 0x1p-32) - 1;
            if (t->dtype == DT_I32)
                tensor_i32(t)[k] = (int32_t)rng_below(&rng, (uint64_t)t->limit);
            else
                tensor_real(t)[k] = (real)(i == 0 ? base + amplitude * uniform : uniform);
        }
    }
}

/* Whether one of the results is beyond the tolerance in units of its own largest magnitude. */
static bool beyond(double tolerance, const real *got, const real *want, const struct tensor *t) {
    struct difference d = compare_reals(got, want, tensor_count(t));
    return d.error > tolerance * REAL_EPSILON * d.scale;
}

static bool any_beyond(double tolerance, const struct call *got, const struct call *want) {
    bool any = beyond(tolerance, got->out[0]->data, want->out[0]->data, got->out[0]);
    for (int i = 0; i < got->n_in; i++)
        if (input_has_grad(got, i)) any |= beyond(tolerance, got->in[i]->grad, want->in[i]->grad, got->in[i]);
    return any;
}

START_TEST(rounding_keeps_its_tolerance_in_units_of_the_terms) {
    const struct kernel *k = kernel_find(cases[_i].kernel);
    int found = 0;
    for (int draw = 0; draw < DRAWS; draw++) {
        struct op_run got, want;
        struct trial_op what = {
            .op = k->op, .kernel = k->name, .sizes = sizes_at(""), .outputs = 1, .build = cases[_i].build};
        ck_assert(run_open(&got, &what));
        what.kernel = "reference";
        ck_assert(run_open(&want, &what));
        fill(&got.g, draw, cases[_i].base, cases[_i].amplitude);
        fill(&want.g, draw, cases[_i].base, cases[_i].amplitude);
        run_walk(&got);
        run_walk(&want);
        expect_same_outputs(&got, &want, k->tolerance);
        expect_same_gradients(&got, &want, k->tolerance, -1);
        found += any_beyond(k->tolerance, got.call, want.call);
        run_close(&got);
        run_close(&want);
    }
    if (cases[_i].cancels && REAL_IS_DOUBLE) return; /* kernel and reference may round alike */
    if (cases[_i].cancels)
        ck_assert_msg(found > 0, "%s: none of %d draws cancels, so the case shows nothing", k->name, DRAWS);
    else
        ck_assert_msg(found == 0, "%s: %d of %d draws are beyond its tolerance", k->name, found, DRAWS);
}
END_TEST

Suite *check_rounding(void);
Suite *check_rounding(void) {
    Suite *suite = suite_create("rounding");
    TCase *tests = tcase_create("rounding");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, rounding_keeps_its_tolerance_in_units_of_the_terms, 0, sizeof cases / sizeof *cases);
    suite_add_tcase(suite, tests);
    return suite;
}
