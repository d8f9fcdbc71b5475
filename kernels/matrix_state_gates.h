/* matrix_state_gates.h - the gates of a chunk of an outer-product state with J states a head (matrix_state_outer.h),
 * and their gradients.
 *
 * What token n reads of a unit written into state i at token t < n is Z_t[i][n] = (M_n^T T_{n-1} ... T_{t+1})[i], and
 * what comes out of the chunk in state a is A_t[i][a] = (T_last ... T_{t+1})[a][i]. From the last token back, Z_{t-1}
 * = T_t^T Z_t, where column t becomes M_t, and A_{t-1} = T_t^T A_t. Then
 *   Gate[n][m] = sum_i S_m[i] Z_m[i][n] for m < n, D_n for m = n, else 0      X[a][m] = sum_i S_m[i] A_m[i][a]
 * Gradients: with R[n][m] = (q_n . k_m)(w_n . v_m), let Y_t[j][n] be what token n would read of state j before token
 * t, times w_n, and B_t[j][a] = <E_a, C_j> there; both follow the recurrence:
 *   Y_{t+1}[i][n] = sum_j T_t[i][j] Y_t[j][n] + S_t[i] R[n][t]     B_{t+1}[i][a] = sum_j T_t[i][j] B_t[j][a] + S_t[i] k_t^T E_a v_t
 *   dM_t[j] = Y_t[j][t]     dD_t = R[t][t]     dT_t[i][j] = sum_n Z_t[i][n] Y_t[j][n] + sum_a A_t[i][a] B_t[j][a]
 *   dS_t[i] = sum_n Z_t[i][n] R[n][t] + sum_a A_t[i][a] k_t^T E_a v_t
 * from Y_0[j][n] = q_n^T C_j w_n and B_0[j][a] = <E_a, C_j>, C before the chunk. No division, no logarithm: T may be
 * negative or 0. */
#ifndef LRNN_KERNELS_MATRIX_STATE_GATES_H
#define LRNN_KERNELS_MATRIX_STATE_GATES_H

#include "kernels/dense.h"
#include "kernels/matrix_state_chunk.h"
#include "kernels/matrix_state_outer.h"

/* Where a chunk lies in a sequence. */
struct chunk {
    int64_t first, count; /* tokens */
    bool begins, ends;    /* the sequence: no states before, no gradient behind */
};

/* The gates of one chunk and head and their gradients; n, t: token of the chunk. Missing tokens write nothing, read
 * nothing and keep the states. */
struct gates {
    real *T, *S, *M, *D;   /* [J][J][t], [J][t], [J][n], [n] */
    real *Z, *A, *all, *X; /* [1 + t][J][n], [J][J][t], A_-1: [J][J], [J][t] */
    real *Y, *B, *writes;  /* [t][J][n], [J][J][t], k_t^T E_a v_t: [J][t] */
    real *dT, *dS, *dM;    /* as T, S, M */
};

/* Calls f(J, ...) with J = 1 as a constant, the usual case, or as it is. */
#define EACH_J(f, J, ...) ((J) == 1 ? f(1, __VA_ARGS__) : f(J, __VA_ARGS__))

STATE_INLINE void read_gate(const struct outer_rows *gate, const struct chunk *k, int64_t width, real *to) {
    for (int64_t i = 0; i < width; i++) {
        const real *at = gate->at + k->first * gate->step + i;
        for (int64_t n = 0; n < k->count; n++) to[i * STATE_CHUNK + n] = at[n * gate->step];
        for (int64_t n = k->count; n < STATE_CHUNK; n++) to[i * STATE_CHUNK + n] = 0;
    }
}

STATE_INLINE void read_gates(int64_t J, const struct outer_head *h, const struct chunk *k, const struct gates *g) {
    read_gate(&h->transition, k, J * J, g->T);
    for (int64_t i = 0; i < J; i++)
        for (int64_t n = k->count; n < STATE_CHUNK; n++) g->T[(i * J + i) * STATE_CHUNK + n] = 1;
    if (h->source.at)
        read_gate(&h->source, k, J, g->S);
    else
        for (int64_t n = 0; n < STATE_CHUNK; n++) g->S[n] = n < k->count;
    read_gate(h->mark.at ? &h->mark : &h->transition, k, J, g->M);
    if (h->direct.at)
        read_gate(&h->direct, k, 1, g->D);
    else
        memcpy(g->D, g->S, STATE_CHUNK * sizeof *g->D);
}

/* A, all and X. */
STATE_INLINE void exit_factors(int64_t J, const struct gates *g) {
    for (int64_t i = 0; i < J * J; i++) g->A[i * STATE_CHUNK + STATE_CHUNK - 1] = i / J == i % J;
    for (int64_t t = STATE_CHUNK - 1; t >= 0; t--) {
        const real *T = g->T + t, *A = g->A + t;
        real *to = t ? g->A + t - 1 : g->all;
        int64_t step = t ? STATE_CHUNK : 1;
        for (int64_t j = 0; j < J; j++)
            for (int64_t a = 0; a < J; a++) {
                real sum = T[j * STATE_CHUNK] * A[a * STATE_CHUNK];
                for (int64_t i = 1; i < J; i++)
                    sum = real_fma(T[(i * J + j) * STATE_CHUNK], A[(i * J + a) * STATE_CHUNK], sum);
                to[(j * J + a) * step] = sum;
            }
    }
    for (int64_t a = 0; a < J; a++) {
        real *X = g->X + a * STATE_CHUNK;
#pragma omp simd
        for (int t = 0; t < STATE_CHUNK; t++) {
            real sum = g->S[t] * g->A[a * STATE_CHUNK + t];
            for (int64_t i = 1; i < J; i++)
                sum = real_fma(g->S[i * STATE_CHUNK + t], g->A[(i * J + a) * STATE_CHUNK + t], sum);
            X[t] = sum;
        }
    }
}

/* Z. */
STATE_INLINE void reader_factors(int64_t J, const struct gates *g) {
    int64_t rows = J * STATE_CHUNK;
    memset(g->Z + STATE_CHUNK * rows, 0, (size_t)rows * sizeof *g->Z);
    for (int64_t t = STATE_CHUNK - 1; t >= 0; t--) {
        const real *T = g->T + t, *from = g->Z + (t + 1) * rows;
        for (int64_t j = 0; j < J; j++) {
            const real *M = g->M + j * STATE_CHUNK;
            real *to = g->Z + t * rows + j * STATE_CHUNK;
#pragma omp simd
            for (int n = 0; n < STATE_CHUNK; n++) {
                real sum = T[j * STATE_CHUNK] * from[n];
                for (int64_t i = 1; i < J; i++)
                    sum = real_fma(T[(i * J + j) * STATE_CHUNK], from[i * STATE_CHUNK + n], sum);
                to[n] = n == t ? M[n] : sum;
            }
        }
    }
}

/* gate[m][n] = factor Gate[n][m] */
STATE_INLINE void gate_matrix(int64_t J, const struct gates *g, real factor, real *gate) {
    for (int64_t m = 0; m < STATE_CHUNK; m++) {
        const real *Z = g->Z + (m + 1) * J * STATE_CHUNK, *S = g->S + m;
        real direct = factor * g->D[m], *row = gate + m * STATE_CHUNK;
#pragma omp simd
        for (int n = 0; n < STATE_CHUNK; n++) {
            real sum = S[0] * Z[n];
            for (int64_t i = 1; i < J; i++) sum = real_fma(S[i * STATE_CHUNK], Z[i * STATE_CHUNK + n], sum);
            row[n] = n == m ? direct : factor * sum;
        }
    }
}

/* Y and B, which begin with Y_0 and B_0. */
STATE_INLINE void follow_recurrence(int64_t J, const struct gates *g, const real *both) {
    int64_t rows = J * STATE_CHUNK;
    for (int64_t t = 0; t < STATE_CHUNK; t++) {
        const real *T = g->T + t, *S = g->S + t, *R = both + t * STATE_CHUNK, *Y = g->Y + t * rows;
        for (int64_t i = 0; i < J; i++) {
            real *to = g->Y + (t + 1) * rows + i * STATE_CHUNK, Si = S[i * STATE_CHUNK];
#pragma omp simd
            for (int n = 0; n < STATE_CHUNK; n++) {
                real sum = Si * R[n];
                for (int64_t j = 0; j < J; j++)
                    sum = real_fma(T[(i * J + j) * STATE_CHUNK], Y[j * STATE_CHUNK + n], sum);
                to[n] = sum;
            }
            for (int64_t a = 0; a < J && t + 1 < STATE_CHUNK; a++) {
                real sum = Si * g->writes[a * STATE_CHUNK + t];
                for (int64_t j = 0; j < J; j++)
                    sum = real_fma(T[(i * J + j) * STATE_CHUNK], g->B[(j * J + a) * STATE_CHUNK + t], sum);
                g->B[(i * J + a) * STATE_CHUNK + t + 1] = sum;
            }
        }
    }
}

/* dots_t += sum over a of A_t[i][a] b[a][t] */
STATE_INLINE void add_exits(int64_t J, const struct gates *g, int64_t i, const real *b, real *dots) {
    for (int64_t a = 0; a < J; a++) {
        const real *A = g->A + (i * J + a) * STATE_CHUNK, *row = b + a * STATE_CHUNK;
#pragma omp simd
        for (int t = 0; t < STATE_CHUNK; t++) dots[t] = real_fma(A[t], row[t], dots[t]);
    }
}

/* dT, dS and dM. dD is the diagonal of both. */
STATE_INLINE void gate_gradients(int64_t J, const struct gates *g, const real *both) {
    int64_t rows = J * STATE_CHUNK;
    follow_recurrence(J, g, both);
    for (int64_t i = 0; i < J; i++) {
        const real *Z = g->Z + rows + i * STATE_CHUNK, *Y = g->Y + i * STATE_CHUNK;
        real *dS = g->dS + i * STATE_CHUNK, *dM = g->dM + i * STATE_CHUNK;
        row_dots(STATE_CHUNK, Z, rows, both, STATE_CHUNK, dS);
        add_exits(J, g, i, g->writes, dS);
        for (int64_t t = 0; t < STATE_CHUNK; t++) dM[t] = Y[t * rows + t];
        for (int64_t j = 0; j < J; j++) {
            real *dT = g->dT + (i * J + j) * STATE_CHUNK;
            row_dots(STATE_CHUNK, Z, rows, g->Y + j * STATE_CHUNK, rows, dT);
            add_exits(J, g, i, g->B + j * rows, dT);
        }
    }
}

static void put_gate(const struct outer_rows *gate, const struct chunk *k, int64_t width, const real *from) {
    for (int64_t i = 0; gate->d && i < width; i++) {
        real *to = gate->d + k->first * gate->step + i;
        for (int64_t n = 0; n < k->count; n++) put(to + n * gate->step, gate->add, from[i * STATE_CHUNK + n]);
    }
}

static void write_gates(const struct outer_head *h, const struct chunk *k, int64_t J, const struct gates *g,
                        const real *both) {
    real dD[STATE_CHUNK];
    for (int64_t n = 0; n < STATE_CHUNK; n++) dD[n] = both[n * STATE_CHUNK + n];
    for (int64_t n = 0; !h->mark.at && n < STATE_CHUNK; n++) {
        g->dT[n] += g->dM[n];
        g->dS[n] += dD[n];
    }
    put_gate(&h->transition, k, J * J, g->dT);
    put_gate(&h->source, k, J, g->dS);
    put_gate(&h->mark, k, J, g->dM);
    put_gate(&h->direct, k, 1, dD);
}

#endif
