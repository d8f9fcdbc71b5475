/* tree_walk.h - code that the kernels of the tree ops share: the levels of a tree, and the row of a table of couplings
 * that belongs to a node. */
#ifndef LRNN_KERNELS_TREE_TREE_WALK_H
#define LRNN_KERNELS_TREE_TREE_WALK_H

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/tree/tree.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TREE_GROUPS 16 /* most groups of sequences; each group has its own sums for shared gradients */

enum tree_input { TREE_UP_RE, TREE_UP_IM, TREE_DOWN_RE, TREE_DOWN_IM, TREE_U_RE, TREE_U_IM, TREE_LEAVES, TREE_INPUTS };

/* The nodes that share one row of couplings. */
enum tree_sharing { SHARED_BY_ALL, SHARED_BY_LEVEL, OWN_OF_NODE, OWN_OF_SAMPLE };

/* One level of the tree: nodes offset .. offset + count - 1. The first `real` nodes are no padding; each node has
 * `span` leaves below it. */
struct tree_level {
    int64_t l, offset, count, span, real;
};

LRNN_INLINE int64_t tree_real(int64_t leaves, int64_t span) {
    return (leaves + span - 1) / span;
}

/* The level of the leaves; then the level above a level, the level below it, and the root's. */
LRNN_INLINE struct tree_level tree_bottom(const struct tree *t, int64_t leaves) {
    struct tree_level v = {0, 0, 1, 1, leaves};
    for (int64_t l = 1; l < t->levels; l++) v.count *= t->arity;
    return v;
}

LRNN_INLINE struct tree_level tree_above(const struct tree *t, int64_t leaves, struct tree_level v) {
    int64_t span = v.span * t->arity;
    struct tree_level above = {v.l + 1, v.offset + v.count, v.count / t->arity, span, tree_real(leaves, span)};
    return above;
}

LRNN_INLINE struct tree_level tree_below(const struct tree *t, int64_t leaves, struct tree_level v) {
    int64_t span = v.span / t->arity, count = v.count * t->arity;
    struct tree_level below = {v.l - 1, v.offset - count, count, span, tree_real(leaves, span)};
    return below;
}

LRNN_INLINE struct tree_level tree_root(const struct tree *t, int64_t leaves) {
    int64_t span = tree_bottom(t, leaves).count;
    struct tree_level v = {t->levels - 1, tree_nodes(t) - 1, 1, span, tree_real(leaves, span)};
    return v;
}

/* Returns the number of real children of the real node i of the level `above`. */
LRNN_INLINE int64_t tree_children(const struct tree *t, struct tree_level below, int64_t i) {
    int64_t left = below.real - i * t->arity;
    return left < t->arity ? left : t->arity;
}

/* The sharing of table p [rows][P] or (B,nodes,P) by nodes. p is NULL for a tree of one node. */
LRNN_INLINE enum tree_sharing tree_sharing(const struct tree *t, const struct tensor *p) {
    if (!p) return SHARED_BY_ALL;
    if (p->rank == 3) return OWN_OF_SAMPLE;
    if (p->dims[0] == 1) return SHARED_BY_ALL;
    return p->dims[0] == t->levels - 1 ? SHARED_BY_LEVEL : OWN_OF_NODE;
}

/* Returns the row of the table, within one sequence, for node i of level v. */
LRNN_INLINE int64_t tree_row(enum tree_sharing sharing, struct tree_level v, int64_t i) {
    return sharing == SHARED_BY_ALL ? 0 : sharing == SHARED_BY_LEVEL ? v.l : v.offset + i;
}

/* The nodes that share a row of a table are neighbours. Stores the first of them, and the one after the last. */
LRNN_INLINE void tree_row_nodes(const struct tree *t, enum tree_sharing sharing, int64_t row, int64_t *first,
                                int64_t *end) {
    *first = sharing == SHARED_BY_ALL ? 0 : row;
    *end = sharing == SHARED_BY_ALL ? tree_nodes(t) - 1 : row + 1;
    if (sharing != SHARED_BY_LEVEL) return;
    struct tree_level v = tree_bottom(t, 0);
    while (v.l < row) v = tree_above(t, 0, v);
    *first = v.offset;
    *end = v.offset + v.count;
}

/* Checks the inputs of tree_solve and of tree_block. */
void tree_solve_infer(struct graph *g, struct call *c);

/* For op->build. tree_for: the smallest tree with that many leaves (a chain: nodes). input_couplings: a table of
 * couplings for a tree whose number of nodes is the `length` of the sizes; one row if the tree has only leaves. */
struct tree tree_for(int64_t arity, int64_t leaves);
struct tensor *input_couplings(struct graph *g, const struct op_sizes *nodes, const struct tree *t,
                               enum tree_sharing sharing, const char *name);

/* Returns the parent of a node that is not the root. Counted back from the root, nodes are numbered as in a heap. */
LRNN_INLINE int64_t tree_parent(const struct tree *t, int64_t nodes, int64_t node) {
    return nodes - 1 - (nodes - 2 - node) / t->arity;
}

/* Returns the tree of a sequence with that many leaves. A chain becomes as long as the sequence, with one leaf or none.
 */
LRNN_INLINE struct tree tree_with_leaves(struct tree t, int64_t leaves) {
    if (leaves < t.leaves) t.leaves = leaves;
    if (t.arity > 1) return t;
    t.levels = t.leaves > 1 ? t.leaves : 1;
    t.leaves = t.leaves > 0;
    return t;
}

/* Returns the tree of sequence b, with its number of real leaves. */
LRNN_INLINE struct tree tree_of_sequence(const struct call *c, int64_t b) {
    struct tree t = tree_solve_attr(c)->tree;
    return tree_with_leaves(t, c->in[TREE_LEAVES] ? tensor_i32(c->in[TREE_LEAVES])[b] : t.leaves);
}

/* Sizes of a call of tree_block: u has columns (m,r,P). A tree of one node without couplings counts as one head. */
struct tree_block_sizes {
    int64_t B, T, m, r, P;
};

LRNN_INLINE struct tree_block_sizes tree_block_sizes(const struct call *c) {
    const struct tensor *y = c->out[0], *up = c->in[TREE_UP_RE];
    int64_t m = tree_solve_attr(c)->block, P = up ? tensor_cols(up) / (m * m) : 1;
    struct tree_block_sizes s = {y->dims[0], y->dims[1], m, y->dims[2] / (m * P), P};
    return s;
}

#ifdef __cplusplus
}
#endif
#endif
