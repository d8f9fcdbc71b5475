/* graph_guard.h - tests: what a graph with guards (struct graph_options) does before and after each call. */
#ifndef LRNN_CORE_GRAPH_GUARD_H
#define LRNN_CORE_GRAPH_GUARD_H

#include "core/graph.h"

/* Moments are those of struct plan_buffer. Before the one at `time`, poisons the buffers whose life begins there (-1:
 * before the walk); after it, checks all guards in use and notes the call `index` in g->first_guard_failure if one was
 * broken. */
void guard_before(struct graph *g, int time);
void guard_after(struct graph *g, int time, int index);

#endif
