/* linear_cuda.cu - y = x W^T + b (linear.c) with cuBLAS. Where cublasLt can, its products also add the bias or sum the
 * bias's gradient.
 *
 * In tf32 and bf16 the factors are first rounded into scratch, unless they are stored rounded, because it is not
 * specified how tensor cores round. Tensor cores then multiply them exactly. Factors of bf16 have 16 bits. */
#include "kernels/dense/dense.h"
#include "kernels/lib/cuda_gemm.cuh"
#include "kernels/lib/cuda_weights.cuh"
#include "kernels/lib/round.h"
#include "kernels/lib/scratch.h"

/* cuBLAS takes sizes as int. */
static bool linear_cuda_applicable(const struct call *c, const char **why) {
    bool fits =
        tensor_rows(c->in[0]) <= INT32_MAX && tensor_cols(c->in[0]) <= INT32_MAX && c->in[1]->dims[0] <= INT32_MAX;
    if (!fits) *why = "rows, inputs and outputs go up to 2147483647";
    return fits;
}

namespace {

/* Writes y[r][o] = b[o]. */
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

#define FACTORS 3 /* most factors that a launch rounds */

/* One array to round: to[i] = from[i] rounded, for i < n. */
struct rounding {
    const real *from;
    void *to;
    int64_t n;
};

/* Rounds all factors of a pass in one launch, because launches take most of the time of small products. The groups of
 * four elements of one array follow those of the array before it. An array may begin at any address, because a batch of
 * values may be a part of a split. */
struct roundings {
    struct rounding of[FACTORS];
    int count;
    enum precision p;

    static __host__ __device__ int64_t groups_of(int64_t n) {
        return (n + 3) / 4;
    }

    /* Returns the array that contains the group. *before is the number of groups in earlier arrays. It compares all
     * arrays, because an index that a thread computes would copy the arrays to local memory. */
    __device__ struct rounding array_of(int64_t group, int64_t *before) const {
        struct rounding found = of[0];
        int64_t so_far = *before = 0;
#pragma unroll
        for (int k = 1; k < FACTORS; k++) {
            so_far += groups_of(of[k - 1].n);
            if (group < so_far) continue;
            found = of[k];
            *before = so_far;
        }
        return found;
    }

    __device__ void operator()(int64_t group) const {
        int64_t before;
        struct rounding one = array_of(group, &before);
        int64_t i = 4 * (group - before), n = one.n < i + 4 ? one.n : i + 4;
        if (n - i == 4 && reinterpret_cast<uintptr_t>(one.from) % sizeof(lanes<4>) == 0) {
            store_rounded<4>(one.to, i, p, load_lanes<4>(one.from + i));
            return;
        }
        for (; i < n; i++) store_rounded<1>(one.to, i, p, {one.from[i]});
    }
};

/* Returns the values of a tensor, or their rounded copy if there is one. */
const void *factor_source(const struct tensor *t) {
    return t->factor ? t->factor : t->data;
}

/* Returns x, w or dy as the products read them: unchanged if they are rounded already, else in scratch, where `all`
 * will round them. */
const void *factor(const struct call *c, struct roundings *all, struct scratch *s, int64_t n, const void *from,
                   bool is_rounded) {
    if (c->precision == PRECISION_FULL || is_rounded) return from;
    void *to = scratch_bytes(s, (size_t)n * precision_bytes(c->precision));
    all->of[all->count++] = {(const real *)from, to, n};
    return to;
}

int64_t groups_of_all(const struct roundings *all) {
    int64_t groups = 0;
    for (int k = 0; k < all->count; k++) groups += roundings::groups_of(all->of[k].n);
    return groups;
}

/* The term of the bias's gradient, which is dy without rounding. It also stores dy rounded, since each element is a
 * term only once. */
struct rounded_term {
    const real *dy;
    void *to;
    enum precision p;
    __device__ real operator()(int64_t, int64_t i) const {
        real v = dy[i];
        store_rounded<1>(to, i, p, {v});
        return v;
    }
};

/* The first thread blocks sum dy's columns and round dy. The other thread blocks round the other factors. */
__global__ void __launch_bounds__(CUDA_THREADS)
    round_and_sum_kernel(struct roundings others, int64_t groups, struct column_cut cut, struct rounded_term term,
                         real *partial, unsigned *counters, struct column_put out) {
    await_previous();
    DYNAMIC_SHARED(real, sums); /* CUDA_THREADS */
    int64_t summing = cut.chunks * cut.tiles, group = (blockIdx.x - summing) * CUDA_THREADS + threadIdx.x;
    if (blockIdx.x < summing)
        column_sums(cut, blockIdx.x, term, partial, counters, out, sums);
    else if (group < groups)
        others(group);
}

struct factors {
    const void *x, *w, *dy;
};

/* Whether the launch that rounds the factors of backward also sums the bias's gradient. */
bool sums_as_it_rounds(const struct call *c) {
    return c->precision != PRECISION_FULL && !c->deferred && c->din[2] && (c->din[1] || c->din[0]);
}

/* Returns the factors of a pass; in backward only the factors for gradients that linear_cuda_backward itself computes.
 * `sums` is scratch for the bias's gradient. exec NULL: it only measures scratch. */
factors factors_of(const struct call *c, const struct exec *exec, enum pass pass, struct scratch *s, real *sums) {
    const struct tensor *x = c->in[0], *w = c->in[1], *y = c->out[0];
    bool backward = pass == PASS_BACKWARD, weights = w->needs_grad && !c->deferred;
    factors f = {nullptr, nullptr, nullptr};
    struct roundings all = {{}, 0, c->precision};
    if (!backward || weights) f.x = factor(c, &all, s, tensor_count(x), factor_source(x), x->rounded || x->copied);
    if (!backward || x->needs_grad) f.w = factor(c, &all, s, tensor_count(w), factor_source(w), w->rounded);
    if (backward && (weights || x->needs_grad))
        f.dy = factor(c, &all, s, tensor_count(y), y->grad_copied ? y->grad_factor : call_dout(c, 0),
                      y->grad_rounded || y->grad_copied);
    if (!backward && c->rounds.n) all.of[all.count++] = {c->rounds.from, c->rounds.to, c->rounds.n};
    if (!exec || all.count == 0) return f;
    if (!backward || !sums_as_it_rounds(c)) {
        each_value(c, exec, groups_of_all(&all), all);
        return f;
    }
    int64_t rows = tensor_rows(y), O = tensor_cols(y), chunks = sum_chunks(rows, column_sums_tiles(O));
    struct rounded_term term = {call_dout(c, 0), all.of[--all.count].to, c->precision};
    struct column_cut cut = column_cut_of(rows, O, chunks);
    all.of[all.count] = {};
    int64_t groups = groups_of_all(&all), blocks = cut.chunks * cut.tiles + (groups + CUDA_THREADS - 1) / CUDA_THREADS;
    LAUNCH(exec, round_and_sum_kernel, dim3((unsigned)blocks), dim3(CUDA_THREADS), CUDA_THREADS * sizeof(real), all,
           groups, cut, term, sums, exec->place->cuda->now.counters, (column_put{c->din[2], call_accumulates(c, 2)}));
    return f;
}

real *sums_of(const struct call *c, enum pass pass, struct scratch *s) {
    if (pass == PASS_FORWARD || !c->in[2] || c->deferred) return nullptr;
    return (real *)scratch_bytes(s, cuda_column_sums_bytes(tensor_rows(c->in[0]), c->in[1]->dims[0]));
}

} // namespace

/* Whether the earlier call of a pair does what this call would do in forward, or the later one what this call would do
 * for dx. */
static bool is_done_by_earlier(const struct call *c) {
    return c->joined && c->joined->index < c->index;
}

static bool is_done_by_later(const struct call *c) {
    return c->joined && c->joined->index > c->index;
}

/* If the product cannot add the bias, the bias is written first, and the product is added to it. The weights and the
 * outputs of a pair are each one matrix. */
static void linear_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]), I = tensor_cols(c->in[0]), O = tensor_pitch(c->out[0]);
    if (is_done_by_earlier(c)) return;
    real *y = tensor_real(c->out[0]), *bias = c->in[2] ? tensor_real(c->in[2]) : nullptr;
    struct scratch s = scratch_of(c, PASS_FORWARD);
    factors f = factors_of(c, x, PASS_FORWARD, &s, nullptr);
    struct product p = {false, true, rows, O, I, f.x, I, f.w, I, false, y, O};
    if (bias && cuda_gemm_epilogue(x, c->precision, p, EPILOGUE_BIAS, bias)) return;
    if (bias) each(c, x, rows * O, bias_rows{bias, y, O});
    p.accumulate = bias != nullptr;
    cuda_gemm(x, c->precision, p);
}

static size_t linear_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_BACKWARD || !is_done_by_earlier(c)) factors_of(c, nullptr, pass, &s, sums_of(c, pass, &s));
    return s.used;
}

static void linear_cuda_backward(const struct call *c, const struct exec *x) {
    int64_t rows = tensor_rows(c->in[0]), I = tensor_cols(c->in[0]), O = c->in[1]->dims[0];
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    real *sums = sums_of(c, PASS_BACKWARD, &s);
    factors f = factors_of(c, x, PASS_BACKWARD, &s, sums);
    int64_t pitch = tensor_pitch(c->out[0]);
    if (is_done_by_earlier(c)) f.w = factor_source(c->joined->in[1]);
    const void *dys = is_done_by_earlier(c) ? call_dout(c->joined, 0) : f.dy;
    const struct product dx = {false, false, rows, I, pitch, dys, pitch, f.w, I, call_accumulates(c, 0), c->din[0], I};
    bool wants_dx = c->din[0] && !is_done_by_later(c);
    const real *exact = sums_as_it_rounds(c) ? nullptr : call_dout(c, 0);
    auto weights = [&] { cuda_weight_gradients(c, x, c->precision, rows, O, I, f.dy, pitch, f.x, exact, sums); };
    if (wants_dx && (c->din[1] || c->din[2]) && !c->deferred)
        cuda_side_by_side(x->place->cuda, weights, [&] { cuda_gemm(x, c->precision, dx); });
    else if (wants_dx)
        cuda_gemm(x, c->precision, dx);
    else if (!c->deferred)
        weights();
}

/* Whether input i is only read as a factor of products: x and w are; dy is too, unless the bias's gradient sums it
 * without rounding. */
static bool linear_cuda_is_factor(const struct call *c, int i) {
    return i == 0 || i == 1 || (i == -1 && !c->in[2]);
}

/* Whether the product for dx reads dy as a factor, and the bias's gradient sums it without rounding. */
static bool linear_cuda_copies_dout(const struct call *c) {
    return c->in[2] && c->in[0]->needs_grad && c->deferred;
}

/* Pairs have no biases, weights that are neighbours in the flat array, and rows of whole vectors (lanes of cuda.cuh).
 */
static bool linear_cuda_joins(const struct call *a, const struct call *b) {
    const struct tensor *v = a->in[1], *w = b->in[1];
    return a->in[0] == b->in[0] && !a->in[2] && !b->in[2] && v->param && w->param &&
           w->param->offset == v->param->offset + v->param->count && v->dims[0] % 4 == 0 && w->dims[0] % 4 == 0 &&
           v->dims[0] + w->dims[0] <= INT32_MAX;
}

/* Tolerance: a sum of K products in working precision, K up to thousands, has an error of about sqrt(K) units. The
 * split factors of cuda_weights.cu are as accurate as fp32 (tile_product.cuh). */
const struct kernel kernel_linear_cuda = {
    .name = "linear_cuda",
    .op = &op_linear,
    .device = DEVICE_CUDA,
    .version = 5,
    .inexact = true,
    .tolerance = 64,
    .tiles = "cuBLAS takes other tiles for other numbers of rows",
    .together = "the product of the weight's gradient sums the bias's",
    .applicable = linear_cuda_applicable,
    .workspace = linear_cuda_workspace,
    .is_factor = linear_cuda_is_factor,
    .copies_dout = linear_cuda_copies_dout,
    .joins = linear_cuda_joins,
    .forward = linear_cuda_forward,
    .backward = linear_cuda_backward,
    .defers = cuda_weights_takes,
    .finish_workspace = cuda_weights_workspace,
    .finish = cuda_weights_finish,
};
