/* tud_files.h - reads labelled graphs in TUDataset's text format (https://chrsmrrs.github.io/datasets/docs/format):
 * files NAME_A.txt, NAME_graph_labels.txt, ... of a row per line, its numbers separated by commas. Nodes, edges and
 * graphs are the lines of their files and count from 1; the nodes of a graph are contiguous.
 *
 * A graph is undirected: NAME_A.txt has each edge in both directions; an edge in only one direction is an error. Loops
 * and repeated edges are left out (torch_geometric, io/tu.py).
 *
 * A payload is 4-byte numbers: the number of attributes of a node; the attributes of each node, as floats; the label of
 * each node, less the least one of the set; then each edge once, ascending, as its lower and its higher node, from 0
 * within the graph. An entry's length counts nodes. The set's width counts a node's features: its attributes, then one
 * for each label from the least to the greatest, where its own is 1 and the others 0. Nodes without attributes and
 * labels all have the same label. An entry's label is the rank of its graph's label. Labels of edges are checked and
 * dropped, since pLSTM's nets on graphs do not use them. */
#ifndef LRNN_TASKS_DATA_TUD_FILES_H
#define LRNN_TASKS_DATA_TUD_FILES_H

#include "tasks/data/byte_source.h"
#include "tasks/data/entry_set.h"

#define TUD_KIND        "graphs"
#define TUD_NODES       (1 << 24) /* of a set */
#define TUD_LINES       (1 << 25) /* of NAME_A.txt */
#define TUD_FEATURES    4096      /* of a node */
#define TUD_VALUES      (1 << 28) /* attributes of a set */
#define TUD_LABELS      1024      /* of graphs */
#define TUD_GRAPH_NODES 4096
#define TUD_GRAPH_EDGES 16384
#define TUD_GRAPH_PAIRS (1 << 18) /* pairs of edges, one ending where the other begins (core/links.h) */

enum tud_file {
    TUD_INDICATOR,
    TUD_GRAPH_LABELS,
    TUD_EDGES,
    TUD_NODE_LABELS, /* optional, like all after it */
    TUD_ATTRIBUTES,
    TUD_EDGE_LABELS,
    TUD_FILES
};

/* Tells from the end of a name which file of a set it is; TUD_FILES: none. */
enum tud_file tud_file_of(const char *name);

/* Adds the graphs of a set as training entries. An optional file is NULL if the set lacks it. ST_DATA with file and
 * line: a malformed line, a number of lines that does not match nodes, graphs or edges, a graph without nodes, an edge
 * between two graphs or in one direction alone, a node or graph that does not exist, graphs of one label only, more
 * than the limits above. */
enum status tud_read(struct byte_source *const file[TUD_FILES], struct entry_pack *pack, struct error *e);

#endif
