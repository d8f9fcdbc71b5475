/* chunk_gates.h - the gates of a chunk of an outer-product state with J states per head (outer_chunk.h), and their
 * gradients.
 *
 * The readers n of a chunk are its tokens and its exits; exit a is state a after the chunk. The tokens come first. A 1
 * that is written into state i at token t reaches reader n with the factor Z_t[i][n]. For a later token it is (M_n^T
 * T_{n-1} ... T_{t+1})[i], for an exit (T_last ... T_{t+1})[a][i]. Z is computed from the last token to the first:
 * Z_{t-1} = T_t^T Z_t, and then column t becomes M_t. Z_-1 has the factors of the states before the chunk. Then
 *   Gate[m][n] = sum_i S_m[i] Z_m[i][n], but D_m for n = m
 * Gradients: For a token, R[m][n] = (q_n . k_m)(w_n . v_m), and Y_t[j][n] is what reader n would read of state j before
 * token t, times w_n. For an exit, R is k_m^T E_a v_m, and Y is the sum of E_a o C_j. Y follows the recurrence
 *   Y_{t+1}[i][n] = sum_j T_t[i][j] Y_t[j][n] + S_t[i] R[t][n]      Y_0: from the states before the chunk
 *   dM_t[j] = Y_t[j][t]      dD_t = R[t][t]
 *   dT_t[i][j] = sum_n Z_t[i][n] Y_t[j][n]      dS_t[i] = sum_n Z_t[i][n] R[t][n]
 * There is no division and no logarithm, so T may be negative or 0. */
#ifndef LRNN_KERNELS_MATRIX_CHUNK_GATES_H
#define LRNN_KERNELS_MATRIX_CHUNK_GATES_H

#include "kernels/lib/infer.h"
#include "kernels/matrix/chunk.h"
#include "kernels/matrix/outer_head.h"

/* Where a chunk lies in its sequence. */
struct chunk {
    int64_t first, count; /* first token, and number of tokens */
    /* begins: it is the first chunk, with no states before it; ends: it is the last, with no gradient after it */
    bool begins, ends;
};

enum { READERS = 2 * STATE_CHUNK }; /* at most: tokens, then as many exits */

/* The gates of one chunk and head, and their gradients. Missing tokens write and read nothing and keep the states. */
struct chunk_gates {
    real *T, *S, *M, *D; /* [J][J][t], [J][t], [J][t], [t] */
    real *Z, *gate;      /* [1 + t][J][n], [m][n] */
    real *writes;        /* [a][m]: the gates of the exits */
    real *after;         /* for J = 1, [t]: Z_t of the exit */
    real *Y, *R;         /* [t][J][n], [m][n] */
    real *taken;         /* [a][m]: R of the exits */
    real *dT, *dS, *dM;  /* same shapes as T, S, M */
};

FORCE_INLINE void read_gate(const struct outer_rows *gate, const struct chunk *k, int64_t width, real *to) {
    for (int64_t i = 0; i < width; i++) {
        const real *at = gate->at + k->first * gate->step + i;
        if (k->count == STATE_CHUNK)
#pragma GCC unroll 16
            for (int64_t n = 0; n < STATE_CHUNK; n++) to[i * STATE_CHUNK + n] = at[n * gate->step];
        else
            for (int64_t n = 0; n < k->count; n++) to[i * STATE_CHUNK + n] = at[n * gate->step];
        for (int64_t n = k->count; n < STATE_CHUNK; n++) to[i * STATE_CHUNK + n] = 0;
    }
}

FORCE_INLINE void read_gates(int64_t J, const struct outer_head *h, const struct chunk *k,
                             const struct chunk_gates *g) {
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

/* Computes row += sum over i of factors[i * step] rows[i], from reader `first` on. There are J rows of READERS. */
FORCE_INLINE void add_rows(int64_t J, const real *factors, int64_t step, const real *rows, int64_t first, real *row) {
    for (int64_t n = first; n < READERS; n += LANES) {
        lanes sum = lanes_at(row + n);
        for (int64_t i = 0; i < J; i++) sum = lanes_axpy(factors[i * step], lanes_at(rows + i * READERS + n), sum);
        lanes_to(row + n, sum);
    }
}

/* For which readers factors are computed: only exits, or tokens and exits. */
enum readers { EXITS_ALONE, TOKENS_TOO };

/* Computes the factors if J = 1. The row of the tokens stays in registers, and the exit is a single number. */
FORCE_INLINE void single_reader_factors(const struct chunk_gates *g, enum readers which) {
    real after = 1;
#pragma GCC unroll 16
    for (int t = STATE_CHUNK - 1; t >= 0; t--) {
        g->after[t] = after;
        g->writes[t] = g->S[t] * after;
        after *= g->T[t];
    }
    g->Z[STATE_CHUNK] = after;
    for (int n = 0; which == TOKENS_TOO && n < STATE_CHUNK; n += LANES) {
        lanes Z = {0}, M = lanes_at(g->M + n), D = lanes_at(g->D + n);
#pragma GCC unroll 16
        for (int t = STATE_CHUNK - 1; t >= 0; t--) {
            lanes_to(g->Z + (t + 1) * READERS + n, Z);
            lanes_to(g->gate + t * READERS + n, lanes_axpy(g->S[t], Z, lane_alone(D, t - n)));
            Z = lanes_axpy(g->T[t], Z, lane_alone(M, t - n));
        }
        lanes_to(g->Z + n, Z);
    }
}

/* Computes Z, gate and writes. Column t of Z_t is 0 until M_t is put there, and column t of gate is 0 until D_t is. */
FORCE_INLINE void reader_factors(int64_t J, const struct chunk_gates *g, enum readers which) {
    int64_t rows = J * READERS, first = which == TOKENS_TOO ? 0 : STATE_CHUNK;
    if (J == 1) {
        single_reader_factors(g, which);
        return;
    }
    clear_row((STATE_CHUNK + 1) * rows, g->Z);
    clear_row(STATE_CHUNK * READERS, g->gate);
    for (int64_t i = 0; i < J; i++) g->Z[STATE_CHUNK * rows + i * READERS + STATE_CHUNK + i] = 1;
    for (int64_t t = STATE_CHUNK - 1; which == TOKENS_TOO && t >= 0; t--) {
        for (int64_t j = 0; j < J; j++) g->Z[t * rows + j * READERS + t] = g->M[j * STATE_CHUNK + t];
        g->gate[t * READERS + t] = g->D[t];
    }
    for (int64_t t = STATE_CHUNK - 1; t >= 0; t--) {
        const real *Z = g->Z + (t + 1) * rows;
        add_rows(J, g->S + t, STATE_CHUNK, Z, first, g->gate + t * READERS);
        for (int64_t j = 0; j < J; j++)
            add_rows(J, g->T + j * STATE_CHUNK + t, J * STATE_CHUNK, Z, first, g->Z + t * rows + j * READERS);
        for (int64_t a = 0; a < J; a++) g->writes[a * STATE_CHUNK + t] = g->gate[t * READERS + STATE_CHUNK + a];
    }
}

/* Computes dT, dS and dM if J = 1. The rows of Y have only the tokens. The exit has one number per token, `left`. */
FORCE_INLINE void single_gate_gradients(const struct chunk_gates *g) {
    real left[STATE_CHUNK], through = g->Y[STATE_CHUNK];
#pragma GCC unroll 16
    for (int t = 0; t < STATE_CHUNK; t++) {
        left[t] = through;
        through = real_fma(g->T[t], through, g->S[t] * g->taken[t]);
    }
    for (int n = 0; n < STATE_CHUNK; n += LANES) {
        lanes Y = lanes_at(g->Y + n), dM = {0};
#pragma GCC unroll 16
        for (int t = 0; t < STATE_CHUNK; t++) {
            lanes_to(g->Y + t * READERS + n, Y);
            dM += lane_alone(Y, t - n);
            Y = lanes_axpy(g->T[t], Y, g->S[t] * lanes_at(g->R + t * READERS + n));
        }
        lanes_to(g->dM + n, dM);
    }
    row_dots(STATE_CHUNK, g->Z + READERS, READERS, g->R, READERS, g->dS);
    row_dots(STATE_CHUNK, g->Z + READERS, READERS, g->Y, READERS, g->dT);
    for (int n = 0; n < STATE_CHUNK; n += LANES) {
        lanes after = lanes_at(g->after + n);
        lanes_to(g->dS + n, lanes_at(g->dS + n) + after * lanes_at(g->taken + n));
        lanes_to(g->dT + n, lanes_at(g->dT + n) + after * lanes_at(left + n));
    }
}

/* Computes dT, dS and dM from Y_0, R of the tokens and `taken`. */
FORCE_INLINE void gate_gradients(int64_t J, const struct chunk_gates *g) {
    int64_t rows = J * READERS;
    if (J == 1) {
        single_gate_gradients(g);
        return;
    }
    for (int64_t t = 0; t < STATE_CHUNK; t++) {
        real *R = g->R + t * READERS;
        clear_row(STATE_CHUNK, R + STATE_CHUNK);
        for (int64_t a = 0; a < J; a++) R[STATE_CHUNK + a] = g->taken[a * STATE_CHUNK + t];
        for (int64_t i = 0; i < J; i++) {
            real *next = g->Y + (t + 1) * rows + i * READERS;
            scale_row(READERS, g->S[i * STATE_CHUNK + t], R, next);
            add_rows(J, g->T + i * J * STATE_CHUNK + t, STATE_CHUNK, g->Y + t * rows, 0, next);
        }
    }
    for (int64_t i = 0; i < J; i++) {
        const real *Z = g->Z + rows + i * READERS, *Y = g->Y + i * READERS;
        row_dots(READERS, Z, rows, g->R, READERS, g->dS + i * STATE_CHUNK);
        for (int64_t t = 0; t < STATE_CHUNK; t++) g->dM[i * STATE_CHUNK + t] = Y[t * rows + t];
        for (int64_t j = 0; j < J; j++)
            row_dots(READERS, Z, rows, g->Y + j * READERS, rows, g->dT + (i * J + j) * STATE_CHUNK);
    }
}

FORCE_INLINE void put_gate(const struct outer_rows *gate, const struct chunk *k, int64_t width, const real *from) {
    for (int64_t i = 0; gate->d && i < width; i++) {
        real *to = gate->d + k->first * gate->step + i;
        if (k->count == STATE_CHUNK && !gate->add)
#pragma GCC unroll 16
            for (int64_t n = 0; n < STATE_CHUNK; n++) to[n * gate->step] = from[i * STATE_CHUNK + n];
        else
            for (int64_t n = 0; n < k->count; n++) put(to + n * gate->step, gate->add, from[i * STATE_CHUNK + n]);
    }
}

FORCE_INLINE void write_gates(const struct outer_head *h, const struct chunk *k, int64_t J,
                              const struct chunk_gates *g) {
    real dD[STATE_CHUNK];
    for (int64_t n = 0; n < STATE_CHUNK; n++) dD[n] = g->R[n * READERS + n];
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
