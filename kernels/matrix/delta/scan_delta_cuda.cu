/* scan_delta_cuda.cu - scan_delta on CUDA. Equations: scan_delta.c. Columns of the state are independent in the delta
 * rule, so each warp has a strip of columns (strip.cuh). It computes the steps of a token one after the other. */
#include "kernels/matrix/delta/delta_sums.cuh"

namespace {

/* One step in shared memory, with the names of scan_delta.c. q and the decays f belong to the token. w, p and r have
 * one value per column: w is what k writes, p the gradient of S'^T d, and r what e subtracts. */
struct delta_room {
    real *q, *k, *d, *e, *f, *v, *w, *p, *r;
};

inline int64_t delta_vectors(int64_t dk) {
    return 5 * dk + 4 * WARP;
}

__device__ inline struct delta_room delta_room_at(const struct delta_inputs &in, real *shared) {
    struct delta_room t;
    t.q = shared;
    t.k = t.q + in.dk;
    t.d = t.k + in.dk;
    t.e = t.d + in.dk;
    t.f = t.e + in.dk;
    t.v = t.f + in.dk;
    t.w = t.v + WARP;
    t.p = t.w + WARP;
    t.r = t.p + WARP;
    return t;
}

/* Reads step j and returns a, the factor of its reading of the state. All lanes must call it. */
__device__ inline real delta_read(const struct delta_inputs &in, const struct strip_shape &s, const struct strip &at,
                                  int64_t row, int j, const struct delta_room &t) {
    int64_t of = (row * in.steps + j) * in.H + at.h;
    __syncwarp();
    strip_read(in.dk, in.k + of * in.dk, t.k, at.lane);
    if (in.beta || in.read) strip_read(in.dk, (in.read ? in.read : in.k) + of * in.dk, t.d, at.lane);
    if (in.erase) strip_read(in.dk, in.erase + of * in.dk, t.e, at.lane);
    for (int i = at.lane; i < in.dk; i += WARP)
        t.f[i] = j == 0 && in.decay ? in.decay[(row * in.H + at.h) * in.decays + (in.decays > 1 ? i : 0)] : 1;
    t.v[at.lane] = at.in ? in.v[of * s.dv + at.first + at.lane] : 0;
    __syncwarp();
    return in.beta ? in.rate * in.beta[of] : in.rate;
}

/* Replaces each element i < dk of the lane's column of S by f(i, element). */
template <class F>
__device__ __forceinline__ void each_element(const struct delta_inputs &in, int stride, const struct strip &at, real *S,
                                             F f) {
    each_rows(0, in.dk, [&](auto rows, int i) {
        constexpr int N = decltype(rows)::n;
        real *first = S + i * stride + at.lane, next[N];
#pragma unroll
        for (int r = 0; r < N; r++) next[r] = f(i + r, first[r * stride]);
#pragma unroll
        for (int r = 0; r < N; r++) first[r * stride] = next[r];
    });
}

/* Returns (f o S)^T d for the lane's column. */
__device__ inline real delta_along(const struct delta_inputs &in, int stride, const struct strip &at,
                                   const struct delta_room &t, const real *S) {
    real along = 0;
    if (!in.beta && !in.read) return along;
    for (int i = 0; i < in.dk; i++) along = real_fma(t.f[i] * S[i * stride + at.lane], t.d[i], along);
    return along;
}

/* Returns the value that k writes. `along` is S'^T d, which was read with the factor a. */
__device__ inline real delta_written(const struct delta_inputs &in, real a, real v, real along) {
    if (in.erase) return v;
    return in.beta ? a * (v - along) : v - a * along;
}

/* Computes S = f o S + k w^T - e (a along)^T. */
__device__ inline void delta_update(const struct delta_inputs &in, int stride, const struct strip &at,
                                    const struct delta_room &t, real a, real *S) {
    if (!at.in) return;
    real along = delta_along(in, stride, at, t, S), w = delta_written(in, a, t.v[at.lane], along);
    each_element(in, stride, at, S, [&](int i, real x) {
        real next = real_fma(t.k[i], w, t.f[i] * x);
        return in.erase ? real_fma(-t.e[i], a * along, next) : next;
    });
}

__device__ inline void delta_token(const struct delta_inputs &in, const struct strip_shape &s, const struct strip &at,
                                   int64_t row, const struct delta_room &t, real *S) {
    for (int j = 0; j < in.steps; j++) {
        real a = delta_read(in, s, at, row, j, t);
        delta_update(in, s.W + 1, at, t, a, S);
    }
}

static __global__ void __launch_bounds__(WARP)
    delta_forward_kernel(struct delta_inputs in, struct strip_shape s, real *o, real *kept, int64_t kept_chunks) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct strip at = strip_here(s);
    int stride = s.W + 1;
    real *S = shared;
    struct delta_room t = delta_room_at(in, S + s.rows * stride);
    strip_clear(s, at, S);
    for (int64_t n = 0; n < s.T; n++) {
        int64_t row = at.b * s.T + n;
        if (n % STATE_CHUNK == 0 && at.in) {
            real *to = kept + ((at.b * kept_chunks + n / STATE_CHUNK) * s.H + at.h) * in.dk * s.dv + at.first + at.lane;
            for (int i = 0; i < in.dk; i++) to[(int64_t)i * s.dv] = S[i * stride + at.lane];
        }
        delta_token(in, s, at, row, t, S);
        __syncwarp();
        strip_read(in.dk, in.q + (row * in.H + at.h) * in.dk, t.q, at.lane);
        __syncwarp();
        real sum = 0;
        for (int i = 0; i < in.dk && at.in; i++) sum = real_fma(t.q[i], S[i * stride + at.lane], sum);
        if (at.in) o[(row * in.H + at.h) * s.dv + at.first + at.lane] = in.scale * sum;
    }
}

/* Computes the gradients of one step. P is the state before the step and before its decay. G becomes the gradient for
 * the previous step; the strip's part of the gradients of the step's vectors is stored. */
__device__ inline void delta_step_gradient(const struct delta_inputs &in, const struct strip_shape &s,
                                           const struct strip &at, const struct delta_room &t, real a, const real *P,
                                           real *G, real *dv, bool accumulate, real *partial) {
    int stride = s.W + 1;
    real u = 0, of_e = 0, along = 0;
    if (at.in) {
        for (int i = 0; i < in.dk; i++) u = real_fma(G[i * stride + at.lane], t.k[i], u);
        for (int i = 0; i < in.dk && in.erase; i++) of_e = real_fma(G[i * stride + at.lane], t.e[i], of_e);
        along = delta_along(in, stride, at, t, P);
        if (dv) put(dv + at.lane, accumulate, in.beta ? a * u : u);
    }
    real p = in.beta || in.read ? -a * (in.erase ? of_e : u) : 0;
    t.w[at.lane] = delta_written(in, a, t.v[at.lane], along);
    t.p[at.lane] = p;
    t.r[at.lane] = a * along;
    real of_beta = warp_sum(u * (t.v[at.lane] - along));
    __syncwarp();
    if (at.lane == 0) partial[in.dk] = in.rate * of_beta;
    for (int i = at.lane; i < in.dk; i += WARP) {
        real of_k = 0, of_d = 0, of_r = 0;
        for (int j = 0; j < at.width; j++) {
            of_k = real_fma(G[i * stride + j], t.w[j], of_k);
            of_d = real_fma(t.f[i] * P[i * stride + j], t.p[j], of_d);
            of_r = real_fma(G[i * stride + j], t.r[j], of_r);
        }
        partial[i] = in.beta ? of_k + of_d : of_k;
        if (in.read) partial[in.dk + 1 + i] = of_d;
        if (in.erase) partial[2 * in.dk + 1 + i] = -of_r;
    }
    __syncwarp();
    if (at.in && (in.beta || in.read))
        each_element(in, stride, at, G, [&](int i, real x) { return real_fma(t.d[i], p, x); });
}

/* Computes the strip's part of dq = scale S do. If G is given, adds scale q do^T to it. */
__device__ inline void delta_readout_gradient(const struct delta_inputs &in, const struct strip_shape &s,
                                              const struct strip &at, int64_t row, const real *d_o,
                                              const struct delta_room &t, const real *S, real *partial, real *G) {
    int stride = s.W + 1;
    __syncwarp();
    strip_read(in.dk, in.q + (row * in.H + at.h) * in.dk, t.q, at.lane);
    t.p[at.lane] = at.in ? in.scale * d_o[(row * in.H + at.h) * s.dv + at.first + at.lane] : 0;
    __syncwarp();
    for (int i = at.lane; i < in.dk && partial; i += WARP) {
        real sum = 0;
        for (int j = 0; j < at.width; j++) sum = real_fma(S[i * stride + j], t.p[j], sum);
        partial[i] = sum;
    }
    if (at.in && G) each_element(in, stride, at, G, [&](int i, real x) { return real_fma(t.q[i], t.p[at.lane], x); });
}

static __global__ void __launch_bounds__(WARP)
    delta_backward_kernel(struct delta_inputs in, struct strip_shape s, const real *d_o, real *dv, bool add_v,
                          real *starts, real *inner, real *partial) {
    await_previous();
    DYNAMIC_SHARED(real, shared);
    struct strip at = strip_here(s);
    int stride = s.W + 1;
    int64_t size = (int64_t)s.rows * s.W, width = delta_partial(in);
    real *S = shared, *G = S + s.rows * stride;
    struct delta_room t = delta_room_at(in, G + s.rows * stride);
    starts += at.index * s.chunks * size;
    inner += at.index * s.chunk * in.steps * size;
    partial += at.index * s.T * width;
    strip_clear(s, at, S);
    strip_clear(s, at, G);
    for (int64_t n = 0; n < s.T; n++) {
        if (n % s.chunk == 0) strip_store(s, at, S, starts + n / s.chunk * size);
        delta_token(in, s, at, at.b * s.T + n, t, S);
    }
    for (int64_t chunk = s.chunks - 1; chunk >= 0; chunk--) {
        int64_t first = chunk * s.chunk, end = first + s.chunk < s.T ? first + s.chunk : s.T;
        strip_load(s, at, starts + chunk * size, S);
        for (int64_t n = first; n < end; n++) {
            int64_t row = at.b * s.T + n;
            for (int j = 0; j < in.steps; j++) {
                strip_store(s, at, S, inner + ((n - first) * in.steps + j) * size);
                real a = delta_read(in, s, at, row, j, t);
                delta_update(in, stride, at, t, a, S);
            }
            delta_readout_gradient(in, s, at, row, d_o, t, S, partial + n * width, nullptr);
        }
        for (int64_t n = end - 1; n >= first; n--) {
            int64_t row = at.b * s.T + n;
            real *of = partial + n * width;
            delta_readout_gradient(in, s, at, row, d_o, t, S, nullptr, G);
            for (int j = in.steps - 1; j >= 0; j--) {
                __syncwarp();
                strip_load(s, at, inner + ((n - first) * in.steps + j) * size, S);
                real a = delta_read(in, s, at, row, j, t);
                delta_step_gradient(in, s, at, t, a, S, G,
                                    dv ? dv + ((row * in.steps + j) * in.H + at.h) * s.dv + at.first : nullptr, add_v,
                                    of + in.dk + in.decays + j * delta_step_partial(in));
            }
            real all = 0;
            __syncwarp();
            for (int i = at.lane; i < in.dk; i += WARP) {
                real sum = 0;
                for (int j = 0; j < at.width; j++) sum = real_fma(G[i * stride + j], S[i * stride + j], sum);
                if (in.decays > 1) of[in.dk + i] = sum;
                all += sum;
            }
            all = warp_sum(all);
            if (at.lane == 0 && in.decays == 1) of[in.dk] = all;
            if (at.in) each_element(in, stride, at, G, [&](int i, real x) { return x * t.f[i]; });
        }
    }
}

struct delta_scratch {
    real *starts, *inner, *partial;
};

} // namespace

static int64_t matrices_of(enum pass pass) {
    return pass == PASS_FORWARD ? 1 : 2;
}

static struct strip_shape strips_of(const struct call *c, enum pass pass) {
    struct state_shape s = delta_shape(c);
    return strip_shape_of(s.B, s.T, s.heads, s.dk, s.dv, matrices_of(pass), delta_vectors(s.dk));
}

static struct delta_scratch scratch_arrays(const struct call *c, struct scratch *scratch) {
    struct state_shape z = delta_shape(c);
    struct strip_shape s = strips_of(c, PASS_BACKWARD);
    int64_t strips = s.B * s.H * s.strips, size = (int64_t)s.rows * s.W;
    struct delta_scratch r;
    r.starts = scratch_reals(scratch, strips * s.chunks * size);
    r.inner = scratch_reals(scratch, strips * s.chunk * z.steps * size);
    r.partial = scratch_reals(scratch, strips * s.T * delta_partial(delta_inputs_of(c)));
    return r;
}

static bool scan_delta_cuda_applicable(const struct call *c, const char **why) {
    int64_t dk = delta_shape(c).dk;
    return strip_fits(dk, matrices_of(PASS_BACKWARD), delta_vectors(dk), why);
}

static void scan_delta_cuda_forward(const struct call *c, const struct exec *x) {
    struct strip_shape s = strips_of(c, PASS_FORWARD);
    size_t bytes = strip_shared_bytes(s, matrices_of(PASS_FORWARD), delta_vectors(s.rows));
    LAUNCH(x, delta_forward_kernel, dim3((unsigned)(s.B * s.H * s.strips)), dim3(WARP), bytes, delta_inputs_of(c), s,
           tensor_real(c->out[0]), tensor_real(c->out[1]), delta_shape(c).chunks);
}

static size_t scan_delta_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch scratch = scratch_measure(c);
    if (pass == PASS_BACKWARD) scratch_arrays(c, &scratch);
    return scratch.used;
}

static void scan_delta_cuda_backward(const struct call *c, const struct exec *x) {
    struct strip_shape s = strips_of(c, PASS_BACKWARD);
    struct delta_inputs in = delta_inputs_of(c);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct delta_scratch r = scratch_arrays(c, &scratch);
    size_t bytes = strip_shared_bytes(s, matrices_of(PASS_BACKWARD), delta_vectors(s.rows));
    LAUNCH(x, delta_backward_kernel, dim3((unsigned)(s.B * s.H * s.strips)), dim3(WARP), bytes, in, s, call_dout(c, 0),
           c->din[DELTA_V], call_accumulates(c, DELTA_V), r.starts, r.inner, r.partial);
    delta_gradient_sums(c, x, in, s, r.partial);
}

/* Tolerance: products of the state with vectors are sums of dk or dv terms in working precision, and the state carries
 * rounding errors through T steps. */
const struct kernel kernel_scan_delta_cuda = {
    .name = "scan_delta_cuda",
    .op = &op_scan_delta,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 256,
    .applicable = scan_delta_cuda_applicable,
    .workspace = scan_delta_cuda_workspace,
    .forward = scan_delta_cuda_forward,
    .backward = scan_delta_cuda_backward,
};
