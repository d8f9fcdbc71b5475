/* tree.h - linear systems on trees (Myosotis). */
#ifndef LRNN_KERNELS_TREE_TREE_H
#define LRNN_KERNELS_TREE_TREE_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/tree/list.def"

/* Perfect k-ary trees, nodes breadth first with the leaves first: level l = 0 .. levels-1 holds k^(levels-1-l) nodes,
 * the children of node i of level l+1 are nodes k*i .. k*i+k-1 of level l. Nodes that have no leaf below `leaves` under
 * them are padding: cut off, u taken as 0, x = 0. Of a chain (k = 1) every node holds a token, and `leaves` counts
 * nodes: it ends after the last of them. */
struct tree {
    int64_t arity, levels;
    int64_t leaves; /* of which real, 0 .. tree_places */
};

/* Number of places for tokens: k^(levels-1) leaves, or the nodes of a chain. */
int64_t tree_places(const struct tree *t);

/* Nodes of the tree; -1 if arity or levels is below 1 or there are 2^31 or more. */
LRNN_INLINE int64_t tree_nodes(const struct tree *t) {
    const int64_t most = INT32_MAX;
    if (t->arity < 1 || t->levels < 1 || t->arity > most || t->levels > most) return -1;
    if (t->arity == 1) return t->levels;
    int64_t nodes = 1;
    for (int64_t l = 1; l < t->levels; l++) {
        nodes = nodes * t->arity + 1;
        if (nodes > most) return -1;
    }
    return nodes;
}

enum tree_form { TREE_HERMITIAN, TREE_SKEW, TREE_FREE };

/* One equation a node v with parent p(v) and children ch(v), over complex numbers, one system a head
 * (Myosotis, Egorov et al., section 3.5: A = 1):
 *   x_v + b_v x_p(v) + sum over c in ch(v) of c_c x_c = u_v;  hermitian: c = conj(b), skew: c = -conj(b), free: own c
 * with b = beta theta / sqrt(1 + |theta|^2) (our bound: the paper gives none; beta 0 = unbounded, b = theta), theta
 * from up, likewise c from down.
 * up, down: real and imaginary planes, [1][P] for all nodes, [levels-1][P] a level of the child, [nodes-1][P] a child,
 * or (B,nodes,P) a child of each sequence, the root's row unused. down only in the free form. All four NULL when levels
 * is 1. u (B,nodes,P) planes. leaves: ids (B), real leaves of each sequence, but no more than tree.leaves; or NULL. */
struct tree_system {
    struct tree tree;
    enum tree_form form;
    double beta;
    struct tensor *up_re, *up_im, *down_re, *down_im;
    struct tensor *u_re, *u_im;
    struct tensor *leaves;
};

/* Solves the system -> x_re (B,nodes,P); *x_im receives the imaginary plane. */
struct tensor *tree_solve(struct graph *g, const struct tree_system *s, struct tensor **x_im);

/* y[b][v] = w[b][v] + p[row of v], the root's y = w: w (B,nodes,P), p of the shared shapes above -> (B,nodes,P). */
struct tensor *tree_add(struct graph *g, const struct tree *tree, struct tensor *w, struct tensor *p);

/* --- attributes: what a call keeps for its twins ------------------------------------------------------------------ */

/* tree_add keeps the tree alone. */
LRNN_INLINE const struct tree *tree_add_attr(const struct call *c) {
    return (const struct tree *)c->attr;
}

struct tree_solve_attr {
    struct tree tree;
    enum tree_form form;
    double beta;
};

LRNN_INLINE const struct tree_solve_attr *tree_solve_attr(const struct call *c) {
    return (const struct tree_solve_attr *)c->attr;
}

#ifdef __cplusplus
}
#endif
#endif
