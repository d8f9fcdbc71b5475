/* inverse.h - lists for each entry of a table the places that name the entry, so that the entry's gradient can be
 * summed in a fixed order. */
#ifndef LRNN_KERNELS_LIB_INVERSE_H
#define LRNN_KERNELS_LIB_INVERSE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns how many numbers inverse_fill writes for n places and m entries. */
static inline int64_t inverse_count(int64_t n, int64_t m) {
    return m + 1 + n;
}

/* Writes start[m + 1], then a list of places. The places i < n with which[i] = e are at [start[e], start[e + 1]) of the
 * list, in ascending order. A negative which[i] names no entry. */
static inline void inverse_fill(int64_t n, const int32_t *which, int64_t m, int32_t *start) {
    int32_t *place = start + m + 1;
    for (int64_t e = 0; e <= m; e++) start[e] = 0;
    for (int64_t i = 0; i < n; i++)
        if (which[i] >= 0) start[which[i] + 1]++;
    for (int64_t e = 0; e < m; e++) start[e + 1] += start[e];
    for (int64_t i = 0; i < n; i++)
        if (which[i] >= 0) place[start[which[i]]++] = (int32_t)i;
    for (int64_t e = m; e > 0; e--) start[e] = start[e - 1];
    start[0] = 0;
}

#ifdef __cplusplus
}
#endif
#endif
