/* parallel.c - sums over rows in fixed chunks. See parallel.h. */
#include "kernels/lib/parallel.h"

#include <errno.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void *pass(void *gate) {
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/* Threads of our own come first, all at once, because only these can be refused without an end of the process. */
enum status parallel_start(int64_t wanted, int64_t *threads, struct error *e) {
    int n = wanted > 0 ? (int)wanted : omp_get_max_threads(), started = 0, reason = 0;
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t *list = calloc((size_t)n, sizeof *list);
    if (!list) return fail(e, ST_MEMORY, "no memory for %d threads", n);
    pthread_mutex_lock(&gate);
    while (started < n - 1 && !(reason = pthread_create(&list[started], NULL, pass, &gate))) started++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++) pthread_join(list[i], NULL);
    free(list);
    if (reason)
        return fail(e, ST_FAIL,
                    "cannot start %d threads: %s; end other processes, raise the limit of threads (ulimit -u), or take "
                    "fewer (--threads 1)",
                    n, strerror(reason));
    omp_set_num_threads(n);
#pragma omp parallel if (n > 1)
    (void)omp_get_thread_num(); /* so that OpenMP starts its threads here */
    if (threads) *threads = n;
    return ST_OK;
}

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
