/* dag_links.h - the links of one example in the form that the kernels of dag_scan need: only edges and pairs that are
 * present, in the order in which the scan visits them. */
#ifndef LRNN_KERNELS_PLSTM_DAG_LINKS_H
#define LRNN_KERNELS_PLSTM_DAG_LINKS_H

#include "kernels/lib/scratch.h"
#include "kernels/plstm/dag_state.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DAG_SCAN_LINKS 7 /* the input of dag_scan that has the words */

/* Edges are in the order of the scan. A pair leads from the edge `from` to the edge `to`, which are indices in this
 * order, so `from` < `to`. Pairs are sorted by `to`. Gates have rows for absent edges and pairs too: edge_row and
 * pair_row are the rows of the present ones. */
struct dag {
    int64_t edges, pairs;
    int32_t *tail, *head, *edge_row; /* [edges] */
    int32_t *from, *to, *pair_row;   /* [pairs] */
    int32_t *place, *start;          /* only dag_read uses them: [size.edges], [size.edges + 1] */
};

/* Takes arrays that are large enough for any links of the call from the scratch s. */
struct dag dag_of(const struct call *c, struct scratch *s);

/* Lists the present edges, from the last to the first if links are reversed. */
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

/* Returns whether pair p is in effect. If so, stores the indices of its edges. */
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

/* Sets the gate gradients of head h of sequence b to 0, because no kernel writes the rows of absent edges and pairs.
 * Does nothing to a gradient that already has the values of another call. */
void dag_clear_gates(const struct call *c, int64_t b, int64_t h);

#ifdef __cplusplus
}
#endif
#endif
