/* scan_route_cpu.c - scan_route on the CPU. The equations are in scan_route.c.
 *
 * Nearly all of the work is the scores M. Each SIMD lane has one state that chooses, so LANES states make one vector.
 * The dictionary is first copied so that the numbers of a vector are neighbours in memory, and a few tokens share each
 * load of it. Forward keeps the largest M in registers. Backward computes the softmax of one vector of states for a few
 * tokens at a time, in a tile of scratch memory. Each thread gets vectors of states; if there are too few vectors, the
 * tokens are divided into chunks as well. The scan itself runs step by step, with one sequence per thread. */
#include <string.h>

#include "core/real_math.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/simd.h"
#include "kernels/route/route.h"

#define CHOOSE_TOKENS 8 /* tokens that share a load of the dictionary: enough sums to hide the latency of additions */
#define SOFT_TOKENS   4 /* tokens that share a load in backward, where a token needs more sums */
#define SOFT_SUMS     4 /* sums for ds per token that stay in registers */
#define PARTS         8 /* parts of backward's work, if there are enough tokens */

struct size {
    int64_t B, T, N, K, tokens, vectors, chunks;
    bool column;
};

static struct size size_of(const struct call *c) {
    const struct tensor *d = c->in[ROUTE_D];
    struct size z = {.B = d->dims[0], .T = d->dims[1], .N = d->dims[2], .tokens = d->dims[0] * d->dims[1]};
    z.K = c->in[ROUTE_S] ? tensor_cols(c->in[ROUTE_S]) : 0;
    z.vectors = (z.N + LANES - 1) / LANES;
    z.chunks = z.vectors >= PARTS ? 1 : PARTS / z.vectors;
    if (z.chunks > row_chunks(z.tokens)) z.chunks = row_chunks(z.tokens);
    z.column = scan_route_attr(c)->form == ROUTE_COLUMN;
    return z;
}

static int64_t width_at(const struct size *z, int64_t vector) {
    return z->N - vector * LANES < LANES ? z->N - vector * LANES : LANES;
}

/* start: h_{-1}, two planes of N. dict: the copied dictionary (vectors, N, K, LANES). Backward has more arrays:
 *   G       two planes (tokens, N)
 *   ddict   the part of ddict from each chunk of tokens (chunks, vectors, N, K, LANES)
 *   ds      the part of ds from each vector of states (vectors, tokens, K)
 *   tiles   one tile for each chunk of each vector */
struct work {
    real *start, *dict, *G[2], *ddict, *ds;
    struct scratch_rows tiles;
};

static struct work work_of(const struct size *z, enum pass pass, struct scratch *s) {
    struct work w = {.start = scratch_reals(s, 2 * z->N)};
    int64_t packed = z->vectors * z->N * z->K * LANES;
    for (int plane = 0; plane < 2 && pass == PASS_BACKWARD; plane++) w.G[plane] = scratch_reals(s, z->tokens * z->N);
    if (z->K == 0) return w;
    w.dict = scratch_reals(s, packed);
    if (pass == PASS_FORWARD) return w;
    w.ddict = scratch_reals(s, z->chunks * packed);
    w.ds = scratch_reals(s, z->vectors * z->tokens * z->K);
    w.tiles = scratch_rows(s, z->chunks * z->vectors, z->N * SOFT_TOKENS * LANES);
    return w;
}

static size_t scan_route_cpu_workspace(const struct call *c, enum pass pass) {
    struct size z = size_of(c);
    struct scratch s = scratch_measure(c);
    work_of(&z, pass, &s);
    return s.used;
}

static struct work work_begun(const struct call *c, const struct size *z, enum pass pass) {
    struct scratch s = scratch_of(c, pass);
    struct work w = work_of(z, pass, &s);
    memset(w.start, 0, (size_t)(2 * z->N) * sizeof *w.start);
    w.start[0] = z->column ? 0 : 1;
    int64_t rows = z->N * z->K;
#pragma omp parallel for schedule(static) if (rows * z->N > PARALLEL_MIN)
    for (int64_t v = 0; v < (w.dict ? z->vectors : 0); v++)
        for (int64_t r = 0; r < rows; r++)
            padded_row(width_at(z, v), LANES, 1, tensor_real(c->in[ROUTE_DICT]) + r * z->N + v * LANES,
                       w.dict + (v * rows + r) * LANES);
    return w;
}

/* --- the choice --------------------------------------------------------------------------------------------------- */

/* Computes M[j], the scores of a vector of states with one candidate, for n tokens j. dict (K,LANES) has the numbers of
 * this vector and candidate; s (n,K). */
FORCE_INLINE void scores(int n, int64_t K, const real *dict, const real *s, lanes *M) {
    for (int j = 0; j < n; j++) M[j] = (lanes){0};
    for (int64_t k = 0; k < K; k++) {
        lanes d = lanes_at(dict + k * LANES);
        for (int j = 0; j < n; j++) M[j] = lanes_fma(d, all_lanes(s[j * K + k]), M[j]);
    }
}

FORCE_INLINE void choose(int n, const struct call *c, const struct size *z, const real *dict, int64_t token,
                         int64_t vector) {
    const real *s = tensor_real(c->in[ROUTE_S]) + token * z->K;
    lanes top[CHOOSE_TOKENS], M[CHOOSE_TOKENS];
    lane_bits choice[CHOOSE_TOKENS];
    scores(n, z->K, dict, s, top);
    for (int j = 0; j < n; j++) choice[j] = (lane_bits){0};
    for (int from = 1; from < z->N; from++) {
        scores(n, z->K, dict + from * z->K * LANES, s, M);
        for (int j = 0; j < n; j++) {
            lane_bits higher = M[j] > top[j], number = (lane_bits){0} + from;
            top[j] = (lanes)(((lane_bits)M[j] & higher) | ((lane_bits)top[j] & ~higher));
            choice[j] = (number & higher) | (choice[j] & ~higher);
        }
    }
    for (int j = 0; j < n; j++) {
        int64_t e = (token + j) * z->N + vector * LANES, width = width_at(z, vector);
        for (int64_t i = 0; i < width; i++) {
            tensor_i32(c->out[ROUTE_CHOICE])[e + i] = (int32_t)choice[j][i];
            tensor_real(c->out[ROUTE_TOP])[e + i] = top[j][i];
        }
    }
}

static void choose_all(const struct call *c, const struct size *z, const real *dict) {
    int64_t chunks = row_chunks(z->tokens);
#pragma omp parallel for collapse(2) schedule(static) if (z->tokens * z->N * z->N * z->K > PARALLEL_MIN)
    for (int64_t v = 0; v < z->vectors; v++)
        for (int64_t i = 0; i < chunks; i++) {
            struct range part = part_at(z->tokens, chunks, i);
            const real *own = dict + v * z->N * z->K * LANES;
            int64_t token = part.begin;
            for (; token + CHOOSE_TOKENS <= part.end; token += CHOOSE_TOKENS)
                choose(CHOOSE_TOKENS, c, z, own, token, v);
            for (; token < part.end; token++) choose(1, c, z, own, token, v);
        }
}

/* --- the scan ----------------------------------------------------------------------------------------------------- */

/* The arrays of one token, at its first state. */
struct step {
    const real *d[2], *x[2], *before[2]; /* before: h of the previous token */
    real *h[2];
    const int32_t *choice; /* NULL: each state chooses itself */
};

static struct step step_at(const struct call *c, const struct size *z, const struct work *w, int64_t token) {
    struct step p = {.choice = z->K > 0 ? tensor_i32(c->out[ROUTE_CHOICE]) + token * z->N : NULL};
    for (int plane = 0; plane < 2; plane++) {
        p.d[plane] = tensor_real(c->in[ROUTE_D + plane]) + token * z->N;
        p.x[plane] = tensor_real(c->in[ROUTE_X + plane]) + token * z->N;
        p.h[plane] = tensor_real(c->out[ROUTE_H + plane]) + token * z->N;
        p.before[plane] = token % z->T > 0 ? p.h[plane] - z->N : w->start + plane * z->N;
    }
    return p;
}

/* Form row, or no dictionary: h = d before[choice] + x. */
FORCE_INLINE void step_gather(struct step p, int64_t N, const int32_t *choice) {
#pragma omp simd
    for (int64_t i = 0; i < N; i++) {
        int64_t j = choice ? choice[i] : i;
        real re = p.before[0][j], im = p.before[1][j];
        p.h[0][i] = p.d[0][i] * re - p.d[1][i] * im + p.x[0][i];
        p.h[1][i] = p.d[0][i] * im + p.d[1][i] * re + p.x[1][i];
    }
}

/* Form column: h = x, then h[choice] += d before. */
static void step_scatter(struct step p, int64_t N) {
    memcpy(p.h[0], p.x[0], (size_t)N * sizeof(real));
    memcpy(p.h[1], p.x[1], (size_t)N * sizeof(real));
    for (int64_t i = 0; i < N; i++) {
        real re = p.before[0][i], im = p.before[1][i];
        p.h[0][p.choice[i]] += p.d[0][i] * re - p.d[1][i] * im;
        p.h[1][p.choice[i]] += p.d[0][i] * im + p.d[1][i] * re;
    }
}

static void scan_route_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct size z = size_of(c);
    struct work w = work_begun(c, &z, PASS_FORWARD);
    if (z.K > 0) choose_all(c, &z, w.dict);
#pragma omp parallel for schedule(static) if (z.tokens * z.N > PARALLEL_MIN)
    for (int64_t b = 0; b < z.B; b++)
        for (int64_t token = b * z.T; token < (b + 1) * z.T; token++) {
            struct step p = step_at(c, &z, &w, token);
            if (!p.choice)
                step_gather(p, z.N, NULL);
            else if (z.column)
                step_scatter(p, z.N);
            else
                step_gather(p, z.N, p.choice);
        }
}

/* dd = conj(before[from]) G[to]. `from` and `to` are indices of states; NULL: each state has its own index. */
FORCE_INLINE void step_back(struct step p, int64_t N, const int32_t *from, const int32_t *to, const real *const G[2],
                            real *const dd[2], const bool add[2]) {
#pragma omp simd
    for (int64_t i = 0; i < N; i++) {
        int64_t j = from ? from[i] : i, k = to ? to[i] : i;
        real re = p.before[0][j], im = p.before[1][j], G_re = G[0][k], G_im = G[1][k];
        if (dd[0]) put(dd[0] + i, add[0], re * G_re + im * G_im);
        if (dd[1]) put(dd[1] + i, add[1], re * G_im - im * G_re);
    }
}

/* Form column, or no dictionary: adds conj(d) G[to] to `ahead`, the G of the previous token. */
FORCE_INLINE void carry_back(struct step p, int64_t N, const int32_t *to, const real *const G[2],
                             real *const ahead[2]) {
#pragma omp simd
    for (int64_t i = 0; i < N; i++) {
        int64_t k = to ? to[i] : i;
        ahead[0][i] += p.d[0][i] * G[0][k] + p.d[1][i] * G[1][k];
        ahead[1][i] += p.d[0][i] * G[1][k] - p.d[1][i] * G[0][k];
    }
}

/* Form row: adds conj(d) G to ahead[choice]. */
static void carry_back_scattered(struct step p, int64_t N, const real *const G[2], real *const ahead[2]) {
    for (int64_t i = 0; i < N; i++) {
        ahead[0][p.choice[i]] += p.d[0][i] * G[0][i] + p.d[1][i] * G[1][i];
        ahead[1][p.choice[i]] += p.d[0][i] * G[1][i] - p.d[1][i] * G[0][i];
    }
}

static void scan_back(const struct call *c, const struct size *z, const struct work *w, int64_t b) {
    int64_t N = z->N, first = b * z->T;
    for (int plane = 0; plane < 2; plane++) {
        const real *dout = call_dout(c, ROUTE_H + plane);
        real *G = w->G[plane] + first * N;
        if (dout)
            memcpy(G, dout + first * N, (size_t)(z->T * N) * sizeof *G);
        else
            memset(G, 0, (size_t)(z->T * N) * sizeof *G);
    }
    for (int64_t token = first + z->T - 1; token >= first; token--) {
        struct step p = step_at(c, z, w, token);
        const real *G[2];
        real *dd[2], *ahead[2];
        bool add[2];
        for (int plane = 0; plane < 2; plane++) {
            G[plane] = w->G[plane] + token * N;
            ahead[plane] = w->G[plane] + (token - 1) * N;
            dd[plane] = c->din[ROUTE_D + plane] ? c->din[ROUTE_D + plane] + token * N : NULL;
            add[plane] = call_accumulates(c, ROUTE_D + plane);
            real *dx = c->din[ROUTE_X + plane] ? c->din[ROUTE_X + plane] + token * N : NULL;
            for (int64_t i = 0; dx && i < N; i++) put(dx + i, call_accumulates(c, ROUTE_X + plane), G[plane][i]);
        }
        if (!p.choice)
            step_back(p, N, NULL, NULL, G, dd, add);
        else if (z->column)
            step_back(p, N, NULL, p.choice, G, dd, add);
        else
            step_back(p, N, p.choice, NULL, G, dd, add);
        if (token == first) continue;
        if (!p.choice)
            carry_back(p, N, NULL, G, ahead);
        else if (z->column)
            carry_back(p, N, p.choice, G, ahead);
        else
            carry_back_scattered(p, N, G, ahead);
    }
}

/* --- the straight-through gradient of the choice ------------------------------------------------------------------ */

/* Numbers of one vector of states at one token. dP of a state and a candidate is a v.re + b v.im, where v belongs to
 * the candidate; from it the code subtracts dP of the candidate that the state chose. Subtracting one number from all
 * dP of a state leaves dM unchanged, and this number avoids cancellation if the choice is nearly certain.
 * top: M of the chosen candidate; mean: mean of dP, weighted by p; inverse: 1 / sum of exp(M - top) over candidates. */
struct soft {
    lanes a, b, top, mean, inverse;
    lanes chosen[2];  /* v of the chosen candidate */
    const real *v[2]; /* v of all candidates */
};

static struct soft soft_at(const struct call *c, const struct size *z, const struct work *w, int64_t token,
                           int64_t vector) {
    int64_t n = width_at(z, vector), at = vector * LANES;
    struct step p = step_at(c, z, w, token);
    const real *G[2] = {w->G[0] + token * z->N, w->G[1] + token * z->N};
    lanes d_re = some_lanes_at(p.d[0] + at, n), d_im = some_lanes_at(p.d[1] + at, n);
    struct soft o = {.top = some_lanes_at(tensor_real(c->out[ROUTE_TOP]) + token * z->N + at, n), .chosen = {{0}, {0}}};
    if (z->column) { /* Re(d h conj(G)) */
        lanes re = some_lanes_at(p.before[0] + at, n), im = some_lanes_at(p.before[1] + at, n);
        o.a = d_re * re - d_im * im;
        o.b = d_re * im + d_im * re;
        o.v[0] = G[0], o.v[1] = G[1];
    } else { /* Re(conj(G) d h) */
        lanes re = some_lanes_at(G[0] + at, n), im = some_lanes_at(G[1] + at, n);
        o.a = d_re * re + d_im * im;
        o.b = d_re * im - d_im * re;
        o.v[0] = p.before[0], o.v[1] = p.before[1];
    }
    for (int64_t i = 0; i < n; i++)
        for (int plane = 0; plane < 2; plane++) o.chosen[plane][i] = o.v[plane][p.choice[at + i]];
    return o;
}

FORCE_INLINE lanes dP_of(const struct soft *o, int64_t from) {
    return lanes_fma(all_lanes(o->v[0][from]) - o->chosen[0], o->a, o->b * (all_lanes(o->v[1][from]) - o->chosen[1]));
}

/* Writes exp(M - top) of n tokens and one vector of states into the tile (N, n, LANES), and computes `inverse` and
 * `mean`. */
FORCE_INLINE void soft_choices(int n, const struct size *z, const real *dict, const real *s, struct soft *o,
                               real *tile) {
    lanes M[SOFT_TOKENS], sum[SOFT_TOKENS], mean[SOFT_TOKENS];
    for (int j = 0; j < n; j++) sum[j] = mean[j] = (lanes){0};
    for (int64_t from = 0; from < z->N; from++, tile += n * LANES) {
        scores(n, z->K, dict + from * z->K * LANES, s, M);
        for (int j = 0; j < n; j++) lanes_to(tile + j * LANES, M[j] - o[j].top);
#pragma omp simd
        for (int e = 0; e < n * LANES; e++) tile[e] = real_exp(tile[e]);
        for (int j = 0; j < n; j++) {
            lanes p = lanes_at(tile + j * LANES);
            sum[j] += p;
            mean[j] = lanes_fma(p, dP_of(o + j, from), mean[j]);
        }
    }
    for (int j = 0; j < n; j++) {
        o[j].inverse = 1 / sum[j];
        o[j].mean = mean[j] * o[j].inverse;
    }
}

/* Turns the tile into dM, adds s dM to ddict, and computes ds[0] to ds[m - 1] of n tokens: dM is used while it is in
 * registers. */
FORCE_INLINE void soft_gradient(int n, int m, const struct size *z, const real *dict, const real *s,
                                const struct soft *o, real *tile, real *ddict, real *ds) {
    lanes dM[SOFT_TOKENS], sum[SOFT_TOKENS][SOFT_SUMS];
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) sum[j][i] = (lanes){0};
    for (int64_t from = 0; from < z->N; from++, tile += n * LANES, dict += z->K * LANES) {
        for (int j = 0; j < n; j++) {
            dM[j] = lanes_at(tile + j * LANES) * o[j].inverse * (dP_of(o + j, from) - o[j].mean);
            lanes_to(tile + j * LANES, dM[j]);
        }
        for (int64_t k = 0; k < z->K; k++, ddict += LANES) {
            lanes to = lanes_at(ddict);
            for (int j = 0; j < n; j++) to = lanes_axpy(s[j * z->K + k], dM[j], to);
            lanes_to(ddict, to);
        }
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) sum[j][i] = lanes_fma(lanes_at(dict + i * LANES), dM[j], sum[j][i]);
    }
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) ds[j * z->K + i] = sum_of(sum[j][i]);
}

/* Computes ds[k] to ds[k + m - 1] of n tokens. */
FORCE_INLINE void sums_of_s(int n, int m, const struct size *z, const real *dict, const real *tile, int64_t k,
                            real *ds) {
    lanes sum[SOFT_TOKENS][SOFT_SUMS];
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) sum[j][i] = (lanes){0};
    for (int64_t from = 0; from < z->N; from++)
        for (int i = 0; i < m; i++) {
            lanes d = lanes_at(dict + (from * z->K + k + i) * LANES);
            for (int j = 0; j < n; j++) sum[j][i] = lanes_fma(d, lanes_at(tile + (from * n + j) * LANES), sum[j][i]);
        }
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) ds[j * z->K + k + i] = sum_of(sum[j][i]);
}

FORCE_INLINE void soft_tokens(int n, const struct call *c, const struct size *z, const struct work *w, int64_t token,
                              int64_t vector, real *ddict, real *tile) {
    const real *dict = w->dict + vector * z->N * z->K * LANES, *s = tensor_real(c->in[ROUTE_S]) + token * z->K;
    real *ds = w->ds + (vector * z->tokens + token) * z->K;
    struct soft o[SOFT_TOKENS];
    int64_t k = z->K < SOFT_SUMS ? 1 : SOFT_SUMS;
    for (int j = 0; j < n; j++) o[j] = soft_at(c, z, w, token + j, vector);
    soft_choices(n, z, dict, s, o, tile);
    if (k == 1)
        soft_gradient(n, 1, z, dict, s, o, tile, ddict, ds);
    else
        soft_gradient(n, SOFT_SUMS, z, dict, s, o, tile, ddict, ds);
    for (; k + SOFT_SUMS <= z->K; k += SOFT_SUMS) sums_of_s(n, SOFT_SUMS, z, dict, tile, k, ds);
    for (; k < z->K; k++) sums_of_s(n, 1, z, dict, tile, k, ds);
}

static void soft_part(const struct call *c, const struct size *z, const struct work *w, int64_t part) {
    int64_t vector = part % z->vectors, rows = z->N * z->K;
    struct range tokens = part_at(z->tokens, z->chunks, part / z->vectors);
    real *ddict = w->ddict + part * rows * LANES, *tile = w->tiles.at + part * w->tiles.stride;
    memset(ddict, 0, (size_t)(rows * LANES) * sizeof *ddict);
    int64_t token = tokens.begin;
    for (; token + SOFT_TOKENS <= tokens.end; token += SOFT_TOKENS)
        soft_tokens(SOFT_TOKENS, c, z, w, token, vector, ddict, tile);
    for (; token < tokens.end; token++) soft_tokens(1, c, z, w, token, vector, ddict, tile);
}

/* Writes, or adds, N gradients of the dictionary: its row r, summed over chunks. */
static void put_dict(const struct call *c, const struct size *z, const struct work *w, int64_t r) {
    real *to = c->din[ROUTE_DICT] + r * z->N;
    int64_t rows = z->N * z->K, stride = z->vectors * rows * LANES;
    bool add = call_accumulates(c, ROUTE_DICT);
    for (int64_t i = 0; i < z->N; i++) {
        const real *from = w->ddict + (i / LANES * rows + r) * LANES + i % LANES;
        real sum = from[0];
        for (int64_t chunk = 1; chunk < z->chunks; chunk++) sum += from[chunk * stride];
        put(to + i, add, sum);
    }
}

static void scan_route_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    struct size z = size_of(c);
    struct work w = work_begun(c, &z, PASS_BACKWARD);
#pragma omp parallel for schedule(static) if (z.tokens * z.N > PARALLEL_MIN)
    for (int64_t b = 0; b < z.B; b++) scan_back(c, &z, &w, b);
    if (!w.dict || (!c->din[ROUTE_DICT] && !c->din[ROUTE_S])) return;
#pragma omp parallel for schedule(static) if (z.tokens * z.N * z.N * z.K > PARALLEL_MIN)
    for (int64_t part = 0; part < z.chunks * z.vectors; part++) soft_part(c, &z, &w, part);
#pragma omp parallel for schedule(static) if (z.N * z.N * z.K > PARALLEL_MIN)
    for (int64_t r = 0; r < (c->din[ROUTE_DICT] ? z.N * z.K : 0); r++) put_dict(c, &z, &w, r);
    if (c->din[ROUTE_S])
        sum_partials(z.tokens * z.K, z.vectors, w.ds, z.tokens * z.K, c->din[ROUTE_S], call_accumulates(c, ROUTE_S));
}

/* Tolerance: states are products over time in working precision. In dM two near numbers are subtracted, and dM is
 * summed over all states. */
const struct kernel kernel_scan_route_cpu = {
    .name = "scan_route_cpu",
    .op = &op_scan_route,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 256,
    .workspace = scan_route_cpu_workspace,
    .forward = scan_route_cpu_forward,
    .backward = scan_route_cpu_backward,
};
