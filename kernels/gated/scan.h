/* scan.h - parts that scan_block and scan_companion share: checks of their inputs, scratch of their references, and the
 * largest m of the kernels that keep a row of gates in registers. CPU kernels include scan_cpu.h, CUDA kernels
 * scan_gates.cuh. */
#ifndef LRNN_KERNELS_GATED_SCAN_H
#define LRNN_KERNELS_GATED_SCAN_H

#include "kernels/gated/gate.h"

#define SCAN_UNROLLED                                                                                                  \
    8 /* largest m of kernels that keep a row of gates in registers: all CUDA kernels, some CPU kernels */

struct scratch;

/* Checks the inputs for op->infer: z is (B,T,`gates`), v is (B,T,`values`), N and m are at least 1. In messages,
 * `of_gates` and `of_values` name these widths, and `count` names N. Returns false after it has set the graph's
 * error. */
bool infer_scan(struct graph *g, const struct call *c, const char *count, int64_t gates, const char *of_gates,
                int64_t values, const char *of_values);

/* op->heads: each of the N blocks or channels is one head. */
struct heads scan_heads(const struct call *c);

/* Scratch of a reference for one block or channel. a and w: a row of m + 1 gates and of their slopes. G and carry: G_t
 * and A_{t+1}^T G_{t+1} of its m states. Forward uses only a and w. */
struct ref_row {
    real *a, *w;
    double *G, *carry;
};
struct ref_row ref_row_of(const struct call *c, struct scratch *s);
size_t ref_row_workspace(const struct call *c, enum pass pass);

#endif
