/* check_linear.c - linear maps in tf32 and bf16: factors of products are rounded, to the nearest number, and nothing
 * else is. */
#include <math.h>
#include <string.h>

#include "core/graph_plan.h"
#include "core/graph_walk.h"
#include "kernels/dense/dense.h"
#include "kernels/lib/round.h"
#include "tests/lib/support.h"

/* --- rounding ----------------------------------------------------------------------------------------------------- */

START_TEST(numbers_are_rounded_to_the_nearest_ties_to_even) {
    static const struct {
        double x, tf32, bf16;
    } cases[] = {
        {0, 0, 0},
        {1, 1, 1},
        {1 + 0x1p-7, 1 + 0x1p-7, 1 + 0x1p-7},
        {1 + 0x1p-8, 1 + 0x1p-8, 1},             /* a tie: down to the even one */
        {1 + 0x3p-8, 1 + 0x3p-8, 1 + 0x1p-6},    /* a tie: up to the even one */
        {1 + 0x1.1p-8, 1 + 0x1p-8, 1 + 0x1p-7},  /* above a tie; in tf32 a tie */
        {-1 - 0x3p-11, -1 - 0x1p-9, -1},         /* a tie in tf32: away from 0 to the even one */
        {0x1.fffffep+127, INFINITY, INFINITY},   /* the largest float */
        {0x1.fep+127, 0x1.fep+127, 0x1.fep+127}, /* the largest in bf16 */
        {INFINITY, INFINITY, INFINITY},
        {-INFINITY, -INFINITY, -INFINITY},
        {0x1p-130, 0x1p-130, 0x1p-130},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        real x = (real)cases[i].x, y;
        uint16_t half;
        ck_assert_msg((double)rounded(PRECISION_TF32, x) == cases[i].tf32, "tf32 of %a", cases[i].x);
        ck_assert_msg((double)rounded(PRECISION_BF16, x) == cases[i].bf16, "bf16 of %a", cases[i].x);
        ck_assert(rounded(PRECISION_FULL, x) == x);
        round_reals(PRECISION_BF16, 1, &x, &y);
        round_to_bf16(1, &x, &half);
        float back;
        uint32_t bits = (uint32_t)half << 16;
        memcpy(&back, &bits, sizeof back);
        ck_assert(y == (real)cases[i].bf16 && (double)back == cases[i].bf16);
    }
    for (int p = PRECISION_FULL; p <= PRECISION_BF16; p++) ck_assert(isnan(rounded((enum precision)p, (real)NAN)));
}
END_TEST

/* --- a rounded product is the product of rounded factors ---------------------------------------------------------- */

#define ROWS 37
#define IN   21
#define OUT  18

struct map {
    struct graph g;
    struct tensor *x, *w, *b, *y;
};

static void fill_rounded(real *to, int64_t n, uint64_t index, enum precision p) {
    struct rng rng = rng_at(3, STREAM_TEST, index);
    for (int64_t i = 0; i < n; i++) to[i] = rounded(p, (real)(2 * rng_uniform(&rng) - 1));
}

/* y = x W^T + b and its gradients in `precision`, of factors that are rounded to `factors` by hand. */
static void map_walk(struct map *m, const char *kernel, enum precision precision, enum precision factors) {
    struct graph_options options = {
        .precision = precision, .training = true, .guards = true, .kernel = kernel, .kernels = kernel_list()};
    struct step_state state = {0};
    struct error e;
    ck_assert_int_eq(graph_create(&m->g, &options, NULL, &e), ST_OK);
    m->x = graph_input(&m->g, "x", 2, (int64_t[]){ROWS, IN}, true);
    m->w = graph_input(&m->g, "w", 2, (int64_t[]){OUT, IN}, true);
    m->b = graph_input(&m->g, "b", 1, (int64_t[]){OUT}, true);
    m->y = linear(&m->g, m->x, m->w, m->b);
    struct tensor *kept[] = {m->x, m->w, m->b};
    for (int i = 0; i < 3; i++) tensor_keep(kept[i]);
    graph_set_root(&m->g, m->y);
    ck_assert_msg(graph_plan(&m->g, &e) == ST_OK, "%s", e.text);
    fill_rounded(tensor_real(m->x), ROWS * IN, 1, factors);
    fill_rounded(tensor_real(m->w), OUT * IN, 2, factors);
    fill_rounded(tensor_real(m->b), OUT, 3, PRECISION_FULL);
    fill_rounded(m->y->grad, ROWS * OUT, 4, factors);
    graph_forward(&m->g, &state);
    graph_backward(&m->g, &state);
}

static bool same(const real *a, const real *b, int64_t n) {
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

START_TEST(a_rounded_product_is_that_of_rounded_factors) {
    static const char *const kernels[] = {"linear_ref", "linear_cpu"};
    enum precision p = _i & 1 ? PRECISION_BF16 : PRECISION_TF32;
    const char *kernel = kernels[_i >> 1];
    struct map got, want, full;
    map_walk(&got, kernel, p, PRECISION_FULL);
    map_walk(&want, kernel, PRECISION_FULL, p);
    map_walk(&full, kernel, PRECISION_FULL, PRECISION_FULL);
    ck_assert(same(got.y->data, want.y->data, ROWS * OUT));
    ck_assert(same(got.x->grad, want.x->grad, ROWS * IN));
    ck_assert(same(got.w->grad, want.w->grad, OUT * IN));
    ck_assert(same(got.b->grad, full.b->grad, OUT)); /* a sum, not a product */
    ck_assert(!same(got.y->data, full.y->data, ROWS * OUT));
    ck_assert(!same(got.x->grad, full.x->grad, ROWS * IN));
    ck_assert(!same(got.w->grad, full.w->grad, OUT * IN));
    graph_free(&got.g);
    graph_free(&want.g);
    graph_free(&full.g);
}
END_TEST

/* Two sums of K terms of at most 1 each: either is off by at most half a unit of K an addition. */
static void expect_sums(const real *got, const real *want, int64_t n, double K, const char *what) {
    for (int64_t i = 0; i < n; i++) expect_near((double)got[i], (double)want[i], K * K * REAL_EPSILON, what);
}

/* Whether the library has instructions for them or widens them: its products are exact, and it adds in its own
 * order. */
START_TEST(a_product_of_halves_is_that_of_rounded_factors) {
    struct map got, want, full;
    map_walk(&got, "linear_bf16_cpu", PRECISION_BF16, PRECISION_FULL);
    map_walk(&want, "linear_ref", PRECISION_FULL, PRECISION_BF16);
    map_walk(&full, "linear_cpu", PRECISION_FULL, PRECISION_FULL);
    expect_sums(got.y->data, want.y->data, ROWS * OUT, IN + 1, "y");
    expect_sums(got.x->grad, want.x->grad, ROWS * IN, OUT, "gradient of x");
    expect_sums(got.w->grad, want.w->grad, OUT * IN, ROWS, "gradient of w");
    ck_assert(same(got.b->grad, full.b->grad, OUT)); /* a sum, not a product */
    graph_free(&got.g);
    graph_free(&want.g);
    graph_free(&full.g);
}
END_TEST

Suite *check_linear(void);
Suite *check_linear(void) {
    Suite *suite = suite_create("linear");
    TCase *c = tcase_create("linear");
    tcase_add_checked_fixture(c, start_kernels, NULL);
    tcase_add_test(c, numbers_are_rounded_to_the_nearest_ties_to_even);
    tcase_add_loop_test(c, a_rounded_product_is_that_of_rounded_factors, 0, 4);
    tcase_add_test(c, a_product_of_halves_is_that_of_rounded_factors);
    suite_add_tcase(suite, c);
    return suite;
}
