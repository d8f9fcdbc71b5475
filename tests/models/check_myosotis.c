/* check_myosotis.c - properties of the tree systems, of their bounds and of the mixer's initial couplings, on random
 * trees from a fixed seed. Bounds are in units of rounding: every system here has a condition number below 100, or is
 * skew. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/tree/tree.h"
#include "models/hippo.h"
#include "tests/lib/support.h"

#define TOLERANCE (256 * REAL_EPSILON)

enum share { SHARE_HEAD, SHARE_LEVEL, SHARE_NODE };

/* One solve with its gradients flowing from the loss <x, w>. */
struct solve {
    struct graph g;
    struct tree_system s;
    struct tensor *x_re, *x_im, *w_re, *w_im;
    int64_t B, T, P;
    struct step_state state;
};

static struct tensor *table(struct solve *t, const char *name, enum share share) {
    int64_t rows = share == SHARE_HEAD ? 1 : share == SHARE_LEVEL ? t->s.tree.levels - 1 : t->T - 1;
    return input3(&t->g, name, rows, t->P, 0, true);
}

static void solve_open(struct solve *t, struct tree tree, enum tree_form form, double beta, enum share share, int64_t B,
                       int64_t P, const char *kernel) {
    *t = (struct solve){.s = {.tree = tree, .form = form, .beta = beta},
                        .B = B,
                        .T = tree_nodes(&tree),
                        .P = P,
                        .state = first_state()};
    open_graph(&t->g, NULL, true, true, kernel);
    t->s.up_re = table(t, "up_re", share);
    t->s.up_im = table(t, "up_im", share);
    if (form == TREE_FREE) t->s.down_re = table(t, "down_re", share);
    if (form == TREE_FREE) t->s.down_im = table(t, "down_im", share);
    t->s.u_re = input3(&t->g, "u_re", B, t->T, P, true);
    t->s.u_im = input3(&t->g, "u_im", B, t->T, P, true);
    t->x_re = tree_solve(&t->g, &t->s, &t->x_im);
    tensor_keep(t->x_re);
    tensor_keep(t->x_im);
    t->w_re = input3(&t->g, "w_re", B, t->T, P, false);
    t->w_im = input3(&t->g, "w_im", B, t->T, P, false);
    graph_set_root(&t->g, dot(&t->g, t->x_re, t->w_re, dot(&t->g, t->x_im, t->w_im, NULL)));
    plan_graph(&t->g);
    fill_inputs(&t->g, FILL_SMALL, false);
}

static void solve_walk(struct solve *t) {
    graph_forward(&t->g, &t->state);
    graph_backward(&t->g, &t->state);
}

static double complex at(const struct tensor *re, const struct tensor *im, int64_t i) {
    return tensor_real(re)[i] + I * (double)tensor_real(im)[i];
}

static double complex bounded(const struct solve *t, double complex theta) {
    return t->s.beta > 0 ? t->s.beta * theta / sqrt(1 + creal(theta * conj(theta))) : theta;
}

/* Parent of node v and the level of v; -1 for the root. */
static int64_t parent_of(const struct tree *t, int64_t v, int64_t *level) {
    int64_t offset = 0, count = 1;
    for (int64_t l = 1; l < t->levels; l++) count *= t->arity;
    for (*level = 0; v >= offset + count; ++*level) {
        offset += count;
        count /= t->arity;
    }
    return *level == t->levels - 1 ? -1 : offset + count + (v - offset) / t->arity;
}

/* b and c between v and its parent, head p. */
static void coupling(const struct solve *t, int64_t v, int64_t p, double complex *b, double complex *c) {
    int64_t level, rows = t->s.up_re->dims[0];
    ck_assert_int_ge(parent_of(&t->s.tree, v, &level), 0);
    int64_t row = rows == 1 ? 0 : rows == t->s.tree.levels - 1 ? level : v, e = row * t->P + p;
    *b = bounded(t, at(t->s.up_re, t->s.up_im, e));
    *c = t->s.form == TREE_HERMITIAN ? conj(*b)
         : t->s.form == TREE_SKEW    ? -conj(*b)
                                     : bounded(t, at(t->s.down_re, t->s.down_im, e));
}

/* Row v of T x - u for head p of sequence b. */
static double complex residual(const struct solve *t, int64_t sequence, int64_t v, int64_t p) {
    int64_t level, first = sequence * t->T * t->P + p;
    double complex b, c, sum = at(t->x_re, t->x_im, first + v * t->P) - at(t->s.u_re, t->s.u_im, first + v * t->P);
    int64_t parent = parent_of(&t->s.tree, v, &level);
    if (parent >= 0) {
        coupling(t, v, p, &b, &c);
        sum += b * at(t->x_re, t->x_im, first + parent * t->P);
    }
    for (int64_t child = 0; child < v; child++) {
        if (parent_of(&t->s.tree, child, &level) != v) continue;
        coupling(t, child, p, &b, &c);
        sum += c * at(t->x_re, t->x_im, first + child * t->P);
    }
    return sum;
}

static double beta_of(enum tree_form form, int64_t arity) {
    return form == TREE_SKEW ? 0 : 0.95 / (double)(arity + 1);
}

static const struct tree trees[] = {{1, 1, 1}, {1, 7, 7}, {2, 2, 2}, {2, 5, 16}, {3, 3, 9}, {4, 3, 16}, {13, 2, 13}};
static const char *const kernels[] = {"reference", "tree_solve_cpu"};
#define N_KERNELS (int)(sizeof kernels / sizeof *kernels)

/* T x = u, row by row; <x, w> = Re <u, lambda> with lambda = du. */
START_TEST(solutions_satisfy_the_system_and_the_adjoint) {
    for (int form = TREE_HERMITIAN; form <= TREE_FREE; form++)
        for (int share = SHARE_HEAD; share <= SHARE_NODE; share++)
            for (int kernel = 0; kernel < 2; kernel++) {
                struct solve t;
                if (trees[_i].levels == 1 && share) continue;
                solve_open(&t, trees[_i], (enum tree_form)form, beta_of((enum tree_form)form, trees[_i].arity),
                           (enum share)share, 2, 5, kernels[kernel]);
                solve_walk(&t);
                for (int64_t i = 0; i < t.B * t.T * t.P; i++)
                    ck_assert_double_le(cabs(residual(&t, i / t.P / t.T, i / t.P % t.T, i % t.P)), TOLERANCE);
                double forward = 0, adjoint = 0, size = 0;
                for (int64_t i = 0; i < t.B * t.T * t.P; i++) {
                    double complex lambda = t.s.u_re->grad[i] + I * (double)t.s.u_im->grad[i];
                    double a = creal(conj(at(t.w_re, t.w_im, i)) * at(t.x_re, t.x_im, i));
                    forward += a;
                    adjoint += creal(conj(lambda) * at(t.s.u_re, t.s.u_im, i));
                    size += fabs(a);
                }
                ck_assert_double_le(fabs(forward - adjoint), TOLERANCE * size);
                ck_assert_int_lt(t.g.plan->first_guard_failure, 0);
                graph_free(&t.g);
            }
}
END_TEST

/* Without couplings x = u. A chain with b = 0 is the recurrence x_k = u_k - c_{k-1} x_{k-1}. */
START_TEST(a_chain_is_a_recurrence) {
    struct solve t;
    solve_open(&t, (struct tree){1, 9, 9}, TREE_FREE, 0.9, SHARE_NODE, 2, 4, kernels[_i]);
    memset(t.s.up_re->data, 0, tensor_bytes(t.s.up_re));
    memset(t.s.up_im->data, 0, tensor_bytes(t.s.up_im));
    solve_walk(&t);
    for (int64_t sequence = 0; sequence < t.B; sequence++)
        for (int64_t p = 0; p < t.P; p++) {
            double complex state = 0, b, c;
            for (int64_t v = 0; v < t.T; v++) {
                int64_t i = (sequence * t.T + v) * t.P + p;
                if (v) coupling(&t, v - 1, p, &b, &c);
                state = at(t.s.u_re, t.s.u_im, i) - (v ? c * state : 0);
                ck_assert_double_le(cabs(at(t.x_re, t.x_im, i) - state), TOLERANCE);
            }
        }
    memset(t.s.down_re->data, 0, tensor_bytes(t.s.down_re));
    memset(t.s.down_im->data, 0, tensor_bytes(t.s.down_im));
    solve_walk(&t);
    expect_same_bits(t.x_re->data, t.s.u_re->data, tensor_count(t.x_re), "x without couplings");
    expect_same_bits(t.x_im->data, t.s.u_im->data, tensor_count(t.x_im), "x without couplings");
    graph_free(&t.g);
}
END_TEST

static double norm(const struct tensor *re, const struct tensor *im, int64_t first, int64_t T, int64_t P) {
    double sum = 0;
    for (int64_t v = 0; v < T; v++) sum += pow(cabs(at(re, im, first + v * P)), 2);
    return sqrt(sum);
}

/* ||T^-1|| <= 1/(1-rho) for dd, <= 1 for skew with couplings of any size; for pd the smallest eigenvalue is above
 * 1 - rho too: the norm of a perfect tree's couplings stays below 2 sqrt(k) beta = rho. */
START_TEST(bounds_keep_the_system_well_conditioned) {
    const double rho = 0.95;
    struct tree tree = {3, 4, 27};
    double betas[] = {rho / 4, rho / (2 * sqrt(3)), 0}, limits[] = {1 / (1 - rho), 1 / (1 - rho), 1};
    for (int form = 0; form < 3; form++) {
        struct solve t;
        solve_open(&t, tree, form == 2 ? TREE_SKEW : TREE_HERMITIAN, betas[form], SHARE_NODE, 2, 6, kernels[_i]);
        for (int64_t i = 0; i < tensor_count(t.s.up_re); i++) tensor_real(t.s.up_re)[i] *= 50;
        solve_walk(&t);
        for (int64_t b = 0; b < t.B; b++)
            for (int64_t p = 0; p < t.P; p++) {
                int64_t first = b * t.T * t.P + p;
                double x = norm(t.x_re, t.x_im, first, t.T, t.P), u = norm(t.s.u_re, t.s.u_im, first, t.T, t.P);
                ck_assert_double_le(x, limits[form] * u * (1 + TOLERANCE));
            }
        graph_free(&t.g);
    }
}
END_TEST

/* Turning the phase of every coupling of a level only turns the phase of its subtrees' contributions:
 * |x_root| from an impulse at a leaf does not change. */
START_TEST(phases_only_rotate) {
    double magnitude[2];
    for (int turned = 0; turned < 2; turned++) {
        struct solve t;
        solve_open(&t, (struct tree){2, 4, 8}, TREE_HERMITIAN, 0.3, SHARE_LEVEL, 1, 1, kernels[_i]);
        memset(t.s.u_re->data, 0, tensor_bytes(t.s.u_re));
        memset(t.s.u_im->data, 0, tensor_bytes(t.s.u_im));
        tensor_real(t.s.u_re)[3] = 1;
        for (int64_t i = 0; turned && i < tensor_count(t.s.up_re); i++) {
            double complex b = at(t.s.up_re, t.s.up_im, i) * cexp(I * (1 + (double)i));
            tensor_real(t.s.up_re)[i] = (real)creal(b);
            tensor_real(t.s.up_im)[i] = (real)cimag(b);
        }
        solve_walk(&t);
        magnitude[turned] = cabs(at(t.x_re, t.x_im, t.T - 1));
        graph_free(&t.g);
    }
    ck_assert_double_gt(magnitude[0], 1e-4);
    ck_assert_double_le(fabs(magnitude[0] - magnitude[1]), TOLERANCE);
}
END_TEST

/* With shared couplings, exchanging siblings with their subtrees exchanges their x. */
START_TEST(siblings_commute) {
    struct solve a, b;
    struct tree tree = {2, 3, 4};
    static const int64_t swapped[] = {2, 3, 0, 1, 5, 4, 6};
    solve_open(&a, tree, TREE_FREE, 0.3, SHARE_LEVEL, 1, 3, kernels[_i]);
    solve_open(&b, tree, TREE_FREE, 0.3, SHARE_LEVEL, 1, 3, kernels[_i]);
    for (int64_t i = 0; i < a.T * a.P; i++) {
        int64_t j = swapped[i / a.P] * a.P + i % a.P;
        tensor_real(b.s.u_re)[j] = tensor_real(a.s.u_re)[i];
        tensor_real(b.s.u_im)[j] = tensor_real(a.s.u_im)[i];
    }
    solve_walk(&a);
    solve_walk(&b);
    for (int64_t i = 0; i < a.T * a.P; i++) {
        int64_t j = swapped[i / a.P] * a.P + i % a.P;
        ck_assert_double_le(cabs(at(a.x_re, a.x_im, i) - at(b.x_re, b.x_im, j)), TOLERANCE);
    }
    graph_free(&a.g);
    graph_free(&b.g);
}
END_TEST

/* Values in padding change nothing, x there is 0, and no gradient reaches it. Leaves 5 of 8: padding is
 * leaves 5..7 and node 11, above leaves 6 and 7. */
START_TEST(padding_is_cut_off) {
    struct solve a, b;
    struct tree tree = {2, 4, 5};
    solve_open(&a, tree, TREE_SKEW, 0, SHARE_NODE, 2, 3, kernels[_i]);
    solve_open(&b, tree, TREE_SKEW, 0, SHARE_NODE, 2, 3, kernels[_i]);
    static const int64_t padding[] = {5, 6, 7, 11};
    for (int i = 0; i < 4; i++)
        for (int64_t k = 0; k < b.P; k++) tensor_real(b.s.u_re)[padding[i] * b.P + k] = 1000;
    solve_walk(&a);
    solve_walk(&b);
    expect_same_bits(b.x_re->data, a.x_re->data, tensor_count(a.x_re), "x");
    for (int i = 0; i < 4; i++)
        for (int64_t k = 0; k < b.P; k++) {
            int64_t e = padding[i] * b.P + k;
            ck_assert_double_eq(tensor_real(b.x_re)[e], 0);
            ck_assert_double_eq(b.s.u_re->grad[e], 0);
            ck_assert_double_eq(b.s.up_re->grad[e], 0);
        }
    graph_free(&a.g);
    graph_free(&b.g);
}
END_TEST

/* A chain of four of seven nodes is the chain of those four; after them x and all gradients are 0. */
START_TEST(a_chain_ends_with_its_tokens) {
    static const enum share shares[] = {SHARE_HEAD, SHARE_LEVEL};
    for (int i = 0; i < 2; i++) {
        struct solve whole, part;
        solve_open(&part, (struct tree){1, 7, 4}, TREE_FREE, 0.4, shares[i], 2, 3, kernels[_i]);
        solve_open(&whole, (struct tree){1, 4, 4}, TREE_FREE, 0.4, shares[i], 2, 3, kernels[_i]);
        struct tensor *of_whole[] = {whole.s.u_re, whole.s.u_im, whole.w_re, whole.w_im};
        struct tensor *of_part[] = {part.s.u_re, part.s.u_im, part.w_re, part.w_im};
        for (int64_t b = 0; b < 2; b++)
            for (int j = 0; j < 4; j++)
                memcpy(tensor_real(of_whole[j]) + b * 12, tensor_real(of_part[j]) + b * 21, 12 * sizeof(real));
        struct tensor *rows[] = {whole.s.up_re, whole.s.up_im, whole.s.down_re, whole.s.down_im};
        struct tensor *more[] = {part.s.up_re, part.s.up_im, part.s.down_re, part.s.down_im};
        for (int j = 0; j < 4; j++) memcpy(rows[j]->data, more[j]->data, tensor_bytes(rows[j]));
        solve_walk(&whole);
        solve_walk(&part);
        for (int64_t b = 0; b < 2; b++) {
            expect_same_bits(tensor_real(part.x_re) + b * 21, tensor_real(whole.x_re) + b * 12, 12, "x");
            expect_same_bits(part.s.u_im->grad + b * 21, whole.s.u_im->grad + b * 12, 12, "gradient of u");
            for (int64_t e = 12; e < 21; e++) {
                ck_assert_double_eq(tensor_real(part.x_im)[b * 21 + e], 0);
                ck_assert_double_eq(part.s.u_re->grad[b * 21 + e], 0);
            }
        }
        for (int j = 0; j < 4; j++) {
            expect_same_bits(more[j]->grad, rows[j]->grad, tensor_count(rows[j]), "gradient of couplings");
            for (int64_t e = tensor_count(rows[j]); e < tensor_count(more[j]); e++)
                ck_assert_double_eq(more[j]->grad[e], 0);
        }
        graph_free(&part.g);
        graph_free(&whole.g);
    }
}
END_TEST

/* Node couplings of equal values solve the level's system. */
START_TEST(equal_nodes_are_a_level) {
    struct solve level, node;
    struct tree tree = {3, 3, 7};
    solve_open(&level, tree, TREE_HERMITIAN, 0.2, SHARE_LEVEL, 2, 5, kernels[_i]);
    solve_open(&node, tree, TREE_HERMITIAN, 0.2, SHARE_NODE, 2, 5, kernels[_i]);
    for (int64_t i = 0; i < (node.T - 1) * node.P; i++) {
        int64_t l, unused = parent_of(&tree, i / node.P, &l), e = l * node.P + i % node.P;
        ck_assert_int_ge(unused, 0);
        tensor_real(node.s.up_re)[i] = tensor_real(level.s.up_re)[e];
        tensor_real(node.s.up_im)[i] = tensor_real(level.s.up_im)[e];
    }
    solve_walk(&level);
    solve_walk(&node);
    expect_same_bits(node.x_re->data, level.x_re->data, tensor_count(level.x_re), "x");
    expect_same_bits(node.x_im->data, level.x_im->data, tensor_count(level.x_im), "x");
    graph_free(&level.g);
    graph_free(&node.g);
}
END_TEST

/* The spectrum of S = Nm + I/2, S_ij = sign(j - i) p_i p_j / 2: values of an eigensolver in float64, and the traces
 * sum w^2 = sum S_ij^2 and sum w^4 = sum (S^2)_ij^2. */
START_TEST(hippo_frequencies_are_the_spectrum) {
    static const double printed[] = {-19.857, -5.354, -1.958};
    for (int j = 0; j < 3; j++) ck_assert_double_le(fabs(hippo_frequency(4, j) - printed[j]), 5e-4);
    for (int64_t half = 1; half <= 20; half += 19) {
        int64_t N = 2 * half;
        double two = 0, four = 0, trace2 = 0, trace4 = 0;
        for (int64_t j = 0; j < half; j++) {
            double w = hippo_frequency(half, j);
            ck_assert(w < 0 && (j == 0 || w > hippo_frequency(half, j - 1)));
            two += 2 * w * w;
            four += 2 * w * w * w * w;
        }
        for (int64_t i = 0; i < N; i++)
            for (int64_t j = 0; j < N; j++) {
                double square = 0, pi = sqrt(2.0 * (double)i + 1), pj = sqrt(2.0 * (double)j + 1);
                for (int64_t k = 0; k < N; k++)
                    square += ((k > i) - (k < i)) * ((j > k) - (j < k)) * pi * (2.0 * (double)k + 1) * pj / 4;
                trace4 += square * square;
                trace2 += i == j ? 0 : pi * pi * pj * pj / 4;
            }
        ck_assert_double_le(fabs(two - trace2), 1e-9 * trace2);
        ck_assert_double_le(fabs(four - trace4), 1e-9 * trace4);
    }
}
END_TEST

static void expect_refused(const char *model, int64_t T, const char *part) {
    struct model_choice choice;
    struct error e = {0};
    struct dims d = {.B = 2, .T = T, .D = 12};
    ck_assert_int_eq(model_parse(&choice, model, &e), ST_OK);
    ck_assert_int_eq(choice.model->check(choice.inst, &d, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, part) != NULL, "%s: \"%s\" lacks \"%s\"", model, e.text, part);
}

START_TEST(misfits_name_the_numbers) {
    expect_refused("myosotis:arity=2,levels=3", 8, "has 7 nodes but the length is 8");
    expect_refused("myosotis:arity=2", 20, "the nearest have 15 and 31");
    expect_refused("myosotis:arity=2,levels=40", 7, "2^31 nodes or more");
    expect_refused("myosotis:arity=2,levels=3,leaves=5", 7, "has 1..4");
    expect_refused("myosotis:arity=2,levels=3,leaves=few", 7, "neither a number nor all");
    expect_refused("myosotis:arity=2,heads=6,blocks=4", 7, "heads=6 is not divisible by blocks=4");
    expect_refused("myosotis:arity=2,heads=2000", 7, "raise blocks");
    expect_refused("myosotis:arity=2,heads=3,block=2,blocks=4", 7, "heads=6 (times block) is not divisible");
}
END_TEST

START_TEST(couplings_of_another_width_are_refused) {
    struct graph g;
    struct error e = {0};
    open_graph(&g, NULL, true, false, "");
    struct tree_system s = {.tree = {2, 2, 2}, .form = TREE_SKEW};
    s.up_re = input3(&g, "up_re", 1, 6, 0, true);
    s.up_im = input3(&g, "up_im", 1, 6, 0, true);
    s.u_re = input3(&g, "u_re", 2, 3, 5, true);
    s.u_im = input3(&g, "u_im", 2, 3, 5, true);
    tree_solve(&g, &s, NULL);
    ck_assert_int_eq(graph_plan(&g, &e), ST_USAGE);
    ck_assert_msg(strstr(e.text, "6 wide, expected u's 5 columns") != NULL, "\"%s\"", e.text);
    graph_free(&g);
}
END_TEST

/* A net without layers reads the nodes' own vectors, one a level. The root is one node of the tree of eight leaves, the
 * level below it two, of which the second has no token where a sequence has at most four. The head has no bias yet. */
START_TEST(the_top_of_a_tree_is_the_mean_of_its_uppermost_nodes) {
    struct trial root, below, both;
    struct trial_shape s = {
        .model = "myosotis:heads=3", .B = 3, .T = 8, .V = 5, .D = 12, .pool = FROM_ROOT, .readout = READOUT_SEQUENCE};
    trial_open(&root, &s, 12);
    trial_open(&below, &s, 12);
    s.top_levels = 2;
    trial_open(&both, &s, 12);
    const struct param *nodes = params_find(&root.params, "nodes");
    ck_assert_int_eq(nodes->count, 3 * s.D);
    real *of[3] = {root.params.value, below.params.value, both.params.value};
    for (int64_t i = 0; i < nodes->count; i++)
        for (int k = 0; k < 3; k++) of[k][nodes->offset + i] = (real)(i * 7 % 11 - 5) * (real)0.3;
    real *level = below.params.value + nodes->offset;
    memcpy(level + 2 * s.D, level + s.D, (size_t)s.D * sizeof *level); /* the root has the vector of those below it */
    struct trial *all[3] = {&root, &below, &both};
    for (int k = 0; k < 3; k++) {
        for (int b = 0; b < 3; b++) tensor_i32(all[k]->net.lengths)[b] = (int32_t[]){8, 5, 4}[b];
        graph_forward(&all[k]->graph, &all[k]->state);
    }
    for (int64_t i = 0; i < s.B * s.V; i++) {
        double in_use = i < 2 * s.V ? 2 : 1;
        double want = ((double)tensor_real(root.net.logits)[i] + in_use * (double)tensor_real(below.net.logits)[i]) / 3;
        ck_assert_double_eq_tol((double)tensor_real(both.net.logits)[i], want, 16 * REAL_EPSILON);
    }
    ck_assert(tensor_real(root.net.logits)[0] != tensor_real(below.net.logits)[0]);
    for (int k = 0; k < 3; k++) trial_close(all[k]);
}
END_TEST

/* A net with blocks of m begins as the net with m times as many heads. */
START_TEST(blocks_begin_as_independent_heads) {
    static const char *const pairs[][2] = {
        {"myosotis:heads=6", "myosotis:heads=2,block=3"},
        {"myosotis:heads=8,form=free,selective=yes,blocks=2",
         "myosotis:heads=4,block=2,form=free,selective=yes,blocks=2"},
        {"myosotis:heads=8,form=skew,share=head", "myosotis:heads=1,block=8,form=skew,share=head"}};
    struct trial net[2];
    for (int k = 0; k < 2; k++) {
        struct trial_shape s = {
            .model = pairs[_i][k], .B = 3, .T = 8, .V = 5, .D = 12, .layers = 1, .readout = READOUT_SEQUENCE};
        trial_open(&net[k], &s, 12);
        for (int b = 0; b < 3; b++) tensor_i32(net[k].net.lengths)[b] = (int32_t[]){8, 5, 1}[b];
        graph_forward(&net[k].graph, &net[k].state);
    }
    expect_close(tensor_real(net[1].net.logits), tensor_real(net[0].net.logits), 15, 64 * REAL_EPSILON, "logits");
    for (int k = 0; k < 2; k++) trial_close(&net[k]);
}
END_TEST

Suite *check_myosotis(void);
Suite *check_myosotis(void) {
    Suite *suite = suite_create("myosotis");
    TCase *tests = tcase_create("myosotis");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, solutions_satisfy_the_system_and_the_adjoint, 0, (int)(sizeof trees / sizeof *trees));
    tcase_add_loop_test(tests, a_chain_is_a_recurrence, 0, N_KERNELS);
    tcase_add_loop_test(tests, bounds_keep_the_system_well_conditioned, 0, N_KERNELS);
    tcase_add_loop_test(tests, phases_only_rotate, 0, N_KERNELS);
    tcase_add_loop_test(tests, siblings_commute, 0, N_KERNELS);
    tcase_add_loop_test(tests, padding_is_cut_off, 0, N_KERNELS);
    tcase_add_loop_test(tests, a_chain_ends_with_its_tokens, 0, N_KERNELS);
    tcase_add_loop_test(tests, equal_nodes_are_a_level, 0, N_KERNELS);
    tcase_add_test(tests, the_top_of_a_tree_is_the_mean_of_its_uppermost_nodes);
    tcase_add_test(tests, hippo_frequencies_are_the_spectrum);
    tcase_add_loop_test(tests, blocks_begin_as_independent_heads, 0, 3);
    tcase_add_test(tests, misfits_name_the_numbers);
    tcase_add_test(tests, couplings_of_another_width_are_refused);
    suite_add_tcase(suite, tests);
    return suite;
}
