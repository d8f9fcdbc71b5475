/* full_attention.c - softmax attention of every token to every other, the mixer of a vision transformer.
 *
 *   (q, k, v)_t = W_qkv x_t + b_qkv
 *   o_t = sum_{s<n} softmax_s(q_t . k_s / sqrt(dk)) v_s per head     y_t = W_o o_t + b_o
 *
 * The mixer knows no positions: the net adds them (--positions learnt). Dosovitskiy et al. 2021 (ViT); maps N(0,
 * 0.02^2), biases 0. */
#include "kernels/dense/dense.h"
#include "kernels/token/token.h"
#include "models/parts.h"

struct full_attention {
    int64_t heads;
};

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct full_attention, heads), "4", 1, 1 << 16, NULL, "number of heads H", 0}, {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    return check_heads("full-attention", ((const struct full_attention *)inst)->heads, d, e);
}

static struct tensor *affine(struct graph *g, struct tensor *x, const char *weight_name, const char *bias_name,
                             int64_t out) {
    struct tensor *w = graph_param(
        g, &(struct param_spec){
               .name = weight_name, .rank = 2, .dims = {out, x->dims[2]}, .init = {.kind = INIT_NORMAL, .b = 0.02}});
    return linear(g, x, w, vector(g, bias_name, out, (struct init){.kind = INIT_ZERO}, AS_CONTRACT));
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct full_attention *o = inst;
    int64_t D = x->dims[2];
    struct tensor *qkv = affine(g, x, "qkv.weight", "qkv.bias", 3 * D);
    struct tensor *h =
        softmax_attention_all(g, qkv, graph_builder(g)->lengths, graph_builder(g)->rows_before, o->heads);
    return h ? affine(g, h, "out.weight", "out.bias", D) : NULL;
}

/* The keys and values of every position. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    (void)inst;
    return 2 * d->T * d->D;
}

const struct model model_full_attention = {
    .name = "full-attention",
    .title = "Full attention",
    .summary = "softmax attention of every token to every other, without positions (Dosovitskiy et al. 2021)",
    .equation = "(q,k,v) = W_qkv x + b_qkv;  o_t = sum_s softmax_s(q_t . k_s / sqrt(dk)) v_s;  y_t = W_o o_t + b_o",
    .options = options,
    .small = "full-attention:heads=2",
    .inst_bytes = sizeof(struct full_attention),
    .causal = false,
    .takes_rows_before = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
