/* expm.h - what the twins of expm_skew and sandwich share. */
#ifndef LRNN_KERNELS_EXPM_H
#define LRNN_KERNELS_EXPM_H

#include <math.h>

#include "kernels/dense.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EXPM_MAX       SCAN_PLSTM_TRACK_MAX
#define EXPM_ORDER     14
#define EXPM_SQUARINGS 40 /* beyond, a norm of 5e11, the rounding of A - A^T alone leaves no digit of the angle */

struct expm_attr {
    int64_t J;
};

/* Squarings for a matrix of that Frobenius norm: the smallest q with norm / 2^q <= 1/2; 0 if it is not finite. */
LRNN_INLINE int expm_squarings(double norm) {
    int exponent = 0;
    if (!(norm > 0.5) || !isfinite(norm)) return 0;
    double part = frexp(norm, &exponent); /* norm = part 2^exponent, part in [1/2, 1) */
    int q = exponent + (part > 0.5);
    return q < EXPM_SQUARINGS ? q : EXPM_SQUARINGS;
}

#ifdef __cplusplus
}
#endif
#endif
