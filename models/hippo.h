/* hippo.h - the spectrum of HiPPO-N, from which state-space mixers take their initial frequencies. */
#ifndef LRNN_MODELS_HIPPO_H
#define LRNN_MODELS_HIPPO_H

#include <stdint.h>

#define HIPPO_MAX 1024 /* largest `half` */

/* HiPPO-N of size N = 2 half: Nm = -(tril(p p^T) - diag(0..N-1)) + q q^T, p_n = sqrt(2n+1), q_n = sqrt(n+1/2), has the
 * eigenvalues -1/2 + i w_j. Returns w_j of the lower half in ascending order, 0 <= j < half <= HIPPO_MAX. All
 * are negative; the upper half mirrors them. */
double hippo_frequency(int64_t half, int64_t j);

#endif
