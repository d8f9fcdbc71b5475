/* check_scans.c - properties of the recurrences, from their papers (H-LRU/BD-LRU, arXiv 2602.12021, section 3), of the
 * reference and of the kernel that is taken by default. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/gated/gated.h"
#include "tests/lib/support.h"

static const char *const kernels[] = {"reference", ""};
#define N_KERNELS 2

enum form { BLOCK, COMPANION, OBSERVER, N_FORMS };

/* A gated scan over inputs that the test fills: width of a row, gates of a row. L = <h, w>. */
struct scan {
    struct graph g;
    struct tensor *z, *v, *h, *w;
    struct step_state state;
    int64_t B, T, N, m, gates, values, states; /* widths of z, v, h */
    enum form form;
};

static void scan_open(struct scan *s, const char *kernel, enum form form, enum gate gate, int64_t B, int64_t T,
                      int64_t N, int64_t m) {
    *s = (struct scan){.B = B, .T = T, .N = N, .m = m, .states = m * N, .form = form, .state = first_state()};
    s->values = form == BLOCK ? m * N : N;
    s->gates = (form == BLOCK ? m : 1) * (m + 1) * N;
    open_graph(&s->g, NULL, true, false, kernel);
    s->z = input3(&s->g, "z", B, T, s->gates, true);
    s->v = input3(&s->g, "v", B, T, s->values, true);
    if (form == BLOCK)
        s->h = scan_block(&s->g, s->z, s->v, N, m, gate);
    else
        s->h = scan_companion(&s->g, s->z, s->v, N, m, gate, form == COMPANION ? LAYOUT_COMPANION : LAYOUT_OBSERVER);
    tensor_keep(s->h);
    s->w = input3(&s->g, "w", B, T, s->states, false);
    graph_set_root(&s->g, dot(&s->g, s->h, s->w, NULL));
    plan_graph(&s->g);
    fill_inputs(&s->g, FILL_SMALL, false);
}

static void scan_run(struct scan *s) {
    graph_forward(&s->g, &s->state);
    graph_backward(&s->g, &s->state);
}

static void scan_close(struct scan *s) {
    graph_free(&s->g);
}

/* Elements of batch 0: raw gate j of state row i (0 in the companion forms) of block k at time t, and so on. */
static real *gate_at(struct scan *s, int64_t t, int64_t i, int64_t j, int64_t k) {
    return tensor_real(s->z) + t * s->gates + (i * (s->m + 1) + j) * s->N + k;
}

static real *value_in(struct scan *s, int64_t t, int64_t i, int64_t k) {
    return tensor_real(s->v) + t * s->values + i * s->N + k;
}

static real state_at(struct scan *s, int64_t t, int64_t i, int64_t k) {
    return tensor_real(s->h)[t * s->states + i * s->N + k];
}

static int64_t gate_rows(const struct scan *s) {
    return s->form == BLOCK ? s->m : 1;
}

static int64_t value_rows(const struct scan *s) {
    return s->form == BLOCK ? s->m : 1;
}

/* Gates of a row in double: Eq. 6 of the paper. */
static void normalise(enum gate gate, const double *z, int64_t n, double *a) {
    double top = z[0], sum = 0;
    for (int64_t j = 1; j < n; j++) top = fmax(top, z[j]);
    for (int64_t j = 0; j < n; j++) {
        a[j] = gate == GATE_SOFTMAX ? exp(z[j] - top) : gate == GATE_SIGMOID ? 1 / (1 + exp(-z[j])) : fmax(0, z[j]);
        sum += a[j];
    }
    for (int64_t j = 0; j < n; j++) a[j] = gate == GATE_RELU && sum < 1e-12 ? 0 : a[j] / sum;
}

/* Gates that copy the input: for each normaliser exactly 1 on the input gate and (next to) 0 elsewhere. */
static void open_input_gate(struct scan *s, int64_t t) {
    for (int64_t i = 0; i < gate_rows(s); i++)
        for (int64_t j = 0; j <= s->m; j++)
            for (int64_t k = 0; k < s->N; k++) *gate_at(s, t, i, j, k) = j == s->m ? 45 : -45;
}

/* --- gates ------------------------------------------------------------------------------------------------------- */

/* Reads the gates of time m through the scan: m steps that copy the input put unit vector e_j into the state, the step
 * after them, without input, yields column j of A; with a state of zero and v = 1 it yields the input gate. */
static void read_gates(struct scan *s, int64_t j, double *column) {
    int64_t m = s->m;
    for (int64_t t = 0; t < m; t++) {
        open_input_gate(s, t);
        for (int64_t i = 0; i < value_rows(s); i++)
            for (int64_t k = 0; k < s->N; k++)
                *value_in(s, t, i, k) = s->form == BLOCK ? t == m - 1 && i == j : t == m - 1 - j;
    }
    for (int64_t i = 0; i < value_rows(s); i++)
        for (int64_t k = 0; k < s->N; k++) *value_in(s, m, i, k) = j == m;
    scan_run(s);
    for (int64_t i = 0; i < gate_rows(s); i++)
        for (int64_t k = 0; k < s->N; k++) column[i * s->N + k] = state_at(s, m, i, k);
}

START_TEST(normalised_gates_are_shares_of_one) {
    for (int gate = GATE_SOFTMAX; gate <= GATE_RELU; gate++)
        for (int form = BLOCK; form <= COMPANION; form++)
            for (int64_t m = 1; m <= 5; m++) {
                enum { N = 33 };
                struct scan s;
                double column[6][5 * N] = {{0}}, z[6], want[6];
                scan_open(&s, kernels[_i], (enum form)form, (enum gate)gate, 1, m + 1, N, m);
                for (int64_t j = 0; j <= m; j++) read_gates(&s, j, column[j]);
                for (int64_t i = 0; i < gate_rows(&s); i++)
                    for (int64_t k = 0; k < N; k++) {
                        double sum = 0;
                        for (int64_t j = 0; j <= m; j++) z[j] = *gate_at(&s, m, i, j, k);
                        normalise((enum gate)gate, z, m + 1, want);
                        for (int64_t j = 0; j <= m; j++) {
                            double a = column[j][i * N + k];
                            expect_at_most(-a, 0, "a gate below 0");
                            expect_near(a, want[j], 8 * REAL_EPSILON, "gate");
                            sum += a;
                        }
                        bool dead = gate == GATE_RELU && want[0] + want[m] == 0 && sum == 0;
                        if (!dead) expect_near(sum, 1, 8 * REAL_EPSILON, "sum of the gates of a row");
                    }
                scan_close(&s);
            }
}
END_TEST

/* --- bounds ------------------------------------------------------------------------------------------------------ */

/* Raw gates: random of that amplitude; the larger, the more the gates jump between one-hot choices. */
static void adversarial_gates(struct scan *s, double amplitude) {
    struct rng r = rng_at(7, STREAM_TEST, (uint64_t)amplitude);
    real *z = tensor_real(s->z);
    for (int64_t i = 0; i < tensor_count(s->z); i++) z[i] = (real)(amplitude * (2 * rng_uniform(&r) - 1));
}

START_TEST(states_stay_within_the_largest_input) {
    static const double amplitudes[] = {1, 10, 60};
    for (int gate = GATE_SOFTMAX; gate <= GATE_RELU; gate++)
        for (int form = BLOCK; form <= COMPANION; form++)
            for (int a = 0; a < 3; a++) {
                struct scan s;
                int64_t T = 10000, N = 3, m = 1 + (a + gate) % 3 * 2;
                scan_open(&s, kernels[_i], (enum form)form, (enum gate)gate, 1, T, N, m);
                adversarial_gates(&s, amplitudes[a]);
                for (int64_t t = 0; t < T; t++)
                    for (int64_t i = 0; i < value_rows(&s); i++)
                        for (int64_t k = 0; k < N; k++)
                            *value_in(&s, t, i, k) = (real)((t * 7 + i * 3 + k) % 5 % 2 ? 1 + k : -1 - k);
                graph_forward(&s.g, &s.state);
                for (int64_t k = 0; k < N; k++) { /* block by block: the inputs of block k have magnitude 1 + k */
                    double most = 0;
                    for (int64_t t = 0; t < T; t++)
                        for (int64_t i = 0; i < m; i++) most = fmax(most, fabs((double)state_at(&s, t, i, k)));
                    /* a row's gates sum to 1 up to rounding, which 1e4 steps may add up: 1e4 * 2^-23 at worst */
                    ck_assert_double_le(most, (double)(1 + k) * (1 + (REAL_IS_DOUBLE ? 1e-12 : 1e-5)));
                    ck_assert_double_gt(most, 0);
                }
                scan_close(&s);
            }
}
END_TEST

/* v = 1: the smallest component never decreases and none exceeds 1; with gates constant in time none decreases. */
START_TEST(constant_input_fills_the_state_from_below) {
    for (int gate = GATE_SOFTMAX; gate <= GATE_RELU; gate++)
        for (int form = BLOCK; form <= COMPANION; form++)
            for (int constant = 0; constant < 2; constant++) {
                struct scan s;
                int64_t T = 300, N = 17, m = 3;
                double slack = 8 * REAL_EPSILON;
                scan_open(&s, kernels[_i], (enum form)form, (enum gate)gate, 1, T, N, m);
                fill_tensor(s.z, FILL_SMALL, gate == GATE_RELU); /* no dead rows: they would reset the state */
                for (int64_t i = 0; i < T * s.values; i++) tensor_real(s.v)[i] = 1;
                for (int64_t i = s.gates; constant && i < T * s.gates; i++)
                    tensor_real(s.z)[i] = tensor_real(s.z)[i - s.gates];
                graph_forward(&s.g, &s.state);
                for (int64_t k = 0; k < N; k++) {
                    double smallest = 0;
                    for (int64_t t = 0; t < T; t++) {
                        double least = INFINITY;
                        for (int64_t i = 0; i < m; i++) {
                            double h = state_at(&s, t, i, k);
                            least = fmin(least, h);
                            expect_at_most(h, 1 + slack, "state");
                            if (constant && t)
                                expect_at_most(state_at(&s, t - 1, i, k), h + slack, "state per step before");
                        }
                        expect_at_most(smallest, least + slack, "smallest component a step before");
                        smallest = least;
                    }
                    ck_assert_double_gt(smallest, 0.5);
                }
                scan_close(&s);
            }
}
END_TEST

/* --- the observer layout ----------------------------------------------------------------------------------------- */

/* m = 2, v = 1, (a_1, a_2, a_0) alternating (0,0,1), (0,1,0): the observer's state grows by 1 every second step, to 50
 * after 100; the companion's stays at 1. */
START_TEST(observer_layout_grows_where_companion_does_not) {
    for (int form = COMPANION; form <= OBSERVER; form++) {
        struct scan s;
        scan_open(&s, kernels[_i], (enum form)form, GATE_NONE, 1, 100, 5, 2);
        for (int64_t t = 0; t < 100; t++)
            for (int64_t k = 0; k < 5; k++) {
                *value_in(&s, t, 0, k) = 1;
                for (int64_t j = 0; j < 3; j++) *gate_at(&s, t, 0, j, k) = j == (t % 2 ? 1 : 2);
            }
        graph_forward(&s.g, &s.state);
        double most = 0;
        for (int64_t i = 0; i < 2; i++) most = fmax(most, state_at(&s, 99, i, 3));
        ck_assert_double_eq(most, form == OBSERVER ? 50 : 1);
        scan_close(&s);
    }
}
END_TEST

/* Its columns sum to at most 1: |s_t|_1 <= |s_{t-1}|_1 + a_{0,t} |v_t|. */
START_TEST(observer_layout_keeps_its_1_norm_bound) {
    for (int gate = GATE_SOFTMAX; gate <= GATE_RELU; gate++) {
        struct scan s;
        int64_t T = 1000, N = 5, m = 3;
        double z[4], a[4];
        scan_open(&s, kernels[_i], OBSERVER, (enum gate)gate, 1, T, N, m);
        adversarial_gates(&s, 4);
        graph_forward(&s.g, &s.state);
        for (int64_t k = 0; k < N; k++) {
            double before = 0;
            for (int64_t t = 0; t < T; t++) {
                double norm = 0;
                for (int64_t i = 0; i < m; i++) norm += fabs((double)state_at(&s, t, i, k));
                for (int64_t j = 0; j <= m; j++) z[j] = *gate_at(&s, t, 0, j, k);
                normalise((enum gate)gate, z, m + 1, a);
                double bound = before + a[m] * fabs((double)*value_in(&s, t, 0, k));
                expect_at_most(norm, bound + 16 * REAL_EPSILON * (1 + bound), "1-norm");
                before = norm;
            }
        }
        scan_close(&s);
    }
}
END_TEST

/* --- equalities between forms ------------------------------------------------------------------------------------ */

/* Copies z and v of one scan to another of the same gates. */
static void copy_inputs(struct scan *to, const struct scan *from) {
    memcpy(to->z->data, from->z->data, tensor_bytes(from->z));
    memcpy(to->v->data, from->v->data, tensor_bytes(from->v));
}

START_TEST(layouts_agree_in_component_0_when_gates_are_constant) {
    struct scan a, b;
    int64_t T = 50, N = 19, m = 4;
    scan_open(&a, kernels[_i], COMPANION, GATE_SOFTMAX, 1, T, N, m);
    scan_open(&b, kernels[_i], OBSERVER, GATE_SOFTMAX, 1, T, N, m);
    for (int64_t i = a.gates; i < T * a.gates; i++) tensor_real(a.z)[i] = tensor_real(a.z)[i - a.gates];
    copy_inputs(&b, &a);
    graph_forward(&a.g, &a.state);
    graph_forward(&b.g, &b.state);
    for (int64_t t = 0; t < T; t++)
        for (int64_t k = 0; k < N; k++)
            expect_near(state_at(&a, t, 0, k), state_at(&b, t, 0, k), 32 * REAL_EPSILON, "component 0");
    scan_close(&a);
    scan_close(&b);
}
END_TEST

/* h_t = a_t h_{t-1} + (1 - a_t) v_t, a_t = sigmoid(z_0 - z_1), as scan_diag computes it. */
START_TEST(order_1_is_the_diagonal_scan) {
    for (int form = BLOCK; form < N_FORMS; form++) {
        struct scan s;
        struct graph g;
        int64_t T = 70, N = 35;
        scan_open(&s, kernels[_i], (enum form)form, GATE_SOFTMAX, 2, T, N, 1);
        open_graph(&g, NULL, false, false, kernels[_i]);
        struct tensor *a = input3(&g, "a", 2, T, N, false), *x = input3(&g, "x", 2, T, N, false),
                      *h = scan_diag(&g, a, x);
        tensor_keep(h);
        plan_graph(&g);
        for (int64_t row = 0; row < 2 * T; row++)
            for (int64_t k = 0; k < N; k++) {
                const real *z = tensor_real(s.z) + row * s.gates + k;
                double share = 1 / (1 + exp((double)z[N] - z[0]));
                tensor_real(a)[row * N + k] = (real)share;
                tensor_real(x)[row * N + k] = (real)((1 - share) * tensor_real(s.v)[row * N + k]);
            }
        graph_forward(&s.g, &s.state);
        graph_forward(&g, &s.state);
        expect_close(s.h->data, h->data, tensor_count(h), 32 * REAL_EPSILON, "h");
        graph_free(&g);
        scan_close(&s);
    }
}
END_TEST

/* The companion matrix, and its transpose, written out as gates of the block scan. */
static void spell_out(struct scan *block, struct scan *chain) {
    int64_t m = chain->m;
    memset(block->z->data, 0, tensor_bytes(block->z));
    memset(block->v->data, 0, tensor_bytes(block->v));
    for (int64_t t = 0; t < chain->T; t++)
        for (int64_t k = 0; k < chain->N; k++) {
            *value_in(block, t, 0, k) = *value_in(chain, t, 0, k);
            *gate_at(block, t, 0, m, k) = *gate_at(chain, t, 0, m, k);
            for (int64_t j = 0; j < m; j++) {
                bool companion = chain->form == COMPANION;
                *gate_at(block, t, companion ? 0 : j, companion ? j : 0, k) = *gate_at(chain, t, 0, j, k);
                if (j) *gate_at(block, t, companion ? j : j - 1, companion ? j - 1 : j, k) = 1;
            }
        }
}

START_TEST(companion_is_the_block_scan_of_companion_matrices) {
    for (int form = COMPANION; form <= OBSERVER; form++)
        for (int64_t m = 1; m <= 5; m += 2) {
            struct scan chain, block;
            int64_t T = 9, N = 21;
            scan_open(&chain, kernels[_i], (enum form)form, GATE_NONE, 1, T, N, m);
            scan_open(&block, kernels[_i], BLOCK, GATE_NONE, 1, T, N, m);
            spell_out(&block, &chain);
            memcpy(block.w->data, chain.w->data, tensor_bytes(chain.w));
            scan_run(&chain);
            scan_run(&block);
            expect_close(chain.h->data, block.h->data, tensor_count(chain.h), 32 * REAL_EPSILON, "states");
            double scale = compare_reals(chain.z->grad, chain.z->grad, tensor_count(chain.z)).scale;
            for (int64_t t = 0; t < T; t++)
                for (int64_t k = 0; k < N; k++) {
                    expect_near(chain.v->grad[t * N + k], block.v->grad[t * m * N + k], 64 * REAL_EPSILON * scale,
                                "dv");
                    for (int64_t j = 0; j <= m; j++) {
                        int64_t row = form == COMPANION || j == m ? 0 : j, column = form == COMPANION || j == m ? j : 0;
                        double want = block.z->grad[t * block.gates + (row * (m + 1) + column) * N + k];
                        expect_near(chain.z->grad[t * chain.gates + j * N + k], want, 64 * REAL_EPSILON * scale, "dz");
                    }
                }
            scan_close(&chain);
            scan_close(&block);
        }
}
END_TEST

/* --- forms of the scan -------------------------------------------------------------------------------------------- */

#define M_MOST 5
#define T_MOST 129

/* h -> A h + u, in double; the product of two is of the same kind, whatever the order they are taken in. */
struct element {
    double A[M_MOST][M_MOST], u[M_MOST];
};

static struct element identity(void) {
    struct element e = {0};
    for (int i = 0; i < M_MOST; i++) e.A[i][i] = 1;
    return e;
}

/* First `before`, then e. */
static struct element compose(const struct element *e, const struct element *before) {
    struct element both = {0};
    for (int i = 0; i < M_MOST; i++) {
        both.u[i] = e->u[i];
        for (int l = 0; l < M_MOST; l++) {
            both.u[i] += e->A[i][l] * before->u[l];
            for (int j = 0; j < M_MOST; j++) both.A[i][j] += e->A[i][l] * before->A[l][j];
        }
    }
    return both;
}

static void apply(const struct element *e, const double *h, double *to) {
    for (int i = 0; i < M_MOST; i++) {
        to[i] = e->u[i];
        for (int j = 0; j < M_MOST; j++) to[i] += e->A[i][j] * h[j];
    }
}

static struct element total(const struct element *e, int64_t begin, int64_t end) {
    int64_t middle = begin + (end - begin) / 2;
    if (end - begin == 1) return e[begin];
    struct element left = total(e, begin, middle), right = total(e, middle, end);
    return compose(&right, &left);
}

/* Blelloch's tree: totals of halves on the way up, the state before each half on the way down. */
static void tree_form(const struct element *e, int64_t begin, int64_t end, const double *before, double (*h)[M_MOST]) {
    double middle_state[M_MOST];
    int64_t middle = begin + (end - begin) / 2;
    if (end - begin == 1) {
        apply(&e[begin], before, h[begin]);
        return;
    }
    struct element left = total(e, begin, middle);
    apply(&left, before, middle_state);
    tree_form(e, begin, middle, before, h);
    tree_form(e, middle, end, middle_state, h);
}

/* Chunks by themselves, then the state before each applied to its prefixes. */
static void chunk_form(const struct element *e, int64_t T, int64_t chunk, double (*h)[M_MOST]) {
    struct element prefix = identity();
    double before[M_MOST] = {0};
    for (int64_t t = 0; t < T; t++) {
        if (t % chunk == 0 && t) memcpy(before, h[t - 1], sizeof before);
        prefix = t % chunk == 0 ? e[t] : compose(&e[t], &prefix);
        apply(&prefix, before, h[t]);
    }
}

/* The matrix and input of block k at time t; `shares`: of each row the normalised gates. */
static struct element element_of(struct scan *s, enum gate gate, int64_t t, int64_t k, double (*shares)[M_MOST + 1]) {
    struct element e = {0};
    for (int64_t i = 0; i < gate_rows(s); i++) {
        double z[M_MOST + 1] = {0};
        for (int64_t j = 0; j <= s->m; j++) z[j] = *gate_at(s, t, i, j, k);
        if (gate == GATE_NONE)
            memcpy(shares[i], z, sizeof z);
        else
            normalise(gate, z, s->m + 1, shares[i]);
        for (int64_t j = 0; j < s->m; j++) *(s->form == OBSERVER ? &e.A[j][0] : &e.A[i][j]) = shares[i][j];
        e.u[i] = shares[i][s->m] * (double)*value_in(s, t, i, k);
    }
    for (int64_t i = 1; i < s->m && s->form != BLOCK; i++)
        *(s->form == COMPANION ? &e.A[i][i - 1] : &e.A[i - 1][i]) = 1;
    return e;
}

/* The element that the scan over time in reverse runs on: G_t = w_t + A_{t+1}^T G_{t+1}, element r of time T-1-r. */
static struct element adjoint_of(struct scan *s, const struct element *e, int64_t r, int64_t k) {
    struct element back = {0};
    int64_t t = s->T - 1 - r;
    for (int64_t i = 0; i < s->m; i++) {
        back.u[i] = tensor_real(s->w)[t * s->states + i * s->N + k];
        for (int64_t j = 0; j < s->m && r > 0; j++) back.A[i][j] = e[t + 1].A[j][i];
    }
    return back;
}

/* Gradients of one step's gates and inputs from G_t and h_{t-1}, beside the kernel's. */
static void expect_step_gradients(struct scan *s, enum gate gate, int64_t t, int64_t k, const double *G,
                                  const double *before, double bound) {
    double shares[M_MOST][M_MOST + 1];
    element_of(s, gate, t, k, shares);
    for (int64_t i = 0; i < gate_rows(s); i++) {
        double da[M_MOST + 1], along = 0;
        for (int64_t j = 0; j < s->m; j++) da[j] = s->form == OBSERVER ? G[j] * before[0] : G[i] * before[j];
        da[s->m] = G[i] * (double)*value_in(s, t, i, k);
        for (int64_t j = 0; j <= s->m && gate == GATE_SOFTMAX; j++) along += shares[i][j] * da[j];
        for (int64_t j = 0; j <= s->m; j++) {
            double want = gate == GATE_SOFTMAX ? shares[i][j] * (da[j] - along) : da[j];
            expect_near(s->z->grad[t * s->gates + (i * (s->m + 1) + j) * s->N + k], want, bound, "gradient of a gate");
        }
        expect_near(s->v->grad[t * s->values + i * s->N + k], shares[i][s->m] * G[i], bound, "gradient of an input");
    }
}

static void expect_form(struct scan *s, enum gate gate, int64_t k, const struct element *e, const struct element *back,
                        int64_t chunk) {
    static const double zero[M_MOST];
    double h[T_MOST][M_MOST], G[T_MOST][M_MOST], bound = 0;
    if (chunk) {
        chunk_form(e, s->T, chunk, h);
        chunk_form(back, s->T, chunk, G);
    } else {
        tree_form(e, 0, s->T, zero, h);
        tree_form(back, 0, s->T, zero, G);
    }
    for (int64_t t = 0; t < s->T; t++)
        for (int64_t i = 0; i < s->m; i++) bound = fmax(bound, fmax(fabs(h[t][i]), fabs(G[t][i])));
    bound *= 64 * REAL_EPSILON * fmax(1, bound); /* gradients are products of two of them */
    for (int64_t t = 0; t < s->T; t++) {
        for (int64_t i = 0; i < s->m; i++) expect_near(state_at(s, t, i, k), h[t][i], bound, "state");
        expect_step_gradients(s, gate, t, k, G[s->T - 1 - t], t ? h[t - 1] : zero, bound);
    }
}

/* Chunks of 1 (the sequential form), 7, 64 and T, and the tree, forward and in reverse. */
static void expect_forms(struct scan *s, enum gate gate, int64_t k) {
    int64_t chunks[] = {0, 1, 7, 64, s->T};
    struct element e[T_MOST], back[T_MOST];
    double shares[M_MOST][M_MOST + 1];
    for (int64_t t = 0; t < s->T; t++) e[t] = element_of(s, gate, t, k, shares);
    for (int64_t r = 0; r < s->T; r++) back[r] = adjoint_of(s, e, r, k);
    for (int i = 0; i < 5; i++) expect_form(s, gate, k, e, back, chunks[i]);
}

START_TEST(forms_of_the_scan_agree) {
    static const int64_t lengths[] = {1, 2, 7, 70, T_MOST};
    for (int form = BLOCK; form < N_FORMS; form++)
        for (int64_t m = 1; m <= M_MOST; m += 2)
            for (int i = 0; i < 5; i++) {
                /* Gates as they are and the observer layout may grow: short sequences show what they do. */
                enum gate gate = lengths[i] > 7 ? GATE_SOFTMAX : i % 2 ? GATE_NONE : GATE_SOFTMAX;
                struct scan s;
                scan_open(&s, kernels[_i], (enum form)form, gate, 1, lengths[i], 19, m);
                scan_run(&s);
                for (int64_t k = 0; k < 19; k += 9) expect_forms(&s, gate, k);
                scan_close(&s);
            }
}
END_TEST

/* --- linearity and the adjoint identity -------------------------------------------------------------------------- */

/* With fixed gates h is linear in v, so <h, w> = <v, dv>. */
START_TEST(adjoint_identity_holds) {
    for (int form = BLOCK; form < N_FORMS; form++)
        for (int gate = GATE_SOFTMAX; gate < GATE_COUNT; gate++) {
            struct scan s;
            scan_open(&s, kernels[_i], (enum form)form, (enum gate)gate, 2, gate == GATE_NONE ? 5 : 65, 18, 3);
            scan_run(&s);
            double left = 0, right = 0, size = 0;
            for (int64_t i = 0; i < tensor_count(s.h); i++) left += (double)tensor_real(s.h)[i] * tensor_real(s.w)[i];
            for (int64_t i = 0; i < tensor_count(s.v); i++) {
                double term = (double)tensor_real(s.v)[i] * s.v->grad[i];
                right += term;
                size += fabs(term);
            }
            ck_assert_double_eq_tol(left, right, 16 * REAL_EPSILON * size);
            ck_assert_double_gt(size, 1);
            scan_close(&s);
        }
}
END_TEST

/* A row's shares follow e^z far below 0, where the sigmoids themselves are 0. */
START_TEST(sigmoid_gates_have_no_lower_end) {
    for (int form = BLOCK; form < N_FORMS; form++) {
        struct scan s[2];
        for (int far = 0; far < 2; far++) {
            scan_open(&s[far], kernels[_i], (enum form)form, GATE_SIGMOID, 1, 9, 18, 3);
            for (int64_t i = 0; i < tensor_count(s[far].z); i++) tensor_real(s[far].z)[i] -= far ? 1000 : 50;
            scan_run(&s[far]);
        } /* near 1000 a float has ten bits less after the point */
        expect_close(s[1].h->data, s[0].h->data, tensor_count(s[0].h), 4096 * REAL_EPSILON, "h");
        expect_close(s[1].z->grad, s[0].z->grad, tensor_count(s[0].z), 4096 * REAL_EPSILON, "dz");
        for (int far = 0; far < 2; far++) scan_close(&s[far]);
    }
}
END_TEST

/* h(2 v + u / 4) = 2 h(v) + h(u) / 4 with the same gates. */
START_TEST(states_are_linear_in_the_input) {
    for (int form = BLOCK; form < N_FORMS; form++) {
        struct scan s;
        scan_open(&s, kernels[_i], (enum form)form, GATE_SIGMOID, 2, 40, 18, 3);
        int64_t n = tensor_count(s.v), states = tensor_count(s.h);
        real *v = copy_reals(s.v->data, n), *x = tensor_real(s.v), *u = copy_reals(s.v->data, n);
        for (int64_t i = 0; i < n; i++) u[i] = v[(i * 7 + 3) % n];
        graph_forward(&s.g, &s.state);
        real *want = copy_reals(s.h->data, states);
        memcpy(x, u, tensor_bytes(s.v));
        graph_forward(&s.g, &s.state);
        for (int64_t i = 0; i < states; i++) want[i] = 2 * want[i] + tensor_real(s.h)[i] / 4;
        for (int64_t i = 0; i < n; i++) x[i] = 2 * v[i] + u[i] / 4;
        graph_forward(&s.g, &s.state);
        expect_close(s.h->data, want, states, 16 * REAL_EPSILON, "h(2 v + u / 4)");
        free(v);
        free(u);
        free(want);
        scan_close(&s);
    }
}
END_TEST

Suite *check_scans(void);
Suite *check_scans(void) {
    Suite *suite = suite_create("scans");
    TCase *tests = tcase_create("scans");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_loop_test(tests, normalised_gates_are_shares_of_one, 0, N_KERNELS);
    tcase_add_loop_test(tests, states_stay_within_the_largest_input, 0, N_KERNELS);
    tcase_add_loop_test(tests, constant_input_fills_the_state_from_below, 0, N_KERNELS);
    tcase_add_loop_test(tests, observer_layout_grows_where_companion_does_not, 0, N_KERNELS);
    tcase_add_loop_test(tests, observer_layout_keeps_its_1_norm_bound, 0, N_KERNELS);
    tcase_add_loop_test(tests, layouts_agree_in_component_0_when_gates_are_constant, 0, N_KERNELS);
    tcase_add_loop_test(tests, order_1_is_the_diagonal_scan, 0, N_KERNELS);
    tcase_add_loop_test(tests, companion_is_the_block_scan_of_companion_matrices, 0, N_KERNELS);
    tcase_add_loop_test(tests, forms_of_the_scan_agree, 0, N_KERNELS);
    tcase_add_loop_test(tests, adjoint_identity_holds, 0, N_KERNELS);
    tcase_add_loop_test(tests, states_are_linear_in_the_input, 0, N_KERNELS);
    tcase_add_loop_test(tests, sigmoid_gates_have_no_lower_end, 0, N_KERNELS);
    suite_add_tcase(suite, tests);
    return suite;
}
