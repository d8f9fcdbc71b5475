/* op_sheet.h - measured kernels of an op as a table, and under the roof of the machine. */
#ifndef LRNN_HARNESS_PERF_OP_SHEET_H
#define LRNN_HARNESS_PERF_OP_SHEET_H

#include "harness/perf/measure.h"
#include "harness/perf/op_shapes.h"
#include "harness/perf/perf_rows.h"

/* One pass of one kernel at one shape, or why the kernel does not apply there. */
struct op_time {
    struct perf_row row; /* bench is the kernel's name */
    const char *why;     /* NULL: it was measured */
    int shape;           /* of the list of shapes */
    bool by_bytes;       /* its bytes make the floor, not its FLOPs */
    bool whole;          /* forward and backward, or forward of an op without a backward pass */
};

struct op_times {
    const struct op *op;
    const struct op_shapes *shapes;
    struct op_time *list; /* owned by the caller */
    int n;
    struct floor_rates best, least; /* over all shapes: a copy of few bytes stays in the caches */
};

/* Fills the table: time, rates, floor and ratio to it; beside the rows of `old`, unless NULL, the change. At several
 * shapes it has the whole passes alone. */
void op_sheet(struct sheet *s, const struct op_times *t, const struct perf_rows *old);

/* Draws the whole passes as TO/roofline-OP.svg and .png. Errors as gnuplot_draw. */
enum status op_roofline(const struct op_times *t, const char *to, struct error *e);

#endif
