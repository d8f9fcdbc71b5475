/* check_mamba3.c - properties of Mamba-3: parity by weights set by hand, and the angles that it turns by. */
#include <math.h>
#include <string.h>

#include "core/graph_walk.h"
#include "kernels/token/token.h"
#include "models/matrix/matrix_state.h"
#include "tests/lib/layer.h"

static const char *const kernels[] = {"reference", ""};
#define N_KERNELS (int)(sizeof kernels / sizeof *kernels)

static void set(struct layer *l, const char *name, int n, const double *values) {
    ck_assert_int_eq(params_find(&l->params, name)->count, n);
    for (int i = 0; i < n; i++) layer_values(l, name)[i] = (real)values[i];
}

/* Bits as one-hot vectors, the columns of in.weight. A bit 1 turns keys and queries by half a turn and writes; a bit 0
 * has no step. So a query meets the keys of all ones so far with signs in turn, which leave one or none: after c ones
 * the least decay, exp(-2e-4), leaves even counts tanh(1e-4 c) of the odd ones: less than a tenth, for the 1000 ones
 * that a sequence has at most. */
START_TEST(half_turns_solve_parity_at_any_length) {
    enum { T = 2000 };
    const double step = log(expm1(2)), quarter = atanh(0.5); /* Delta = 2, which with tanh = 1/2 is half a turn */
    struct layer l;
    layer_open(&l, "mamba3:state=2,headdim=4,rope=1", T, 2);
    set(&l, "in.weight", 32, (double[]){1,   1,    1,    1,    1,  1,  1, 1,      1, 1, 1, 1, 1, 1, 1, 1, /* z and x */
                                        0,   0,    0,    0,    0,  0,  0, 0, /* B and C: biases alone */
                                        -40, step, -1e6, -1e6, 40, 40, 0, quarter});
    set(&l, "dt.bias", 1, (double[]){0});
    set(&l, "B.bias", 2, (double[]){1, 0});
    set(&l, "C.bias", 2, (double[]){1, 0});
    set(&l, "skip", 1, (double[]){0});
    set(&l, "out.weight", 8, (double[]){1, 1, 1, 1, 0, 0, 0, 0});
    uint32_t noise = 12345;
    for (int64_t t = 0, ones = 0; t < 2 * T; t++) {
        noise = noise * 1664525u + 1013904223u;
        if (t == T) ones = 0;
        bool one = noise >> 31 && ones < 1000;
        ones += one;
        tensor_real(l.x)[2 * t] = one ? 0 : 1;
        tensor_real(l.x)[2 * t + 1] = one ? 1 : 0;
    }
    layer_run(&l);
    for (int64_t b = 0; b < 2; b++) {
        double even = 0, odd = INFINITY;
        for (int64_t t = 0, ones = 0; t < T; t++) {
            ones += tensor_real(l.x)[2 * (b * T + t) + 1] > 0;
            double y = fabs((double)tensor_real(l.y)[2 * (b * T + t)]);
            if (ones % 2) odd = fmin(odd, y);
            if (ones % 2 == 0) even = fmax(even, y);
        }
        ck_assert_msg(even < 0.1 * odd && odd < INFINITY, "even counts up to %g, odd ones from %g", even, odd);
    }
    layer_close(&l);
}
END_TEST

/* The key or query of every head: rows first to first + S of in.weight, normed, plus a bias of 1. */
static void key_of(struct layer *l, const real *u, int64_t D, int64_t first, int S, double *k) {
    double squares = 0;
    for (int i = 0; i < S; i++) k[i] = mapped(l, "in.weight", u, D, first + i);
    for (int i = 0; i < S; i++) squares += k[i] * k[i] / S;
    for (int i = 0; i < S; i++) k[i] = 1 + k[i] / sqrt(squares + NORM_EPS);
}

/* With lambda = 1/2 and no turns, half of a token's step enters with the token and half with the next one. So the state
 * is the sum of two plain outer scans, one of the tokens and one of the tokens before them. */
START_TEST(half_steps_without_turns_are_two_plain_scans) {
    enum { T = 37, D = 8, P = 4, N = D / P, S = 6, B = 2 * D, C = B + S, DT = C + S, A = DT + N, TRAP = A + N };
    struct layer l;
    layer_open(&l, "mamba3:state=6,headdim=4,expand=1,rope=1", T, D);
    for (int i = TRAP * D; i < (TRAP + N + S / 2) * D; i++) layer_values(&l, "in.weight")[i] = 0;
    layer_set_all(&l, "out.weight", 0);
    for (int i = 0; i < D; i++) layer_values(&l, "out.weight")[i * D + i] = 1;
    layer_run(&l);
    for (int64_t h = 0; h < 2 * N; h++) { /* heads of both sequences */
        double now[P][S] = {{0}}, late[P][S] = {{0}}, k[S], before[S] = {0}, q[S];
        for (int64_t t = 0; t < T; t++, memcpy(before, k, sizeof k)) {
            const real *u = tensor_real(l.x) + (h / N * T + t) * D, *y = tensor_real(l.y) + (h / N * T + t) * D;
            double step = log1p(exp(mapped(&l, "in.weight", u, D, DT + h % N) + layer_values(&l, "dt.bias")[h % N]));
            double rate = mapped(&l, "in.weight", u, D, A + h % N);
            double decay = exp(-step * (rate < 0 ? 1 / (1 - rate) : 1 + rate));
            key_of(&l, u, D, B, S, k);
            key_of(&l, u, D, C, S, q);
            for (int64_t p = 0, row = h % N * P; p < P; p++, row++) {
                double x = mapped(&l, "in.weight", u, D, D + row), z = mapped(&l, "in.weight", u, D, row), o = x;
                double x_before = t > 0 ? mapped(&l, "in.weight", u - D, D, D + row) : 0;
                for (int i = 0; i < S; i++) {
                    now[p][i] = decay * now[p][i] + step / 2 * x * k[i];
                    late[p][i] = decay * (late[p][i] + step / 2 * x_before * before[i]);
                    o += (now[p][i] + late[p][i]) * q[i];
                }
                o *= z / (1 + exp(-z));
                expect_near(y[row], o, 256 * REAL_EPSILON * fmax(1, fabs(o)), "y");
            }
        }
    }
    layer_close(&l);
}
END_TEST

/* Angles of steps that are all alike are their multiples, after many whole turns too; a turn keeps lengths. */
START_TEST(angles_stay_exact) {
    enum { T = 3000, H = 2, R = 5, S = 13 };
    struct graph g;
    struct tensor *sine;
    open_graph(&g, NULL, false, true, kernels[_i]);
    struct tensor *delta = input3(&g, "delta", 1, T, H, false), *rate = input3(&g, "rate", 1, T, R, false);
    struct tensor *x = input3(&g, "x", 1, T, S, false), *bias = input3(&g, "b", H, S, 0, false);
    struct tensor *cosine = running_turn(&g, delta, rate, &sine), *y = turn_heads(&g, x, bias, cosine, sine);
    struct tensor *kept[] = {cosine, sine, y};
    for (int i = 0; i < 3; i++) tensor_keep(kept[i]);
    plan_graph(&g);
    fill_inputs(&g, FILL_SMALL, false);
    for (int64_t t = 0; t < T; t++) {
        for (int h = 0; h < H; h++) tensor_real(delta)[t * H + h] = (real)(h + 1);
        for (int r = 0; r < R; r++) tensor_real(rate)[t * R + r] = (real)(r + 1) / 128; /* sums have no rounding */
    }
    struct step_state state = first_state();
    graph_forward(&g, &state);
    for (int64_t t = 0; t < T; t++)
        for (int h = 0; h < H; h++) {
            double of_x = 0, of_y = 0;
            for (int r = 0; r < R; r++) {
                double angle = fmod((double)(t + 1) * (h + 1) * (r + 1) / 128, 2) * acos(-1);
                int64_t e = (t * H + h) * R + r;
                expect_near(tensor_real(cosine)[e], cos(angle), 8 * REAL_EPSILON, "cosine");
                expect_near(tensor_real(sine)[e], sin(angle), 8 * REAL_EPSILON, "sine");
            }
            for (int j = 0; j < S; j++) {
                of_x += pow((double)tensor_real(x)[t * S + j] + tensor_real(bias)[h * S + j], 2);
                of_y += pow((double)tensor_real(y)[(t * H + h) * S + j], 2);
            }
            expect_near(of_y / of_x, 1, 32 * REAL_EPSILON, "squared length");
        }
    graph_free(&g);
}
END_TEST

START_TEST(misfits_name_their_numbers) {
    expect_layer_refused("mamba3:headdim=5", 12, "headdim=5", "24");
    expect_layer_refused("mamba3:state=3", 12, "rope=0.5", "state=3");
}
END_TEST

Suite *check_mamba3(void);
Suite *check_mamba3(void) {
    Suite *suite = suite_create("mamba3");
    TCase *tests = tcase_create("mamba3");
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_add_test(tests, half_turns_solve_parity_at_any_length);
    tcase_add_test(tests, half_steps_without_turns_are_two_plain_scans);
    tcase_add_loop_test(tests, angles_stay_exact, 0, N_KERNELS);
    tcase_add_test(tests, misfits_name_their_numbers);
    suite_add_tcase(suite, tests);
    return suite;
}
