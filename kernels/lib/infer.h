/* infer.h - attributes of the dense and elementwise ops, shared by their twins; and what their declarations share. */
#ifndef LRNN_KERNELS_DENSE_H
#define LRNN_KERNELS_DENSE_H

#include "core/philox.h"
#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

struct activate_attr {
    enum activation f;
};

struct scale_by_attr {
    double factor;
};

struct pool_attr {
    enum pooling how;
};

struct repeat_rows_attr {
    int64_t B, T;
};

struct norm_attr {
    double eps;
};

struct dropout_attr {
    double p; /* chance that an element is dropped, 0 < p < 1 */
};

/* Stores v into *d, or adds it there: how every gradient is written. */
LRNN_INLINE void put(real *d, bool accumulate, real v) {
    *d = accumulate ? *d + v : v;
}

/* Word e % 4 of block e / 4 of this sequence decides about element e: it is kept if the word is at least
 * dropout_threshold. Each call of a graph has its own sub-stream, each step its own index. */
LRNN_INLINE struct philox_block dropout_words_at(int index, const struct step_state *state, int64_t block) {
    return philox_at(state->seed, STREAM_DROPOUT + 256u * (uint32_t)index, (uint64_t)state->step, (uint32_t)block);
}

LRNN_INLINE struct philox_block dropout_words(const struct call *c, const struct step_state *state, int64_t block) {
    return dropout_words_at(c->index, state, block);
}

LRNN_INLINE uint32_t dropout_threshold(double p) {
    return (uint32_t)(p * 4294967295.0);
}

/* For op->infer. Each records the error and returns false when: input i is missing; two inputs differ in shape; the
 * last axis of `x` is not the length of the vector `v`. */
bool infer_present(struct graph *g, const struct call *c, int n_required);
bool infer_same_shape(struct graph *g, const struct call *c, int i, int j);
bool infer_vector(struct graph *g, const struct call *c, const struct tensor *x, const struct tensor *v,
                  const char *vector_name);

/* Records op over the inputs and returns its first output; NULL after an error. */
struct tensor *record1(struct graph *g, const struct op *op, const void *attr, size_t attr_bytes,
                       struct tensor *const *in, int n_in);

#ifdef __cplusplus
}
#endif
#endif
