/* dag.c - the entry of pLSTM on graphs. */
#include "kernels/plstm/plstm.h"
#include "library/library.h"

static void dag_scan_record(struct recorder *r, const lrnn_dag_scan *d) {
    int64_t H = library_size(r, "heads", d->heads, LIBRARY_SMALL);
    int64_t dk = library_size(r, "key", d->key, LIBRARY_LARGE), dv = library_size(r, "value", d->value, LIBRARY_LARGE);
    struct links_size size = {library_size(r, "edges", d->edges, INT32_MAX / 8),
                              library_size(r, "pairs", d->pairs, INT32_MAX / 8)};
    struct links links = {.size = size, .reversed = library_choice(r, "reversed", d->reversed, 2)};
    bool tree = library_choice(r, "tree", d->tree, 2);
    if (r->call->length == 0) graph_fail(r->graph, ST_USAGE, "length=0, expected the number of nodes");
    links.words = library_numbers(r, "links", d->links, links_words(size));
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
