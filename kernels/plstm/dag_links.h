/* dag_links.h - the links of one example as the twins of dag_scan walk them: what is there, in order of the walk. */
#ifndef LRNN_KERNELS_DAG_LINKS_H
#define LRNN_KERNELS_DAG_LINKS_H

#include "kernels/lib/scratch.h"
#include "kernels/plstm/dag_state.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DAG_SCAN_LINKS 7 /* the words' place among the inputs of dag_scan */

/* Edges in the order of the walk, pairs by the edge that they lead to; a pair's edges are numbers of that order, and
 * `from` < `to`. edge_row, pair_row: rows of the gates. */
struct dag {
    int64_t edges, pairs;
    int32_t *tail, *head, *edge_row; /* [edges] */
    int32_t *from, *to, *pair_row;   /* [pairs] */
    int32_t *place, *start;          /* while it is made: [edges of the room], [edges of the room + 1] */
};

/* Arrays for any links of the call, empty. */
struct dag dag_of(const struct call *c, struct scratch *s);

/* Reads those of sequence b. */
void dag_read(const struct call *c, int64_t b, struct dag *d);

/* Gradients of head h of the gates of sequence b: 0 unless they are added to, since edges and pairs that are not there
 * have none. */
void dag_clear_gates(const struct call *c, int64_t b, int64_t h);

#ifdef __cplusplus
}
#endif
#endif
