/* dropout_cpu.c - inverted dropout on the CPU, with spans of elements on threads. It has the same bits as dropout.c. */
#include "kernels/dense/dense.h"
#include "kernels/dense/dropout.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"

#define BLOCKS 16 /* number of Philox blocks that are drawn together */
_Static_assert(SPAN % (4 * BLOCKS) == 0, "a span begins at a whole block");

/* Draws the words of BLOCKS consecutive blocks, in element order. The loop is scalar, because the 64-bit products of
 * the cipher gain nothing from vectors of 32-bit words. */
static void draw(const struct call *c, const struct step_state *state, int64_t first_block, uint32_t *words) {
    for (int64_t b = 0; b < BLOCKS; b++) {
        struct philox_block block = dropout_words(c, state, first_block + b);
        for (int k = 0; k < 4; k++) words[4 * b + k] = block.word[k];
    }
}

static void drop_span(const struct call *c, const struct step_state *state, struct range span, const real *from,
                      real *to, bool accumulate) {
    const struct dropout_attr *attr = dropout_attr(c);
    uint32_t threshold = dropout_threshold(attr->p), words[4 * BLOCKS];
    real factor = (real)(1 / (1 - attr->p));
    for (int64_t i = span.begin; i < span.end; i += 4 * BLOCKS) {
        int64_t n = span.end - i < 4 * BLOCKS ? span.end - i : 4 * BLOCKS;
        draw(c, state, i / 4, words);
#pragma omp simd
        for (int64_t j = 0; j < n; j++) put(&to[i + j], accumulate, words[j] >= threshold ? from[i + j] * factor : 0);
    }
}

/* Computes to[i] (+)= from[i] keep[i] / (1 - p). Threads pay off for fewer elements than in other ops, because drawing
 * an element takes several times as long as moving it. */
static void drop(const struct call *c, const struct exec *exec, const real *from, real *to, bool accumulate) {
    int64_t n = tensor_count(c->out[0]);
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN / 2)
    for (int64_t s = 0; s < span_count(n); s++) drop_span(c, exec->state, span_at(n, s), from, to, accumulate);
}

static void dropout_cpu_forward(const struct call *c, const struct exec *exec) {
    drop(c, exec, tensor_real(c->in[0]), tensor_real(c->out[0]), false);
}

static void dropout_cpu_backward(const struct call *c, const struct exec *exec) {
    if (c->din[0]) drop(c, exec, call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

const struct kernel kernel_dropout_cpu = {
    .name = "dropout_cpu",
    .op = &op_dropout,
    .device = DEVICE_CPU,
    .forward = dropout_cpu_forward,
    .backward = dropout_cpu_backward,
};
