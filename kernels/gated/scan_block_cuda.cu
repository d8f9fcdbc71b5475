/* scan_block_cuda.cu - BD-LRU (scan_block.c) on CUDA, with the scan engine of scan.cuh. In this file "block" means a
 * block of BD-LRU, never a CUDA thread block.
 *
 * A block has m states. Row i of a block has, for j = 0..m,
 *   z[i][j]         raw gates, an input
 *   p[i][j], S[i]   p = f(z), with f from gate.h; S[i] = sum_j p[i][j]
 *   a[i][j]         gates: a = p / S. The code computes p * scale, where scale = 1 / S
 *   v[i], h[i]      input and state
 *   A               matrix m x m of the gates a[i][j] with j < m
 * and computes
 *   h_t[i] = sum_{j < m} a_t[i][j] h_{t-1}[j] + a_t[i][m] v_t[i]
 *
 * Each row has its own thread, which reads and normalises gates some time steps before it needs them. At each time step
 * the m threads of a block exchange their states through shared memory. The 32 threads of a warp compute the same row i
 * of 32 neighbouring blocks, so they read neighbouring values.
 *
 * Backward recomputes the gates. The whole gradient of h_t is G_t = dh_t + carry; the carry from step t + 1 is
 * A_{t+1}^T G_{t+1}. Let x_j = h_{t-1}[j] for j < m and x_m = v_t[i]. Let w be the derivative da / dz for constant S.
 *   change of a, with S constant   dz_t[i][j]  = w_t[i][j] G_t[i] x_j
 *   change of S, if gates divide   dz_t[i][j] -= w_t[i][j] G_t[i] h_t[i]      because sum_l a_t[i][l] x_l = h_t[i]
 *
 * A long sequence is cut into chunks (scan.cuh). A lane is one block of one sequence, in one chunk. A chunk has the
 * steps f to e and the product P = A_e ... A_f:
 *   forward    state after the chunk = P (state before the chunk) + (state after the chunk if it starts from zero)
 *   backward   carry to step f - 1 = P^T (carry from step e + 1) + sum_t (A_t ... A_f)^T dh_t
 * The summary of a chunk is P and the second term. Backward computes the summary in the order of time too, because the
 * product A_t ... A_f results from the product of the previous step by one multiplication with A_t from the left. */
#include "kernels/gated/scan_gates.cuh"
#include "kernels/lib/round.h"

namespace {

template <int m> struct block_walk {
    static constexpr int ROWS = m, LANES = m == 1 ? 64 : 32;
    /* Number of values that a thread requests at once: more for a small m, which has fewer threads. */
    static constexpr int IN_FLIGHT = m == 1 ? 72 : m == 2 ? 48 : 32;
    scan_shape shape;
    enum gate gate;
    const real *z, *v;

    __device__ __forceinline__ int64_t gate_at(const scan_lane &lane, int t) const {
        return lane.at(t, m * (m + 1)) + lane.row * (m + 1) * lane.N;
    }

    __device__ __forceinline__ int64_t state_at(const scan_lane &lane, int t) const {
        return lane.at(t, m) + lane.row * lane.N;
    }
};

template <int m> struct block_forward : block_walk<m> {
    static constexpr int VALUES = m + 2, STEPS = scan_steps(VALUES, block_walk<m>::IN_FLIGHT);
    static constexpr bool REVERSE = false;
    struct input {
        scan_gates<m> gates;
        real v;
    };
    struct state {
        real before[m];
    };
    struct shared {
        real h[2][m][block_walk<m>::LANES];
    };
    const real *carry; /* the state before the first step of each lane; NULL means zeros */
    real *h;
    void *h_factor; /* h rounded to `products`; NULL: not wanted */
    enum precision products;

    __device__ __forceinline__ void begin(const scan_lane &lane, state &s, shared &) const {
#pragma unroll
        for (int j = 0; j < m; j++) s.before[j] = scan_first(carry, this->shape, lane, j);
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read read) const {
        input in = {};
        in.gates.load(this->z + this->gate_at(lane, t), lane.N, read);
        in.v = read(this->v + this->state_at(lane, t));
        return in;
    }
    __device__ __forceinline__ void prepare(input *in) const {
        scan_normalise<m, STEPS>(this->gate, in);
    }
    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s, shared &rows) const {
        real sum = in.gates.p[m] * in.v;
#pragma unroll
        for (int j = 0; j < m; j++) sum = real_fma(in.gates.p[j], s.before[j], sum);
        sum *= in.gates.scale;
        if (lane.stores) h[this->state_at(lane, t)] = sum;
        if (lane.stores && h_factor) store_rounded<1>(h_factor, this->state_at(lane, t), products, {sum});
        if constexpr (m == 1)
            s.before[0] = sum;
        else
            rows.h[t & 1][lane.row][lane.x] = sum;
    }
    __device__ __forceinline__ void hear(const scan_lane &lane, int t, const input &, state &s, shared &rows) const {
#pragma unroll
        for (int j = 0; j < m; j++) s.before[j] = rows.h[t & 1][j][lane.x];
    }
    __device__ __forceinline__ void end(const scan_lane &, const state &, shared &) const {}
};

template <int m> struct block_adjoint : block_walk<m> {
    static constexpr int VALUES = m + 4, STEPS = scan_steps(VALUES, block_walk<m>::IN_FLIGHT);
    static constexpr bool REVERSE = true;
    struct input {
        scan_gates<m> gates;
        real v, dh, before; /* before: h_{t-1} of this row */
    };
    struct state {
        real h, carry, G;
    };
    struct shared {
        real product[2][m][m][block_walk<m>::LANES], before[2][m][block_walk<m>::LANES];
    };
    const real *h, *dh, *carry; /* carry: the carry to the last step of each lane; NULL means zeros */
    void *dz, *dv;
    bool add_dz, add_dv;
    enum precision dz_in, dv_in; /* the precisions in which dz and dv are stored */
    void *dz_factor;             /* dz rounded to `products`; NULL: not wanted */
    enum precision products;

    __device__ __forceinline__ void begin(const scan_lane &lane, state &s, shared &) const {
        s = {h[this->state_at(lane, lane.last())], scan_first(carry, this->shape, lane, lane.row), 0};
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read read) const {
        input in = {};
        int64_t i = this->state_at(lane, t);
        in.gates.load(this->z + this->gate_at(lane, t), lane.N, read);
        in.v = read(this->v + i);
        in.dh = read(dh + i);
        in.before = t > 0 ? read(h + (i - m * lane.N)) : 0;
        return in;
    }
    __device__ __forceinline__ void prepare(input *in) const {
        scan_normalise<m, STEPS>(this->gate, in);
    }

    __device__ __forceinline__ void store_gradients(const scan_lane &lane, int t, const input &in, state &s,
                                                    const real *before) const {
        real mean = gate_divides(this->gate) ? s.h : 0;
        s.h = in.before;
        if (!lane.stores) return;
        if (dv) put_rounded<1>(dv, this->state_at(lane, t), add_dv, dv_in, {in.gates.p[m] * (s.G * in.gates.scale)});
        if (!dz) return;
#pragma unroll
        for (int j = 0; j <= m; j++) {
            real value = in.gates.slope(this->gate, j) * (s.G * ((j < m ? before[j] : in.v) - mean));
            int64_t at = this->gate_at(lane, t) + j * lane.N;
            put_rounded<1>(dz, at, add_dz, dz_in, {value});
            if (dz_factor) store_rounded<1>(dz_factor, at, products, {value});
        }
    }

    /* Computes G_t[i]. For the other rows it writes h_{t-1}[i], and a_t[i][j] G_t[i] for each j, to shared memory. */
    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s, shared &rows) const {
        s.G = in.dh + s.carry;
        real G_scale = s.G * in.gates.scale;
        if constexpr (m == 1) {
            s.carry = in.gates.p[0] * G_scale;
            store_gradients(lane, t, in, s, &in.before);
        } else {
            auto &product = rows.product[t & 1];
#pragma unroll
            for (int j = 0; j < m; j++) product[lane.row][j][lane.x] = in.gates.p[j] * G_scale;
            rows.before[t & 1][lane.row][lane.x] = in.before;
        }
    }

    /* Computes the carry of row i from the products of all rows, and stores the gradients. */
    __device__ __forceinline__ void hear(const scan_lane &lane, int t, const input &in, state &s, shared &rows) const {
        real before[m];
        s.carry = 0;
#pragma unroll
        for (int j = 0; j < m; j++) {
            s.carry += rows.product[t & 1][j][lane.row][lane.x];
            before[j] = rows.before[t & 1][j][lane.x];
        }
        store_gradients(lane, t, in, s, before);
    }
    __device__ __forceinline__ void end(const scan_lane &, const state &, shared &) const {}
};

/* Computes the summary of a chunk. The thread of row i computes row i of P. At every step it reads all rows of P. */
template <int m, bool ADJOINT> struct block_summary : block_walk<m> {
    static constexpr int VALUES = m + 2, STEPS = scan_steps(VALUES, block_walk<m>::IN_FLIGHT);
    static constexpr int LANES = block_walk<m>::LANES;
    static constexpr bool REVERSE = false;
    struct input {
        scan_gates<m> gates;
        real given;
    };
    struct state {
        real product[m];
        /* forward: h[i]; backward: sum[j] is what row i adds to element j of the second term */
        real sum[ADJOINT ? m : 1];
    };
    struct shared {
        real product[2][m][m][LANES], sum[2][ADJOINT ? 1 : m][LANES];
    };
    const real *given; /* v in forward, dh in backward */
    real *summary;

    __device__ __forceinline__ void begin(const scan_lane &, state &s, shared &) const {
        s = {};
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read read) const {
        input in = {};
        in.gates.load(this->z + this->gate_at(lane, t), lane.N, read);
        in.given = read(given + this->state_at(lane, t));
        return in;
    }
    __device__ __forceinline__ void prepare(input *in) const {
        scan_normalise<m, STEPS>(this->gate, in);
    }

    /* Multiplies P and h of the previous step by row i of p_t. Then step() multiplies by scale = 1 / S. */
    __device__ __forceinline__ void multiply(const scan_lane &lane, int t, const input &in, state &s,
                                             const shared &rows) const {
        const real *p = in.gates.p;
        if constexpr (m == 1) {
            s.product[0] *= p[0];
            if (!ADJOINT) s.sum[0] *= p[0];
            return;
        }
        int before = (t & 1) ^ 1;
#pragma unroll
        for (int l = 0; l < m; l++) {
#pragma unroll
            for (int j = 0; j < m; j++) {
                real value = rows.product[before][l][j][lane.x];
                s.product[j] = l == 0 ? p[0] * value : real_fma(p[l], value, s.product[j]);
            }
            if constexpr (!ADJOINT) {
                real value = rows.sum[before][l][lane.x];
                s.sum[0] = l == 0 ? p[0] * value : real_fma(p[l], value, s.sum[0]);
            }
        }
    }

    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s, shared &rows) const {
        if (t != lane.first) {
            multiply(lane, t, in, s, rows);
        } else {
#pragma unroll
            for (int j = 0; j < m; j++) s.product[j] = in.gates.p[j];
        }
#pragma unroll
        for (int j = 0; j < m; j++) {
            s.product[j] *= in.gates.scale;
            if constexpr (ADJOINT) s.sum[j] = real_fma(s.product[j], in.given, s.sum[j]);
            if constexpr (m > 1) rows.product[t & 1][lane.row][j][lane.x] = s.product[j];
        }
        if constexpr (!ADJOINT) {
            s.sum[0] = real_fma(in.gates.p[m], in.given, s.sum[0]) * in.gates.scale;
            if constexpr (m > 1) rows.sum[t & 1][lane.row][lane.x] = s.sum[0];
        }
    }
    __device__ __forceinline__ void hear(const scan_lane &, int, const input &, state &, shared &) const {}

    /* Stores the summary. Backward stores P^T in place of P. */
    __device__ __forceinline__ void end(const scan_lane &lane, const state &s, shared &rows) const {
        real sum = s.sum[0], *to = summary + lane.index;
        int64_t plane = scan_lanes(this->shape);
        if constexpr (ADJOINT && m > 1) {
#pragma unroll
            for (int j = 0; j < m; j++) rows.product[0][lane.row][j][lane.x] = s.sum[j];
            __syncthreads();
            sum = 0;
#pragma unroll
            for (int j = 0; j < m; j++) sum += rows.product[0][j][lane.row][lane.x];
        }
        if (!lane.stores) return;
#pragma unroll
        for (int j = 0; j < m; j++) to[(ADJOINT ? j * m + lane.row : lane.row * m + j) * plane] = s.product[j];
        to[(m * m + lane.row) * plane] = sum;
    }
};

/* --- calls -------------------------------------------------------------------------------------------------------- */

template <bool CHUNKED> scan_shape shape_of(const struct call *c) {
    const int64_t *dims = c->in[1]->dims;
    const struct scan_attr *a = scan_attr(c);
    return CHUNKED ? scan_chunked(dims[0], dims[1], a->N, a->m) : scan_whole(dims[0], dims[1], a->N);
}

template <int m> block_walk<m> walk_of(const struct call *c, const scan_shape &shape) {
    return {shape, scan_attr(c)->gate, tensor_real(c->in[0]), tensor_real(c->in[1])};
}

/* Returns the state before each chunk (forward), or the carry to the last step of each chunk (ADJOINT). */
template <int m, bool ADJOINT>
const real *chunk_states(const struct call *c, const struct exec *e, const scan_shape &shape, const real *given) {
    real *summary = (real *)c->scratch[ADJOINT ? PASS_BACKWARD : PASS_FORWARD];
    scan_launch(c, e, block_summary<m, ADJOINT>{walk_of<m>(c, shape), given, summary});
    return scan_carry_over<m, ADJOINT, false>(c, e, shape, summary);
}

template <bool CHUNKED> void block_cuda_forward(const struct call *c, const struct exec *e) {
    scan_with(scan_attr(c), [=]<int m>() {
        scan_shape shape = shape_of<CHUNKED>(c);
        const real *carry = nullptr;
        if constexpr (CHUNKED) carry = chunk_states<m, false>(c, e, shape, tensor_real(c->in[1]));
        scan_launch_long(
            c, e,
            block_forward<m>{walk_of<m>(c, shape), carry, tensor_real(c->out[0]), c->out[0]->factor, c->precision});
    });
}

template <bool CHUNKED> void block_cuda_backward(const struct call *c, const struct exec *e) {
    scan_with(scan_attr(c), [=]<int m>() {
        scan_shape shape = shape_of<CHUNKED>(c);
        const real *carry = nullptr;
        if constexpr (CHUNKED) carry = chunk_states<m, true>(c, e, shape, call_dout(c, 0));
        scan_launch_long(c, e,
                         block_adjoint<m>{walk_of<m>(c, shape), tensor_real(c->out[0]), call_dout(c, 0), carry,
                                          c->din[0], c->din[1], call_accumulates(c, 0), call_accumulates(c, 1),
                                          din_precision(c, 0), din_precision(c, 1), c->in[0]->grad_factor,
                                          c->precision});
    });
}

size_t chunk_workspace(const struct call *c, enum pass) {
    int64_t m = scan_attr(c)->m;
    return (size_t)scan_chunk_values(shape_of<true>(c), m, false) * sizeof(real);
}

bool chunks_preferred(const struct call *c) {
    int64_t m = scan_attr(c)->m;
    return scan_gated_chunks_pay(c, m * (m + 2));
}

} // namespace

/* Tolerance: the gates of a row sum to 1, so the rounding errors of earlier steps do not grow. Each step adds an error
 * of about one unit roundoff with random sign. The reference sums in double. In dz = w G (x - h) the difference x - h
 * may be almost 0, so the error of dz is compared with |w G| (|x| + |h|) (op->terms). The chunked kernel also rounds P
 * and the second term of the summary once per time step. */
const struct kernel kernel_scan_block_cuda = {
    .name = "scan_block_cuda",
    .op = &op_scan_block,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .applicable = scan_gates_fit,
    .rounds_din = 3,
    .copies_out = 1,
    .copies_din = 1,
    .forward = block_cuda_forward<false>,
    .backward = block_cuda_backward<false>,
};

const struct kernel kernel_scan_block_chunk_cuda = {
    .name = "scan_block_chunk_cuda",
    .op = &op_scan_block,
    .device = DEVICE_CUDA,
    .version = 2,
    .inexact = true,
    .tolerance = 64,
    .applicable = scan_gates_fit,
    .preferred = chunks_preferred,
    .workspace = chunk_workspace,
    .rounds_din = 3,
    .copies_out = 1,
    .copies_din = 1,
    .forward = block_cuda_forward<true>,
    .backward = block_cuda_backward<true>,
};
