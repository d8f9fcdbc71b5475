/* conv.c - a short causal convolution: the control of the H-LRU paper, a fixed window in place of a recurrence.
 *
 *   v_t = W_v x_t     z_t[c] = sum_j kernel[c][j] v_{t-m+1+j}[c], zeros before the start     y_t = W_o z_t
 *
 * H-LRU/BD-LRU paper (arXiv 2602.12021), appendix E and figure 5. */
#include "kernels/dense/dense.h"
#include "kernels/token/token.h"
#include "models/parts.h"

struct conv {
    int64_t channels, m;
};

static const struct option options[] = {
    {"channels", OPT_INT, offsetof(struct conv, channels), "128", 1, 1 << 20, NULL, "number of channels N",
     OPT_BLOCKS | OPT_STATE},
    {"m", OPT_INT, offsetof(struct conv, m), "4", 1, 1 << 12, NULL, "width of the window", OPT_ORDER},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    (void)inst, (void)d, (void)e;
    return ST_OK;
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct conv *o = inst;
    int64_t N = o->channels, D = x->dims[2];
    struct tensor *v = linear(g, x, weight(g, "v.weight", N, D, 1, AS_CONTRACT), NULL);
    struct tensor *z = conv_depthwise(
        g, v, weight_from(g, "kernel", N, o->m, init_linear(o->m, 1), (struct layout){2, {N, o->m}, {1, 0}}), NULL);
    return linear(g, z, weight(g, "out.weight", D, N, 1, AS_CONTRACT), NULL);
}

/* The earlier inputs in the window. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    (void)d;
    const struct conv *o = inst;
    return o->channels * (o->m - 1);
}

const struct model model_conv = {
    .name = "conv",
    .title = "Convolution",
    .summary = "causal depthwise convolution of width m, no recurrence (control of the H-LRU/BD-LRU paper)",
    .equation = "v_t = W_v x_t;  z_t = sum_j kernel[:,j] v_{t-m+1+j};  y_t = W_o z_t",
    .options = options,
    .small = "conv:channels=5,m=4",
    .inst_bytes = sizeof(struct conv),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
