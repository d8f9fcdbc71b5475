/* tree_add_cuda.cu - tree_add on CUDA: one value per thread. The gradient of a row of the table is a sum over sequences
 * and the row's nodes (tree_sums.cuh). The equations are in tree_add.c. */
#include "kernels/lib/scratch.h"
#include "kernels/tree/tree_sums.cuh"

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

struct node_gradient {
    const real *dy;
    int64_t T, P;
    __device__ double operator()(int64_t b, int64_t node, int64_t head) const {
        return (double)dy[(b * T + node) * P + head];
    }
};

struct put_gradient {
    real *dp;
    bool accumulate;
    __device__ void operator()(int64_t e, double sum) const {
        put(dp + e, accumulate, (real)sum);
    }
};

struct table_rows table_rows_of(const struct call *c) {
    const struct tree *t = tree_add_attr(c);
    struct table_rows k = {*t, tree_sharing(t, c->in[1]), c->in[0]->dims[1], c->in[0]->dims[2]};
    if (t->arity == 1 && k.sharing == SHARED_BY_LEVEL) k.sharing = OWN_OF_NODE; /* a chain has a node per level */
    return k;
}

struct table_cut cut_of(const struct call *c) {
    struct table_rows k = table_rows_of(c);
    return table_cut_of(&k.tree, k.sharing, c->in[1], c->in[0]->dims[0]);
}

} // namespace

static bool tree_add_cuda_applicable(const struct call *c, const char **why) {
    return tree_nodes_fit(c->in[0], why);
}

static size_t tree_add_cuda_workspace(const struct call *c, enum pass pass) {
    return scratch_single(c, pass == PASS_FORWARD ? 0 : cuda_table_sums_bytes(cut_of(c), sizeof(double)));
}

static void tree_add_cuda_forward(const struct call *c, const struct exec *x) {
    each_value(c, x, tensor_count(c->out[0]),
               add_rows{table_rows_of(c), tensor_real(c->in[0]), tensor_real(c->in[1]), tensor_real(c->out[0])});
}

static void tree_add_cuda_backward(const struct call *c, const struct exec *x) {
    struct table_rows k = table_rows_of(c);
    if (c->din[0]) each(c, x, tensor_count(c->in[0]), passed_on{call_dout(c, 0), c->din[0], call_accumulates(c, 0)});
    if (c->din[1])
        cuda_table_sums(c, x, cut_of(c), node_gradient{call_dout(c, 0), k.T, k.P},
                        put_gradient{c->din[1], call_accumulates(c, 1)}, (double *)c->scratch[PASS_BACKWARD]);
}

/* Tolerance: dp is summed in double like in the reference, but in another order. */
const struct kernel kernel_tree_add_cuda = {
    .name = "tree_add_cuda",
    .op = &op_tree_add,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 64,
    .applicable = tree_add_cuda_applicable,
    .workspace = tree_add_cuda_workspace,
    .forward = tree_add_cuda_forward,
    .backward = tree_add_cuda_backward,
};
