/* plstm.h - parts that the pLSTM mixers (sequence, grid, graph) share. Private to models/. */
#ifndef LRNN_MODELS_PLSTM_H
#define LRNN_MODELS_PLSTM_H

#include "kernels/dense/dense.h"
#include "kernels/norm/norm.h"
#include "models/parts.h"

struct plstm_qkv {
    struct tensor *q, *k, *v;
};

/* W x + b: weight [out][in], bias [out] under their contract names. */
static inline struct tensor *plstm_affine(struct graph *g, struct tensor *x, const char *weight_name,
                                          const char *bias_name, int64_t out, int64_t in, struct init weight_init,
                                          struct init bias_init) {
    struct tensor *w =
        graph_param(g, &(struct param_spec){.name = weight_name, .rank = 2, .dims = {out, in}, .init = weight_init});
    return linear(g, x, w, vector(g, bias_name, out, bias_init, AS_CONTRACT));
}

static inline struct plstm_qkv plstm_project(struct graph *g, struct tensor *x) {
    int64_t D = x->dims[2];
    struct init zero = {.kind = INIT_ZERO};
    return (struct plstm_qkv){plstm_affine(g, x, "q.weight", "q.bias", D, D, init_small(D), zero),
                              plstm_affine(g, x, "k.weight", "k.bias", D, D, init_small(D), zero),
                              plstm_affine(g, x, "v.weight", "v.bias", D, D, init_small(D), zero)};
}

/* RMSNorm of each head, then the output projection, which has no bias. */
static inline struct tensor *plstm_finish(struct graph *g, struct tensor *y, int64_t H) {
    if (!y) return NULL;
    int64_t D = y->dims[2];
    struct tensor *w = graph_param(g, &(struct param_spec){.name = "norm.weight",
                                                           .rank = 2,
                                                           .dims = {H, D / H},
                                                           .init = {.kind = INIT_CONST, .a = 1},
                                                           .group = PARAM_VECTOR});
    struct tensor *out =
        graph_param(g, &(struct param_spec){.name = "out.weight", .rank = 2, .dims = {D, D}, .init = init_small(D)});
    return linear(g, rmsnorm_heads(g, y, w, 1e-5), out, NULL);
}

#endif
