/* check_tree_block.c - block systems on trees: beside a dense solve of the assembled matrix, beside tree_solve where
 * they are scalar systems, and the bound of their couplings. Systems have a condition number below 100, or are skew. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/tree/tree.h"
#include "tests/lib/support.h"

#define TOLERANCE (REAL_IS_DOUBLE ? 1e-10 : 256 * REAL_EPSILON)

enum share { SHARE_HEAD, SHARE_LEVEL, SHARE_NODE, SHARE_SAMPLE };

/* One solve with its gradients flowing from the loss <x, w>. */
struct solve {
    struct graph g;
    struct tree_system s;
    struct tensor *x[2], *w[2];
    int64_t B, T, P, m, r; /* m: 1 also for tree_solve */
    struct step_state state;
};

static struct tensor *table(struct solve *t, const char *name, enum share share) {
    int64_t rows = share == SHARE_HEAD ? 1 : share == SHARE_LEVEL ? t->s.tree.levels - 1 : t->T - 1;
    if (share == SHARE_SAMPLE) return input3(&t->g, name, t->B, t->T, t->m * t->m * t->P, true);
    return input3(&t->g, name, rows, t->m * t->m * t->P, 0, true);
}

static void solve_open(struct solve *t, struct tree_system s, enum share share, int64_t B, int64_t P, int64_t r,
                       bool counts, const char *kernel) {
    int64_t m = s.block ? s.block : 1, T = tree_nodes(&s.tree);
    *t = (struct solve){.s = s, .B = B, .T = T, .P = P, .m = m, .r = r, .state = first_state()};
    open_graph(&t->g, NULL, true, true, kernel);
    t->s.up_re = table(t, "up_re", share);
    t->s.up_im = table(t, "up_im", share);
    if (s.form == TREE_FREE) t->s.down_re = table(t, "down_re", share);
    if (s.form == TREE_FREE) t->s.down_im = table(t, "down_im", share);
    t->s.u_re = input3(&t->g, "u_re", B, T, m * r * P, true);
    t->s.u_im = input3(&t->g, "u_im", B, T, m * r * P, true);
    if (counts) t->s.leaves = graph_input_ids(&t->g, "leaves", 1, &B, (int32_t)tree_places(&s.tree) + 1, false);
    t->x[0] = tree_solve(&t->g, &t->s, &t->x[1]);
    struct tensor *loss = NULL;
    for (int i = 0; i < 2; i++) {
        tensor_keep(t->x[i]);
        t->w[i] = input3(&t->g, "w", B, T, m * r * P, false);
        loss = dot(&t->g, t->x[i], t->w[i], loss);
    }
    graph_set_root(&t->g, loss);
    plan_graph(&t->g);
    fill_inputs(&t->g, FILL_SMALL, false);
    for (int64_t b = 0; counts && b < B; b++)
        tensor_i32(t->s.leaves)[b] = (int32_t)(b * tree_places(&s.tree) / (B > 1 ? B - 1 : 1));
}

static void solve_walk(struct solve *t) {
    graph_forward(&t->g, &t->state);
    graph_backward(&t->g, &t->state);
    ck_assert_int_lt(t->g.plan->first_guard_failure, 0);
}

static double complex at(const struct tensor *re, const struct tensor *im, int64_t i) {
    return tensor_real(re)[i] + I * (double)tensor_real(im)[i];
}

/* --- the dense system
 * ---------------------------------------------------------------------------------------------- */

/* Parent of node v, its level, and the first leaf below v; in a chain `leaf` is v itself. -1 for the root. */
static int64_t parent_of(const struct tree *t, int64_t v, int64_t *level, int64_t *leaf) {
    int64_t offset = 0, count = 1, span = 1;
    for (int64_t l = 1; l < t->levels; l++) count *= t->arity;
    for (*level = 0; v >= offset + count; ++*level) {
        offset += count;
        count /= t->arity;
        span *= t->arity;
    }
    *leaf = t->arity == 1 ? v : (v - offset) * span;
    return *level == t->levels - 1 ? -1 : offset + count + (v - offset) / t->arity;
}

/* B = beta Theta L^-H by the Cholesky factor; the CPU's kernel makes columns orthonormal instead. */
static void bounded(double beta, int64_t m, const double complex *theta, double complex *b) {
    double complex l[TREE_BLOCK_MAX][TREE_BLOCK_MAX];
    for (int64_t e = 0; e < m * m; e++) b[e] = (beta > 0 ? beta : 1) * theta[e];
    for (int64_t j = 0; beta > 0 && j < m; j++) {
        for (int64_t i = j; i < m; i++) {
            l[i][j] = i == j;
            for (int64_t k = 0; k < m; k++) l[i][j] += conj(theta[k * m + i]) * theta[k * m + j];
            for (int64_t k = 0; k < j; k++) l[i][j] -= l[i][k] * conj(l[j][k]);
            l[i][j] = i == j ? csqrt(l[i][j]) : l[i][j] / l[j][j];
        }
        for (int64_t i = 0; i < m; i++) {
            for (int64_t k = 0; k < j; k++) b[i * m + j] -= b[i * m + k] * conj(l[j][k]);
            b[i * m + j] /= l[j][j];
        }
    }
}

static void matrix_of(const struct solve *t, const struct tensor *re, const struct tensor *im, int64_t b, int64_t v,
                      int64_t level, int64_t p, double complex *to) {
    double complex theta[TREE_BLOCK_MAX * TREE_BLOCK_MAX];
    int64_t rows = re->dims[0], square = t->m * t->m;
    int64_t row = re->rank == 3 ? b * t->T + v : rows == 1 ? 0 : rows == t->s.tree.levels - 1 ? level : v;
    for (int64_t e = 0; e < square; e++) theta[e] = at(re, im, (row * square + e) * t->P + p);
    bounded(t->s.beta, t->m, theta, to);
}

/* Solves a x = y for n unknowns, y becoming x: elimination with a search for the pivot. */
static void dense_solve(int64_t n, double complex *a, double complex *y) {
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t i = k; i < n; i++)
            if (cabs(a[i * n + k]) > cabs(a[best * n + k])) best = i;
        for (int64_t j = 0; j < n; j++) {
            double complex other = a[k * n + j];
            a[k * n + j] = a[best * n + j];
            a[best * n + j] = other;
        }
        double complex other = y[k];
        y[k] = y[best];
        y[best] = other;
        for (int64_t i = k + 1; i < n; i++) {
            double complex by = a[i * n + k] / a[k * n + k];
            for (int64_t j = k; j < n; j++) a[i * n + j] -= by * a[k * n + j];
            y[i] -= by * y[k];
        }
    }
    for (int64_t k = n - 1; k >= 0; k--) {
        for (int64_t j = k + 1; j < n; j++) y[k] -= a[k * n + j] * y[j];
        y[k] /= a[k * n + k];
    }
}

/* Puts a node's blocks into the matrix of T m unknowns. */
static void assemble(const struct solve *t, int64_t b, int64_t p, int64_t leaves, double complex *a) {
    int64_t m = t->m, n = t->T * m, level, leaf;
    double complex up[TREE_BLOCK_MAX * TREE_BLOCK_MAX], down[TREE_BLOCK_MAX * TREE_BLOCK_MAX];
    memset(a, 0, (size_t)(n * n) * sizeof *a);
    for (int64_t i = 0; i < n; i++) a[i * n + i] = 1;
    for (int64_t v = 0; v < t->T; v++) {
        int64_t parent = parent_of(&t->s.tree, v, &level, &leaf);
        if (parent < 0 || leaf >= leaves || (t->s.tree.arity == 1 && parent >= leaves)) continue;
        matrix_of(t, t->s.up_re, t->s.up_im, b, v, level, p, up);
        if (t->s.form == TREE_FREE) matrix_of(t, t->s.down_re, t->s.down_im, b, v, level, p, down);
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < m; j++) {
                double complex tied = conj(up[j * m + i]) * (t->s.form == TREE_SKEW ? -1 : 1);
                a[(v * m + i) * n + parent * m + j] = up[i * m + j];
                a[(parent * m + i) * n + v * m + j] = t->s.form == TREE_FREE ? down[i * m + j] : tied;
            }
    }
}

static const char *const kernels[] = {"reference", "tree_block_cpu"};
#define N_KERNELS (int)(sizeof kernels / sizeof *kernels)

static double beta_of(enum tree_form form, int64_t arity) {
    return form == TREE_SKEW ? 0 : 0.95 / (double)(arity + 1);
}

/* Compares x of every head and right-hand side with the dense solve. */
static void compare_with_dense(struct solve *t, const char *what) {
    int64_t n = t->T * t->m, level, leaf;
    double complex *a = calloc((size_t)(n * n), sizeof *a), *y = calloc((size_t)n, sizeof *y);
    ck_assert(a && y);
    solve_walk(t);
    for (int64_t b = 0; b < t->B; b++) {
        int64_t leaves = t->s.leaves ? tensor_i32(t->s.leaves)[b] : t->s.tree.leaves;
        leaves = leaves < t->s.tree.leaves ? leaves : t->s.tree.leaves;
        for (int64_t p = 0; p < t->P; p++)
            for (int64_t q = 0; q < t->r; q++) {
                int64_t first = b * n * t->r * t->P + q * t->P + p;
                assemble(t, b, p, leaves, a);
                for (int64_t i = 0; i < n; i++) {
                    parent_of(&t->s.tree, i / t->m, &level, &leaf);
                    y[i] = leaf < leaves ? at(t->s.u_re, t->s.u_im, first + i * t->r * t->P) : 0;
                }
                dense_solve(n, a, y);
                for (int64_t i = 0; i < n; i++)
                    expect_at_most(cabs(y[i] - at(t->x[0], t->x[1], first + i * t->r * t->P)), TOLERANCE, what);
            }
    }
    free(a);
    free(y);
}

static const struct tree trees[] = {{1, 7, 5}, {2, 4, 8}, {2, 4, 5}, {3, 3, 7}, {6, 2, 6}};

START_TEST(solutions_are_those_of_the_assembled_matrix) {
    for (int form = TREE_HERMITIAN; form <= TREE_FREE; form++)
        for (int share = SHARE_HEAD; share <= SHARE_SAMPLE; share++)
            for (int kernel = 0; kernel < N_KERNELS; kernel++)
                for (int64_t m = 1; m <= TREE_BLOCK_MAX; m = m < 3 ? m + 1 : m + 5) {
                    struct solve t;
                    struct tree_system s = {.tree = trees[_i], .form = (enum tree_form)form, .block = m};
                    s.beta = beta_of(s.form, s.tree.arity);
                    solve_open(&t, s, (enum share)share, 3, 2, 1 + m % 2, share % 2 == 0, kernels[kernel]);
                    char what[100];
                    snprintf(what, sizeof what, "%s, m = %d, form %d, sharing %d: distance from the dense solution",
                             kernels[kernel], (int)m, form, share);
                    compare_with_dense(&t, what);
                    graph_free(&t.g);
                }
}
END_TEST

/* --- beside the scalar op
 * ------------------------------------------------------------------------------------------ */

/* x and all gradients. */
START_TEST(blocks_of_one_are_scalars) {
    for (int form = TREE_HERMITIAN; form <= TREE_FREE; form++)
        for (int share = SHARE_HEAD; share <= SHARE_SAMPLE; share++) {
            struct solve one, scalar;
            struct tree_system s = {
                .tree = {3, 3, 7}, .form = (enum tree_form)form, .beta = beta_of((enum tree_form)form, 3)};
            solve_open(&scalar, s, (enum share)share, 3, 37, 1, true, "reference");
            s.block = 1;
            solve_open(&one, s, (enum share)share, 3, 37, 1, true, kernels[_i]);
            solve_walk(&one);
            solve_walk(&scalar);
            int64_t n = tensor_count(scalar.x[0]), couplings = tensor_count(scalar.s.up_re);
            expect_close(tensor_real(one.x[0]), tensor_real(scalar.x[0]), n, TOLERANCE, "re x");
            expect_close(tensor_real(one.x[1]), tensor_real(scalar.x[1]), n, TOLERANCE, "im x");
            expect_close(one.s.u_re->grad, scalar.s.u_re->grad, n, TOLERANCE, "gradient of re u");
            expect_close(one.s.u_im->grad, scalar.s.u_im->grad, n, TOLERANCE, "gradient of im u");
            expect_close(one.s.up_re->grad, scalar.s.up_re->grad, couplings, TOLERANCE, "gradient of re up");
            expect_close(one.s.up_im->grad, scalar.s.up_im->grad, couplings, TOLERANCE, "gradient of im up");
            if (form == TREE_FREE)
                expect_close(one.s.down_im->grad, scalar.s.down_im->grad, couplings, TOLERANCE, "gradient of im down");
            graph_free(&one.g);
            graph_free(&scalar.g);
        }
}
END_TEST

/* With diagonal blocks, component i of head p is head i * P + p of a scalar system; also the bound acts on each. */
START_TEST(diagonal_blocks_are_independent_trees) {
    for (int form = TREE_HERMITIAN; form <= TREE_FREE; form++) {
        struct solve blocks, scalar;
        const int64_t m = 4, P = 5, rows = 2;
        struct tree_system s = {
            .tree = {2, 3, 3}, .form = (enum tree_form)form, .beta = beta_of((enum tree_form)form, 2)};
        solve_open(&scalar, s, SHARE_LEVEL, 2, m * P, 1, false, "reference");
        s.block = m;
        solve_open(&blocks, s, SHARE_LEVEL, 2, P, 1, false, kernels[_i]);
        struct tensor *from[] = {scalar.s.up_re, scalar.s.up_im, scalar.s.down_re, scalar.s.down_im};
        struct tensor *to[] = {blocks.s.up_re, blocks.s.up_im, blocks.s.down_re, blocks.s.down_im};
        int planes = form == TREE_FREE ? 4 : 2;
        for (int k = 0; k < planes; k++)
            for (int64_t e = 0; e < rows * m * m * P; e++) {
                int64_t i = e / P / m % m, j = e / P % m, row = e / P / m / m;
                tensor_real(to[k])[e] = i == j ? tensor_real(from[k])[(row * m + i) * P + e % P] : 0;
            }
        solve_walk(&blocks);
        solve_walk(&scalar);
        for (int k = 0; k < 2; k++)
            expect_close(tensor_real(blocks.x[k]), tensor_real(scalar.x[k]), tensor_count(scalar.x[k]), TOLERANCE, "x");
        for (int k = 0; k < planes; k++)
            for (int64_t e = 0; e < rows * m * P; e++) {
                int64_t i = e / P % m, row = e / P / m;
                double got = (double)to[k]->grad[((row * m + i) * m + i) * P + e % P];
                expect_near(got, (double)from[k]->grad[e], TOLERANCE * fmax(1, fabs(got)), "gradient of a diagonal");
            }
        graph_free(&blocks.g);
        graph_free(&scalar.g);
    }
}
END_TEST

/* --- conditioning
 * -------------------------------------------------------------------------------------------------- */

/* ||T^-1|| <= 1/(1-rho) for couplings of any size under the bound, and <= 1 in the skew form without one. */
START_TEST(the_bound_keeps_the_system_well_conditioned) {
    const double rho = 0.95;
    for (int form = TREE_HERMITIAN; form <= TREE_FREE; form++) {
        struct solve t;
        struct tree_system s = {.tree = {3, 4, 27}, .form = (enum tree_form)form, .block = 3};
        s.beta = form == TREE_SKEW ? 0 : rho / 4;
        solve_open(&t, s, SHARE_NODE, 2, 6, 1, false, kernels[_i]);
        for (int64_t i = 0; i < tensor_count(t.s.up_re); i++) tensor_real(t.s.up_re)[i] *= 50;
        solve_walk(&t);
        for (int64_t b = 0; b < t.B; b++)
            for (int64_t p = 0; p < t.P; p++) {
                double x = 0, u = 0, limit = form == TREE_SKEW ? 1 : 1 / (1 - rho);
                for (int64_t i = 0; i < t.T * t.m; i++) {
                    int64_t e = (b * t.T * t.m + i) * t.P + p;
                    x += pow(cabs(at(t.x[0], t.x[1], e)), 2);
                    u += pow(cabs(at(t.s.u_re, t.s.u_im, e)), 2);
                }
                expect_at_most(sqrt(x), limit * sqrt(u) * (1 + TOLERANCE), "norm of x");
            }
        graph_free(&t.g);
    }
}
END_TEST

Suite *check_tree_block(void);
Suite *check_tree_block(void) {
    Suite *suite = suite_create("tree_block");
    TCase *tests = tcase_create("tree_block");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, solutions_are_those_of_the_assembled_matrix, 0, (int)(sizeof trees / sizeof *trees));
    tcase_add_loop_test(tests, blocks_of_one_are_scalars, 0, N_KERNELS);
    tcase_add_loop_test(tests, diagonal_blocks_are_independent_trees, 0, N_KERNELS);
    tcase_add_loop_test(tests, the_bound_keeps_the_system_well_conditioned, 0, N_KERNELS);
    suite_add_tcase(suite, tests);
    return suite;
}
