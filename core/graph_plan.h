/* graph_plan.h - choice of kernels and the memory plan of a built graph. */
#ifndef LRNN_CORE_GRAPH_PLAN_H
#define LRNN_CORE_GRAPH_PLAN_H

#include "core/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the error of the calls if there is one. Chooses kernels, plans memory by lifetimes, reserves, binds. The
 * params must have been reserved. Errors: no kernel applies, or the forced one does not apply to a call of its op
 * (ST_USAGE, naming op and reason), out of memory. A forced kernel whose op the graph lacks is no error of the
 * graph. */
enum status graph_plan(struct graph *g, struct error *e);

/* The kernel that a call gets where none is forced: the first of the list that applies and is worth taking. NULL: none,
 * and *why says why the last one does not apply. */
const struct kernel *graph_kernel_unasked(const struct graph *g, const struct call *c, const char **why);

/* Whether the gradient of a scalar root is 1 whenever no walk runs: on a device, where graphs have memory of their own,
 * and writing it would be one launch more in each step. */
bool graph_keeps_root(const struct graph *g);

/* From here on the walks of a planned graph add the gradients of the parameters that its root depends on to what is
 * there, and leave those of others as they are: several graphs of one net make one gradient. */
void graph_add_gradients(struct graph *g);

/* Bytes graph_plan would reserve; once all calls are made, before planning. */
enum status graph_measure(struct graph *g, size_t *bytes, struct error *e);

/* Most bytes of it that are live at one moment: what no plan of this order of calls can be below. Once measured. */
size_t graph_live_bytes(const struct graph *g);

#ifdef __cplusplus
}
#endif
#endif
