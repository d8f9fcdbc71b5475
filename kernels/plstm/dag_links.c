/* dag_links.c - see dag_links.h. */
#include "kernels/plstm/dag_links.h"

struct dag dag_of(const struct call *c, struct scratch *s) {
    struct links_size room = ((const struct dag_scan_attr *)c->attr)->size;
    struct dag d = {.tail = scratch_i32(s, room.edges)};
    d.head = scratch_i32(s, room.edges);
    d.edge_row = scratch_i32(s, room.edges);
    d.from = scratch_i32(s, room.pairs);
    d.to = scratch_i32(s, room.pairs);
    d.pair_row = scratch_i32(s, room.pairs);
    d.place = scratch_i32(s, room.edges);
    d.start = scratch_i32(s, room.edges + 1);
    return d;
}

static struct links_view view_of(const struct call *c, int64_t b) {
    const struct dag_scan_attr *a = (const struct dag_scan_attr *)c->attr;
    const int32_t *words = tensor_i32(c->in[DAG_SCAN_LINKS]) + b * links_words(a->size);
    struct links_view l = {words, a->size, c->in[0]->dims[1], a->reversed};
    return l;
}

/* The edges that are there, the last one first where links are reversed. */
static void read_edges(const struct links_view *l, struct dag *d) {
    int32_t tail, head;
    d->edges = 0;
    for (int64_t i = 0; i < l->size.edges; i++) {
        int64_t e = l->reversed ? l->size.edges - 1 - i : i;
        d->place[e] = -1;
        if (!links_edge(l, e, &tail, &head)) continue;
        d->tail[d->edges] = tail;
        d->head[d->edges] = head;
        d->edge_row[d->edges] = (int32_t)e;
        d->place[e] = (int32_t)d->edges++;
    }
}

/* Whether pair p counts; then its edges, by their place in the walk. */
static bool read_pair(const struct links_view *l, bool tree, const struct dag *d, int64_t p, int32_t *from,
                      int32_t *to) {
    if (!links_pair(l, p, from, to) || (tree && !links_pair_in_tree(l, p))) return false;
    *from = d->place[*from];
    *to = d->place[*to];
    return true;
}

void dag_read(const struct call *c, int64_t b, struct dag *d) {
    struct links_view l = view_of(c, b);
    bool tree = ((const struct dag_scan_attr *)c->attr)->tree;
    int32_t from, to;
    read_edges(&l, d);
    d->pairs = 0;
    for (int64_t e = 0; e <= d->edges; e++) d->start[e] = 0;
    for (int64_t p = 0; p < l.size.pairs; p++)
        if (read_pair(&l, tree, d, p, &from, &to)) {
            d->start[to + 1]++;
            d->pairs++;
        }
    for (int64_t e = 0; e < d->edges; e++) d->start[e + 1] += d->start[e];
    for (int64_t p = 0; p < l.size.pairs; p++) {
        if (!read_pair(&l, tree, d, p, &from, &to)) continue;
        int32_t at = d->start[to]++;
        d->from[at] = from;
        d->to[at] = to;
        d->pair_row[at] = (int32_t)p;
    }
}

void dag_clear_gates(const struct call *c, int64_t b, int64_t h) {
    for (int i = 4; i < DAG_SCAN_LINKS; i++) {
        int64_t rows = c->in[i]->dims[1];
        for (int64_t row = b * rows; c->din[i] && !call_accumulates(c, i) && row < (b + 1) * rows; row++)
            *head_din(c, i, row, h, 1) = 0;
    }
}
