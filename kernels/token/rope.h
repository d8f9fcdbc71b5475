/* rope.h - the angle by which the kernels of rope rotate a pair. */
#ifndef LRNN_KERNELS_TOKEN_ROPE_H
#define LRNN_KERNELS_TOKEN_ROPE_H

#include <math.h>

#include "kernels/token/token.h"

/* Returns the angle of pair i (of dk/2) at position t. */
LRNN_INLINE double rope_angle(const struct rope_attr *a, int64_t t, int64_t i) {
    return (double)t * pow(a->base, -2 * (double)i / (double)a->dk);
}

#endif
