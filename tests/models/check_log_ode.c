/* check_log_ode.c - properties of log-signatures, brackets and flows, and of the log-ODE form of SLiCE. */
#include <math.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/dense/dense.h"
#include "kernels/flow/flow.h"
#include "tests/lib/layer.h"

static void run_graph(struct graph *g) {
    struct step_state state = first_state();
    graph_forward(g, &state);
}

/* --- log-signatures ----------------------------------------------------------------------------------------------- */

/* Computes it of one path with the given increments, row 0 left at 0; rows 1.. of the result are copied to `to`. */
static void log_signature_of(const double *steps, int64_t n, int64_t C, int64_t interval, int depth, double *to) {
    struct graph g;
    open_graph(&g, NULL, false, false, "");
    struct tensor *w = input3(&g, "w", 1, 1 + n, C, false), *s = log_signature(&g, w, interval, depth);
    tensor_keep(s);
    plan_graph(&g);
    for (int64_t i = 0; i < C; i++) tensor_real(w)[i] = 17; /* must not be read */
    for (int64_t i = 0; i < n * C; i++) tensor_real(w)[C + i] = (real)steps[i];
    run_graph(&g);
    for (int64_t i = 0; i < tensor_cols(s); i++) ck_assert_double_eq(tensor_real(s)[i], 0);
    for (int64_t i = tensor_cols(s); i < tensor_count(s); i++) to[i - tensor_cols(s)] = tensor_real(s)[i];
    graph_free(&g);
}

/* Whole numbers, so nothing is rounded: right and up is half a unit square, round it is a whole one. */
START_TEST(areas_are_those_of_the_plane) {
    static const double round[] = {1, 0, 0, 1, -1, 0, 0, -1}, back[] = {0, 1, 1, 0, 0, -1, -1, 0};
    double s[3];
    log_signature_of(round, 2, 2, 2, 2, s);
    ck_assert(s[0] == 1 && s[1] == 1 && s[2] == 0.5);
    log_signature_of(round, 4, 2, 4, 2, s);
    ck_assert(s[0] == 0 && s[1] == 0 && s[2] == 1);
    log_signature_of(back, 4, 2, 9, 2, s);
    ck_assert(s[0] == 0 && s[1] == 0 && s[2] == -1);
}
END_TEST

START_TEST(a_straight_line_has_no_area) {
    enum { C = 4, STEPS = 5, S = C + C * (C - 1) / 2 };
    static const double direction[C] = {3, -2, 0, 5}, lengths[STEPS] = {1, 4, -2, 3, 2};
    double steps[STEPS * C], s[S];
    for (int i = 0; i < STEPS * C; i++) steps[i] = lengths[i / C] * direction[i % C];
    log_signature_of(steps, STEPS, C, STEPS, 2, s);
    for (int i = 0; i < S; i++) ck_assert_double_eq(s[i], i < C ? 8 * direction[i] : 0);
}
END_TEST

/* l = l1 + l2, a = a1 + a2 + (l1_i l2_j - l1_j l2_i) / 2, of intervals of five and four steps and of all nine. */
START_TEST(log_signatures_of_two_halves_make_that_of_the_whole) {
    enum { C = 5, STEPS = 9, S = C + C * (C - 1) / 2 };
    double steps[STEPS * C], halves[2 * S], whole[S];
    struct rng r = rng_at(3, STREAM_TEST, 0);
    for (int i = 0; i < STEPS * C; i++) steps[i] = 2 * rng_uniform(&r) - 1;
    log_signature_of(steps, STEPS, C, 5, 2, halves);
    log_signature_of(steps, STEPS, C, STEPS, 2, whole);
    const double *one = halves, *two = halves + S;
    double size = 0;
    for (int i = 0; i < C; i++) expect_near(whole[i], one[i] + two[i], 32 * REAL_EPSILON, "l");
    for (int i = 0, at = C; i < C; i++)
        for (int j = i + 1; j < C; j++, at++) {
            double want = one[at] + two[at] + (one[i] * two[j] - one[j] * two[i]) / 2;
            expect_near(whole[at], want, 32 * REAL_EPSILON, "a");
            size += fabs(want);
        }
    ck_assert_double_gt(size, 1);
}
END_TEST

/* Single steps of depth 1 are the increments, and so is what a flow makes of them, to the bit. */
START_TEST(single_steps_of_depth_1_are_the_plain_recurrence) {
    enum { N = 3, M = 4, C = 7, T = 9 };
    struct graph g;
    open_graph(&g, NULL, false, false, "");
    struct tensor *w = input3(&g, "w", 2, T, C, false), *a = input3(&g, "a", M * M * N, C, 0, false);
    struct tensor *y0 = input3(&g, "y0", 2, N * M, 0, false);
    struct tensor *plain = scan_flow(&g, linear(&g, w, a, NULL), y0, N, M, 0);
    struct tensor *other = scan_flow(&g, linear(&g, log_signature(&g, w, 1, 1), a, NULL), y0, N, M, 0);
    tensor_keep(plain);
    tensor_keep(other);
    plan_graph(&g);
    fill_inputs(&g, FILL_SMALL, false);
    run_graph(&g);
    expect_same_bits(other->data, plain->data, tensor_count(plain), "states");
    graph_free(&g);
}
END_TEST

/* --- brackets ----------------------------------------------------------------------------------------------------- */

enum { GENERATORS = 4, BLOCKS = 2, SIZE = 3, ROWS = SIZE * SIZE * BLOCKS, PAIRS = GENERATORS * (GENERATORS - 1) / 2 };

/* The brackets of generators given as functions of (c, i, j, k): rows of PAIRS. */
static void brackets_of(double (*element)(int c, int i, int j, int k), double *to) {
    struct graph g;
    open_graph(&g, NULL, false, false, "");
    struct tensor *a = input3(&g, "a", ROWS, GENERATORS, 0, false), *all = brackets(&g, a, BLOCKS, SIZE);
    tensor_keep(all);
    plan_graph(&g);
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < GENERATORS; c++)
            tensor_real(a)[r * GENERATORS + c] = (real)element(c, r / BLOCKS / SIZE, r / BLOCKS % SIZE, r % BLOCKS);
    run_graph(&g);
    for (int r = 0; r < ROWS; r++) {
        const real *row = tensor_real(all) + r * (GENERATORS + PAIRS);
        expect_same_bits(row, tensor_real(a) + r * GENERATORS, GENERATORS, "the letters");
        for (int p = 0; p < PAIRS; p++) to[r * PAIRS + p] = row[GENERATORS + p];
    }
    graph_free(&g);
}

/* Polynomials in one matrix of each block. */
static double commuting(int c, int i, int j, int k) {
    double M[SIZE][SIZE], square = 0;
    for (int n = 0; n < SIZE * SIZE; n++) M[n / SIZE][n % SIZE] = sin(1 + n + 5 * k);
    for (int l = 0; l < SIZE; l++) square += M[i][l] * M[l][j];
    return cos(c) * (i == j) + sin(2 + c) * M[i][j] + cos(3 * c) * square;
}

START_TEST(generators_that_commute_have_no_brackets) {
    double b[ROWS * PAIRS];
    brackets_of(commuting, b);
    for (int i = 0; i < ROWS * PAIRS; i++) expect_near(b[i], 0, 64 * REAL_EPSILON, "bracket");
}
END_TEST

/* A_0 has its 1 at (0,1), A_1 at (1,0), A_2 at (1,2) of block 1 alone; A_3 = 0. */
static double elementary(int c, int i, int j, int k) {
    static const int at[GENERATORS][2] = {{0, 1}, {1, 0}, {1, 2}, {-1, -1}};
    return i == at[c][0] && j == at[c][1] && (c != 2 || k == 1);
}

/* [0,1] = A_1 A_0 - A_0 A_1 = E_11 - E_00,  [0,2] = -A_0 A_2 = -E_02,  [1,2] = 0; pairs (01 02 03 12 13 23). */
START_TEST(brackets_have_their_sign_and_order) {
    double b[ROWS * PAIRS];
    brackets_of(elementary, b);
    for (int r = 0; r < ROWS; r++)
        for (int p = 0; p < PAIRS; p++) {
            int i = r / BLOCKS / SIZE, j = r / BLOCKS % SIZE, k = r % BLOCKS;
            double want = p == 0 ? (i == 1 && j == 1) - (i == 0 && j == 0) : p == 1 ? -(i == 0 && j == 2 && k == 1) : 0;
            ck_assert_double_eq(b[r * PAIRS + p], want);
        }
}
END_TEST

/* --- exponentials ------------------------------------------------------------------------------------------------- */

/* exp(L) - I of one m x m matrix. */
static void exponential(const double *l, int64_t m, double *to) {
    struct graph g;
    open_graph(&g, NULL, false, false, "");
    struct tensor *in = input3(&g, "l", 1, 1, m * m, false), *e = expm_flow(&g, in, 1, m);
    tensor_keep(e);
    plan_graph(&g);
    for (int64_t i = 0; i < m * m; i++) tensor_real(in)[i] = (real)l[i];
    run_graph(&g);
    for (int64_t i = 0; i < m * m; i++) to[i] = tensor_real(e)[i];
    graph_free(&g);
}

START_TEST(exponentials_are_those_known) {
    static const double angles[] = {1e-3, 0.5, 3, 37};
    static const double step[9] = {0, 2, 3, 0, 0, 4, 0, 0, 0}, want[9] = {0, 2, 7, 0, 0, 4, 0, 0, 0}; /* N + N^2/2 */
    double e[9];
    for (int i = 0; i < 4; i++) {
        double t = (real)angles[i];
        exponential((double[]){0, -t, t, 0}, 2, e);
        expect_near(e[0], cos(t) - 1, 4 * REAL_EPSILON * fmax(1, t), "cos t - 1"); /* squarings double the rounding */
        expect_near(e[2], sin(t), 4 * REAL_EPSILON * fmax(1, t), "sin t");
        exponential(&t, 1, e);
        expect_near(e[0], expm1(t), 4 * REAL_EPSILON * fmax(1, t) * expm1(t), "e^t - 1");
    }
    exponential(step, 3, e);
    for (int i = 0; i < 9; i++) expect_near(e[i], want[i], 8 * REAL_EPSILON, "nilpotent");
    double tiny = (real)1e-12; /* keeps its digits: beside the identity none would be left in float */
    exponential(&tiny, 1, e);
    expect_near(e[0], tiny + tiny * tiny / 2, 2 * REAL_EPSILON * tiny, "tiny");
}
END_TEST

static const int flow_sizes[] = {2, 7, 16, 17, 40};

/* (I + E)(I + F) = I for E of L and F of -L, of small and of large matrices. */
START_TEST(a_flow_back_undoes_a_flow) {
    int m = flow_sizes[_i];
    double l[1600] = {0}, e[1600] = {0}, f[1600] = {0};
    struct rng r = rng_at(5, STREAM_TEST, (uint64_t)m);
    for (int i = 0; i < m * m; i++) l[i] = (2 * rng_uniform(&r) - 1) * 2 / sqrt(m);
    exponential(l, m, e);
    for (int i = 0; i < m * m; i++) l[i] = -l[i];
    exponential(l, m, f);
    for (int i = 0; i < m * m; i++) {
        double sum = e[i] + f[i];
        for (int j = 0; j < m; j++) sum += e[i / m * m + j] * f[j * m + i % m];
        expect_near(sum, 0, 64 * REAL_EPSILON, "E + F + E F");
    }
    ck_assert_double_gt(fabs(e[1]), 1e-3);
}
END_TEST

/* --- the mixer ---------------------------------------------------------------------------------------------------- */

static const char *const closed[] = {"slice:structure=diagonal", "slice:structure=block,block=3",
                                     "slice:structure=dense", "slice:structure=diagonal-dense,block=4"};

static void open_with(struct layer *l, const char *model, const char *options, int64_t T, int64_t D) {
    char text[160];
    snprintf(text, sizeof text, "%s%s", model, options);
    layer_open(l, text, T, D);
}

START_TEST(the_defaults_build_what_they_always_did) {
    static const char *const ops[] = {"split", "linear", "prepend_one", "linear", "scan_flow"};
    struct layer plain, set;
    layer_open(&plain, "slice:block=3", 9, 12);
    layer_open(&set, "slice:block=3,interval=1,depth=1,flow=euler", 9, 12);
    ck_assert_int_eq(plain.g.n_calls, 5);
    ck_assert_int_eq(set.g.n_calls, 5);
    for (int i = 0; i < 5; i++) {
        ck_assert_str_eq(plain.g.calls[i].op->name, ops[i]);
        ck_assert_str_eq(set.g.calls[i].op->name, ops[i]);
    }
    layer_run(&plain);
    layer_run(&set);
    expect_same_bits(set.y->data, plain.y->data, tensor_count(plain.y), "states");
    layer_close(&plain);
    layer_close(&set);
}
END_TEST

static void expect_same_layers(const char *a_text, const char *b_text) {
    struct layer a, b;
    open_with(&a, a_text, ",interval=4,depth=2,flow=exp,dt=0.2", 11, 12);
    open_with(&b, b_text, ",interval=4,depth=2,flow=exp,dt=0.2", 11, 12);
    layer_run(&a);
    layer_run(&b);
    expect_close(tensor_real(b.y), tensor_real(a.y), tensor_count(a.y), 256 * REAL_EPSILON, b_text);
    layer_close(&a);
    layer_close(&b);
}

START_TEST(structures_still_meet_in_their_limits) {
    expect_same_layers("slice:structure=diagonal", "slice:structure=block,block=1");
    expect_same_layers("slice:structure=dense", "slice:structure=block,block=12");
}
END_TEST

/* The equations once more in double, one block at a time. */
enum { N = 2, M = 3, D = N * M, C = D + 1, TERMS = 60 };

/* y += factor * A_c before, block k of the parameter A. */
static void add_generator(const struct layer *l, double factor, int c, int k, const double *before, double *y) {
    const real *A = l->params.value + params_find(&l->params, "A")->offset;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < M; j++) y[i] += factor * A[((i * M + j) * N + k) * C + c] * before[j];
}

/* y += factor * A_second A_first before */
static void add_two(const struct layer *l, double factor, int first, int second, int k, const double *before,
                    double *y) {
    double between[M] = {0};
    add_generator(l, 1, first, k, before, between);
    add_generator(l, factor, second, k, between, y);
}

/* L before, of the letters and areas of n increments w. */
static void apply_log_flow(const struct layer *l, double (*w)[C], int64_t n, bool areas, int k, const double *before,
                           double *y) {
    double p[C] = {0}, a[C][C] = {{0}};
    for (int i = 0; i < M; i++) y[i] = 0;
    for (int64_t t = 0; t < n; t++) {
        for (int i = 0; i < C * C; i++) a[i / C][i % C] += (p[i / C] * w[t][i % C] - p[i % C] * w[t][i / C]) / 2;
        for (int i = 0; i < C; i++) p[i] += w[t][i];
    }
    for (int i = 0; i < C; i++) {
        add_generator(l, p[i], i, k, before, y);
        for (int j = i + 1; j < C && areas; j++) {
            add_two(l, a[i][j], i, j, k, before, y);
            add_two(l, -a[i][j], j, i, k, before, y);
        }
    }
}

/* y <- (I + L) y or exp(L) y, the exponential by its series on the vector. */
static void move_state(const struct layer *l, double (*w)[C], int64_t n, bool areas, bool exact, int k, double *y) {
    double term[M], next[M];
    memcpy(term, y, sizeof term);
    for (int order = 1; order <= (exact ? TERMS : 1); order++) {
        apply_log_flow(l, w, n, areas, k, term, next);
        for (int i = 0; i < M; i++) y[i] += term[i] = next[i] / order;
    }
}

static const struct {
    int64_t T, interval, depth;
    bool exact;
} equations[] = {{11, 3, 2, false}, {11, 3, 2, true}, {11, 5, 1, false}, {11, 1, 1, true},
                 {11, 20, 2, true}, {1, 4, 2, true},  {2, 2, 2, false},  {12, 4, 2, true}};

START_TEST(the_mixer_is_its_equations) {
    int64_t T = equations[_i].T, interval = equations[_i].interval;
    char options[96];
    struct layer l;
    snprintf(options, sizeof options, ",dt=0.5,interval=%lld,depth=%lld,flow=%s", (long long)interval,
             (long long)equations[_i].depth, equations[_i].exact ? "exp" : "euler");
    open_with(&l, "slice:structure=block,block=3", options, T, D);
    layer_run(&l);
    for (int64_t b = 0; b < 2; b++)
        for (int k = 0; k < N; k++) {
            double y[M], w[12][C];
            int64_t n = 0;
            for (int i = 0; i < M; i++) y[i] = tensor_real(l.y)[b * T * D + k * M + i];
            for (int64_t t = 1; t < T; t++) {
                w[n][0] = 0.5;
                for (int i = 0; i < D; i++) w[n][1 + i] = 0.5 * tensor_real(l.x)[(b * T + t) * D + i];
                n++;
                if (t % interval == 0 || t == T - 1) {
                    move_state(&l, w, n, equations[_i].depth == 2, equations[_i].exact, k, y);
                    n = 0;
                }
                for (int i = 0; i < M; i++)
                    expect_near(tensor_real(l.y)[(b * T + t) * D + k * M + i], y[i],
                                512 * REAL_EPSILON * fmax(1, fabs(y[i])), options);
            }
        }
    layer_close(&l);
}
END_TEST

/* Structures that brackets do not keep, once more in double: L y = sum of the letters l_c times A_c y, A_c = diag(A[c])
 * + U_c V_c^T, H diag(A[c]), or what the mask keeps of A[c] (log-neural-cdes, models/LinearNeuralCDEs.py: no tanh, no
 * product of two sums). */
enum { WIDE = 8, LETTERS = WIDE + 1, RANK = 2 };

static double value_of(const struct layer *l, const char *name, int64_t row, int c) {
    return l->params.value[params_find(&l->params, name)->offset + row * LETTERS + c];
}

static void add_open_generator(const struct layer *l, int structure, double letter, int c, const double *y,
                               double *sum) {
    for (int i = 0; i < WIDE; i++)
        for (int j = 0; j < WIDE; j++) {
            double a = 0;
            if (structure == 0 && i == j) a = value_of(l, "A", i, c);
            for (int q = 0; structure == 0 && q < RANK; q++)
                a += value_of(l, "U", q * WIDE + i, c) * value_of(l, "V", q * WIDE + j, c);
            double sign = __builtin_popcount((unsigned)(i & j)) % 2 ? -1 : 1;
            if (structure == 1) a = sign / sqrt(WIDE) * value_of(l, "A", j, c);
            if (structure == 2) a = value_of(l, "A", i * WIDE + j, c) * value_of(l, "mask", i * WIDE + j, c);
            sum[i] += letter * a * y[j];
        }
}

static const char *const linear_models[] = {"slice:structure=dplr,rank=2,interval=3,dt=0.5",
                                            "slice:structure=hadamard,interval=3,dt=0.5",
                                            "slice:structure=sparse,keep=0.4,interval=3,dt=0.5"};

START_TEST(open_structures_are_linear_in_the_letters) {
    enum { T = 11 };
    struct layer l;
    layer_open(&l, linear_models[_i], T, WIDE);
    multiply(&l, "A", 3); /* far from where tanh is linear */
    layer_run(&l);
    for (int64_t b = 0; b < 2; b++) {
        double y[WIDE], letters[LETTERS] = {0};
        for (int i = 0; i < WIDE; i++) y[i] = tensor_real(l.y)[b * T * WIDE + i];
        for (int64_t t = 1; t < T; t++) {
            for (int c = 0; c < LETTERS; c++)
                letters[c] += 0.5 * (c == 0 ? 1 : tensor_real(l.x)[(b * T + t) * WIDE + c - 1]);
            if (t % 3 == 0 || t == T - 1) {
                double move[WIDE] = {0};
                for (int c = 0; c < LETTERS; c++) add_open_generator(&l, _i, letters[c], c, y, move);
                for (int i = 0; i < WIDE; i++) y[i] += move[i];
                memset(letters, 0, sizeof letters);
            }
            for (int i = 0; i < WIDE; i++)
                expect_near(tensor_real(l.y)[(b * T + t) * WIDE + i], y[i], 512 * REAL_EPSILON * fmax(1, fabs(y[i])),
                            linear_models[_i]);
        }
    }
    layer_close(&l);
}
END_TEST

/* Distance of the last state from the exact product of the steps' exponentials, which is what single steps give. */
static double error_of(const char *model, int depth, double dt) {
    enum { T = 7 };
    char options[96];
    double most = 0;
    struct layer exact, l;
    snprintf(options, sizeof options, ",dt=%.17g,flow=exp", dt);
    open_with(&exact, model, options, T, 12);
    snprintf(options, sizeof options, ",dt=%.17g,flow=exp,interval=%d,depth=%d", dt, T, depth);
    open_with(&l, model, options, T, 12);
    layer_run(&exact);
    layer_run(&l);
    for (int64_t i = 0; i < 2 * 12; i++) {
        int64_t at = (i / 12 * T + T - 1) * 12 + i % 12;
        most = fmax(most, fabs((double)tensor_real(exact.y)[at] - tensor_real(l.y)[at]));
    }
    layer_close(&exact);
    layer_close(&l);
    return most;
}

/* Halving the increments divides the error by 4 at depth 1, by 8 at depth 2. Diagonal generators commute: no error. */
START_TEST(the_error_falls_one_order_faster_at_depth_2) {
    for (int depth = 1; depth <= 2; depth++) {
        double last = error_of(closed[_i], depth, 0.05);
        for (int halvings = 1; halvings <= 4; halvings++) {
            double now = error_of(closed[_i], depth, ldexp(0.05, -halvings));
            if (_i == 0)
                expect_near(now, 0, 64 * REAL_EPSILON, "error of a diagonal flow");
            else
                expect_near(log2(last / now), 1 + depth, 0.15, closed[_i]);
            last = now;
        }
    }
}
END_TEST

/* The first output that input `at` may change: the end of the interval that it is in. */
static int64_t first_seen(int64_t at, int64_t interval, int64_t T) {
    int64_t end = (at + interval - 1) / interval * interval;
    return end < T - 1 ? end : T - 1;
}

static const char *const waiting[] = {
    "slice:structure=block,block=4,interval=3,depth=2,flow=exp",
    "slice:structure=diagonal-dense,block=5,interval=3,depth=2",
    "slice:structure=dense,interval=3",
    "slice:structure=dplr,rank=2,interval=3",
    "slice:structure=hadamard,interval=3",
    "slice:structure=sparse,keep=0.3,interval=3",
};

START_TEST(outputs_wait_for_the_end_of_their_interval) {
    enum { T = 12, WIDTH = 16 };
    static const int64_t changed[] = {0, 1, 2, 3, 4, 7, 9, 10, 11};
    struct layer l;
    real before[2 * T * WIDTH];
    layer_open(&l, waiting[_i], T, WIDTH);
    layer_run(&l);
    memcpy(before, l.y->data, sizeof before);
    for (int64_t t = 1; t < T - 1; t++)
        if (t % 3) expect_same_bits(before + t * WIDTH, before + (t - 1) * WIDTH, WIDTH, "a state within an interval");
    for (int i = 0; i < 9; i++) {
        real *x = tensor_real(l.x) + changed[i] * WIDTH, kept = *x;
        int64_t seen = first_seen(changed[i], 3, T);
        *x += (real)0.5;
        layer_run(&l);
        expect_same_bits(l.y->data, before, seen * WIDTH, "outputs before the end of the interval");
        ck_assert_int_ne(memcmp(tensor_real(l.y) + seen * WIDTH, before + seen * WIDTH, WIDTH * sizeof *x), 0);
        expect_same_bits(tensor_real(l.y) + T * WIDTH, before + T * WIDTH, T * WIDTH, "the other sequence");
        *x = kept;
    }
    layer_close(&l);
}
END_TEST

static const struct trial_shape one_layer = {.B = 2, .T = 8, .V = 6, .D = 9, .layers = 1, .kind = BACKBONE_SLICE};

static const char *const differentiated[] = {
    "slice:block=3,interval=3,depth=2,flow=exp,dt=0.5,penalty=0.1",
    "slice:structure=diagonal-dense,block=4,interval=2,depth=2,dt=0.5,penalty=0.1",
    "slice:structure=dense,interval=20,depth=2,dt=0.5",
    "slice:structure=dplr,rank=2,interval=3,dt=0.5",
};

/* Includes the loss term, whose gradient joins the brackets' gradient in A. */
START_TEST(gradients_of_whole_nets_are_differences_of_the_loss) {
    struct trial t;
    struct trial_shape shape = one_layer;
    shape.model = differentiated[_i];
    trial_open(&t, &shape, 5);
    graph_forward(&t.graph, &t.state);
    expect_gradients(&t, 9);
    trial_close(&t);
}
END_TEST

START_TEST(what_does_not_fit_is_refused) {
    static const char *const open[] = {"dplr", "hadamard", "sparse"};
    char text[96], named[48];
    for (int i = 0; i < 3; i++) {
        snprintf(named, sizeof named, "structure=%s; try", open[i]);
        snprintf(text, sizeof text, "slice:structure=%s,depth=2", open[i]);
        expect_layer_refused(text, 16, "the brackets of depth=2", named);
        expect_layer_refused(text, 16, "try depth=1, or structure=block, dense, diagonal or diagonal-dense", "");
        snprintf(text, sizeof text, "slice:structure=%s,flow=exp", open[i]);
        expect_layer_refused(text, 16, "flow=exp would make dense matrices", named);
        expect_layer_refused(text, 16, "try flow=euler, or structure=block, dense", "");
        snprintf(text, sizeof text, "slice:structure=%s,flow=exp,depth=2", open[i]);
        expect_layer_refused(text, 16, "try depth=1 with flow=euler, or", named);
    }
    /* 1025 letters: 1025 + 1025 * 1024 / 2 numbers, times 1024^2 elements of a generator */
    expect_layer_refused("slice:structure=dense,depth=2,interval=2", 1024,
                         "interval=2 depth=2 of D=1024 at batch 2 length 5", "log-signatures of 525825 numbers");
    expect_layer_refused("slice:structure=dense,depth=2,interval=2", 1024, "try depth=1", "the machine has");
}
END_TEST

Suite *check_log_ode(void);
Suite *check_log_ode(void) {
    Suite *s = suite_create("log_ode");
    TCase *c = tcase_create("log_ode");
    tcase_add_test(c, areas_are_those_of_the_plane);
    tcase_add_test(c, a_straight_line_has_no_area);
    tcase_add_test(c, log_signatures_of_two_halves_make_that_of_the_whole);
    tcase_add_test(c, single_steps_of_depth_1_are_the_plain_recurrence);
    tcase_add_test(c, generators_that_commute_have_no_brackets);
    tcase_add_test(c, brackets_have_their_sign_and_order);
    tcase_add_test(c, exponentials_are_those_known);
    tcase_add_loop_test(c, a_flow_back_undoes_a_flow, 0, (int)(sizeof flow_sizes / sizeof *flow_sizes));
    tcase_add_test(c, the_defaults_build_what_they_always_did);
    tcase_add_test(c, structures_still_meet_in_their_limits);
    tcase_add_loop_test(c, the_mixer_is_its_equations, 0, (int)(sizeof equations / sizeof *equations));
    tcase_add_loop_test(c, open_structures_are_linear_in_the_letters, 0,
                        (int)(sizeof linear_models / sizeof *linear_models));
    tcase_add_loop_test(c, outputs_wait_for_the_end_of_their_interval, 0, (int)(sizeof waiting / sizeof *waiting));
    tcase_add_test(c, what_does_not_fit_is_refused);
    if (REAL_IS_DOUBLE)
        tcase_add_loop_test(c, the_error_falls_one_order_faster_at_depth_2, 0, (int)(sizeof closed / sizeof *closed));
    if (REAL_IS_DOUBLE)
        tcase_add_loop_test(c, gradients_of_whole_nets_are_differences_of_the_loss, 0,
                            (int)(sizeof differentiated / sizeof *differentiated));
    suite_add_tcase(s, c);
    return s;
}
