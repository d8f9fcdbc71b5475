/* parallel.h - how CPU kernels divide their work among threads.
 *
 * The work is divided into spans of elements or chunks of rows, and one thread computes each of them. This depends only
 * on sizes. Sums over chunks are added in the order of the chunks. So no result depends on the number of threads. */
#ifndef LRNN_KERNELS_LIB_PARALLEL_H
#define LRNN_KERNELS_LIB_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>

#include "kernels/lib/scratch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the number of threads of this thread's parallel regions, and starts them: `wanted`, or OpenMP's default for 0.
 * Returns the number in *threads unless that is NULL. ST_FAIL: the system refuses a thread, where OpenMP would end the
 * process. */
enum status parallel_start(int64_t wanted, int64_t *threads, struct error *e);

/* least elements for which threads are used; for fewer, starting them (1 to 4 us) costs more than it gains */
#define PARALLEL_MIN   32768
#define SPAN           8192 /* elements of a span of elementwise work: 32 KB per array */
#define ROW_CHUNK      128  /* least rows of a chunk */
#define MAX_ROW_CHUNKS 16

struct range {
    int64_t begin, end;
};

LRNN_INLINE int64_t span_count(int64_t n) {
    return (n + SPAN - 1) / SPAN;
}

LRNN_INLINE struct range span_at(int64_t n, int64_t i) {
    struct range r = {i * SPAN, (i + 1) * SPAN < n ? (i + 1) * SPAN : n};
    return r;
}

/* Returns the number of chunks for `rows` rows, 1..MAX_ROW_CHUNKS. */
LRNN_INLINE int64_t row_chunks(int64_t rows) {
    int64_t n = rows / ROW_CHUNK;
    return n < 1 ? 1 : n > MAX_ROW_CHUNKS ? MAX_ROW_CHUNKS : n;
}

/* Returns part i of n things that are divided into `parts` nearly equal parts. */
LRNN_INLINE struct range part_at(int64_t n, int64_t parts, int64_t i) {
    struct range r = {n * i / parts, n * (i + 1) / parts};
    return r;
}

/* Computes out[c] (+)= sum over k, in order, of partial[k * stride + c], for c < n. */
void sum_partials(int64_t n, int64_t parts, const real *partial, int64_t stride, real *out, bool accumulate);

/* Computes out[c] (+)= sum over rows of a[r][c] * b[r][c], or of a[r][c] if b is NULL: rows x C, in chunks of rows.
 * `partials` comes from column_partials(s, rows, C). */
struct scratch_rows column_partials(struct scratch *s, int64_t rows, int64_t C);
void column_sums(int64_t rows, int64_t C, const real *a, const real *b, real *out, bool accumulate,
                 struct scratch_rows partials);

/* Computes sum[c] = sum of a[r][c] (times b[r][c]) over the rows r of one chunk, on the calling thread. */
void chunk_sums(struct range rows, int64_t C, const real *a, const real *b, real *sum);

#ifdef __cplusplus
}
#endif
#endif
