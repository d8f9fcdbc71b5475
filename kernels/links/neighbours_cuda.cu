/* neighbours_cuda.cu - neighbours, degree_code and edge_messages on CUDA, one value of a node per thread. Equations:
 * neighbours.c, degree_code.c, edge_messages.c. */
#include <math.h>

#include "kernels/lib/scratch.h"
#include "kernels/links/linked.cuh"

namespace {

/* The number of neighbours of each node (B,T); an edge from a node to itself counts twice. */
struct degrees {
    struct linked k;
    int32_t *degree;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, k.T);
        int32_t n = 0;
        each_edge(k.view(at.whole), [&](int32_t p, int32_t q) { n += (p == at.rest) + (q == at.rest); });
        degree[i] = n;
    }
};

/* Computes the degrees in the call's only scratch array. */
const int32_t *degrees_of(const struct call *c, const struct exec *x, enum pass pass) {
    int64_t T = c->in[0]->dims[1];
    int32_t *degree = (int32_t *)c->scratch[pass];
    each_value(c, x, c->in[0]->dims[0] * T, degrees{linked_of(c, T), degree});
    return degree;
}

size_t degrees_bytes(const struct call *c) {
    return scratch_single(c, (size_t)(c->in[0]->dims[0] * c->in[0]->dims[1]) * sizeof(int32_t));
}

/* --- neighbours: the map of x, either (B,T,D) --------------------------------------------------------------------- */

struct sums {
    struct linked k;
    const int32_t *degree; /* NULL: sums without factors */
    const real *x;
    real *y;
    int64_t D;
    bool accumulate;

    __device__ static double factor(const int32_t *of_node, int64_t n) {
        return of_node ? 1 / sqrt((double)(1 + of_node[n])) : 1;
    }
    __device__ void operator()(int64_t i) const {
        struct quotient node = divide(i, D), at = divide(node.whole, k.T);
        int64_t n = at.rest;
        const real *column = x + at.whole * k.T * D + node.rest;
        const int32_t *of_node = degree ? degree + at.whole * k.T : nullptr;
        double own = factor(of_node, n), sum = degree ? (double)column[n * D] * own * own : 0;
        each_edge(k.view(at.whole), [&](int32_t p, int32_t q) {
            if (p == n) sum += own * factor(of_node, q) * (double)column[q * D];
            if (q == n) sum += factor(of_node, p) * own * (double)column[p * D];
        });
        put(y + i, accumulate, (real)sum);
    }
};

void map_all(const struct call *c, const struct exec *x, enum pass pass, const real *from, real *to, bool accumulate) {
    const struct links_attr *a = links_attr(c);
    const int32_t *degree = a->rule == NEIGHBOURS_GCN ? degrees_of(c, x, pass) : nullptr;
    each_value(c, x, tensor_count(c->in[0]),
               sums{linked_of(c, c->in[0]->dims[1]), degree, from, to, c->in[0]->dims[2], accumulate});
}

/* --- degree_code -------------------------------------------------------------------------------------------------- */

struct add_codes {
    const int32_t *degree;
    const real *x;
    real *y;
    int64_t D;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, D);
        double angle = (double)degree[at.whole] * pow(10000, -2.0 * (double)(at.rest / 2) / (double)D);
        y[i] = x[i] + (real)(at.rest % 2 ? cos(angle) : sin(angle));
    }
};

/* --- edge_messages: of nodes n, u told and telling ---------------------------------------------------------------- */

struct messages {
    struct linked k;
    const real *a, *c;
    int64_t D;

    /* Message of node u to node n; columns begin at `at`. */
    __device__ double message(int64_t at, int64_t n, int64_t u) const {
        double sum = (double)a[at + n * D] + (double)c[at + u * D];
        return sum <= 0 ? 0 : sum; /* NaN comes through */
    }
};

struct tell {
    struct messages m;
    real *y;
    __device__ void operator()(int64_t i) const {
        struct quotient node = divide(i, m.D), at = divide(node.whole, m.k.T);
        int64_t n = at.rest, first = at.whole * m.k.T * m.D + node.rest;
        double sum = 0;
        each_edge(m.k.view(at.whole), [&](int32_t p, int32_t q) {
            if (p == n) sum += m.message(first, n, q);
            if (q == n) sum += m.message(first, n, p);
        });
        y[i] = (real)sum;
    }
};

/* Gradient of a (`told`), at the node that receives a message, or of c, at the node that sends it. */
struct tell_back {
    struct messages m;
    const real *dy;
    real *dx;
    bool told, accumulate;

    __device__ double gradient(int64_t first, int64_t n, int64_t other) const {
        int64_t listener = told ? n : other, teller = told ? other : n;
        return m.message(first, listener, teller) > 0 ? (double)dy[first + listener * m.D] : 0;
    }
    __device__ void operator()(int64_t i) const {
        struct quotient node = divide(i, m.D), at = divide(node.whole, m.k.T);
        int64_t n = at.rest, first = at.whole * m.k.T * m.D + node.rest;
        double sum = 0;
        each_edge(m.k.view(at.whole), [&](int32_t p, int32_t q) {
            if (p == n) sum += gradient(first, n, q);
            if (q == n) sum += gradient(first, n, p);
        });
        put(dx + i, accumulate, (real)sum);
    }
};

struct messages messages_of(const struct call *c) {
    struct messages m = {linked_of(c, c->in[0]->dims[1]), tensor_real(c->in[0]), tensor_real(c->in[2]),
                         c->in[0]->dims[2]};
    return m;
}

} // namespace

static size_t neighbours_cuda_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    return links_attr(c)->rule == NEIGHBOURS_GCN ? degrees_bytes(c) : 0;
}

static void neighbours_cuda_forward(const struct call *c, const struct exec *x) {
    map_all(c, x, PASS_FORWARD, tensor_real(c->in[0]), tensor_real(c->out[0]), false);
}

static void neighbours_cuda_backward(const struct call *c, const struct exec *x) {
    if (c->din[0]) map_all(c, x, PASS_BACKWARD, call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

static size_t degree_code_cuda_workspace(const struct call *c, enum pass pass) {
    return pass == PASS_FORWARD ? degrees_bytes(c) : 0;
}

static void degree_code_cuda_forward(const struct call *c, const struct exec *x) {
    each_value(
        c, x, tensor_count(c->in[0]),
        add_codes{degrees_of(c, x, PASS_FORWARD), tensor_real(c->in[0]), tensor_real(c->out[0]), c->in[0]->dims[2]});
}

static void degree_code_cuda_backward(const struct call *c, const struct exec *x) {
    if (c->din[0]) each(c, x, tensor_count(c->in[0]), passed_on{call_dout(c, 0), c->din[0], call_accumulates(c, 0)});
}

static void edge_messages_cuda_forward(const struct call *c, const struct exec *x) {
    each_value(c, x, tensor_count(c->out[0]), tell{messages_of(c), tensor_real(c->out[0])});
}

static void edge_messages_cuda_backward(const struct call *c, const struct exec *x) {
    for (int input = 0; input <= 2; input += 2)
        if (c->din[input])
            each_value(
                c, x, tensor_count(c->in[0]),
                tell_back{messages_of(c), call_dout(c, 0), c->din[input], input == 0, call_accumulates(c, input)});
}

const struct kernel kernel_neighbours_cuda = {
    .name = "neighbours_cuda",
    .op = &op_neighbours,
    .device = DEVICE_CUDA,
    .workspace = neighbours_cuda_workspace,
    .forward = neighbours_cuda_forward,
    .backward = neighbours_cuda_backward,
};

/* Tolerance: as decode_positions_cuda, which has the same sines and cosines. */
const struct kernel kernel_degree_code_cuda = {
    .name = "degree_code_cuda",
    .op = &op_degree_code,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 32,
    .workspace = degree_code_cuda_workspace,
    .forward = degree_code_cuda_forward,
    .backward = degree_code_cuda_backward,
};

const struct kernel kernel_edge_messages_cuda = {
    .name = "edge_messages_cuda",
    .op = &op_edge_messages,
    .device = DEVICE_CUDA,
    .forward = edge_messages_cuda_forward,
    .backward = edge_messages_cuda_backward,
};
