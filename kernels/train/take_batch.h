/* take_batch.h - the example of a split that a row of a batch copies, shared by the twins of take_batch. */
#ifndef LRNN_KERNELS_TRAIN_TAKE_BATCH_H
#define LRNN_KERNELS_TRAIN_TAKE_BATCH_H

#include "core/batch.h"
#include "core/philox.h"
#include "kernels/train/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Inputs of the call, copied as words of 4 bytes. Lengths and links are optional, in both places. */
enum { TAKE_INPUT, TAKE_TARGETS, TAKE_LENGTHS, TAKE_LINKS, TAKE_ARRAYS };

/* The value of all words of a row without an example. */
LRNN_INLINE int32_t take_batch_empty(int array) {
    return array == TAKE_TARGETS || array == TAKE_LINKS ? IGNORED : 0;
}

/* Words of a row. */
LRNN_INLINE int64_t take_batch_words(const struct tensor *t) {
    return (int64_t)(tensor_bytes(t) / sizeof(int32_t)) / t->dims[0];
}

/* The example, of a split of n, in row `row` of the batch of B rows of step `step`; -1 = none. */
LRNN_INLINE int64_t take_batch_example(const struct take_batch_attr *attr, int64_t step, int64_t B, int64_t row,
                                       int64_t n) {
    uint64_t at = (uint64_t)(step * B + row), period = (uint64_t)attr->period, i = at % period;
    if (i >= (uint64_t)n) return -1;
    return (int64_t)permute_index(attr->seed, STREAM_SHUFFLE, at / period, i, (uint64_t)n);
}

#ifdef __cplusplus
}
#endif
#endif
