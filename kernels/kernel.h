/* kernel.h - the registry of ops and kernels. Every op's file includes it.
 *
 * Each family declares its ops in its own header (kernels/gated/gated.h, ...). A function there calls one op on
 * the graph and returns its first output (further outputs where it says so); it computes nothing. Shapes: B batch, T
 * length, D width, N blocks or channels, m block size, V vocabulary. "rows" are all leading axes together. Errors
 * (shapes that do not fit) go to the graph and surface in graph_plan. NULL tensors pass through.
 *
 * Adding an op or a kernel = one new file and one line in its room's list.def. */
#ifndef LRNN_KERNELS_KERNEL_H
#define LRNN_KERNELS_KERNEL_H

#include "core/builder.h"
#include "core/op.h"

#ifdef __cplusplus
extern "C" {
#endif

const struct op *const *op_list(void);         /* NULL-terminated, in the order of list.def */
const struct kernel *const *kernel_list(void); /* NULL-terminated, in order of preference */
const struct op *op_find(const char *name);
const struct kernel *kernel_find(const char *name);
const struct kernel *kernel_reference(const struct op *op);

/* Lines of a list.def. Here they declare ops and kernels; in registry.c they fill the tables. A family's header
 * includes only the list of its own room, so that a new op recompiles only its family and the callers of the family. */
#define OP(name)          extern const struct op op_##name;
#define KERNEL(name)      extern const struct kernel kernel_##name;
#define KERNEL_CUDA(name) KERNEL(name) /* exists only in a build with CUDA */

#ifdef __cplusplus
}
#endif
#endif
