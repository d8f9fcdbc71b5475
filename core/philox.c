/* philox.c - integers, normals and permutations out of Philox words. See philox.h. */
#include "core/philox.h"

#include <math.h>

#define PERMUTE_ROUNDS 8

/* Up to 2^32 one word is enough: multiply and shift, rejecting the few products that would favour some values (Lemire
 * 2019, "Fast random integer generation in an interval"). Beyond, bits are drawn until they fall below n. */
uint64_t rng_below(struct rng *r, uint64_t n) {
    if (n <= UINT32_MAX) {
        uint32_t size = (uint32_t)n;
        uint64_t product = (uint64_t)rng_u32(r) * size;
        if ((uint32_t)product < size) {
            uint32_t reject = (0u - size) % size; /* 2^32 mod n */
            while ((uint32_t)product < reject) product = (uint64_t)rng_u32(r) * size;
        }
        return product >> 32;
    }
    uint64_t mask = n - 1;
    for (int shift = 1; shift < 64; shift *= 2) mask |= mask >> shift;
    uint64_t value;
    do value = rng_u64(r) & mask;
    while (value >= n);
    return value;
}

double rng_normal(struct rng *r) {
    double radius = sqrt(-2.0 * log(1.0 - rng_uniform(r))); /* 1 - u lies in (0, 1] */
    return radius * cos(2.0 * 3.14159265358979323846 * rng_uniform(r));
}

/* Each round maps (left, right) to (right, left ^ F(right)), which is invertible whatever F is. The third word of the
 * counter has its top bit set: no philox_at of a stream meets it. */
static uint64_t feistel(uint64_t seed, uint32_t stream, uint64_t epoch, uint64_t value, int half_bits) {
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

/* The domain has less than 4 n elements; leaving [0, n) and walking on along the cycle comes back to it, because the
 * start lies inside, and takes less than four steps on average. */
uint64_t permute_index(uint64_t seed, uint32_t stream, uint64_t epoch, uint64_t i, uint64_t n) {
    int half_bits = 0;
    while (UINT64_C(1) << (2 * half_bits) < n) half_bits++;
    do i = feistel(seed, stream, epoch, i, half_bits);
    while (i >= n);
    return i;
}
