/* scan_outer_long_cpu.c - outer-product state (scan_outer.c) on the CPU, for long sequences. Its chunks have 64 tokens
 * (LONG), four times as many as those of scan_outer_chunk, so reading, transposing and updating a state costs less per
 * token. Scores, and sums over them, are products of matrices. Heads with the same q and k are computed together: they
 * share the scores, and their gradients of q and k are one product with the sum over the heads.
 *
 * Notation, for writers m and readers n in a chunk: Z[m][n] = T_{m+1} ... T_{n-1} M_n for n > m. Gate = S_m Z[m][n],
 * but D_m for n = m. reads_n = T_first ... T_{n-1} M_n is the factor with which n reads the state before the chunk.
 * writes_m = S_m T_{m+1} ... T_last is the factor with which m writes into the state after the chunk. With P = Gate o
 * (k_m . q_n), U = Gate o (v_m . w_n), w = scale dO:
 *   O = scale (P^T V + diag(reads) Q C)
 *   dQ = U^T K + diag(reads) W C^T    dK = U Q + diag(writes) V E^T    dV = P W + diag(writes) K E
 *   E <- T_first ... T_last E + (diag(reads) Q)^T W
 * The parts of dQ and dK that come from the states are computed transposed, as C w_n and E v_m, so that a state is read
 * only once, row by row. */
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/scratch.h"
#include "kernels/matrix/chunk.h"

#define LONG         64     /* tokens of a chunk; a multiple of STATE_CHUNK */
#define STATES_BYTES 131072 /* bytes of the states of all heads that are computed together */

/* Gates of one head in one chunk, and their products. Missing tokens keep the state and change nothing else. */
struct stretch_gates {
    real T[LONG], S[LONG], M[LONG], D[LONG];
    real reads[LONG], writes[LONG], after[LONG]; /* after: T_{t+1} ... T_last */
    real through;                                /* T_first ... T_last */
    real row[LONG];                              /* Z of the current token */
    real Y[LONG], taken[LONG];                   /* only for backward: w_n . C^T q_n, k_m . E v_m */
    real dT[LONG], dS[LONG], dM[LONG], dD[LONG];
};

/* A chunk. first, token: its first token in the sequence, in the batch; count: tokens; rows: of its matrices. */
struct stretch {
    int64_t first, token, count, rows;
    bool begins, ends;
};

/* Matrices of a chunk. Rows are tokens. Xt is X transposed. Xt and all [writer][reader] matrices are LONG wide. */
struct work {
    const struct call *c;
    struct state_shape s;
    int64_t share, KW, VW; /* share: number of heads of a group; KW, VW: dk and dv padded */
    real scale;
    struct stretch_gates *g;
    real *Q, *K, *Qt, *scores;                     /* one for all heads of a group */
    real *V, *O, *Z, *P;                           /* one for the current head */
    real *Kt, *dQt, *dKt, *dQ, *dK, *U;            /* only for backward, one for all heads of a group */
    real *W, *Vt, *Wt, *dV, *values, *C, *product; /* only for backward, one for the current head */
    struct scratch_rows states;                    /* for each head of a group: C in forward, E in backward */
};

static int64_t whole(int64_t n) {
    const int64_t least = LANES > 8 ? LANES : 8;
    return (n + least - 1) / least * least;
}

/* Returns how many groups of a sequence are computed together. Their states stay in L2; neighbours are adjacent. */
static int64_t groups_side_by_side(const struct work *w) {
    int64_t n = STATES_BYTES / (w->share * w->KW * w->VW * (int64_t)sizeof(real));
    return n < 1 ? 1 : n < w->s.groups ? n : w->s.groups;
}

static struct work work_of(const struct call *c, enum pass pass, struct scratch *scratch) {
    struct work w = {.c = c, .s = outer_shape(c), .scale = (real)outer_attr(c)->scale};
    w.share = w.s.heads / w.s.groups;
    w.KW = whole(w.s.dk), w.VW = whole(w.s.dv);
    w.g = scratch_bytes(scratch, sizeof *w.g);
    const struct scratch_array both[] = {{&w.Q, LONG * w.KW},      {&w.K, LONG * w.KW}, {&w.Qt, LONG * w.KW},
                                         {&w.scores, LONG * LONG}, {&w.V, LONG * w.VW}, {&w.O, LONG * w.VW},
                                         {&w.Z, LONG * LONG},      {&w.P, LONG * LONG}};
    const struct scratch_array backward[] = {{&w.Kt, LONG * w.KW},     {&w.dQt, LONG * w.KW},    {&w.dKt, LONG * w.KW},
                                             {&w.dQ, LONG * w.KW},     {&w.dK, LONG * w.KW},     {&w.U, LONG * LONG},
                                             {&w.W, LONG * w.VW},      {&w.Vt, LONG * w.VW},     {&w.Wt, LONG * w.VW},
                                             {&w.dV, LONG * w.VW},     {&w.values, LONG * LONG}, {&w.C, w.KW * w.VW},
                                             {&w.product, LONG * w.KW}};
    scratch_take(scratch, both, sizeof both / sizeof *both);
    if (pass == PASS_BACKWARD) scratch_take(scratch, backward, sizeof backward / sizeof *backward);
    w.states = scratch_rows(scratch, groups_side_by_side(&w) * w.share, w.KW * w.VW);
    return w;
}

static struct stretch stretch_at(const struct state_shape *s, int64_t b, int64_t i) {
    int64_t first = i * LONG, left = s->T - first, count = left < LONG ? left : LONG;
    return (struct stretch){first,      b * s->T + first, count, (count + STATE_CHUNK - 1) / STATE_CHUNK * STATE_CHUNK,
                            first == 0, left <= LONG};
}

/* --- products of triangles, in blocks of STATE_CHUNK -------------------------------------------------------------- */

/* Only elements A[m][n] with m <= n are used. In blocks on the diagonal the other elements are 0, except in scores. */

/* Computes A[m][n] = a_m . b_n. */
static void scores_of(int64_t rows, int64_t n, const real *a, int64_t lda, const real *bt, real *A) {
    for (int64_t m = 0; m < rows; m += STATE_CHUNK)
        chunk_product((struct extent){STATE_CHUNK, rows - m, n}, (struct factor){a + m * lda, lda, 1},
                      (struct right){bt + m, LONG}, 0, A + m * LONG + m, LONG);
}

/* Computes out_n = keep out_n + sum over m of A[m][n] b_m. */
static void gather(int64_t rows, int64_t width, const real *A, const real *b, real keep, real *out) {
    for (int64_t n = 0; n < rows; n += STATE_CHUNK)
        chunk_product((struct extent){STATE_CHUNK, width, n + STATE_CHUNK}, (struct factor){A + n, 1, LONG},
                      (struct right){b, width}, keep, out + n * width, width);
}

/* Computes out_m = keep out_m + sum over n of A[m][n] b_n. */
static void gather_back(int64_t rows, int64_t width, const real *A, const real *b, real keep, real *out) {
    for (int64_t m = 0; m < rows; m += STATE_CHUNK)
        chunk_product((struct extent){STATE_CHUNK, width, rows - m}, (struct factor){A + m * LONG + m, LONG, 1},
                      (struct right){b + m * width, width}, keep, out + m * width, width);
}

/* --- gates -------------------------------------------------------------------------------------------------------- */

static void read_gate(const struct call *c, int i, const struct stretch *k, int64_t h, real missing, real *to) {
    int64_t step = token_width(c->in[i]);
    const real *from = value_row(c, i, k->token, h, 1);
    for (int64_t t = 0; t < k->count; t++) to[t] = from[t * step];
    for (int64_t t = k->count; t < k->rows; t++) to[t] = missing;
}

static void read_gates(const struct work *w, const struct stretch *k, int64_t h) {
    struct stretch_gates *g = w->g;
    read_gate(w->c, OUTER_DECAY, k, h, 1, g->T);
    for (int64_t t = 0; t < k->rows; t++) g->S[t] = t < k->count;
    if (w->c->in[OUTER_SOURCE]) read_gate(w->c, OUTER_SOURCE, k, h, 0, g->S);
    memcpy(g->M, g->T, sizeof g->M);
    memcpy(g->D, g->S, sizeof g->D);
    if (!w->c->in[OUTER_MARK]) return;
    read_gate(w->c, OUTER_MARK, k, h, 0, g->M);
    read_gate(w->c, OUTER_DIRECT, k, h, 0, g->D);
}

/* Returns the first reader that the row of writer t has to include. It is at a block's start. */
FORCE_INLINE int64_t block_of(int64_t t) {
    return t / STATE_CHUNK * STATE_CHUNK;
}

/* Computes Z, reads, writes and through, from the last token to the first. */
static void gate_products(const struct work *w, const struct stretch *k) {
    struct stretch_gates *g = w->g;
    real after = 1, before = 1;
    memset(g->row, 0, sizeof g->row);
    for (int64_t t = k->rows - 1; t >= 0; t--) {
        real *Z = w->Z + t * LONG;
        for (int64_t n = block_of(t); n < k->rows; n += LANES) {
            lanes z = lanes_at(g->row + n);
            lanes_to(Z + n, z);
            lanes_to(g->row + n, g->T[t] * z);
        }
        g->row[t] = g->M[t];
        g->after[t] = after;
        g->writes[t] = g->S[t] * after;
        after *= g->T[t];
    }
    g->through = after;
    for (int64_t t = 0; t < k->rows; t++) {
        g->reads[t] = before * g->M[t];
        before *= g->T[t];
    }
}

/* Computes to = factor Gate o scores, or with `add` to += factor Gate o scores. */
FORCE_INLINE void weigh(const struct work *w, const struct stretch *k, real factor, const real *scores, bool add,
                        real *to) {
    const struct stretch_gates *g = w->g;
    for (int64_t t = 0; t < k->rows; t++) {
        int64_t at = t * LONG;
        real diagonal = real_fma(factor * g->D[t], scores[at + t], add ? to[at + t] : 0);
        for (int64_t n = block_of(t); n < k->rows; n += LANES) {
            lanes x = lanes_at(scores + at + n) * lanes_at(w->Z + at + n);
            lanes_to(to + at + n, lanes_axpy(factor * g->S[t], x, add ? lanes_at(to + at + n) : (lanes){0}));
        }
        to[at + t] = diagonal;
    }
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static void read_rows(const struct stretch *k, const real *from, int64_t step, int64_t n, int64_t width, real scale,
                      real *to) {
    for (int64_t t = 0; t < k->count; t++) padded_row(n, width, scale, from + t * step, to + t * width);
    memset(to + k->count * width, 0, (size_t)((k->rows - k->count) * width) * sizeof *to);
}

static void read_input(const struct work *w, int i, const struct stretch *k, int64_t index, int64_t n, int64_t width,
                       real *to) {
    read_rows(k, value_row(w->c, i, k->token, index, n), token_width(w->c->in[i]), n, width, 1, to);
}

static void scale_rows(int64_t rows, int64_t width, real scale, const real *factors, real *x) {
    for (int64_t t = 0; t < rows; t++) scale_row(width, scale * factors[t], x + t * width, x + t * width);
}

/* Stores the state before every STATE_CHUNK-th token in output 1, and turns C into the state after the chunk.
 * Overwrites V with the values that the tokens write. */
static void next_state(const struct work *w, const struct stretch *k, int64_t b, int64_t h, real *C) {
    const struct stretch_gates *g = w->g;
    if (k->begins) memset(C, 0, (size_t)(w->KW * w->VW) * sizeof *C);
    for (int64_t t = 0; t < k->rows; t += STATE_CHUNK) {
        keep_state(&w->s, C, w->VW, kept_state(w->c, &w->s, b, (k->first + t) / STATE_CHUNK, h));
        if (k->ends && t + STATE_CHUNK >= k->rows) return;
        real after = 1;
        for (int64_t m = t + STATE_CHUNK - 1; m >= t; m--) {
            scale_row(w->VW, g->S[m] * after, w->V + m * w->VW, w->V + m * w->VW);
            after *= g->T[m];
        }
        chunk_product((struct extent){w->KW, w->VW, STATE_CHUNK}, (struct factor){w->K + t * w->KW, 1, w->KW},
                      (struct right){w->V + t * w->VW, w->VW}, k->begins && t == 0 ? 0 : after, C, w->VW);
    }
}

static void forward_head(const struct work *w, const struct stretch *k, int64_t b, int64_t h, real *C) {
    int64_t dv = w->s.dv, VW = w->VW;
    read_gates(w, k, h);
    gate_products(w, k);
    read_input(w, OUTER_V, k, h, dv, VW, w->V);
    if (!k->begins) {
        chunk_product((struct extent){k->rows, VW, w->s.dk}, (struct factor){w->Q, w->KW, 1}, (struct right){C, VW}, 0,
                      w->O, VW);
        scale_rows(k->rows, VW, w->scale, w->g->reads, w->O);
    }
    weigh(w, k, w->scale, w->scores, false, w->P);
    gather(k->rows, VW, w->P, w->V, k->begins ? 0 : 1, w->O);
    real *o = tensor_real(w->c->out[0]) + (k->token * w->s.heads + h) * dv;
    for (int64_t t = 0; t < k->count; t++) copy_row(dv, w->O + t * VW, o + t * w->s.heads * dv);
    next_state(w, k, b, h, C);
}

/* Reads q and k of a group, and computes their scores. */
static void read_group(const struct work *w, const struct stretch *k, int64_t group) {
    read_input(w, OUTER_Q, k, group, w->s.dk, w->KW, w->Q);
    read_input(w, OUTER_K, k, group, w->s.dk, w->KW, w->K);
    transpose(k->rows, w->KW, w->Q, w->KW, w->Qt, LONG);
    scores_of(k->rows, w->s.dk, w->K, w->KW, w->Qt, w->scores);
}

/* Computes one chunk of a group. `states` are the states of its heads. */
static void forward_group(const struct work *w, const struct stretch *k, int64_t b, int64_t group, real *states) {
    read_group(w, k, group);
    for (int64_t h = 0; h < w->share; h++) forward_head(w, k, b, group * w->share + h, states + h * w->states.stride);
}

/* --- backward ----------------------------------------------------------------------------------------------------- */

/* Returns the stored state before the chunk, with padded rows. */
static const real *state_before(const struct work *w, const struct stretch *k, int64_t b, int64_t h) {
    const real *kept = kept_state(w->c, &w->s, b, k->first / STATE_CHUNK, h);
    if (w->s.dk == w->KW && w->s.dv == w->VW) return kept;
    memset(w->C, 0, (size_t)(w->KW * w->VW) * sizeof *w->C);
    unpack_rows(w->s.dk, w->s.dv, kept, w->VW, w->C);
    return w->C;
}

/* Computes X_t = state x_t for the columns x_t, then dots_t = y_t . X_t and sum_t += factors_t X_t. */
static void from_state(const struct work *w, const struct stretch *k, const real *state, const real *xt, const real *yt,
                       const real *factors, real *dots, real *sum) {
    chunk_product((struct extent){w->KW, k->rows, w->s.dv}, (struct factor){state, w->VW, 1}, (struct right){xt, LONG},
                  0, w->product, LONG);
    for (int64_t i = 0; i < w->KW * LONG; i += LONG)
        for (int64_t t = 0; t < k->rows; t += LANES) {
            lanes x = lanes_at(w->product + i + t);
            lanes_to(dots + t, lanes_fma(lanes_at(yt + i + t), x, lanes_at(dots + t)));
            lanes_to(sum + i + t, lanes_fma(lanes_at(factors + t), x, lanes_at(sum + i + t)));
        }
}

/* Computes dT, dS, dM and dD; `corner` is the sum of E o C. Y is what readers would read of a token's old state. */
static void gate_gradients(const struct work *w, const struct stretch *k, real corner) {
    struct stretch_gates *g = w->g;
    for (int64_t t = 0; t < k->rows; t++) {
        int64_t at = t * LONG;
        lanes dT = {0}, dS = {0};
        g->dM[t] = g->Y[t];
        g->dD[t] = w->scores[at + t] * w->values[at + t];
        for (int64_t n = block_of(t); n < k->rows; n += LANES) {
            lanes Y = lanes_at(g->Y + n), Z = lanes_at(w->Z + at + n);
            lanes R = lanes_at(w->scores + at + n) * lanes_at(w->values + at + n);
            dT = lanes_fma(Z, Y, dT);
            dS = lanes_fma(Z, R, dS);
            lanes_to(g->Y + n, lanes_axpy(g->T[t], Y, g->S[t] * R));
        }
        g->dT[t] = sum_of(dT) + g->after[t] * corner;
        g->dS[t] = sum_of(dS) + g->after[t] * g->taken[t];
        corner = real_fma(g->T[t], corner, g->S[t] * g->taken[t]);
    }
}

static void write_gate(const struct work *w, int i, const struct stretch *k, int64_t h, const real *from) {
    if (!w->c->in[i] || !w->c->din[i]) return;
    real *to = gradient_row(w->c, i, k->token, h, 1);
    for (int64_t t = 0; t < k->count; t++) put(to + t * w->s.heads, call_accumulates(w->c, i), from[t]);
}

static void write_gates(const struct work *w, const struct stretch *k, int64_t h) {
    struct stretch_gates *g = w->g;
    for (int64_t t = 0; !w->c->in[OUTER_MARK] && t < k->count; t++) {
        g->dT[t] += g->dM[t];
        g->dS[t] += g->dD[t];
    }
    write_gate(w, OUTER_DECAY, k, h, g->dT);
    write_gate(w, OUTER_SOURCE, k, h, g->dS);
    write_gate(w, OUTER_MARK, k, h, g->dM);
    write_gate(w, OUTER_DIRECT, k, h, g->dD);
}

static void write_rows(const struct work *w, int i, const struct stretch *k, int64_t index, int64_t n, const real *from,
                       int64_t width) {
    real *to = gradient_row(w->c, i, k->token, index, n);
    int64_t step = token_width(w->c->in[i]);
    bool add = call_accumulates(w->c, i);
    for (int64_t t = 0; to && t < k->count; t++, to += step, from += width) {
        if (!add) copy_row(n, from, to);
        for (int64_t j = 0; add && j < n; j++) to[j] += from[j];
    }
}

/* Computes the gradients of one chunk of one head. E becomes the gradient of the state before the chunk. */
static void backward_head(const struct work *w, const struct stretch *k, int64_t b, int64_t h, real *E) {
    int64_t dk = w->s.dk, dv = w->s.dv, KW = w->KW, VW = w->VW, rows = k->rows;
    const real *d_o = call_dout(w->c, 0) + (k->token * w->s.heads + h) * dv, *C = state_before(w, k, b, h);
    struct stretch_gates *g = w->g;
    read_gates(w, k, h);
    gate_products(w, k);
    read_input(w, OUTER_V, k, h, dv, VW, w->V);
    read_rows(k, d_o, w->s.heads * dv, dv, VW, w->scale, w->W);
    transpose(rows, VW, w->V, VW, w->Vt, LONG);
    transpose(rows, VW, w->W, VW, w->Wt, LONG);
    scores_of(rows, dv, w->V, VW, w->Wt, w->values);
    weigh(w, k, 1, w->scores, false, w->P);
    weigh(w, k, 1, w->values, h % w->share > 0, w->U);
    memset(g->Y, 0, sizeof g->Y);
    memset(g->taken, 0, sizeof g->taken);
    if (!k->ends) {
        chunk_product((struct extent){rows, VW, dk}, (struct factor){w->K, KW, 1}, (struct right){E, VW}, 0, w->dV, VW);
        scale_rows(rows, VW, 1, g->writes, w->dV);
        from_state(w, k, E, w->Vt, w->Kt, g->writes, g->taken, w->dKt);
    }
    gather_back(rows, VW, w->P, w->W, k->ends ? 0 : 1, w->dV);
    write_rows(w, OUTER_V, k, h, dv, w->dV, VW);
    if (!k->begins) from_state(w, k, C, w->Wt, w->Qt, g->reads, g->Y, w->dQt);
    gate_gradients(w, k, k->begins || k->ends ? 0 : state_dot(KW * VW, E, C));
    write_gates(w, k, h);
    if (k->begins) return;
    scale_rows(rows, VW, 1, g->reads, w->W);
    chunk_product((struct extent){KW, VW, rows}, (struct factor){w->Q, 1, KW}, (struct right){w->W, VW},
                  k->ends ? 0 : g->through, E, VW);
}

static void backward_group(const struct work *w, const struct stretch *k, int64_t b, int64_t group, real *states) {
    int64_t dk = w->s.dk, KW = w->KW;
    read_group(w, k, group);
    transpose(k->rows, KW, w->K, KW, w->Kt, LONG);
    memset(w->dQt, 0, (size_t)(KW * LONG) * sizeof *w->dQt);
    memset(w->dKt, 0, (size_t)(KW * LONG) * sizeof *w->dKt);
    for (int64_t h = 0; h < w->share; h++) backward_head(w, k, b, group * w->share + h, states + h * w->states.stride);
    transpose(KW, k->rows, w->dQt, LONG, w->dQ, KW);
    transpose(KW, k->rows, w->dKt, LONG, w->dK, KW);
    gather(k->rows, KW, w->U, w->K, 1, w->dQ);
    gather_back(k->rows, KW, w->U, w->Q, 1, w->dK);
    write_rows(w, OUTER_Q, k, group, dk, w->dQ, KW);
    write_rows(w, OUTER_K, k, group, dk, w->dK, KW);
}

/* --- both --------------------------------------------------------------------------------------------------------- */

static size_t scan_outer_long_workspace(const struct call *c, enum pass pass) {
    struct state_shape s = outer_shape(c);
    struct scratch scratch = scratch_measure(c);
    for (int64_t p = 0; p < state_parts(s.B * s.groups); p++) work_of(c, pass, &scratch);
    return scratch.used;
}

/* Prefetches the inputs of a chunk of a group and its heads, which the processor does not follow by itself. */
static void prefetch_group(const struct work *w, const struct stretch *k, enum pass pass, int64_t group) {
    const struct call *c = w->c;
    int64_t dk = w->s.dk, dv = w->share * w->s.dv, h = group * w->share, step = w->s.heads * w->s.dv;
    prefetch_rows(k->count, dk, value_row(c, OUTER_Q, k->token, group, dk), w->s.groups * dk);
    prefetch_rows(k->count, dk, value_row(c, OUTER_K, k->token, group, dk), w->s.groups * dk);
    prefetch_rows(k->count, dv, value_row(c, OUTER_V, k->token, h, w->s.dv), step);
    if (pass == PASS_BACKWARD) prefetch_rows(k->count, dv, call_dout(c, 0) + k->token * step + h * w->s.dv, step);
}

/* Computes groups `first` to `first + n - 1` of sequence b together, chunk by chunk. */
static void walk(const struct work *w, enum pass pass, int64_t b, int64_t first, int64_t n) {
    int64_t chunks = (w->s.T + LONG - 1) / LONG, each = w->share * w->states.stride;
    for (int64_t i = 0; i < chunks * n; i++) {
        int64_t step = i / n, group = i % n;
        real *states = w->states.at + group * each;
        if (step + 1 < chunks) {
            struct stretch next = stretch_at(&w->s, b, pass == PASS_FORWARD ? step + 1 : chunks - 2 - step);
            prefetch_group(w, &next, pass, first + group);
        }
        struct stretch k = stretch_at(&w->s, b, pass == PASS_FORWARD ? step : chunks - 1 - step);
        if (pass == PASS_FORWARD)
            forward_group(w, &k, b, first + group, states);
        else
            backward_group(w, &k, b, first + group, states);
    }
}

static void run(const struct call *c, enum pass pass) {
    struct state_shape s = outer_shape(c);
    int64_t groups = s.B * s.groups, parts = state_parts(groups);
    struct scratch all = scratch_of(c, pass);
#pragma omp parallel for schedule(static) if (s.B * s.T * s.heads * s.dk * s.dv > PARALLEL_MIN)
    for (int64_t p = 0; p < parts; p++) {
        struct range part = part_at(groups, parts, p);
        struct scratch own = scratch_part(&all, p, parts);
        struct work w = work_of(c, pass, &own);
        int64_t n, most = groups_side_by_side(&w);
        for (int64_t i = part.begin; i < part.end; i += n) {
            n = s.groups - i % s.groups;
            n = n < most ? n : most;
            n = n < part.end - i ? n : part.end - i;
            walk(&w, pass, i / s.groups, i % s.groups, n);
        }
        past_caches_done();
    }
}

static void scan_outer_long_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void scan_outer_long_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_BACKWARD);
}

/* Measured for forward + backward (`lrnn perf crossover`). For states of 16 x 16 and 32 x 32, and for four heads that
 * do not share q and k, scan_outer_chunk is as fast or faster, because it keeps the states in L1. */
static bool scan_outer_long_preferred(const struct call *c) {
    struct state_shape s = outer_shape(c);
    return s.T >= STATE_CHUNK && s.heads / s.groups * s.dk * s.dv >= 2048;
}

/* Tolerance: the state sums T outer products, and its products sum dk or dv terms, all in working precision. */
const struct kernel kernel_scan_outer_long = {
    .name = "scan_outer_long",
    .op = &op_scan_outer,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 256,
    .preferred = scan_outer_long_preferred,
    .workspace = scan_outer_long_workspace,
    .forward = scan_outer_long_forward,
    .backward = scan_outer_long_backward,
};
