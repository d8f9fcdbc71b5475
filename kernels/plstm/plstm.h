/* plstm.h - pLSTM: a recurrence on the edges of a directed acyclic graph; each edge has a state of dk x dv numbers per
 * head (kernels/plstm/dag_state.h). Gates are already activated. H is the number of heads. q and k are (B,T,H*dk); v
 * and the result y are (B,T,H*dv). The numbers of a head are neighbours. c is the argument scale_of_qk. */
#ifndef LRNN_KERNELS_PLSTM_PLSTM_H
#define LRNN_KERNELS_PLSTM_PLSTM_H

#include "kernels/flow/flow.h"
#include "kernels/links/links.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/plstm/list.def"

#define SCAN_PLSTM_TRACK_MAX EXPM_MAX /* most states J per head; expm_skew and sandwich compute their transitions */

/* pLSTM on a sequence. A head has J states C[i]. Its gates are S (source), T (transition), M (mark) and D (direct):
 *   y_t = c (sum_j M_t[j] C_{t-1}[j]^T q_t + D_t (q_t.k_t) v_t)
 *   C_t[i] = sum_j T_t[i][j] C_{t-1}[j] + S_t[i] k_t v_t^T, C_{-1} = 0
 * source and mark are (B,T,H*J), direct is (B,T,H), transition is (B,T,H*J*J). T[i][j] of head h has the index
 * (h*J + i)*J + j. */
struct tensor *scan_plstm(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v, struct tensor *source,
                          struct tensor *transition, struct tensor *mark, struct tensor *direct, int64_t H, int64_t J,
                          double scale_of_qk);

/* Computes the eight gates of a grid node in four directions from raw gates; grid_gates.c has the formulas. raw are
 * grid_raw_count(form) tensors (B,N,4H), with head h of a direction at direction*H + h. Returns (B,N,8*4H): the gates
 * Sr, Sd, rl, ru, dl, du, Ml, Mu, each with 4H numbers. */
enum grid_form { GRID_P, GRID_P_REF, GRID_D_LEFT, GRID_D_RIGHT, GRID_FORMS };
int grid_raw_count(enum grid_form form);
struct tensor *grid_gates(struct graph *g, struct tensor *const *raw, enum grid_form form);

/* pLSTM on a grid of X x Y = N nodes; node (r,s) has the index r*Y + s. The recurrence runs in four directions, and y
 * sums over them: bit 0 of a direction flips the first axis, bit 1 the second. A node has two states, Cr and Cd. l is
 * Cr of the previous neighbour on the first axis, u is Cd of the previous neighbour on the second:
 *   y = c (sum (Ml l + Mu u)^T q + D (q.k) v);   Cr = rl l + ru u + Sr k v^T;   Cd = dl l + du u + Sd k v^T
 * gates are the output of grid_gates; direct (B,N,H) is D. */
struct tensor *grid_scan(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v, struct tensor *gates,
                         struct tensor *direct, int64_t X, int64_t Y, int64_t H, double scale_of_qk);

/* pLSTM on the graph of each example. Positions are nodes. Edge e has the state C_e; a pair (e', e) are two edges that
 * follow each other at a node; k and v belong to the tail of e:
 *   C_e = sum over pairs of T_{e'e} C_{e'} + S_e k v^T
 *   y_n = c (sum over the edges e into n of M_e C_e^T q_n + D_n (q_n.k_n) v_n)
 * source and mark (B,edges,H) are S and M; transition (B,pairs,H); direct (B,T,H) is D. If `tree`, only those pairs
 * count that a multitree keeps (core/links.h). */
struct tensor *dag_scan(struct graph *g, struct tensor *q, struct tensor *k, struct tensor *v, struct tensor *source,
                        struct tensor *mark, struct tensor *transition, struct tensor *direct,
                        const struct links *links, bool tree, int64_t H, double scale_of_qk);

/* --- attributes of a call, for its kernels ------------------------------------------------------------------------ */

struct scan_plstm_attr {
    int64_t H, J;
    double scale;
};

LRNN_INLINE const struct scan_plstm_attr *scan_plstm_attr(const struct call *c) {
    return (const struct scan_plstm_attr *)c->attr;
}

struct grid_scan_attr {
    int64_t X, Y, H;
    double scale;
};

LRNN_INLINE const struct grid_scan_attr *grid_scan_attr(const struct call *c) {
    return (const struct grid_scan_attr *)c->attr;
}

struct dag_scan_attr {
    struct links_size size;
    bool reversed, tree;
    int64_t H;
    double scale;
};

LRNN_INLINE const struct dag_scan_attr *dag_scan_attr(const struct call *c) {
    return (const struct dag_scan_attr *)c->attr;
}

struct grid_gates_attr {
    enum grid_form form;
};

LRNN_INLINE const struct grid_gates_attr *grid_gates_attr(const struct call *c) {
    return (const struct grid_gates_attr *)c->attr;
}

#ifdef __cplusplus
}
#endif
#endif
