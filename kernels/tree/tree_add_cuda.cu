/* tree_add_cuda.cu - a table shared among the nodes of a tree added to values of their own, on CUDA: a value a thread.
 * A row of the table sums over the sequences and its nodes, which lie side by side: a thread block a row and strip of
 * heads. The equations are in tree_add.c. */
#include "kernels/lib/cuda.cuh"
#include "kernels/tree/tree_walk.h"

namespace {

struct table_rows {
    struct tree tree;
    enum tree_sharing sharing;
    int64_t T, P;

    /* The row of a node that is not the root. */
    __device__ int64_t row_of(int64_t node) const {
        if (sharing == SHARED_BY_ALL) return 0;
        if (sharing != SHARED_BY_LEVEL) return node;
        struct tree_level v = tree_bottom(&tree, 0);
        while (node >= v.offset + v.count) v = tree_above(&tree, 0, v);
        return v.l;
    }
};

struct add_rows {
    struct table_rows k;
    const real *w, *p;
    real *y;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, k.P);
        int64_t node = divide(at.whole, k.T).rest;
        y[i] = w[i] + (node < k.T - 1 ? p[k.row_of(node) * k.P + at.rest] : 0);
    }
};

struct table_rows table_rows_of(const struct call *c) {
    const struct tree *t = (const struct tree *)c->attr;
    struct table_rows k = {*t, tree_sharing(t, c->in[1]), c->in[0]->dims[1], c->in[0]->dims[2]};
    if (t->arity == 1 && k.sharing == SHARED_BY_LEVEL) k.sharing = OWN_OF_NODE; /* a chain has a node a level */
    return k;
}

} // namespace

/* dp: a warp's lanes are heads, the warps of a block take the nodes of a row in turns; their sums are added in
 * order. */
static __global__ void __launch_bounds__(CUDA_THREADS)
    row_gradient_kernel(struct table_rows k, int64_t B, const real *dy, real *dp, bool accumulate) {
    await_previous();
    DYNAMIC_SHARED(double, sums); /* CUDA_THREADS */
    int64_t strips = (k.P + WARP - 1) / WARP, row = blockIdx.x / strips, first, end;
    int lane = (int)threadIdx.x % WARP, warp = (int)threadIdx.x / WARP, warps = CUDA_THREADS / WARP;
    int64_t head = blockIdx.x % strips * WARP + lane;
    double sum = 0;
    tree_row_nodes(&k.tree, k.sharing, row, &first, &end);
    for (int64_t i = warp; i < B * (end - first) && head < k.P; i += warps) {
        struct quotient at = divide(i, end - first);
        sum += (double)dy[(at.whole * k.T + first + at.rest) * k.P + head];
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    if (warp > 0 || head >= k.P) return;
    for (int w = 1; w < warps; w++) sum += sums[w * WARP + lane];
    put(dp + row * k.P + head, accumulate, (real)sum);
}

static void tree_add_cuda_forward(const struct call *c, const struct exec *x) {
    each_value(c, x, tensor_count(c->out[0]),
               add_rows{table_rows_of(c), tensor_real(c->in[0]), tensor_real(c->in[1]), tensor_real(c->out[0])});
}

static void tree_add_cuda_backward(const struct call *c, const struct exec *x) {
    struct table_rows k = table_rows_of(c);
    int64_t strips = (k.P + WARP - 1) / WARP;
    if (c->din[0]) each(c, x, tensor_count(c->in[0]), passed_on{call_dout(c, 0), c->din[0], call_accumulates(c, 0)});
    if (c->din[1])
        LAUNCH(x, row_gradient_kernel, dim3((unsigned)(c->in[1]->dims[0] * strips)), dim3(CUDA_THREADS),
               CUDA_THREADS * sizeof(double), k, c->in[0]->dims[0], call_dout(c, 0), c->din[1], call_accumulates(c, 1));
}

/* dp sums in double, as the reference, but in another order. */
const struct kernel kernel_tree_add_cuda = {
    .name = "tree_add_cuda",
    .op = &op_tree_add,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .forward = tree_add_cuda_forward,
    .backward = tree_add_cuda_backward,
};
