/* graph_walk.h - the walks over a planned graph: forward through its calls, backward through their gradients. */
#ifndef LRNN_CORE_GRAPH_WALK_H
#define LRNN_CORE_GRAPH_WALK_H

#include "core/graph_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Copies a tensor's value, or its gradient, between the graph's memory and the host's. Only a graph on the CPU may be
 * written and read through the pointers of its tensors. */
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
