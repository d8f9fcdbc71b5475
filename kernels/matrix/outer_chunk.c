/* outer_chunk.c - outer-product states (outer_chunk.h), a chunk of 16 tokens at a time (pLSTM, App. D.4 and D.8). A
 * chunk costs products of matrices, and hands the states to the next chunk.
 *
 * The gates of chunk_gates.h give P[m][n] = Gate[m][n] (q_n . k_m) and three factors: r_i[n] = Z_-1[i][n], with which
 * token n reads state i before the chunk; x_a[m] = Gate[m][a], with which token m writes into state a after the chunk;
 * F[i][a] = Z_-1[i][a], with which state i before the chunk enters state a after it:
 *   O = scale (P^T V + sum_i diag(r_i) Q C_i)      C_a <- sum_i F[i][a] C_i + K^T diag(x_a) V
 * Gradients, with E_a the gradient of state a after the chunk, W = scale dO, U[m][n] = Gate[m][n] (w_n . v_m):
 *   dQ = U^T K + sum_i diag(r_i) W C_i^T      dK = U Q + sum_a diag(x_a) V E_a^T      dV = P W + sum_a diag(x_a) K E_a
 *   E_i <- sum_a F[i][a] E_a + (diag(r_i) Q)^T W */
#include "kernels/lib/scratch.h"
#include "kernels/matrix/outer_chunk.h"

#include "kernels/matrix/chunk_gates.h"

/* If forward stores no states, backward computes them again. It then has room for the states before so many chunks,
 * called a stretch. If the root of the number of chunks is larger, a stretch has so many chunks. */
#define KEEP_ALL 64

/* Arrays of a bundle of heads, which are computed together. Each head has one row in each array. */
struct bundle_arrays {
    struct scratch_rows T, S, M, D; /* gates of the current chunk */
    struct scratch_rows C, E;       /* C: states; E, only for backward: their gradients */
    /* backward without stored states: C before each stretch, for all heads of a bundle */
    struct scratch_rows copies;
    struct scratch_rows kept; /* C before each chunk of one stretch, without padding */
};

/* Matrices of one chunk. Their rows are tokens, except Qt and Wt: KW x chunk, VW x chunk. */
struct work {
    struct chunk_gates g; /* its T, S, M, D are those of the current head */
    struct bundle_arrays all;
    int64_t J, dk, dv, KW, VW, chunks; /* KW, VW: padded */
    real scale;
    real *Q, *K, *V, *Qt;
    real *keys;                    /* [m][n]: q_n . k_m */
    real *part_keys, *part_values; /* one term of a sum over states */
    real *W, *Wt, *dQ, *dK, *dV;   /* only for backward, as all that follows */
    real *values;                  /* v_m . w_n */
    real *padded;                  /* the states before the chunk */
    real *Vt, *turned;             /* V transposed; part_keys before it is transposed */
};

static int64_t state_reals(const struct outer_sizes *s) {
    return s->J * padded(s->dk) * padded(s->dv);
}

static int64_t bundle_heads(const struct outer_sizes *s) {
    return heads_side_by_side(state_reals(s));
}

/* Returns the number of chunks of a stretch. */
static int64_t stretch_of(const struct outer_sizes *s) {
    int64_t chunks = (s->T + STATE_CHUNK - 1) / STATE_CHUNK, stretch = chunks < KEEP_ALL ? chunks : KEEP_ALL;
    while (stretch * stretch < chunks) stretch++;
    return stretch;
}

static struct bundle_arrays take_bundle(const struct outer_sizes *s, enum pass pass, struct scratch *scratch) {
    int64_t heads = bundle_heads(s), J = s->J, N = STATE_CHUNK, n = state_reals(s), stretch = stretch_of(s);
    int64_t stretches = ((s->T + N - 1) / N + stretch - 1) / stretch;
    bool again = pass == PASS_BACKWARD && !s->keeps;
    struct bundle_arrays all = {.T = scratch_rows(scratch, heads, N * J * J)};
    all.S = scratch_rows(scratch, heads, N * J);
    all.M = scratch_rows(scratch, heads, N * J);
    all.D = scratch_rows(scratch, heads, N);
    if (pass == PASS_FORWARD || again) all.C = scratch_rows(scratch, heads, n);
    if (pass == PASS_BACKWARD) all.E = scratch_rows(scratch, heads, n);
    if (!again) return all;
    all.copies = scratch_rows(scratch, stretches * heads, n);
    all.kept = scratch_rows(scratch, heads, stretch * J * s->dk * s->dv);
    return all;
}

/* Takes all arrays for one part of the heads. */
static struct work work_of(const struct outer_sizes *s, enum pass pass, struct scratch *scratch) {
    int64_t J = s->J, KW = padded(s->dk), VW = padded(s->dv), N = STATE_CHUNK;
    struct work w = {.J = J, .dk = s->dk, .dv = s->dv, .KW = KW, .VW = VW, .scale = s->scale};
    struct chunk_gates *g = &w.g;
    const struct scratch_array both[] = {{&g->Z, (N + 1) * READERS * J},
                                         {&g->gate, N * READERS},
                                         {&g->writes, N * J},
                                         {&g->after, N},
                                         {&w.Q, N * KW},
                                         {&w.K, N * KW},
                                         {&w.Qt, N * KW},
                                         {&w.V, N * VW},
                                         {&w.keys, SCORES},
                                         {&w.part_keys, N * KW},
                                         {&w.part_values, N * VW}};
    const struct scratch_array backward[] = {{&g->Y, (N + 1) * READERS * J},
                                             {&g->R, N * READERS},
                                             {&g->taken, N * J},
                                             {&g->dT, N * J * J},
                                             {&g->dS, N * J},
                                             {&g->dM, N * J},
                                             {&w.W, N * VW},
                                             {&w.Wt, N * VW},
                                             {&w.dQ, N * KW},
                                             {&w.dK, N * KW},
                                             {&w.dV, N * VW},
                                             {&w.values, SCORES},
                                             {&w.padded, J * KW * VW},
                                             {&w.Vt, N * VW},
                                             {&w.turned, N * KW}};
    w.chunks = (s->T + N - 1) / N;
    w.all = take_bundle(s, pass, scratch);
    scratch_take(scratch, both, sizeof both / sizeof *both);
    if (pass == PASS_BACKWARD) scratch_take(scratch, backward, sizeof backward / sizeof *backward);
    return w;
}

static struct chunk chunk_at(const struct outer_sizes *s, int64_t i) {
    int64_t first = i * STATE_CHUNK, left = s->T - first;
    return (struct chunk){first, left < STATE_CHUNK ? left : STATE_CHUNK, i == 0, left <= STATE_CHUNK};
}

/* Defines name(h, w, ...), which calls step(h, w, ...). For single states of 16 x 16, sizes are constants, because
 * there the work between the products takes as long as the products. */
#define STATE_EACH_SIZE(name, step, parameters, ...)                                                                   \
    static void name parameters {                                                                                      \
        if (w->J == 1 && w->dk == STATE_VECTOR && w->dv == STATE_VECTOR) {                                             \
            struct work known = *w;                                                                                    \
            known.J = 1;                                                                                               \
            known.dk = known.dv = known.KW = known.VW = STATE_VECTOR;                                                  \
            step(h, &known, __VA_ARGS__);                                                                              \
        } else {                                                                                                       \
            step(h, w, __VA_ARGS__);                                                                                   \
        }                                                                                                              \
    }

/* --- states ------------------------------------------------------------------------------------------------------- */

/* Computes X_i <- sum_j F[i * row + j * column] X_j for J matrices of n elements. If J = 1, the next product does
 * it. */
FORCE_INLINE void mix_states(int64_t J, const real *F, int64_t row, int64_t column, int64_t n, real *X) {
    for (int64_t e = 0; J > 1 && e < n; e += LANES) {
        lanes old[16]; /* J is at most 16 */
        for (int64_t j = 0; j < J; j++) old[j] = lanes_at(X + j * n + e);
        for (int64_t i = 0; i < J; i++) {
            lanes sum = F[i * row] * old[0];
            for (int64_t j = 1; j < J; j++) sum = lanes_axpy(F[i * row + j * column], old[j], sum);
            lanes_to(X + i * n + e, sum);
        }
    }
}

/* Returns the factor with which the product after mix_states keeps a state. */
FORCE_INLINE real kept_part(int64_t J, const real *F, bool fresh) {
    return fresh ? 0 : J == 1 ? *F : 1;
}

FORCE_INLINE void read_rows(const struct outer_rows *rows, const struct chunk *k, int64_t n, int64_t width, real *to) {
    pad_rows(k->count, n, rows->at + k->first * rows->step, rows->step, width, to);
}

/* Return the factors with which tokens read state i before the chunk, and write into state a after it. */
FORCE_INLINE const real *reads_of(const struct work *w, int64_t i) {
    return w->g.Z + i * READERS;
}

FORCE_INLINE const real *writes_into(const struct work *w, int64_t a) {
    return w->g.writes + a * STATE_CHUNK;
}

/* Turns C into the states before the next chunk. */
FORCE_INLINE void next_states(const struct work *w, const struct chunk *k, real *C) {
    int64_t n = w->KW * w->VW, VW = w->VW;
    const real *through = w->g.Z + STATE_CHUNK; /* F */
    if (!k->begins) mix_states(w->J, through, 1, READERS, n, C);
    for (int64_t a = 0; a < w->J; a++) {
        const real *x = writes_into(w, a);
        for (int64_t t = 0; t < STATE_CHUNK; t++) scale_row(VW, x[t], w->V + t * VW, w->part_values + t * VW);
        chunk_product((struct extent){w->KW, VW, STATE_CHUNK}, (struct factor){w->K, 1, w->KW},
                      (struct right){w->part_values, VW}, kept_part(w->J, through, k->begins), C + a * n, VW);
    }
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

FORCE_INLINE void write_outputs(const struct outer_head *h, const struct work *w, const struct chunk *k,
                                const real *C) {
    int64_t KW = w->KW, VW = w->VW, N = STATE_CHUNK;
    real *O = w->part_values;
    read_rows(&h->q, k, w->dk, KW, w->Q);
    transpose(N, KW, w->Q, KW, w->Qt, N);
    chunk_product((struct extent){N, N, w->dk}, (struct factor){w->K, KW, 1}, (struct right){w->Qt, N}, 0, w->keys, N);
    for (int64_t m = 0; m < N; m++)
#pragma omp simd
        for (int64_t n = 0; n < STATE_CHUNK; n++) w->keys[m * STATE_CHUNK + n] *= w->scale * w->g.gate[m * READERS + n];
    triangle_product(LOWER, VW, (struct factor){w->keys, 1, N}, (struct right){w->V, VW}, 0, O, VW);
    for (int64_t i = 0; !k->begins && i < w->J; i++) {
        const real *reads = reads_of(w, i);
        for (int64_t n = 0; n < N; n++) scale_row(KW, w->scale * reads[n], w->Q + n * KW, w->part_keys + n * KW);
        chunk_product((struct extent){N, VW, w->dk}, (struct factor){w->part_keys, KW, 1},
                      (struct right){C + i * KW * VW, VW}, 1, O, VW);
    }
    for (int64_t n = 0; n < k->count; n++) copy_row(w->dv, O + n * VW, h->o + (k->first + n) * h->o_step);
}

/* Computes one chunk of one head. C becomes the states after it. */
FORCE_INLINE void forward_sized(const struct outer_head *h, const struct work *w, const struct chunk *k, bool read,
                                real *C) {
    if (!read && k->ends) return;
    reader_factors(w->J, &w->g, read ? TOKENS_TOO : EXITS_ALONE);
    read_rows(&h->k, k, w->dk, w->KW, w->K);
    read_rows(&h->v, k, w->dv, w->VW, w->V);
    if (read) write_outputs(h, w, k, C);
    if (!k->ends) next_states(w, k, C);
}

STATE_EACH_SIZE(forward_chunk, forward_sized,
                (const struct outer_head *h, const struct work *w, const struct chunk *k, bool read, real *C), k, read,
                C)

/* --- backward ----------------------------------------------------------------------------------------------------- */

FORCE_INLINE void read_chunk(const struct outer_head *h, const struct work *w, const struct chunk *k) {
    int64_t KW = w->KW, VW = w->VW;
    reader_factors(w->J, &w->g, TOKENS_TOO);
    read_rows(&h->q, k, w->dk, KW, w->Q);
    read_rows(&h->k, k, w->dk, KW, w->K);
    read_rows(&h->v, k, w->dv, VW, w->V);
    pad_rows(k->count, w->dv, h->d_o + k->first * h->o_step, h->o_step, VW, w->W);
    scale_row(STATE_CHUNK * VW, w->scale, w->W, w->W);
    transpose(STATE_CHUNK, KW, w->Q, KW, w->Qt, STATE_CHUNK);
    transpose(STATE_CHUNK, VW, w->W, VW, w->Wt, STATE_CHUNK);
}

/* Adds term i of a sum over states: to = factor from for the first term, else to += factor from. */
FORCE_INLINE void add_term(int64_t i, int64_t n, real factor, const real *from, real *to) {
    if (i == 0)
        scale_row(n, factor, from, to);
    else
        add_row(n, factor, from, to);
}

/* Computes part_keys = (X A^T)^T for a state X. At is A^T, VW x chunk. To transpose the product is less work than to
 * transpose the state. */
FORCE_INLINE void rows_by_state(const struct work *w, const real *X, const real *At) {
    int64_t KW = w->KW, VW = w->VW, N = STATE_CHUNK;
    chunk_product((struct extent){KW, N, VW}, (struct factor){X, VW, 1}, (struct right){At, N}, 0, w->turned, N);
    transpose(KW, N, w->turned, N, w->part_keys, KW);
}

/* Computes the parts of dQ, and of Y_0 for tokens, that come from the states before the chunk. */
FORCE_INLINE void entry_gradients(const struct work *w, const struct chunk *k, const real *C) {
    int64_t KW = w->KW, VW = w->VW, N = STATE_CHUNK;
    if (k->begins) clear_row(N * KW, w->dQ);
    clear_row(READERS * w->J, w->g.Y);
    for (int64_t i = 0; !k->begins && i < w->J; i++) {
        const real *reads = reads_of(w, i);
        rows_by_state(w, C + i * KW * VW, w->Wt);
        row_dots(KW, w->Q, KW, w->part_keys, KW, w->g.Y + i * READERS);
        for (int64_t n = 0; n < N; n++) add_term(i, KW, reads[n], w->part_keys + n * KW, w->dQ + n * KW);
    }
}

/* Computes the parts of dK, dV, and of R for exits, that come from the gradients of the states after the chunk. */
FORCE_INLINE void exit_gradients(const struct work *w, const struct chunk *k, const real *E) {
    int64_t KW = w->KW, VW = w->VW, N = STATE_CHUNK;
    if (k->ends) {
        clear_row(N * KW, w->dK);
        clear_row(N * VW, w->dV);
    }
    clear_row(N * w->J, w->g.taken);
    if (!k->ends) transpose(N, VW, w->V, VW, w->Vt, N);
    for (int64_t a = 0; !k->ends && a < w->J; a++) {
        const real *x = writes_into(w, a), *Ea = E + a * KW * VW;
        rows_by_state(w, Ea, w->Vt);
        chunk_product((struct extent){N, VW, w->dk}, (struct factor){w->K, KW, 1}, (struct right){Ea, VW}, 0,
                      w->part_values, VW);
        row_dots(KW, w->K, KW, w->part_keys, KW, w->g.taken + a * N);
        for (int64_t m = 0; m < N; m++) {
            add_term(a, KW, x[m], w->part_keys + m * KW, w->dK + m * KW);
            add_term(a, VW, x[m], w->part_values + m * VW, w->dV + m * VW);
        }
    }
}

/* Computes the part of Y_0 for exits, which read the states before the chunk. */
FORCE_INLINE void through_gradients(const struct work *w, const struct chunk *k, const real *C, const real *E) {
    int64_t n = w->KW * w->VW, J = w->J;
    for (int64_t j = 0; j < J && !k->begins && !k->ends; j++)
        for (int64_t a = 0; a < J; a++) w->g.Y[j * READERS + STATE_CHUNK + a] = state_dot(n, E + a * n, C + j * n);
}

/* Computes R for tokens from keys and values, which then become P and U. */
FORCE_INLINE void gate_scores(const struct work *w) {
    for (int64_t m = 0; m < STATE_CHUNK; m++) {
        real *keys = w->keys + m * STATE_CHUNK, *values = w->values + m * STATE_CHUNK, *R = w->g.R + m * READERS;
        const real *gate = w->g.gate + m * READERS;
#pragma omp simd
        for (int n = 0; n < STATE_CHUNK; n++) {
            R[n] = keys[n] * values[n];
            keys[n] *= gate[n];
            values[n] *= gate[n];
        }
    }
}

FORCE_INLINE void add_inner_gradients(const struct work *w) {
    int64_t KW = w->KW, VW = w->VW, N = STATE_CHUNK;
    triangle_product(LOWER, KW, (struct factor){w->values, 1, N}, (struct right){w->K, KW}, 1, w->dQ, KW);
    triangle_product(UPPER, KW, (struct factor){w->values, N, 1}, (struct right){w->Q, KW}, 1, w->dK, KW);
    triangle_product(UPPER, VW, (struct factor){w->keys, N, 1}, (struct right){w->W, VW}, 1, w->dV, VW);
}

/* Turns E into the gradient of the states before the chunk. */
FORCE_INLINE void pass_back(const struct work *w, const struct chunk *k, real *E) {
    int64_t n = w->KW * w->VW, J = w->J, KW = w->KW;
    const real *through = w->g.Z + STATE_CHUNK; /* F */
    if (!k->ends) mix_states(J, through, READERS, 1, n, E);
    for (int64_t i = 0; i < J; i++) {
        const real *reads = reads_of(w, i);
        for (int64_t t = 0; t < STATE_CHUNK; t++) scale_row(KW, reads[t], w->Q + t * KW, w->part_keys + t * KW);
        chunk_product((struct extent){KW, w->VW, STATE_CHUNK}, (struct factor){w->part_keys, 1, KW},
                      (struct right){w->W, w->VW}, kept_part(J, through, k->ends), E + i * n, w->VW);
    }
}

FORCE_INLINE void put_rows(const struct outer_rows *rows, const struct chunk *k, bool add, int64_t n, const real *from,
                           int64_t width) {
    if (!rows->d) return;
    for (int64_t t = 0; t < k->count; t++) {
        real *to = rows->d + (k->first + t) * rows->step;
        if (!add && !rows->add) copy_row(n, from + t * width, to);
        for (int64_t i = 0; (add || rows->add) && i < n; i++) to[i] += from[t * width + i];
    }
}

/* Computes the gradients of one chunk of one head. C has the states before it. E is the gradient of the states after
 * it, and becomes the gradient of the states before it. add: another head has already written dq and dk. */
FORCE_INLINE void backward_sized(const struct outer_head *h, const struct work *w, const struct chunk *k, const real *C,
                                 real *E, bool add) {
    int64_t KW = w->KW, VW = w->VW, N = STATE_CHUNK;
    read_chunk(h, w, k);
    entry_gradients(w, k, C);
    exit_gradients(w, k, E);
    through_gradients(w, k, C, E);
    chunk_product((struct extent){N, N, w->dk}, (struct factor){w->K, KW, 1}, (struct right){w->Qt, N}, 0, w->keys, N);
    chunk_product((struct extent){N, N, w->dv}, (struct factor){w->V, VW, 1}, (struct right){w->Wt, N}, 0, w->values,
                  N);
    gate_scores(w);
    gate_gradients(w->J, &w->g);
    write_gates(h, k, w->J, &w->g);
    add_inner_gradients(w);
    put_rows(&h->q, k, add, w->dk, w->dQ, KW);
    put_rows(&h->k, k, add, w->dk, w->dK, KW);
    put_rows(&h->v, k, false, w->dv, w->dV, VW);
    if (!k->begins) pass_back(w, k, E);
}

STATE_EACH_SIZE(backward_chunk, backward_sized,
                (const struct outer_head *h, const struct work *w, const struct chunk *k, const real *C, real *E,
                 bool add),
                k, C, E, add)

/* --- bundles of heads through time -------------------------------------------------------------------------------- */

/* Heads `first` to `first + n - 1`, counted over the heads of all sequences. */
struct bundle {
    const struct outer_sizes *s;
    int64_t first, n;
    struct outer_head heads[STATE_BUNDLE];
};

static void pack_states(const struct work *w, const real *C, real *kept) {
    for (int64_t j = 0; j < w->J; j++) pack_rows(w->dk, w->dv, C + j * w->KW * w->VW, w->VW, kept + j * w->dk * w->dv);
}

/* Returns the stored states: in place if they need no padding, else copied to w->padded. */
static const real *padded_states(const struct work *w, const real *kept) {
    if (w->dk == w->KW && w->dv == w->VW) return kept;
    memset(w->padded, 0, (size_t)(w->J * w->KW * w->VW) * sizeof *w->padded);
    for (int64_t j = 0; j < w->J; j++)
        unpack_rows(w->dk, w->dv, kept + j * w->dk * w->dv, w->VW, w->padded + j * w->KW * w->VW);
    return w->padded;
}

static struct chunk_gates gates_of(const struct work *w, int64_t h) {
    struct chunk_gates g = w->g;
    g.T = w->all.T.at + h * w->all.T.stride;
    g.S = w->all.S.at + h * w->all.S.stride;
    g.M = w->all.M.at + h * w->all.M.stride;
    g.D = w->all.D.at + h * w->all.D.stride;
    return g;
}

/* Sets the states X of n heads to 0. X is C, E, or the copies of one stretch. */
static void clear_states(const struct work *w, int64_t n, struct scratch_rows X) {
    for (int64_t h = 0; h < n; h++) memset(X.at + h * X.stride, 0, (size_t)(w->J * w->KW * w->VW) * sizeof *X.at);
}

static void copy_states(const struct work *w, int64_t n, struct scratch_rows from, struct scratch_rows to) {
    for (int64_t h = 0; h < n; h++)
        memcpy(to.at + h * to.stride, from.at + h * from.stride, (size_t)(w->J * w->KW * w->VW) * sizeof *to.at);
}

/* Reads the gates of chunk k for all heads, which are adjacent in memory, long before they are read as vectors. */
static void read_all_gates(const struct bundle *b, const struct work *w, const struct chunk *k) {
    for (int64_t h = 0; h < b->n; h++) {
        struct chunk_gates g = gates_of(w, h);
        if (w->J == 1)
            read_gates(1, &b->heads[h], k, &g);
        else
            read_gates(w->J, &b->heads[h], k, &g);
    }
}

/* Prefetches the inputs of chunk i of a head. */
static void prefetch_chunk(const struct outer_sizes *s, const struct outer_head *h, int64_t i, enum pass pass) {
    struct chunk k = chunk_at(s, i);
    prefetch_rows(k.count, s->dk, h->q.at + k.first * h->q.step, h->q.step);
    prefetch_rows(k.count, s->dk, h->k.at + k.first * h->k.step, h->k.step);
    prefetch_rows(k.count, s->dv, h->v.at + k.first * h->v.step, h->v.step);
    if (pass == PASS_BACKWARD) prefetch_rows(k.count, s->dv, h->d_o + k.first * h->o_step, h->o_step);
}

/* Computes the states C of all heads of the bundle, from before chunk `begin` to before chunk `end`. Stores the states
 * before each chunk in the heads' `kept`, if they have it, beginning at its start. */
static void forward_bundle(const struct bundle *b, const struct work *w, int64_t begin, int64_t end, bool read,
                           struct scratch_rows states) {
    for (int64_t i = begin; i < end; i++) {
        struct chunk k = chunk_at(b->s, i);
        read_all_gates(b, w, &k);
        for (int64_t h = 0; h < b->n; h++) {
            const struct outer_head *head = &b->heads[h];
            struct work own = *w;
            own.g = gates_of(w, h);
            real *C = states.at + h * states.stride;
            if (i + 1 < end) prefetch_chunk(b->s, head, i + 1, PASS_FORWARD);
            if (head->kept) pack_states(w, C, head->kept + (i - begin) * head->kept_step);
            forward_chunk(head, &own, &k, read, C);
        }
    }
}

/* Computes the gradients of chunks end - 1 down to `begin`. E becomes the gradient of the states before these. */
static void backward_bundle(const struct bundle *b, const struct work *w, int64_t begin, int64_t end) {
    for (int64_t i = end - 1; i >= begin; i--) {
        struct chunk k = chunk_at(b->s, i);
        read_all_gates(b, w, &k);
        for (int64_t h = 0; h < b->n; h++) {
            const struct outer_head *head = &b->heads[h];
            struct work own = *w;
            own.g = gates_of(w, h);
            bool add = (b->first + h) % b->s->share > 0;
            if (i > begin) {
                prefetch_chunk(b->s, head, i - 1, PASS_BACKWARD);
                prefetch_rows(1, w->J * w->dk * w->dv, head->kept + (i - 1 - begin) * head->kept_step, 0);
            }
            const real *C = padded_states(w, head->kept + (i - begin) * head->kept_step);
            backward_chunk(head, &own, &k, C, w->all.E.at + h * w->all.E.stride, add);
        }
    }
}

/* Computes the gradients if forward stored no states. First it goes forward over all stretches except the last, and
 * copies the states before each stretch. Then it takes the stretches from the last to the first: it computes the states
 * before each chunk of the stretch again, and then the gradients. */
static void backward_again(struct bundle *b, const struct work *w) {
    int64_t stretch = stretch_of(b->s), last = (w->chunks - 1) / stretch, packed = w->J * w->dk * w->dv;
    struct scratch_rows copies = w->all.copies;
    clear_states(w, b->n, w->all.C);
    for (int64_t i = 0; i <= last; i++, copies.at += bundle_heads(b->s) * copies.stride) {
        copy_states(w, b->n, w->all.C, copies);
        if (i < last) forward_bundle(b, w, i * stretch, (i + 1) * stretch, false, w->all.C);
    }
    for (int64_t h = 0; h < b->n; h++) {
        b->heads[h].kept = w->all.kept.at + h * w->all.kept.stride;
        b->heads[h].kept_step = packed;
    }
    for (int64_t i = last; i >= 0; i--) {
        int64_t begin = i * stretch, end = begin + stretch < w->chunks ? begin + stretch : w->chunks;
        copies.at -= bundle_heads(b->s) * copies.stride;
        forward_bundle(b, w, begin, end, false, copies);
        backward_bundle(b, w, begin, end);
    }
}

static void run_bundle(struct bundle *b, enum pass pass, const struct work *w) {
    clear_states(w, b->n, pass == PASS_FORWARD ? w->all.C : w->all.E);
    if (pass == PASS_FORWARD)
        forward_bundle(b, w, 0, w->chunks, true, w->all.C);
    else if (b->s->keeps)
        backward_bundle(b, w, 0, w->chunks);
    else
        backward_again(b, w);
}

/* Returns the number of parts. Heads with the same q and k add to the same dq and dk, so they are in one part. */
static int64_t part_count(const struct outer_sizes *s) {
    return state_parts(s->B * s->heads / s->share);
}

size_t outer_chunks_bytes(const struct call *c, const struct outer_sizes *s, enum pass pass) {
    struct scratch scratch = scratch_measure(c);
    for (int64_t p = 0; p < part_count(s); p++) work_of(s, pass, &scratch);
    return scratch.used;
}

static void run_part(const struct call *c, const struct outer_sizes *s, enum pass pass, outer_head_at *head_at,
                     struct range heads, struct scratch scratch) {
    struct bundle b = {.s = s};
    struct work w = work_of(s, pass, &scratch);
    for (int64_t most = bundle_heads(s), first = heads.begin; first < heads.end; first += most) {
        b.first = first;
        b.n = heads.end - first < most ? heads.end - first : most;
        for (int64_t h = 0; h < b.n; h++) b.heads[h] = head_at(c, (first + h) / s->heads, (first + h) % s->heads);
        run_bundle(&b, pass, &w);
    }
}

void outer_chunks_run(const struct call *c, const struct outer_sizes *s, enum pass pass, outer_head_at *head_at) {
    int64_t parts = part_count(s), groups = s->B * s->heads / s->share;
    struct scratch all = scratch_of(c, pass);
#pragma omp parallel for schedule(static) if (s->B * s->T * s->heads * s->J * s->dk * s->dv > PARALLEL_MIN)
    for (int64_t p = 0; p < parts; p++) {
        struct range part = part_at(groups, parts, p);
        struct range heads = {part.begin * s->share, part.end * s->share};
        run_part(c, s, pass, head_at, heads, scratch_part(&all, p, parts));
    }
}
