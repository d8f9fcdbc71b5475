/* linked.cuh - the links of a call as the CUDA twins read them. Examples are small graphs, so a sum for a node or an
 * edge walks all links of the example, in double and in the reference's order. */
#ifndef LRNN_KERNELS_LINKS_LINKED_CUH
#define LRNN_KERNELS_LINKS_LINKED_CUH

#include "kernels/lib/cuda.cuh"
#include "kernels/links/links_call.h"

namespace {

/* Linked sequences of T nodes. */
struct linked {
    const int32_t *words;
    struct links_attr attr;
    int64_t T;

    __device__ struct links_view view(int64_t b) const {
        struct links_view l = {words + b * links_words(attr.size), attr.size, T, attr.reversed};
        return l;
    }
};

inline struct linked linked_of(const struct call *c, int64_t T) {
    struct linked k = {tensor_i32(c->in[1]), *links_attr(c), T};
    return k;
}

/* Calls visit(p, q) with both ends of each present edge of the example, in order. */
template <class F> __device__ __forceinline__ void each_edge(const struct links_view &l, F visit) {
    int32_t p, q;
    for (int64_t e = 0; e < l.size.edges; e++)
        if (links_edge(&l, e, &p, &q)) visit(p, q);
}

} // namespace

#endif
