/* scan_outer_chunk_cuda.cu - scan_outer on CUDA, 64 tokens at a time in parallel: outer_chunk.cuh with one state per
 * head. Forward stores the state before every 16th token, so that backward need not compute it again. */
#include "kernels/matrix/outer_call.cuh"
#include "kernels/matrix/outer_chunk.cuh"

namespace {

/* Gates of a chunk if a head has one state. reach[m][n] for m < n is the factor with which a number in the state after
 * token m reaches the output of token n; it is 0 if m >= n. */
struct single_gates {
    static constexpr bool SINGLE = true;
    static constexpr int J = 1;
    real *T, *S, *M, *D;
    /* products of T before and after each token; before[STATE_CHUNK] is the product of the whole chunk */
    real *before, *after;
    struct matrix reach;
    /* For backward. Y[t][n]: output of token n if it read the state before token t; left: for the state after the
     * chunk. */
    struct matrix Y;
    real *dM, *passed, *left; /* one number per token */
    real *warps;

    __host__ __device__ static struct single_gates take(int, enum pass pass, struct cursor *c) {
        const int N = STATE_CHUNK;
        struct single_gates g = {};
        g.T = c->take(N);
        g.S = c->take(N);
        g.M = c->take(N);
        g.D = c->take(N);
        g.after = c->take(N);
        g.before = c->take(N + 1);
        g.reach = c->take(N, N);
        if (pass == PASS_FORWARD) return g;
        g.Y = c->take(N, N);
        g.dM = c->take(N);
        g.passed = c->take(N);
        g.left = c->take(N);
        g.warps = c->take(CHUNK_THREADS / WARP);
        return g;
    }

    __device__ real gate(int m, int n) const {
        return m == n ? D[n] : S[m] * reach(m, n);
    }
    __device__ real reads(int, int n) const {
        return M[n] * before[n];
    }
    __device__ real writes(int, int m) const {
        return S[m] * after[m];
    }
    __device__ real through(int, int) const {
        return before[STATE_CHUNK];
    }
    __device__ real &entry(int, int n) const {
        return Y(0, n);
    }
    __device__ real &taken(int, int m) const {
        return passed[m];
    }
    __device__ real &along(int, int) const {
        return left[0];
    }

    __device__ void load(const struct outer_inputs &in, const struct strip_shape &s, const struct segment &at,
                         int begin) const {
        int n = (int)threadIdx.x;
        if (n >= STATE_CHUNK) return;
        int64_t head = (at.b * s.T + begin + n) * in.H + at.h;
        bool is = n < chunk_count(at, begin);
        T[n] = is ? in.transition[head] : 1;
        S[n] = !is ? 0 : in.source ? in.source[head] : 1;
        M[n] = !is ? 0 : in.mark ? in.mark[head] : in.transition[head];
        D[n] = !is ? 0 : in.direct ? in.direct[head] : S[n];
    }

    __device__ void products(void) const {
        const int N = STATE_CHUNK;
        for (int e = (int)threadIdx.x; e < N * N; e += CHUNK_THREADS) {
            int m = e / N, n = e % N;
            real z = n > m ? M[n] : 0;
            for (int t = n - 1; t > m; t--) z *= T[t];
            reach(m, n) = z;
        }
        for (int n = (int)threadIdx.x; n <= N; n += CHUNK_THREADS) {
            real front = 1, rest = 1;
            for (int t = 0; t < n; t++) front *= T[t];
            for (int t = N - 1; t > n; t--) rest *= T[t];
            before[n] = front;
            if (n < N) after[n] = rest;
        }
    }

    /* Computes Y, dM and left token after token, with one thread per token and one more for left. Before the call, the
     * first row of Y contains Y for the state before the chunk, and left[0] the product for the state after the
     * chunk. */
    __device__ void walk(struct matrix keys, struct matrix values) const {
        int n = (int)threadIdx.x;
        if (n < STATE_CHUNK) {
            real y = Y(0, n);
            for (int t = 0; t < STATE_CHUNK; t++) {
                Y(t, n) = y;
                if (t == n) dM[n] = y;
                y = real_fma(T[t], y, S[t] * (keys(t, n) * values(t, n)));
            }
        } else if (n == STATE_CHUNK) {
            real y = left[0];
            for (int t = 0; t < STATE_CHUNK; t++) {
                left[t] = y;
                y = real_fma(T[t], y, S[t] * passed[t]);
            }
        }
    }

    __device__ void write(struct matrix keys, struct matrix values, int count, real *to, int64_t step) const {
        walk(keys, values);
        __syncthreads();
        int t = (int)threadIdx.x;
        if (t >= count) return;
        real dS = after[t] * passed[t], dT = after[t] * left[t];
        for (int n = t + 1; n < STATE_CHUNK; n++) {
            dS = real_fma(reach(t, n), keys(t, n) * values(t, n), dS);
            dT = real_fma(reach(t, n), Y(t, n), dT);
        }
        to[t * step] = dS;
        to[t * step + 1] = dM[t];
        to[t * step + 2] = dT;
        to[t * step + 3] = keys(t, t) * values(t, t);
    }
};

} // namespace

static bool scan_outer_chunk_cuda_applicable(const struct call *c, const char **why) {
    return outer_chunks_fit<single_gates>(outer_shape(c), 1, why);
}

static bool scan_outer_chunk_cuda_preferred(const struct call *c) {
    return outer_chunks_pay(outer_shape(c));
}

static size_t scan_outer_chunk_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch scratch = scratch_measure(c);
    struct outer_inputs in = outer_inputs_of(c);
    take_between(outer_shape(c), 1, &scratch);
    if (pass == PASS_BACKWARD)
        take_partial(in, outer_chunks_of<single_gates>(outer_shape(c), 1, PASS_BACKWARD), &scratch);
    return scratch.used;
}

static void scan_outer_chunk_cuda_forward(const struct call *c, const struct exec *x) {
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct between mid = take_between(outer_shape(c), 1, &scratch);
    outer_chunks_forward<single_gates>(c, x, outer_inputs_of(c), outer_shape(c), mid, tensor_real(c->out[0]),
                                       tensor_real(c->out[1]));
}

static void scan_outer_chunk_cuda_backward(const struct call *c, const struct exec *x) {
    struct outer_inputs in = outer_inputs_of(c);
    struct strip_shape s = outer_chunks_of<single_gates>(outer_shape(c), 1, PASS_BACKWARD);
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct between mid = take_between(outer_shape(c), 1, &scratch);
    real *partial = take_partial(in, s, &scratch);
    outer_chunks_backward<single_gates>(c, x, in, s, mid, tensor_real(c->out[1]), partial, outer_gradients_of(c));
}

/* Tolerance: the state sums T outer products, and its products with vectors sum dk or dv terms, all in working
 * precision. Products by tensor cores are as exact as in fp32 (tile_product.cuh). */
const struct kernel kernel_scan_outer_chunk_cuda = {
    .name = "scan_outer_chunk_cuda",
    .op = &op_scan_outer,
    .device = DEVICE_CUDA,
    .version = 2,
    .inexact = true,
    .tolerance = 256,
    .applicable = scan_outer_chunk_cuda_applicable,
    .preferred = scan_outer_chunk_cuda_preferred,
    .workspace = scan_outer_chunk_cuda_workspace,
    .forward = scan_outer_chunk_cuda_forward,
    .backward = scan_outer_chunk_cuda_backward,
};
