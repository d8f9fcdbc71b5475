/* scan_outer_chunk.c - outer-product state on the CPU, a chunk of tokens at a time (spec/plstm-myosotis.md A1.5; Mamba2's SSD
 * with other gates): inside a chunk products of matrices, from chunk to chunk the state.
 *
 *   O = scale ((Gate o Q K^T) V + diag(M a) Q C);   C <- T_all C + K^T diag(b S) V
 * with Gate[n][m] = M_n T_{n-1} ... T_{m+1} S_m below the diagonal and D_n on it, a_n the product of T before n and b_m that after m.
 * Adjoint, E the gradient of the state behind the chunk, W = scale dO, Z = Gate o W V^T, A = Gate o Q K^T:
 *   dQ = Z K + diag(M a) W C^T     dK = Z^T Q + diag(S b) V E^T     dV = A^T W + diag(S b) K E     E <- T_all E + (M a Q)^T W
 * Gates: let R[n][m] = (q_n . k_m)(w_n . v_m). A factor T_t multiplies what every m < t wrote for every n > t, so with
 * Y_t[n] = sum over m < t of T_{t-1} ... T_{m+1} S_m R[n][m], which follows Y_{t+1} = T_t Y_t + S_t R[.][t],
 *   dT_t = sum over n > t of M_n T_{n-1} ... T_{t+1} Y_t[n]
 * where the state before the chunk counts as a writer (q_n^T C w_n, at the start) and E as a reader (k_m^T E v_m). No division, no
 * logarithm: T may be negative or 0. */
#include <string.h>

#include "kernels/dense.h"
#include "kernels/matrix_state_chunk.h"

/* The gates of one chunk and head, and their gradients. Missing tokens write nothing, read nothing and keep the state.
 * Lies in scratch. */
struct gates {
    real T[STATE_CHUNK], S[STATE_CHUNK], M[STATE_CHUNK], D[STATE_CHUNK];
    real before[STATE_CHUNK], after[STATE_CHUNK], all; /* a, b, T_all */
    real through[SCORES];                              /* [m][n]: T_{n-1} ... T_{m+1}; 0 for n <= m */
    real reads[STATE_CHUNK], writes[STATE_CHUNK];      /* what crosses the borders of the chunk */
    real dT[STATE_CHUNK], dS[STATE_CHUNK], dM[STATE_CHUNK], dD[STATE_CHUNK], Y[STATE_CHUNK];
};

enum { GATES = (sizeof(struct gates) / sizeof(real) + 15) / 16 * 16 }; /* reals of scratch */

/* One head on its way through time. */
struct head {
    const struct call *c;
    struct state_shape s;
    int64_t b, h, group, KW, VW; /* dk and dv padded */
    real scale;
};

static real gate_at(const struct call *c, int i, int64_t token, int64_t h, real missing) {
    const real *gate = value_row(c, i, token, h, 1);
    return gate ? *gate : missing;
}

static void read_gates(const struct head *d, int64_t token, int64_t count, struct gates *g) {
    for (int n = 0; n < STATE_CHUNK; n++) {
        bool there = n < count;
        g->T[n] = there ? gate_at(d->c, OUTER_DECAY, token + n, d->h, 1) : 1;
        g->S[n] = there ? gate_at(d->c, OUTER_SOURCE, token + n, d->h, 1) : 0;
        g->M[n] = there ? gate_at(d->c, OUTER_MARK, token + n, d->h, g->T[n]) : 0;
        g->D[n] = there ? gate_at(d->c, OUTER_DIRECT, token + n, d->h, g->S[n]) : 0;
    }
    g->all = border_products(g->T, g->before, g->after);
    range_products(1, g->T, g->through);
}

/* scores[m][n] *= factor Gate[n][m] */
static void gate_scores(const struct gates *g, real factor, real *restrict scores) {
    for (int m = 0; m < STATE_CHUNK; m++) {
        real direct = factor * g->D[m] * scores[m * STATE_CHUNK + m], S = factor * g->S[m];
#pragma omp simd
        for (int n = 0; n < STATE_CHUNK; n++)
            scores[m * STATE_CHUNK + n] *= S * g->M[n] * g->through[m * STATE_CHUNK + n];
        scores[m * STATE_CHUNK + m] = direct;
    }
}

/* Rows of a head's part of input i or, behind call_dout, of o. */
static void read_rows(const struct head *d, int i, int64_t token, int64_t count, real *to) {
    bool values = i == OUTER_V;
    int64_t n = values ? d->s.dv : d->s.dk, width = values ? d->VW : d->KW;
    const real *from = value_row(d->c, i, token, values ? d->h : d->group, n);
    pad_rows(count, n, from, token_width(d->c->in[i]), width, to);
}

/* --- forward --------------------------------------------------------------------------------------------------------- */

/* Where a chunk lies: first token in the batch, tokens. */
struct chunk {
    int64_t token, count;
    bool first, last; /* of the sequence: no state before, no gradient behind */
};

static struct chunk chunk_at(const struct head *d, int64_t i) {
    int64_t begin = i * STATE_CHUNK, left = d->s.T - begin;
    return (struct chunk){d->b * d->s.T + begin, left < STATE_CHUNK ? left : STATE_CHUNK, i == 0, left <= STATE_CHUNK};
}

/* What forward holds. V over C and scores over Qt are one matrix each: one product reads the chunk and the state. */
struct forward {
    struct gates *g;
    real *V, *C, *scores, *Qt, *K, *O; /* chunk x VW, KW x VW; chunk x chunk, KW x chunk; chunk x KW, chunk x VW */
};

static void forward_chunk(const struct head *d, const struct chunk *k, const struct forward *f) {
    int64_t dk = d->s.dk, KW = d->KW, VW = d->VW;
    struct gates *g = f->g;
    read_gates(d, k->token, k->count, g);
    read_rows(d, OUTER_Q, k->token, k->count, f->K);
    transpose(STATE_CHUNK, KW, f->K, KW, f->Qt, STATE_CHUNK);
    read_rows(d, OUTER_K, k->token, k->count, f->K);
    read_rows(d, OUTER_V, k->token, k->count, f->V);
    chunk_product(STATE_CHUNK, STATE_CHUNK, dk, (struct factor){f->K, KW, 1}, f->Qt, STATE_CHUNK, 0, f->scores,
                  STATE_CHUNK);
    gate_scores(g, d->scale, f->scores);
    for (int64_t i = 0; !k->first && i < dk; i++) {
#pragma omp simd
        for (int n = 0; n < STATE_CHUNK; n++) f->Qt[i * STATE_CHUNK + n] *= d->scale * g->M[n] * g->before[n];
    }
    chunk_product(STATE_CHUNK, VW, STATE_CHUNK + (k->first ? 0 : dk), (struct factor){f->scores, 1, STATE_CHUNK}, f->V,
                  VW, 0, f->O, VW);
    for (int64_t n = 0; n < k->count; n++)
        memcpy(tensor_real(d->c->out[0]) + ((k->token + n) * d->s.heads + d->h) * d->s.dv, f->O + n * VW,
               (size_t)d->s.dv * sizeof *f->O);
    if (k->last) return;
    for (int n = 0; n < STATE_CHUNK; n++) scale_row(VW, g->S[n] * g->after[n], f->V + n * VW, f->V + n * VW);
    chunk_product(KW, VW, STATE_CHUNK, (struct factor){f->K, 1, KW}, f->V, VW, k->first ? 0 : g->all, f->C, VW);
}

static void forward_head(const struct head *d, real *at) {
    const struct state_shape *s = &d->s;
    int64_t KW = d->KW, VW = d->VW;
    struct forward f = {.g = (struct gates *)at, .V = at + GATES};
    f.C = f.V + STATE_CHUNK * VW;
    f.scores = f.C + KW * VW;
    f.Qt = f.scores + SCORES;
    f.K = f.Qt + STATE_CHUNK * KW;
    f.O = f.K + STATE_CHUNK * KW;
    memset(f.C, 0, (size_t)(KW * VW) * sizeof *f.C);
    for (int64_t i = 0; i < s->chunks; i++) {
        struct chunk k = chunk_at(d, i);
        pack_rows(s->dk, s->dv, f.C, VW, kept_state(d->c, s, d->b, i, d->h));
        forward_chunk(d, &k, &f);
    }
}

static int64_t forward_floats(int64_t KW, int64_t VW) {
    return GATES + KW * VW + STATE_CHUNK * (2 * VW + 2 * KW) + SCORES;
}

/* --- backward -------------------------------------------------------------------------------------------------------- */

/* Matrices of one chunk in reverse; rows of tokens, states with rows of keys. */
struct matrices {
    struct gates *g;
    real *E, *C, *Et, *Ct; /* gradient of the state behind, state before; transposed (VW x KW) */
    real *Q, *K, *V, *W;   /* W = scale dO */
    real *Qt, *Wt;         /* KW x chunk, VW x chunk */
    real *dQ, *dK, *dV;    /* first what C and E give them alone */
    real *keys, *values;   /* [m][n]: q_n . k_m and v_m . w_n */
    real *both;            /* their product */
};

static int64_t backward_floats(int64_t KW, int64_t VW) {
    return GATES + 4 * KW * VW + STATE_CHUNK * (5 * KW + 4 * VW) + 3 * SCORES;
}

static struct matrices place(const struct head *d, real *at) {
    int64_t state = d->KW * d->VW, keys = STATE_CHUNK * d->KW, values = STATE_CHUNK * d->VW;
    struct matrices m = {.g = (struct gates *)at};
    struct {
        real **to;
        int64_t n;
    } list[] = {{&m.E, state},   {&m.C, state},     {&m.Et, state},      {&m.Ct, state},
                {&m.Q, keys},    {&m.K, keys},      {&m.Qt, keys},       {&m.dQ, keys},
                {&m.dK, keys},   {&m.V, values},    {&m.W, values},      {&m.Wt, values},
                {&m.dV, values}, {&m.keys, SCORES}, {&m.values, SCORES}, {&m.both, SCORES}};
    at += GATES;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        *list[i].to = at;
        at += list[i].n;
    }
    return m;
}

/* kept: the state before the chunk, dk x dv. */
static void read_chunk(const struct head *d, const struct chunk *k, const real *kept, const struct matrices *m) {
    const struct state_shape *s = &d->s;
    int64_t KW = d->KW, VW = d->VW;
    const real *d_o = call_dout(d->c, 0) + (k->token * s->heads + d->h) * s->dv;
    read_gates(d, k->token, k->count, m->g);
    read_rows(d, OUTER_Q, k->token, k->count, m->Q);
    read_rows(d, OUTER_K, k->token, k->count, m->K);
    read_rows(d, OUTER_V, k->token, k->count, m->V);
    pad_rows(k->count, s->dv, d_o, s->heads * s->dv, VW, m->W);
    scale_row(STATE_CHUNK * VW, d->scale, m->W, m->W);
    transpose(STATE_CHUNK, KW, m->Q, KW, m->Qt, STATE_CHUNK);
    transpose(STATE_CHUNK, VW, m->W, VW, m->Wt, STATE_CHUNK);
    if (!k->first) {
        memset(m->C, 0, (size_t)(KW * VW) * sizeof *m->C);
        unpack_rows(s->dk, s->dv, kept, VW, m->C);
        transpose(KW, VW, m->C, VW, m->Ct, KW);
    }
    if (!k->last) transpose(KW, VW, m->E, VW, m->Et, KW);
}

/* dQ, dK and dV as C and E alone give them, and what crosses the borders: reads[n] = q_n^T C w_n, writes[m] = k_m^T E v_m. */
static void border_gradients(const struct head *d, const struct chunk *k, const struct matrices *m) {
    int64_t KW = d->KW, VW = d->VW;
    struct gates *g = m->g;
    memset(g->reads, 0, sizeof g->reads);
    memset(g->writes, 0, sizeof g->writes);
    if (k->first)
        memset(m->dQ, 0, (size_t)(STATE_CHUNK * KW) * sizeof *m->dQ);
    else
        chunk_product(STATE_CHUNK, KW, VW, (struct factor){m->W, VW, 1}, m->Ct, KW, 0, m->dQ, KW);
    for (int n = 0; !k->first && n < STATE_CHUNK; n++) {
        g->reads[n] = row_dot(KW, m->Q + n * KW, m->dQ + n * KW);
        scale_row(KW, g->M[n] * g->before[n], m->dQ + n * KW, m->dQ + n * KW);
    }
    if (k->last) {
        memset(m->dK, 0, (size_t)(STATE_CHUNK * KW) * sizeof *m->dK);
        memset(m->dV, 0, (size_t)(STATE_CHUNK * VW) * sizeof *m->dV);
        return;
    }
    chunk_product(STATE_CHUNK, KW, VW, (struct factor){m->V, VW, 1}, m->Et, KW, 0, m->dK, KW);
    chunk_product(STATE_CHUNK, VW, d->s.dk, (struct factor){m->K, KW, 1}, m->E, VW, 0, m->dV, VW);
    for (int n = 0; n < STATE_CHUNK; n++) {
        real factor = g->S[n] * g->after[n];
        g->writes[n] = row_dot(KW, m->K + n * KW, m->dK + n * KW);
        scale_row(KW, factor, m->dK + n * KW, m->dK + n * KW);
        scale_row(VW, factor, m->dV + n * VW, m->dV + n * VW);
    }
}

/* Gradients of the gates from R (both), what crosses the borders, and corner = <E, C>. */
static void gate_gradients(struct gates *g, const real *both, real corner) {
    for (int n = 0; n < STATE_CHUNK; n++) {
        g->Y[n] = g->reads[n];
        g->dM[n] = g->before[n] * g->reads[n];
    }
    for (int t = 0; t < STATE_CHUNK; t++) {
        const real *R = both + t * STATE_CHUNK, *through = g->through + t * STATE_CHUNK;
        real dT = 0, dS = 0, T = g->T[t], S = g->S[t];
#pragma omp simd reduction(+ : dT, dS)
        for (int n = 0; n < STATE_CHUNK; n++) {
            real reader = g->M[n] * through[n];
            dT += reader * g->Y[n];
            dS += reader * R[n];
            g->dM[n] = real_fma(S * through[n], R[n], g->dM[n]);
            g->Y[n] = real_fma(T, g->Y[n], S * R[n]);
        }
        g->dT[t] = real_fma(g->after[t], corner, dT);
        g->dS[t] = real_fma(g->after[t], g->writes[t], dS);
        g->dD[t] = R[t];
        corner = real_fma(T, corner, S * g->writes[t]);
    }
}

static void write_gates(const struct head *d, const struct chunk *k, const struct gates *g) {
    const struct call *c = d->c;
    bool after = !c->in[OUTER_MARK];
    for (int64_t n = 0; n < k->count; n++) {
        real M = g->dM[n], D = g->dD[n];
        real values[4] = {g->dT[n] + (after ? M : 0), g->dS[n] + (after ? D : 0), M, D};
        for (int i = OUTER_DECAY; i < OUTER_INPUTS; i++) {
            real *to = gradient_row(c, i, k->token + n, d->h, 1);
            if (to) put(to, call_accumulates(c, i), values[i - OUTER_DECAY]);
        }
    }
}

/* add: another head of the group has written this gradient already. */
static void write_rows(const struct head *d, const struct chunk *k, int i, bool add, const real *from, int64_t width) {
    int64_t n = i == OUTER_V ? d->s.dv : d->s.dk, index = i == OUTER_V ? d->h : d->group;
    add = add || call_accumulates(d->c, i);
    for (int64_t t = 0; t < k->count; t++) {
        real *to = gradient_row(d->c, i, k->token + t, index, n);
        for (int64_t j = 0; to && j < n; j++) put(to + j, add, from[t * width + j]);
    }
}

/* E of the chunk before: E <- T_all E + (M a Q)^T W; Q is scaled. */
static void pass_back(const struct head *d, const struct chunk *k, const struct matrices *m) {
    const struct gates *g = m->g;
    int64_t KW = d->KW, VW = d->VW;
    for (int n = 0; n < STATE_CHUNK; n++) scale_row(KW, g->M[n] * g->before[n], m->Q + n * KW, m->Q + n * KW);
    chunk_product(KW, VW, STATE_CHUNK, (struct factor){m->Q, 1, KW}, m->W, VW, k->last ? 0 : g->all, m->E, VW);
}

static void backward_chunk(const struct head *d, const struct chunk *k, const struct matrices *m) {
    const struct state_shape *s = &d->s;
    int64_t KW = d->KW, VW = d->VW, C = STATE_CHUNK;
    border_gradients(d, k, m);
    chunk_product(C, C, s->dk, (struct factor){m->K, KW, 1}, m->Qt, C, 0, m->keys, C);
    chunk_product(C, C, s->dv, (struct factor){m->V, VW, 1}, m->Wt, C, 0, m->values, C);
#pragma omp simd
    for (int i = 0; i < SCORES; i++) m->both[i] = m->keys[i] * m->values[i];
    gate_gradients(m->g, m->both, k->first || k->last ? 0 : row_dot(KW * VW, m->E, m->C));
    write_gates(d, k, m->g);

    gate_scores(m->g, 1, m->keys);
    gate_scores(m->g, 1, m->values);
    chunk_product(C, KW, C, (struct factor){m->values, 1, C}, m->K, KW, 1, m->dQ, KW);
    chunk_product(C, KW, C, (struct factor){m->values, C, 1}, m->Q, KW, 1, m->dK, KW);
    chunk_product(C, VW, C, (struct factor){m->keys, C, 1}, m->W, VW, 1, m->dV, VW);
    bool add = d->h % (s->heads / s->groups) > 0;
    write_rows(d, k, OUTER_Q, add, m->dQ, KW);
    write_rows(d, k, OUTER_K, add, m->dK, KW);
    write_rows(d, k, OUTER_V, false, m->dV, VW);
    if (!k->first) pass_back(d, k, m);
}

static void backward_head(const struct head *d, real *scratch) {
    struct matrices m = place(d, scratch);
    for (int64_t i = d->s.chunks - 1; i >= 0; i--) {
        struct chunk k = chunk_at(d, i);
        read_chunk(d, &k, kept_state(d->c, &d->s, d->b, i, d->h), &m);
        backward_chunk(d, &k, &m);
    }
}

/* --- both ------------------------------------------------------------------------------------------------------------ */

/* Measured, forward + backward (`lrnn perf crossover`): a chunk costs the same however many of its rows are missing, and as
 * much for 4 keys as for 16, while time in scan_outer_cpu is that of its dk rows a token. */
static bool scan_outer_chunk_preferred(const struct call *c) {
    struct state_shape s = outer_shape(c);
    return s.T >= 4 && s.dk >= 8 && s.T * s.dk >= 64;
}

static size_t scan_outer_chunk_workspace(const struct call *c, enum pass pass) {
    struct state_shape s = outer_shape(c);
    int64_t KW = padded(s.dk), VW = padded(s.dv);
    int64_t floats = pass == PASS_FORWARD ? forward_floats(KW, VW) : backward_floats(KW, VW);
    return (size_t)(state_parts(s.B * s.groups) * floats) * sizeof(real);
}

/* A task is a group of heads: they add to the same dq and dk, in order. */
static void run(const struct call *c, enum pass pass) {
    struct state_shape s = outer_shape(c);
    int64_t tasks = s.B * s.groups, parts = state_parts(tasks), share = s.heads / s.groups;
    int64_t floats = (int64_t)(scan_outer_chunk_workspace(c, pass) / sizeof(real)) / parts;
    real *scratch = c->scratch[pass], scale = (real)((const struct outer_attr *)c->attr)->scale;
#pragma omp parallel for schedule(static) if (s.B * s.T * s.heads * s.dk * s.dv > PARALLEL_MIN)
    for (int64_t p = 0; p < parts; p++) {
        struct range part = part_at(tasks, parts, p);
        for (int64_t i = part.begin * share; i < part.end * share; i++) {
            int64_t h = i % s.heads;
            struct head d = {c, s, i / s.heads, h, h / share, padded(s.dk), padded(s.dv), scale};
            if (pass == PASS_FORWARD)
                forward_head(&d, scratch + p * floats);
            else
                backward_head(&d, scratch + p * floats);
        }
    }
}

static void scan_outer_chunk_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void scan_outer_chunk_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_BACKWARD);
}

/* Tolerance: as scan_outer_cpu, sums of T outer products and of dk or dv terms in working precision. */
const struct kernel kernel_scan_outer_chunk = {
    .name = "scan_outer_chunk",
    .op = &op_scan_outer,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 256,
    .preferred = scan_outer_chunk_preferred,
    .workspace = scan_outer_chunk_workspace,
    .forward = scan_outer_chunk_forward,
    .backward = scan_outer_chunk_backward,
};
