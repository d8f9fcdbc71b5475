/* attention.c - causal softmax attention with rotary positions, the reference without a recurrence.
 *
 *   (q, k, v)_t = W_qkv x_t     q, k turned by rope (base 10000)
 *   o_t = sum_{s<=t} softmax_s(q_t . k_s / sqrt(dk)) v_s per head     y_t = W_o o_t
 *
 * Vaswani et al. 2017, Su et al. 2021; no biases. */
#include <inttypes.h>

#include "kernels/dense/dense.h"
#include "kernels/token/token.h"
#include "models/parts.h"

#define ROPE_BASE 10000

struct attention {
    int64_t heads;
};

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct attention, heads), "4", 1, 1 << 16, NULL, "number of heads H", 0}, {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    const struct attention *o = inst;
    TRY(check_heads("attention", o->heads, d, e));
    if (d->D / o->heads % 2)
        return fail(e, ST_USAGE,
                    "attention: heads=%" PRId64 " of dim=%" PRId64 " are %" PRId64
                    " wide; rotary positions need an even width",
                    o->heads, d->D, d->D / o->heads);
    return ST_OK;
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct attention *o = inst;
    int64_t D = x->dims[2], dk = D / o->heads;
    struct tensor *qkv = linear(g, x, weight(g, "qkv.weight", 3 * D, D, 1, AS_CONTRACT), NULL);
    struct tensor *turned = rope(g, qkv, 2 * o->heads, dk, ROPE_BASE); /* the heads of q and of k */
    struct tensor *h = softmax_attention(g, turned, o->heads);
    return linear(g, h, weight(g, "out.weight", D, D, 1, AS_CONTRACT), NULL);
}

/* The keys and values of every position. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    (void)inst;
    return 2 * d->T * d->D;
}

const struct model model_attention = {
    .name = "attention",
    .title = "Attention",
    .summary = "causal softmax attention with rotary positions (Vaswani et al. 2017)",
    .equation = "(q,k,v) = W_qkv x;  o_t = sum_{s<=t} softmax_s(q_t . k_s / sqrt(dk)) v_s;  y_t = W_o o_t",
    .options = options,
    .small = "attention:heads=2",
    .inst_bytes = sizeof(struct attention),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
