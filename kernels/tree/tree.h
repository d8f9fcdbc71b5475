/* tree.h - linear systems on trees (Myosotis). */
#ifndef LRNN_KERNELS_TREE_TREE_H
#define LRNN_KERNELS_TREE_TREE_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/tree/list.def"

/* Perfect k-ary trees. The order of nodes is level by level, leaves first: level l = 0 .. levels-1 has k^(levels-1-l)
 * nodes, and the children of node i of level l+1 are nodes k*i .. k*i+k-1 of level l. Only the first `leaves` leaves
 * are real. A node without a real leaf below it is padding: it is cut off, its u counts as 0, and its x is 0. In a
 * chain (k = 1) every node is a token, and `leaves` is the number of nodes after which the chain ends. */
struct tree {
    int64_t arity, levels;
    int64_t leaves; /* the number of real leaves, 0 .. tree_places */
};

/* Number of places for tokens: k^(levels-1) leaves, or the nodes of a chain. */
int64_t tree_places(const struct tree *t);

/* Number of nodes; -1 if arity or levels is below 1 or there are 2^31 nodes or more. */
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

#define TREE_BLOCK_MAX 8 /* largest m; a kernel holds a block in an array of that size */

enum tree_form { TREE_HERMITIAN, TREE_SKEW, TREE_FREE };

/* A complex linear system for each head, with one equation per node v. p(v) is the parent of v, u the right-hand side,
 * x the solution; b_v and c_v couple v and its parent (Myosotis, Egorov et al., section 3.5 with A = 1):
 *   x_v + b_v x_p(v) + sum over children j of c_j x_j = u_v
 * The form decides c: hermitian c = conj(b), skew c = -conj(b), free: c is an input of its own. `up` gives theta for b,
 * `down` for c: b = beta theta / sqrt(1 + |theta|^2), or b = theta if beta is 0. The bound is ours, not the paper's.
 * up, down: real and imaginary planes, with rows [1][P] (one for all nodes), [levels-1][P] (one per level),
 * [nodes-1][P] (one per node), or (B,nodes,P) (one per node and sequence, where the root's row is not used). The row
 * of v has the couplings of v and its parent. Only the free form has `down`. All four are NULL if levels is 1. u
 * (B,nodes,P): planes. leaves: ids (B), the number of real leaves of each sequence, at most tree.leaves; or NULL.
 *
 * With block = m above 0, x_v and u_v are m x r matrices, b_v and c_v m x m matrices (the paper's appendix A.1, A = I):
 *   x_v + B_v x_p(v) + sum over children c of C_c x_c = u_v;  hermitian: C = B^H, skew: C = -B^H, free: own C
 * with B = beta Theta L^-H, L L^H = I + Theta^H Theta (tree_bound.h; beta 0: B = Theta). Columns of u are (m,r,P),
 * those of up and down (m,m,P): r right-hand sides share the couplings of a head. */
struct tree_system {
    struct tree tree;
    enum tree_form form;
    int64_t block; /* 0: scalars; 1 .. TREE_BLOCK_MAX: the size m of blocks */
    double beta;
    struct tensor *up_re, *up_im, *down_re, *down_im;
    struct tensor *u_re, *u_im;
    struct tensor *leaves;
};

/* Solves the system -> x_re, of u's shape; *x_im receives the imaginary plane. */
struct tensor *tree_solve(struct graph *g, const struct tree_system *s, struct tensor **x_im);

/* y[b][v] = w[b][v] + p[row of v], but y = w for the root. w (B,nodes,P); p has one of the first three shapes of `up`.
 * Returns y (B,nodes,P). */
struct tensor *tree_add(struct graph *g, const struct tree *tree, struct tensor *w, struct tensor *p);

/* --- attributes of a call, for its kernels ------------------------------------------------------------------------ */

/* The attribute of tree_add is only the tree. */
LRNN_INLINE const struct tree *tree_add_attr(const struct call *c) {
    return (const struct tree *)c->attr;
}

/* Attributes of tree_solve, and of tree_block, which alone reads `block`. */
struct tree_solve_attr {
    struct tree tree;
    enum tree_form form;
    double beta;
    int64_t block;
};

LRNN_INLINE const struct tree_solve_attr *tree_solve_attr(const struct call *c) {
    return (const struct tree_solve_attr *)c->attr;
}

#ifdef __cplusplus
}
#endif
#endif
