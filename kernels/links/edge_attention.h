/* edge_attention.h - lists of neighbours and scores, for the kernels of edge_attention. */
#ifndef LRNN_KERNELS_LINKS_EDGE_ATTENTION_H
#define LRNN_KERNELS_LINKS_EDGE_ATTENTION_H

#include "kernels/lib/scratch.h"
#include "kernels/links/links_call.h"

#ifdef __cplusplus
extern "C" {
#endif

#define EDGE_ATTENTION_SLOPE 0.2 /* slope of leaky_relu below 0, as in the paper */

/* Lists each node and its neighbours: node[start[n]] is n, and its neighbours follow up to node[start[n + 1] - 1]. */
struct neighbourhoods {
    int32_t *start, *node; /* [T + 1], [T + 2 edges] */
};

LRNN_INLINE struct neighbourhoods neighbourhoods_of(const struct call *c, struct scratch *s) {
    int64_t T = c->in[0]->dims[1];
    struct neighbourhoods k;
    k.start = scratch_i32(s, T + 1);
    k.node = scratch_i32(s, T + 2 * links_attr(c)->size.edges);
    return k;
}

LRNN_INLINE void neighbourhoods_read(const struct links_view *l, struct neighbourhoods k) {
    int32_t p, q;
    for (int64_t n = 0; n <= l->T; n++) k.start[n] = n > 0;
    for (int64_t e = 0; e < l->size.edges; e++)
        if (links_edge(l, e, &p, &q)) {
            k.start[p + 1]++;
            k.start[q + 1]++;
        }
    for (int64_t n = 0; n < l->T; n++) k.start[n + 1] += k.start[n];
    for (int64_t n = 0; n < l->T; n++) k.node[k.start[n]++] = (int32_t)n;
    for (int64_t e = 0; e < l->size.edges; e++)
        if (links_edge(l, e, &p, &q)) {
            k.node[k.start[p]++] = q;
            k.node[k.start[q]++] = p;
        }
    for (int64_t n = l->T; n > 0; n--) k.start[n] = k.start[n - 1];
    k.start[0] = 0;
}

#ifdef __cplusplus
}
#endif
#endif
