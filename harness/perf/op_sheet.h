/* op_sheet.h - shows measured kernels of an op as a table and as a roofline plot. */
#ifndef LRNN_HARNESS_PERF_OP_SHEET_H
#define LRNN_HARNESS_PERF_OP_SHEET_H

#include "harness/perf/measure.h"
#include "harness/perf/op_shapes.h"
#include "harness/perf/perf_rows.h"

/* The time of one pass of a kernel at one shape, or the reason why the kernel does not apply. */
struct op_time {
    struct perf_row row; /* bench is the kernel's name */
    const char *why;     /* NULL: it was measured */
    int shape;           /* index in the list of shapes */
    bool by_bytes;       /* its floor is from bytes, not from FLOPs */
    bool whole;          /* forward and backward, or forward of an op without a backward pass */
};

struct op_times {
    const struct op *op;
    const struct op_shapes *shapes;
    struct op_time *list; /* owned by the caller */
    int n;
    struct floor_rates best, least; /* over all shapes; small copies, in the caches, are faster */
};

/* Fills the table: time, rates, floor and ratio to the floor, and, unless `old` is NULL, the change from its rows. For
 * several shapes the table has only the whole passes. */
void op_sheet(struct sheet *s, const struct op_times *t, const struct perf_rows *old);

/* Draws the whole passes as TO/roofline-OP.svg and .png. Errors as gnuplot_draw. */
enum status op_roofline(const struct op_times *t, const char *to, struct error *e);

#endif
