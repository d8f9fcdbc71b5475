/* gemm.c - products that no library computes: factors in bf16 are first converted to `real`. See gemm.h. */
#include "kernels/lib/gemm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/status.h"

/* Returns the matrix converted to `real`, without gaps between rows; the caller frees it. Ends the process if there is
 * no memory, because a kernel cannot return an error. */
static real *widened(int64_t rows, int64_t columns, const uint16_t *from, int64_t ld) {
    real *to = malloc((size_t)(rows * columns) * sizeof *to);
    if (!to) {
        fputs("lrnn: no memory for the factor of a matrix product\n", stderr);
        _exit(status_exit_code(ST_MEMORY));
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            uint32_t bits = (uint32_t)from[r * ld + c] << 16;
            float x;
            memcpy(&x, &bits, sizeof x);
            to[r * columns + c] = x;
        }
    return to;
}

/* The bias is written to C first, and the product is added to it. */
void gemm_widened(bool transpose_a, bool transpose_b, int64_t M, int64_t N, int64_t K, const uint16_t *A, int64_t lda,
                  const uint16_t *B, int64_t ldb, const real *bias, bool add, real *C, int64_t ldc) {
    if (M <= 0 || N <= 0) return;
    int64_t wide_a = transpose_a ? M : K, wide_b = transpose_b ? K : N;
    real *a = widened(transpose_a ? K : M, wide_a, A, lda), *b = widened(transpose_b ? N : K, wide_b, B, ldb);
    for (int64_t r = 0; r < M && bias; r++)
        for (int64_t c = 0; c < N; c++) C[r * ldc + c] = add ? C[r * ldc + c] + bias[c] : bias[c];
    real_gemm(transpose_a, transpose_b, M, N, K, 1, a, wide_a, b, wide_b, add || bias, C, ldc);
    free(a);
    free(b);
}
