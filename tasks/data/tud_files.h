/* tud_files.h - reads labelled graphs in TUDataset's text format (https://chrsmrrs.github.io/datasets/docs/format):
 * files NAME_A.txt, NAME_graph_labels.txt, ... of a row a line, its numbers separated by commas. Nodes, edges and
 * graphs are the lines of their files and count from 1; the nodes of a graph stand together.
 *
 * A graph is undirected: NAME_A.txt has each edge in both directions, and one that is there in one alone is refused.
 * Loops are left out, and so is an edge that was there before (torch_geometric, io/tu.py).
 *
 * A payload is 4-byte numbers: how many attributes a node has; those of each node, floats; the label of each node, less
 * the least one of the set; then each edge once, its lower and its higher node, counted from 0 within the graph,
 * ascending. An entry's length counts nodes, the set's width the features that a node has: its attributes, then one for
 * each label from the least to the greatest, of which its own is 1 and the others 0. Nodes without either all have the
 * same label. An entry's label is the rank of its graph's label. Labels of edges are read and checked and have no place
 * here: pLSTM's nets on graphs take none. */
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
#define TUD_GRAPH_PAIRS (1 << 18) /* of edges of which one leads on from the other, as core/links.h has them */

enum tud_file {
    TUD_INDICATOR,
    TUD_GRAPH_LABELS,
    TUD_EDGES,
    TUD_NODE_LABELS, /* this one and those behind it: where a set has them */
    TUD_ATTRIBUTES,
    TUD_EDGE_LABELS,
    TUD_FILES
};

/* Tells by its end which file of a set a name is; TUD_FILES: none. */
enum tud_file tud_file_of(const char *name);

/* Adds the graphs of a set, as training entries. Of the optional files NULL: the set has none. ST_DATA with file and
 * line: a line that is not of that form, another number of lines than there are nodes, graphs or edges, a graph without
 * nodes, an edge between two graphs or in one direction alone, a node or graph that is none, graphs of one label, more
 * than the limits above. */
enum status tud_read(struct byte_source *const file[TUD_FILES], struct entry_pack *pack, struct error *e);

#endif
