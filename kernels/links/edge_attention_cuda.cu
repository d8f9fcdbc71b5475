/* edge_attention_cuda.cu - attention over neighbours on CUDA. Each node reads itself and, once per edge, its
 * neighbours. Each such reading is a *slot* of the sequence: in slot n < T node n reads itself; in slot T + 2e the tail
 * of edge e reads its head, in slot T + 2e + 1 the head reads the tail. Weights, and gradients of scores, have one
 * thread per slot and head. A sum over slots walks all edges of the example, in the order of a neighbourhood and in
 * double. Equations: edge_attention.c. */
#include <math.h>

#include "kernels/links/edge_attention.h"
#include "kernels/links/linked.cuh"

namespace {

/* v, y (B,T,D); scores s, r (B,T,H); p (B,slots,H), first and last stage of the softmax (B,T,H). */
struct attention {
    struct linked k;
    const real *v, *s, *r, *dy;
    double *most, *sum, *p, *dp;
    int64_t H, D, dv, slots;

    __device__ double score(int64_t b, int64_t h, int64_t n, int64_t u) const {
        double z = unbent(b, h, n, u);
        return z > 0 ? z : EDGE_ATTENTION_SLOPE * z;
    }
    __device__ double unbent(int64_t b, int64_t h, int64_t n, int64_t u) const {
        return (double)s[(b * k.T + n) * H + h] + (double)r[(b * k.T + u) * H + h];
    }
    __device__ int64_t slot_at(int64_t b, int64_t slot, int64_t h) const {
        return (b * slots + slot) * H + h;
    }
    /* Node n reads node u in the slot; false: the edge is absent. */
    __device__ bool ends(int64_t b, int64_t slot, int64_t *n, int64_t *u) const {
        int32_t p, q;
        struct links_view l = k.view(b);
        *n = *u = slot;
        if (slot < k.T) return true;
        if (!links_edge(&l, (slot - k.T) / 2, &p, &q)) return false;
        *n = (slot - k.T) % 2 ? q : p;
        *u = (slot - k.T) % 2 ? p : q;
        return true;
    }
    /* visit(slot, u) for each slot in which node n reads a node u, itself first. */
    template <class F> __device__ void each_read(int64_t b, int64_t n, F visit) const {
        int32_t p, q;
        struct links_view l = k.view(b);
        visit(n, n);
        for (int64_t e = 0; e < l.size.edges; e++) {
            if (!links_edge(&l, e, &p, &q)) continue;
            if (p == n) visit(k.T + 2 * e, (int64_t)q);
            if (q == n) visit(k.T + 2 * e + 1, (int64_t)p);
        }
    }
    /* visit(slot, n) for each slot in which a node n reads node u. */
    template <class F> __device__ void each_reader(int64_t b, int64_t u, F visit) const {
        each_read(b, u, [&](int64_t slot, int64_t n) { visit(slot < k.T ? slot : k.T + ((slot - k.T) ^ 1), n); });
    }
};

/* Largest score and sum of exponentials of node n's reads: i of (B,T,H). */
struct softmax_of_node {
    struct attention a;
    __device__ void operator()(int64_t i) const {
        struct quotient row = divide(i, a.H), at = divide(row.whole, a.k.T);
        double most = -INFINITY, sum = 0;
        a.each_read(at.whole, at.rest,
                    [&](int64_t, int64_t u) { most = fmax(most, a.score(at.whole, row.rest, at.rest, u)); });
        a.each_read(at.whole, at.rest,
                    [&](int64_t, int64_t u) { sum += exp(a.score(at.whole, row.rest, at.rest, u) - most); });
        a.most[i] = most;
        a.sum[i] = sum;
    }
};

/* p of a slot: i of (B,slots,H); 0 where there is no edge. */
struct weight_of_slot {
    struct attention a;
    __device__ void operator()(int64_t i) const {
        struct quotient row = divide(i, a.H), at = divide(row.whole, a.slots);
        int64_t n, u;
        a.p[i] = 0;
        if (!a.ends(at.whole, at.rest, &n, &u)) return;
        int64_t node = (at.whole * a.k.T + n) * a.H + row.rest;
        a.p[i] = exp(a.score(at.whole, row.rest, n, u) - a.most[node]) / a.sum[node];
    }
};

struct read_rows {
    struct attention a;
    real *y;
    __device__ void operator()(int64_t i) const {
        struct quotient row = divide(i, a.D), at = divide(row.whole, a.k.T);
        int64_t h = row.rest / a.dv;
        double sum = 0;
        a.each_read(at.whole, at.rest, [&](int64_t slot, int64_t u) {
            sum += a.p[a.slot_at(at.whole, slot, h)] * (double)a.v[(at.whole * a.k.T + u) * a.D + row.rest];
        });
        y[i] = (real)sum;
    }
};

/* dp of a slot. */
struct product_of_slot {
    struct attention a;
    __device__ void operator()(int64_t i) const {
        struct quotient row = divide(i, a.H), at = divide(row.whole, a.slots);
        int64_t n, u, first = at.whole * a.k.T;
        double sum = 0;
        bool there = a.ends(at.whole, at.rest, &n, &u);
        for (int64_t j = row.rest * a.dv; there && j < (row.rest + 1) * a.dv; j++)
            sum += (double)a.dy[(first + n) * a.D + j] * (double)a.v[(first + u) * a.D + j];
        a.dp[i] = sum;
    }
};

/* Replaces the softmax's sum by the mean of dp over a node's reads. */
struct mean_of_node {
    struct attention a;
    __device__ void operator()(int64_t i) const {
        struct quotient row = divide(i, a.H), at = divide(row.whole, a.k.T);
        double mean = 0;
        a.each_read(at.whole, at.rest, [&](int64_t slot, int64_t) {
            int64_t e = a.slot_at(at.whole, slot, row.rest);
            mean += a.p[e] * a.dp[e];
        });
        a.sum[i] = mean;
    }
};

/* Replaces dp of a slot by dz. */
struct gradient_of_slot {
    struct attention a;
    __device__ void operator()(int64_t i) const {
        struct quotient row = divide(i, a.H), at = divide(row.whole, a.slots);
        int64_t n, u;
        if (!a.ends(at.whole, at.rest, &n, &u)) return;
        double dz = a.p[i] * (a.dp[i] - a.sum[(at.whole * a.k.T + n) * a.H + row.rest]);
        a.dp[i] = a.unbent(at.whole, row.rest, n, u) > 0 ? dz : EDGE_ATTENTION_SLOPE * dz;
    }
};

/* ds sums dz over a node's reads, dr over its readers. */
struct score_gradient {
    struct attention a;
    real *to;
    bool reads, accumulate;
    __device__ void operator()(int64_t i) const {
        struct quotient row = divide(i, a.H), at = divide(row.whole, a.k.T);
        double sum = 0;
        auto add = [&](int64_t slot, int64_t) { sum += a.dp[a.slot_at(at.whole, slot, row.rest)]; };
        if (reads)
            a.each_read(at.whole, at.rest, add);
        else
            a.each_reader(at.whole, at.rest, add);
        put(to + i, accumulate, (real)sum);
    }
};

struct row_gradient {
    struct attention a;
    real *dv;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        struct quotient row = divide(i, a.D), at = divide(row.whole, a.k.T);
        int64_t h = row.rest / a.dv;
        double sum = 0;
        a.each_reader(at.whole, at.rest, [&](int64_t slot, int64_t n) {
            sum += a.p[a.slot_at(at.whole, slot, h)] * (double)a.dy[(at.whole * a.k.T + n) * a.D + row.rest];
        });
        put(dv + i, accumulate, (real)sum);
    }
};

struct attention attention_of(const struct call *c, enum pass pass, struct scratch *s) {
    const struct tensor *v = c->in[0], *scores = c->in[2];
    int64_t T = v->dims[1], slots = T + 2 * links_attr(c)->size.edges;
    struct attention a = {linked_of(c, T), tensor_real(v), tensor_real(scores), tensor_real(c->in[3])};
    a.dy = pass == PASS_BACKWARD ? call_dout(c, 0) : nullptr;
    a.H = scores->dims[2];
    a.D = v->dims[2];
    a.dv = a.D / a.H;
    a.slots = slots;
    a.most = scratch_doubles(s, tensor_count(scores));
    a.sum = scratch_doubles(s, tensor_count(scores));
    a.p = scratch_doubles(s, v->dims[0] * slots * a.H);
    if (pass == PASS_BACKWARD) a.dp = scratch_doubles(s, v->dims[0] * slots * a.H);
    return a;
}

/* The call's arrays, after all weights are computed. */
struct attention weights_of(const struct call *c, const struct exec *x, enum pass pass) {
    struct scratch s = scratch_of(c, pass);
    struct attention a = attention_of(c, pass, &s);
    each_value(c, x, tensor_count(c->in[2]), softmax_of_node{a});
    each_value(c, x, c->in[0]->dims[0] * a.slots * a.H, weight_of_slot{a});
    return a;
}

} // namespace

static size_t edge_attention_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    attention_of(c, pass, &s);
    return s.used;
}

static void edge_attention_cuda_forward(const struct call *c, const struct exec *x) {
    struct attention a = weights_of(c, x, PASS_FORWARD);
    each_value(c, x, tensor_count(c->out[0]), read_rows{a, tensor_real(c->out[0])});
}

static void edge_attention_cuda_backward(const struct call *c, const struct exec *x) {
    struct attention a = weights_of(c, x, PASS_BACKWARD);
    int64_t slots = c->in[0]->dims[0] * a.slots * a.H;
    if (c->din[0]) each_value(c, x, tensor_count(c->in[0]), row_gradient{a, c->din[0], call_accumulates(c, 0)});
    if (!c->din[2] && !c->din[3]) return;
    each_value(c, x, slots, product_of_slot{a});
    each_value(c, x, tensor_count(c->in[2]), mean_of_node{a});
    each_value(c, x, slots, gradient_of_slot{a});
    for (int input = 2; input <= 3; input++)
        if (c->din[input])
            each_value(c, x, tensor_count(c->in[2]),
                       score_gradient{a, c->din[input], input == 2, call_accumulates(c, input)});
}

/* Tolerance: exponentials of the device's library differ from the host's in their last digits. Gradients of scores may
 * cancel, so the terms of the sum over a neighbourhood are their scale, as for edge_attention_cpu. */
const struct kernel kernel_edge_attention_cuda = {
    .name = "edge_attention_cuda",
    .op = &op_edge_attention,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 128,
    .workspace = edge_attention_cuda_workspace,
    .forward = edge_attention_cuda_forward,
    .backward = edge_attention_cuda_backward,
};
