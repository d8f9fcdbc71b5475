/* turn_cpu.c - running_turn and turn_heads on the CPU; turn.c has the equations. For running_turn each thread computes
 * one sequence, for turn_heads a chunk of rows. SIMD vectors run along the pairs of a head. */
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/token/half_turns.h"
#include "kernels/token/turn.h"

/* --- running_turn ------------------------------------------------------------------------------------------------- */

/* Scratch memory of a sequence: its angles in forward, their gradients in backward. */
static real *angles_of(const struct turn_size *s, struct scratch *scratch) {
    return scratch_reals(scratch, s->H * s->R);
}

static size_t running_turn_cpu_workspace(const struct call *c, enum pass pass) {
    struct turn_size s = running_turn_size(c);
    struct scratch scratch = scratch_measure(c);
    (void)pass;
    for (int64_t b = 0; b < s.B; b++) angles_of(&s, &scratch);
    return scratch.used;
}

static void turn_sequence(const struct call *c, const struct turn_size *s, int64_t b, real *angles) {
    memset(angles, 0, (size_t)(s->H * s->R) * sizeof *angles);
    for (int64_t token = b * s->T; token < (b + 1) * s->T; token++) {
        const real *rate = tensor_real(c->in[TURN_RATE]) + token * s->R;
        for (int64_t h = 0; h < s->H; h++) {
            real delta = tensor_real(c->in[TURN_DELTA])[token * s->H + h], *angle = angles + h * s->R;
            real *cosine = tensor_real(c->out[TURN_COSINE]) + (token * s->H + h) * s->R;
            real *sine = tensor_real(c->out[TURN_SINE]) + (token * s->H + h) * s->R;
#pragma omp simd
            for (int64_t r = 0; r < s->R; r++) {
                real sum = real_fma(delta, rate[r], angle[r]);
                angle[r] = real_fma(whole(sum * (real)0.5), -2, sum);
                half_turns(angle[r], sine + r, cosine + r);
            }
        }
    }
}

static void running_turn_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct turn_size s = running_turn_size(c);
    struct scratch all = scratch_of(c, PASS_FORWARD);
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN / 4)
    for (int64_t b = 0; b < s.B; b++) {
        struct scratch own = scratch_part(&all, b, s.B);
        turn_sequence(c, &s, b, angles_of(&s, &own));
    }
}

/* Adds the gradients from the cosines and sines of a head at a token to G. A gradient of NULL is 0. */
static void add_arrival(const struct call *c, int64_t e, int64_t R, real *G) {
    const real *cosine = tensor_real(c->out[TURN_COSINE]) + e, *sine = tensor_real(c->out[TURN_SINE]) + e;
    const real *dcosine = call_dout(c, TURN_COSINE), *dsine = call_dout(c, TURN_SINE);
    int64_t of_cosine = dcosine ? R : 0, of_sine = dsine ? R : 0;
#pragma omp simd
    for (int64_t r = 0; r < of_sine; r++) G[r] = real_fma((real)TURN_PI * cosine[r], dsine[e + r], G[r]);
#pragma omp simd
    for (int64_t r = 0; r < of_cosine; r++) G[r] = real_fma((real)-TURN_PI * sine[r], dcosine[e + r], G[r]);
}

#define DOT_PARTS 16

/* Returns the sum of a[r] b[r], with the same number of partial sums on every machine. */
static real dot(int64_t n, const real *a, const real *b) {
    real part[DOT_PARTS] = {0}, sum = 0;
    int64_t r = 0;
    for (; r + DOT_PARTS <= n; r += DOT_PARTS)
#pragma omp simd
        for (int64_t k = 0; k < DOT_PARTS; k++) part[k] = real_fma(a[r + k], b[r + k], part[k]);
    for (; r < n; r++) sum = real_fma(a[r], b[r], sum);
    for (int64_t k = 0; k < DOT_PARTS; k++) sum += part[k];
    return sum;
}

static void turn_sequence_back(const struct call *c, const struct turn_size *s, int64_t b, real *angles) {
    memset(angles, 0, (size_t)(s->H * s->R) * sizeof *angles);
    for (int64_t token = (b + 1) * s->T - 1; token >= b * s->T; token--) {
        const real *rate = tensor_real(c->in[TURN_RATE]) + token * s->R;
        const real *delta = tensor_real(c->in[TURN_DELTA]) + token * s->H;
        real *drate = c->din[TURN_RATE] ? c->din[TURN_RATE] + token * s->R : NULL;
        for (int64_t h = 0; h < s->H; h++) {
            real *G = angles + h * s->R;
            add_arrival(c, (token * s->H + h) * s->R, s->R, G);
            if (c->din[TURN_DELTA])
                put(c->din[TURN_DELTA] + token * s->H + h, call_accumulates(c, TURN_DELTA), dot(s->R, G, rate));
            bool add = h > 0 || call_accumulates(c, TURN_RATE);
            for (int64_t r = 0; r < s->R && drate; r++) put(drate + r, add, G[r] * delta[h]);
        }
    }
}

static void running_turn_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct turn_size s = running_turn_size(c);
    struct scratch all = scratch_of(c, PASS_BACKWARD);
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN / 4)
    for (int64_t b = 0; b < s.B; b++) {
        struct scratch own = scratch_part(&all, b, s.B);
        turn_sequence_back(c, &s, b, angles_of(&s, &own));
    }
}

/* Tolerance: an angle is a sum over up to T tokens in working precision, and its error is measured in units of its
 * path's length (op->terms). Its gradient is such a sum too. */
const struct kernel kernel_running_turn_cpu = {
    .name = "running_turn_cpu",
    .op = &op_running_turn,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .workspace = running_turn_cpu_workspace,
    .forward = running_turn_cpu_forward,
    .backward = running_turn_cpu_backward,
};

/* --- turn_heads --------------------------------------------------------------------------------------------------- */

static void turn_heads_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct turn_size s = turn_heads_size(c);
    int64_t rows = s.B * s.T, chunks = row_chunks(rows), R = s.R, S = s.S;
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        for (int64_t i = part.begin * s.H; i < part.end * s.H; i++) {
            const real *x = tensor_real(c->in[HEADS_X]) + i / s.H * S,
                       *b = tensor_real(c->in[HEADS_BIAS]) + i % s.H * S;
            const real *cosine = tensor_real(c->in[HEADS_COSINE]) + i * R;
            const real *sine = tensor_real(c->in[HEADS_SINE]) + i * R;
            real *y = tensor_real(c->out[0]) + i * S;
#pragma omp simd
            for (int64_t r = 0; r < R; r++) {
                real first = x[2 * r] + b[2 * r], second = x[2 * r + 1] + b[2 * r + 1];
                y[2 * r] = first * cosine[r] - second * sine[r];
                y[2 * r + 1] = first * sine[r] + second * cosine[r];
            }
#pragma omp simd
            for (int64_t j = 2 * R; j < S; j++) y[j] = x[j] + b[j];
        }
    }
}

/* Scratch arrays of a chunk: the sums for the bias, and the gradient of x + b of one head at one token. */
struct chunk_sums {
    real *db, *du;
};

static struct chunk_sums chunk_sums_of(const struct turn_size *s, struct scratch *scratch) {
    struct chunk_sums w = {.db = scratch_reals(scratch, s->H * s->S)};
    w.du = scratch_reals(scratch, s->S);
    return w;
}

static size_t turn_heads_cpu_workspace(const struct call *c, enum pass pass) {
    struct turn_size s = turn_heads_size(c);
    struct scratch scratch = scratch_measure(c);
    for (int64_t k = 0; k < row_chunks(s.B * s.T) && pass == PASS_BACKWARD; k++) chunk_sums_of(&s, &scratch);
    return scratch.used;
}

/* Computes du of head i % H of token i / H. */
static void turn_back(const struct call *c, const struct turn_size *s, int64_t i, real *du) {
    const real *dy = call_dout(c, 0) + i * s->S, *cosine = tensor_real(c->in[HEADS_COSINE]) + i * s->R;
    const real *sine = tensor_real(c->in[HEADS_SINE]) + i * s->R;
#pragma omp simd
    for (int64_t r = 0; r < s->R; r++) {
        du[2 * r] = dy[2 * r] * cosine[r] + dy[2 * r + 1] * sine[r];
        du[2 * r + 1] = dy[2 * r + 1] * cosine[r] - dy[2 * r] * sine[r];
    }
    memcpy(du + 2 * s->R, dy + 2 * s->R, (size_t)(s->S - 2 * s->R) * sizeof *du);
}

static void put_angle_gradients(const struct call *c, const struct turn_size *s, int64_t i) {
    const real *dy = call_dout(c, 0) + i * s->S, *x = tensor_real(c->in[HEADS_X]) + i / s->H * s->S;
    const real *b = tensor_real(c->in[HEADS_BIAS]) + i % s->H * s->S;
    real *dcosine = c->din[HEADS_COSINE] ? c->din[HEADS_COSINE] + i * s->R : NULL;
    real *dsine = c->din[HEADS_SINE] ? c->din[HEADS_SINE] + i * s->R : NULL;
    bool add_cosine = call_accumulates(c, HEADS_COSINE), add_sine = call_accumulates(c, HEADS_SINE);
#pragma omp simd
    for (int64_t r = 0; r < s->R; r++) {
        real first = x[2 * r] + b[2 * r], second = x[2 * r + 1] + b[2 * r + 1];
        if (dcosine) put(dcosine + r, add_cosine, dy[2 * r] * first + dy[2 * r + 1] * second);
        if (dsine) put(dsine + r, add_sine, dy[2 * r + 1] * first - dy[2 * r] * second);
    }
}

static void turn_heads_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct turn_size s = turn_heads_size(c);
    int64_t rows = s.B * s.T, chunks = row_chunks(rows), H = s.H, S = s.S;
    struct scratch all = scratch_of(c, PASS_BACKWARD);
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        struct scratch own = scratch_part(&all, k, chunks);
        struct chunk_sums w = chunk_sums_of(&s, &own);
        memset(w.db, 0, (size_t)(H * S) * sizeof *w.db);
        for (int64_t i = part.begin * H; i < part.end * H; i++) {
            real *db = w.db + i % H * S, *dx = c->din[HEADS_X] ? c->din[HEADS_X] + i / H * S : NULL;
            bool add = i % H > 0 || call_accumulates(c, HEADS_X);
            turn_back(c, &s, i, w.du);
            put_angle_gradients(c, &s, i);
#pragma omp simd
            for (int64_t j = 0; j < S; j++) db[j] += w.du[j];
            for (int64_t j = 0; j < S && dx; j++) put(dx + j, add, w.du[j]);
        }
    }
    for (int64_t k = 0; k < chunks && c->din[HEADS_BIAS]; k++) {
        struct scratch own = scratch_part(&all, k, chunks);
        struct chunk_sums w = chunk_sums_of(&s, &own);
        sum_partials(H * S, 1, w.db, 0, c->din[HEADS_BIAS], k > 0 || call_accumulates(c, HEADS_BIAS));
    }
}

/* Tolerance: the bias's gradient sums rows in chunks of at least 128, in working precision. */
const struct kernel kernel_turn_heads_cpu = {
    .name = "turn_heads_cpu",
    .op = &op_turn_heads,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 64,
    .workspace = turn_heads_cpu_workspace,
    .forward = turn_heads_cpu_forward,
    .backward = turn_heads_cpu_backward,
};
