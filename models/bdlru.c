/* bdlru.c - BD-LRU(m): N blocks of m states, each mixed by a normalised m x m gate matrix that depends on the input.
 *
 *   v_t = W_v x_t                       z_t = W_g x_t + b_g, one row of m+1 raw gates per state
 *   a_t[i][.] = f(z_t[i][.]) / sum f    h_t[i] = sum_j a_t[i][j] h_{t-1}[j] + a_t[i][m] v_t[i]     y_t = W_o h_t
 *
 * H-LRU/BD-LRU paper (arXiv 2602.12021), section 2 and appendix G. Its listing cannot run as printed, because it takes
 * the input gate from the axis of rows. We follow its intent: the m+1 gates of a row are normalised, and the last one
 * is the input's. In memory gates are gate-major with the block index fastest, so that neighbouring lanes have
 * neighbouring blocks. */
#include <inttypes.h>
#include <stdio.h>

#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "kernels/move/move.h"
#include "models/parts.h"

struct bdlru {
    int64_t blocks, m;
    int gate;
    bool selective;
    double gate_init;
};

static const struct option options[] = {
    {"blocks", OPT_INT, offsetof(struct bdlru, blocks), "64", 1, 1 << 20, NULL, "number of blocks N",
     OPT_BLOCKS | OPT_STATE},
    {"m", OPT_INT, offsetof(struct bdlru, m), "5", 1, 64, NULL, "block size", OPT_ORDER},
    {"gate", OPT_CHOICE, offsetof(struct bdlru, gate), "softmax", 0, 0, "softmax sigmoid relu none",
     "gate normaliser f", 0},
    {"selective", OPT_BOOL, offsetof(struct bdlru, selective), "yes", 0, 0, NULL, "gates depend on the input", 0},
    {"gate-init", OPT_REAL, offsetof(struct bdlru, gate_init), "1", 0, 1000, NULL, "factor on the initial gates.weight",
     0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    const struct bdlru *o = inst;
    double floats = (double)o->blocks * (double)(o->m * (o->m + 1)) * (double)d->B * (double)d->T;
    char asked[80];
    TRY(check_gate_start("bdlru", o->selective ? SELECTIVE_YES : SELECTIVE_NO, o->gate_init, e));
    snprintf(asked, sizeof asked, "bdlru: blocks=%" PRId64 " m=%" PRId64, o->blocks, o->m);
    return check_room(asked, "gates", floats, d, e);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct bdlru *o = inst;
    int64_t N = o->blocks, m = o->m, D = x->dims[2];
    struct gate_map map = {.rows = N * m * (m + 1),
                           .selective = o->selective ? SELECTIVE_YES : SELECTIVE_NO,
                           .gain = o->gate_init,
                           .bias = {3, {N, m, m + 1}, {1, 2, 0}},
                           .weight = {4, {N, m, m + 1, D}, {1, 2, 0, 3}}};
    struct tensor *z = mapped_gates(g, x, &map);
    if (o->gate == GATE_NONE && graph_builder(g)->lengths)
        z = rows_in_use(g, z, graph_builder(g)->lengths, NULL); /* else states may overflow past a sequence's end */
    struct tensor *v = linear(g, x, weight(g, "v.weight", N * m, D, 1, (struct layout){3, {N, m, D}, {1, 0, 2}}), NULL);
    struct tensor *h = scan_block(g, z, v, N, m, (enum gate)o->gate);
    return linear(g, h, weight(g, "out.weight", D, N * m, 1, (struct layout){3, {D, N, m}, {0, 2, 1}}), NULL);
}

static int64_t state_floats(const void *inst, const struct dims *d) {
    (void)d;
    const struct bdlru *o = inst;
    return o->blocks * o->m;
}

const struct model model_bdlru = {
    .name = "bdlru",
    .title = "BD-LRU",
    .summary = "block-diagonal linear recurrence, selective normalised m x m gates (H-LRU/BD-LRU paper)",
    .equation =
        "h_t[i] = sum_j a_t[i][j] h_{t-1}[j] + a_t[i][m] v_t[i];  a_t = normalise(W_g x_t + b_g);  y_t = W_o h_t",
    .options = options,
    .small = "bdlru:m=3,blocks=4 bdlru:m=2,blocks=5,gate=sigmoid bdlru:m=1,blocks=7,gate=relu "
             "bdlru:m=2,blocks=3,gate=none,gate-init=0.2 bdlru:m=3,blocks=4,selective=no",
    .inst_bytes = sizeof(struct bdlru),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
