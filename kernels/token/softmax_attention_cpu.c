/* softmax_attention_cpu.c - softmax attention by matrix products; softmax_attention.c has the equations. A product has
 * a chunk of queries and all keys that the chunk's last query reads. So scores take QUERIES x T numbers, not T x T.
 *
 * The heads of all sequences are distributed over a fixed number of slots. Each slot has its own scratch memory and
 * computes its heads in order. In a head, the gradients of keys and values are summed over the chunks of queries in
 * order. */
#include <string.h>

#include "core/real_math.h"
#include "kernels/lib/gemm.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/token/token.h"

#define QUERIES 64
#define SLOTS   16

struct head {
    const real *q, *k, *v, *dy;
    real *dq, *out;
    int64_t T, D, dk, n; /* n: keys in use, if not causal */
    bool causal;
    real root;    /* 1 / sqrt(dk) */
    real *p, *dp; /* QUERIES x T */
    real *dkv;    /* T x 2 dk: sums of dk and dv */
    bool add;
};

static int64_t head_width(const struct call *c) {
    return c->out[0]->dims[2] / attention_attr(c)->heads;
}

static int64_t slot_count(const struct call *c) {
    int64_t pairs = c->in[0]->dims[0] * attention_attr(c)->heads;
    return pairs < SLOTS ? pairs : SLOTS;
}

static void take_arrays(const struct call *c, enum pass pass, struct scratch *s, struct head *h) {
    int64_t T = c->in[0]->dims[1];
    h->p = scratch_reals(s, QUERIES * T);
    if (pass == PASS_BACKWARD) h->dp = scratch_reals(s, QUERIES * T);
    if (pass == PASS_BACKWARD) h->dkv = scratch_reals(s, 2 * T * head_width(c));
}

static size_t softmax_attention_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    struct head none;
    for (int64_t slot = 0; slot < slot_count(c); slot++) take_arrays(c, pass, &s, &none);
    return s.used;
}

static struct head head_of(const struct call *c, enum pass pass, int64_t pair, int64_t slot) {
    int64_t heads = attention_attr(c)->heads, T = c->in[0]->dims[1], D = c->out[0]->dims[2];
    int64_t dk = head_width(c), at = pair / heads * T * D, column = pair % heads * dk;
    struct scratch all = scratch_of(c, pass), own = scratch_part(&all, slot, slot_count(c));
    struct head h = {.T = T, .D = D, .dk = dk, .root = (real)(1 / sqrt((double)dk))};
    h.causal = attention_attr(c)->causal;
    h.n = attention_keys(c, pair / heads, T - 1);
    take_arrays(c, pass, &own, &h);
    h.q = tensor_real(c->in[0]) + 3 * at + column;
    h.k = h.q + D;
    h.v = h.k + D;
    h.out = tensor_real(c->out[0]) + at + column;
    if (pass == PASS_FORWARD) return h;
    h.dy = call_dout(c, 0) + at + column;
    h.dq = c->din[0] + 3 * at + column;
    h.add = call_accumulates(c, 0);
    return h;
}

/* Turns a row of n scores into probabilities. The scores from n to `end` belong to future keys and become 0. */
static void softmax_row(real *p, int64_t n, int64_t end) {
    real top = p[0], sum = 0;
#pragma omp simd reduction(max : top)
    for (int64_t s = 0; s < n; s++) top = p[s] > top ? p[s] : top;
#pragma omp simd reduction(+ : sum)
    for (int64_t s = 0; s < n; s++) {
        p[s] = real_exp(p[s] - top);
        sum += p[s];
    }
    real scale = 1 / sum;
#pragma omp simd
    for (int64_t s = 0; s < n; s++) p[s] *= scale;
    memset(p + n, 0, (size_t)(end - n) * sizeof *p);
}

/* Returns the number of keys that the queries [t, t + rows) read. */
static int64_t keys_of(const struct head *h, int64_t t, int64_t rows) {
    return h->causal ? t + rows : h->n;
}

/* Sets p to the probabilities of the queries [t, t + rows) for the keys that they read. */
static void probabilities(const struct head *h, int64_t t, int64_t rows) {
    int64_t keys = keys_of(h, t, rows), stride = 3 * h->D;
    real_gemm(false, true, rows, keys, h->dk, h->root, h->q + t * stride, stride, h->k, stride, false, h->p, keys);
    for (int64_t r = 0; r < rows; r++) softmax_row(h->p + r * keys, h->causal ? t + r + 1 : keys, keys);
}

/* Sets dk columns of all tokens to 0, unless they already have the gradient of another call. */
static void clear(const struct head *h, real *to, int64_t stride, bool add) {
    for (int64_t t = 0; t < h->T && !add; t++) memset(to + t * stride, 0, (size_t)h->dk * sizeof *to);
}

static void head_forward(const struct head *h) {
    if (h->n == 0) clear(h, h->out, h->D, false);
    if (h->n == 0) return;
    for (int64_t t = 0; t < h->T; t += QUERIES) {
        int64_t rows = h->T - t < QUERIES ? h->T - t : QUERIES, keys = keys_of(h, t, rows);
        probabilities(h, t, rows);
        real_gemm(false, false, rows, h->dk, keys, 1, h->p, keys, h->v, 3 * h->D, false, h->out + t * h->D, h->D);
    }
}

/* Turns dp into the gradient of the scores, p (dp - sum p dp), in place. The sum equals dy . y. But the sum over dp is
 * better: if one key has all the weight, the difference is then exactly 0. */
static void score_gradient(const struct head *h, int64_t t, int64_t rows) {
    int64_t keys = keys_of(h, t, rows);
    for (int64_t r = 0; r < rows; r++) {
        const real *p = h->p + r * keys;
        real *dp = h->dp + r * keys, mean = 0;
#pragma omp simd reduction(+ : mean)
        for (int64_t s = 0; s < keys; s++) mean += p[s] * dp[s];
#pragma omp simd
        for (int64_t s = 0; s < keys; s++) dp[s] = p[s] * (dp[s] - mean);
    }
}

static void head_backward(const struct head *h) {
    int64_t dk = h->dk, stride = 3 * h->D;
    for (int part = 0; part < 3 && h->n == 0; part++) clear(h, h->dq + part * h->D, stride, h->add);
    if (h->n == 0) return;
    memset(h->dkv, 0, (size_t)(2 * h->T * dk) * sizeof *h->dkv);
    for (int64_t t = 0; t < h->T; t += QUERIES) {
        int64_t rows = h->T - t < QUERIES ? h->T - t : QUERIES, keys = keys_of(h, t, rows);
        const real *dy = h->dy + t * h->D;
        probabilities(h, t, rows);
        real_gemm(true, false, keys, dk, rows, 1, h->p, keys, dy, h->D, true, h->dkv + dk, 2 * dk);
        real_gemm(false, true, rows, keys, dk, 1, dy, h->D, h->v, stride, false, h->dp, keys);
        score_gradient(h, t, rows);
        real_gemm(true, false, keys, dk, rows, h->root, h->dp, keys, h->q + t * stride, stride, true, h->dkv, 2 * dk);
        real_gemm(false, false, rows, dk, keys, h->root, h->dp, keys, h->k, stride, h->add, h->dq + t * stride, stride);
    }
    for (int64_t t = 0; t < h->T; t++)
        for (int64_t i = 0; i < 2 * dk; i++)
            put(&h->dq[t * stride + (i < dk ? h->D + i : 2 * h->D + i - dk)], h->add, h->dkv[t * 2 * dk + i]);
}

static void run(const struct call *c, enum pass pass, void (*walk)(const struct head *h)) {
    int64_t pairs = c->in[0]->dims[0] * attention_attr(c)->heads, slots = slot_count(c);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) * c->in[0]->dims[1] > PARALLEL_MIN)
    for (int64_t slot = 0; slot < slots; slot++) {
        struct range part = part_at(pairs, slots, slot);
        for (int64_t pair = part.begin; pair < part.end; pair++) {
            struct head h = head_of(c, pass, pair, slot);
            walk(&h);
        }
    }
}

static void softmax_attention_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    run(c, PASS_FORWARD, head_forward);
}

static void softmax_attention_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    if (c->din[0]) run(c, PASS_BACKWARD, head_backward);
}

/* Tolerance: a score of size S has an error of some S units, which exp turns into a relative error of the probability.
 * With q and k of size 30, S reaches a few thousand, although most of it cancels against the other scores of the row.
 * The reference sums in double. */
const struct kernel kernel_softmax_attention_cpu = {
    .name = "softmax_attention_cpu",
    .op = &op_softmax_attention,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 1024,
    .workspace = softmax_attention_cpu_workspace,
    .forward = softmax_attention_cpu_forward,
    .backward = softmax_attention_cpu_backward,
};
