/* graph_links.h - the graph that a mixer of a graph works on: that of the example, or where a task has none, the one
 * that its option `edges` names. Private to models/. */
#ifndef LRNN_MODELS_GRAPH_LINKS_H
#define LRNN_MODELS_GRAPH_LINKS_H

#include "kernels/links/links.h"
#include "models/model.h"

/* The option, of the field `edges` of OPTION_TEXT characters. */
#define GRAPH_EDGES_OPTION(type)                                                                                       \
    {                                                                                                                  \
        "edges", OPT_TEXT_FIELD, offsetof(type, edges), "path", 0, 0, NULL,                                            \
            "of a task without graphs: tail-head,... (+ for , on the command line), tail < head, in order; path: "     \
            "0-1,1-2,...; none",                                                                                       \
            0                                                                                                          \
    }

/* Whether the edges fit the sequences; of a task with graphs they are not asked for. ST_USAGE names the mixer, the edge
 * and what is wrong. */
enum status graph_links_check(const char *mixer, const char *edges, const struct dims *d, struct error *e);

/* The links of sequences like x (B,T,D); all mixers of a net share them. Sets the graph's error and has no words if
 * there is no room. */
struct links graph_links(const char *edges, struct graph *g, struct tensor *x);

/* How many edges those sequences have at most. */
int64_t graph_links_edges(const char *edges, const struct dims *d);

/* model->state_floats of a mixer that carries nothing from node to node within a layer: 0. */
int64_t graph_no_state(const void *inst, const struct dims *d);

#endif
