/* flow.h - attributes of the homogeneous recurrences y_t = (I + A_t) y_{t-1}, and what their declarations share. */
#ifndef LRNN_KERNELS_FLOW_H
#define LRNN_KERNELS_FLOW_H

#include "kernels/lib/infer.h"

struct flow_attr {
    int64_t N, m; /* scan_flow: blocks and their size */
};

/* For op->infer: y0 (B,D), and input i (B,T,columns) with the same B and T in every i < n; creates y (B,T,D). */
void flow_output(struct graph *g, struct call *c, const int64_t *columns, int n, const struct tensor *y0, int64_t D);

#endif
