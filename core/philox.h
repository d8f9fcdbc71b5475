/* philox.h - random numbers from a counter: Philox4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1,
 * 2, 3").
 *
 * There is no hidden state. A number is a pure function of (seed, stream, index, position), so any thread and any
 * device can make example i of a split without making those before it. */
#ifndef LRNN_CORE_PHILOX_H
#define LRNN_CORE_PHILOX_H

#include <stdint.h>

#include "core/real.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Different uses of one seed. The values are part of the numerics version: append new ones, never renumber. */
enum rng_stream {
    STREAM_INIT = 1,     /* initial parameters; index: hash of the parameter's name; position: element */
    STREAM_DATA = 2,     /* examples of a task; index = example */
    STREAM_SHUFFLE = 3,  /* order of the training examples; index = epoch */
    STREAM_DROPOUT = 4,  /* dropout masks; index: step; each op has its own sub-stream */
    STREAM_TABLE = 5,    /* tables that a task draws once */
    STREAM_TEST = 6,     /* inputs of tests */
    STREAM_BOOTSTRAP = 7 /* resampling of statistics */
};

struct philox_block {
    uint32_t word[4];
};

/* Maps the 128-bit counter to random bits under the 64-bit key, in ten rounds; the map is one to one, as in
 * Random123. */
LRNN_INLINE struct philox_block philox4x32(struct philox_block counter, uint32_t key0, uint32_t key1) {
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * counter.word[0];
        uint64_t p1 = (uint64_t)0xCD9E8D57u * counter.word[2];
        struct philox_block next = {{(uint32_t)(p1 >> 32) ^ counter.word[1] ^ key0, (uint32_t)p1,
                                     (uint32_t)(p0 >> 32) ^ counter.word[3] ^ key1, (uint32_t)p0}};
        counter = next;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

/* Returns block `block` of the sequence (seed, stream, index). */
LRNN_INLINE struct philox_block philox_at(uint64_t seed, uint32_t stream, uint64_t index, uint32_t block) {
    struct philox_block counter = {{(uint32_t)index, (uint32_t)(index >> 32), stream, block}};
    return philox4x32(counter, (uint32_t)seed, (uint32_t)(seed >> 32));
}

/* Reads one sequence, four words at a time. */
struct rng {
    uint64_t seed, index;
    uint32_t stream, block;
    struct philox_block words;
    int left; /* number of words in `words` that are not read yet */
};

LRNN_INLINE struct rng rng_at(uint64_t seed, uint32_t stream, uint64_t index) {
    struct rng r = {seed, index, stream, 0, {{0, 0, 0, 0}}, 0};
    return r;
}

LRNN_INLINE uint32_t rng_u32(struct rng *r) {
    if (r->left == 0) {
        r->words = philox_at(r->seed, r->stream, r->index, r->block++);
        r->left = 4;
    }
    return r->words.word[4 - r->left--];
}

LRNN_INLINE uint64_t rng_u64(struct rng *r) {
    uint64_t low = rng_u32(r);
    return low | (uint64_t)rng_u32(r) << 32;
}

/* Returns a uniform integer in [0, n), n >= 1, without bias (by rejection). */
uint64_t rng_below(struct rng *r, uint64_t n);

/* Returns a uniform number in [0, 1) with 53 random bits. */
LRNN_INLINE double rng_uniform(struct rng *r) {
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

/* Returns a standard normal number (Box-Muller, the cosine branch). Each draw takes two uniform numbers, so that the
 * position stays predictable. */
double rng_normal(struct rng *r);

/* --- permutations ------------------------------------------------------------------------------------------------- */

#define PERMUTE_ROUNDS 8

/* Maps (left, right) to (right, left ^ F(right)), which is invertible for any F. The third word of the counter has its
 * top bit set, so the counter differs from every counter of philox_at. */
LRNN_INLINE uint64_t permute_once(uint64_t seed, uint32_t stream, uint64_t epoch, uint64_t value, int half_bits) {
    uint32_t mask = (uint32_t)((UINT64_C(1) << half_bits) - 1);
    uint32_t left = (uint32_t)(value >> half_bits), right = (uint32_t)value & mask;
    for (uint32_t round = 0; round < PERMUTE_ROUNDS; round++) {
        struct philox_block counter = {
            {right, (uint32_t)epoch, 0x80000000u | round << 16 | stream, (uint32_t)(epoch >> 32)}};
        uint32_t f = philox4x32(counter, (uint32_t)seed, (uint32_t)(seed >> 32)).word[0];
        uint32_t next = left ^ (f & mask);
        left = right;
        right = next;
    }
    return (uint64_t)left << half_bits | right;
}

/* Maps [0, n), n >= 1, one to one to itself, depending on a key: a Feistel network over the next power of four, with
 * cycle walking. It gives each epoch's shuffled order, and distinct training examples, without storing them.
 *
 * If a result is outside [0, n), the map is applied again. This comes back to [0, n), because it started there and the
 * map is one to one. The domain has fewer than 4 n elements, so it takes fewer than four steps on average. */
LRNN_INLINE uint64_t permute_index(uint64_t seed, uint32_t stream, uint64_t epoch, uint64_t i, uint64_t n) {
    int half_bits = 0;
    while (UINT64_C(1) << (2 * half_bits) < n) half_bits++;
    do i = permute_once(seed, stream, epoch, i, half_bits);
    while (i >= n);
    return i;
}

#ifdef __cplusplus
}
#endif
#endif
