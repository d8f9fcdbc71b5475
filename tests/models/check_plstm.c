/* check_plstm.c - properties of the pLSTM recurrences: gates that have a closed form, path counts, norm bounds,
 * symmetry of the four directions, and the special recurrences against the one on graphs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/flow/flow.h"
#include "kernels/matrix/matrix.h"
#include "kernels/plstm/dag_state.h"
#include "kernels/plstm/grid/grid.h"
#include "kernels/plstm/plstm.h"
#include "tests/lib/support.h"

/* Kernels to hold to the properties: the reference and the first that applies. */
static const char *const kernels[] = {"reference", ""};
#define N_KERNELS 2
static const char *const sequence_kernels[] = {"reference", "scan_plstm_cpu", "scan_plstm_chunk"};
#define N_SEQUENCE_KERNELS 3
static const char *const grid_kernels[] = {"reference", "grid_scan_cpu", "grid_scan_block"};
#define N_GRID_KERNELS ((int)(sizeof grid_kernels / sizeof *grid_kernels))
#define BOUND          (REAL_IS_DOUBLE ? 1e-12 : 1e-4)

/* A planned graph and its inputs by name. */
static struct tensor *named(struct graph *g, const char *name) {
    for (int i = 0; i < g->n_tensors; i++)
        if (!strcmp(g->tensors[i]->name, name)) return g->tensors[i];
    ck_abort_msg("no tensor %s", name);
    return NULL;
}

static void fill_with(struct graph *g, const char *name, double value) {
    struct tensor *t = named(g, name);
    for (int64_t i = 0; i < tensor_count(t); i++) tensor_real(t)[i] = (real)value;
}

/* Uniform in [-1, 1) under (seed, name's first letter). */
static void fill_random(struct graph *g, const char *name, uint64_t seed) {
    struct tensor *t = named(g, name);
    for (int64_t i = 0; i < tensor_count(t); i++) {
        struct rng r = rng_at(seed, STREAM_TEST, (uint64_t)(i * 256 + name[0]));
        tensor_real(t)[i] = (real)(2 * rng_uniform(&r) - 1);
    }
}

static void walk(struct graph *g) {
    struct step_state state = first_state();
    graph_forward(g, &state);
}

/* --- sequences ---------------------------------------------------------------------------------------------------- */

static struct tensor *build_sequence(struct graph *g, int64_t T, int64_t H, int64_t dk, int64_t dv, int64_t J) {
    struct tensor *q = input3(g, "q", 1, T, H * dk, false), *k = input3(g, "k", 1, T, H * dk, false);
    struct tensor *v = input3(g, "v", 1, T, H * dv, false), *S = input3(g, "source", 1, T, H * J, false);
    struct tensor *A = input3(g, "transition", 1, T, H * J * J, false), *M = input3(g, "mark", 1, T, H * J, false);
    return scan_plstm(g, q, k, v, S, A, M, input3(g, "direct", 1, T, H, false), H, J, 1);
}

static void fill_sequence(struct graph *g, uint64_t seed) {
    static const char *const names[] = {"q", "k", "v", "source", "transition", "mark", "direct"};
    for (int i = 0; i < 7; i++) fill_random(g, names[i], seed);
}

/* G[n][n'] = M_n T_{n-1} ... T_{n'+1} S_{n'}, D on the diagonal: y = (Q K^T o G) V. T negative and T = 0 among them. */
START_TEST(sequence_equals_its_gating_matrix) {
    for (int kernel = 0; kernel < N_SEQUENCE_KERNELS; kernel++) {
        struct graph g;
        int64_t T = 37, dk = 3, dv = 4;
        open_graph(&g, NULL, false, false, sequence_kernels[kernel]);
        struct tensor *y = build_sequence(&g, T, 1, dk, dv, 1);
        tensor_keep(y);
        plan_graph(&g);
        fill_sequence(&g, 7);
        real *t = tensor_real(named(&g, "transition"));
        t[5] = 0;
        t[20] = -1;
        walk(&g);
        const real *q = tensor_real(named(&g, "q")), *k = tensor_real(named(&g, "k")), *v = tensor_real(named(&g, "v"));
        real want[37 * 4] = {0};
        for (int64_t n = 0; n < T; n++)
            for (int64_t m = 0; m <= n; m++) {
                double gate = tensor_real(named(&g, "direct"))[n], qk = 0;
                if (m < n) gate = (double)tensor_real(named(&g, "mark"))[n] * tensor_real(named(&g, "source"))[m];
                for (int64_t i = m + 1; i < n; i++) gate *= t[i];
                for (int64_t i = 0; i < dk; i++) qk += (double)q[n * dk + i] * k[m * dk + i];
                for (int64_t e = 0; e < dv; e++) want[n * dv + e] += (real)(gate * qk * v[m * dv + e]);
            }
        expect_close(tensor_real(y), want, T * dv, BOUND, "y");
        graph_free(&g);
    }
}
END_TEST

/* T = -1 where a bit is 1, else 1: the state's sign is the parity of the bits since the first token, which alone is
 * stored. */
START_TEST(sequence_tracks_parity_exactly) {
    for (int kernel = 0; kernel < N_SEQUENCE_KERNELS; kernel++) {
        struct graph g;
        int64_t T = 101;
        open_graph(&g, NULL, false, false, sequence_kernels[kernel]);
        struct tensor *y = build_sequence(&g, T, 1, 1, 1, 1);
        tensor_keep(y);
        plan_graph(&g);
        fill_with(&g, "q", 1), fill_with(&g, "k", 1), fill_with(&g, "v", 1), fill_with(&g, "mark", 1);
        fill_with(&g, "direct", 0), fill_with(&g, "source", 0);
        tensor_real(named(&g, "source"))[0] = 1;
        real sign = 1;
        for (int64_t t = 0; t < T; t++) tensor_real(named(&g, "transition"))[t] = (t * t + t / 3) % 5 < 2 ? -1 : 1;
        walk(&g);
        for (int64_t t = 1; t < T; t++) {
            ck_assert(tensor_real(y)[t] == sign);
            sign *= tensor_real(named(&g, "transition"))[t];
        }
        graph_free(&g);
    }
}
END_TEST

/* A diagonal transition makes J states J independent recurrences. */
START_TEST(track_with_a_diagonal_transition_equals_independent_states) {
    for (int kernel = 0; kernel < N_SEQUENCE_KERNELS; kernel++) {
        struct graph many, one;
        int64_t T = 23, J = 3, dk = 2, dv = 5;
        open_graph(&many, NULL, false, false, sequence_kernels[kernel]);
        struct tensor *y = build_sequence(&many, T, 1, dk, dv, J);
        tensor_keep(y);
        plan_graph(&many);
        fill_sequence(&many, 11);
        real *t = tensor_real(named(&many, "transition")), want[23 * 5] = {0};
        for (int64_t i = 0; i < T * J * J; i++)
            if (i % (J * J) / J != i % J) t[i] = 0;
        walk(&many);
        for (int64_t j = 0; j < J; j++) {
            open_graph(&one, NULL, false, false, sequence_kernels[kernel]);
            struct tensor *part = build_sequence(&one, T, 1, dk, dv, 1);
            tensor_keep(part);
            plan_graph(&one);
            fill_sequence(&one, 11);
            for (int64_t n = 0; n < T; n++) {
                tensor_real(named(&one, "source"))[n] = tensor_real(named(&many, "source"))[n * J + j];
                tensor_real(named(&one, "mark"))[n] = tensor_real(named(&many, "mark"))[n * J + j];
                tensor_real(named(&one, "transition"))[n] = t[n * J * J + j * J + j];
                if (j > 0) tensor_real(named(&one, "direct"))[n] = 0;
            }
            walk(&one);
            for (int64_t i = 0; i < T * dv; i++) want[i] += tensor_real(part)[i];
            graph_free(&one);
        }
        expect_close(tensor_real(y), want, T * dv, BOUND, "y");
        graph_free(&many);
    }
}
END_TEST

/* A graph of one call with gradients: y and what the inputs get from a gradient of y that varies along it. */
struct gradients {
    struct graph g;
    struct tensor *in[7], *y;
};

static void sequence_gradients(struct gradients *x, const char *kernel, int64_t B, int64_t T, int64_t H, int64_t J) {
    int64_t dk = 2, dv = 3, widths[7] = {H * dk, H * dk, H * dv, H * J, H * J * J, H * J, H};
    static const char *const names[] = {"q", "k", "v", "source", "transition", "mark", "direct"};
    open_graph(&x->g, NULL, true, true, kernel);
    for (int i = 0; i < 7; i++) x->in[i] = input3(&x->g, names[i], B, T, widths[i], true);
    x->y = scan_plstm(&x->g, x->in[0], x->in[1], x->in[2], x->in[3], x->in[4], x->in[5], x->in[6], H, J, 1);
    graph_set_root(&x->g, x->y);
    plan_graph(&x->g);
    fill_sequence(&x->g, 19);
    struct step_state state = first_state();
    graph_forward(&x->g, &state);
    for (int64_t i = 0; i < tensor_count(x->y); i++) x->y->grad[i] = (real)sin((double)i);
    graph_backward(&x->g, &state);
    ck_assert_int_eq(x->g.plan->first_guard_failure, -1);
}

/* Beyond some length the chunkwise kernel keeps only some of the states and computes those between them again. */
START_TEST(long_sequences_give_the_same_gradients) {
    for (int64_t J = 1; J <= 3; J += 2) {
        struct gradients want, got;
        sequence_gradients(&want, "reference", 1, 1300, 2, J);
        sequence_gradients(&got, "scan_plstm_chunk", 1, 1300, 2, J);
        expect_close(tensor_real(got.y), tensor_real(want.y), tensor_count(want.y), BOUND, "y");
        for (int i = 0; i < 7; i++)
            expect_close(got.in[i]->grad, want.in[i]->grad, tensor_count(want.in[i]), BOUND, want.in[i]->name);
        graph_free(&want.g);
        graph_free(&got.g);
    }
}
END_TEST

/* Chunks are for sequences that fill them; who is named computes whatever the size. */
START_TEST(length_chooses_the_kernel) {
    static const struct {
        int64_t T, J, dk;
        const char *named, *taken;
    } cases[] = {{3, 1, 64, "", "scan_plstm_cpu"},
                 {5, 1, 16, "", "scan_plstm_cpu"},
                 {5, 1, 32, "", "scan_plstm_chunk"},
                 {5, 2, 2, "", "scan_plstm_chunk"},
                 {50, 5, 3, "", "scan_plstm_chunk"},
                 {1, 1, 2, "scan_plstm_chunk", "scan_plstm_chunk"},
                 {50, 5, 3, "scan_plstm_cpu", "scan_plstm_cpu"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct graph g;
        open_graph(&g, NULL, false, false, cases[i].named);
        tensor_keep(build_sequence(&g, cases[i].T, 1, cases[i].dk, 3, cases[i].J));
        plan_graph(&g);
        ck_assert_str_eq(g.calls[0].kernel->name, cases[i].taken);
        graph_free(&g);
    }
}
END_TEST

/* One state per head is scan_outer with all four gates: the same chunks, the same bits. */
START_TEST(one_state_is_the_outer_product_state) {
    struct graph g, outer;
    int64_t T = 53, H = 3, dk = 5, dv = 16;
    open_graph(&g, NULL, false, false, "scan_plstm_chunk");
    open_graph(&outer, NULL, false, false, "scan_outer_chunk");
    struct tensor *y = build_sequence(&g, T, H, dk, dv, 1);
    struct tensor *q = input3(&outer, "q", 1, T, H * dk, false), *k = input3(&outer, "k", 1, T, H * dk, false);
    struct tensor *v = input3(&outer, "v", 1, T, H * dv, false);
    struct outer_gates gates = {.decay = input3(&outer, "transition", 1, T, H, false),
                                .source = input3(&outer, "source", 1, T, H, false),
                                .mark = input3(&outer, "mark", 1, T, H, false),
                                .direct = input3(&outer, "direct", 1, T, H, false)};
    struct tensor *o = scan_outer(&outer, q, k, v, &gates, H, H, 1);
    tensor_keep(y);
    tensor_keep(o);
    plan_graph(&g);
    plan_graph(&outer);
    fill_sequence(&g, 23);
    fill_sequence(&outer, 23);
    walk(&g);
    walk(&outer);
    expect_same_bits(tensor_real(o), tensor_real(y), tensor_count(y), "o");
    graph_free(&g);
    graph_free(&outer);
}
END_TEST

/* U U^T = 1 even where the truncated series has lost every digit (||A - A^T|| about 13 and beyond). */
START_TEST(exponentials_are_orthogonal) {
    static const double sizes[] = {0, 1e-3, 1, 7, 13, 100};
    for (int64_t J = 1; J <= 5; J++)
        for (int s = 0; s < 6; s++) {
            struct graph g;
            open_graph(&g, NULL, false, false, "");
            struct tensor *u = expm_skew(&g, input3(&g, "a", 1, 1, J * J, false), J);
            tensor_keep(u);
            plan_graph(&g);
            fill_random(&g, "a", (uint64_t)J);
            for (int64_t i = 0; i < J * J; i++) tensor_real(named(&g, "a"))[i] *= (real)sizes[s];
            walk(&g);
            for (int64_t i = 0; i < J * J; i++) {
                double dot = 0;
                for (int64_t l = 0; l < J; l++)
                    dot += (double)tensor_real(u)[i / J * J + l] * tensor_real(u)[i % J * J + l];
                ck_assert_double_eq_tol(dot, i / J == i % J, REAL_IS_DOUBLE ? 1e-11 : 1e-5);
            }
            graph_free(&g);
        }
}
END_TEST

/* --- several states per head -------------------------------------------------------------------------------------- */

/* Largest |x| of a parameter's part of a block, values or gradients; with J > 1 largest |x - y| between rows
 * [H*J][columns] of neighbouring states of a head. */
static double largest(const struct trial *t, const real *block, const char *name, int64_t J) {
    char full[48];
    snprintf(full, sizeof full, "layers.0.mixer.%s", name);
    const struct param *p = params_find(&t->params, full);
    ck_assert_msg(p != NULL, "there is no %s", full);
    int64_t columns = p->spec.rank == 2 ? p->spec.dims[1] : 1;
    const real *x = block + p->offset;
    double most = 0;
    for (int64_t i = 0; i < p->count; i++) {
        bool last = J > 1 && (i / columns + 1) % J == 0;
        most = fmax(most, last ? 0 : fabs((double)x[i] - (J > 1 ? (double)x[i + columns] : 0)));
    }
    return most;
}

/* The J states of a head start apart, so that the gradient can tell them apart further; the released start is a saddle,
 * where it moves them alike and leaves the rotations alone. */
START_TEST(several_states_start_off_the_saddle) {
    static const char *const starts[] = {"plstm:heads=2,track=3", "plstm:heads=2,gates=bias,track=3",
                                         "plstm:heads=2,track=3,track-init=0"};
    struct trial t;
    struct trial_shape s = {.B = 4, .T = 16, .V = 6, .D = 12, .layers = 1, .model = starts[_i]};
    bool saddle = _i == 2;
    trial_open(&t, &s, 3);
    graph_forward(&t.graph, &t.state);
    graph_backward(&t.graph, &t.state);
    double moves = largest(&t, t.params.grad, "transition.weight", 1);
    double parts = largest(&t, t.params.grad, "transition.weight", 3);
    double left = largest(&t, t.params.grad, "left.weight", 1), right = largest(&t, t.params.grad, "right.weight", 1);
    ck_assert_double_gt(moves, 1e-7);
    if (saddle) { /* equal up to the rounding of sums */
        expect_at_most(parts, 64 * REAL_EPSILON * moves, "the gradient between states");
        expect_at_most(fmax(left, right), 0, "the gradient of the rotations");
    } else {
        ck_assert_double_gt(parts, 0.1 * moves);
        ck_assert_double_gt(fmin(left, right), 1e-3);
        graph_forward(&t.update, &t.state);
        ck_assert_double_gt(largest(&t, t.params.value, "left.weight", 1), 0);
        ck_assert_double_gt(largest(&t, t.params.value, "transition.weight", 3), 0);
    }
    trial_close(&t);
}
END_TEST

/* --- grids -------------------------------------------------------------------------------------------------------- */

static struct tensor *build_grid(struct graph *g, int64_t X, int64_t Y, int64_t dk, int64_t dv) {
    struct tensor *q = input3(g, "q", 1, X * Y, dk, false), *k = input3(g, "k", 1, X * Y, dk, false);
    struct tensor *v = input3(g, "v", 1, X * Y, dv, false),
                  *gates = input3(g, "gates", 1, X * Y, GRID_PLANES * 4, false);
    struct tensor *y = grid_scan(g, q, k, v, gates, input3(g, "direct", 1, X * Y, 1, false), X, Y, 1, 1);
    tensor_keep(y);
    return y;
}

/* One gate plane of one direction at all nodes. */
static void set_plane(struct graph *g, enum grid_plane plane, int direction, double value) {
    struct tensor *t = named(g, "gates");
    for (int64_t n = 0; n < t->dims[1]; n++) tensor_real(t)[n * GRID_PLANES * 4 + plane * 4 + direction] = (real)value;
}

/* Direction 0 alone, q = k = v = 1 wide 1, the impulse at node (0,0): y there on is l + u. */
static void impulse(struct graph *g, double sr, double sd, const double *transitions) {
    fill_with(g, "q", 1), fill_with(g, "k", 1), fill_with(g, "v", 0), fill_with(g, "direct", 0),
        fill_with(g, "gates", 0);
    tensor_real(named(g, "v"))[0] = 1;
    set_plane(g, GRID_SR, 0, sr);
    set_plane(g, GRID_SD, 0, sd);
    for (int i = 0; i < 4; i++) set_plane(g, (enum grid_plane)(GRID_RL + i), 0, transitions[i]);
    set_plane(g, GRID_ML, 0, 1);
    set_plane(g, GRID_MU, 0, 1);
}

static double binomial(int64_t n, int64_t k) {
    double b = 1;
    for (int64_t i = 1; i <= k; i++) b = b * (double)(n - k + i) / (double)i;
    return b;
}

/* P-mode, constant angle a and decay t: l + u = t^(x+y-1) binom(x+y, x) a^x (1-a)^y; all T = 1: the number of paths. */
START_TEST(impulse_of_constant_p_mode_is_binomial) {
    for (int kernel = 0; kernel < N_GRID_KERNELS; kernel++)
        for (int free_paths = 0; free_paths < 2; free_paths++) {
            struct graph g;
            int64_t X = 7, Y = 9;
            double a = free_paths ? 1 : 0.3, b = free_paths ? 1 : 0.7, t = free_paths ? 1 : 0.9;
            open_graph(&g, NULL, false, false, grid_kernels[kernel]);
            struct tensor *y = build_grid(&g, X, Y, 1, 1);
            plan_graph(&g);
            impulse(&g, a, b, (double[]){t * a, t * a, t * b, t * b});
            walk(&g);
            for (int64_t n = 1; n < X * Y; n++) {
                int64_t r = n / Y, s = n % Y;
                double want = pow(t, (double)(r + s - 1)) * binomial(r + s, r) * pow(a, (double)r) * pow(b, (double)s);
                ck_assert_double_eq_tol(tensor_real(y)[n], want, BOUND * fmax(1, want));
            }
            graph_free(&g);
        }
}
END_TEST

/* D-mode with all T = 1: one path from the origin to each node, both chiralities. */
START_TEST(impulse_of_d_mode_is_one_everywhere) {
    for (int kernel = 0; kernel < N_GRID_KERNELS; kernel++)
        for (int right = 0; right < 2; right++) {
            struct graph g;
            int64_t X = 6, Y = 11;
            open_graph(&g, NULL, false, false, grid_kernels[kernel]);
            struct tensor *y = build_grid(&g, X, Y, 1, 1);
            plan_graph(&g);
            impulse(&g, 1, 1, right ? (double[]){1, 0, 1, 1} : (double[]){1, 1, 0, 1});
            walk(&g);
            for (int64_t n = 1; n < X * Y; n++) ck_assert(tensor_real(y)[n] == 1);
            graph_free(&g);
        }
}
END_TEST

/* Turning the grid about its first axis and exchanging the directions' gates turns the output. */
START_TEST(four_directions_are_equivariant_to_flips) {
    for (int kernel = 0; kernel < N_GRID_KERNELS; kernel++)
        for (int flip = 1; flip < 4; flip++) {
            struct graph g, turned;
            int64_t X = 4, Y = 5, widths[5] = {3, 3, 2, GRID_PLANES * 4, 1};
            static const char *const names[5] = {"q", "k", "v", "gates", "direct"};
            struct grid_scan_attr grid = {X, Y, 1, 1};
            open_graph(&g, NULL, false, false, grid_kernels[kernel]);
            open_graph(&turned, NULL, false, false, grid_kernels[kernel]);
            struct tensor *y = build_grid(&g, X, Y, 3, 2), *z = build_grid(&turned, X, Y, 3, 2);
            plan_graph(&g);
            plan_graph(&turned);
            for (int i = 0; i < 5; i++) {
                fill_random(&g, names[i], 3);
                for (int64_t n = 0; n < X * Y; n++)
                    for (int64_t w = 0; w < widths[i]; w++) {
                        int64_t from = i == 3 ? w / 4 * 4 + (w % 4 ^ flip) : w;
                        tensor_real(named(&turned, names[i]))[grid_node(&grid, flip, n / Y, n % Y) * widths[i] + w] =
                            tensor_real(named(&g, names[i]))[n * widths[i] + from];
                    }
            }
            walk(&g);
            walk(&turned);
            for (int64_t n = 0; n < X * Y; n++)
                expect_close(tensor_real(z) + grid_node(&grid, flip, n / Y, n % Y) * 2, tensor_real(y) + n * 2, 2,
                             BOUND, "y");
            graph_free(&g);
            graph_free(&turned);
        }
}
END_TEST

/* PAPER P-mode: |rl| + |dl| = |T| <= 1, sources S; REF: rl + dl = 1, Sr + Sd = 1. */
START_TEST(p_mode_splits_what_comes_in) {
    for (int kernel = 0; kernel < N_KERNELS; kernel++)
        for (int form = GRID_P; form <= GRID_P_REF; form++) {
            struct graph g;
            static const char *const names[4] = {"s", "t", "m", "o"};
            struct tensor *raw[4];
            open_graph(&g, NULL, false, false, kernels[kernel]);
            for (int i = 0; i < 4; i++) raw[i] = input3(&g, names[i], 1, 50, 4, false);
            struct tensor *y = grid_gates(&g, raw, (enum grid_form)form);
            tensor_keep(y);
            plan_graph(&g);
            for (int i = 0; i < 4; i++) fill_random(&g, names[i], 5);
            walk(&g);
            for (int64_t n = 0; n < 200; n++) {
                const real *p = tensor_real(y) + n / 4 * GRID_PLANES * 4 + n % 4;
                double T = fabs(tanh(5 * tensor_real(raw[1])[n])), S = 1 / (1 + exp(-(double)tensor_real(raw[0])[n]));
                double rl = p[GRID_RL * 4], dl = p[GRID_DL * 4];
                ck_assert_double_eq_tol(form == GRID_P ? fabs(rl) + fabs(dl) : rl + dl, form == GRID_P ? T : 1, 1e-6);
                ck_assert_double_eq_tol(p[GRID_SR * 4] + p[GRID_SD * 4], form == GRID_P ? S : 1, 1e-6);
                ck_assert(p[GRID_RL * 4] == p[GRID_RU * 4] && p[GRID_DL * 4] == p[GRID_DU * 4]);
            }
            graph_free(&g);
        }
}
END_TEST

/* --- graphs ------------------------------------------------------------------------------------------------------- */

static const char *const dag_inputs[] = {"q", "k", "v", "direct", "source", "mark", "transition"};

/* A graph: edges by (tail, head), and the size of its links. */
struct drawn {
    int64_t nodes, edges;
    int32_t (*ends)[2];
    struct links_size size;
};

static struct tensor *build_dag(struct graph *g, const struct drawn *d, int64_t dk, int64_t dv) {
    struct tensor *q = input3(g, "q", 1, d->nodes, dk, false), *k = input3(g, "k", 1, d->nodes, dk, false);
    struct tensor *v = input3(g, "v", 1, d->nodes, dv, false), *S = input3(g, "source", 1, d->size.edges, 1, false);
    struct tensor *M = input3(g, "mark", 1, d->size.edges, 1, false);
    struct tensor *T = input3(g, "transition", 1, d->size.pairs, 1, false);
    int64_t dims[] = {1, links_words(d->size)};
    struct links links = {graph_input_ids(g, "links", 2, dims, (int32_t)d->nodes, true), d->size, false};
    struct tensor *y = dag_scan(g, q, k, v, S, M, T, input3(g, "direct", 1, d->nodes, 1, false), &links, false, 1, 1);
    tensor_keep(y);
    return y;
}

static void fill_links(struct graph *g, const struct drawn *d) {
    uint64_t scratch[64];
    ck_assert_int_le(links_scratch(d->edges), 64);
    links_fill(tensor_i32(named(g, "links")), d->size, d->edges, (const int32_t(*)[2])d->ends, scratch);
}

static void copy_input(struct graph *to, struct graph *from, const char *name) {
    struct tensor *a = named(to, name), *b = named(from, name);
    ck_assert_int_eq(tensor_count(a), tensor_count(b));
    memcpy(a->data, b->data, tensor_bytes(a));
}

/* Edge n leads from node n to n + 1: S of its tail, M of its head, T of the node between. */
START_TEST(graph_that_is_a_path_equals_the_sequence) {
    for (int kernel = 0; kernel < N_KERNELS; kernel++) {
        struct graph g, sequence;
        int32_t ends[30][2];
        for (int32_t i = 0; i < 30; i++) ends[i][0] = i, ends[i][1] = i + 1;
        struct drawn d = {31, 30, ends, links_size_of(30, (const int32_t(*)[2])ends)};
        open_graph(&g, NULL, false, false, kernels[kernel]);
        open_graph(&sequence, NULL, false, false, kernels[kernel]);
        struct tensor *y = build_dag(&g, &d, 3, 4), *want = build_sequence(&sequence, 31, 1, 3, 4, 1);
        tensor_keep(want);
        plan_graph(&g);
        plan_graph(&sequence);
        fill_sequence(&sequence, 13);
        fill_links(&g, &d);
        for (int i = 0; i < 4; i++) copy_input(&g, &sequence, dag_inputs[i]);
        for (int64_t e = 0; e < 30; e++) {
            tensor_real(named(&g, "source"))[e] = tensor_real(named(&sequence, "source"))[e];
            tensor_real(named(&g, "mark"))[e] = tensor_real(named(&sequence, "mark"))[e + 1];
            if (e < 29) tensor_real(named(&g, "transition"))[e] = tensor_real(named(&sequence, "transition"))[e + 1];
        }
        walk(&g);
        walk(&sequence);
        expect_close(tensor_real(y), tensor_real(want), 31 * 4, BOUND, "y");
        graph_free(&g);
        graph_free(&sequence);
    }
}
END_TEST

/* The edges of a grid to the right and down, row-major by tail; gates of direction 0, the others closed. */
#define GX 4
#define GY 3
struct grid_dag {
    struct drawn d;
    int32_t ends[2 * GX * GY][2];
    enum grid_plane source[2 * GX * GY], mark[2 * GX * GY], transition[8 * GX * GY];
};

static void make_grid_dag(struct grid_dag *s) {
    int32_t n = 0, p = 0;
    for (int32_t node = 0; node < GX * GY; node++)
        for (int down = 1; down >= 0; down--) { /* the edge down first: its head is the lower one */
            if (down ? node % GY == GY - 1 : node / GY == GX - 1) continue;
            for (int32_t e = 0; e < n; e++) {
                if (s->ends[e][1] != node) continue;
                bool from_top = s->mark[e] == GRID_MU;
                s->transition[p++] = down ? (from_top ? GRID_DU : GRID_DL) : (from_top ? GRID_RU : GRID_RL);
            }
            s->ends[n][0] = node;
            s->ends[n][1] = node + (down ? 1 : GY);
            s->source[n] = down ? GRID_SD : GRID_SR;
            s->mark[n++] = down ? GRID_MU : GRID_ML;
        }
    s->d = (struct drawn){GX * GY, n, s->ends, links_size_of(n, (const int32_t(*)[2])s->ends)};
    ck_assert_int_eq(s->d.size.pairs, p);
}

START_TEST(graph_that_is_a_grid_equals_the_grid) {
    static struct grid_dag s;
    make_grid_dag(&s);
    for (int kernel = 0; kernel < N_KERNELS; kernel++) {
        struct graph g, grid;
        open_graph(&g, NULL, false, false, kernels[kernel]);
        open_graph(&grid, NULL, false, false, kernels[kernel]);
        struct tensor *y = build_dag(&g, &s.d, 3, 2), *want = build_grid(&grid, GX, GY, 3, 2);
        plan_graph(&g);
        plan_graph(&grid);
        fill_links(&g, &s.d);
        for (int i = 0; i < 4; i++) fill_random(&grid, dag_inputs[i], 17);
        fill_random(&grid, "gates", 17);
        for (int p = 0; p < GRID_PLANES; p++)
            for (int direction = 1; direction < 4; direction++) set_plane(&grid, (enum grid_plane)p, direction, 0);
        for (int i = 0; i < 4; i++) copy_input(&g, &grid, dag_inputs[i]);
        const real *gates = tensor_real(named(&grid, "gates"));
        for (int64_t e = 0; e < s.d.edges; e++) {
            tensor_real(named(&g, "source"))[e] = gates[s.ends[e][0] * GRID_PLANES * 4 + (int)s.source[e] * 4];
            tensor_real(named(&g, "mark"))[e] = gates[s.ends[e][1] * GRID_PLANES * 4 + (int)s.mark[e] * 4];
        }
        struct links_view l = {tensor_i32(named(&g, "links")), s.d.size, s.d.nodes, false};
        for (int64_t p = 0; p < s.d.size.pairs; p++) {
            int32_t from, to;
            ck_assert(links_pair(&l, p, &from, &to));
            tensor_real(named(&g, "transition"))[p] = gates[s.ends[to][0] * GRID_PLANES * 4 + (int)s.transition[p] * 4];
        }
        walk(&g);
        walk(&grid);
        expect_close(tensor_real(y), tensor_real(want), GX * GY * 2, BOUND, "y");
        graph_free(&g);
        graph_free(&grid);
    }
}
END_TEST

Suite *check_plstm(void);
Suite *check_plstm(void) {
    Suite *suite = suite_create("plstm");
    TCase *tests = tcase_create("plstm");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_test(tests, sequence_equals_its_gating_matrix);
    tcase_add_test(tests, sequence_tracks_parity_exactly);
    tcase_add_test(tests, track_with_a_diagonal_transition_equals_independent_states);
    tcase_add_test(tests, long_sequences_give_the_same_gradients);
    tcase_add_test(tests, length_chooses_the_kernel);
    tcase_add_test(tests, one_state_is_the_outer_product_state);
    tcase_add_test(tests, exponentials_are_orthogonal);
    tcase_add_loop_test(tests, several_states_start_off_the_saddle, 0, 3);
    tcase_add_test(tests, impulse_of_constant_p_mode_is_binomial);
    tcase_add_test(tests, impulse_of_d_mode_is_one_everywhere);
    tcase_add_test(tests, four_directions_are_equivariant_to_flips);
    tcase_add_test(tests, p_mode_splits_what_comes_in);
    tcase_add_test(tests, graph_that_is_a_path_equals_the_sequence);
    tcase_add_test(tests, graph_that_is_a_grid_equals_the_grid);
    suite_add_tcase(suite, tests);
    return suite;
}
