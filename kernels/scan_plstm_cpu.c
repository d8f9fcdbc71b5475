/* scan_plstm_cpu.c - pLSTM on sequences: a task is one head of one sequence, its J states in L1, columns in vector lanes.
 *
 * States are [dk][J][dv], so that the J rows that a transition couples lie together. Backward computes the states again: once
 * with a copy of every `stride`-th kept, then stretch by stretch from the last copy on, about 2 sqrt(T) states in all. */
#include <string.h>

#include "kernels/dag_state.h"

#define TRACK_CPU 4 /* largest J the kernel is compiled for; beyond, the reference computes */

struct sizes {
    int64_t T, dk, dv, stride, n; /* n: reals of the J states */
    real scale;
};

/* One head at one token: inputs, the rows of dy, and where gradients go. */
struct token {
    const real *q, *k, *v, *S, *T, *M, *dy;
    real D;
    int64_t row, h;
};

static struct token token_at(const struct call *c, int64_t row, int64_t h) {
    const struct scan_plstm_attr *a = c->attr;
    struct dag_sizes z = dag_sizes_of(c, a->H);
    const real *dy = call_dout(c, 0) ? call_dout(c, 0) + (row * z.H + h) * z.dv : NULL;
    return (struct token){head_in(c, 0, row, h, z.dk),
                          head_in(c, 1, row, h, z.dk),
                          head_in(c, 2, row, h, z.dv),
                          head_in(c, 3, row, h, a->J),
                          head_in(c, 4, row, h, a->J * a->J),
                          head_in(c, 5, row, h, a->J),
                          dy,
                          *head_in(c, 6, row, h, 1),
                          row,
                          h};
}

static struct sizes sizes_of(const struct call *c) {
    const struct scan_plstm_attr *a = c->attr;
    struct dag_sizes z = dag_sizes_of(c, a->H);
    int64_t stride = 1;
    while (stride * stride < z.T) stride++;
    return (struct sizes){z.T, z.dk, z.dv, stride, a->J * z.dk * z.dv, (real)a->scale};
}

/* Row i of the states: after = T before + S k_i v; before and after may be the same. */
STATE_INLINE void update_row(int J, int64_t dv, struct token t, real ki, const real *before, real *after) {
#pragma omp simd
    for (int64_t e = 0; e < dv; e++) {
        real old[TRACK_CPU], kv = ki * t.v[e];
        for (int j = 0; j < J; j++) old[j] = before[j * dv + e];
        for (int j = 0; j < J; j++) {
            real sum = t.S[j] * kv;
            for (int l = 0; l < J; l++) sum = real_fma(t.T[j * J + l], old[l], sum);
            after[j * dv + e] = sum;
        }
    }
}

STATE_INLINE void forward_token(int J, struct sizes z, struct token t, real *C, real *y) {
    real direct = t.D * dot_product(z.dk, t.q, t.k);
    for (int64_t e = 0; e < z.dv; e++) y[e] = direct * t.v[e];
    for (int64_t i = 0; i < z.dk; i++) {
        real *row = C + i * J * z.dv, qi = t.q[i];
#pragma omp simd
        for (int64_t e = 0; e < z.dv; e++) {
            real sum = 0;
            for (int j = 0; j < J; j++) sum = real_fma(t.M[j], row[j * z.dv + e], sum);
            y[e] = real_fma(qi, sum, y[e]);
        }
        update_row(J, z.dv, t, t.k[i], row, row);
    }
    for (int64_t e = 0; e < z.dv; e++) y[e] *= z.scale;
}

/* Sums over the state of one token's gradients. */
struct gradient {
    real dS[TRACK_CPU], dT[TRACK_CPU * TRACK_CPU], dM[TRACK_CPU];
    real *dq, *dk, *dv, *w; /* dk, dk, dv and dv reals */
};

/* Row i: what depends on E and on C, then E becomes its predecessor. */
STATE_INLINE void backward_row(int J, struct sizes z, struct token t, int64_t i, const real *C, real *E,
                               struct gradient *g) {
    real Ev[TRACK_CPU] = {0}, Cw[TRACK_CPU] = {0}, qi = t.q[i], ki = t.k[i], dq = 0, dk = 0;
    int64_t dv = z.dv;
    for (int j = 0; j < J; j++) {
        Ev[j] = dot_product(dv, E + j * dv, t.v);
        Cw[j] = dot_product(dv, C + j * dv, g->w);
        for (int l = 0; l < J; l++) g->dT[j * J + l] += dot_product(dv, E + j * dv, C + l * dv);
        g->dS[j] = real_fma(ki, Ev[j], g->dS[j]);
        g->dM[j] = real_fma(qi, Cw[j], g->dM[j]);
        dq = real_fma(t.M[j], Cw[j], dq);
        dk = real_fma(t.S[j], Ev[j], dk);
    }
    g->dq[i] = dq;
    g->dk[i] = dk;
#pragma omp simd
    for (int64_t e = 0; e < dv; e++) {
        real now[TRACK_CPU], source = 0, qw = qi * g->w[e];
        for (int j = 0; j < J; j++) {
            now[j] = E[j * dv + e];
            source = real_fma(t.S[j], now[j], source);
        }
        g->dv[e] = real_fma(ki, source, g->dv[e]);
        for (int j = 0; j < J; j++) {
            real sum = t.M[j] * qw;
            for (int l = 0; l < J; l++) sum = real_fma(t.T[l * J + j], now[l], sum);
            E[j * dv + e] = sum;
        }
    }
}

static void put_gradients(const struct call *c, int J, struct sizes z, struct token t, struct gradient *g, real qk,
                          real vw) {
    int64_t row = t.row, h = t.h;
    real direct = qk * vw;
    add_scaled(z.dk, t.D * vw, t.k, g->dq);
    add_scaled(z.dk, t.D * vw, t.q, g->dk);
    add_scaled(z.dv, t.D * qk, g->w, g->dv);
    put_row(head_din(c, 0, row, h, z.dk), call_accumulates(c, 0), z.dk, g->dq);
    put_row(head_din(c, 1, row, h, z.dk), call_accumulates(c, 1), z.dk, g->dk);
    put_row(head_din(c, 2, row, h, z.dv), call_accumulates(c, 2), z.dv, g->dv);
    put_row(head_din(c, 3, row, h, J), call_accumulates(c, 3), J, g->dS);
    put_row(head_din(c, 4, row, h, J * J), call_accumulates(c, 4), J * J, g->dT);
    put_row(head_din(c, 5, row, h, J), call_accumulates(c, 5), J, g->dM);
    put_row(head_din(c, 6, row, h, 1), call_accumulates(c, 6), 1, &direct);
}

STATE_INLINE void backward_token(const struct call *c, int J, struct sizes z, struct token t, const real *C, real *E,
                                 struct gradient *g) {
    memset(g->dS, 0, sizeof g->dS);
    memset(g->dT, 0, sizeof g->dT);
    memset(g->dM, 0, sizeof g->dM);
    for (int64_t e = 0; e < z.dv; e++) {
        g->w[e] = z.scale * t.dy[e];
        g->dv[e] = 0;
    }
    for (int64_t i = 0; i < z.dk; i++) backward_row(J, z, t, i, C + i * J * z.dv, E + i * J * z.dv, g);
    put_gradients(c, J, z, t, g, dot_product(z.dk, t.q, t.k), dot_product(z.dv, t.v, g->w));
}

STATE_INLINE void forward_head(const struct call *c, int J, struct sizes z, int64_t b, int64_t h, real *scratch) {
    int64_t H = ((const struct scan_plstm_attr *)c->attr)->H;
    memset(scratch, 0, (size_t)z.n * sizeof *scratch);
    for (int64_t row = b * z.T; row < (b + 1) * z.T; row++)
        forward_token(J, z, token_at(c, row, h), scratch, tensor_real(c->out[0]) + (row * H + h) * z.dv);
}

/* scratch: copies at each multiple of stride, the states of one stretch, E, rows of gradients. */
STATE_INLINE void backward_head(const struct call *c, int J, struct sizes z, int64_t b, int64_t h, real *scratch) {
    real *copies = scratch, *stretch = copies + z.stride * z.n, *E = stretch + z.stride * z.n, *rows = E + z.n;
    struct gradient g = {.dq = rows, .dk = rows + z.dk, .dv = rows + 2 * z.dk, .w = rows + 2 * z.dk + z.dv};
    memset(copies, 0, (size_t)z.n * sizeof *copies);
    memset(E, 0, (size_t)z.n * sizeof *E);
    for (int64_t t = 0, last = 0; t + 1 < z.T; t++) {
        struct token token = token_at(c, b * z.T + t, h);
        real *from = t % z.stride ? stretch : copies + last * z.n;
        if ((t + 1) % z.stride == 0) last++;
        real *to = (t + 1) % z.stride ? stretch : copies + last * z.n;
        for (int64_t i = 0; i < z.dk; i++)
            update_row(J, z.dv, token, token.k[i], from + i * J * z.dv, to + i * J * z.dv);
    }
    for (int64_t first = (z.T - 1) / z.stride * z.stride; first >= 0; first -= z.stride) {
        int64_t end = first + z.stride < z.T ? first + z.stride : z.T;
        memcpy(stretch, copies + first / z.stride * z.n, (size_t)z.n * sizeof *stretch);
        for (int64_t t = first; t + 1 < end; t++) {
            struct token token = token_at(c, b * z.T + t, h);
            real *from = stretch + (t - first) * z.n;
            for (int64_t i = 0; i < z.dk; i++)
                update_row(J, z.dv, token, token.k[i], from + i * J * z.dv, from + z.n + i * J * z.dv);
        }
        for (int64_t t = end - 1; t >= first; t--)
            backward_token(c, J, z, token_at(c, b * z.T + t, h), stretch + (t - first) * z.n, E, &g);
    }
}

static size_t group_reals(const struct call *c, enum pass pass) {
    struct sizes z = sizes_of(c);
    int64_t reals = pass == PASS_FORWARD ? z.n : (2 * z.stride + 1) * z.n + 2 * z.dk + 2 * z.dv;
    return (size_t)(reals + 15) / 16 * 16;
}

static size_t scan_plstm_cpu_workspace(const struct call *c, enum pass pass) {
    struct dag_sizes z = dag_sizes_of(c, ((const struct scan_plstm_attr *)c->attr)->H);
    return dag_scratch_bytes(c, z.H, (int64_t)group_reals(c, pass));
}

static void run_head(const struct call *c, enum pass pass, const void *sizes, int64_t b, int64_t h, real *scratch) {
    const struct scan_plstm_attr *a = c->attr;
    struct sizes z = *(const struct sizes *)sizes;
    bool forward = pass == PASS_FORWARD;
    switch (a->J) {
    case 1:
        forward ? forward_head(c, 1, z, b, h, scratch) : backward_head(c, 1, z, b, h, scratch);
        break;
    case 2:
        forward ? forward_head(c, 2, z, b, h, scratch) : backward_head(c, 2, z, b, h, scratch);
        break;
    case 3:
        forward ? forward_head(c, 3, z, b, h, scratch) : backward_head(c, 3, z, b, h, scratch);
        break;
    case 4:
        forward ? forward_head(c, 4, z, b, h, scratch) : backward_head(c, 4, z, b, h, scratch);
        break;
    }
}

static void run(const struct call *c, enum pass pass) {
    struct dag_sizes z = dag_sizes_of(c, ((const struct scan_plstm_attr *)c->attr)->H);
    struct sizes sizes = sizes_of(c);
    int64_t work = z.B * z.H * z.T * z.dk * z.dv;
    dag_each_head(c, pass, z.H, (int64_t)group_reals(c, pass), work, c->scratch[pass], run_head, &sizes);
}

static void scan_plstm_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void scan_plstm_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_BACKWARD);
}

static bool scan_plstm_cpu_applicable(const struct call *c, const char **why) {
    *why = "track is larger than 4";
    return ((const struct scan_plstm_attr *)c->attr)->J <= TRACK_CPU;
}

/* Tolerance: each of T steps rounds the state anew, and gradients are sums of dk dv products that cancel: some hundreds of units at
 * the lengths of the tests. */
const struct kernel kernel_scan_plstm_cpu = {
    .name = "scan_plstm_cpu",
    .op = &op_scan_plstm,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 512,
    .applicable = scan_plstm_cpu_applicable,
    .workspace = scan_plstm_cpu_workspace,
    .forward = scan_plstm_cpu_forward,
    .backward = scan_plstm_cpu_backward,
};
