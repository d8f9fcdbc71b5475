/* scan_outer_chunk_cuda.cu - scan_outer on CUDA with segments of tokens in parallel: head_chunk.cuh if a block can hold
 * a whole head, else outer_chunk.cuh with one state per head. Forward stores the state before every 16th token, so that
 * backward need not compute it again. */
#include "kernels/matrix/outer_call.cuh"
#include "kernels/matrix/outer/head_chunk.cuh"

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

/* How a call is computed: by head_chunk.cuh if `values` is not 0, else by outer_chunk.cuh. s: the strips that compute
 * the states between segments, and without head_chunk.cuh all gradients. */
struct outer_plan {
    struct outer_inputs in;
    struct state_shape z;
    struct strip_shape s;
    int values;
    struct between mid;
    real *partial; /* NULL: each head writes its own gradients */
};

inline struct outer_plan outer_plan_of(const struct call *c, enum pass pass, struct scratch *scratch) {
    struct outer_plan p = {.in = outer_inputs_of(c), .z = outer_shape(c)};
    p.values = head_values(p.z, c->place->cuda);
    int64_t segment = p.values ? head_segment(p.z) : SEGMENT;
    p.s = outer_chunks_of<single_gates>(p.z, 1, pass, segment);
    p.mid = take_between(p.z, 1, scratch, segment);
    if (pass == PASS_BACKWARD && (!p.values || p.z.groups < p.z.heads))
        p.partial = take_partial(p.in, p.values ? head_shape(p.z, head_segment(p.z)) : p.s, scratch);
    return p;
}

/* Says where the heads write gradients. Of keys that several heads share, each head writes its part. */
inline struct head_gradients head_gradients_of(const struct outer_plan &p, const struct outer_gradients &d) {
    int64_t T = p.z.T, H = p.z.heads, dk = p.z.dk, dv = p.z.dv, part = outer_partial(dk, 1);
    struct head_gradients to = {.v = {d.v, T * H * dv, H * dv, dv, d.add_v}, .gates = d};
    if (p.partial) {
        to.q = {p.partial, H * T * part, part, T * part, false};
        to.k = {p.partial + dk, H * T * part, part, T * part, false};
    } else {
        to.q = {d.q, T * H * dk, H * dk, dk, d.add_q};
        to.k = {d.k, T * H * dk, H * dk, dk, d.add_k};
    }
    return to;
}

} // namespace

static bool scan_outer_chunk_cuda_applicable(const struct call *c, const char **why) {
    return outer_chunks_fit<single_gates>(outer_shape(c), 1, why);
}

static bool scan_outer_chunk_cuda_preferred(const struct call *c) {
    return outer_chunks_pay(outer_shape(c));
}

static size_t scan_outer_chunk_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch scratch = scratch_measure(c);
    outer_plan_of(c, pass, &scratch);
    return scratch.used;
}

static void scan_outer_chunk_cuda_forward(const struct call *c, const struct exec *x) {
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct outer_plan p = outer_plan_of(c, PASS_FORWARD, &scratch);
    real *y = tensor_real(c->out[0]), *kept = tensor_real(c->out[1]);
    if (!p.values) {
        outer_chunks_forward<single_gates>(c, x, p.in, p.z, p.mid, y, kept);
        return;
    }
    outer_states_between<single_gates, PASS_FORWARD>(c, x, p.in, p.s, nullptr, p.mid);
    auto launch = p.values == HEAD_KEYS ? head_forward_launch<HEAD_KEYS> : head_forward_launch<HEAD_MOST>;
    launch(x, p.in, head_shape(p.z, head_segment(p.z)), p.mid, y, kept);
}

static void scan_outer_chunk_cuda_backward(const struct call *c, const struct exec *x) {
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct outer_plan p = outer_plan_of(c, PASS_BACKWARD, &scratch);
    struct outer_gradients d = outer_gradients_of(c);
    real *kept = tensor_real(c->out[1]);
    if (!p.values) {
        outer_chunks_backward<single_gates>(c, x, p.in, p.s, p.mid, kept, p.partial, d);
        return;
    }
    outer_states_between<single_gates, PASS_BACKWARD>(c, x, p.in, p.s, call_dout(c, 0), p.mid);
    auto launch = p.values == HEAD_KEYS ? head_backward_launch<HEAD_KEYS> : head_backward_launch<HEAD_MOST>;
    launch(x, p.in, head_shape(p.z, head_segment(p.z)), call_dout(c, 0), p.mid, kept, head_gradients_of(p, d));
    struct outer_gradients keys = {.q = d.q, .k = d.k, .add_q = d.add_q, .add_k = d.add_k};
    if (p.partial) outer_gradient_sums(c, x, p.in, head_shape(p.z, head_segment(p.z)), p.partial, keys);
}

/* Tolerance: the state sums T outer products, and its products with vectors sum dk or dv terms, all in working
 * precision. Products by tensor cores are as exact as in fp32 (tile_product.cuh). */
const struct kernel kernel_scan_outer_chunk_cuda = {
    .name = "scan_outer_chunk_cuda",
    .op = &op_scan_outer,
    .device = DEVICE_CUDA,
    .version = 3,
    .inexact = true,
    .tolerance = 256,
    .applicable = scan_outer_chunk_cuda_applicable,
    .preferred = scan_outer_chunk_cuda_preferred,
    .workspace = scan_outer_chunk_cuda_workspace,
    .forward = scan_outer_chunk_cuda_forward,
    .backward = scan_outer_chunk_cuda_backward,
};
