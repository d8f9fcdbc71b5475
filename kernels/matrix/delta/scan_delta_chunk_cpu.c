/* scan_delta_chunk_cpu.c - the delta rule (scan_delta.c) on the CPU, for one beta and at most one decay per head. It
 * computes a chunk of steps at a time by matrix products and a triangular solve (UT transform, Yang et al. 2024).
 *
 * A token has one or more steps. A chunk has one row per step; r, s and t number the rows from 0.
 *   k_r, v_r, q_r   key, value and query; q_r is 0 except at the last step of a token. They are the rows of K, V, Q.
 *   b_r, f_r        b_r = rate beta_r; f_r is the decay at the first step of a token, else 1
 *   rate, scale     constants of the op
 *   S               state before the chunk (dk x dv); the chunk replaces S by the state after the chunk
 *   a_r, L, l_s     products of decays: a_r = f_0 ... f_r, L[r][s] = f_{s+1} ... f_r for s <= r, l_s = L[last][s]
 *   o               product element by element
 * Forward, where N = strict lower part of L o K K^T. The row of a token's last step in O is the token's output:
 *   E = V - diag(a) K S - N U,   U = diag(b) E      errors E, from the first row to the last
 *   O = scale ((L o Q K^T) U + diag(a) Q S)
 *   S <- a_last S + K^T diag(l) U
 * Backward, where G is the gradient of the state after the chunk, W = scale dO, M = strict lower part of L o P U^T:
 *   dU = (L o Q K^T)^T W + diag(l) K G - N^T P,   P = diag(b) dU      from the last row to the first
 *   dV = P,   dbeta_r = rate dU_r . E_r
 *   dK = (diag(l) U) G^T - diag(a) P S^T - M K - M^T K + (L o W U^T)^T Q
 *   dQ = diag(a) W S^T + (L o W U^T) K
 *   G <- a_last G + (diag(a) Q)^T W - (diag(a) K)^T P
 * The loss depends on f through a, L and l. Its derivatives (u_r, w_r and p_r are rows of U, W and P) are
 *   by a_r in E and O   Y_0[r] = q_r . S w_r - k_r . S p_r
 *   by L[r][s]          R[r][s] = (q_r . k_s)(w_r . u_s) - (k_r . k_s)(p_r . u_s)
 *   by a_last in S      c_0 = sum(G o S)
 *   by l_s              k_s . G u_s
 * Two recurrences give df from these derivatives. They do not divide by f, so f may be negative or 0.
 *   Y_{t+1}[r] = f_t Y_t[r] + R[r][t],   c_{t+1} = f_t c_t + k_t . G u_t
 *   df_t = l_t c_t + sum_r L[r][t] Y_t[r] */
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/scratch.h"
#include "kernels/matrix/delta/solve.h"

/* One head of sequence b. */
struct head {
    const struct call *c;
    struct state_shape s;
    int64_t b, h, KW, VW; /* KW, VW: dk and dv with padding */
    int64_t tokens;       /* tokens per chunk: divides STATE_CHUNK, and tokens * steps <= STATE_CHUNK */
    real rate, scale;
};

/* Numbers for each row, named as in the equations. Rows after the end of the sequence have f = 1 and b = 0. */
struct factors {
    real f[STATE_CHUNK], b[STATE_CHUNK], a[STATE_CHUNK], l[STATE_CHUNK], df[STATE_CHUNK];
    real Y0[STATE_CHUNK], dl[STATE_CHUNK]; /* dl[s]: k_s . G u_s */
    real dots[STATE_CHUNK];                /* intermediate results */
    real L[SCORES];                        /* stored as [s][r] */
};

struct chunk {
    int64_t token, count; /* token: index of the first token in the batch; count: number of tokens */
    bool first, last;     /* first chunk of the sequence: S = 0; last chunk: G = 0 */
};

/* Matrices of one chunk. Each has its own array, so that tests detect a read past its end. In the sizes below, "chunk"
 * stands for STATE_CHUNK, the number of rows. */
struct matrices {
    struct factors *x;
    real *KQ;     /* 2 chunk x KW: keys, then queries */
    real *KQt;    /* KW x 2 chunk: KQ transposed */
    real *scores; /* chunk x 2 chunk: row s has k_s . k_r for all r, then k_s . q_r for all r */
    real *E, *O;  /* chunk x VW */
    real *U;      /* chunk x VW */
    real *S;      /* KW x VW: the state before the chunk */
    real *pairs;  /* chunk x chunk, as [s][r]: coefficients of the triangular solve, later R */
    /* Arrays for backward: */
    real *G, *St, *Gt; /* G: KW x VW; St, Gt: S and G transposed */
    real *PW, *PWt;    /* PW: 2 chunk x VW, P, then W; PWt: PW transposed */
    real *mixed;       /* chunk x 2 chunk: U P^T, then U W^T; see mix() */
    real *dKQ;         /* 2 chunk x KW: gradients of keys, then of queries */
    real *keys;        /* chunk x KW: U G^T */
    real *dU;          /* chunk x VW */
    real *Y;           /* chunk x chunk: Y_t[r] */
    /* Arrays with a state (KW x VW) in each row. Some heads are computed together: */
    struct scratch_rows all_S;  /* forward: S of each of these heads */
    struct scratch_rows all_G;  /* backward: G of each of these heads */
    struct scratch_rows states; /* backward: S of each chunk in STATE_CHUNK tokens; forward stored the first */
};

enum { TWO = 2 * STATE_CHUNK };

/* Takes all arrays of one thread from its scratch memory. Their sizes depend only on the sizes of a head. */
static struct matrices matrices_of(const struct head *d, enum pass pass, struct scratch *scratch) {
    int64_t KW = d->KW, VW = d->VW, heads = heads_side_by_side(KW * VW);
    struct matrices m = {.x = scratch_bytes(scratch, sizeof(struct factors))};
    const struct scratch_array both[] = {
        {&m.KQ, TWO * KW},        {&m.scores, STATE_CHUNK * TWO}, {&m.KQt, TWO * KW}, {&m.E, STATE_CHUNK * VW},
        {&m.O, STATE_CHUNK * VW}, {&m.U, STATE_CHUNK * VW},       {&m.pairs, SCORES}};
    const struct scratch_array backward[] = {{&m.St, KW * VW},
                                             {&m.Gt, KW * VW},
                                             {&m.PW, TWO * VW},
                                             {&m.PWt, TWO * VW},
                                             {&m.mixed, STATE_CHUNK * TWO},
                                             {&m.dKQ, TWO * KW},
                                             {&m.keys, STATE_CHUNK * KW},
                                             {&m.dU, STATE_CHUNK * VW},
                                             {&m.Y, SCORES}};
    scratch_take(scratch, both, sizeof both / sizeof *both);
    if (pass == PASS_BACKWARD) scratch_take(scratch, backward, sizeof backward / sizeof *backward);
    if (pass == PASS_FORWARD) m.all_S = scratch_rows(scratch, heads, KW * VW);
    if (pass == PASS_BACKWARD) m.all_G = scratch_rows(scratch, heads, KW * VW);
    if (pass == PASS_BACKWARD) m.states = scratch_rows(scratch, STATE_CHUNK / d->tokens, KW * VW);
    return m;
}

/* Defines name(d, ...), which calls step(d, ...). For heads of 16 x 16 with one step per token, the compiler sees all
 * sizes as constants. */
#define STATE_EACH_SIZE(name, step)                                                                                    \
    static void name(const struct head *d, const struct chunk *k, const struct matrices *m) {                          \
        if (d->s.steps == 1 && d->s.dk == STATE_VECTOR && d->s.dv == STATE_VECTOR) {                                   \
            struct head known = *d;                                                                                    \
            known.s.steps = 1;                                                                                         \
            known.s.dk = known.s.dv = known.KW = known.VW = STATE_VECTOR;                                              \
            step(&known, k, m);                                                                                        \
        } else {                                                                                                       \
            step(d, k, m);                                                                                             \
        }                                                                                                              \
    }

/* --- a chunk forwards --------------------------------------------------------------------------------------------- */

FORCE_INLINE void read_factors(const struct head *d, const struct chunk *k, struct factors *x) {
    int64_t steps = d->s.steps, H = d->s.heads, rows = k->count * steps;
    const real *decay = value_row(d->c, DELTA_DECAY, k->token, d->h, 1);
    const real *beta = value_row(d->c, DELTA_BETA, k->token, d->h, 1); /* successive steps' betas lie H apart */
    for (int64_t r = 0; r < STATE_CHUNK; r++) {
        x->f[r] = 1;
        x->b[r] = r < rows ? d->rate * beta[r * H] : 0;
    }
    for (int64_t t = 0; decay && t < k->count; t++) x->f[t * steps] = decay[t * H];
    products_behind(x->f, x->l);
    range_products(x->f, x->L);
    scale_row(STATE_CHUNK, x->f[0], x->L, x->a);
}

/* Reads rows of input i into `to`. A key or value has a row per step, a query has the row of the token's last step. */
FORCE_INLINE void read_rows(const struct head *d, const struct chunk *k, int i, int64_t n, int64_t width, real *to) {
    int64_t steps = d->s.steps, ld = d->s.heads * n;
    const real *from = value_row(d->c, i, k->token, d->h, n);
    if (i != DELTA_Q || steps == 1) {
        pad_rows(k->count * steps, n, from, ld, width, to);
        return;
    }
    memset(to, 0, (size_t)(STATE_CHUNK * width) * sizeof *to);
    for (int64_t t = 0; t < k->count; t++) copy_row(n, from + t * ld, to + ((t + 1) * steps - 1) * width);
}

/* Computes the scores (products of rows, without the factor L), the errors E, and U. */
FORCE_INLINE void solve_errors(const struct head *d, const struct chunk *k, const struct matrices *m) {
    int64_t KW = d->KW, VW = d->VW, dk = d->s.dk;
    const struct factors *x = m->x;
    read_rows(d, k, DELTA_K, dk, KW, m->KQ);
    read_rows(d, k, DELTA_Q, dk, KW, m->KQ + STATE_CHUNK * KW);
    read_rows(d, k, DELTA_V, d->s.dv, VW, m->E);
    transpose(TWO, KW, m->KQ, KW, m->KQt, TWO);
    struct factor K = {m->KQ, KW, 1};
    chunk_product((struct extent){STATE_CHUNK, TWO, dk}, K, (struct right){m->KQt, TWO}, 0, m->scores, TWO);
    if (!k->first) {
        chunk_product((struct extent){STATE_CHUNK, VW, dk}, K, (struct right){m->S, VW}, 0, m->O, VW);
        for (int r = 0; r < STATE_CHUNK; r++) add_row(VW, -x->a[r], m->O + r * VW, m->E + r * VW);
    }
    for (int s = 0; s < STATE_CHUNK; s++) {
#pragma omp simd
        for (int r = 0; r < STATE_CHUNK; r++)
            m->pairs[s * STATE_CHUNK + r] = -x->b[s] * x->L[s * STATE_CHUNK + r] * m->scores[s * TWO + r];
    }
    for (int64_t j = 0; j < VW; j += LANES) solve_down(m->pairs, m->E + j, VW);
    for (int s = 0; s < STATE_CHUNK; s++) scale_row(VW, x->b[s], m->E + s * VW, m->U + s * VW);
}

/* Computes S <- a_last S + K^T diag(l) U, and multiplies the rows of U by l. */
FORCE_INLINE void next_state(const struct head *d, const struct chunk *k, const struct matrices *m, real *S) {
    const struct factors *x = m->x;
    for (int r = 0; r < STATE_CHUNK; r++) scale_row(d->VW, x->l[r], m->U + r * d->VW, m->U + r * d->VW);
    chunk_product((struct extent){d->KW, d->VW, STATE_CHUNK}, (struct factor){m->KQ, 1, d->KW},
                  (struct right){m->U, d->VW}, k->first ? 0 : x->a[STATE_CHUNK - 1], S, d->VW);
}

/* Computes to = factor * (L o scores). Rows of `scores` lie TWO elements apart, rows of `to` lie ldt apart. */
FORCE_INLINE void range_scores(const struct factors *x, real factor, const real *scores, real *to, int64_t ldt) {
    for (int s = 0; s < STATE_CHUNK; s++) {
#pragma omp simd
        for (int r = 0; r < STATE_CHUNK; r++)
            to[s * ldt + r] = factor * x->L[s * STATE_CHUNK + r] * scores[s * TWO + r];
    }
}

FORCE_INLINE void write_outputs(const struct head *d, const struct chunk *k, const struct matrices *m) {
    int64_t VW = d->VW, dv = d->s.dv, steps = d->s.steps;
    const struct factors *x = m->x;
    real *scores = m->scores + STATE_CHUNK;
    range_scores(x, d->scale, scores, scores, TWO);
    for (int64_t i = 0; !k->first && i < d->s.dk; i++) {
        real *Qt = m->KQt + i * TWO + STATE_CHUNK;
#pragma omp simd
        for (int r = 0; r < STATE_CHUNK; r++) Qt[r] *= d->scale * x->a[r];
    }
    chunk_product((struct extent){STATE_CHUNK, VW, STATE_CHUNK}, (struct factor){scores, 1, TWO},
                  (struct right){m->U, VW}, 0, m->O, VW);
    if (!k->first)
        chunk_product((struct extent){STATE_CHUNK, VW, d->s.dk}, (struct factor){m->KQt + STATE_CHUNK, 1, TWO},
                      (struct right){m->S, VW}, 1, m->O, VW);
    for (int64_t t = 0; t < k->count; t++)
        copy_row(dv, m->O + ((t + 1) * steps - 1) * VW,
                 tensor_real(d->c->out[0]) + ((k->token + t) * d->s.heads + d->h) * dv);
}

/* Computes the outputs of one chunk, and replaces m->S by the state after the chunk. */
FORCE_INLINE void forward_sized(const struct head *d, const struct chunk *k, const struct matrices *m) {
    read_factors(d, k, m->x);
    solve_errors(d, k, m);
    write_outputs(d, k, m);
    if (!k->last) next_state(d, k, m, m->S);
}

STATE_EACH_SIZE(forward_chunk, forward_sized)

static struct chunk chunk_at(const struct head *d, int64_t first) {
    int64_t left = d->s.T - first;
    return (struct chunk){d->b * d->s.T + first, left < d->tokens ? left : d->tokens, first == 0, left <= d->tokens};
}

/* Prefetches the inputs of `count` tokens, starting at token `first` of the sequence. */
static void prefetch_tokens(const struct head *d, int64_t first, int64_t count, enum pass pass) {
    const struct call *c = d->c;
    int64_t H = d->s.heads, dk = d->s.dk, dv = d->s.dv, h = d->h;
    int64_t token = d->b * d->s.T + first, rows = count * d->s.steps;
    prefetch_rows(count, dk, value_row(c, DELTA_Q, token, h, dk), H * dk);
    prefetch_rows(rows, dk, value_row(c, DELTA_K, token, h, dk), H * dk);
    prefetch_rows(rows, dv, value_row(c, DELTA_V, token, h, dv), H * dv);
    if (pass == PASS_FORWARD) return;
    prefetch_rows(count, dv, call_dout(c, 0) + (token * H + h) * dv, H * dv);
    prefetch_rows(1, dk * dv, kept_state(c, &d->s, d->b, first / STATE_CHUNK, h), 0);
}

/* Computes heads d[0] to d[n-1] together: a chunk of all heads, then the next chunk. Every STATE_CHUNK tokens it stores
 * the state for backward. */
static void forward_heads(const struct head *d, int64_t n, struct matrices *m) {
    const struct state_shape *s = &d->s;
    for (int64_t h = 0; h < n; h++)
        memset(m->all_S.at + h * m->all_S.stride, 0, (size_t)(d->KW * d->VW) * sizeof *m->S);
    for (int64_t first = 0; first < s->T; first += d->tokens)
        for (int64_t h = 0; h < n; h++) {
            struct chunk k = chunk_at(d + h, first);
            m->S = m->all_S.at + h * m->all_S.stride;
            if (!k.last) prefetch_tokens(d + h, first + k.count, chunk_at(d + h, first + k.count).count, PASS_FORWARD);
            if (first % STATE_CHUNK == 0)
                keep_state(s, m->S, d->VW, kept_state(d->c, s, d[h].b, first / STATE_CHUNK, d[h].h));
            forward_chunk(d + h, &k, m);
        }
}

/* --- a chunk backwards -------------------------------------------------------------------------------------------- */

/* Computes dU and P = diag(b) dU from the last row to the first. */
FORCE_INLINE void solve_adjoint(const struct head *d, const struct chunk *k, const struct matrices *m) {
    int64_t VW = d->VW;
    const struct factors *x = m->x;
    real *P = m->PW, *W = P + STATE_CHUNK * VW;
    if (!k->last) {
        chunk_product((struct extent){STATE_CHUNK, VW, d->s.dk}, (struct factor){m->KQ, d->KW, 1},
                      (struct right){m->G, VW}, 0, m->dU, VW);
        for (int s = 0; s < STATE_CHUNK; s++) scale_row(VW, x->l[s], m->dU + s * VW, m->dU + s * VW);
    }
    range_scores(x, 1, m->scores + STATE_CHUNK, m->pairs, STATE_CHUNK);
    triangle_product(UPPER, VW, (struct factor){m->pairs, STATE_CHUNK, 1}, (struct right){W, VW}, k->last ? 0 : 1,
                     m->dU, VW);
    for (int s = 0; s < STATE_CHUNK; s++) {
#pragma omp simd
        for (int r = 0; r < STATE_CHUNK; r++)
            m->pairs[s * STATE_CHUNK + r] = -x->b[r] * x->L[s * STATE_CHUNK + r] * m->scores[s * TWO + r];
    }
    for (int64_t j = 0; j < VW; j += LANES) solve_up(m->pairs, m->dU + j, VW);
    for (int r = 0; r < STATE_CHUNK; r++) scale_row(VW, x->b[r], m->dU + r * VW, P + r * VW);
}

/* Computes the terms of dK and dQ that contain S or G. If the gradient of f is wanted, also computes Y_0 and dl. */
FORCE_INLINE void border_gradients(const struct head *d, const struct chunk *k, const struct matrices *m) {
    int64_t KW = d->KW, VW = d->VW;
    struct factors *x = m->x;
    const real *K = m->KQ, *Q = K + STATE_CHUNK * KW;
    real *dK = m->dKQ, *dQ = dK + STATE_CHUNK * KW;
    bool decays = d->c->din[DELTA_DECAY]; /* the gradient of f is wanted */
    memset(x->Y0, 0, sizeof x->Y0);
    memset(x->dl, 0, sizeof x->dl);
    if (k->first) {
        memset(m->dKQ, 0, (size_t)(TWO * KW) * sizeof *m->dKQ);
    } else {
        chunk_product((struct extent){TWO, KW, VW}, (struct factor){m->PW, VW, 1}, (struct right){m->St, KW}, 0, m->dKQ,
                      KW);
        if (decays) {
            row_dots(KW, Q, KW, dQ, KW, x->Y0);
            row_dots(KW, K, KW, dK, KW, x->dots);
            for (int r = 0; r < STATE_CHUNK; r++) x->Y0[r] -= x->dots[r];
        }
        for (int r = 0; r < STATE_CHUNK; r++) {
            scale_row(KW, -x->a[r], dK + r * KW, dK + r * KW);
            scale_row(KW, x->a[r], dQ + r * KW, dQ + r * KW);
        }
    }
    if (k->last) return;
    chunk_product((struct extent){STATE_CHUNK, KW, VW}, (struct factor){m->U, VW, 1}, (struct right){m->Gt, KW}, 0,
                  m->keys, KW);
    if (decays) row_dots(KW, K, KW, m->keys, KW, x->dl);
    for (int s = 0; s < STATE_CHUNK; s++) add_row(KW, x->l[s], m->keys + s * KW, dK + s * KW);
}

/* Computes df from Y_0, R, dl and c0. */
FORCE_INLINE void factor_gradients(const struct matrices *m, real c0) {
    struct factors *x = m->x;
    real c[STATE_CHUNK];
#pragma GCC unroll 16
    for (int t = 0; t < STATE_CHUNK; t++) {
        c[t] = c0;
        c0 = real_fma(x->f[t], c0, x->dl[t]);
    }
    for (int r = 0; r < STATE_CHUNK; r += LANES) {
        lanes Y = lanes_at(x->Y0 + r);
#pragma GCC unroll 16
        for (int t = 0; t < STATE_CHUNK; t++) {
            lanes_to(m->Y + t * STATE_CHUNK + r, Y);
            Y = lanes_axpy(x->f[t], Y, lanes_at(m->pairs + t * STATE_CHUNK + r));
        }
    }
    row_dots(STATE_CHUNK, x->L, STATE_CHUNK, m->Y, STATE_CHUNK, x->df);
    for (int t = 0; t < STATE_CHUNK; t += LANES)
        lanes_to(x->df + t, lanes_at(x->df + t) + lanes_at(x->l + t) * lanes_at(c + t));
}

/* Stores R in `pairs`, -M^T in the left half of `mixed`, and (L o W U^T)^T in the right half. */
FORCE_INLINE void mix(const struct head *d, const struct matrices *m) {
    const struct factors *x = m->x;
    transpose(TWO, d->VW, m->PW, d->VW, m->PWt, TWO);
    chunk_product((struct extent){STATE_CHUNK, TWO, d->s.dv}, (struct factor){m->U, d->VW, 1},
                  (struct right){m->PWt, TWO}, 0, m->mixed, TWO);
    for (int s = 0; s < STATE_CHUNK; s++) {
        const real *keys = m->scores + s * TWO, *queries = keys + STATE_CHUNK, *L = x->L + s * STATE_CHUNK;
        real *up = m->mixed + s * TWO, *uw = up + STATE_CHUNK, *R = m->pairs + s * STATE_CHUNK;
#pragma omp simd
        for (int r = 0; r < STATE_CHUNK; r++) {
            R[r] = queries[r] * uw[r] - keys[r] * up[r];
            uw[r] *= L[r];
            up[r] *= -L[r];
        }
        up[s] = 0;
    }
}

/* Adds the gradients that come from other rows of the chunk: the last three terms of dK, and the last term of dQ. */
FORCE_INLINE void add_inner_gradients(const struct head *d, const struct matrices *m) {
    int64_t KW = d->KW;
    real *dK = m->dKQ, *dQ = dK + STATE_CHUNK * KW;
    const real *K = m->KQ, *Q = K + STATE_CHUNK * KW, *up = m->mixed, *uw = up + STATE_CHUNK;
    triangle_product(UPPER, KW, (struct factor){up, TWO, 1}, (struct right){K, KW}, 1, dK, KW);
    triangle_product(UPPER, KW, (struct factor){uw, TWO, 1}, (struct right){Q, KW}, 1, dK, KW);
    triangle_product(LOWER, KW, (struct factor){up, 1, TWO}, (struct right){K, KW}, 1, dK, KW);
    triangle_product(LOWER, KW, (struct factor){uw, 1, TWO}, (struct right){K, KW}, 1, dQ, KW);
}

/* Writes the rows of `from` to the gradient of input i, or adds them. A query has the row of the token's last step. */
FORCE_INLINE void write_rows(const struct head *d, const struct chunk *k, int i, int64_t n, const real *from,
                             int64_t width) {
    int64_t steps = d->s.steps, ld = d->s.heads * n, every = i == DELTA_Q ? steps : 1;
    real *to = gradient_row(d->c, i, k->token, d->h, n);
    for (int64_t r = every - 1; to && r < k->count * steps; r += every, to += ld) {
        if (!call_accumulates(d->c, i)) copy_row(n, from + r * width, to);
        for (int64_t j = 0; call_accumulates(d->c, i) && j < n; j++) to[j] += from[r * width + j];
    }
}

FORCE_INLINE void write_gradients(const struct head *d, const struct chunk *k, const struct matrices *m) {
    struct factors *x = m->x;
    int64_t VW = d->VW;
    write_rows(d, k, DELTA_Q, d->s.dk, m->dKQ + STATE_CHUNK * d->KW, d->KW);
    write_rows(d, k, DELTA_K, d->s.dk, m->dKQ, d->KW);
    write_rows(d, k, DELTA_V, d->s.dv, m->PW, VW);
    row_dots(VW, m->dU, VW, m->E, VW, x->dots);
    scale_row(STATE_CHUNK, d->rate, x->dots, x->dots);
    write_rows(d, k, DELTA_BETA, 1, x->dots, 1);
    for (int64_t t = 0; t < k->count; t++) {
        real *to = gradient_row(d->c, DELTA_DECAY, k->token + t, d->h, 1);
        if (to) put(to, call_accumulates(d->c, DELTA_DECAY), x->df[t * d->s.steps]);
    }
}

/* Computes W = scale dO. Rows that are not the last step of a token get 0. */
FORCE_INLINE void read_output_gradient(const struct head *d, const struct chunk *k, real *W) {
    int64_t VW = d->VW, dv = d->s.dv, steps = d->s.steps;
    const real *d_o = call_dout(d->c, 0) + (k->token * d->s.heads + d->h) * dv;
    if (k->count * steps < STATE_CHUNK || steps > 1) memset(W, 0, (size_t)(STATE_CHUNK * VW) * sizeof *W);
    for (int64_t t = 0; t < k->count; t++) {
        real *to = W + ((t + 1) * steps - 1) * VW;
        pad_row(dv, VW, d_o + t * d->s.heads * dv, to);
        scale_row(VW, d->scale, to, to);
    }
}

/* Computes the gradients of one chunk. m->S is the state before the chunk. m->G, the gradient of the state after the
 * chunk, is replaced by the gradient of m->S. */
FORCE_INLINE void backward_sized(const struct head *d, const struct chunk *k, const struct matrices *m) {
    int64_t KW = d->KW, VW = d->VW;
    struct factors *x = m->x;
    real *W = m->PW + STATE_CHUNK * VW;
    read_factors(d, k, x);
    solve_errors(d, k, m);
    read_output_gradient(d, k, W);
    solve_adjoint(d, k, m);
    if (!k->first) transpose(KW, VW, m->S, VW, m->St, KW);
    if (!k->last) transpose(KW, VW, m->G, VW, m->Gt, KW);
    border_gradients(d, k, m);
    mix(d, m);
    if (d->c->din[DELTA_DECAY]) factor_gradients(m, k->first || k->last ? 0 : state_dot(KW * VW, m->G, m->S));
    add_inner_gradients(d, m);
    write_gradients(d, k, m);
    if (k->first) return;
    for (int r = 0; r < STATE_CHUNK; r++) {
        real *K = m->KQ + r * KW, *Q = K + STATE_CHUNK * KW;
        scale_row(KW, -x->a[r], K, K);
        scale_row(KW, x->a[r], Q, Q);
    }
    chunk_product((struct extent){KW, VW, TWO}, (struct factor){m->KQ, 1, KW}, (struct right){m->PW, VW},
                  k->last ? 0 : x->a[STATE_CHUNK - 1], m->G, VW);
}

STATE_EACH_SIZE(backward_chunk, backward_sized)

/* Returns stored state number `kept`. A state that needs padding is copied to `copy`. */
static real *state_before(const struct head *d, int64_t kept, real *copy) {
    real *S = kept_state(d->c, &d->s, d->b, kept, d->h);
    if (d->KW == d->s.dk && d->VW == d->s.dv) return S;
    memset(copy, 0, (size_t)(d->KW * d->VW) * sizeof *copy);
    unpack_rows(d->s.dk, d->s.dv, S, d->VW, copy);
    return copy;
}

/* Computes the gradients of the STATE_CHUNK tokens that follow stored state number `kept`. These tokens are one or more
 * chunks, and the states before the other chunks are computed again. */
static void backward_between(const struct head *d, int64_t kept, struct matrices *m) {
    int64_t begin = kept * STATE_CHUNK, left = d->s.T - begin, chunks = STATE_CHUNK / d->tokens;
    real *before[STATE_CHUNK];
    if (left < STATE_CHUNK) chunks = (left + d->tokens - 1) / d->tokens;
    before[0] = state_before(d, kept, m->states.at);
    for (int64_t i = 0; i + 1 < chunks; i++) {
        struct chunk k = chunk_at(d, begin + i * d->tokens);
        m->S = before[i];
        before[i + 1] = m->states.at + (i + 1) * m->states.stride;
        memcpy(before[i + 1], m->S, (size_t)(d->KW * d->VW) * sizeof *m->S);
        read_factors(d, &k, m->x);
        solve_errors(d, &k, m);
        next_state(d, &k, m, before[i + 1]);
    }
    for (int64_t i = chunks - 1; i >= 0; i--) {
        struct chunk k = chunk_at(d, begin + i * d->tokens);
        m->S = before[i];
        backward_chunk(d, &k, m);
    }
}

/* Computes the gradients of heads d[0] to d[n-1] together, from the end of the sequence to the start. */
static void backward_heads(const struct head *d, int64_t n, struct matrices *m) {
    for (int64_t kept = d->s.chunks - 1; kept >= 0; kept--)
        for (int64_t h = 0; h < n; h++) {
            m->G = m->all_G.at + h * m->all_G.stride;
            if (kept > 0) prefetch_tokens(d + h, (kept - 1) * STATE_CHUNK, STATE_CHUNK, PASS_BACKWARD);
            backward_between(d + h, kept, m);
        }
}

/* --- calls -------------------------------------------------------------------------------------------------------- */

static struct head head_at(const struct call *c, const struct state_shape *s, int64_t i) {
    const struct delta_attr *a = delta_attr(c);
    int64_t tokens = STATE_CHUNK;
    while (tokens > 1 && tokens * s->steps > STATE_CHUNK) tokens /= 2;
    return (struct head){
        c, *s, i / s->heads, i % s->heads, padded(s->dk), padded(s->dv), tokens, (real)a->rate, (real)a->scale};
}

static bool scan_delta_chunk_applicable(const struct call *c, const char **why) {
    *why = delta_is_scalar(c) ? "a token has more than 16 steps" : DELTA_NOT_SCALAR;
    return delta_is_scalar(c) && delta_attr(c)->steps <= STATE_CHUNK;
}

/* Above these bounds, forward + backward is faster than scan_delta_cpu (measured with `lrnn perf crossover`). With
 * several steps per token the gain is smaller: most rows of Q are 0, and backward recomputes more states. */
static bool scan_delta_chunk_preferred(const struct call *c) {
    struct state_shape s = delta_shape(c);
    return s.T >= 4 && s.dk >= 8 * s.steps && s.T * s.steps * s.dk >= 128;
}

static size_t scan_delta_chunk_workspace(const struct call *c, enum pass pass) {
    struct state_shape s = delta_shape(c);
    struct head d = head_at(c, &s, 0);
    struct scratch scratch = scratch_measure(c);
    for (int64_t p = 0; p < state_parts(s.B * s.heads); p++) matrices_of(&d, pass, &scratch);
    return scratch.used;
}

/* Runs one group of heads, which starts at `first` and stops before `end`. */
static void run_heads(const struct call *c, const struct state_shape *s, enum pass pass, int64_t first, int64_t end,
                      struct matrices *m) {
    struct head d[STATE_BUNDLE];
    int64_t most = heads_side_by_side(padded(s->dk) * padded(s->dv)), n = end - first < most ? end - first : most;
    for (int64_t h = 0; h < n; h++) d[h] = head_at(c, s, first + h);
    if (pass == PASS_FORWARD)
        forward_heads(d, n, m);
    else
        backward_heads(d, n, m);
}

static void run(const struct call *c, enum pass pass) {
    struct state_shape s = delta_shape(c);
    int64_t most = heads_side_by_side(padded(s.dk) * padded(s.dv));
    int64_t pairs = s.B * s.heads, parts = state_parts(pairs);
    struct head any = head_at(c, &s, 0);
    struct scratch all = scratch_of(c, pass);
#pragma omp parallel for schedule(static) if (s.B * s.T * s.heads * s.dk * s.dv > PARALLEL_MIN)
    for (int64_t p = 0; p < parts; p++) {
        struct range part = part_at(pairs, parts, p);
        struct scratch own = scratch_part(&all, p, parts);
        struct matrices m = matrices_of(&any, pass, &own);
        for (int64_t i = part.begin; i < part.end; i += most) run_heads(c, &s, pass, i, part.end, &m);
        past_caches_done();
    }
}

static void scan_delta_chunk_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void scan_delta_chunk_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_BACKWARD);
}

/* Tolerance: sums of dk or dv terms are rounded, the solve subtracts such sums, and errors add up over T steps. */
const struct kernel kernel_scan_delta_chunk = {
    .name = "scan_delta_chunk",
    .op = &op_scan_delta,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 256,
    .applicable = scan_delta_chunk_applicable,
    .preferred = scan_delta_chunk_preferred,
    .workspace = scan_delta_chunk_workspace,
    .forward = scan_delta_chunk_forward,
    .backward = scan_delta_chunk_backward,
};
