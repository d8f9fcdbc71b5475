/* scan_slstm_cuda.cu - the recurrence of sLSTM on CUDA: one launch computes all time steps. scan_slstm.c has the
 * equations.
 *
 * A block computes one head of a tile of sequences at all steps. At each step, a thread first computes a row of R h
 * (backward: of R^T dp, for one gate) for all sequences of the tile, so that it loads each weight once. After that each
 * thread computes channels of single sequences. R stays in the cache. Forward reads a transposed copy of R, so that
 * neighbouring threads read neighbouring weights. dR is one cuBLAS product per head. */
#include "core/real_math.h"
#include "kernels/lib/cuda_gemm.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/stable/stable.h"

#define SLSTM_TILE     4 /* sequences per block if their states fit into shared memory, else 1 */
#define SLSTM_THREADS  (REAL_IS_DOUBLE ? 256 : 512) /* most threads of a block */
#define SLSTM_FORWARD  8  /* numbers per channel in shared memory: h, c, n, m, and R h of four gates */
#define SLSTM_BACKWARD 10 /* likewise: dc, dn, and both dp and R^T dp of four gates */

namespace {

struct slstm_shape {
    int64_t B, T, D;
    int dh, heads;
};

struct slstm_shape slstm_shape_of(const struct call *c) {
    const struct tensor *raw = c->in[0];
    int64_t dh = tensor_cols(c->in[SLSTM_RECURRENT]);
    return {raw->dims[0], raw->dims[1], raw->dims[2], (int)dh, (int)(raw->dims[2] / dh)};
}

size_t slstm_bytes(const struct slstm_shape &k, int numbers, int tile) {
    return (size_t)tile * numbers * k.dh * sizeof(real);
}

/* Returns the number of sequences per block, which is equal in both passes. */
int slstm_tile(const struct slstm_shape &k) {
    return slstm_bytes(k, SLSTM_BACKWARD, SLSTM_TILE) <= CUDA_SHARED_UNASKED ? SLSTM_TILE : 1;
}

struct slstm_tensors {
    const real *raw[SLSTM_GATES], *R, *b;
    real *h, *kept, *cells;
};

/* Computes one channel of a token. At the first step it does not read the previous c, n and m. */
__device__ __forceinline__ void slstm_step(const real p[SLSTM_GATES], bool first, real *c, real *n, real *m, real *h,
                                           real kept[SLSTM_KEPT_PARTS]) {
    real i = p[SLSTM_I], f = p[SLSTM_F], small = real_exp(-real_abs(f)), all = 1 + small;
    real z = real_tanh(p[SLSTM_Z]), o = real_sigmoid(p[SLSTM_O]), I = 1, F = 0;
    if (first) {
        *m = i, *c = z, *n = 1;
    } else {
        real log_f = (f < 0 ? f : 0) - (real_log(all) + (small - (all - 1)) / all);
        real forget = log_f + *m, less = real_exp(-real_abs(forget - i));
        bool input = forget < i;
        *m = input ? i : forget;
        I = input ? 1 : less;
        F = input ? less : 1;
        *c = real_fma(F, *c, I * z);
        *n = real_fma(F, *n, I);
    }
    *h = o * (*c / *n);
    kept[SLSTM_I] = I;
    kept[SLSTM_F] = F;
    kept[SLSTM_Z] = z;
    kept[SLSTM_O] = o;
    kept[SLSTM_REST] = (f < 0 ? 1 : small) / all;
}

/* Transposes each head of R (H, 4dh, dh) into `to` (H, dh, 4dh). */
struct slstm_transpose {
    const real *R;
    real *to;
    int64_t dh;
    __device__ void operator()(int64_t e) const {
        struct quotient row = divide(e, 4 * dh), head = divide(row.whole, dh);
        to[e] = R[(head.whole * 4 * dh + row.rest) * dh + head.rest];
    }
};

/* Copies h of the previous step, or 0 at the first step, into `to` (B,T,D). */
struct slstm_before {
    const real *h;
    real *to;
    int64_t T, D;
    __device__ void operator()(int64_t i) const {
        to[i] = divide(divide(i, D).whole, T).rest > 0 ? h[i - D] : 0;
    }
};

} // namespace

/* `turned` is the output of slstm_transpose. */
template <int TILE>
static __global__ void __launch_bounds__(SLSTM_THREADS)
    slstm_forward_kernel(struct slstm_shape k, struct slstm_tensors x, const real *turned) {
    await_previous();
    DYNAMIC_SHARED(real, h);
    int dh = k.dh, gates = SLSTM_GATES * dh, head = (int)(blockIdx.x % k.heads);
    int64_t first = (int64_t)(blockIdx.x / k.heads) * TILE;
    real *c = h + TILE * dh, *n = c + TILE * dh, *m = n + TILE * dh, *p = m + TILE * dh;
    const real *w = turned + (int64_t)head * gates * dh, *bias = x.b + head * gates;
    for (int64_t t = 0; t < k.T; t++) {
        for (int r = (int)threadIdx.x; r < gates; r += (int)blockDim.x) {
            real sum[TILE] = {};
            for (int j = 0; j < dh && t > 0; j++) {
                real weight = w[(int64_t)j * gates + r];
                for (int s = 0; s < TILE; s++) sum[s] = real_fma(weight, h[s * dh + j], sum[s]);
            }
            for (int s = 0; s < TILE; s++) p[s * gates + r] = sum[s];
        }
        __syncthreads();
        for (int e = (int)threadIdx.x; e < TILE * dh; e += (int)blockDim.x) {
            int s = e / dh, j = e % dh;
            int64_t token = (first + s) * k.T + t, column = head * dh + j;
            real pre[SLSTM_GATES], kept[SLSTM_KEPT_PARTS];
            if (first + s >= k.B) {
                h[e] = 0; /* other threads read this value in their sums */
                continue;
            }
            for (int g = 0; g < SLSTM_GATES; g++)
                pre[g] = x.raw[g][token * k.D + column] + bias[g * dh + j] + p[s * gates + g * dh + j];
            slstm_step(pre, t == 0, c + e, n + e, m + e, h + e, kept);
            x.h[token * k.D + column] = h[e];
            for (int i = 0; i < SLSTM_KEPT_PARTS; i++) x.kept[(token * SLSTM_KEPT_PARTS + i) * k.D + column] = kept[i];
            x.cells[(token * SLSTM_CELL_PARTS + SLSTM_C) * k.D + column] = c[e];
            x.cells[(token * SLSTM_CELL_PARTS + SLSTM_N) * k.D + column] = n[e];
        }
        __syncthreads();
    }
}

/* Computes dp (B,T,H,4,dh). */
template <int TILE>
static __global__ void __launch_bounds__(SLSTM_THREADS)
    slstm_backward_kernel(struct slstm_shape k, struct slstm_tensors x, const real *dout, real *dp) {
    await_previous();
    DYNAMIC_SHARED(real, dc);
    int dh = k.dh, gates = SLSTM_GATES * dh, head = (int)(blockIdx.x % k.heads);
    int64_t first = (int64_t)(blockIdx.x / k.heads) * TILE;
    real *dn = dc + TILE * dh, *mine = dn + TILE * dh, *part = mine + TILE * gates;
    const real *w = x.R + (int64_t)head * gates * dh;
    for (int64_t t = k.T - 1; t >= 0; t--) {
        bool last = t == k.T - 1;
        for (int r = (int)threadIdx.x; r < gates; r += (int)blockDim.x) {
            real sum[TILE] = {};
            int gate = r / dh * dh, column = r % dh;
            for (int j = 0; j < dh && !last; j++) {
                real weight = w[(int64_t)(gate + j) * dh + column];
                for (int s = 0; s < TILE; s++) sum[s] = real_fma(weight, mine[s * gates + gate + j], sum[s]);
            }
            for (int s = 0; s < TILE; s++) part[s * gates + r] = sum[s];
        }
        __syncthreads();
        for (int e = (int)threadIdx.x; e < TILE * dh; e += (int)blockDim.x) {
            int s = e / dh, j = e % dh;
            int64_t token = (first + s) * k.T + t, column = head * dh + j;
            real *to = mine + s * gates + j, kept[SLSTM_KEPT_PARTS];
            if (first + s >= k.B) {
                for (int g = 0; g < SLSTM_GATES; g++) to[g * dh] = 0;
                continue;
            }
            for (int i = 0; i < SLSTM_KEPT_PARTS; i++) kept[i] = x.kept[(token * SLSTM_KEPT_PARTS + i) * k.D + column];
            const real *cells = x.cells + token * SLSTM_CELL_PARTS * k.D + column;
            real inverse = 1 / cells[k.D], mean = cells[0] * inverse, d = dout[token * k.D + column];
            for (int g = 0; g < SLSTM_GATES; g++) d += part[s * gates + g * dh + j];
            real o = kept[SLSTM_O], z = kept[SLSTM_Z], scaled = d * o * inverse;
            real d_c = (last ? 0 : dc[e]) + scaled, d_n = (last ? 0 : dn[e]) - scaled * mean;
            real before = t > 0 ? d_c * cells[-SLSTM_CELL_PARTS * k.D] + d_n * cells[(1 - SLSTM_CELL_PARTS) * k.D] : 0;
            to[SLSTM_I * dh] = kept[SLSTM_I] * real_fma(d_c, z, d_n);
            to[SLSTM_F * dh] = kept[SLSTM_F] * kept[SLSTM_REST] * before;
            to[SLSTM_Z * dh] = d_c * kept[SLSTM_I] * (1 - z * z);
            to[SLSTM_O * dh] = d * mean * (o * (1 - o));
            dc[e] = kept[SLSTM_F] * d_c;
            dn[e] = kept[SLSTM_F] * d_n;
            for (int g = 0; g < SLSTM_GATES; g++) dp[(token * k.heads + head) * gates + g * dh + j] = to[g * dh];
        }
        __syncthreads();
    }
}

namespace {

/* Writes, or adds, the gradient of a raw gate, which is this gate's part of dp. */
struct slstm_raw_gradient {
    const real *dp;
    real *to;
    int64_t D, dh;
    int gate;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        struct quotient token = divide(i, D), head = divide(token.rest, dh);
        put(to + i, accumulate, dp[token.whole * 4 * D + (head.whole * 4 + gate) * dh + head.rest]);
    }
};

/* Forward: `turned` is R transposed. Backward: dp, the previous h (`before`), and scratch memory of column sums. */
struct slstm_scratch {
    real *turned, *dp, *before, *sums;
};

struct slstm_scratch slstm_scratch_of(const struct call *c, enum pass pass, struct scratch *s) {
    int64_t rows = tensor_rows(c->in[0]), D = tensor_cols(c->in[0]);
    struct slstm_scratch r = {};
    if (pass == PASS_FORWARD) {
        r.turned = scratch_reals(s, tensor_count(c->in[SLSTM_RECURRENT]));
    } else {
        r.dp = scratch_reals(s, rows * 4 * D);
        r.before = scratch_reals(s, rows * D);
        r.sums = (real *)scratch_bytes(s, cuda_column_sums_bytes(rows, 4 * D));
    }
    return r;
}

struct slstm_tensors slstm_tensors_of(const struct call *c) {
    struct slstm_tensors x = {};
    for (int g = 0; g < SLSTM_GATES; g++) x.raw[g] = tensor_real(c->in[g]);
    x.R = tensor_real(c->in[SLSTM_RECURRENT]);
    x.b = tensor_real(c->in[SLSTM_BIAS]);
    x.h = tensor_real(c->out[SLSTM_H]);
    x.kept = tensor_real(c->out[SLSTM_KEPT]);
    x.cells = tensor_real(c->out[SLSTM_CELLS]);
    return x;
}

dim3 slstm_blocks(const struct slstm_shape &k, int tile) {
    return dim3((unsigned)((k.B + tile - 1) / tile * k.heads));
}

dim3 slstm_threads(const struct slstm_shape &k) {
    int wanted = (SLSTM_GATES * k.dh + WARP - 1) / WARP * WARP;
    return dim3((unsigned)(wanted < SLSTM_THREADS ? wanted : SLSTM_THREADS));
}

} // namespace

static size_t scan_slstm_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    slstm_scratch_of(c, pass, &s);
    return s.used;
}

static void scan_slstm_cuda_forward(const struct call *c, const struct exec *x) {
    struct slstm_shape k = slstm_shape_of(c);
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct slstm_scratch r = slstm_scratch_of(c, PASS_FORWARD, &s);
    int tile = slstm_tile(k);
    auto kernel = tile == 1 ? slstm_forward_kernel<1> : slstm_forward_kernel<SLSTM_TILE>;
    each_value(c, x, 4 * k.D * k.dh, slstm_transpose{tensor_real(c->in[SLSTM_RECURRENT]), r.turned, k.dh});
    LAUNCH(x, kernel, slstm_blocks(k, tile), slstm_threads(k), slstm_bytes(k, SLSTM_FORWARD, tile), k,
           slstm_tensors_of(c), r.turned);
}

static void scan_slstm_cuda_backward(const struct call *c, const struct exec *x) {
    struct slstm_shape k = slstm_shape_of(c);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct slstm_scratch r = slstm_scratch_of(c, PASS_BACKWARD, &s);
    int tile = slstm_tile(k);
    int64_t rows = k.B * k.T, gates = SLSTM_GATES * k.dh;
    auto kernel = tile == 1 ? slstm_backward_kernel<1> : slstm_backward_kernel<SLSTM_TILE>;
    LAUNCH(x, kernel, slstm_blocks(k, tile), slstm_threads(k), slstm_bytes(k, SLSTM_BACKWARD, tile), k,
           slstm_tensors_of(c), call_dout(c, 0), r.dp);
    for (int g = 0; g < SLSTM_GATES; g++)
        if (c->din[g])
            each_value(c, x, rows * k.D, slstm_raw_gradient{r.dp, c->din[g], k.D, k.dh, g, call_accumulates(c, g)});
    if (c->din[SLSTM_RECURRENT]) {
        each_value(c, x, rows * k.D, slstm_before{tensor_real(c->out[SLSTM_H]), r.before, k.T, k.D});
        for (int head = 0; head < k.heads; head++)
            cuda_gemm(x, PRECISION_FULL,
                      {true, false, gates, k.dh, rows, r.dp + head * gates, 4 * k.D, r.before + head * k.dh, k.D,
                       call_accumulates(c, SLSTM_RECURRENT), c->din[SLSTM_RECURRENT] + head * gates * k.dh, k.dh});
    }
    if (c->din[SLSTM_BIAS])
        cuda_column_sums(c, x, rows, 4 * k.D, matrix_term{r.dp}, c->din[SLSTM_BIAS], call_accumulates(c, SLSTM_BIAS),
                         r.sums);
}

/* The number of rows is limited because cuBLAS takes an int. */
static bool scan_slstm_cuda_applicable(const struct call *c, const char **why) {
    bool small = slstm_bytes(slstm_shape_of(c), SLSTM_BACKWARD, 1) <= CUDA_SHARED_UNASKED;
    *why = small ? "sequences of a batch have up to 2147483647 tokens together" : "a head has up to 48 KB of states";
    return small && tensor_rows(c->in[0]) <= INT32_MAX;
}

/* Tolerance: errors grow as in scan_slstm_cpu: through R from step to step, and through the sums in m. */
const struct kernel kernel_scan_slstm_cuda = {
    .name = "scan_slstm_cuda",
    .op = &op_scan_slstm,
    .device = DEVICE_CUDA,
    .version = 2,
    .inexact = true,
    .tolerance = 1024,
    .tiles = "the tiles of cuBLAS depend on the number of rows",
    .applicable = scan_slstm_cuda_applicable,
    .workspace = scan_slstm_cuda_workspace,
    .forward = scan_slstm_cuda_forward,
    .backward = scan_slstm_cuda_backward,
};
