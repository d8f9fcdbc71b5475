/* hlru.c - H-LRU(m): N channels, each a linear recurrence of order m with normalised gates that depend on the input.
 *
 *   v_t = W_v x_t     a_t = f(z_t) / sum f, z_t = W_g x_t + b_g, m lags and the input gate last
 *   h_t = sum_{i=1..m} a_{i,t} h_{t-i} + a_{0,t} v_t          y_t = W_o (h_t, h_{t-1}, .., h_{t-m+1})
 *
 * selective=pointwise: z_t = s_g v_t + b_g for each channel alone. selective=no: z_t = b_g.
 *
 * layout=companion is Eq. 3 of the H-LRU/BD-LRU paper (arXiv 2602.12021). layout=observer is its printed listing
 * (appendix G): the transposed matrix, which is a different model when gates change over time. */
#include <inttypes.h>
#include <stdio.h>

#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "kernels/move/move.h"
#include "models/parts.h"

struct hlru {
    int64_t channels, m;
    int gate, layout;
    int selective;
    double gate_init;
};

static const struct option options[] = {
    {"channels", OPT_INT, offsetof(struct hlru, channels), "128", 1, 1 << 20, NULL, "number of channels N",
     OPT_BLOCKS | OPT_STATE},
    {"m", OPT_INT, offsetof(struct hlru, m), "5", 1, 64, NULL, "order: lags looked back", OPT_ORDER},
    {"gate", OPT_CHOICE, offsetof(struct hlru, gate), "softmax", 0, 0, "softmax sigmoid relu none", "gate normaliser f",
     0},
    {"selective", OPT_CHOICE, offsetof(struct hlru, selective), "yes", 0, 0, "yes no pointwise",
     "gates depend on the input; pointwise = each on the value of its channel alone", 0},
    {"layout", OPT_CHOICE, offsetof(struct hlru, layout), "companion", 0, 0, "companion observer",
     "Eq. 3 or its transpose, the printed listing", 0},
    {"gate-init", OPT_REAL, offsetof(struct hlru, gate_init), "1", 0, 1000, NULL,
     "factor on the initial gates.weight, or gates.scale", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    const struct hlru *o = inst;
    double floats = (double)o->channels * (double)(o->m + 1) * (double)d->B * (double)d->T;
    char asked[80];
    TRY(check_gate_start("hlru", (enum selective)o->selective, o->gate_init, e));
    snprintf(asked, sizeof asked, "hlru: channels=%" PRId64 " m=%" PRId64, o->channels, o->m);
    return check_room(asked, "gates", floats, d, e);
}

static struct tensor *values(struct graph *g, struct tensor *x, int64_t N) {
    return linear(g, x, weight(g, "v.weight", N, x->dims[2], 1, AS_CONTRACT), NULL);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct hlru *o = inst;
    int64_t N = o->channels, m = o->m, D = x->dims[2];
    struct gate_map map = {.rows = N * (m + 1),
                           .selective = (enum selective)o->selective,
                           .gain = o->gate_init,
                           .bias = {2, {N, m + 1}, {1, 0}},
                           .weight = {3, {N, m + 1, D}, {1, 0, 2}}};
    struct tensor *v = o->selective == SELECTIVE_POINTWISE ? values(g, x, N) : NULL;
    struct tensor *z = mapped_gates(g, v ? v : x, &map);
    if (o->gate == GATE_NONE && graph_builder(g)->lengths)
        z = rows_in_use(g, z, graph_builder(g)->lengths, NULL); /* else states may overflow past a sequence's end */
    if (!v) v = values(g, x, N); /* after the gates, since initial weights are drawn in the order of the parameters */
    struct tensor *s = scan_companion(g, z, v, N, m, (enum gate)o->gate, (enum companion_layout)o->layout);
    return linear(g, s, weight(g, "out.weight", D, N * m, 1, (struct layout){3, {D, N, m}, {0, 2, 1}}), NULL);
}

static int64_t state_floats(const void *inst, const struct dims *d) {
    (void)d;
    const struct hlru *o = inst;
    return o->channels * o->m;
}

const struct model model_hlru = {
    .name = "hlru",
    .title = "H-LRU",
    .summary = "higher-order linear recurrence, selective normalised gates over m lags (H-LRU/BD-LRU paper)",
    .equation =
        "h_t = sum_i a_{i,t} h_{t-i} + a_{0,t} v_t;  a_t = normalise(W_g x_t + b_g);  y_t = W_o (h_t .. h_{t-m+1})",
    .options = options,
    .small = "hlru:m=3,channels=6 hlru:m=2,channels=7,layout=observer hlru:m=2,channels=6,selective=no "
             "hlru:m=2,channels=5,selective=pointwise",
    .inst_bytes = sizeof(struct hlru),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
