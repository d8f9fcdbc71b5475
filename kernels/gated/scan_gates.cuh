/* scan_gates.cuh - a row of m + 1 gates that is normalised in registers (gate.h). The CUDA kernels of the gated scans
 * use it with the scan engine of kernels/lib/scan.cuh. */
#ifndef LRNN_KERNELS_GATED_SCAN_GATES_CUH
#define LRNN_KERNELS_GATED_SCAN_GATES_CUH

#include "kernels/gated/scan.h"
#include "kernels/gated/scan_slices.cuh"

template <int m> struct scan_gates {
    real p[m + 1], scale; /* before scan_normalise, p are the raw gates; after it, the gates are p * scale */

    /* z points to the row's first gate; gates are N apart. */
    template <class Read> __device__ __forceinline__ void load(const real *z, int N, Read read) {
#pragma unroll
        for (int j = 0; j <= m; j++) p[j] = read(z + j * N);
    }

    __device__ __forceinline__ real slope(enum gate gate, int j) const {
        return gate_slope(gate, p[j], scale);
    }
};

template <enum gate GATE, int m> __device__ __forceinline__ void scan_normalise_rows(scan_gates<m> &row) {
    row.scale = gate_lane(GATE, m + 1, row.p, 1, row.p);
}

template <enum gate GATE, int m, int ROWS>
__device__ __forceinline__ void scan_normalise_rows(scan_gates<m> (&rows)[ROWS]) {
#pragma unroll
    for (int i = 0; i < ROWS; i++) scan_normalise_rows<GATE>(rows[i]);
}

template <int m, int STEPS, enum gate GATE, class Input> __device__ __forceinline__ void scan_normalise_as(Input *in) {
#pragma unroll
    for (int s = 0; s < STEPS; s++) scan_normalise_rows<GATE>(in[s].gates);
}

/* Normalises the gates of STEPS inputs, of one row or several. The gate is chosen when the kernel runs: all threads
 * have the same gate, so they do not diverge, and only a quarter as many kernels are compiled. It is chosen once for
 * all steps, so that their arithmetic can be interleaved. */
template <int m, int STEPS, class Input> __device__ __forceinline__ void scan_normalise(enum gate gate, Input *in) {
    switch (gate) {
    case GATE_SOFTMAX:
        return scan_normalise_as<m, STEPS, GATE_SOFTMAX>(in);
    case GATE_SIGMOID:
        return scan_normalise_as<m, STEPS, GATE_SIGMOID>(in);
    case GATE_RELU:
        return scan_normalise_as<m, STEPS, GATE_RELU>(in);
    default:
        return scan_normalise_as<m, STEPS, GATE_NONE>(in);
    }
}

/* True if a gated scan is faster in chunks. False for gates that are not divided by their sum, because their products
 * may overflow although no state does. `values` is the number of values that a channel reads at a time step. */
static inline bool scan_gated_chunks_pay(const struct call *c, int64_t values) {
    const int64_t *dims = c->in[1]->dims;
    const struct scan_attr *a = scan_attr(c);
    return gate_divides(a->gate) && scan_chunks_pay(dims[0], dims[1], a->N, values);
}

/* Like scan_gated_chunks_pay, for slices (scan_slices.cuh), if a state of a call without slices has `rows` threads. */
static inline bool scan_gated_slices_pay(const struct call *c, int64_t rows) {
    const int64_t *dims = c->in[1]->dims;
    const struct scan_attr *a = scan_attr(c);
    return gate_divides(a->gate) && scan_slices_pay(dims[0], dims[1], a->N, rows);
}

#define SCAN_SLICED_M 2 /* the largest m of slices, whose maps have m * m + m values */

static inline bool scan_slices_fit(const struct call *c, const char **why) {
    *why = "m is larger than 2, the most in slices";
    return scan_attr(c)->m <= SCAN_SLICED_M;
}

/* Calls run.operator()<m>() with the call's m, which scan_slices_fit takes. */
template <class F> void scan_with_sliced(const struct scan_attr *a, F run) {
    return a->m == 1 ? run.template operator()<1>() : run.template operator()<SCAN_SLICED_M>();
}

static inline bool scan_gates_fit(const struct call *c, const char **why) {
    *why = "m is larger than 8, the most on a device; --device cpu takes more";
    return scan_attr(c)->m <= SCAN_UNROLLED;
}

/* Calls run.operator()<m>() with the call's m. */
template <class F> void scan_with(const struct scan_attr *a, F run) {
    switch (a->m) {
    case 1:
        return run.template operator()<1>();
    case 2:
        return run.template operator()<2>();
    case 3:
        return run.template operator()<3>();
    case 4:
        return run.template operator()<4>();
    case 5:
        return run.template operator()<5>();
    case 6:
        return run.template operator()<6>();
    case 7:
        return run.template operator()<7>();
    default:
        return run.template operator()<SCAN_UNROLLED>();
    }
}

#endif
