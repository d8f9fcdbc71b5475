/* route.h - the recurrence of PD-SSM: each of N complex states moves to, or reads from, a state that the token chooses.
 * A complex array is two real arrays, its planes. kernels/kernel.h explains the shapes. */
#ifndef LRNN_KERNELS_ROUTE_ROUTE_H
#define LRNN_KERNELS_ROUTE_ROUTE_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/route/list.def"

/* At each token, each state chooses one of N candidates, which are the states themselves. P_t is the N x N matrix with
 * a 1 for each choice and zeros elsewhere; d_t and x_t are N complex numbers each:
 *   row      state m reads candidate n: row m has a single 1.   h_t = d_t (P_t h_{t-1}) + x_t, h_{-1} = (1, 0, ..., 0)
 *   column   state n moves to candidate m, where several states may meet: column n has a single 1.
 *            h_t = P_t (d_t h_{t-1}) + x_t, h_{-1} = 0
 *
 * The score of a pair is M_t[m][n] = sum over k of dict[m][n][k] s_t[k]. A state chooses the candidate with the largest
 * score in its row or column, the first among equals. The gradient is straight-through: backward treats P_t as the
 * softmax of M_t along this row or column.
 *
 * d, x: planes (B,T,N). dict [N][N][K] is stored in another order of its axes: candidates, then k, then the states that
 * choose. As struct layout this is {3, {N, N, K}, {1, 2, 0}} for form row, {0, 2, 1} for form column. s (B,T,K). If
 * dict and s are NULL, P is the identity. Returns the real plane of h (B,T,N); *h_im receives the imaginary plane. */
enum route_form { ROUTE_ROW, ROUTE_COLUMN };
struct tensor *scan_route(struct graph *g, enum route_form form, struct tensor *const d[2], struct tensor *const x[2],
                          struct tensor *dict, struct tensor *s, struct tensor **h_im);

/* --- attributes, inputs and outputs of a call, for its kernels ---------------------------------------------------- */

struct scan_route_attr {
    enum route_form form;
};

LRNN_INLINE const struct scan_route_attr *scan_route_attr(const struct call *c) {
    return (const struct scan_route_attr *)c->attr;
}

/* Inputs and outputs. d, x and h have two planes each. If there is a dictionary, backward needs each state's choice and
 * the score M of this choice (`top`). */
enum { ROUTE_D, ROUTE_X = 2, ROUTE_DICT = 4, ROUTE_S };
enum { ROUTE_H, ROUTE_CHOICE = 2, ROUTE_TOP };

/* Tells whether the gradient of the input is straight-through. Finite differences cannot check such a gradient. */
LRNN_INLINE bool route_chooses(const struct op *op, int input) {
    return op == &op_scan_route && input >= ROUTE_DICT;
}

/* Returns M + dict s: adds the next term to a score. All kernels add the terms with this function in the order of k,
 * so their scores have the same bits and they always choose alike: a single different choice would change all later
 * states. */
LRNN_INLINE real route_score(real dict, real s, real M) {
    return real_fma(dict, s, M);
}

#ifdef __cplusplus
}
#endif
#endif
