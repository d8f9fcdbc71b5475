/* op_sizes.h - the sizes of a single call of an op, for `lrnn perf op` and the tests. */
#ifndef LRNN_CORE_OP_SIZES_H
#define LRNN_CORE_OP_SIZES_H

#include "core/option.h"

#ifdef __cplusplus
extern "C" {
#endif

struct op;

/* Every op reads some of these and names them in op->sizes. docs/design.md explains the words. */
struct op_sizes {
    int64_t batch, length; /* B, T */
    int64_t blocks, m;     /* N; block size, order or rank */
    int gate, layout;      /* enum gate, enum companion_layout */
    int64_t dim, out;      /* D; the second width of ops with two widths, 0 = dim (op_sizes_out) */
    int64_t vocab;         /* V */
    int64_t heads, dk, dv; /* H states of dk x dv */
    int64_t substeps;      /* updates per token */
    int64_t interval;      /* tokens per interval */
    int64_t examples;      /* number of examples of a split */
    int64_t variant;       /* from 0; it chooses optional inputs, and attributes that are no size */
};

/* One option for each field, with the defaults of `lrnn perf op`. */
extern const struct option op_sizes_options[];

int64_t op_sizes_out(const struct op_sizes *s);

/* Whether op->sizes names the option. It never names the variant, because all ops read it. */
bool op_reads_size(const struct op *op, const char *option);

/* Writes the options that the op reads, and the variant unless it is 0, in the form that `lrnn perf op` accepts:
 * "batch=128 length=16". Returns like snprintf. */
int op_sizes_format(const struct op *op, const struct op_sizes *s, char *text, size_t size);

/* Returns the number of variants of the op. */
int op_variants(const struct op *op);

#ifdef __cplusplus
}
#endif
#endif
