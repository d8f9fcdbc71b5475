/* expm_cuda.cu - exponentials of matrices on CUDA. A thread block computes one matrix after the other, with one thread
 * per element of each product. The sandwich has one element per thread. Sums are in double and in the references'
 * order. Equations: expm.c. */
#include "kernels/flow/expm.h"
#include "kernels/lib/cuda.cuh"

#define EXPM_BLOCKS 4096                 /* most thread blocks; no device runs more at the same time */
#define EXPM_ROOM   ((int64_t)128 << 20) /* about the bytes of scratch that all thread blocks may use */

namespace {

/* The matrices of a thread block. Backward stores all S(i) of the series and all P(i) of the squarings, P(0) = S(0);
 * forward stores the last two of each. */
struct expm_matrices {
    int64_t J, n;
    bool keep;
    double *X, *series, *squares, *d, *next, *dX;

    __device__ double *S(int i) const {
        return series + (keep ? i : i % 2) * n;
    }
    __device__ double *P(int i) const {
        return squares + (keep ? i : i % 2) * n;
    }
};

int64_t expm_matrix_count(enum pass pass) {
    return pass == PASS_FORWARD ? 1 + 2 + 2 : 1 + (EXPM_ORDER + 1) + (EXPM_SQUARINGS + 1) + 3;
}

__device__ struct expm_matrices matrices_at(double *room, int64_t J, bool backward) {
    struct expm_matrices w = {J, J * J, backward};
    w.X = room;
    w.series = w.X + w.n;
    w.squares = w.series + (backward ? EXPM_ORDER + 1 : 2) * w.n;
    w.d = w.squares + (backward ? EXPM_SQUARINGS + 1 : 2) * w.n;
    w.next = w.d + w.n;
    w.dX = w.next + w.n;
    return w;
}

/* Computes out (+)= factor * op(a) op(b); `out` is neither a nor b. All threads must call it, and see `out`
 * afterwards. */
__device__ void product(const struct expm_matrices &w, double factor, const double *a, bool at, const double *b,
                        bool bt, bool add, double *out) {
    for (int64_t e = threadIdx.x; e < w.n; e += blockDim.x) {
        int64_t i = e / w.J, j = e % w.J;
        double sum = 0;
        for (int64_t l = 0; l < w.J; l++)
            sum += (at ? a[l * w.J + i] : a[i * w.J + l]) * (bt ? b[j * w.J + l] : b[l * w.J + j]);
        out[e] = factor * sum + (add ? out[e] : 0);
    }
    __syncthreads();
}

/* Computes to = factor * from. Each thread copies its own elements. */
__device__ void copy(const struct expm_matrices &w, double factor, const double *from, double *to) {
    for (int64_t e = threadIdx.x; e < w.n; e += blockDim.x) to[e] = factor * from[e];
}

__device__ void identity(const struct expm_matrices &w, double *to) {
    for (int64_t e = threadIdx.x; e < w.n; e += blockDim.x) to[e] = e / w.J == e % w.J;
}

/* Returns element e of the exponent. */
__device__ double exponent_at(const struct expm_attr &a, const real *from, int64_t e) {
    double x = (double)from[e * a.N];
    return a.flow ? x : x - (double)from[(e % a.J * a.J + e / a.J) * a.N];
}

/* Computes X, S and P, and returns the number of squarings q. The result is P(q). Each thread computes the norm. */
__device__ int exponentiate(const struct expm_matrices &w, const struct expm_attr &a, const real *from) {
    double norm = 0;
    for (int64_t e = 0; e < w.n; e++) {
        double x = exponent_at(a, from, e);
        norm += x * x;
    }
    int q = expm_squarings(sqrt(norm));
    for (int64_t e = threadIdx.x; e < w.n; e += blockDim.x) w.X[e] = ldexp(exponent_at(a, from, e), -q);
    identity(w, w.S(EXPM_ORDER));
    __syncthreads();
    for (int i = EXPM_ORDER; i > 0; i--) {
        bool plus_one = i > 1 || !a.flow;
        if (plus_one) identity(w, w.S(i - 1));
        product(w, 1.0 / i, w.X, false, w.S(i), false, plus_one, w.S(i - 1));
    }
    copy(w, 1, w.S(0), w.P(0));
    __syncthreads();
    for (int i = 0; i < q; i++) {
        if (a.flow) copy(w, 2, w.P(i), w.P(i + 1));
        product(w, 1, w.P(i), false, w.P(i), false, a.flow, w.P(i + 1));
    }
    return q;
}

/* Computes e^l - 1 of 1 x 1 matrices, and the gradient. */
struct number {
    const real *from;
    real *to;
    __device__ void operator()(int64_t i) const {
        to[i] = (real)expm1((double)from[i]);
    }
};

struct number_gradient {
    const real *from, *dE;
    real *to;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        put(to + i, accumulate, (real)(exp((double)from[i]) * (double)dE[i]));
    }
};

/* --- the sandwich: matrices of J x J after each other ------------------------------------------------------------- */

struct slices {
    int64_t J;
    const real *u, *e, *w;
};

struct sandwich_product {
    struct slices k;
    real *t;
    __device__ void operator()(int64_t i) const {
        struct quotient row = divide(i, k.J), at = divide(row.whole, k.J);
        int64_t first = at.whole * k.J * k.J;
        double sum = 0;
        for (int64_t l = 0; l < k.J; l++)
            sum += (double)k.u[row.whole * k.J + l] * (double)k.e[at.whole * k.J + l] *
                   (double)k.w[first + l * k.J + row.rest];
        t[i] = (real)sum;
    }
};

/* Computes gradients of U (input 0), e (input 1) and W (input 2), one element per thread. */
struct sandwich_gradient {
    struct slices k;
    const real *dT;
    real *to;
    int input;
    bool accumulate;

    /* Returns (dT W^T)[i][l] of the matrix that begins at `first`. */
    __device__ double row(int64_t first, int64_t i, int64_t l) const {
        double sum = 0;
        for (int64_t j = 0; j < k.J; j++) sum += (double)dT[first + i * k.J + j] * (double)k.w[first + l * k.J + j];
        return sum;
    }
    /* Returns (U^T dT)[l][i]. */
    __device__ double column(int64_t first, int64_t l, int64_t i) const {
        double sum = 0;
        for (int64_t j = 0; j < k.J; j++) sum += (double)k.u[first + j * k.J + l] * (double)dT[first + j * k.J + i];
        return sum;
    }
    __device__ double diagonal(int64_t first, int64_t l) const {
        double sum = 0;
        for (int64_t i = 0; i < k.J; i++) sum += (double)k.u[first + i * k.J + l] * row(first, i, l);
        return sum;
    }
    __device__ void operator()(int64_t i) const {
        struct quotient last = divide(i, k.J);
        if (input == 1) {
            put(to + i, accumulate, (real)diagonal(last.whole * k.J * k.J, last.rest));
            return;
        }
        struct quotient at = divide(last.whole, k.J);
        int64_t first = at.whole * k.J * k.J;
        double value = input == 0 ? row(first, at.rest, last.rest) : column(first, at.rest, last.rest);
        double factor = (double)k.e[at.whole * k.J + (input == 0 ? last.rest : at.rest)];
        put(to + i, accumulate, (real)(value * factor));
    }
};

struct slices slices_of(const struct call *c) {
    struct slices k = {expm_attr(c)->J, tensor_real(c->in[0]), tensor_real(c->in[1]), tensor_real(c->in[2])};
    return k;
}

/* --- launches ----------------------------------------------------------------------------------------------------- */

int64_t matrices_of(const struct call *c) {
    int64_t J = expm_attr(c)->J;
    return tensor_count(c->in[0]) / (J * J);
}

int64_t room_of_block(const struct call *c, enum pass pass) {
    int64_t J = expm_attr(c)->J;
    return expm_matrix_count(pass) * J * J;
}

/* Returns the number of thread blocks, which depends only on sizes. */
int64_t expm_blocks(const struct call *c, enum pass pass) {
    int64_t most = EXPM_ROOM / (room_of_block(c, pass) * (int64_t)sizeof(double)), count = matrices_of(c);
    if (most > EXPM_BLOCKS) most = EXPM_BLOCKS;
    if (most < 1) most = 1;
    return count < most ? count : most;
}

dim3 expm_threads(const struct call *c) {
    int64_t J = expm_attr(c)->J, whole = (J * J + WARP - 1) / WARP * WARP;
    return dim3((unsigned)(whole < CUDA_THREADS ? whole : CUDA_THREADS));
}

} // namespace

static __global__ void __launch_bounds__(CUDA_THREADS)
    expm_kernel(struct expm_attr a, int64_t count, int64_t room, double *scratch, const real *from, real *to) {
    await_previous();
    struct expm_matrices w = matrices_at(scratch + blockIdx.x * room, a.J, false);
    for (int64_t m = blockIdx.x; m < count; m += gridDim.x) {
        int64_t at = expm_at(w.n, a.N, m);
        int q = exponentiate(w, a, from + at);
        for (int64_t e = threadIdx.x; e < w.n; e += blockDim.x) to[at + e * a.N] = (real)w.P(q)[e];
    }
}

/* Two blocks per multiprocessor; with four, threads would have too few registers. */
static __global__ void __launch_bounds__(CUDA_THREADS, 2)
    expm_gradient_kernel(struct expm_attr a, int64_t count, int64_t room, double *scratch, const real *from,
                         const real *dU, real *dA, bool accumulate) {
    await_previous();
    struct expm_matrices w = matrices_at(scratch + blockIdx.x * room, a.J, true);
    for (int64_t m = blockIdx.x; m < count; m += gridDim.x) {
        int64_t at = expm_at(w.n, a.N, m);
        int squarings = exponentiate(w, a, from + at);
        for (int64_t e = threadIdx.x; e < w.n; e += blockDim.x) w.d[e] = (double)dU[at + e * a.N];
        copy(w, 0, w.X, w.dX);
        __syncthreads();
        for (int i = squarings - 1; i >= 0; i--) {
            if (a.flow) copy(w, 2, w.d, w.next);
            product(w, 1, w.d, false, w.P(i), true, a.flow, w.next);
            product(w, 1, w.P(i), true, w.d, false, true, w.next);
            copy(w, 1, w.next, w.d);
            __syncthreads();
        }
        for (int i = 1; i <= EXPM_ORDER; i++) {
            product(w, 1.0 / i, w.d, false, w.S(i), true, true, w.dX);
            product(w, 1.0 / i, w.X, true, w.d, false, false, w.next);
            copy(w, 1, w.next, w.d);
            __syncthreads();
        }
        for (int64_t e = threadIdx.x; e < w.n; e += blockDim.x) {
            double x = a.flow ? w.dX[e] : w.dX[e] - w.dX[e % a.J * a.J + e / a.J];
            put(dA + at + e * a.N, accumulate, (real)ldexp(x, -squarings));
        }
    }
}

static size_t expm_cuda_workspace(const struct call *c, enum pass pass) {
    bool number = expm_of_number(expm_attr(c));
    int64_t doubles = number ? 0 : expm_blocks(c, pass) * room_of_block(c, pass);
    return scratch_single(c, (size_t)doubles * sizeof(double));
}

static void expm_cuda_forward(const struct call *c, const struct exec *x) {
    const struct expm_attr *a = expm_attr(c);
    if (expm_of_number(a))
        each_value(c, x, tensor_count(c->in[0]), number{tensor_real(c->in[0]), tensor_real(c->out[0])});
    else
        LAUNCH(x, expm_kernel, dim3((unsigned)expm_blocks(c, PASS_FORWARD)), expm_threads(c), 0, *a, matrices_of(c),
               room_of_block(c, PASS_FORWARD), (double *)c->scratch[PASS_FORWARD], tensor_real(c->in[0]),
               tensor_real(c->out[0]));
}

static void expm_cuda_backward(const struct call *c, const struct exec *x) {
    const struct expm_attr *a = expm_attr(c);
    if (!c->din[0]) return;
    if (expm_of_number(a))
        each_value(c, x, tensor_count(c->in[0]),
                   number_gradient{tensor_real(c->in[0]), call_dout(c, 0), c->din[0], call_accumulates(c, 0)});
    else
        LAUNCH(x, expm_gradient_kernel, dim3((unsigned)expm_blocks(c, PASS_BACKWARD)), expm_threads(c), 0, *a,
               matrices_of(c), room_of_block(c, PASS_BACKWARD), (double *)c->scratch[PASS_BACKWARD],
               tensor_real(c->in[0]), call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

static void sandwich_cuda_forward(const struct call *c, const struct exec *x) {
    each_value(c, x, tensor_count(c->out[0]), sandwich_product{slices_of(c), tensor_real(c->out[0])});
}

static void sandwich_cuda_backward(const struct call *c, const struct exec *x) {
    for (int i = 0; i < 3; i++)
        if (c->din[i])
            each_value(c, x, tensor_count(c->in[i]),
                       sandwich_gradient{slices_of(c), call_dout(c, 0), c->din[i], i, call_accumulates(c, i)});
}

const struct kernel kernel_expm_skew_cuda = {
    .name = "expm_skew_cuda",
    .op = &op_expm_skew,
    .device = DEVICE_CUDA,
    .workspace = expm_cuda_workspace,
    .forward = expm_cuda_forward,
    .backward = expm_cuda_backward,
};

/* Tolerance: for 1 x 1 matrices the device library's exponentials differ from the host's in their last digits. */
const struct kernel kernel_expm_flow_cuda = {
    .name = "expm_flow_cuda",
    .op = &op_expm_flow,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 4,
    .workspace = expm_cuda_workspace,
    .forward = expm_cuda_forward,
    .backward = expm_cuda_backward,
};

const struct kernel kernel_sandwich_cuda = {
    .name = "sandwich_cuda",
    .op = &op_sandwich,
    .device = DEVICE_CUDA,
    .forward = sandwich_cuda_forward,
    .backward = sandwich_cuda_backward,
};
