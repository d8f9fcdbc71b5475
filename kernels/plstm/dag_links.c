/* dag_links.c - see dag_links.h. */
#include "kernels/plstm/dag_links.h"

struct dag dag_of(const struct call *c, struct scratch *s) {
    struct links_size room = dag_scan_attr(c)->size;
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

void dag_read(const struct call *c, int64_t b, struct dag *d) {
    const struct dag_scan_attr *a = dag_scan_attr(c);
    const int32_t *words = tensor_i32(c->in[DAG_SCAN_LINKS]) + b * links_words(a->size);
    struct links_view l = {words, a->size, c->in[0]->dims[1], a->reversed};
    dag_read_links(&l, a->tree, d);
}

void dag_clear_gates(const struct call *c, int64_t b, int64_t h) {
    for (int i = 4; i < DAG_SCAN_LINKS; i++) {
        int64_t rows = c->in[i]->dims[1];
        for (int64_t row = b * rows; c->din[i] && !call_accumulates(c, i) && row < (b + 1) * rows; row++)
            *head_din(c, i, row, h, 1) = 0;
    }
}
