/* route.h - recurrences whose transition is a matrix of zeros with one number in each row or column (PD-SSM). Shapes as
 * in kernels/kernel.h; N complex states, held as two real planes. */
#ifndef LRNN_KERNELS_ROUTE_ROUTE_H
#define LRNN_KERNELS_ROUTE_ROUTE_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/route/list.def"

/* h_t = P_t (d_t h_{t-1}) + x_t in form `column`, where each column of P_t has a single 1: state n goes on to the state
 * that it chooses, and several may meet there; h_{-1} = 0. h_t = d_t (P_t h_{t-1}) + x_t in form `row`, where each row
 * has a single 1: state m reads the one that it chooses; h_{-1} = (1, 0, ..., 0).
 *
 * The choice is the largest of M_t[m][n] = sum over k of dict[m][n][k] s_t[k] along its column or row, the first among
 * equals. Its gradient is straight through: P_t counts as the softmax of M_t along the same axis.
 *
 * d, x: planes (B,T,N). dict [N][N][K], stored with the axis that is chosen from first, then k, then the states that
 * choose: row struct layout {3, {N, N, K}, {1, 2, 0}}, column {0, 2, 1}. s (B,T,K). dict and s NULL: P is the identity.
 * -> the real plane of h (B,T,N); *h_im receives the imaginary one. */
enum route_form { ROUTE_ROW, ROUTE_COLUMN };
struct tensor *scan_route(struct graph *g, enum route_form form, struct tensor *const d[2], struct tensor *const x[2],
                          struct tensor *dict, struct tensor *s, struct tensor **h_im);

/* --- attributes and parts: what a call keeps for its twins -------------------------------------------------------- */

struct scan_route_attr {
    enum route_form form;
};

LRNN_INLINE const struct scan_route_attr *scan_route_attr(const struct call *c) {
    return (const struct scan_route_attr *)c->attr;
}

/* Inputs and outputs, planes side by side. The choice of each state and the M that it chose are kept for backward where
 * there is a dictionary. */
enum { ROUTE_D, ROUTE_X = 2, ROUTE_DICT = 4, ROUTE_S };
enum { ROUTE_H, ROUTE_CHOICE = 2, ROUTE_TOP };

/* Whether the gradient of the input is straight through, so that no difference shows it. */
LRNN_INLINE bool route_chooses(const struct op *op, int input) {
    return op == &op_scan_route && input >= ROUTE_DICT;
}

/* M + dict s, the next term of a sum over k that begins at 0 and goes up. All twins add these terms alike, so that two
 * of them never choose differently: after one such choice all states differ. */
LRNN_INLINE real route_score(real dict, real s, real M) {
    return real_fma(dict, s, M);
}

#ifdef __cplusplus
}
#endif
#endif
