/* links_call.c - see links_call.h. */
#include "kernels/links/links_call.h"

#include <inttypes.h>
#include <stdlib.h>

struct tensor *call_on_links(struct graph *g, const struct op *op, struct tensor *x, const struct links *links,
                             int rule) {
    struct links_attr attr = {.size = links->size, .reversed = links->reversed, .rule = rule};
    return call1(g, op, &attr, sizeof attr, (struct tensor *[]){x, links->words}, 2);
}

bool infer_links(struct graph *g, const struct call *c, int i, struct links_size size, const struct tensor *x) {
    const struct tensor *words = c->in[i];
    if (size.edges >= 1 && size.pairs >= 1 && words->dtype == DT_I32 && words->rank == 2 &&
        words->dims[0] == x->dims[0] && words->dims[1] == links_words(size))
        return true;
    graph_fail(g, ST_USAGE,
               "%s: %" PRId64 " x %" PRId64 " words of links, expected %" PRId64 " x %" PRId64
               ", at least one of %" PRId64 " edges and %" PRId64 " pairs",
               c->op->name, words->dims[0], words->rank == 2 ? words->dims[1] : 0, x->dims[0], links_words(size),
               size.edges, size.pairs);
    return false;
}

/* Makes the links of T nodes in a row, each with edges to the next `reach` nodes. */
static struct links chain(struct graph *g, struct tensor *x, int64_t reach) {
    int64_t T = x->dims[1], n = 0;
    int32_t(*edges)[2] = malloc((size_t)(T * reach + 1) * sizeof *edges);
    uint64_t *scratch = malloc((size_t)links_scratch(T * reach + 1) * sizeof *scratch);
    for (int64_t tail = 0; edges && tail < T; tail++)
        for (int64_t head = tail + 1; head <= tail + reach && head < T; head++) {
            edges[n][0] = (int32_t)tail;
            edges[n++][1] = (int32_t)head;
        }
    struct links_size size = edges ? links_size_of(n, (const int32_t(*)[2])edges) : (struct links_size){1, 1};
    int32_t *words = input_table(g, links_words(size));
    if (!edges || !scratch) graph_fail(g, ST_MEMORY, "no memory for the links of %" PRId64 " nodes", T);
    if (g->error.status == ST_OK) links_fill(words, size, n, (const int32_t(*)[2])edges, scratch);
    free(edges);
    free(scratch);
    return fixed_links(g, x, NULL, words, size);
}

struct links input_links(struct graph *g, struct tensor *x, const struct op_sizes *s, int64_t shared) {
    static const int64_t reach[LINK_INPUTS] = {2, 1, 3, -1, 2, 0};
    int64_t kind = s->variant / shared;
    if (reach[kind] >= 0) {
        struct links links = chain(g, x, reach[kind]);
        links.reversed = kind == 4;
        tensor_keep(links.words); /* the tests read what an op was given */
        return links;
    }
    struct links links = {.size = {s->length + 2, 2 * s->length + 1}};
    links.words =
        graph_input_ids(g, "links", 2, (int64_t[]){s->batch, links_words(links.size)}, (int32_t)links.size.edges, true);
    return links;
}
