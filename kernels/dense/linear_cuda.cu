/* linear_cuda.cu - y = x W^T + b on cuBLAS; db in two stages of column sums. Equations: linear.c. */
#include "kernels/lib/cuda.cuh"

#if REAL_IS_DOUBLE
#define cublas_gemm cublasDgemm
#else
#define cublas_gemm cublasSgemm
#endif

/* C (M x N) (+)= op(A) op(B) with K summed over; row-major, each ld a row's length in memory. cuBLAS sees the
 * transposes: C^T = op(B)^T op(A)^T. */
static void gemm(const struct exec *x, bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K,
                 const real *A, int64_t lda, const real *B, int64_t ldb, bool accumulate, real *C, int64_t ldc) {
    struct cuda_context *cuda = x->place->cuda;
    const real one = 1, before = accumulate ? 1 : 0;
    CUBLAS_TRY(cuda,
               cublas_gemm(cuda->blas, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                           (int)N, (int)M, (int)K, &one, B, (int)ldb, A, (int)lda, &before, C, (int)ldc));
}

/* cuBLAS counts in int. */
static bool linear_cuda_applicable(const struct call *c, const char **why) {
    bool fits =
        tensor_rows(c->in[0]) <= INT32_MAX && tensor_cols(c->in[0]) <= INT32_MAX && c->in[1]->dims[0] <= INT32_MAX;
    if (!fits) *why = "rows, inputs and outputs go up to 2147483647";
    return fits;
}

namespace {

/* y[r][o] = b[o] */
struct bias_rows {
    const real *b;
    real *y;
    int64_t O;

    template <int W> __device__ void run(int64_t i) const {
        int64_t column = divide(i, O).rest;
        lanes<W> u;
        for (int k = 0; k < W; k++) {
            u.v[k] = b[column];
            column = column + 1 < O ? column + 1 : 0;
        }
        store_lanes<W>(y + i, u);
    }
};

} // namespace

/* The bias is there first and the product is added to it: y is written twice and read once, as little as it takes
 * without a product that knows of the bias. */
static void linear_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]), I = tensor_cols(c->in[0]), O = c->in[1]->dims[0];
    real *y = tensor_real(c->out[0]);
    if (c->in[2]) each(c, x, rows * O, bias_rows{tensor_real(c->in[2]), y, O});
    gemm(x, false, true, rows, O, I, tensor_real(c->in[0]), I, tensor_real(c->in[1]), I, c->in[2] != nullptr, y, O);
}

static size_t linear_cuda_workspace(const struct call *c, enum pass pass) {
    if (pass == PASS_FORWARD || !c->in[2]) return 0;
    return cuda_column_sums_bytes(tensor_rows(c->in[0]), c->in[1]->dims[0]);
}

static void linear_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]), I = tensor_cols(c->in[0]), O = c->in[1]->dims[0];
    const real *dy = call_dout(c, 0);
    if (c->din[0])
        gemm(x, false, false, rows, I, O, dy, O, tensor_real(c->in[1]), I, call_accumulates(c, 0), c->din[0], I);
    if (c->din[1])
        gemm(x, true, false, O, I, rows, dy, O, tensor_real(c->in[0]), I, call_accumulates(c, 1), c->din[1], I);
    if (c->din[2])
        cuda_column_sums(c, x, rows, O, matrix_term{dy}, c->din[2], call_accumulates(c, 2),
                         (real *)c->scratch[PASS_BACKWARD]);
}

/* Tolerance: a sum of K products in working precision, K up to thousands, errs by about sqrt(K) units. */
const struct kernel kernel_linear_cuda = {
    .name = "linear_cuda",
    .op = &op_linear,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .tiles = "cuBLAS takes other tiles for other numbers of rows",
    .applicable = linear_cuda_applicable,
    .workspace = linear_cuda_workspace,
    .forward = linear_cuda_forward,
    .backward = linear_cuda_backward,
};
