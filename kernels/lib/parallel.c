/* parallel.c - sums over rows in fixed chunks. See parallel.h. */
#include "kernels/lib/parallel.h"

#include <string.h>

void sum_partials(int64_t n, int64_t parts, const real *partial, int64_t stride, real *out, bool accumulate) {
#pragma omp parallel for schedule(static) if (n * parts > PARALLEL_MIN)
    for (int64_t s = 0; s < span_count(n); s++) {
        struct range span = span_at(n, s);
        if (!accumulate) memset(out + span.begin, 0, (size_t)(span.end - span.begin) * sizeof *out);
        for (int64_t k = 0; k < parts; k++) {
            const real *p = partial + k * stride;
#pragma omp simd
            for (int64_t c = span.begin; c < span.end; c++) out[c] += p[c];
        }
    }
}

void chunk_sums(struct range rows, int64_t C, const real *a, const real *b, real *sum) {
    memset(sum, 0, (size_t)C * sizeof *sum);
    for (int64_t r = rows.begin; r < rows.end; r++) {
        const real *ar = a + r * C, *br = b ? b + r * C : NULL;
        if (br) {
#pragma omp simd
            for (int64_t c = 0; c < C; c++) sum[c] = real_fma(ar[c], br[c], sum[c]);
        } else {
#pragma omp simd
            for (int64_t c = 0; c < C; c++) sum[c] += ar[c];
        }
    }
}

struct scratch_rows column_partials(struct scratch *s, int64_t rows, int64_t C) {
    return scratch_rows(s, row_chunks(rows), C);
}

void column_sums(int64_t rows, int64_t C, const real *a, const real *b, real *out, bool accumulate,
                 struct scratch_rows partials) {
    int64_t chunks = row_chunks(rows);
#pragma omp parallel for schedule(static) if (rows * C > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++)
        chunk_sums(part_at(rows, chunks, k), C, a, b, partials.at + k * partials.stride);
    sum_partials(C, chunks, partials.at, partials.stride, out, accumulate);
}
