/* outer_strip.cuh - CUDA kernels of scan_outer and scan_plstm with one warp per strip of columns (strip.cuh). A head
 * has J matrices, coupled by a J x J transition; in scan_outer J = 1. Equations: scan_outer.c, scan_plstm.c. */
#ifndef LRNN_KERNELS_MATRIX_OUTER_STRIP_CUH
#define LRNN_KERNELS_MATRIX_OUTER_STRIP_CUH

#include "kernels/matrix/outer_sums.cuh"

namespace {

/* A token in shared memory. */
struct outer_token {
    real *q, *k, *v, *w, *S, *T, *M, *dq, *dk;
    real D, qk;
};

__host__ __device__ inline int64_t outer_vectors(int64_t dk, int64_t J) {
    return 4 * dk + 2 * WARP + J * J + 2 * J;
}

__device__ inline struct outer_token outer_room(const struct outer_inputs &in, real *shared) {
    struct outer_token t;
    t.q = shared;
    t.k = t.q + in.dk;
    t.dq = t.k + in.dk;
    t.dk = t.dq + in.dk;
    t.v = t.dk + in.dk;
    t.w = t.v + WARP;
    t.S = t.w + WARP;
    t.M = t.S + in.J;
    t.T = t.M + in.J;
    t.D = t.qk = 0;
    return t;
}

/* Reads a token. dy NULL: forward. All lanes must call it, and may use the token afterwards. */
__device__ inline void outer_read(const struct outer_inputs &in, const struct strip_shape &s, const struct strip &at,
                                  int64_t row, const real *dy, struct outer_token *t) {
    int64_t group = at.h / (in.H / in.G), head = row * in.H + at.h;
    __syncwarp();
    strip_read(in.dk, in.q + (row * in.G + group) * in.dk, t->q, at.lane);
    strip_read(in.dk, in.k + (row * in.G + group) * in.dk, t->k, at.lane);
    t->v[at.lane] = at.in ? in.v[head * s.dv + at.first + at.lane] : 0;
    t->w[at.lane] = at.in && dy ? in.scale * dy[head * s.dv + at.first + at.lane] : 0;
    for (int l = at.lane; l < in.J; l += WARP) {
        t->S[l] = in.source ? in.source[head * in.J + l] : 1;
        t->M[l] = in.mark ? in.mark[head * in.J + l] : in.transition[head * in.J + l];
    }
    strip_read(in.J * in.J, in.transition + head * in.J * in.J, t->T, at.lane);
    t->D = in.direct ? in.direct[head] : in.source ? in.source[head] : 1;
    __syncwarp();
    real sum = 0;
    for (int i = at.lane; i < in.dk; i += WARP) sum = real_fma(t->q[i], t->k[i], sum);
    t->qk = warp_sum(sum);
}

/* Computes next[l] = sum_m T[l][m] C[m] + S[l] k v^T. If J = 1, next and C may be the same array. */
__device__ inline void outer_update(const struct outer_inputs &in, const struct strip_shape &s, const struct strip &at,
                                    const struct outer_token &t, const real *C, real *next) {
    int stride = s.W + 1, matrix = in.dk * stride;
    for (int l = 0; l < in.J && at.in; l++)
        each_rows(0, in.dk, [&](auto rows, int i) {
            constexpr int N = decltype(rows)::n;
            real sum[N];
#pragma unroll
            for (int r = 0; r < N; r++) sum[r] = t.S[l] * t.k[i + r] * t.v[at.lane];
#pragma unroll 1
            for (int m = 0; m < in.J; m++) {
                const real *from = C + m * matrix + i * stride + at.lane;
#pragma unroll
                for (int r = 0; r < N; r++) sum[r] = real_fma(t.T[l * in.J + m], from[r * stride], sum[r]);
            }
#pragma unroll
            for (int r = 0; r < N; r++) next[l * matrix + (i + r) * stride + at.lane] = sum[r];
        });
}

__device__ inline void outer_swap(real **a, real **b) {
    real *c = *a;
    *a = *b;
    *b = c;
}

/* Computes the outputs. kept, if not NULL: the state before every kept_every-th token, (B,kept_chunks,H,dk,dv). */
static __global__ void __launch_bounds__(WARP)
    outer_forward_kernel(struct outer_inputs in, struct strip_shape s, real *y, real *kept, int kept_every,
                         int64_t kept_chunks) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct strip at = strip_here(s);
    int stride = s.W + 1, matrix = in.dk * stride;
    real *C = shared, *next = in.J > 1 ? C + s.rows * stride : C;
    struct outer_token t = outer_room(in, next + s.rows * stride);
    strip_clear(s, at, C);
    for (int64_t n = 0; n < s.T; n++) {
        int64_t row = at.b * s.T + n;
        if (kept && n % kept_every == 0 && at.in) {
            real *to = kept + ((at.b * kept_chunks + n / kept_every) * s.H + at.h) * in.dk * s.dv + at.first + at.lane;
            for (int i = 0; i < in.dk; i++) to[(int64_t)i * s.dv] = C[i * stride + at.lane];
        }
        outer_read(in, s, at, row, nullptr, &t);
        real sum = t.D * t.qk * t.v[at.lane];
        for (int l = 0; l < in.J && at.in; l++) {
            real of = 0;
            for (int i = 0; i < in.dk; i++) of = real_fma(t.q[i], C[l * matrix + i * stride + at.lane], of);
            sum = real_fma(t.M[l], of, sum);
        }
        if (at.in) y[(row * in.H + at.h) * s.dv + at.first + at.lane] = in.scale * sum;
        outer_update(in, s, at, t, C, next);
        outer_swap(&C, &next);
    }
}

/* Computes a token's sums over the strip's columns. P: the state before the token; E: the gradient of that after it. */
__device__ inline void outer_row_sums(const struct outer_inputs &in, const struct strip_shape &s,
                                      const struct strip &at, const struct outer_token &t, const real *P, const real *E,
                                      real *partial) {
    int stride = s.W + 1, matrix = in.dk * stride;
    real vw = warp_sum(t.v[at.lane] * t.w[at.lane]), *gates = partial + 2 * in.dk;
    for (int i = at.lane; i < in.dk; i += WARP) {
        t.dq[i] = t.D * vw * t.k[i];
        t.dk[i] = t.D * vw * t.q[i];
    }
    for (int l = 0; l < in.J; l++) {
        real dS = 0, dM = 0;
        for (int i = at.lane; i < in.dk; i += WARP) {
            real Ev = 0, Pw = 0;
            for (int j = 0; j < at.width; j++) {
                Ev = real_fma(E[l * matrix + i * stride + j], t.v[j], Ev);
                Pw = real_fma(P[l * matrix + i * stride + j], t.w[j], Pw);
            }
            t.dq[i] = real_fma(t.M[l], Pw, t.dq[i]);
            t.dk[i] = real_fma(t.S[l], Ev, t.dk[i]);
            dS = real_fma(t.k[i], Ev, dS);
            dM = real_fma(t.q[i], Pw, dM);
        }
        dS = warp_sum(dS);
        dM = warp_sum(dM);
        if (at.lane == 0) gates[l] = dS;
        if (at.lane == 0) gates[in.J + l] = dM;
        for (int m = 0; m < in.J; m++) {
            real dT = 0;
            for (int i = at.lane; i < in.dk; i += WARP)
                for (int j = 0; j < at.width; j++)
                    dT = real_fma(E[l * matrix + i * stride + j], P[m * matrix + i * stride + j], dT);
            dT = warp_sum(dT);
            if (at.lane == 0) gates[2 * in.J + l * in.J + m] = dT;
        }
    }
    if (at.lane == 0) gates[2 * in.J + in.J * in.J] = t.qk * vw;
    for (int i = at.lane; i < in.dk; i += WARP) {
        partial[i] = t.dq[i];
        partial[in.dk + i] = t.dk[i];
    }
}

/* Computes dv of the token's columns, and the next E: next[m] = sum_l T[l][m] E[l] + M[m] q w^T. */
__device__ inline void outer_column_sums(const struct outer_inputs &in, const struct strip_shape &s,
                                         const struct strip &at, const struct outer_token &t, const real *E, real *next,
                                         real *dv, bool accumulate) {
    int stride = s.W + 1, matrix = in.dk * stride;
    if (!at.in) return;
    real sum = t.D * t.qk * t.w[at.lane];
    for (int l = 0; l < in.J && dv; l++) {
        real of = 0;
        for (int i = 0; i < in.dk; i++) of = real_fma(E[l * matrix + i * stride + at.lane], t.k[i], of);
        sum = real_fma(t.S[l], of, sum);
    }
    if (dv) put(dv + at.lane, accumulate, sum);
    for (int m = 0; m < in.J; m++)
        each_rows(0, in.dk, [&](auto rows, int i) {
            constexpr int N = decltype(rows)::n;
            real before[N];
#pragma unroll
            for (int r = 0; r < N; r++) before[r] = t.M[m] * t.q[i + r] * t.w[at.lane];
#pragma unroll 1
            for (int l = 0; l < in.J; l++) {
                const real *from = E + l * matrix + i * stride + at.lane;
#pragma unroll
                for (int r = 0; r < N; r++) before[r] = real_fma(t.T[l * in.J + m], from[r * stride], before[r]);
            }
#pragma unroll
            for (int r = 0; r < N; r++) next[m * matrix + (i + r) * stride + at.lane] = before[r];
        });
}

/* Computes the gradients. starts: each strip's state before each chunk; inner: its state before each token of one
 * chunk; partial: its sums for each token. With more thread blocks per multiprocessor, threads would have too few
 * registers; shared memory seldom has room for more anyway. */
static __global__ void __launch_bounds__(WARP, REAL_IS_DOUBLE ? 8 : 12)
    outer_backward_kernel(struct outer_inputs in, struct strip_shape s, const real *dy, real *dv, bool add_v,
                          real *starts, real *inner, real *partial) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct strip at = strip_here(s);
    int stride = s.W + 1;
    int64_t size = (int64_t)s.rows * s.W, width = outer_partial(in.dk, in.J);
    real *C = shared, *next = in.J > 1 ? C + s.rows * stride : C, *E = next + s.rows * stride;
    real *before = in.J > 1 ? E + s.rows * stride : E;
    struct outer_token t = outer_room(in, before + s.rows * stride);
    starts += at.index * s.chunks * size;
    inner += at.index * s.chunk * size;
    partial += at.index * s.T * width;
    strip_clear(s, at, C);
    strip_clear(s, at, E);
    for (int64_t n = 0; n < s.T; n++) {
        if (n % s.chunk == 0) strip_store(s, at, C, starts + n / s.chunk * size);
        outer_read(in, s, at, at.b * s.T + n, nullptr, &t);
        outer_update(in, s, at, t, C, next);
        outer_swap(&C, &next);
    }
    for (int64_t chunk = s.chunks - 1; chunk >= 0; chunk--) {
        int64_t first = chunk * s.chunk, end = first + s.chunk < s.T ? first + s.chunk : s.T;
        strip_load(s, at, starts + chunk * size, C);
        for (int64_t n = first; n < end; n++) {
            strip_store(s, at, C, inner + (n - first) * size);
            outer_read(in, s, at, at.b * s.T + n, nullptr, &t);
            outer_update(in, s, at, t, C, next);
            outer_swap(&C, &next);
        }
        for (int64_t n = end - 1; n >= first; n--) {
            int64_t row = at.b * s.T + n;
            __syncwarp();
            strip_load(s, at, inner + (n - first) * size, C);
            outer_read(in, s, at, row, dy, &t);
            outer_row_sums(in, s, at, t, C, E, partial + n * width);
            __syncwarp();
            outer_column_sums(in, s, at, t, E, before, dv ? dv + (row * in.H + at.h) * s.dv + at.first : nullptr,
                              add_v);
            outer_swap(&E, &before);
        }
    }
}

/* --- functions for the kernels ------------------------------------------------------------------------------------ */

inline int64_t outer_matrices(int J, enum pass pass) {
    return (J > 1 ? 2 : 1) * (pass == PASS_FORWARD ? 1 : 2);
}

inline struct strip_shape outer_strips(const struct outer_inputs &in, int64_t B, int64_t T, int64_t dv,
                                       enum pass pass) {
    return strip_shape_of(B, T, in.H, (int64_t)in.J * in.dk, dv, outer_matrices(in.J, pass),
                          outer_vectors(in.dk, in.J));
}

struct outer_scratch {
    real *starts, *inner, *partial;
};

inline struct outer_scratch outer_scratch_of(const struct outer_inputs &in, const struct strip_shape &s,
                                             struct scratch *scratch) {
    int64_t strips = s.B * s.H * s.strips, size = (int64_t)s.rows * s.W;
    struct outer_scratch r;
    r.starts = scratch_reals(scratch, strips * s.chunks * size);
    r.inner = scratch_reals(scratch, strips * s.chunk * size);
    r.partial = scratch_reals(scratch, strips * s.T * outer_partial(in.dk, in.J));
    return r;
}

inline void outer_forward(const struct exec *x, const struct outer_inputs &in, int64_t B, int64_t T, int64_t dv,
                          real *y, real *kept, int kept_every, int64_t kept_chunks) {
    struct strip_shape s = outer_strips(in, B, T, dv, PASS_FORWARD);
    size_t bytes = strip_shared_bytes(s, outer_matrices(in.J, PASS_FORWARD), outer_vectors(in.dk, in.J));
    LAUNCH(x, outer_forward_kernel, dim3((unsigned)(B * in.H * s.strips)), dim3(WARP), bytes, in, s, y, kept,
           kept_every, kept_chunks);
}

inline void outer_backward(const struct call *c, const struct exec *x, const struct outer_inputs &in, int64_t B,
                           int64_t T, int64_t dv, const struct outer_gradients &d) {
    struct strip_shape s = outer_strips(in, B, T, dv, PASS_BACKWARD);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct outer_scratch r = outer_scratch_of(in, s, &scratch);
    size_t bytes = strip_shared_bytes(s, outer_matrices(in.J, PASS_BACKWARD), outer_vectors(in.dk, in.J));
    LAUNCH(x, outer_backward_kernel, dim3((unsigned)(B * in.H * s.strips)), dim3(WARP), bytes, in, s, call_dout(c, 0),
           d.v, d.add_v, r.starts, r.inner, r.partial);
    outer_gradient_sums(c, x, in, s, r.partial, d);
}

} // namespace

#endif
