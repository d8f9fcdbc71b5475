/* tud_files.c - see tud_files.h. */
#include "tasks/data/tud_files.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tasks/data/grow.h"
#include "tasks/data/text_source.h"

#define TOGETHER 256 /* lines of edges that are read before they are checked */

struct column { /* accepts any number of lines */
    int32_t *at;
    int64_t n, room;
};

struct edge {
    int32_t node[2]; /* from 0 on, the lower one first */
    int32_t place;   /* 2 * line, plus 1 if the file has the higher one first */
};

/* A set while it is read. */
struct tud {
    struct byte_source *const *file;
    struct text_source text;
    struct error *e;
    struct column graph, label, kind, edge_label; /* of nodes, of graphs, of nodes, of edges */
    float *attribute;                             /* of a node, nodes one after the other */
    int64_t attributes, used, room;               /* of a node; of all; room */
    struct edge *edge;
    int64_t edges, edge_room, lines; /* lines: of NAME_A.txt, with loops */
    int32_t latest;                  /* graph of the last edge */
    bool by_graph;                   /* edges are listed graph by graph */
    int32_t least, kinds;            /* of labels of nodes: the least; the count up to the greatest */
};

enum tud_file tud_file_of(const char *name) {
    static const char *const ends[TUD_FILES] = {"_graph_indicator.txt", "_graph_labels.txt",    "_A.txt",
                                                "_node_labels.txt",     "_node_attributes.txt", "_edge_labels.txt"};
    int file = 0;
    size_t n = strlen(name), end;
    for (; file < TUD_FILES; file++)
        if (n > (end = strlen(ends[file])) && strcmp(name + n - end, ends[file]) == 0) break;
    return (enum tud_file)file;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static enum status fail_at(const struct tud *f, enum tud_file file, int64_t line,
                                                                 const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return fail(f->e, ST_DATA, "%s, line %" PRId64 ": expected %s", f->file[file]->name, line, text);
}

static enum status no_memory(const struct tud *f, int64_t n, const char *what) {
    return fail(f->e, ST_MEMORY, "no memory for %" PRId64 " %s", n, what);
}

/* Whether another line comes. Empty lines are allowed only at the end, because nodes and graphs are numbered by their
 * lines. */
static enum status next_line(struct text_source *t, bool *comes) {
    int64_t line = t->line;
    int c = text_peek(t);
    *comes = true;
    if (c > ' ') return t->status;
    for (; c == '\n' || c == ' ' || c == '\t'; c = text_peek(t)) text_take(t);
    *comes = c != TEXT_END;
    if (*comes && t->line > line) return text_fail(t, "the end of the file after an empty line");
    return t->status;
}

/* Checks for the end of a file, or reports a line too many. */
static enum status check_lines(const struct tud *f, enum tud_file file, int64_t lines, int64_t want, const char *of) {
    if (lines == want) return ST_OK;
    return fail_at(f, file, f->text.line, "%" PRId64 " lines, one %s, found %s", want, of,
                   lines > want ? "more" : "the end of the file");
}

#define ANY_LINES (-1)

/* Reads plain lines into the room that is left; the general reader takes the line at which they end. */
static void read_plain_column(struct tud *f, int32_t least, int64_t most, struct column *to) {
    int64_t lines = (to->room < most ? to->room : most) - to->n;
    if (lines > 0) to->n += text_plain_integers(&f->text, 1, least, INT32_MAX, lines, to->at + to->n);
}

/* Reads a file with one whole number per line; `want` lines, one for each `of`, or ANY_LINES. */
static enum status read_column(struct tud *f, enum tud_file file, const char *what, int32_t least, int64_t want,
                               const char *of, struct column *to) {
    int64_t value;
    text_open(&f->text, f->file[file], f->e);
    for (bool comes;;) {
        read_plain_column(f, least, want == ANY_LINES ? TUD_NODES : want, to);
        TRY(next_line(&f->text, &comes));
        if (!comes) break;
        if (to->n == want) return check_lines(f, file, want + 1, want, of);
        if (to->n == TUD_NODES && want == ANY_LINES)
            return fail_at(f, file, to->n + 1, "at most %d lines, found more", TUD_NODES);
        if (!text_integer(&f->text, least, INT32_MAX, &value)) return text_fail(&f->text, what);
        TRY(text_end_line(&f->text));
        if (to->n == to->room) {
            int32_t *more = grow(to->at, &to->room, to->n + 1, (int64_t)sizeof *more);
            if (!more) return no_memory(f, to->n, "numbers");
            to->at = more;
        }
        to->at[to->n++] = (int32_t)value;
    }
    if (to->n == 0 && want == ANY_LINES) return text_fail(&f->text, what);
    return want == ANY_LINES ? ST_OK : check_lines(f, file, to->n, want, of);
}

/* --- nodes and graphs --------------------------------------------------------------------------------------------- */

static enum status read_graphs(struct tud *f) {
    int64_t nodes = 0;
    int32_t graph = 0;
    TRY(read_column(f, TUD_INDICATOR, "the number of a graph", 1, ANY_LINES, "", &f->graph));
    for (int64_t i = 0; i < f->graph.n; i++) {
        int32_t found = f->graph.at[i];
        if (found != graph && found != graph + 1)
            return i == 0 ? fail_at(f, TUD_INDICATOR, 1, "graph 1, found %d", found)
                          : fail_at(f, TUD_INDICATOR, i + 1, "graph %d or %d, found %d", graph, graph + 1, found);
        nodes = found == graph ? nodes + 1 : 1;
        graph = found;
        if (nodes > TUD_GRAPH_NODES)
            return fail_at(f, TUD_INDICATOR, i + 1, "at most %d nodes of a graph, found more", TUD_GRAPH_NODES);
        if (graph > ENTRIES_MOST)
            return fail_at(f, TUD_INDICATOR, i + 1, "at most %d graphs, found more", ENTRIES_MOST);
    }
    return read_column(f, TUD_GRAPH_LABELS, "the label of a graph, a whole number", INT32_MIN, graph, "per graph",
                       &f->label);
}

/* Returns the rank of a label: the number of the n ascending labels below it. */
static int64_t rank_of(const int32_t *known, int64_t n, int32_t label) {
    int64_t low = 0;
    for (int64_t high = n; low < high;) {
        int64_t middle = (low + high) / 2;
        if (known[middle] < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Replaces the graphs' labels by their ranks. */
static enum status rank_labels(struct tud *f, int64_t *labels) {
    int32_t known[TUD_LABELS] = {0};
    int64_t n = 0;
    for (int64_t i = 0; i < f->label.n; i++) {
        int64_t rank = rank_of(known, n, f->label.at[i]);
        if (rank < n && known[rank] == f->label.at[i]) continue;
        if (n == TUD_LABELS)
            return fail_at(f, TUD_GRAPH_LABELS, i + 1, "at most %d different labels, found more", TUD_LABELS);
        memmove(known + rank + 1, known + rank, (size_t)(n++ - rank) * sizeof *known);
        known[rank] = f->label.at[i];
    }
    if (n < 2)
        return fail_at(f, TUD_GRAPH_LABELS, f->label.n, "graphs of at least two labels, found %d alone", known[0]);
    for (int64_t i = 0; i < f->label.n; i++) f->label.at[i] = (int32_t)rank_of(known, n, f->label.at[i]);
    *labels = n;
    return ST_OK;
}

static enum status read_kinds(struct tud *f) {
    int32_t greatest;
    if (!f->file[TUD_NODE_LABELS]) return ST_OK;
    TRY(read_column(f, TUD_NODE_LABELS, "the label of a node, a whole number", INT32_MIN, f->graph.n, "per node",
                    &f->kind));
    f->least = greatest = f->kind.at[0];
    for (int64_t i = 0; i < f->kind.n; i++) {
        int32_t kind = f->kind.at[i];
        if (kind < f->least) f->least = kind;
        if (kind > greatest) greatest = kind;
        if ((int64_t)greatest - f->least >= TUD_FEATURES)
            return fail_at(f, TUD_NODE_LABELS, i + 1, "labels within %d of each other, found %d and %d", TUD_FEATURES,
                           f->least, greatest);
    }
    f->kinds = greatest - f->least + 1;
    return ST_OK;
}

static enum status keep_attribute(struct tud *f, double value) {
    if (f->used == TUD_VALUES) return text_fail(&f->text, "at most 268435456 attributes in all");
    if (f->used == f->room) {
        float *more = grow(f->attribute, &f->room, f->used + 1, (int64_t)sizeof *more);
        if (!more) return no_memory(f, f->used, "attributes");
        f->attribute = more;
    }
    f->attribute[f->used++] = (float)value;
    return ST_OK;
}

/* Reads the attributes of a node; every node has as many as the first. */
static enum status read_attributes_of_node(struct tud *f) {
    int64_t n = 0;
    double value;
    do {
        text_skip_blanks(&f->text);
        int c = text_peek(&f->text);
        if (c == '?' || c == 'N' || c == 'n') return text_fail(&f->text, "an attribute (missing ones are not read)");
        if (!text_number(&f->text, &value) || fabs(value) > FLT_MAX) return text_fail(&f->text, "a finite number");
        TRY(keep_attribute(f, value));
        text_skip_blanks(&f->text);
        if (++n > TUD_FEATURES) return text_fail(&f->text, "at most 4096 attributes of a node");
    } while (text_peek(&f->text) == ',' && text_take(&f->text));
    if (!f->attributes) f->attributes = n;
    if (n != f->attributes)
        return fail_at(f, TUD_ATTRIBUTES, f->text.line, "%" PRId64 " attributes as on line 1, found %" PRId64,
                       f->attributes, n);
    return text_end_line(&f->text);
}

/* Reads the attributes of nodes on plain lines, up to the room; returns the number of nodes. A number of 15 digits is
 * finite as a float too. */
static int64_t read_plain_attributes(struct tud *f, int64_t nodes) {
    int64_t n = f->attributes, room = (f->room < TUD_VALUES ? f->room : TUD_VALUES) - f->used;
    if (n == 0 || room < n) return 0;
    int64_t taken = text_plain_numbers(&f->text, n, nodes < room / n ? nodes : room / n, f->attribute + f->used);
    f->used += taken * n;
    return taken;
}

static enum status read_attributes(struct tud *f) {
    int64_t nodes = 0;
    if (!f->file[TUD_ATTRIBUTES]) return ST_OK;
    text_open(&f->text, f->file[TUD_ATTRIBUTES], f->e);
    for (bool comes;; nodes++) {
        nodes += read_plain_attributes(f, f->graph.n - nodes);
        TRY(next_line(&f->text, &comes));
        if (!comes) break;
        if (nodes == f->graph.n) return check_lines(f, TUD_ATTRIBUTES, nodes + 1, f->graph.n, "per node");
        TRY(read_attributes_of_node(f));
    }
    return check_lines(f, TUD_ATTRIBUTES, nodes, f->graph.n, "per node");
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

static enum status read_node(struct tud *f, int32_t *node) {
    char what[64];
    int64_t value;
    text_skip_blanks(&f->text);
    if (text_integer(&f->text, 1, f->graph.n, &value)) {
        *node = (int32_t)value;
        return ST_OK;
    }
    snprintf(what, sizeof what, "a node from 1 to %" PRId64, f->graph.n);
    return text_fail(&f->text, what);
}

/* Reads both nodes of a line. */
static enum status read_nodes(struct tud *f, int32_t node[2]) {
    TRY(read_node(f, &node[0]));
    text_skip_blanks(&f->text);
    if (text_peek(&f->text) != ',') return text_fail(&f->text, "a comma after the first node of an edge");
    text_take(&f->text);
    TRY(read_node(f, &node[1]));
    return text_end_line(&f->text);
}

static enum status add_edge(struct tud *f, int64_t line, int32_t a, int32_t b) {
    int32_t graph = f->graph.at[a - 1];
    if (graph != f->graph.at[b - 1])
        return fail_at(f, TUD_EDGES, line,
                       "an edge within a graph, found one from node %d of graph %d to node %d of graph %d", a, graph, b,
                       f->graph.at[b - 1]);
    if (a == b) return ST_OK;
    if (f->edges == f->edge_room) {
        struct edge *more = grow(f->edge, &f->edge_room, f->edges + 1, (int64_t)sizeof *more);
        if (!more) return no_memory(f, f->edges, "edges");
        f->edge = more;
    }
    f->by_graph &= graph >= f->latest;
    f->latest = graph;
    f->edge[f->edges++] = (struct edge){{(a < b ? a : b) - 1, (a < b ? b : a) - 1}, (int32_t)(2 * line + (a > b))};
    return ST_OK;
}

/* Sorts edges between nodes first..end - 1 by the number of one end, stably. count: (end - first + 1). */
static void sort_by(int side, const struct edge *from, struct edge *to, int64_t n, int32_t *count, int64_t first,
                    int64_t end) {
    memset(count, 0, (size_t)(end - first + 1) * sizeof *count);
    for (int64_t i = 0; i < n; i++) count[from[i].node[side] - first + 1]++;
    for (int64_t i = 0; i < end - first; i++) count[i + 1] += count[i];
    for (int64_t i = 0; i < n; i++) to[count[from[i].node[side] - first]++] = from[i];
}

/* Appends each of these n sorted edges once to the kept edges. */
static enum status merge(struct tud *f, const struct edge *sorted, int64_t n, int64_t *kept) {
    for (int64_t i = 0, next; i < n; i = next) {
        const struct edge edge = sorted[i];
        bool found[2] = {false, false};
        for (next = i; next < n && memcmp(sorted[next].node, edge.node, sizeof edge.node) == 0; next++)
            found[sorted[next].place % 2] = true;
        int down = edge.place % 2;
        if (!found[0] || !found[1])
            return fail_at(f, TUD_EDGES, edge.place / 2, "each edge in both directions, found %d, %d without %d, %d",
                           edge.node[down] + 1, edge.node[!down] + 1, edge.node[!down] + 1, edge.node[down] + 1);
        f->edge[(*kept)++] = edge;
    }
    return ST_OK;
}

/* Returns the node after the last one of the graph that node `first` is in. */
static int64_t end_of_graph(const struct tud *f, int64_t first) {
    int64_t end = first;
    while (end < f->graph.n && f->graph.at[end] == f->graph.at[first]) end++;
    return end;
}

/* Keeps each edge once, sorted by lower and then higher node. If the file lists its edges graph by graph, as released
 * files do, each graph is sorted separately, within the caches; else all at once. `other` and `count` have room for
 * all. */
static enum status sort_and_merge(struct tud *f, struct edge *other, int32_t *count) {
    int64_t kept = 0;
    for (int64_t first = 0, end, at = 0, n; first < f->graph.n; first = end, at += n) {
        end = f->by_graph ? end_of_graph(f, first) : f->graph.n;
        for (n = 0; at + n < f->edges && f->edge[at + n].node[0] < end;) n++;
        sort_by(1, f->edge + at, other, n, count, first, end);
        sort_by(0, other, f->edge + at, n, count, first, end);
        TRY(merge(f, f->edge + at, n, &kept));
    }
    f->edges = kept;
    return ST_OK;
}

static enum status sort_edges(struct tud *f) {
    if (f->edges == 0) return ST_OK;
    struct edge *other = malloc((size_t)f->edges * sizeof *other);
    int32_t *count = malloc((size_t)(f->graph.n + 1) * sizeof *count);
    enum status status = other && count ? sort_and_merge(f, other, count) : no_memory(f, f->edges, "edges");
    free(other);
    free(count);
    return status;
}

/* Reads plain lines, if there are any. */
static enum status read_plain_edges(struct tud *f) {
    int32_t node[2 * TOGETHER];
    int64_t taken = TOGETHER;
    while (taken == TOGETHER) {
        int64_t line = f->text.line, left = TUD_LINES - f->lines;
        taken = text_plain_integers(&f->text, 2, 1, f->graph.n, left < TOGETHER ? left : TOGETHER, node);
        for (int64_t i = 0; i < taken; i++) TRY(add_edge(f, line + i, node[2 * i], node[2 * i + 1]));
        f->lines += taken;
    }
    return ST_OK;
}

static enum status read_edges(struct tud *f) {
    int32_t node[2] = {0};
    text_open(&f->text, f->file[TUD_EDGES], f->e);
    f->by_graph = true;
    for (bool comes;; f->lines++) {
        TRY(read_plain_edges(f));
        TRY(next_line(&f->text, &comes));
        if (!comes) break;
        if (f->lines == TUD_LINES)
            return fail_at(f, TUD_EDGES, f->lines + 1, "at most %d lines, found more", TUD_LINES);
        int64_t line = f->text.line;
        TRY(read_nodes(f, node));
        TRY(add_edge(f, line, node[0], node[1]));
    }
    if (f->lines == 0) return text_fail(&f->text, "an edge");
    if (f->file[TUD_EDGE_LABELS])
        TRY(read_column(f, TUD_EDGE_LABELS, "the label of an edge, a whole number", INT32_MIN, f->lines,
                        "per line of the edges", &f->edge_label));
    return sort_edges(f);
}

/* --- entries ------------------------------------------------------------------------------------------------------ */

/* Counts pairs of edges where one ends at the node at which the other begins. */
static int64_t count_pairs(const struct edge *edge, int64_t n, int64_t first) {
    uint16_t into[TUD_GRAPH_NODES] = {0};
    int64_t pairs = 0;
    for (int64_t i = 0; i < n; i++) into[edge[i].node[1] - first]++;
    for (int64_t i = 0; i < n; i++) pairs += into[edge[i].node[0] - first];
    return pairs;
}

/* Stores the graph of nodes first..end - 1 and these n edges. */
static void put_graph(const struct tud *f, int64_t first, int64_t end, const struct edge *edge, int64_t n,
                      uint8_t *to) {
    const int32_t attributes = (int32_t)f->attributes;
    size_t bytes = (size_t)((end - first) * f->attributes) * sizeof *f->attribute;
    memcpy(to, &attributes, sizeof attributes);
    to += sizeof attributes;
    if (bytes) memcpy(to, f->attribute + first * f->attributes, bytes);
    to += bytes;
    for (int64_t node = first; node < end; node++, to += 4) {
        const int32_t kind = f->kind.n ? f->kind.at[node] - f->least : 0;
        memcpy(to, &kind, sizeof kind);
    }
    for (int64_t i = 0; i < n; i++, to += 8) {
        const int32_t ends[2] = {edge[i].node[0] - (int32_t)first, edge[i].node[1] - (int32_t)first};
        memcpy(to, ends, sizeof ends);
    }
}

static enum status add_graph(const struct tud *f, int64_t first, int64_t end, const struct edge *edge, int64_t n,
                             struct entry_pack *pack) {
    int64_t nodes = end - first, pairs;
    int32_t graph = f->graph.at[first];
    if (n > TUD_GRAPH_EDGES)
        return fail_at(f, TUD_EDGES, edge->place / 2, "at most %d edges of a graph, found %" PRId64 " of graph %d",
                       TUD_GRAPH_EDGES, n, graph);
    if ((pairs = count_pairs(edge, n, first)) > TUD_GRAPH_PAIRS)
        return fail_at(f, TUD_EDGES, edge->place / 2,
                       "at most %d pairs of consecutive edges of a graph, found %" PRId64 " of graph %d",
                       TUD_GRAPH_PAIRS, pairs, graph);
    int64_t size = 4 * (1 + nodes * (f->attributes + 1) + 2 * n);
    uint8_t *to = entry_pack_add(pack, SPLIT_TRAIN, f->label.at[graph - 1], nodes, size, f->e);
    if (!to) return f->e->status;
    put_graph(f, first, end, edge, n, to);
    return ST_OK;
}

static enum status add_graphs(struct tud *f, struct entry_pack *pack) {
    struct entry_set *set = &pack->set;
    TRY(rank_labels(f, &set->labels));
    set->width = f->attributes + f->kinds ? f->attributes + f->kinds : 1;
    if (set->width > TUD_FEATURES)
        return fail_at(f, TUD_ATTRIBUTES, 1, "at most %d attributes and labels of a node, found %" PRId64, TUD_FEATURES,
                       set->width);
    for (int64_t first = 0, end, at = 0, n; first < f->graph.n; first = end, at += n) {
        end = end_of_graph(f, first);
        for (n = 0; at + n < f->edges && f->edge[at + n].node[0] < end;) n++;
        const struct edge *edge = f->edges ? f->edge + at : NULL; /* none at all: NULL + 0 is not defined in C */
        TRY(add_graph(f, first, end, edge, n, pack));
    }
    return ST_OK;
}

static enum status read_set(struct tud *f, struct entry_pack *pack) {
    TRY(read_graphs(f));
    TRY(read_kinds(f));
    TRY(read_attributes(f));
    TRY(read_edges(f));
    return add_graphs(f, pack);
}

enum status tud_read(struct byte_source *const file[TUD_FILES], struct entry_pack *pack, struct error *e) {
    struct tud *f = calloc(1, sizeof *f);
    if (!f) return fail(e, ST_MEMORY, "%s: no memory to read it", file[TUD_INDICATOR]->name);
    f->file = file;
    f->e = e;
    enum status status = read_set(f, pack);
    free(f->graph.at);
    free(f->label.at);
    free(f->kind.at);
    free(f->edge_label.at);
    free(f->attribute);
    free(f->edge);
    free(f);
    return status;
}
