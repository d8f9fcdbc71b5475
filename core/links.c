/* links.c - see links.h. */
#include "core/links.h"

#include <string.h>

struct links_size links_size_of(int64_t n, const int32_t (*edges)[2]) {
    struct links_size size = {n > 0 ? n : 1, 0};
    for (int64_t to = 0; to < n; to++)
        for (int64_t from = 0; from < to; from++) size.pairs += edges[from][1] == edges[to][0];
    if (size.pairs == 0) size.pairs = 1;
    return size;
}

/* --- multitree: pLSTM, section 3.2, D-mode, with Kahn's order, the smallest (tail, head) first -------------------- */

static int64_t row_words(int64_t n) {
    return (n + 63) / 64;
}

int64_t links_scratch(int64_t n) {
    return n * row_words(n) + 1;
}

/* Returns true if no ancestor of edge `from` reaches edge `to` yet; then it adds `from` and its ancestors to the
 * ancestors of `to`. Row e of `ancestors` has a bit for each edge that reaches edge e. */
static bool keep_in_tree(uint64_t *ancestors, int64_t n, int64_t from, int64_t to) {
    uint64_t *of_from = ancestors + from * row_words(n), *of_to = ancestors + to * row_words(n);
    for (int64_t w = 0; w < row_words(n); w++)
        if (of_from[w] & of_to[w]) return false;
    for (int64_t w = 0; w < row_words(n); w++) of_to[w] |= of_from[w];
    of_to[from / 64] |= (uint64_t)1 << (from % 64);
    return true;
}

void links_fill(int32_t *words, struct links_size room, int64_t n, const int32_t (*edges)[2], uint64_t *scratch) {
    int32_t *pair = words + LINK_EDGE_WORDS * room.edges, *end = words + links_words(room);
    for (int32_t *w = words; w < end; w++) *w = IGNORED;
    if (n > 0) memset(scratch, 0, (size_t)links_scratch(n) * sizeof *scratch);
    for (int64_t to = 0; to < n; to++) {
        words[LINK_EDGE_WORDS * to] = edges[to][0];
        words[LINK_EDGE_WORDS * to + 1] = edges[to][1];
        for (int64_t from = 0; from < to; from++) {
            if (edges[from][1] != edges[to][0]) continue;
            pair[0] = (int32_t)from;
            pair[1] = (int32_t)to;
            pair[2] = keep_in_tree(scratch, n, from, to) ? 0 : IGNORED;
            pair += LINK_PAIR_WORDS;
        }
    }
}
