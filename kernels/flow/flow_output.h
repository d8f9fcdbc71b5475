/* flow_output.h - the shapes that scan_flow, scan_dplr and scan_hadamard have in common. */
#ifndef LRNN_KERNELS_FLOW_OUTPUT_H
#define LRNN_KERNELS_FLOW_OUTPUT_H

#include "kernels/flow/flow.h"

/* For op->infer: y0 (B,D), and input i (B,T,columns) with the same B and T in every i < n; creates y (B,T,D). */
void flow_output(struct graph *g, struct call *c, const int64_t *columns, int n, const struct tensor *y0, int64_t D);

#endif
