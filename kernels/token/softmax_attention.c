/* softmax_attention.c - softmax attention, causal or over a whole sequence: the op and its reference.
 *
 * Token t has a query q, a key k and a value v for each head, with dk numbers each. Causal attention sums over s <= t,
 * else over the n rows in use, the rows before the tokens included. ds_ts is the gradient of the score of query t and
 * key s:
 *   p_ts = softmax_s(q_t . k_s / sqrt(dk));   y_t = sum_s p_ts v_s
 * Backward:
 *   dv_s = sum_t p_ts dy_t;              ds_ts = p_ts (dy_t . v_s - sum_r p_tr dy_t . v_r)
 *   dq_t = sum_s ds_ts k_s / sqrt(dk);   dk_s = sum_t ds_ts q_t / sqrt(dk)
 * Backward computes the probabilities again; forward does not store them. */
#include <inttypes.h>
#include <math.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"
#include "kernels/token/token.h"

struct tensor *softmax_attention(struct graph *g, struct tensor *qkv, int64_t heads) {
    struct attention_attr attr = {.heads = heads, .causal = true};
    return call1(g, &op_softmax_attention, &attr, sizeof attr, (struct tensor *[]){qkv, NULL}, 2);
}

struct tensor *softmax_attention_all(struct graph *g, struct tensor *qkv, struct tensor *lengths, int64_t before,
                                     int64_t heads) {
    struct attention_attr attr = {.heads = heads, .before = before};
    return call1(g, &op_softmax_attention, &attr, sizeof attr, (struct tensor *[]){qkv, lengths}, 2);
}

static void softmax_attention_infer(struct graph *g, struct call *c) {
    int64_t heads = attention_attr(c)->heads, before = attention_attr(c)->before;
    if (!infer_present(g, c, 1)) return;
    const struct tensor *x = c->in[0], *n = c->in[1];
    if (x->rank != 3)
        graph_fail(g, ST_USAGE, "softmax_attention: qkv has rank %d, expected 3 (B,T,3D)", x->rank);
    else if (heads < 1 || x->dims[2] % (3 * heads))
        graph_fail(g, ST_USAGE,
                   "softmax_attention: qkv has %" PRId64 " columns, expected a multiple of 3 * heads = %" PRId64,
                   x->dims[2], 3 * heads);
    else if (n && (n->rank != 1 || n->dims[0] != x->dims[0] || before + n->limit > x->dims[1] + 1))
        graph_fail(g, ST_USAGE,
                   "softmax_attention: %" PRId64 " lengths of at most %" PRId32 " do not fit %" PRId64
                   " sequences of %" PRId64 " tokens",
                   tensor_count(n), n->limit - 1, x->dims[0], x->dims[1] - before);
    else
        graph_output(g, c, DT_REAL, 3, (int64_t[]){x->dims[0], x->dims[1], x->dims[2] / 3});
}

/* A head has T (T+1) / 2 pairs s <= t, or T^2 if it is not causal. A pair takes two products of length dk in forward
 * and five in backward. An exponential counts as 10 FLOPs. */
static struct cost softmax_attention_cost(const struct call *c, enum pass pass) {
    const struct attention_attr *a = attention_attr(c);
    double T = (double)c->in[0]->dims[1], y = (double)tensor_count(c->out[0]), D = (double)tensor_cols(c->out[0]);
    double pairs = y / D * (a->causal ? (T + 1) / 2 : T), heads = (double)a->heads;
    if (pass == PASS_FORWARD) return (struct cost){pairs * (4 * D + 13 * heads), sizeof(real) * 4 * y};
    return (struct cost){pairs * (10 * D + 17 * heads), sizeof(real) * 7 * y};
}

/* Variant 0 is causal. Variant 1 attends to all keys, variant 2 to the keys in use, variant 3 to these and to two rows
 * before them. */
static bool softmax_attention_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 3) return false;
    struct op_sizes longer = *s;
    int64_t before = s->variant == 3 ? 2 : 0;
    longer.length += before;
    struct tensor *qkv = input_tokens(g, &longer, "qkv", 3 * s->heads * s->dk);
    if (s->variant == 0)
        softmax_attention(g, qkv, s->heads);
    else
        softmax_attention_all(g, qkv, s->variant >= 2 ? input_lengths(g, s) : NULL, before, s->heads);
    return true;
}

static struct heads softmax_attention_heads(const struct call *c) {
    int64_t heads = attention_attr(c)->heads, dk = tensor_cols(c->out[0]) / heads;
    return (struct heads){heads, {dk}, {dk}};
}

const struct op op_softmax_attention = {
    .name = "softmax_attention",
    .maths = "y_t = sum_s softmax_s(q_t . k_s / sqrt(dk)) v_s per head, over s <= t or over all",
    .source = "Vaswani et al. 2017",
    .needs_in = 1,
    .no_grad_in = 2,
    .infer = softmax_attention_infer,
    .cost = softmax_attention_cost,
    .heads = softmax_attention_heads,
    .sizes = "batch length heads dk",
    .build = softmax_attention_build,
};

/* --- reference: one query at a time, with sums in double ---------------------------------------------------------- */

/* One head of one sequence. q, k and v point to the head's first column in token 0; tokens are `stride` = 3D apart. */
struct head {
    const real *q, *k, *v;
    int64_t dk, stride;
    double *p, *dk_sum, *dv_sum; /* scratch: a row of probabilities; in backward, the gradients of all k and v */
};

static struct head ref_head(const struct call *c, enum pass pass, struct scratch *s) {
    int64_t T = c->in[0]->dims[1], D = c->out[0]->dims[2], dk = D / attention_attr(c)->heads;
    struct head h = {.dk = dk, .stride = 3 * D, .p = scratch_doubles(s, T)};
    if (pass == PASS_BACKWARD) h.dk_sum = scratch_doubles(s, T * dk);
    if (pass == PASS_BACKWARD) h.dv_sum = scratch_doubles(s, T * dk);
    return h;
}

static size_t softmax_attention_ref_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    ref_head(c, pass, &s);
    return s.used;
}

static struct head head_at(const struct call *c, enum pass pass, int64_t b, int64_t h) {
    struct scratch s = scratch_of(c, pass);
    struct head head = ref_head(c, pass, &s);
    int64_t T = c->in[0]->dims[1], D = c->out[0]->dims[2];
    head.q = tensor_real(c->in[0]) + b * T * 3 * D + h * head.dk;
    head.k = head.q + D;
    head.v = head.q + 2 * D;
    return head;
}

/* Computes the probabilities of query t for the first `keys` keys. */
static void probabilities(const struct head *a, int64_t t, int64_t keys) {
    double top = -INFINITY, sum = 0;
    for (int64_t s = 0; s < keys; s++) {
        double score = 0;
        for (int64_t i = 0; i < a->dk; i++) score += (double)a->q[t * a->stride + i] * a->k[s * a->stride + i];
        a->p[s] = score / sqrt((double)a->dk);
        top = fmax(top, a->p[s]);
    }
    for (int64_t s = 0; s < keys; s++) sum += a->p[s] = exp(a->p[s] - top);
    for (int64_t s = 0; s < keys; s++) a->p[s] /= sum;
}

static void softmax_attention_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->out[0]->dims[2];
    int64_t heads = attention_attr(c)->heads;
    for (int64_t pair = 0; pair < B * heads; pair++) {
        struct head a = head_at(c, PASS_FORWARD, pair / heads, pair % heads);
        for (int64_t t = 0; t < T; t++) {
            int64_t keys = attention_keys(c, pair / heads, t);
            probabilities(&a, t, keys);
            real *y = tensor_real(c->out[0]) + (pair / heads * T + t) * D + pair % heads * a.dk;
            for (int64_t i = 0; i < a.dk; i++) {
                double sum = 0;
                for (int64_t s = 0; s < keys; s++) sum += a.p[s] * a.v[s * a.stride + i];
                y[i] = (real)sum;
            }
        }
    }
}

/* Computes the gradients of a query that reads `keys` keys: adds to dk_sum and dv_sum, and writes dq. dqkv points to
 * the head's q columns at token 0. */
static void ref_backward_query(const struct head *a, int64_t t, int64_t keys, const real *dy, real *dqkv,
                               bool accumulate) {
    double mean = 0, root = sqrt((double)a->dk);
    probabilities(a, t, keys);
    for (int64_t s = 0; s < keys; s++)
        for (int64_t i = 0; i < a->dk; i++) mean += a->p[s] * dy[i] * a->v[s * a->stride + i];
    for (int64_t s = 0; s < keys; s++) {
        double dp = 0;
        for (int64_t i = 0; i < a->dk; i++) {
            dp += (double)dy[i] * a->v[s * a->stride + i];
            a->dv_sum[s * a->dk + i] += a->p[s] * dy[i];
        }
        a->p[s] *= dp - mean;
        for (int64_t i = 0; i < a->dk; i++) a->dk_sum[s * a->dk + i] += a->p[s] * a->q[t * a->stride + i] / root;
    }
    for (int64_t i = 0; i < a->dk; i++) {
        double dq = 0;
        for (int64_t s = 0; s < keys; s++) dq += a->p[s] * a->k[s * a->stride + i];
        put(&dqkv[t * a->stride + i], accumulate, (real)(dq / root));
    }
}

static void softmax_attention_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->out[0]->dims[2];
    int64_t heads = attention_attr(c)->heads;
    for (int64_t pair = 0; c->din[0] && pair < B * heads; pair++) {
        struct head a = head_at(c, PASS_BACKWARD, pair / heads, pair % heads);
        int64_t at = pair / heads * T * D;
        real *dqkv = c->din[0] + 3 * at + pair % heads * a.dk;
        for (int64_t i = 0; i < T * a.dk; i++) a.dk_sum[i] = a.dv_sum[i] = 0;
        for (int64_t t = 0; t < T; t++)
            ref_backward_query(&a, t, attention_keys(c, pair / heads, t),
                               call_dout(c, 0) + at + t * D + pair % heads * a.dk, dqkv, call_accumulates(c, 0));
        for (int64_t i = 0; i < T * a.dk; i++) {
            real *dk = dqkv + i / a.dk * a.stride + D + i % a.dk;
            put(dk, call_accumulates(c, 0), (real)a.dk_sum[i]);
            put(dk + D, call_accumulates(c, 0), (real)a.dv_sum[i]);
        }
    }
}

const struct kernel kernel_softmax_attention_ref = {
    .name = "softmax_attention_ref",
    .op = &op_softmax_attention,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = softmax_attention_ref_workspace,
    .forward = softmax_attention_ref_forward,
    .backward = softmax_attention_ref_backward,
};
