/* batch_norm.h - parts that the kernels of batch_norm share. */
#ifndef LRNN_KERNELS_NORM_BATCH_NORM_H
#define LRNN_KERNELS_NORM_BATCH_NORM_H

#include "kernels/lib/infer.h"
#include "kernels/norm/norm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BATCH_NORM_X,
    BATCH_NORM_WEIGHT,
    BATCH_NORM_BIAS,
    BATCH_NORM_MEAN,
    BATCH_NORM_VARIANCE,
    BATCH_NORM_LENGTHS,
    BATCH_NORM_INPUTS
};

/* Whether row r, counted over all sequences, is in use. */
LRNN_INLINE bool batch_norm_in_use(const struct call *c, int64_t r) {
    const struct batch_norm_attr *a = batch_norm_attr(c);
    const struct tensor *lengths = c->in[BATCH_NORM_LENGTHS];
    int64_t T = c->in[BATCH_NORM_X]->dims[1], t = r % T;
    return !lengths || (a->first ? a->first[t] : t) < tensor_i32(lengths)[r / T];
}

#ifdef __cplusplus
}
#endif
#endif
