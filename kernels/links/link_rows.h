/* link_rows.h - the nodes from which a row of link_rows is made, for the kernels of this op. */
#ifndef LRNN_KERNELS_LINKS_LINK_ROWS_H
#define LRNN_KERNELS_LINKS_LINK_ROWS_H

#include "core/links.h"
#include "kernels/links/links.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LINK_COLUMNS_MAX 3

LRNN_INLINE int64_t link_columns(int rule) {
    return rule == LINK_TAILS || rule == LINK_HEADS ? 2 : 3;
}

LRNN_INLINE int64_t link_row_count(struct links_size size, int rule) {
    return rule == LINK_TAILS || rule == LINK_HEADS ? size.edges : size.pairs;
}

/* Sets `ends`: column k of the row is (x[ends[k][0]] + x[ends[k][1]]) / 2. Returns false if the row is zeros. */
LRNN_INLINE bool link_row_ends(const struct links_view *l, int rule, int64_t row, int32_t ends[LINK_COLUMNS_MAX][2]) {
    int32_t from, to, node;
    if (rule == LINK_TAILS || rule == LINK_HEADS) {
        if (!links_edge(l, row, &ends[1][0], &ends[1][1])) return false;
        node = ends[1][rule == LINK_HEADS];
        ends[0][0] = ends[0][1] = node;
        return true;
    }
    if (!links_pair(l, row, &from, &to)) return false;
    links_edge(l, from, &ends[0][0], &ends[0][1]);
    links_edge(l, to, &ends[1][0], &ends[1][1]);
    node = rule == LINK_PAIRS_OF_TAIL ? ends[0][0] : ends[1][0];
    ends[2][0] = ends[2][1] = node;
    return true;
}

#ifdef __cplusplus
}
#endif
#endif
