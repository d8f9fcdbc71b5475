/* tree_bound.h - bounds the spectral norm of complex m x m matrices, the couplings of tree_block.
 *
 *   I + Theta^H Theta = L L^H (Cholesky)      B = beta Theta L^-H
 * B^H B = beta^2 (I - (L^H L)^-1), so ||B||_2 < beta for every Theta, and every such B has one Theta. For m = 1 it is
 * tree_solve's bound beta theta / sqrt(1 + |theta|^2), and for a diagonal Theta this bound of each element. The
 * eigenvalues of I + Theta^H Theta are at least 1, so the factor always exists.
 * Adjoint, G the incoming gradient: K = G^H B;  Y_ij = K_ij and Y_ji = conj(K_ij) for i > j, Y_ii = Re K_ii;
 *   dTheta = (beta G - B Y / beta) L^-1
 * since the lower half of K passes through the adjoint of the factorisation unchanged. */
#ifndef LRNN_KERNELS_TREE_TREE_BOUND_H
#define LRNN_KERNELS_TREE_TREE_BOUND_H

#include "core/real.h"
#include "kernels/tree/tree.h"

/* Rows of m x m matrices of P heads: element (i,j) of head p of row r is number ((r m + i) m + j) P + p. */
struct tree_matrices {
    int64_t rows, m, P;
    double beta; /* above 0 */
};

/* The two planes of complex numbers. */
struct tree_planes {
    const real *re, *im;
};

/* Computes B of all matrices. */
void tree_bound_rows(const struct tree_matrices *s, struct tree_planes theta, real *b_re, real *b_im);

/* Computes dTheta of all matrices from their G, and stores it in *to, or adds it to what is there. A plane of `to`
 * may be NULL. */
void tree_unbound_rows(const struct tree_matrices *s, struct tree_planes theta, struct tree_planes g, real *const to[2],
                       const bool add[2]);

#endif
