/* expm.h - parts that the kernels of expm_skew, expm_flow and sandwich share. Equations: expm.c. */
#ifndef LRNN_KERNELS_FLOW_EXPM_H
#define LRNN_KERNELS_FLOW_EXPM_H

#include <math.h>

#include "kernels/flow/flow.h"
#include "kernels/lib/scratch.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EXPM_ORDER     14
#define EXPM_SQUARINGS 40 /* for norms above 5e11 the rounding of A - A^T leaves no correct digit of the angle */

/* Whether the matrices are single numbers, which need neither series nor squarings. */
LRNN_INLINE bool expm_of_number(const struct expm_attr *a) {
    return a->flow && a->J == 1;
}

LRNN_INLINE int64_t expm_at(int64_t n, int64_t N, int64_t q) {
    return q / N * n * N + q % N;
}

/* Returns the number of squarings for a matrix of that Frobenius norm: the smallest q with norm / 2^q <= 1/2; 0 if the
 * norm is not finite. */
LRNN_INLINE int expm_squarings(double norm) {
    int exponent = 0;
    if (!(norm > 0.5) || !isfinite(norm)) return 0;
    double part = frexp(norm, &exponent); /* norm = part 2^exponent, part in [1/2, 1) */
    int q = exponent + (part > 0.5);
    return q < EXPM_SQUARINGS ? q : EXPM_SQUARINGS;
}

/* Computes out (+)= factor * op(a) op(b), J x J, with sums in the order of their index. `out` is neither a nor b;
 * `spare` has room for one matrix. */
typedef void expm_product(int64_t J, double factor, const double *a, bool at, const double *b, bool bt, bool add,
                          double *out, double *spare);

/* Arrays for one exponential: X; S_0 .. S_ORDER of the series; P_0 = S_0 .. P_q; three for the gradient; one spare. */
struct expm_work {
    double *X, *S[EXPM_ORDER + 1], *P[EXPM_SQUARINGS + 1], *d[3], *spare;
    expm_product *product;
};

/* Takes the work from the scratch s, with n numbers per matrix. */
struct expm_work expm_work_of(struct scratch *s, int64_t n, expm_product *product);

/* Writes the exponential of matrix number q of `from` into `to`. */
void expm_one(const struct expm_work *w, const struct expm_attr *a, int64_t q, const real *from, real *to);

/* Computes the gradient of matrix number q from the gradient of its exponential. */
void expm_one_gradient(const struct expm_work *w, const struct expm_attr *a, int64_t q, const real *from,
                       const real *dU, real *dA, bool accumulate);

#ifdef __cplusplus
}
#endif
#endif
