/* dropout.h - decides which elements are dropped. All kernels of dropout use it. */
#ifndef LRNN_KERNELS_DENSE_DROPOUT_H
#define LRNN_KERNELS_DENSE_DROPOUT_H

#include "core/op.h"
#include "core/philox.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the random words of elements 4 * block to 4 * block + 3. Element e is kept if its word, number e % 4, is at
 * least dropout_threshold. Each call of a graph has its own stream of words, and each step its own index. */
LRNN_INLINE struct philox_block dropout_words_at(int stream, const struct step_state *state, int64_t block) {
    return philox_at(state->seed, STREAM_DROPOUT + 256u * (uint32_t)stream, (uint64_t)state->step, (uint32_t)block);
}

LRNN_INLINE struct philox_block dropout_words(const struct call *c, const struct step_state *state, int64_t block) {
    return dropout_words_at(c->stream, state, block);
}

LRNN_INLINE uint32_t dropout_threshold(double p) {
    return (uint32_t)(p * 4294967295.0);
}

#ifdef __cplusplus
}
#endif
#endif
