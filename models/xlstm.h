/* xlstm.h - parts that the mixers of xLSTM share: mlstm, slstm, and xlstm, which alternates the two. Private to
 * models/. */
#ifndef LRNN_MODELS_XLSTM_H
#define LRNN_MODELS_XLSTM_H

#include "models/parts.h"

/* The options of mlstm and slstm; the options of xlstm begin with these. */
struct xlstm_cell {
    int64_t heads, conv;
};

/* norm.weight [heads][width], stored as the difference from 1, for layernorm_heads. */
static inline struct tensor *norm_around_one(struct graph *g, int64_t heads, int64_t width) {
    return graph_param(g, &(struct param_spec){.name = "norm.weight",
                                               .rank = 2,
                                               .dims = {heads, width},
                                               .init = {.kind = INIT_ZERO},
                                               .group = PARAM_VECTOR});
}

#endif
