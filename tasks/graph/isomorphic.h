/* isomorphic.h - tells whether two small graphs with coloured nodes are isomorphic. Colours are refined by the
 * neighbours' colours (Weisfeiler and Lehman); graphs whose refined colours agree are matched node by node. */
#ifndef LRNN_TASKS_GRAPH_ISOMORPHIC_H
#define LRNN_TASKS_GRAPH_ISOMORPHIC_H

#include <stdbool.h>
#include <stdint.h>

/* Nodes are 0 .. nodes - 1. Each edge is listed once, lower node first, in ascending order. All arrays are borrowed. */
struct coloured_graph {
    int64_t nodes, edges;
    const int32_t (*edge)[2]; /* (edges) */
    uint64_t *colour;         /* (nodes) */
};

/* Refines the colours; scratch: (nodes). Returns a hash that isomorphic graphs share, and other graphs rarely. */
uint64_t graph_refine(const struct coloured_graph *g, uint64_t *scratch);

/* Whether a numbering of the nodes makes two graphs with refined colours equal; work: (4 nodes). A pair that a million
 * steps do not decide counts as equal. */
bool graph_isomorphic(const struct coloured_graph *a, const struct coloured_graph *b, int32_t *work);

#endif
