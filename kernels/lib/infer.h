/* infer.h - parts that the declarations of ops share, and put(), which writes gradients. */
#ifndef LRNN_KERNELS_LIB_INFER_H
#define LRNN_KERNELS_LIB_INFER_H

#include "core/graph.h"
#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Stores v in *d, or adds it to *d. Every gradient is written in this way. */
LRNN_INLINE void put(real *d, bool accumulate, real v) {
    *d = accumulate ? *d + v : v;
}

/* For op->infer. Each of these sets the graph's error and returns false: if an input is missing; if two inputs differ
 * in shape; if the last axis of `x` does not have the length of the vector `v`. */
bool infer_present(struct graph *g, const struct call *c, int n_required);
bool infer_same_shape(struct graph *g, const struct call *c, int i, int j);
bool infer_vector(struct graph *g, const struct call *c, const struct tensor *x, const struct tensor *v,
                  const char *vector_name);

/* Calls the op on the inputs and returns its first output; NULL after an error. */
struct tensor *call1(struct graph *g, const struct op *op, const void *attr, size_t attr_bytes,
                     struct tensor *const *in, int n_in);

#ifdef __cplusplus
}
#endif
#endif
