/* flow_output.h - parts that scan_flow, scan_dplr and scan_hadamard share: shapes, and for the tests trial calls and
 * terms. */
#ifndef LRNN_KERNELS_FLOW_FLOW_OUTPUT_H
#define LRNN_KERNELS_FLOW_FLOW_OUTPUT_H

#include "core/op_sizes.h"
#include "kernels/flow/flow.h"

/* For op->infer: checks that y0 is (B,D), and each input i < n (B,T,columns[i]) with the same B and T. Creates y
 * (B,T,D). */
void flow_output(struct graph *g, struct call *c, const int64_t *columns, int n, const struct tensor *y0, int64_t D);

/* The function `terms` (struct op) of the three scans. */
double flow_terms(const struct call *c, enum pass pass, int j);

/* The bound in trial calls. Some of their steps exceed it. They have at most 9 steps, because all later steps would
 * exceed it, and no gradient would be left. */
#define FLOW_TRIAL_CLIP 1000

static inline struct op_sizes flow_trial_sizes(const struct op_sizes *s) {
    struct op_sizes bounded = *s;
    if (bounded.length > 9) bounded.length = 9;
    return bounded;
}

#endif
