/* isomorphic.c - see isomorphic.h. */
#include "tasks/graph/isomorphic.h"

#include <string.h>

#define ROUNDS     8 /* after these, colours of molecules no longer change */
#define STEPS_MOST 1000000

/* Hashes 64 bits (the finaliser of splitmix64). */
static uint64_t mixed(uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31);
}

uint64_t graph_refine(const struct coloured_graph *g, uint64_t *scratch) {
    uint64_t hash = mixed((uint64_t)g->nodes) + mixed(~(uint64_t)g->edges);
    for (int round = 0; round < ROUNDS; round++) {
        for (int64_t v = 0; v < g->nodes; v++) scratch[v] = mixed(g->colour[v]);
        for (int64_t k = 0; k < g->edges; k++) {
            int32_t low = g->edge[k][0], high = g->edge[k][1];
            scratch[low] += mixed(g->colour[high] + 1); /* a sum: neighbours have no order */
            scratch[high] += mixed(g->colour[low] + 1);
        }
        for (int64_t v = 0; v < g->nodes; v++) g->colour[v] = mixed(scratch[v]);
    }
    for (int64_t v = 0; v < g->nodes; v++) hash += mixed(g->colour[v]);
    return hash;
}

static bool has_edge(const struct coloured_graph *g, int32_t a, int32_t b) {
    int32_t low = a < b ? a : b, high = a < b ? b : a;
    int64_t first = 0, end = g->edges;
    while (first < end) {
        int64_t middle = (first + end) / 2;
        const int32_t *edge = g->edge[middle];
        if (edge[0] == low && edge[1] == high) return true;
        if (edge[0] < low || (edge[0] == low && edge[1] < high))
            first = middle + 1;
        else
            end = middle;
    }
    return false;
}

/* The search for a numbering. */
struct matching {
    const struct coloured_graph *a, *b;
    int32_t *order; /* nodes of a, each next to an earlier node if possible */
    int32_t *image; /* in b, of the node at each place of the order */
    int32_t *used;  /* of b's nodes */
    int64_t steps;
};

/* Orders a's nodes from each part's first one outwards. `seen`: (nodes). */
static void order_nodes(struct matching *m, int32_t *seen) {
    int64_t n = 0, at = 0;
    memset(seen, 0, (size_t)m->a->nodes * sizeof *seen);
    for (int32_t root = 0; root < m->a->nodes; root++) {
        if (seen[root]) continue;
        seen[root] = 1;
        for (m->order[n++] = root; at < n; at++)
            for (int64_t k = 0; k < m->a->edges; k++) {
                const int32_t *edge = m->a->edge[k];
                if (edge[0] != m->order[at] && edge[1] != m->order[at]) continue;
                int32_t other = edge[0] == m->order[at] ? edge[1] : edge[0];
                if (!seen[other]) m->order[n++] = other;
                seen[other] = 1;
            }
    }
}

/* Whether b's node v can match the node at this place. Both graphs have equally many edges, so it suffices that each
 * edge of a is in b. */
static bool fits(const struct matching *m, int64_t place, int32_t v) {
    int32_t node = m->order[place];
    if (m->used[v] || m->a->colour[node] != m->b->colour[v]) return false;
    for (int64_t i = 0; i < place; i++)
        if (has_edge(m->a, node, m->order[i]) && !has_edge(m->b, v, m->image[i])) return false;
    return true;
}

static bool match_from(struct matching *m, int64_t place) {
    if (place == m->a->nodes || m->steps > STEPS_MOST) return true;
    for (int32_t v = 0; v < m->b->nodes; v++) {
        m->steps++;
        if (!fits(m, place, v)) continue;
        m->image[place] = v;
        m->used[v] = 1;
        if (match_from(m, place + 1)) return true;
        m->used[v] = 0;
    }
    return false;
}

bool graph_isomorphic(const struct coloured_graph *a, const struct coloured_graph *b, int32_t *work) {
    if (a->nodes != b->nodes || a->edges != b->edges) return false;
    struct matching m = {a, b, work, work + a->nodes, work + 2 * a->nodes, 0};
    order_nodes(&m, work + 3 * a->nodes);
    memset(m.used, 0, (size_t)b->nodes * sizeof *m.used);
    return match_from(&m, 0);
}
