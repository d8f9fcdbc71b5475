/* hgrn2.c - HGRN2: an outer-product state whose forget gate, one per key channel, is one minus its key.
 *
 *   q = silu(W_q x)   f_t = low + (1 - low) sigmoid(W_f x)   v = W_i x
 *   S_t = Diag(f_t) S_{t-1} + (1 - f_t) v_t^T    o_t = S_t^T q_t / sqrt(dk)    y = W_o RMSNorm(o), over all heads
 *
 * Qin et al. 2024 (arXiv 2404.07904); flash-linear-attention's layer (layers/hgrn2.py). The released model learns `low`
 * outside the mixers, with one set of values for all layers. It starts at l / L in layer l of L, so that upper layers
 * remember longer. A mixer here shares no parameter with other layers, so `low` stays at that start; bounds=no sets low
 * = 0. The state has dk = dv = width / heads per head; in the paper a head is 128 wide. */
#include "kernels/dense/dense.h"
#include "kernels/matrix/matrix.h"
#include "kernels/norm/norm.h"
#include "models/matrix/matrix_state.h"
#include "models/parts.h"

struct hgrn2 {
    int64_t heads;
    bool bounds;
};

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct hgrn2, heads), "4", 1, 1 << 16, NULL, "heads; must divide the width", 0},
    {"bounds", OPT_BOOL, offsetof(struct hgrn2, bounds), "yes", 0, 0, NULL,
     "least forget gate of layer l of L, from 0: l / L; no: 0", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    return check_heads("hgrn2", ((const struct hgrn2 *)inst)->heads, d, e);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct hgrn2 *o = inst;
    const struct graph_builder *now = graph_builder(g);
    int64_t D = x->dims[2], H = o->heads;
    double low = o->bounds && now->layers > 0 ? (double)now->layer / now->layers : 0;
    struct tensor *q = activate(g, projection(g, x, "q.weight", D), ACT_SILU);
    struct tensor *z = projection(g, x, "f.weight", D), *v = projection(g, x, "i.weight", D);
    /* keep = sigmoid(z) and take = sigmoid(-z) add up to 1: f = keep + low take, 1 - f = (1 - low) take. */
    struct tensor *keep = activate(g, z, ACT_SIGMOID), *take = activate(g, activate(g, z, ACT_NEG), ACT_SIGMOID);
    struct delta_gates gates = {.decay = low > 0 ? add(g, keep, scale_by(g, take, low)) : keep};
    struct tensor *k = low > 0 ? scale_by(g, take, 1 - low) : take;
    struct delta_attr attr = {.heads = H, .steps = 1, .scale = 1 / sqrt((double)(D / H)), .rate = 1};
    struct tensor *norm = vector(g, "norm.weight", D, (struct init){.kind = INIT_CONST, .a = 1}, AS_CONTRACT);
    struct tensor *y = rmsnorm(g, scan_delta(g, q, k, v, &gates, &attr), norm, NORM_EPS);
    return projection(g, y, "out.weight", D);
}

/* The matrices S. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    return d->D * (d->D / ((const struct hgrn2 *)inst)->heads);
}

const struct model model_hgrn2 = {
    .name = "hgrn2",
    .title = "HGRN2",
    .summary = "outer-product state, its key one minus its forget gate (HGRN2, Qin et al. 2024)",
    .equation = "S_t = Diag(f_t) S_{t-1} + (1 - f_t) v_t^T;  f_t = low + (1 - low) sigmoid(W_f x_t);  y_t = W_o "
                "RMSNorm(S_t^T q_t / sqrt(dk))",
    .options = options,
    .small = "hgrn2:heads=3 hgrn2:heads=2,bounds=no",
    .inst_bytes = sizeof(struct hgrn2),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
