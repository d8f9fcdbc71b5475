/* hlru.c - H-LRU(m): N channels, each a linear recurrence of order m with normalised gates that depend on the input.
 *
 *   v_t = W_v x_t     a_t = f(z_t) / sum f, z_t = W_g x_t + b_g, m lags and the input gate last
 *   h_t = sum_{i=1..m} a_{i,t} h_{t-i} + a_{0,t} v_t          y_t = W_o (h_t, h_{t-1}, .., h_{t-m+1})
 *
 * layout=companion is Eq. 3 of the H-LRU/BD-LRU paper (arXiv 2602.12021); layout=observer is its printed listing
 * (appendix G), the transposed matrix, a different model when gates change over time. */
#include <inttypes.h>

#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "kernels/move/move.h"
#include "models/parts.h"

struct hlru {
    int64_t channels, m;
    int gate, layout;
    bool selective;
    double gate_init;
};

static const struct option options[] = {
    {"channels", OPT_INT, offsetof(struct hlru, channels), "128", 1, 1 << 20, NULL, "number of channels N", OPT_BLOCKS},
    {"m", OPT_INT, offsetof(struct hlru, m), "5", 1, 64, NULL, "order: lags looked back", OPT_ORDER},
    {"gate", OPT_CHOICE, offsetof(struct hlru, gate), "softmax", 0, 0, "softmax sigmoid relu none", "gate normaliser f",
     0},
    {"selective", OPT_BOOL, offsetof(struct hlru, selective), "yes", 0, 0, NULL, "gates depend on the input", 0},
    {"layout", OPT_CHOICE, offsetof(struct hlru, layout), "companion", 0, 0, "companion observer",
     "Eq. 3 or its transpose, the printed listing", 0},
    {"gate-init", OPT_REAL, offsetof(struct hlru, gate_init), "1", 0, 1000, NULL, "factor on the initial gates.weight",
     0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    const struct hlru *o = inst;
    double floats = (double)o->channels * (double)(o->m + 1) * (double)d->B * (double)d->T;
    if (floats * sizeof(real) > (double)machine_memory_bytes())
        return fail(e, ST_USAGE,
                    "hlru: channels=%" PRId64 " m=%" PRId64 " at batch %" PRId64 " length %" PRId64
                    " needs %.0f MB for the gates alone but the machine has %zu MB",
                    o->channels, o->m, d->B, d->T, floats * sizeof(real) / 1048576, machine_memory_bytes() >> 20);
    return ST_OK;
}

static struct tensor *gates(const struct hlru *o, struct graph *g, struct tensor *x) {
    int64_t N = o->channels, m = o->m, D = x->dims[2], rows = N * (m + 1);
    struct layout vector_layout = {2, {N, m + 1}, {1, 0}};
    if (!o->selective) {
        struct init small = {.kind = INIT_NORMAL, .b = 0.02};
        return repeat_rows(g, vector(g, "gates.bias", rows, small, vector_layout), x->dims[0], x->dims[1]);
    }
    struct tensor *w = weight(g, "gates.weight", rows, D, o->gate_init, (struct layout){3, {N, m + 1, D}, {1, 0, 2}});
    return linear(g, x, w, vector(g, "gates.bias", rows, (struct init){.kind = INIT_ZERO}, vector_layout));
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct hlru *o = inst;
    int64_t N = o->channels, m = o->m, D = x->dims[2];
    struct tensor *z = gates(o, g, x);
    if (o->gate == GATE_NONE && g->lengths)
        z = rows_in_use(g, z, g->lengths, NULL); /* else states may overflow there */
    struct tensor *v = linear(g, x, weight(g, "v.weight", N, D, 1, AS_CONTRACT), NULL);
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
    .summary = "higher-order linear recurrence, selective normalised gates over m lags (H-LRU/BD-LRU paper)",
    .equation =
        "h_t = sum_i a_{i,t} h_{t-i} + a_{0,t} v_t;  a_t = normalise(W_g x_t + b_g);  y_t = W_o (h_t .. h_{t-m+1})",
    .options = options,
    .small = "hlru:m=3,channels=6 hlru:m=2,channels=7,layout=observer hlru:m=2,channels=6,selective=no",
    .inst_bytes = sizeof(struct hlru),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
