/* sequence.h - the frequencies that the twins of decode_positions share. */
#ifndef LRNN_KERNELS_MOVE_SEQUENCE_H
#define LRNN_KERNELS_MOVE_SEQUENCE_H

#include <math.h>

#include "core/real.h"

#ifdef __cplusplus
extern "C" {
#endif

/* w_j of column j or h + j of D. */
LRNN_INLINE double position_frequency(int64_t j, int64_t D) {
    int64_t h = D / 2;
    return pow(10000, h > 1 ? -(double)j / (double)(h - 1) : 0);
}

#ifdef __cplusplus
}
#endif
#endif
