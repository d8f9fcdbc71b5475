/* dag.c - the entry of pLSTM on graphs. */
#include <inttypes.h>

#include "kernels/plstm/plstm.h"
#include "library/library.h"

/* Fails unless a row of links is as lrnn.h says: the kernels leave out what is no edge of theirs. */
static bool links_fit(const struct recorder *r, const int32_t *row, struct error *e) {
    const lrnn_dag_scan *d = (const lrnn_dag_scan *)(const void *)r->call;
    const int32_t *pairs = row + 2 * d->edges, *before = NULL;
    for (int64_t i = 0; i < d->edges; i++) {
        const int32_t *edge = row + 2 * i;
        if (edge[0] == -1 && edge[1] == -1) continue;
        if (edge[0] < 0 || edge[0] >= edge[1] || edge[1] >= r->T) {
            fail(e, ST_USAGE,
                 "edge %" PRId64 " leads from %d to %d, expected nodes from 0 to %" PRId64
                 ", the tail below the head, or -1 and -1",
                 i, edge[0], edge[1], r->T - 1);
            return false;
        }
        if (before && (edge[0] < before[0] || (edge[0] == before[0] && edge[1] < before[1]))) {
            fail(e, ST_USAGE,
                 "edge %" PRId64 ", from %d to %d, comes after one from %d to %d, expected edges that ascend "
                 "by (tail, head)",
                 i, edge[0], edge[1], before[0], before[1]);
            return false;
        }
        before = edge;
    }
    for (int64_t i = 0; i < d->pairs; i++) {
        const int32_t *pair = pairs + 3 * i, from = pair[0], to = pair[1];
        if (from == -1 && to == -1) continue;
        bool edges = from >= 0 && from < to && to < d->edges;
        if (!edges || row[2 * from] < 0 || row[2 * from + 1] != row[2 * to] || pair[2] < -1 || pair[2] > 0) {
            fail(e, ST_USAGE,
                 "pair %" PRId64 " is %d, %d, %d, expected an edge, a later one that begins where it ends, "
                 "and 0 or -1; or three times -1",
                 i, from, to, pair[2]);
            return false;
        }
    }
    return true;
}

static void dag_scan_record(struct recorder *r, const lrnn_dag_scan *d) {
    int64_t H = library_size(r, "heads", d->heads, LIBRARY_SMALL);
    int64_t dk = library_size(r, "key", d->key, LIBRARY_LARGE), dv = library_size(r, "value", d->value, LIBRARY_LARGE);
    struct links_size size = {library_size(r, "edges", d->edges, INT32_MAX / 8),
                              library_size(r, "pairs", d->pairs, INT32_MAX / 8)};
    struct links links = {.size = size, .reversed = library_choice(r, "reversed", d->reversed, 2)};
    bool tree = library_choice(r, "tree", d->tree, 2);
    if (r->call->length == 0) graph_fail(r->graph, ST_USAGE, "length=0, expected the number of nodes");
    links.words = library_numbers(r, "links", d->links, links_words(size), links_fit);
    struct tensor *q = library_tokens(r, "q", &d->q, H * dk), *k = library_tokens(r, "k", &d->k, H * dk);
    struct tensor *v = library_tokens(r, "v", &d->v, H * dv);
    struct tensor *source = library_rows(r, "source", &d->source, size.edges, H);
    struct tensor *mark = library_rows(r, "mark", &d->mark, size.edges, H);
    struct tensor *transition = library_rows(r, "transition", &d->transition, size.pairs, H);
    struct tensor *direct = library_tokens(r, "direct", &d->direct, H);
    library_output(r, "y", &d->y,
                   dag_scan(r->graph, q, k, v, source, mark, transition, direct, &links, tree, H, d->scale));
}
LIBRARY_OP(dag_scan, y, false)
