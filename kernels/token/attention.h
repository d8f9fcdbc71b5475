/* attention.h - attributes of rope and softmax_attention, shared by their twins. */
#ifndef LRNN_KERNELS_ATTENTION_H
#define LRNN_KERNELS_ATTENTION_H

#include <math.h>

#include "kernels/lib/infer.h"

struct rope_attr {
    int64_t heads, dk;
    double base;
};

struct attention_attr {
    int64_t heads;
};

/* Angle of pair i of dk/2 at position t. */
static inline double rope_angle(const struct rope_attr *a, int64_t t, int64_t i) {
    return (double)t * pow(a->base, -2 * (double)i / (double)a->dk);
}

#endif
