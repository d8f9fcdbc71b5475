/* links_call.h - code that the ops on links share: checks, the links of a call, inputs for tests. Only kernels use it.
 */
#ifndef LRNN_KERNELS_LINKS_LINKS_CALL_H
#define LRNN_KERNELS_LINKS_LINKS_CALL_H

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/links/links.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Calls op on x and the words; NULL after an error. */
struct tensor *call_on_links(struct graph *g, const struct op *op, struct tensor *x, const struct links *links,
                             int rule);

/* For op->infer: checks that input i has the links, (B, links_words), of sequences like x. If not, sets the graph's
 * error. */
bool infer_links(struct graph *g, const struct call *c, int i, struct links_size size, const struct tensor *x);

/* Returns the links of sequence b with T positions. They are input i of the call. */
LRNN_INLINE struct links_view links_of(const struct call *c, int i, struct links_size size, bool reversed, int64_t b,
                                       int64_t T) {
    struct links_view l = {(const int32_t *)c->in[i]->data + b * links_words(size), size, T, reversed};
    return l;
}

/* Like the function above, for an op whose attribute is a links_attr and whose words are the input after x. */
LRNN_INLINE struct links_view links_at(const struct call *c, int64_t b, int64_t T) {
    const struct links_attr *a = links_attr(c);
    return links_of(c, 1, a->size, a->reversed, b, T);
}

/* For op->build: makes links of sequences like x. The number s->variant / `shared` < LINK_INPUTS chooses them: 0: edges
 * from each node to the next two, 1: to the next one, 2: to the next three, 3: random words, 4: like 0 but reversed,
 * 5: no edge. */
#define LINK_INPUTS 6
struct links input_links(struct graph *g, struct tensor *x, const struct op_sizes *s, int64_t shared);

#ifdef __cplusplus
}
#endif
#endif
