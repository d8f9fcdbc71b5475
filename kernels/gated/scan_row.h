/* scan_row.h - the scratch of the references of scan_block and scan_companion. */
#ifndef LRNN_KERNELS_GATED_SCAN_ROW_H
#define LRNN_KERNELS_GATED_SCAN_ROW_H

#include "kernels/gated/scan.h"
#include "kernels/lib/scratch.h"

/* One row of gates and its slopes, m + 1 each; for backward the adjoints of the m states of a block or channel, G_t and
 * A_{t+1}^T G_{t+1}. */
struct scan_row {
    real *a, *w;
    double *G, *carry;
};

LRNN_INLINE struct scan_row scan_row_of(const struct call *c, struct scratch *s) {
    int64_t m = scan_attr(c)->m;
    struct scan_row r = {.a = scratch_reals(s, m + 1)};
    r.w = scratch_reals(s, m + 1);
    r.G = scratch_doubles(s, m);
    r.carry = scratch_doubles(s, m);
    return r;
}

LRNN_INLINE size_t scan_row_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    scan_row_of(c, &s);
    return s.used;
}

#endif
