/* scan_block_cuda.cu - BD-LRU on CUDA: each row of a block is a thread of its own, by the engine of scan.cuh.
 *
 * A row's thread reads and normalises its m + 1 gates ahead of time; per time step the rows of a block tell each other
 * their states through shared memory, behind one barrier (two buffers take turns, so that none is overwritten while it is
 * read). Rows are whole warps and lanes neighbouring blocks, so that every access is a run of neighbouring values.
 * Backward recomputes the gates. A row contributes a_t[i][j] G_t[i] to the carried A_t^T G_t of every row j, and since
 * sum_l a_l da_l = G_t[i] h_t[i], the normaliser's gradient needs no sum:
 *   dz_t[i][j] = w_t[i][j] G_t[i] (x_j - h_t[i]),   x = (h_{t-1}, v_t[i]) */
#include "kernels/scan.cuh"

namespace {

template <int m> struct block_walk {
    static constexpr int ROWS = m, LANES = m == 1 ? 64 : 32;
    static constexpr int IN_FLIGHT = m == 1   ? 72
                                     : m == 2 ? 48
                                              : 32; /* values a thread asks for at once: few rows are few threads */
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
    static constexpr int STEPS = scan_steps(m + 2, block_walk<m>::IN_FLIGHT);
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
    real *h;

    __device__ __forceinline__ void begin(const scan_lane &, state &s, shared &) const {
        s = {};
    }
    __device__ __forceinline__ input load(const scan_lane &lane, int t) const {
        input in = {};
        in.gates.load(this->z + this->gate_at(lane, t), lane.N);
        in.v = this->v[this->state_at(lane, t)];
        return in;
    }
    __device__ __forceinline__ void prepare(input &in) const {
        in.gates.normalise(this->gate);
    }
    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s, shared &rows) const {
        real sum = in.gates.p[m] * in.v;
#pragma unroll
        for (int j = 0; j < m; j++) sum = real_fma(in.gates.p[j], s.before[j], sum);
        sum *= in.gates.scale;
        if (lane.stores) h[this->state_at(lane, t)] = sum;
        if constexpr (m == 1) {
            s.before[0] = sum;
        } else {
            rows.h[t & 1][lane.row][lane.x] = sum;
            __syncthreads();
#pragma unroll
            for (int j = 0; j < m; j++) s.before[j] = rows.h[t & 1][j][lane.x];
        }
    }
    __device__ __forceinline__ void end(const scan_lane &, const state &) const {}
};

template <int m> struct block_adjoint : block_walk<m> {
    static constexpr int STEPS = scan_steps(m + 4, block_walk<m>::IN_FLIGHT);
    static constexpr bool REVERSE = true;
    struct input {
        scan_gates<m> gates;
        real v, dh, before; /* before: h_{t-1} of this row */
    };
    struct state {
        real h, carry;
    };
    struct shared {
        real product[2][m][m][block_walk<m>::LANES], before[2][m][block_walk<m>::LANES];
    };
    const real *h, *dh;
    real *dz, *dv;
    bool add_dz, add_dv;

    __device__ __forceinline__ void begin(const scan_lane &lane, state &s, shared &) const {
        s = {h[this->state_at(lane, this->shape.T - 1)], 0};
    }
    __device__ __forceinline__ input load(const scan_lane &lane, int t) const {
        input in = {};
        int64_t i = this->state_at(lane, t);
        in.gates.load(this->z + this->gate_at(lane, t), lane.N);
        in.v = this->v[i];
        in.dh = dh[i];
        in.before = t > 0 ? h[i - m * lane.N] : 0;
        return in;
    }
    __device__ __forceinline__ void prepare(input &in) const {
        in.gates.normalise(this->gate);
    }

    /* Sends this row's a_t[.] G and h_{t-1}; takes its carry and all of h_{t-1}. */
    __device__ __forceinline__ void exchange(const scan_lane &lane, int t, const input &in, real G, state &s,
                                             shared &rows, real *before) const {
        if constexpr (m == 1) {
            s.carry = in.gates.p[0] * G;
            before[0] = in.before;
        } else {
            auto &product = rows.product[t & 1];
#pragma unroll
            for (int j = 0; j < m; j++) product[lane.row][j][lane.x] = in.gates.p[j] * G;
            rows.before[t & 1][lane.row][lane.x] = in.before;
            __syncthreads();
            s.carry = 0;
#pragma unroll
            for (int j = 0; j < m; j++) {
                s.carry += product[j][lane.row][lane.x];
                before[j] = rows.before[t & 1][j][lane.x];
            }
        }
    }

    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s, shared &rows) const {
        real before[m], G = in.dh + s.carry, mean = gate_divides(this->gate) ? s.h : 0;
        exchange(lane, t, in, G * in.gates.scale, s, rows, before);
        s.h = in.before;
        if (!lane.stores) return;
        if (dv) put(&dv[this->state_at(lane, t)], add_dv, in.gates.p[m] * (G * in.gates.scale));
        if (!dz) return;
        real *row = dz + this->gate_at(lane, t);
#pragma unroll
        for (int j = 0; j <= m; j++)
            put(&row[j * lane.N], add_dz, in.gates.slope(this->gate, j) * (G * ((j < m ? before[j] : in.v) - mean)));
    }
    __device__ __forceinline__ void end(const scan_lane &, const state &) const {}
};

template <int m> block_walk<m> walk_of(const struct call *c) {
    const int64_t *dims = c->in[1]->dims;
    return {scan_whole(dims[0], dims[1], ((const struct scan_attr *)c->attr)->N),
            ((const struct scan_attr *)c->attr)->gate, tensor_real(c->in[0]), tensor_real(c->in[1])};
}

void scan_block_cuda_forward(const struct call *c, const struct exec *x) {
    scan_with((const struct scan_attr *)c->attr, [=]<int m>() {
        scan_launch(c, x, block_forward<m>{walk_of<m>(c), tensor_real(c->out[0])});
    });
}

void scan_block_cuda_backward(const struct call *c, const struct exec *x) {
    scan_with((const struct scan_attr *)c->attr, [=]<int m>() {
        scan_launch(c, x,
                    block_adjoint<m>{walk_of<m>(c), tensor_real(c->out[0]), call_dout(c, 0), c->din[0], c->din[1],
                                     call_accumulates(c, 0), call_accumulates(c, 1)});
    });
}

} // namespace

/* Rounding as scan_block_cpu's, which says why. */
const struct kernel kernel_scan_block_cuda = {
    .name = "scan_block_cuda",
    .op = &op_scan_block,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .applicable = scan_cpu_applicable,
    .forward = scan_block_cuda_forward,
    .backward = scan_block_cuda_backward,
};
