/* scan_block_slice_cuda.cu - BD-LRU (scan_block.c) on CUDA with m of 1 or 2, in slices of time (scan_slices.cuh). A
 * thread has all m rows of a block of BD-LRU, so that no other thread takes part in a time step. Equations and names
 * are those of scan_block_cuda.cu. */
#include "kernels/gated/scan_gates.cuh"
#include "kernels/lib/round.h"

namespace {

template <int m> struct rows_walk {
    using shared = scan_nothing_shared;
    using map = scan_affine<m>;
    scan_shape shape;
    enum gate gate;
    const real *z, *v;

    __device__ __forceinline__ int64_t gate_at(const scan_lane &lane, int t, int i) const {
        return lane.at(t, m * (m + 1)) + i * (m + 1) * lane.N;
    }
    __device__ __forceinline__ int64_t state_at(const scan_lane &lane, int t, int i) const {
        return lane.at(t, m) + i * lane.N;
    }
};

template <int m> struct rows_forward : rows_walk<m> {
    static constexpr int VALUES = m * (m + 2), STEPS = scan_steps(VALUES, SCAN_SLICE_IN_FLIGHT);
    static constexpr bool REVERSE = false;
    using map = scan_affine<m>;
    struct input {
        scan_gates<m> gates[m];
        real v[m];
    };
    struct state {
        real h[m];
    };
    real *h;
    void *h_factor; /* h rounded to `products`; NULL: not wanted */
    enum precision products;

    __device__ __forceinline__ void begin(const scan_lane &, state &, scan_nothing_shared &) const {}
    __device__ __forceinline__ void resume(const scan_lane &, state &) const {}
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read read) const {
        input in = {};
#pragma unroll
        for (int i = 0; i < m; i++) {
            in.gates[i].load(this->z + this->gate_at(lane, t, i), lane.N, read);
            in.v[i] = read(this->v + this->state_at(lane, t, i));
        }
        return in;
    }
    __device__ __forceinline__ void prepare(input *in) const {
        scan_normalise<m, STEPS>(this->gate, in);
    }
    /* Computes to[i] = a[i][m] v[i] + sum_j a[i][j] from[j]; v may be NULL. */
    static __device__ __forceinline__ void multiply(const input &in, const real *v, const real *from, real *to) {
        real sum[m];
#pragma unroll
        for (int i = 0; i < m; i++) {
            const scan_gates<m> &row = in.gates[i];
            sum[i] = v ? row.p[m] * v[i] : 0;
#pragma unroll
            for (int j = 0; j < m; j++) sum[i] = real_fma(row.p[j], from[j], sum[i]);
            sum[i] *= row.scale;
        }
#pragma unroll
        for (int i = 0; i < m; i++) to[i] = sum[i];
    }
    __device__ __forceinline__ void add_step(const input &in, const state &, map &steps) const {
#pragma unroll
        for (int j = 0; j < m; j++) {
            real column[m];
#pragma unroll
            for (int i = 0; i < m; i++) column[i] = steps.product[i][j];
            multiply(in, nullptr, column, column);
#pragma unroll
            for (int i = 0; i < m; i++) steps.product[i][j] = column[i];
        }
        multiply(in, in.v, steps.sum, steps.sum);
    }
    __device__ __forceinline__ void enter(state &s, const typename map::value &before) const {
#pragma unroll
        for (int i = 0; i < m; i++) s.h[i] = before.of[i];
    }
    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s,
                                         scan_nothing_shared &) const {
        multiply(in, in.v, s.h, s.h);
#pragma unroll
        for (int i = 0; i < m; i++) {
            int64_t at = this->state_at(lane, t, i);
            if (lane.stores) h[at] = s.h[i];
            if (lane.stores && h_factor) store_rounded<1>(h_factor, at, products, {s.h[i]});
        }
    }
    __device__ __forceinline__ void end(const scan_lane &, const state &, scan_nothing_shared &) const {}
};

template <int m> struct rows_adjoint : rows_walk<m> {
    static constexpr int VALUES = m * (m + 4), STEPS = scan_steps(VALUES, SCAN_SLICE_IN_FLIGHT);
    static constexpr bool REVERSE = true;
    using map = scan_affine<m>;
    struct input {
        scan_gates<m> gates[m];
        real v[m], dh[m], before[m]; /* before: h_{t-1} */
    };
    struct state {
        real h[m], carry[m];
    };
    const real *h, *dh;
    void *dz, *dv;
    bool add_dz, add_dv;
    enum precision dz_in, dv_in; /* the precisions in which dz and dv are stored */
    void *dz_factor;             /* dz rounded to `products`; NULL: not wanted */
    enum precision products;

    __device__ __forceinline__ void begin(const scan_lane &, state &, scan_nothing_shared &) const {}
    __device__ __forceinline__ void resume(const scan_lane &lane, state &s) const {
#pragma unroll
        for (int i = 0; i < m; i++) s.h[i] = h[this->state_at(lane, lane.last(), i)];
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read read) const {
        input in = {};
#pragma unroll
        for (int i = 0; i < m; i++) {
            int64_t at = this->state_at(lane, t, i);
            in.gates[i].load(this->z + this->gate_at(lane, t, i), lane.N, read);
            in.v[i] = read(this->v + at);
            in.dh[i] = read(dh + at);
            in.before[i] = t > 0 ? read(h + (at - m * lane.N)) : 0;
        }
        return in;
    }
    __device__ __forceinline__ void prepare(input *in) const {
        scan_normalise<m, STEPS>(this->gate, in);
    }
    /* Computes to = A^T G. */
    static __device__ __forceinline__ void multiply(const input &in, const real *G, real *to) {
        real sum[m];
#pragma unroll
        for (int j = 0; j < m; j++) {
            sum[j] = 0;
#pragma unroll
            for (int i = 0; i < m; i++) sum[j] = real_fma(in.gates[i].p[j], G[i] * in.gates[i].scale, sum[j]);
        }
#pragma unroll
        for (int j = 0; j < m; j++) to[j] = sum[j];
    }
    __device__ __forceinline__ void add_step(const input &in, const state &, map &steps) const {
#pragma unroll
        for (int j = 0; j < m; j++) {
            real column[m];
#pragma unroll
            for (int i = 0; i < m; i++) column[i] = steps.product[i][j];
            multiply(in, column, column);
#pragma unroll
            for (int i = 0; i < m; i++) steps.product[i][j] = column[i];
        }
#pragma unroll
        for (int i = 0; i < m; i++) steps.sum[i] += in.dh[i];
        multiply(in, steps.sum, steps.sum);
    }
    __device__ __forceinline__ void enter(state &s, const typename map::value &before) const {
#pragma unroll
        for (int i = 0; i < m; i++) s.carry[i] = before.of[i];
    }
    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s,
                                         scan_nothing_shared &) const {
        real G[m];
#pragma unroll
        for (int i = 0; i < m; i++) {
            G[i] = in.dh[i] + s.carry[i];
            store_gradients(lane, t, i, in, G[i], gate_divides(this->gate) ? s.h[i] : 0);
            s.h[i] = in.before[i];
        }
        multiply(in, G, s.carry);
    }
    /* Stores the gradients of row i. */
    __device__ __forceinline__ void store_gradients(const scan_lane &lane, int t, int i, const input &in, real G,
                                                    real mean) const {
        const scan_gates<m> &row = in.gates[i];
        if (!lane.stores) return;
        if (dv) put_rounded<1>(dv, this->state_at(lane, t, i), add_dv, dv_in, {row.p[m] * (G * row.scale)});
        if (!dz) return;
#pragma unroll
        for (int j = 0; j <= m; j++) {
            real value = row.slope(this->gate, j) * (G * ((j < m ? in.before[j % m] : in.v[i]) - mean));
            int64_t at = this->gate_at(lane, t, i) + j * lane.N;
            put_rounded<1>(dz, at, add_dz, dz_in, {value});
            if (dz_factor) store_rounded<1>(dz_factor, at, products, {value});
        }
    }
    __device__ __forceinline__ void end(const scan_lane &, const state &, scan_nothing_shared &) const {}
};

/* --- calls -------------------------------------------------------------------------------------------------------- */

template <int m> rows_walk<m> walk_of(const struct call *c) {
    const int64_t *dims = c->in[1]->dims;
    const struct scan_attr *a = scan_attr(c);
    return {scan_whole(dims[0], dims[1], a->N), a->gate, tensor_real(c->in[0]), tensor_real(c->in[1])};
}

void slice_forward(const struct call *c, const struct exec *e) {
    scan_with_sliced(scan_attr(c), [=]<int m>() {
        scan_launch_slices(c, e,
                           rows_forward<m>{walk_of<m>(c), tensor_real(c->out[0]), c->out[0]->factor, c->precision});
    });
}

void slice_backward(const struct call *c, const struct exec *e) {
    scan_with_sliced(scan_attr(c), [=]<int m>() {
        scan_launch_slices(c, e,
                           rows_adjoint<m>{walk_of<m>(c), tensor_real(c->out[0]), call_dout(c, 0), c->din[0], c->din[1],
                                           call_accumulates(c, 0), call_accumulates(c, 1), din_precision(c, 0),
                                           din_precision(c, 1), c->in[0]->grad_factor, c->precision});
    });
}

bool slice_preferred(const struct call *c) {
    return scan_gated_slices_pay(c, scan_attr(c)->m);
}

} // namespace

/* Tolerance: that of scan_block_cuda. The map of a slice also rounds once per time step. */
const struct kernel kernel_scan_block_slice_cuda = {
    .name = "scan_block_slice_cuda",
    .op = &op_scan_block,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .applicable = scan_slices_fit,
    .preferred = slice_preferred,
    .rounds_din = 3,
    .copies_out = 1,
    .copies_din = 1,
    .forward = slice_forward,
    .backward = slice_backward,
};
