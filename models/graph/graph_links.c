/* graph_links.c - see graph_links.h. */
#include "models/graph/graph_links.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define EDGES_MAX (OPTION_TEXT / 4) /* "0-1," is the shortest edge */

struct edges {
    int64_t n;
    int32_t ends[EDGES_MAX][2]; /* tail, head */
};

/* Reads a number of at most nine digits and moves *text past it; -1 if there is none. */
static int32_t read_node(const char **text) {
    int32_t value = 0;
    int digits = 0;
    for (; **text >= '0' && **text <= '9' && digits < 9; digits++) value = 10 * value + (*(*text)++ - '0');
    return digits ? value : -1;
}

static enum status parse_edges(const char *mixer, const char *text, struct edges *s, struct error *e) {
    s->n = 0;
    if (!strcmp(text, "none")) return ST_OK;
    for (const char *at = text; *at;) {
        if (s->n > 0 && (*at == ',' || *at == '+')) at++;
        const char *start = at;
        int32_t tail = read_node(&at), dash = *at++ == '-' ? 1 : 0, head = dash ? read_node(&at) : -1;
        if (tail < 0 || head < 0 || (*at && *at != ',' && *at != '+') || s->n == EDGES_MAX)
            return fail(e, ST_USAGE, "%s: edges has '%.20s' where an edge tail-head was expected, such as 0-1+0-2+1-2",
                        mixer, start);
        s->ends[s->n][0] = tail;
        s->ends[s->n++][1] = head;
    }
    return ST_OK;
}

static enum status check_edges(const char *mixer, const struct edges *s, int64_t nodes, struct error *e) {
    for (int64_t i = 0; i < s->n; i++) {
        int32_t tail = s->ends[i][0], head = s->ends[i][1];
        if (tail >= nodes || head >= nodes)
            return fail(e, ST_USAGE, "%s: edge %d-%d, but the length %" PRId64 " gives nodes 0 to %" PRId64, mixer,
                        tail, head, nodes, nodes - 1);
        if (tail >= head)
            return fail(
                e, ST_USAGE,
                "%s: edge %d-%d does not lead from a lower to a higher node; number them so that each edge does", mixer,
                tail, head);
        if (i > 0 && (s->ends[i - 1][0] > tail || (s->ends[i - 1][0] == tail && s->ends[i - 1][1] >= head)))
            return fail(e, ST_USAGE, "%s: edge %d-%d stands after %d-%d; list each edge once, by tail, then head",
                        mixer, tail, head, s->ends[i - 1][0], s->ends[i - 1][1]);
    }
    return ST_OK;
}

enum status graph_links_check(const char *mixer, const char *edges, const struct dims *d, struct error *e) {
    struct edges s;
    bool path = strcmp(edges, "path") == 0;
    if (d->links.edges > 0 && !path)
        return fail(e, ST_USAGE, "%s: the task's examples are graphs; leave edges=%.40s out", mixer, edges);
    if (path) return ST_OK;
    TRY(parse_edges(mixer, edges, &s, e));
    return check_edges(mixer, &s, d->T, e);
}

int64_t graph_links_edges(const char *edges, const struct dims *d) {
    struct edges s;
    struct error e;
    if (d->links.edges > 0) return d->links.edges;
    if (strcmp(edges, "path") == 0) return d->T - 1;
    return parse_edges("", edges, &s, &e) == ST_OK ? s.n : 0;
}

/* Lists the edges that the text names: a path through all positions, or single edges. Stores their number in *n. The
 * caller frees the list. */
static int32_t (*list_edges(const char *text, int64_t nodes, int64_t *n, struct error *e))[2] {
    struct edges s = {0};
    bool path = strcmp(text, "path") == 0;
    if (!path && parse_edges("edges", text, &s, e) != ST_OK) return NULL;
    *n = path ? nodes - 1 : s.n;
    int32_t(*list)[2] = malloc((size_t)(*n + 1) * sizeof *list);
    for (int64_t i = 0; list && i < *n; i++) {
        list[i][0] = path ? (int32_t)i : s.ends[i][0];
        list[i][1] = path ? (int32_t)i + 1 : s.ends[i][1];
    }
    return list;
}

static struct links named_links(const char *text, struct graph *g, struct tensor *x) {
    struct links none = {0};
    struct error e = {0};
    int64_t n = 0;
    int32_t(*edges)[2] = list_edges(text, x->dims[1], &n, &e);
    uint64_t *scratch = edges ? malloc((size_t)links_scratch(n) * sizeof *scratch) : NULL;
    struct links_size size = edges ? links_size_of(n, (const int32_t(*)[2])edges) : none.size;
    int32_t *words = scratch ? graph_alloc(g, (size_t)links_words(size) * sizeof *words) : NULL;
    if (e.status != ST_OK) graph_fail(g, e.status, "%s", e.text);
    if (!scratch) graph_fail(g, ST_MEMORY, "no room for the links of %" PRId64 " nodes", x->dims[1]);
    if (words) links_fill(words, size, n, (const int32_t(*)[2])edges, scratch);
    free(scratch);
    free(edges);
    return words ? fixed_links(g, x, graph_builder(g)->lengths, words, size) : none;
}

struct links graph_links(const char *edges, struct graph *g, struct tensor *x) {
    struct links *shared = &graph_builder(g)->links;
    if (!shared->words) *shared = named_links(edges, g, x);
    return *shared;
}

int64_t graph_no_state(const void *inst, const struct dims *d) {
    (void)inst, (void)d;
    return 0;
}
