/* scan_diag_cuda.cu - the diagonal recurrence on CUDA, real and complex, with the scan engine of scan.cuh
 * and the slices of scan_slices.cuh.
 *
 *   h_t = a_t h_{t-1} + x_t;   G_t = dh_t + conj(a_{t+1}) G_{t+1},  dx_t = G_t,  da_t = conj(h_{t-1}) G_t
 * Over a chunk, h_end = P h_begin + E, where P is the product of the chunk's a_t. Backward uses conj(P) in the same
 * way. If `a` is constant, each lane sums its gradient over the lane's time steps. The sums of the lanes are then added
 * in order. */
#include "kernels/gated/gated.h"
#include "kernels/gated/scan_slices.cuh"

namespace {

/* --- numbers: real, or complex in two planes ---------------------------------------------------------------------- */

template <int PLANES> struct number { real part[PLANES]; };

/* Returns a b + c. */
template <int PLANES>
__device__ __forceinline__ number<PLANES> mul_add(number<PLANES> a, number<PLANES> b, number<PLANES> c) {
    if constexpr (PLANES == 1)
        return {{real_fma(a.part[0], b.part[0], c.part[0])}};
    else
        return {{real_fma(a.part[0], b.part[0], real_fma(-a.part[1], b.part[1], c.part[0])),
                 real_fma(a.part[0], b.part[1], real_fma(a.part[1], b.part[0], c.part[1]))}};
}

template <int PLANES> __device__ __forceinline__ number<PLANES> conjugate(number<PLANES> a) {
    if constexpr (PLANES == 2) a.part[1] = -a.part[1];
    return a;
}

template <int PLANES> __device__ __forceinline__ number<PLANES> sum_of(number<PLANES> a, number<PLANES> b) {
#pragma unroll
    for (int p = 0; p < PLANES; p++) a.part[p] += b.part[p];
    return a;
}

/* An array of numbers to read, with 1 plane (real) or 2 (real and imaginary parts). A plane that is NULL reads as
 * zero. */
template <int PLANES> struct source {
    const real *plane[PLANES];

    template <class Read = scan_at_once>
    __device__ __forceinline__ number<PLANES> at(int64_t i, Read read = Read()) const {
        number<PLANES> value;
#pragma unroll
        for (int p = 0; p < PLANES; p++) value.part[p] = plane[p] ? read(plane[p] + i) : 0;
        return value;
    }
};

template <int PLANES> struct sink {
    real *plane[PLANES];
    bool add[PLANES];

    __device__ __forceinline__ void store(int64_t i, number<PLANES> value) const {
#pragma unroll
        for (int p = 0; p < PLANES; p++)
            if (plane[p]) put(&plane[p][i], add[p], value.part[p]);
    }
};

/* --- walks -------------------------------------------------------------------------------------------------------- */

/* Data that all lanes share: `a` if it is constant, and the positions of elements. */
template <int PLANES, bool CONSTANT> struct diag_walk {
    static constexpr int ROWS = 1, LANES = 64;
    using value = number<PLANES>;
    using shared = scan_nothing_shared;
    scan_shape shape;
    source<PLANES> a;

    /* Reads a_t. If `a` is constant, it reads nothing. */
    template <class Read> __device__ __forceinline__ value element(const scan_lane &lane, int t, Read read) const {
        if constexpr (CONSTANT)
            return {};
        else
            return a.at(lane.at(t), read);
    }

    __device__ __forceinline__ value constant(const scan_lane &lane) const {
        if constexpr (CONSTANT)
            return a.at(lane.k);
        else
            return {};
    }
};

template <int PLANES, bool CONSTANT> struct diag_forward : diag_walk<PLANES, CONSTANT> {
    static constexpr int VALUES = (CONSTANT ? 1 : 2) * PLANES, STEPS = scan_steps(VALUES, 32);
    static constexpr bool REVERSE = false;
    using value = number<PLANES>;
    struct input {
        value a, x;
    };
    struct state {
        value a, h;
    };
    source<PLANES> x, carry; /* carry: the state before each lane's first step; NULL means zeros */
    sink<PLANES> h;

    __device__ __forceinline__ void begin(const scan_lane &lane, state &s, scan_nothing_shared &) const {
        s = {this->constant(lane), carry.at(lane.index)};
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read read) const {
        return {this->element(lane, t, read), x.at(lane.at(t), read)};
    }
    __device__ __forceinline__ void prepare(input *) const {}
    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s,
                                         scan_nothing_shared &) const {
        s.h = mul_add(CONSTANT ? s.a : in.a, s.h, in.x);
        if (lane.stores) h.store(lane.at(t), s.h);
    }
    __device__ __forceinline__ void end(const scan_lane &, const state &, scan_nothing_shared &) const {}
};

template <int PLANES, bool CONSTANT> struct diag_adjoint : diag_walk<PLANES, CONSTANT> {
    static constexpr int VALUES = (CONSTANT ? 2 : 3) * PLANES, STEPS = scan_steps(VALUES, 36);
    static constexpr bool REVERSE = true;
    using value = number<PLANES>;
    struct input {
        value a, before, dh;
    };
    struct state {
        value a, da, carry; /* da: the sum over time, if `a` is constant; carry: conj(a_{t+1}) G_{t+1} */
    };
    source<PLANES> h, dh, carry;
    sink<PLANES> da, dx; /* da: one number per time step; one per lane if `a` is constant */

    __device__ __forceinline__ void begin(const scan_lane &lane, state &s, scan_nothing_shared &) const {
        s = {this->constant(lane), {}, carry.at(lane.index)};
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read read) const {
        int64_t i = lane.at(t);
        return {this->element(lane, t, read), t > 0 ? h.at(i - lane.N, read) : value{}, dh.at(i, read)};
    }
    __device__ __forceinline__ void prepare(input *) const {}
    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s,
                                         scan_nothing_shared &) const {
        int64_t i = lane.at(t);
        value G = sum_of(in.dh, s.carry);
        s.da = mul_add(conjugate(in.before), G, CONSTANT ? s.da : value{});
        s.carry = mul_add(conjugate(CONSTANT ? s.a : in.a), G, value{});
        if (lane.stores) dx.store(i, G);
        if (!CONSTANT && lane.stores) da.store(i, s.da);
    }
    __device__ __forceinline__ void end(const scan_lane &lane, const state &s, scan_nothing_shared &) const {
        if (CONSTANT && lane.stores) da.store(lane.index, s.da);
    }
};

/* Computes the summary of a chunk: its transition product, and the state after it if the state before it is zero; for
 * the adjoint, the carry that leaves the chunk if no carry enters it. */
template <int PLANES, bool CONSTANT, bool ADJOINT> struct diag_summary : diag_walk<PLANES, CONSTANT> {
    static constexpr int VALUES = (CONSTANT ? 1 : 2) * PLANES, STEPS = scan_steps(VALUES, 32);
    static constexpr bool REVERSE = ADJOINT;
    using value = number<PLANES>;
    struct input {
        value a, x;
    };
    struct state {
        value a, product, sum;
    };
    source<PLANES> x; /* x, or dh for the adjoint */
    sink<PLANES> product, sum;

    __device__ __forceinline__ void begin(const scan_lane &lane, state &s, scan_nothing_shared &) const {
        s = {this->constant(lane), {{1}}, {}};
    }
    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read read) const {
        return {this->element(lane, t, read), x.at(lane.at(t), read)};
    }
    __device__ __forceinline__ void prepare(input *) const {}
    __device__ __forceinline__ void step(const scan_lane &, int, const input &in, state &s,
                                         scan_nothing_shared &) const {
        value a = CONSTANT ? s.a : in.a;
        if constexpr (ADJOINT)
            s.sum = mul_add(conjugate(a), sum_of(in.x, s.sum), value{});
        else
            s.sum = mul_add(a, s.sum, in.x);
        s.product = mul_add(a, s.product, value{});
    }
    __device__ __forceinline__ void end(const scan_lane &lane, const state &s, scan_nothing_shared &) const {
        if (!lane.stores) return;
        product.store(lane.index, ADJOINT ? conjugate(s.product) : s.product);
        sum.store(lane.index, s.sum);
    }
};

/* --- slices ------------------------------------------------------------------------------------------------------- */

/* The map of some steps: h (for the adjoint, the carry) after them is product * (h before them) + sum. */
template <int PLANES> struct diag_map {
    using value = number<PLANES>;
    value product, sum;

    static __device__ __forceinline__ diag_map none(void) {
        return {{{1}}, {}};
    }
    __device__ __forceinline__ void then(value a, value x) {
        sum = mul_add(a, sum, x);
        product = mul_add(a, product, value{});
    }
    __device__ __forceinline__ value apply(value before) const {
        return mul_add(product, before, sum);
    }
};

template <int PLANES, bool CONSTANT> struct diag_slice_forward : diag_forward<PLANES, CONSTANT> {
    using walk = diag_forward<PLANES, CONSTANT>;
    using map = diag_map<PLANES>;
    __device__ __forceinline__ void resume(const scan_lane &, typename walk::state &) const {}
    __device__ __forceinline__ void add_step(const typename walk::input &in, const typename walk::state &s,
                                             map &steps) const {
        steps.then(CONSTANT ? s.a : in.a, in.x);
    }
    __device__ __forceinline__ void enter(typename walk::state &s, number<PLANES> before) const {
        s.h = before;
    }
};

template <int PLANES, bool CONSTANT> struct diag_slice_adjoint : diag_adjoint<PLANES, CONSTANT> {
    using walk = diag_adjoint<PLANES, CONSTANT>;
    using map = diag_map<PLANES>;
    __device__ __forceinline__ void resume(const scan_lane &, typename walk::state &) const {}
    __device__ __forceinline__ void add_step(const typename walk::input &in, const typename walk::state &s,
                                             map &steps) const {
        number<PLANES> a = conjugate(CONSTANT ? s.a : in.a);
        steps.then(a, mul_add(a, in.dh, number<PLANES>{}));
    }
    __device__ __forceinline__ void enter(typename walk::state &s, number<PLANES> before) const {
        s.carry = before;
    }
};

/* --- calls: inputs are a, x, the output h, PLANES tensors each ---------------------------------------------------- */

bool constant_a(const struct call *c) {
    return c->in[0]->rank == 1;
}

template <int PLANES> source<PLANES> source_of(struct tensor *const *tensors) {
    source<PLANES> s;
    for (int p = 0; p < PLANES; p++) s.plane[p] = tensor_real(tensors[p]);
    return s;
}

template <int PLANES> source<PLANES> gradient_of(const struct call *c) {
    source<PLANES> s;
    for (int p = 0; p < PLANES; p++) s.plane[p] = call_dout(c, p);
    return s;
}

template <int PLANES> sink<PLANES> gradient_to(const struct call *c, int input) {
    sink<PLANES> s;
    for (int p = 0; p < PLANES; p++) {
        s.plane[p] = c->din[input + p];
        s.add[p] = call_accumulates(c, input + p);
    }
    return s;
}

/* Returns planes of n values each in this pass's scratch, after the first `skip` planes. */
template <int PLANES> sink<PLANES> scratch_at(const struct call *c, enum pass pass, int skip, int64_t n) {
    sink<PLANES> s = {};
    for (int p = 0; p < PLANES; p++) s.plane[p] = (real *)c->scratch[pass] + (skip + p) * n;
    return s;
}

template <int PLANES> source<PLANES> read_back(const sink<PLANES> &s) {
    source<PLANES> r;
    for (int p = 0; p < PLANES; p++) r.plane[p] = s.plane[p];
    return r;
}

/* How time is computed: by one thread, in chunks of several launches, in slices of one launch. */
enum diag_time { TIME_WHOLE, TIME_CHUNKS, TIME_SLICES };

/* The two passes. With chunks, a lane is a chunk of a sequence, else a whole sequence. */
template <int PLANES, diag_time TIME> struct diag_call {
    static constexpr bool CHUNKED = TIME == TIME_CHUNKS, SLICED = TIME == TIME_SLICES;

    /* The number of sums of a constant a's gradient: one for each lane and, with slices, for each of its threads. */
    static int64_t sums_of(const scan_shape &shape) {
        return scan_lanes(shape) * (SLICED ? scan_slices_of<diag_adjoint<PLANES, true>>(shape) : 1);
    }

    static scan_shape shape_of(const struct call *c) {
        const int64_t *dims = c->in[PLANES]->dims;
        return CHUNKED ? scan_chunked(dims[0], dims[1], dims[2], 1) : scan_whole(dims[0], dims[1], dims[2]);
    }

    /* The scratch has planes with one number per lane: the chunks' products and ends, and the sums of a constant a's
     * gradient. After them comes scratch for the sums over lanes. */
    static size_t workspace(const struct call *c, enum pass pass) {
        scan_shape shape = shape_of(c);
        int64_t sums = sums_of(shape);
        size_t chunks = CHUNKED ? (size_t)scan_chunk_values(shape, PLANES, PLANES == 2) * sizeof(real) : 0;
        if (pass == PASS_FORWARD || !constant_a(c)) return chunks;
        return chunks + (size_t)(PLANES * sums) * sizeof(real) + cuda_column_sums_bytes(sums / shape.N, shape.N);
    }

    /* Returns the state before each lane's first step; for the adjoint, the carry. x is the call's x, or dh for the
     * adjoint. */
    template <bool CONSTANT, bool ADJOINT>
    static source<PLANES> carries(const struct call *c, const struct exec *e, const source<PLANES> &x) {
        scan_shape shape = shape_of(c);
        if (!CHUNKED) return {};
        enum pass pass = ADJOINT ? PASS_BACKWARD : PASS_FORWARD;
        int64_t lanes = scan_lanes(shape);
        sink<PLANES> product = scratch_at<PLANES>(c, pass, 0, lanes), sum = scratch_at<PLANES>(c, pass, PLANES, lanes);
        scan_launch(c, e, diag_summary<PLANES, CONSTANT, ADJOINT>{{shape, source_of<PLANES>(c->in)}, x, product, sum});
        scan_carry_over<PLANES, ADJOINT, PLANES == 2>(c, e, shape, product.plane[0]);
        return read_back(sum);
    }

    template <bool CONSTANT> static void run_forward(const struct call *c, const struct exec *e) {
        source<PLANES> x = source_of<PLANES>(c->in + PLANES);
        sink<PLANES> h = {};
        for (int p = 0; p < PLANES; p++) h.plane[p] = tensor_real(c->out[p]);
        diag_forward<PLANES, CONSTANT> w = {
            {shape_of(c), source_of<PLANES>(c->in)}, x, carries<CONSTANT, false>(c, e, x), h};
        if constexpr (SLICED)
            scan_launch_slices(c, e, diag_slice_forward<PLANES, CONSTANT>{w});
        else
            scan_launch_long(c, e, w);
    }

    template <bool CONSTANT> static void run_backward(const struct call *c, const struct exec *e) {
        scan_shape shape = shape_of(c);
        int64_t n_sums = sums_of(shape);
        source<PLANES> dh = gradient_of<PLANES>(c);
        sink<PLANES> sums = scratch_at<PLANES>(c, PASS_BACKWARD, 2 * PLANES * CHUNKED, n_sums);
        diag_adjoint<PLANES, CONSTANT> w = {{shape, source_of<PLANES>(c->in)},
                                            source_of<PLANES>(c->out),
                                            dh,
                                            carries<CONSTANT, true>(c, e, dh),
                                            CONSTANT ? sums : gradient_to<PLANES>(c, 0),
                                            gradient_to<PLANES>(c, PLANES)};
        if constexpr (SLICED)
            scan_launch_slices(c, e, diag_slice_adjoint<PLANES, CONSTANT>{w});
        else
            scan_launch_long(c, e, w);
        real *stages = scratch_at<PLANES>(c, PASS_BACKWARD, PLANES * (2 * CHUNKED + 1), n_sums).plane[0];
        for (int p = 0; CONSTANT && p < PLANES; p++)
            if (c->din[p])
                cuda_column_sums(c, e, n_sums / shape.N, shape.N, matrix_term{sums.plane[p]}, c->din[p],
                                 call_accumulates(c, p), stages);
    }

    static void forward(const struct call *c, const struct exec *e) {
        constant_a(c) ? run_forward<true>(c, e) : run_forward<false>(c, e);
    }

    static void backward(const struct call *c, const struct exec *e) {
        constant_a(c) ? run_backward<true>(c, e) : run_backward<false>(c, e);
    }

    static bool preferred(const struct call *c) {
        const int64_t *dims = c->in[PLANES]->dims;
        return SLICED ? scan_slices_pay(dims[0], dims[1], dims[2], 1)
                      : scan_chunks_pay(dims[0], dims[1], dims[2], 2 * PLANES);
    }
};

} // namespace

/* Tolerance: the reference computes the state in double; here every step rounds. The error grows like the square root
 * of the number of roundings if |a| <= 1, and as fast as the state if |a| > 1. The products of chunks and slices also
 * round once per time step. */
const struct kernel kernel_scan_diag_cuda = {
    .name = "scan_diag_cuda",
    .op = &op_scan_diag,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = diag_call<1, TIME_WHOLE>::workspace,
    .forward = diag_call<1, TIME_WHOLE>::forward,
    .backward = diag_call<1, TIME_WHOLE>::backward,
};

const struct kernel kernel_scan_diag_chunk_cuda = {
    .name = "scan_diag_chunk_cuda",
    .op = &op_scan_diag,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .preferred = diag_call<1, TIME_CHUNKS>::preferred,
    .workspace = diag_call<1, TIME_CHUNKS>::workspace,
    .forward = diag_call<1, TIME_CHUNKS>::forward,
    .backward = diag_call<1, TIME_CHUNKS>::backward,
};

const struct kernel kernel_scan_diag_complex_cuda = {
    .name = "scan_diag_complex_cuda",
    .op = &op_scan_diag_complex,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .workspace = diag_call<2, TIME_WHOLE>::workspace,
    .forward = diag_call<2, TIME_WHOLE>::forward,
    .backward = diag_call<2, TIME_WHOLE>::backward,
};

const struct kernel kernel_scan_diag_complex_chunk_cuda = {
    .name = "scan_diag_complex_chunk_cuda",
    .op = &op_scan_diag_complex,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .preferred = diag_call<2, TIME_CHUNKS>::preferred,
    .workspace = diag_call<2, TIME_CHUNKS>::workspace,
    .forward = diag_call<2, TIME_CHUNKS>::forward,
    .backward = diag_call<2, TIME_CHUNKS>::backward,
};

const struct kernel kernel_scan_diag_slice_cuda = {
    .name = "scan_diag_slice_cuda",
    .op = &op_scan_diag,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .preferred = diag_call<1, TIME_SLICES>::preferred,
    .workspace = diag_call<1, TIME_SLICES>::workspace,
    .forward = diag_call<1, TIME_SLICES>::forward,
    .backward = diag_call<1, TIME_SLICES>::backward,
};

const struct kernel kernel_scan_diag_complex_slice_cuda = {
    .name = "scan_diag_complex_slice_cuda",
    .op = &op_scan_diag_complex,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .preferred = diag_call<2, TIME_SLICES>::preferred,
    .workspace = diag_call<2, TIME_SLICES>::workspace,
    .forward = diag_call<2, TIME_SLICES>::forward,
    .backward = diag_call<2, TIME_SLICES>::backward,
};
