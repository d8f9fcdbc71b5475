/* round.c - see round.h. */
#include "kernels/lib/round.h"

#include "kernels/lib/parallel.h"

static void round_span(enum precision p, struct range r, const real *from, real *to) {
    if (p == PRECISION_TF32) {
#pragma omp simd
        for (int64_t i = r.begin; i < r.end; i++) to[i] = rounded(PRECISION_TF32, from[i]);
    } else if (p == PRECISION_BF16) {
#pragma omp simd
        for (int64_t i = r.begin; i < r.end; i++) to[i] = rounded(PRECISION_BF16, from[i]);
    } else {
        memcpy(to + r.begin, from + r.begin, (size_t)(r.end - r.begin) * sizeof *to);
    }
}

void round_reals(enum precision p, int64_t n, const real *from, real *to) {
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t s = 0; s < span_count(n); s++) round_span(p, span_at(n, s), from, to);
}

void round_to_bf16(int64_t n, const real *from, uint16_t *to) {
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t s = 0; s < span_count(n); s++) {
        struct range r = span_at(n, s);
#pragma omp simd
        for (int64_t i = r.begin; i < r.end; i++) to[i] = bf16_bits(from[i]);
    }
}
