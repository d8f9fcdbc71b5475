/* flow.c - entries of the flows, whose state before the first token is an input of the op. */
#include "kernels/flow/flow.h"

#include "library/library.h"

static void scan_flow_record(struct recorder *r, const lrnn_scan_flow *d) {
    int64_t N = library_size(r, "blocks", d->blocks, INT32_MAX), m = library_size(r, "m", d->m, LIBRARY_SMALL);
    struct tensor *a = library_tokens(r, "a", &d->a, m * m * N), *y0 = library_sequences(r, "y0", &d->y0, N * m);
    library_output(r, "y", &d->y, scan_flow(r->graph, a, y0, N, m, 0));
}
LIBRARY_OP(scan_flow, y, true)

static void scan_dplr_record(struct recorder *r, const lrnn_scan_dplr *d) {
    int64_t W = library_size(r, "width", d->width, INT32_MAX), rank = library_size(r, "rank", d->rank, LIBRARY_SMALL);
    struct tensor *diagonal = library_tokens(r, "d", &d->d, W), *u = library_tokens(r, "u", &d->u, rank * W);
    struct tensor *v = library_tokens(r, "v", &d->v, rank * W), *y0 = library_sequences(r, "y0", &d->y0, W);
    library_output(r, "y", &d->y, scan_dplr(r->graph, diagonal, u, v, y0, 0));
}
LIBRARY_OP(scan_dplr, y, true)

static void scan_hadamard_record(struct recorder *r, const lrnn_scan_hadamard *d) {
    int64_t W = library_size(r, "width", d->width, INT32_MAX);
    struct tensor *diagonal = library_tokens(r, "d", &d->d, W), *y0 = library_sequences(r, "y0", &d->y0, W);
    library_output(r, "y", &d->y, scan_hadamard(r->graph, diagonal, y0, 0));
}
LIBRARY_OP(scan_hadamard, y, true)
