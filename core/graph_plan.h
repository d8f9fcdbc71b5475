/* graph_plan.h - what the walks in graph.c need of the plan; private to the graph. */
#ifndef LRNN_CORE_GRAPH_PLAN_H
#define LRNN_CORE_GRAPH_PLAN_H

#include "core/graph.h"

/* Before the backward walk: 1 into the gradient of a scalar root, 0 into gradients that nothing writes. */
void plan_seed_gradients(struct graph *g);

/* Guard mode: poison buffers whose life begins at `time`; check all live guards after the call `index`. */
void plan_before(struct graph *g, int time);
void plan_after(struct graph *g, int time, int index);

#endif
