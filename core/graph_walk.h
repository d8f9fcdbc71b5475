/* graph_walk.h - walks of a planned graph: forward through its calls, backward through their gradients. */
#ifndef LRNN_CORE_GRAPH_WALK_H
#define LRNN_CORE_GRAPH_WALK_H

#include "core/graph_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* These copy a tensor's value, or its gradient, between the graph's memory and the host's. The pointers of tensors may
 * be used directly only if the graph is on the CPU. */
void graph_put(struct graph *g, struct tensor *t, const void *from);
void graph_get(const struct graph *g, const struct tensor *t, void *to);
void graph_get_grad(const struct graph *g, const struct tensor *t, real *to);

void graph_forward(struct graph *g, struct step_state *state);

/* Computes the gradients of all parameters and of inputs with needs_grad, and overwrites the previous ones. */
void graph_backward(struct graph *g, struct step_state *state);

#ifdef __cplusplus
}
#endif
#endif
