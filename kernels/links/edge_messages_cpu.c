/* edge_messages_cpu.c - messages of neighbours on the CPU. A thread computes one sequence at a time. Each edge sends a
 * row to both its ends. */
#include <string.h>

#include "kernels/lib/parallel.h"
#include "kernels/links/links_call.h"

static void tell(int64_t D, const real *a, const real *c, real *y) {
#pragma omp simd
    for (int64_t d = 0; d < D; d++) {
        real sum = a[d] + c[d];
        y[d] += sum <= 0 ? 0 : sum; /* NaN stays NaN */
    }
}

static void forward_sequence(const struct call *c, int64_t b) {
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    struct links_view l = links_at(c, b, T);
    const real *a = tensor_real(c->in[0]) + b * T * D, *other = tensor_real(c->in[2]) + b * T * D;
    real *y = tensor_real(c->out[0]) + b * T * D;
    int32_t p, q;
    memset(y, 0, (size_t)(T * D) * sizeof *y);
    for (int64_t e = 0; e < l.size.edges; e++) {
        if (!links_edge(&l, e, &p, &q)) continue;
        tell(D, a + p * D, other + q * D, y + p * D);
        tell(D, a + q * D, other + p * D, y + q * D);
    }
}

/* Computes dx += dy where the message was positive. */
static void tell_back(int64_t D, const real *a, const real *c, const real *dy, real *dx) {
#pragma omp simd
    for (int64_t d = 0; d < D; d++) dx[d] += a[d] + c[d] > 0 ? dy[d] : 0;
}

/* Input 0 (a) gets its gradient at the node that receives a message, input 2 (c) at the node that sends it. */
static void backward_sequence(const struct call *c, int64_t b, int input) {
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    struct links_view l = links_at(c, b, T);
    const real *a = tensor_real(c->in[0]) + b * T * D, *other = tensor_real(c->in[2]) + b * T * D;
    const real *dy = call_dout(c, 0) + b * T * D;
    real *dx = c->din[input] + b * T * D;
    int32_t p, q;
    if (!call_accumulates(c, input)) memset(dx, 0, (size_t)(T * D) * sizeof *dx);
    for (int64_t e = 0; e < l.size.edges; e++) {
        if (!links_edge(&l, e, &p, &q)) continue;
        tell_back(D, a + p * D, other + q * D, dy + p * D, dx + (input ? q : p) * D);
        tell_back(D, a + q * D, other + p * D, dy + q * D, dx + (input ? p : q) * D);
    }
}

static void edge_messages_cpu_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0];
#pragma omp parallel for schedule(static) if (2 * tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++) forward_sequence(c, b);
}

static void edge_messages_cpu_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0];
#pragma omp parallel for schedule(static) if (2 * tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++)
        for (int input = 0; input <= 2; input += 2)
            if (c->din[input]) backward_sequence(c, b, input);
}

/* Tolerance: the reference sums in double; here the sum rounds at each neighbour. */
const struct kernel kernel_edge_messages_cpu = {
    .name = "edge_messages_cpu",
    .op = &op_edge_messages,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .forward = edge_messages_cpu_forward,
    .backward = edge_messages_cpu_backward,
};
