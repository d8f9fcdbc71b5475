/* flow_output.h - parts that scan_flow, scan_dplr and scan_hadamard share: shapes and, for the tests, trial calls and
 * terms. */
#ifndef LRNN_KERNELS_FLOW_FLOW_OUTPUT_H
#define LRNN_KERNELS_FLOW_FLOW_OUTPUT_H

#include "core/op_sizes.h"
#include "kernels/flow/flow.h"

/* For op->infer: y0 (B,D), and input i (B,T,columns) with the same B and T in every i < n; creates y (B,T,D). */
void flow_output(struct graph *g, struct call *c, const int64_t *columns, int n, const struct tensor *y0, int64_t D);

/* struct op's terms of the three scans. */
double flow_terms(const struct call *c, enum pass pass, int j);

/* The bound of trial calls. Some of their steps exceed it. They have at most 9 steps, because later steps would all
 * exceed it, with no gradient left. */
#define FLOW_TRIAL_CLIP 1000

static inline struct op_sizes flow_trial_sizes(const struct op_sizes *s) {
    struct op_sizes bounded = *s;
    if (bounded.length > 9) bounded.length = 9;
    return bounded;
}

#endif
