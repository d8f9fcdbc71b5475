/* scan_delta_vector_cpu.c - all forms of the delta rule (scan_delta.c) on the CPU, 16 steps at a time, by the UT
 * transform with a decay per channel (Kimi Team 2025). Only this kernel is fast for the forms with a decay per channel,
 * with read and erase vectors, or without beta.
 *
 * A chunk is N = 16 consecutive steps, one row per step. Row i has
 *   d_i  the vector that reads the state: rate beta k_i, or rate read_i, or 0
 *   k_i  the vector that writes the value u_i = m v_i, where m = rate beta, or 1 without beta
 *   e_i  the vector that erases; without it, k_i erases too
 *   F_i  the decays that the state takes before the step: 1 except at a token's first step
 *   q_i  the query: 0 except at a token's last step
 * d and q are the readers; k and, if given, e are the writers. From row j to row i the state is multiplied by the
 * decays P(j,i) = F_{j+1} o ... o F_i (o is the product element by element). Row -1 stands for the state S before the
 * chunk, row N for the state after it. Row i reads the value that row j wrote with the factor X[j][i], for j < i if the
 * reader is d, for j <= i if it is q:
 *   X[j][i] = sum_c reader_i[c] writer_j[c] P(j,i)[c]
 *   R_i = (P(-1,i) o reader_i) S             is what row i reads from S: R_d with d, R_q with q
 *   Without e, k writes Z:                   (I + X_d^T) Z = U - R_d
 *   With e, k writes U and e writes Z:       (I + X_de^T) Z = -R_d - X_dk^T U
 *   O = scale (R_q + X_q^T (U, Z));   S <- P(-1,N) o S + (writer_j o P(j,N))^T (U, Z)
 * The kernel never divides by a decay: it carries a copy of each writer's row through the rows after it and multiplies
 * the copy by each F_i. So decays may be 0, and nothing overflows. Dividing by products of decays would make X one
 * product of matrices, but would lose both properties. Adjoint: Let C be the right side of the equation for Z. Its
 * gradient dC follows from (I + X_d) dC = dZ, with X_de for X_d if e is given. Then -dC is the gradient of R_d, and W =
 * scale dO is the gradient of R_q. The gradient of X[j][i] is the scalar product of reader i's row of (-dC, W) with the
 * value that j wrote. The gradients of F, readers and writers come last and are computed from the last row to the
 * first. */
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/scratch.h"
#include "kernels/matrix/delta/solve.h"
#include "kernels/matrix/delta/writer_scores.h"

enum { N = STATE_CHUNK, TWO = 2 * STATE_CHUNK };

/* One head of one batch element. */
struct head {
    const struct call *c;
    struct state_shape s;
    int64_t b, h, KW, VW, rows; /* KW, VW: dk and dv padded; rows: steps of a whole sequence */
    bool reads, erases;         /* the op has d (beta or read); it has e */
    int64_t writers;            /* rows of writers: N, or TWO with e */
    int64_t reader;             /* the first row of readers that is not all zeros: 0, or N without d */
};

/* Matrices of one chunk, each in its own array. A state is kept if forward stored it: state.h says which. */
struct matrices {
    real *readers;    /* TWO x KW: d, then q */
    real *writers;    /* TWO x KW: k, then e */
    real *F;          /* N x KW */
    real *from_start; /* TWO x KW: readers o P(-1,i) */
    real *to_end;     /* TWO x KW: writers o P(j,N) */
    real *through;    /* KW: P(-1,N) */
    real *X;          /* TWO x TWO: [writer][reader] */
    real *solved;     /* N x N: -X_d for the writers whose values are Z */
    real *direct;     /* N x N: -X_dk, if e is given */
    real *written;    /* TWO x VW: with e, U then Z; without e, only Z, which is U if no vector d reads */
    real *seen;       /* TWO x VW: R_d, then R_q, which becomes O */
    real *S;          /* KW x VW: the state before the chunk */
    /* Only backward has the following. */
    real *G;        /* KW x VW: the gradient of the state after the chunk */
    real *St, *Gt;  /* S and G transposed */
    real *PW, *PWt; /* TWO x VW: (-dC, W), and its transpose */
    real *d_written, *dX, *d_readers, *d_writers, *dF, *d_through; /* gradients, with the shapes from above */
    real *d_seen;                                                  /* TWO x KW: the gradient of from_start */
    real *d_end;                                                   /* TWO x KW: the gradient of to_end */
    /* Forward: the state S of each head of the bundle. Backward: the states S before the chunks from one kept state to
     * the next, of one head; and the gradient G of each head. */
    struct scratch_rows states, all_G;
};

static struct matrices matrices_of(const struct head *d, enum pass pass, struct scratch *scratch) {
    int64_t KW = d->KW, VW = d->VW;
    struct matrices m = {0};
    const struct scratch_array both[] = {{&m.readers, TWO * KW},    {&m.writers, TWO * KW}, {&m.F, N * KW},
                                         {&m.from_start, TWO * KW}, {&m.to_end, TWO * KW},  {&m.through, KW},
                                         {&m.X, TWO * TWO},         {&m.solved, SCORES},    {&m.direct, SCORES},
                                         {&m.written, TWO * VW},    {&m.seen, TWO * VW}};
    const struct scratch_array backward[] = {
        {&m.St, KW * VW},         {&m.Gt, KW * VW},         {&m.PW, TWO * VW},     {&m.PWt, TWO * VW},
        {&m.d_written, TWO * VW}, {&m.dX, TWO * TWO},       {&m.d_seen, TWO * KW}, {&m.d_end, TWO * KW},
        {&m.d_readers, TWO * KW}, {&m.d_writers, TWO * KW}, {&m.dF, N * KW},       {&m.d_through, KW}};
    int64_t heads = heads_side_by_side(KW * VW);
    scratch_take(scratch, both, sizeof both / sizeof *both);
    m.states = scratch_rows(scratch, pass == PASS_FORWARD ? heads : d->s.steps, KW * VW);
    if (pass == PASS_FORWARD) return m;
    scratch_take(scratch, backward, sizeof backward / sizeof *backward);
    m.all_G = scratch_rows(scratch, heads, KW * VW);
    return m;
}

/* --- a chunk forwards --------------------------------------------------------------------------------------------- */

/* Row i of the chunk that begins at row `first` of the sequence. */
struct row {
    bool in;              /* the row lies inside the sequence */
    bool begins, ends;    /* it is the first step of its token; the last one */
    int64_t token, index; /* index: the row of this step and head among the token's rows of k, v and beta */
    real b;               /* m of the equations: rate beta, or 1 without beta */
};

FORCE_INLINE struct row row_at(const struct head *d, int64_t first, int64_t i) {
    int64_t steps = d->s.steps, r = first + i, t = steps == 1 ? r : r / steps, j = r - t * steps;
    struct row row = {r < d->rows, j == 0, j == steps - 1, d->b * d->s.T + t, j * d->s.heads + d->h, 1};
    if (row.in && d->c->in[DELTA_BETA])
        row.b = (real)delta_attr(d->c)->rate * *value_row(d->c, DELTA_BETA, row.token, row.index, 1);
    return row;
}

/* to[0..n-1] = factor * from, and zeros up to width; only zeros if from is NULL. */
FORCE_INLINE void read_row(int64_t n, int64_t width, real factor, const real *restrict from, real *restrict to) {
    int64_t i = 0;
    for (; from && i < n; i++) to[i] = factor * from[i];
    for (; i < width; i++) to[i] = 0;
}

/* Returns a row of input i that the chunk reads, or NULL. */
FORCE_INLINE const real *input_row(const struct call *c, int i, const struct row *r, int64_t index, int64_t n) {
    return r->in ? value_row(c, i, r->token, index, n) : NULL;
}

static void read_chunk(const struct head *d, int64_t first, const struct matrices *m) {
    const struct call *c = d->c;
    int64_t KW = d->KW, VW = d->VW, dk = d->s.dk, decays = delta_decays(c);
    real rate = (real)delta_attr(c)->rate;
    if (d->erases) memset(m->written + N * VW, 0, (size_t)(N * VW) * sizeof(real));
    for (int64_t i = 0; i < N; i++) {
        struct row r = row_at(d, first, i);
        const real *k = input_row(c, DELTA_K, &r, r.index, dk), *read = input_row(c, DELTA_READ, &r, r.index, dk);
        const real *decay = r.begins ? input_row(c, DELTA_DECAY, &r, d->h, decays) : NULL;
        real *F = m->F + i * KW;
        int64_t scaled = decay ? dk : 0;
        for (int64_t j = 0; decays == 1 && j < scaled; j++) F[j] = decay[0];
        for (int64_t j = 0; decays > 1 && j < scaled; j++) F[j] = decay[j];
        for (int64_t j = scaled; j < KW; j++) F[j] = 1;
        bool reads_key = c->in[DELTA_BETA] != NULL;
        if (d->reads) read_row(dk, KW, reads_key ? r.b : rate, reads_key ? k : read, m->readers + i * KW);
        read_row(dk, KW, 1, r.ends ? input_row(c, DELTA_Q, &r, d->h, dk) : NULL, m->readers + (N + i) * KW);
        read_row(dk, KW, 1, k, m->writers + i * KW);
        if (d->erases) read_row(dk, KW, 1, input_row(c, DELTA_ERASE, &r, r.index, dk), m->writers + (N + i) * KW);
        read_row(d->s.dv, VW, r.b, input_row(c, DELTA_V, &r, r.index, d->s.dv), m->written + i * VW);
    }
}

static void scale_readers(bool reads, int64_t KW, const struct matrices *m) {
    for (int64_t c = 0; c < KW; c += LANES) {
        lanes y = all_lanes(1);
        for (int64_t i = 0; i < N; i++) {
            y *= lanes_at(m->F + i * KW + c);
            if (reads) lanes_to(m->from_start + i * KW + c, y * lanes_at(m->readers + i * KW + c));
            lanes_to(m->from_start + (N + i) * KW + c, y * lanes_at(m->readers + (N + i) * KW + c));
        }
        lanes_to(m->through + c, y);
    }
}

/* Copies -X of N writers and the readers d to `to`. */
static void minus_scores(const real *X, real *to) {
    for (int64_t j = 0; j < N; j++)
        for (int64_t i = 0; i < N; i++) to[j * N + i] = -X[j * TWO + i];
}

/* Computes the values that the chunk's rows write, and what rows `reader` to `end` - 1 of the readers read from m->S,
 * the state before the chunk. Backward has no use for what the queries read. */
static void solve_chunk(const struct head *d, int64_t first, int64_t end, const struct matrices *m) {
    int64_t KW = d->KW, VW = d->VW, begin = d->reader;
    read_chunk(d, first, m);
    for (int64_t w = 0; w < d->writers; w += N) {
        if (d->reads)
            scores_of(true, m->F, m->readers, KW, m->writers + w * KW, m->to_end + w * KW, m->X + w * TWO);
        else
            scores_of(false, m->F, m->readers, KW, m->writers + w * KW, m->to_end + w * KW, m->X + w * TWO);
    }
    scale_readers(d->reads, KW, m);
    if (begin < end)
        chunk_product((struct extent){end - begin, VW, KW}, (struct factor){m->from_start + begin * KW, KW, 1},
                      (struct right){m->S, VW}, 0, m->seen + begin * VW, VW);
    if (!d->reads) return;
    real *Z = m->written + (d->erases ? N * VW : 0);
    for (int64_t i = 0; i < N; i++) add_row(VW, -1, m->seen + i * VW, Z + i * VW);
    if (d->erases) {
        minus_scores(m->X, m->direct);
        triangle_product(LOWER, VW, (struct factor){m->direct, 1, N}, (struct right){m->written, VW}, 1, Z, VW);
    }
    minus_scores(m->X + (d->erases ? N * TWO : 0), m->solved);
    for (int64_t j = 0; j < VW; j += LANES) solve_down(m->solved, Z + j, VW);
}

static void write_outputs(const struct head *d, int64_t first, const struct matrices *m) {
    int64_t VW = d->VW, dv = d->s.dv;
    real *O = m->seen + N * VW, scale = (real)delta_attr(d->c)->scale;
    for (int64_t w = 0; w < d->writers; w += N)
        triangle_product(LOWER, VW, (struct factor){m->X + w * TWO + N, 1, TWO},
                         (struct right){m->written + w * VW, VW}, 1, O, VW);
    for (int64_t i = 0; i < N; i++) {
        struct row r = row_at(d, first, i);
        if (r.in && r.ends)
            read_row(dv, dv, scale, O + i * VW, tensor_real(d->c->out[0]) + (r.token * d->s.heads + d->h) * dv);
    }
}

/* Turns S from the state before the chunk into the state after it. */
static void next_state(const struct head *d, const struct matrices *m, real *S) {
    int64_t KW = d->KW, VW = d->VW;
    for (int64_t i = 0; i < KW; i++) scale_row(VW, m->through[i], S + i * VW, S + i * VW);
    chunk_product((struct extent){KW, VW, d->writers}, (struct factor){m->to_end, 1, KW},
                  (struct right){m->written, VW}, 1, S, VW);
}

/* Prefetches the inputs of the rows from `first` on, of one chunk. */
static void prefetch_chunk(const struct head *d, int64_t first, enum pass pass) {
    const struct call *c = d->c;
    int64_t H = d->s.heads, steps = d->s.steps, dk = d->s.dk, dv = d->s.dv, decays = delta_decays(c);
    int64_t begin = first / steps, end = (first + N < d->rows ? first + N : d->rows) / steps;
    int64_t token = d->b * d->s.T + begin, tokens = end - begin, rows = tokens * steps;
    prefetch_rows(rows, dk, value_row(c, DELTA_K, token, d->h, dk), H * dk);
    prefetch_rows(rows, dv, value_row(c, DELTA_V, token, d->h, dv), H * dv);
    prefetch_rows(rows, dk, value_row(c, DELTA_READ, token, d->h, dk), H * dk);
    prefetch_rows(rows, dk, value_row(c, DELTA_ERASE, token, d->h, dk), H * dk);
    prefetch_rows(tokens, dk, value_row(c, DELTA_Q, token, d->h, dk), H * dk);
    prefetch_rows(tokens, decays, value_row(c, DELTA_DECAY, token, d->h, decays), H * decays);
    if (pass == PASS_BACKWARD) prefetch_rows(tokens, dv, call_dout(c, 0) + (token * H + d->h) * dv, H * dv);
}

/* Computes n heads together: a chunk of all heads, then the next chunk. */
static void forward_heads(const struct head *d, int64_t n, struct matrices *m) {
    for (int64_t h = 0; h < n; h++)
        memset(m->states.at + h * m->states.stride, 0, (size_t)(d->KW * d->VW) * sizeof(real));
    for (int64_t first = 0; first < d->rows; first += N)
        for (int64_t h = 0; h < n; h++) {
            const struct state_shape *s = &d->s;
            m->S = m->states.at + h * m->states.stride;
            if (first + N < d->rows) prefetch_chunk(d + h, first + N, PASS_FORWARD);
            if (first % (N * s->steps) == 0)
                keep_state(s, m->S, d->VW, kept_state(d->c, s, d[h].b, first / (N * s->steps), d[h].h));
            solve_chunk(d + h, first, TWO, m);
            write_outputs(d + h, first, m);
            if (first + N < d->rows) next_state(d, m, m->S);
        }
}

/* --- a chunk backwards -------------------------------------------------------------------------------------------- */

static void read_output_gradient(const struct head *d, int64_t first, real *W) {
    int64_t VW = d->VW, dv = d->s.dv;
    memset(W, 0, (size_t)(N * VW) * sizeof *W);
    for (int64_t i = 0; i < N; i++) {
        struct row r = row_at(d, first, i);
        if (r.in && r.ends)
            read_row(dv, VW, (real)delta_attr(d->c)->scale, call_dout(d->c, 0) + (r.token * d->s.heads + d->h) * dv,
                     W + i * VW);
    }
}

/* Computes the gradients of the written values and of R_d (-dC), then of the scores X, of from_start, to_end and
 * `through`. */
static void value_gradients(const struct head *d, int64_t first, const struct matrices *m) {
    int64_t KW = d->KW, VW = d->VW, writers = d->writers;
    real *W = m->PW + N * VW, *dU = m->d_written, *dC = dU + (d->erases ? N * VW : 0);
    read_output_gradient(d, first, W);
    chunk_product((struct extent){writers, VW, KW}, (struct factor){m->to_end, KW, 1}, (struct right){m->G, VW}, 0, dU,
                  VW);
    for (int64_t w = 0; w < writers; w += N)
        triangle_product(UPPER, VW, (struct factor){m->X + w * TWO + N, TWO, 1}, (struct right){W, VW}, 1, dU + w * VW,
                         VW);
    if (d->reads) {
        for (int64_t j = 0; j < VW; j += LANES) solve_up(m->solved, dC + j, VW);
        if (d->erases) triangle_product(UPPER, VW, (struct factor){m->direct, N, 1}, (struct right){dC, VW}, 1, dU, VW);
        for (int64_t i = 0; i < N; i++) scale_row(VW, -1, dC + i * VW, m->PW + i * VW);
    }
    int64_t begin = d->reader, rows = TWO - begin;
    transpose(rows, VW, m->PW + begin * VW, VW, m->PWt + begin, TWO);
    transpose(KW, VW, m->S, VW, m->St, KW);
    transpose(KW, VW, m->G, VW, m->Gt, KW);
    chunk_product((struct extent){writers, rows, VW}, (struct factor){m->written, VW, 1},
                  (struct right){m->PWt + begin, TWO}, 0, m->dX + begin, TWO);
    chunk_product((struct extent){rows, KW, VW}, (struct factor){m->PW + begin * VW, VW, 1}, (struct right){m->St, KW},
                  0, m->d_seen + begin * KW, KW);
    chunk_product((struct extent){writers, KW, VW}, (struct factor){m->written, VW, 1}, (struct right){m->Gt, KW}, 0,
                  m->d_end, KW);
    for (int64_t i = 0; i < KW; i += LANES) {
        lanes sums[LANES];
        for (int r = 0; r < LANES; r++) sums[r] = lane_products(VW, m->G + (i + r) * VW, m->S + (i + r) * VW);
        lanes_to(m->d_through + i, ordered_sums(sums));
    }
}

/* LANES channels of all rows of the chunk. The gradients dd, dq and dF are sums over the writers. */
struct channels {
    lanes d[N], q[N], F[N], dd[N], dq[N], dF[N];
};

/* Starts the sums dd, dq and dF with the part that comes from the state before the chunk. This state reaches readers
 * as a writer's row does; y[i + 1] is the product of the decays up to row i. */
FORCE_INLINE void entry_gradients(bool reads, int64_t KW, int64_t c, const struct matrices *m, struct channels *x) {
    lanes y[N + 1], dy = lanes_at(m->d_through + c);
    y[0] = all_lanes(1);
    for (int i = 0; i < N; i++) y[i + 1] = x->F[i] * y[i];
    for (int i = N - 1; i >= 0; i--) {
        lanes of_q = lanes_at(m->d_seen + (N + i) * KW + c);
        x->dq[i] = y[i + 1] * of_q;
        dy = lanes_fma(x->q[i], of_q, dy);
        if (reads) {
            lanes of_d = lanes_at(m->d_seen + i * KW + c);
            x->dd[i] = y[i + 1] * of_d;
            dy = lanes_fma(x->d[i], of_d, dy);
        }
        x->dF[i] = dy * y[i];
        dy *= x->F[i];
    }
}

/* Adds to dd, dq and dF what row i, which comes after row j of a writer, contributes to them, and updates dy. y is the
 * writer's copy at row i, `before` at row i - 1. dX is the writer's row of m->dX. */
FORCE_INLINE lanes row_parts(bool reads, int64_t i, const real *dX, lanes y, lanes before, lanes dy,
                             struct channels *x) {
    x->dq[i] = lanes_axpy(dX[N + i], y, x->dq[i]);
    dy = lanes_axpy(dX[N + i], x->q[i], dy);
    if (reads) {
        x->dd[i] = lanes_axpy(dX[i], y, x->dd[i]);
        dy = lanes_axpy(dX[i], x->d[i], dy);
    }
    x->dF[i] = lanes_fma(dy, before, x->dF[i]);
    return dy * x->F[i];
}

/* Computes the gradients of the writers of rows j and j + 1, and adds their parts to dd, dq and dF. Both go through
 * the rows together, so that each row's sums are read and written once. dy: the gradients of the writers' copies that
 * have all decays up to the chunk's end. */
FORCE_INLINE void writer_gradients(bool reads, int64_t j, const lanes *writer, lanes *dy, const real *dX,
                                   struct channels *x) {
    lanes y[N], z[N];
    y[j] = writer[0];
    z[j + 1] = writer[1];
    y[j + 1] = x->F[j + 1] * y[j];
    for (int64_t i = j + 2; i < N; i++) {
        y[i] = x->F[i] * y[i - 1];
        z[i] = x->F[i] * z[i - 1];
    }
    for (int64_t i = N - 1; i > j + 1; i--) {
        dy[0] = row_parts(reads, i, dX, y[i], y[i - 1], dy[0], x);
        dy[1] = row_parts(reads, i, dX + TWO, z[i], z[i - 1], dy[1], x);
    }
    dy[0] = row_parts(reads, j + 1, dX, y[j + 1], y[j], dy[0], x);
    x->dq[j + 1] = lanes_axpy(dX[TWO + N + j + 1], writer[1], x->dq[j + 1]);
    dy[1] = lanes_axpy(dX[TWO + N + j + 1], x->q[j + 1], dy[1]);
    x->dq[j] = lanes_axpy(dX[N + j], writer[0], x->dq[j]);
    dy[0] = lanes_axpy(dX[N + j], x->q[j], dy[0]);
}

FORCE_INLINE void row_gradients(bool reads, const struct head *d, const struct matrices *m) {
    int64_t KW = d->KW;
    for (int64_t c = 0; c < KW; c += LANES) {
        struct channels x;
        for (int i = 0; i < N; i++) {
            if (reads) x.d[i] = lanes_at(m->readers + i * KW + c);
            x.q[i] = lanes_at(m->readers + (N + i) * KW + c);
            x.F[i] = lanes_at(m->F + i * KW + c);
        }
        entry_gradients(reads, KW, c, m, &x);
        for (int64_t j = 0; j < d->writers; j += 2) {
            const real *writer = m->writers + j * KW + c, *end = m->d_end + j * KW + c;
            lanes rows[2] = {lanes_at(writer), lanes_at(writer + KW)}, dy[2] = {lanes_at(end), lanes_at(end + KW)};
            writer_gradients(reads, j % N, rows, dy, m->dX + j * TWO, &x);
            lanes_to(m->d_writers + j * KW + c, dy[0]);
            lanes_to(m->d_writers + (j + 1) * KW + c, dy[1]);
        }
        for (int i = 0; i < N; i++) {
            if (reads) lanes_to(m->d_readers + i * KW + c, x.dd[i]);
            lanes_to(m->d_readers + (N + i) * KW + c, x.dq[i]);
            lanes_to(m->dF + i * KW + c, x.dF[i]);
        }
    }
}

static void write_row(const struct call *c, int i, int64_t token, int64_t index, int64_t n, real factor,
                      const real *restrict from) {
    real *restrict to = gradient_row(c, i, token, index, n);
    if (to && call_accumulates(c, i))
        for (int64_t j = 0; j < n; j++) to[j] += factor * from[j];
    else if (to)
        for (int64_t j = 0; j < n; j++) to[j] = factor * from[j];
}

static real dot(int64_t n, const real *a, const real *b) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* Computes the gradients of beta of all rows. Rows of whole vectors are summed LANES at a time, in the order of dot. */
FORCE_INLINE void beta_gradients(const struct head *d, int64_t first, const struct matrices *m, real *d_beta) {
    int64_t dk = d->s.dk, dv = d->s.dv;
    real rate = (real)delta_attr(d->c)->rate;
    for (int64_t i = 0; i < N; i += LANES) {
        lanes keys[LANES] = {0}, values[LANES] = {0};
        for (int64_t r = i; r < i + LANES; r++) {
            struct row row = row_at(d, first, r);
            if (!row.in) break;
            const real *k = value_row(d->c, DELTA_K, row.token, row.index, dk), *d_read = m->d_readers + r * d->KW;
            const real *v = value_row(d->c, DELTA_V, row.token, row.index, dv), *dU = m->d_written + r * d->VW;
            if (dk % LANES || dv % LANES) {
                d_beta[r] = rate * (dot(dk, k, d_read) + dot(dv, v, dU));
            } else {
                keys[r - i] = lane_products(dk, k, d_read);
                values[r - i] = lane_products(dv, v, dU);
            }
        }
        if (dk % LANES == 0 && dv % LANES == 0)
            lanes_to(d_beta + i, rate * (ordered_sums(keys) + ordered_sums(values)));
    }
}

static void write_gradients(const struct head *d, int64_t first, const struct matrices *m) {
    const struct call *c = d->c;
    int64_t KW = d->KW, VW = d->VW, dk = d->s.dk, dv = d->s.dv;
    real rate = (real)delta_attr(c)->rate, d_beta[N];
    if (c->in[DELTA_BETA]) beta_gradients(d, first, m, d_beta);
    for (int64_t i = 0; i < N; i++) {
        struct row r = row_at(d, first, i);
        if (!r.in) return;
        real *d_read = m->d_readers + i * KW, *d_key = m->d_writers + i * KW, *dF = m->dF + i * KW;
        real *dU = m->d_written + i * VW;
        if (c->in[DELTA_BETA]) {
            write_row(c, DELTA_BETA, r.token, r.index, 1, 1, d_beta + i);
            add_row(KW, r.b, d_read, d_key);
        }
        write_row(c, DELTA_K, r.token, r.index, dk, 1, d_key);
        write_row(c, DELTA_V, r.token, r.index, dv, r.b, dU);
        write_row(c, DELTA_READ, r.token, r.index, dk, rate, d_read);
        if (d->erases) write_row(c, DELTA_ERASE, r.token, r.index, dk, 1, m->d_writers + (N + i) * KW);
        if (r.ends) write_row(c, DELTA_Q, r.token, d->h, dk, 1, m->d_readers + (N + i) * KW);
        if (!r.begins || !c->din[DELTA_DECAY]) continue;
        for (int64_t j = 1; j < dk && delta_decays(c) == 1; j++) dF[0] += dF[j];
        write_row(c, DELTA_DECAY, r.token, d->h, delta_decays(c), 1, dF);
    }
}

static void backward_chunk(const struct head *d, int64_t first, const struct matrices *m) {
    int64_t KW = d->KW, VW = d->VW;
    solve_chunk(d, first, N, m);
    value_gradients(d, first, m);
    if (d->reads)
        row_gradients(true, d, m);
    else
        row_gradients(false, d, m);
    write_gradients(d, first, m);
    for (int64_t i = 0; i < KW; i++) scale_row(VW, m->through[i], m->G + i * VW, m->G + i * VW);
    int64_t begin = d->reader;
    chunk_product((struct extent){KW, VW, TWO - begin}, (struct factor){m->from_start + begin * KW, 1, KW},
                  (struct right){m->PW + begin * VW, VW}, 1, m->G, VW);
}

/* Computes the states before the chunks from one kept state to the next again, then the gradients of these chunks from
 * the last to the first. */
static void backward_between(const struct head *d, int64_t kept, struct matrices *m) {
    int64_t steps = d->s.steps, size = d->KW * d->VW;
    int64_t begin = kept * N * steps, chunks = (d->rows - begin + N - 1) / N;
    if (chunks > steps) chunks = steps;
    real *before = kept_state(d->c, &d->s, d->b, kept, d->h); /* the state before the first of these chunks */
    if (d->KW != d->s.dk || d->VW != d->s.dv) {
        memset(m->states.at, 0, (size_t)size * sizeof(real));
        unpack_rows(d->s.dk, d->s.dv, before, d->VW, m->states.at);
        before = m->states.at;
    }
    for (int64_t i = 0; i + 1 < chunks; i++) {
        real *next = m->states.at + (i + 1) * m->states.stride;
        m->S = i > 0 ? m->states.at + i * m->states.stride : before;
        solve_chunk(d, begin + i * N, N, m);
        memcpy(next, m->S, (size_t)size * sizeof(real));
        next_state(d, m, next);
    }
    for (int64_t i = chunks - 1; i >= 0; i--) {
        m->S = i > 0 ? m->states.at + i * m->states.stride : before;
        backward_chunk(d, begin + i * N, m);
    }
}

static void backward_heads(const struct head *d, int64_t n, struct matrices *m) {
    int64_t rows = N * d->s.steps; /* from one kept state to the next */
    for (int64_t h = 0; h < n; h++)
        memset(m->all_G.at + h * m->all_G.stride, 0, (size_t)(d->KW * d->VW) * sizeof(real));
    for (int64_t kept = d->s.chunks - 1; kept >= 0; kept--)
        for (int64_t h = 0; h < n; h++) {
            m->G = m->all_G.at + h * m->all_G.stride;
            for (int64_t first = (kept - 1) * rows; kept > 0 && first < kept * rows; first += N)
                prefetch_chunk(d + h, first, PASS_BACKWARD);
            backward_between(d + h, kept, m);
        }
}

/* --- both --------------------------------------------------------------------------------------------------------- */

static struct head head_at(const struct call *c, const struct state_shape *s, int64_t i) {
    bool erases = c->in[DELTA_ERASE] != NULL, reads = c->in[DELTA_BETA] || c->in[DELTA_READ];
    return (struct head){c,     *s,     i / s->heads,     i % s->heads, padded(s->dk), padded(s->dv), s->T * s->steps,
                         reads, erases, erases ? TWO : N, reads ? 0 : N};
}

static size_t scan_delta_vector_workspace(const struct call *c, enum pass pass) {
    struct state_shape s = delta_shape(c);
    struct head d = head_at(c, &s, 0);
    struct scratch scratch = scratch_measure(c);
    for (int64_t p = 0; p < state_parts(s.B * s.heads); p++) matrices_of(&d, pass, &scratch);
    return scratch.used;
}

static void run(const struct call *c, enum pass pass) {
    struct state_shape s = delta_shape(c);
    int64_t pairs = s.B * s.heads, parts = state_parts(pairs);
    struct head any = head_at(c, &s, 0);
    int64_t most = heads_side_by_side(any.KW * any.VW);
    struct scratch all = scratch_of(c, pass);
#pragma omp parallel for schedule(static) if (s.B * s.T * s.heads * s.dk * s.dv > PARALLEL_MIN)
    for (int64_t p = 0; p < parts; p++) {
        struct range part = part_at(pairs, parts, p);
        struct scratch own = scratch_part(&all, p, parts);
        struct matrices m = matrices_of(&any, pass, &own);
        for (int64_t i = part.begin; i < part.end; i += most) {
            struct head d[STATE_BUNDLE] = {any}; /* gcc 12 at -O1 does not see that n >= 1 */
            int64_t n = part.end - i < most ? part.end - i : most;
            for (int64_t h = 0; h < n; h++) d[h] = head_at(c, &s, i + h);
            if (pass == PASS_FORWARD)
                forward_heads(d, n, &m);
            else
                backward_heads(d, n, &m);
        }
        past_caches_done();
    }
}

static void scan_delta_vector_forward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_FORWARD);
}

static void scan_delta_vector_backward(const struct call *c, const struct exec *x) {
    (void)x;
    run(c, PASS_BACKWARD);
}

/* Tolerance: products of the state with vectors are sums of dk or dv terms in working precision, the solve inside a
 * chunk subtracts such sums from each other, and the state carries rounding errors through T steps. */
const struct kernel kernel_scan_delta_vector = {
    .name = "scan_delta_vector",
    .op = &op_scan_delta,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 256,
    .workspace = scan_delta_vector_workspace,
    .forward = scan_delta_vector_forward,
    .backward = scan_delta_vector_backward,
};
