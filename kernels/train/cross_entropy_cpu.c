/* cross_entropy_cpu.c - mean cross-entropy over the scored rows, with fixed parts of rows on threads and the columns of
 * a row in vectors. The parts' sums are added in double, in order. The equations are in cross_entropy.c. */
#include <math.h>

#include "kernels/train/train.h"
#include "core/batch.h"
#include "core/real_math.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/lib/simd.h"

#define PART_ROWS    64
#define PARALLEL_EXP 4096 /* exponentials; for fewer, threads cost more than they gain */

struct part_sum {
    double loss;
    int64_t scored;
};

static int64_t part_count(int64_t rows) {
    return (rows + PART_ROWS - 1) / PART_ROWS;
}

static struct range rows_of_part(int64_t rows, int64_t part) {
    struct range r = {part * PART_ROWS, (part + 1) * PART_ROWS < rows ? (part + 1) * PART_ROWS : rows};
    return r;
}

/* Returns the largest number, without regard to NaN. The last vector overlaps the one before. */
static real maximum(const real *l, int64_t V) {
    real top = l[0], lane[LANES];
    if (V < LANES) {
        for (int64_t v = 1; v < V; v++) top = l[v] > top ? l[v] : top;
        return top;
    }
    lanes tops = lanes_at(l + V - LANES);
    for (int64_t v = 0; v + LANES < V; v += LANES) tops = larger_lanes(tops, lanes_at(l + v));
    lanes_to(lane, tops);
    for (int half = LANES / 2; half > 0; half /= 2)
        for (int j = 0; j < half; j++) lane[j] = lane[j + half] > lane[j] ? lane[j + half] : lane[j];
    return lane[0];
}

/* Returns the first class whose logit is `top`, the maximum; NO_CLASS unless all logits are finite: 0 times any other
 * number is NaN, which stays in the sum. */
static int32_t prediction(const real *l, int64_t V, real top) {
    int64_t v = 0, best = -1;
    lanes odd = {0};
    for (; v + LANES <= V; v += LANES) {
        lanes x = lanes_at(l + v);
        unsigned hits = best < 0 ? equal_lanes(x, all_lanes(top)) : 0;
        odd += (lanes){0} * x;
        if (hits) best = v + __builtin_ctz(hits);
    }
    real rest = 0;
    for (; v < V; v++) {
        rest += 0 * l[v];
        if (best < 0 && l[v] == top) best = v;
    }
    return rest == 0 && equal_lanes(odd, (lanes){0}) == (1u << LANES) - 1 ? (int32_t)best : NO_CLASS;
}

static real sum_exp(const real *l, int64_t V, real top) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t v = 0; v < V; v++) sum += real_exp(l[v] - top);
    return sum;
}

/* Computes what sum_exp does, and also stores the exponentials. */
static real exponentials(const real *restrict l, int64_t V, real top, real *restrict e) {
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t v = 0; v < V; v++) {
        e[v] = real_exp(l[v] - top);
        sum += e[v];
    }
    return sum;
}

static struct part_sum forward_part(const struct call *c, struct range rows) {
    int64_t V = tensor_cols(c->in[0]);
    const int32_t *targets = tensor_i32(c->in[1]);
    int32_t *predictions = tensor_i32(c->out[1]);
    struct part_sum sum = {0, 0};
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const real *l = tensor_real(c->in[0]) + r * V;
        real top = maximum(l, V);
        predictions[r] = prediction(l, V, top);
        if (targets[r] == IGNORED) continue;
        sum.loss += log((double)sum_exp(l, V, top)) + ((double)top - l[targets[r]]);
        sum.scored++;
    }
    return sum;
}

static size_t cross_entropy_cpu_workspace(const struct call *c, enum pass pass) {
    int64_t parts = pass == PASS_FORWARD ? part_count(tensor_rows(c->in[0])) : 0;
    return scratch_single(c, (size_t)parts * sizeof(struct part_sum));
}

static void cross_entropy_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), V = tensor_cols(c->in[0]), parts = part_count(rows);
    struct part_sum *sums = c->scratch[PASS_FORWARD], total = {0, 0};
#pragma omp parallel for schedule(static) if (rows * V > PARALLEL_EXP)
    for (int64_t b = 0; b < parts; b++) sums[b] = forward_part(c, rows_of_part(rows, b));
    for (int64_t b = 0; b < parts; b++) {
        total.loss += sums[b].loss;
        total.scored += sums[b].scored;
    }
    tensor_real(c->out[0])[0] = total.scored ? (real)(total.loss / (double)total.scored) : 0;
}

/* dl (+)= factor softmax(l). It is inlined for each value of `accumulate`, which must be a constant so that the loop is
 * vectorised. */
FORCE_INLINE void softmax_row(const real *restrict l, int64_t V, real factor, real *restrict dl, bool accumulate) {
    real top = maximum(l, V), sum = accumulate ? sum_exp(l, V, top) : exponentials(l, V, top, dl);
    real scaled = factor / sum;
#pragma omp simd
    for (int64_t v = 0; v < V; v++) {
        if (accumulate)
            dl[v] += scaled * real_exp(l[v] - top);
        else
            dl[v] *= scaled;
    }
}

static void backward_row(const real *l, int64_t V, int32_t target, real factor, real *dl, bool accumulate) {
    if (target == IGNORED) {
        for (int64_t v = 0; v < V && !accumulate; v++) dl[v] = 0;
        return;
    }
    if (accumulate)
        softmax_row(l, V, factor, dl, true);
    else
        softmax_row(l, V, factor, dl, false);
    dl[target] -= factor;
}

static void cross_entropy_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), V = tensor_cols(c->in[0]), scored = 0, parts = part_count(rows);
    const real *logits = tensor_real(c->in[0]);
    const int32_t *targets = tensor_i32(c->in[1]);
    if (!c->din[0]) return;
    for (int64_t r = 0; r < rows; r++) scored += targets[r] != IGNORED;
    real factor = call_dout(c, 0)[0] / (real)(scored ? scored : 1);
#pragma omp parallel for schedule(static) if (rows * V > PARALLEL_EXP)
    for (int64_t b = 0; b < parts; b++) {
        struct range part = rows_of_part(rows, b);
        for (int64_t r = part.begin; r < part.end; r++)
            backward_row(logits + r * V, V, targets[r], factor, c->din[0] + r * V, call_accumulates(c, 0));
    }
}

/* Tolerance: sums of V exponentials in working precision, each with an error of a few units. Errors count in units of
 * the terms (op->terms): the sum inside the logarithm rounds near 1, and the gradient at the target, p - 1,
 * rounds like p. If a row's loss, and so 1 - p, is 1e-6, one correct digit remains in float. This is so in the softmax
 * of other libraries too, and a loss of 1e-6 does not matter to a training. */
const struct kernel kernel_cross_entropy_cpu = {
    .name = "cross_entropy_cpu",
    .op = &op_cross_entropy,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .workspace = cross_entropy_cpu_workspace,
    .forward = cross_entropy_cpu_forward,
    .backward = cross_entropy_cpu_backward,
};
