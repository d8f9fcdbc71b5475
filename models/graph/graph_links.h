/* graph_links.h - the graph that a graph mixer works on: the example's graph or, where a task has none, the graph that
 * the option `edges` names. Private to models/. */
#ifndef LRNN_MODELS_GRAPH_GRAPH_LINKS_H
#define LRNN_MODELS_GRAPH_GRAPH_LINKS_H

#include "kernels/links/links.h"
#include "models/model.h"

/* The option `edges`; the field has OPTION_TEXT characters. */
#define GRAPH_EDGES_OPTION(type)                                                                                       \
    {                                                                                                                  \
        "edges", OPT_TEXT_FIELD, offsetof(type, edges), "path", 0, 0, NULL,                                            \
            "of a task without graphs: tail-head,... (+ for , on the command line), tail < head, in order; path: "     \
            "0-1,1-2,...; none",                                                                                       \
            0                                                                                                          \
    }

/* Checks that the edges fit the sequences. On a task with graphs the option must be left out. ST_USAGE names the mixer,
 * the edge and the fault. */
enum status graph_links_check(const char *mixer, const char *edges, const struct dims *d, struct error *e);

/* The links of sequences like x (B,T,D). All mixers of a net share them. words is NULL after an error of the graph. */
struct links graph_links(const char *edges, struct graph *g, struct tensor *x);

/* The largest number of edges that such a sequence may have. */
int64_t graph_links_edges(const char *edges, const struct dims *d);

/* Returns 0: model->state_floats of mixers without a recurrent state. */
int64_t graph_no_state(const void *inst, const struct dims *d);

#endif
