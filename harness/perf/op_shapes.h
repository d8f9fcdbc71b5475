/* op_shapes.h - the sizes at which `lrnn perf op` measures an op, from a file or from a sweep. */
#ifndef LRNN_HARNESS_PERF_OP_SHAPES_H
#define LRNN_HARNESS_PERF_OP_SHAPES_H

#include "core/op_sizes.h"

struct op_shapes {
    struct op_sizes *list; /* owned; the caller frees it */
    int n;
};

/* Makes the list; sizes that are not named are as in `base`. `file` has a shape per line, "length=64 m=5", and comment
 * lines that begin with #. `sweep` has axes, "T=64..4096 m=2,4", of which all combinations are listed: FROM..TO doubles
 * the value, commas separate values. A size is named by its flag or its letter (B, T, N, D, V, H). At most one of the
 * texts is not ""; if both are "", the list has only `base`. ST_USAGE: a size that the op does not read, a bad value,
 * no shape at all; ST_DATA, ST_FAIL: the file cannot be read; ST_MEMORY. */
enum status op_shapes_make(struct op_shapes *shapes, const struct op *op, const struct op_sizes *base, const char *file,
                           const char *sweep, struct error *e);

#endif
