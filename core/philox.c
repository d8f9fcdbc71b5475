/* philox.c - integers and normals out of Philox words. See philox.h. */
#include "core/philox.h"

#include <math.h>

/* If n is at most 2^32, one word is enough: multiply and shift, and reject the few products that would favour some
 * values (Lemire 2019, "Fast random integer generation in an interval"). If n is larger, bits are drawn until they are
 * below n. */
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
    double radius = sqrt(-2.0 * log(1.0 - rng_uniform(r))); /* 1 - u is in (0, 1] */
    return radius * cos(2.0 * 3.14159265358979323846 * rng_uniform(r));
}
