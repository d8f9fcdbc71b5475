/* sizes.h - the inputs that most ops make in op->build. All need a gradient except ids and lengths. They are NULL after
 * an error of the graph. */
#ifndef LRNN_KERNELS_LIB_SIZES_H
#define LRNN_KERNELS_LIB_SIZES_H

#include "core/op_sizes.h"
#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tensor *input_tokens(struct graph *g, const struct op_sizes *s, const char *name,
                            int64_t width); /* (B,T,width) */
struct tensor *input_heads(struct graph *g, const struct op_sizes *s, const char *name,
                           int64_t width); /* (B,T,H,width) */
struct tensor *input_matrix(struct graph *g, const char *name, int64_t rows, int64_t columns);
struct tensor *input_vector(struct graph *g, const char *name, int64_t n);
struct tensor *input_ids(struct graph *g, const struct op_sizes *s, const char *name); /* (B,T) of 0 .. V-1 */
struct tensor *input_lengths(struct graph *g, const struct op_sizes *s);               /* [B] of 0 .. T */

/* Marks an input whose gradient is not wanted, and returns it. */
struct tensor *input_constant(struct tensor *t);

/* Returns n numbers that exist as long as the graph. If there is no room, it returns NULL and sets the graph's
 * error. */
int32_t *input_table(struct graph *g, int64_t n);

#ifdef __cplusplus
}
#endif
#endif
