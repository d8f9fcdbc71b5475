/* scan_plstm_chunk_cuda.cu - pLSTM on sequences on CUDA, with segments of 64 tokens in parallel: outer_chunk.cuh with J
 * states per head. Equations: scan_plstm.c, and for the gates and their gradients chunk_gates.h.
 *
 * The op keeps no states, so backward first goes forward again, without outputs, and stores the states before every
 * 16th token in scratch. In float, shared memory has room for 4 states at dk = 64 and for 7 at dk = 16. */
#include "kernels/matrix/outer_chunk.cuh"
#include "kernels/plstm/scan_plstm_call.cuh"

namespace {

/* Gates of a chunk of J coupled states. Readers n are the tokens and, after them, an exit for each state after the
 * chunk. z(t, j, n): what reader n reads of a unit in state j before token t, which is Z_{t-1}. */
struct track_gates {
    static constexpr bool SINGLE = false;
    int J, readers;
    real *T, *S, *M, *D, *Z;
    struct matrix pairs; /* Gate[m][n] */
    real *Y;             /* from here on only backward; y(t, j, n): what n would read of state j before t */
    real *passed;        /* R of the exits */
    real *warps;

    __host__ __device__ static struct track_gates take(int J, enum pass pass, struct cursor *c) {
        const int N = STATE_CHUNK, readers = N + J;
        struct track_gates g = {};
        g.J = J;
        g.readers = readers;
        g.T = c->take(N * J * J);
        g.S = c->take(N * J);
        g.M = c->take(N * J);
        g.D = c->take(N);
        g.Z = c->take((N + 1) * J * readers);
        g.pairs = c->take(N, readers);
        if (pass == PASS_FORWARD) return g;
        g.Y = c->take(N * J * readers);
        g.passed = c->take(J * N);
        g.warps = c->take(CHUNK_THREADS / WARP);
        return g;
    }

    __device__ real &z(int t, int j, int n) const {
        return Z[(t * J + j) * readers + n];
    }
    __device__ real &y(int t, int j, int n) const {
        return Y[(t * J + j) * readers + n];
    }
    __device__ real transition(int t, int to, int from) const {
        return T[(t * J + to) * J + from];
    }
    __device__ real gate(int m, int n) const {
        return pairs(m, n);
    }
    __device__ real reads(int i, int n) const {
        return z(0, i, n);
    }
    __device__ real writes(int a, int m) const {
        return pairs(m, STATE_CHUNK + a);
    }
    __device__ real through(int i, int a) const {
        return z(0, i, STATE_CHUNK + a);
    }
    __device__ real &entry(int i, int n) const {
        return y(0, i, n);
    }
    __device__ real &along(int a, int i) const {
        return y(0, i, STATE_CHUNK + a);
    }
    __device__ real &taken(int a, int m) const {
        return passed[a * STATE_CHUNK + m];
    }

    __device__ void load(const struct outer_inputs &in, const struct strip_shape &s, const struct segment &at,
                         int begin) const {
        int count = chunk_count(at, begin);
        int64_t head = (at.b * s.T + begin) * in.H + at.h;
        for (int e = (int)threadIdx.x; e < STATE_CHUNK * J * J; e += CHUNK_THREADS) {
            int n = e / (J * J), of = e % (J * J);
            T[e] = n < count ? in.transition[(head + n * in.H) * J * J + of] : of / J == of % J;
        }
        for (int e = (int)threadIdx.x; e < STATE_CHUNK * J; e += CHUNK_THREADS) {
            int n = e / J, j = e % J;
            S[e] = n < count ? in.source[(head + n * in.H) * J + j] : 0;
            M[e] = n < count ? in.mark[(head + n * in.H) * J + j] : 0;
        }
        int n = (int)threadIdx.x;
        if (n < STATE_CHUNK) D[n] = n < count ? in.direct[head + n * in.H] : 0;
    }

    /* The factor with which reader n reads state j before token t, from its factors before the next token. */
    __device__ real reach(int t, int j, int n) const {
        if (t == STATE_CHUNK) return n == STATE_CHUNK + j;
        if (n <= t) return n == t ? M[t * J + j] : 0;
        real sum = transition(t, 0, j) * z(t + 1, 0, n);
        for (int i = 1; i < J; i++) sum = real_fma(transition(t, i, j), z(t + 1, i, n), sum);
        return sum;
    }

    __device__ void products(void) const {
        for (int t = STATE_CHUNK; t >= 0; t--) {
            for (int e = (int)threadIdx.x; e < J * readers; e += CHUNK_THREADS)
                z(t, e / readers, e % readers) = reach(t, e / readers, e % readers);
            __syncthreads();
        }
        for (int e = (int)threadIdx.x; e < STATE_CHUNK * readers; e += CHUNK_THREADS) {
            int m = e / readers, n = e % readers;
            real sum = n == m ? D[m] : 0;
            for (int i = 0; i < J; i++) sum = real_fma(S[m * J + i], z(m + 1, i, n), sum);
            pairs(m, n) = sum;
        }
    }

    /* R[t][n] */
    __device__ real product(struct matrix keys, struct matrix values, int t, int n) const {
        return n < STATE_CHUNK ? keys(t, n) * values(t, n) : taken(n - STATE_CHUNK, t);
    }

    /* Computes Y along the chunk. */
    __device__ void walk(struct matrix keys, struct matrix values) const {
        for (int t = 0; t < STATE_CHUNK - 1; t++) {
            for (int e = (int)threadIdx.x; e < J * readers; e += CHUNK_THREADS) {
                int i = e / readers, n = e % readers;
                real sum = S[t * J + i] * product(keys, values, t, n);
                for (int j = 0; j < J; j++) sum = real_fma(transition(t, i, j), y(t, j, n), sum);
                y(t + 1, i, n) = sum;
            }
            __syncthreads();
        }
    }

    __device__ void write(struct matrix keys, struct matrix values, int count, real *to, int64_t step) const {
        walk(keys, values);
        for (int e = (int)threadIdx.x; e < count * J * J; e += CHUNK_THREADS) {
            int t = e / (J * J), i = e / J % J, j = e % J;
            real sum = 0;
            for (int n = t + 1; n < readers; n++) sum = real_fma(z(t + 1, i, n), y(t, j, n), sum);
            to[t * step + 2 * J + i * J + j] = sum;
        }
        for (int e = (int)threadIdx.x; e < count * J; e += CHUNK_THREADS) {
            int t = e / J, i = e % J;
            real sum = 0;
            for (int n = t + 1; n < readers; n++) sum = real_fma(z(t + 1, i, n), product(keys, values, t, n), sum);
            to[t * step + i] = sum;
            to[t * step + J + i] = y(t, i, t);
        }
        int t = (int)threadIdx.x;
        if (t < count) to[t * step + 2 * J + J * J] = keys(t, t) * values(t, t);
    }
};

inline struct state_shape shape_of(const struct call *c) {
    struct dag_sizes z = plstm_sizes(c);
    struct state_shape s = {.B = z.B, .T = z.T, .heads = z.H, .groups = z.H, .steps = 1, .dk = z.dk, .dv = z.dv};
    s.chunks = (z.T + STATE_CHUNK - 1) / STATE_CHUNK;
    return s;
}

inline struct strip_shape backward_strips(const struct call *c) {
    return outer_chunks_of<track_gates>(shape_of(c), plstm_inputs(c).J, PASS_BACKWARD);
}

/* mid: of forward, then of backward. kept: the states before every chunk. */
struct plstm_scratch {
    struct between mid;
    real *kept, *partial;
};

inline struct plstm_scratch take_scratch(const struct call *c, enum pass pass, struct scratch *scratch) {
    struct outer_inputs in = plstm_inputs(c);
    struct state_shape s = shape_of(c);
    struct plstm_scratch r = {};
    r.mid = take_between(s, in.J, scratch);
    if (pass == PASS_FORWARD) return r;
    r.kept = scratch_reals(scratch, s.B * s.chunks * s.heads * in.J * s.dk * s.dv);
    r.partial = take_partial(in, backward_strips(c), scratch);
    return r;
}

} // namespace

static bool scan_plstm_chunk_cuda_applicable(const struct call *c, const char **why) {
    return outer_chunks_fit<track_gates>(shape_of(c), plstm_inputs(c).J, why);
}

static bool scan_plstm_chunk_cuda_preferred(const struct call *c) {
    return outer_chunks_pay(shape_of(c));
}

static size_t scan_plstm_chunk_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch scratch = scratch_measure(c);
    take_scratch(c, pass, &scratch);
    return scratch.used;
}

static void scan_plstm_chunk_cuda_forward(const struct call *c, const struct exec *x) {
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct plstm_scratch r = take_scratch(c, PASS_FORWARD, &scratch);
    outer_chunks_forward<track_gates>(c, x, plstm_inputs(c), shape_of(c), r.mid, tensor_real(c->out[0]), nullptr);
}

static void scan_plstm_chunk_cuda_backward(const struct call *c, const struct exec *x) {
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct plstm_scratch r = take_scratch(c, PASS_BACKWARD, &scratch);
    struct outer_inputs in = plstm_inputs(c);
    outer_chunks_forward<track_gates>(c, x, in, shape_of(c), r.mid, nullptr, r.kept);
    outer_chunks_backward<track_gates>(c, x, in, backward_strips(c), r.mid, r.kept, r.partial, plstm_gradients(c));
}

/* Tolerance: as scan_plstm_cpu; products by tensor cores are as exact as in fp32 (tile_product.cuh). */
const struct kernel kernel_scan_plstm_chunk_cuda = {
    .name = "scan_plstm_chunk_cuda",
    .op = &op_scan_plstm,
    .device = DEVICE_CUDA,
    .version = 2,
    .inexact = true,
    .tolerance = 512,
    .applicable = scan_plstm_chunk_cuda_applicable,
    .preferred = scan_plstm_chunk_cuda_preferred,
    .workspace = scan_plstm_chunk_cuda_workspace,
    .forward = scan_plstm_chunk_cuda_forward,
    .backward = scan_plstm_chunk_cuda_backward,
};
