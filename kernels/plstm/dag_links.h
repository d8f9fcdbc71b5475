/* dag_links.h - the links of one example as the twins of dag_scan need them: the present ones, in order of the walk. */
#ifndef LRNN_KERNELS_PLSTM_DAG_LINKS_H
#define LRNN_KERNELS_PLSTM_DAG_LINKS_H

#include "kernels/lib/scratch.h"
#include "kernels/plstm/dag_state.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DAG_SCAN_LINKS 7 /* the input of dag_scan that has the words */

/* Edges are in the order of the walk, pairs are sorted by the edge that they lead to. A pair names its edges by their
 * numbers in that order, so `from` < `to`. edge_row and pair_row are the rows of the gates. */
struct dag {
    int64_t edges, pairs;
    int32_t *tail, *head, *edge_row; /* [edges] */
    int32_t *from, *to, *pair_row;   /* [pairs] */
    int32_t *place, *start;          /* used by dag_read only: [size.edges], [size.edges + 1] */
};

/* Takes the arrays from the scratch, large enough for any links of the call. */
struct dag dag_of(const struct call *c, struct scratch *s);

/* Lists the present edges; if links are reversed, the last one first. */
LRNN_INLINE void dag_read_edges(const struct links_view *l, struct dag *d) {
    int32_t tail, head;
    d->edges = 0;
    for (int64_t i = 0; i < l->size.edges; i++) {
        int64_t e = l->reversed ? l->size.edges - 1 - i : i;
        d->place[e] = -1;
        if (!links_edge(l, e, &tail, &head)) continue;
        d->tail[d->edges] = tail;
        d->head[d->edges] = head;
        d->edge_row[d->edges] = (int32_t)e;
        d->place[e] = (int32_t)d->edges++;
    }
}

/* True if pair p is in effect; then stores its edges' numbers in the walk. */
LRNN_INLINE bool dag_read_pair(const struct links_view *l, bool tree, const struct dag *d, int64_t p, int32_t *from,
                               int32_t *to) {
    if (!links_pair(l, p, from, to) || (tree && !links_pair_in_tree(l, p))) return false;
    *from = d->place[*from];
    *to = d->place[*to];
    return true;
}

/* Reads the links of one example; with `tree` only the pairs of a multitree. */
LRNN_INLINE void dag_read_links(const struct links_view *l, bool tree, struct dag *d) {
    int32_t from, to;
    dag_read_edges(l, d);
    d->pairs = 0;
    for (int64_t e = 0; e <= d->edges; e++) d->start[e] = 0;
    for (int64_t p = 0; p < l->size.pairs; p++)
        if (dag_read_pair(l, tree, d, p, &from, &to)) {
            d->start[to + 1]++;
            d->pairs++;
        }
    for (int64_t e = 0; e < d->edges; e++) d->start[e + 1] += d->start[e];
    for (int64_t p = 0; p < l->size.pairs; p++) {
        if (!dag_read_pair(l, tree, d, p, &from, &to)) continue;
        int32_t at = d->start[to]++;
        d->from[at] = from;
        d->to[at] = to;
        d->pair_row[at] = (int32_t)p;
    }
}

/* Reads the links of sequence b. */
void dag_read(const struct call *c, int64_t b, struct dag *d);

/* Sets the gate gradients of head h of sequence b to 0 unless they have to be added to, because no kernel writes the
 * rows of absent edges and pairs. */
void dag_clear_gates(const struct call *c, int64_t b, int64_t h);

#ifdef __cplusplus
}
#endif
#endif
