/* links.h - a graph on the positions of an example: its edges, and the pairs of consecutive edges.
 *
 * The links of an example are whole numbers. Their layout is the same for all examples of a batch, so each example may
 * have a different graph in every step:
 *   edges x (tail, head)          an edge between two positions; it is absent if tail or head is no position
 *   pairs x (from, to, tree)      the state of edge `from` flows into edge `to`. The pair is in effect if from < to and
 *                                 both edges are present; tree < 0 means that the multitree reduction leaves it out
 * An undirected edge leads from its lower position to its higher one. Edges are sorted by (tail, head). This is a
 * topological order, so computing the edges in order computes every state before it is used. In reverse, the order is
 * from the last edge to the first, and tail and head, and from and to, are exchanged.
 *
 * In a multitree there is at most one path between any two edges (pLSTM's D-mode, section 3.2). */
#ifndef LRNN_CORE_LINKS_H
#define LRNN_CORE_LINKS_H

#include "core/batch.h"
#include "core/status.h"
#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LINK_EDGE_WORDS 2
#define LINK_PAIR_WORDS 3

/* The most edges and pairs that an example may have. Both are at least 1, or both are 0 if there are no links. */
struct links_size {
    int64_t edges, pairs;
};

LRNN_INLINE int64_t links_words(struct links_size size) {
    return LINK_EDGE_WORDS * size.edges + LINK_PAIR_WORDS * size.pairs;
}

/* The links of a batch in the form that ops need. words is (B, links_words), or NULL if there are no links. */
struct links {
    struct tensor *words;
    struct links_size size;
    bool reversed;
};

/* The links of one example of T positions, for reading. */
struct links_view {
    const int32_t *words;
    struct links_size size;
    int64_t T;
    bool reversed;
};

/* Gives the positions from and to which edge e leads; false if the edge is absent. */
LRNN_INLINE bool links_edge(const struct links_view *l, int64_t e, int32_t *tail, int32_t *head) {
    int32_t a = l->words[LINK_EDGE_WORDS * e], b = l->words[LINK_EDGE_WORDS * e + 1];
    *tail = l->reversed ? b : a;
    *head = l->reversed ? a : b;
    return a >= 0 && b >= 0 && a < l->T && b < l->T;
}

/* Gives the edges that pair p joins; false if the pair is not in effect. */
LRNN_INLINE bool links_pair(const struct links_view *l, int64_t p, int32_t *from, int32_t *to) {
    const int32_t *pair = l->words + LINK_EDGE_WORDS * l->size.edges + LINK_PAIR_WORDS * p;
    int32_t a = pair[0], b = pair[1], tail, head;
    *from = l->reversed ? b : a;
    *to = l->reversed ? a : b;
    return a >= 0 && a < b && b < l->size.edges && links_edge(l, a, &tail, &head) && links_edge(l, b, &tail, &head);
}

LRNN_INLINE bool links_pair_in_tree(const struct links_view *l, int64_t p) {
    return l->words[LINK_EDGE_WORDS * l->size.edges + LINK_PAIR_WORDS * p + 2] >= 0;
}

/* --- making them -------------------------------------------------------------------------------------------------- */

/* Returns the number of edges, and of pairs, of n edges that are ordered as for links_fill. */
struct links_size links_size_of(int64_t n, const int32_t (*edges)[2]);

/* Returns how many 64-bit words links_fill needs as scratch. */
int64_t links_scratch(int64_t n);

/* Writes n edges and their pairs, and marks the pairs that a multitree keeps. Each edge has tail < head, and edges
 * ascend by (tail, head). The rest of the room is marked absent. If n is 0, scratch may be NULL. */
void links_fill(int32_t *words, struct links_size room, int64_t n, const int32_t (*edges)[2], uint64_t *scratch);

#ifdef __cplusplus
}
#endif
#endif
