/* check_products.c - the one door to matrix products against sums in double: every layout, sum and bias, at sizes that
 * do not divide by anything, and the same bits on every thread; factors of 16 bits against the same ones widened. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/philox.h"
#include "core/status.h"
#include "kernels/lib/gemm.h"
#include "kernels/lib/round.h"
#include "tests/lib/alloc_count.h"
#include "tests/lib/cpuinfo.h"
#include "tests/lib/support.h"

#define LARGEST 160 /* rows and columns of a matrix in memory, their gaps included */
#define PLACES  (LARGEST * LARGEST)

/* The last three: a row, a column, and a product of two of them, which lie in memory with gaps as well. */
static const int64_t sizes[][3] = {{1, 1, 1},      {3, 7, 5},   {16, 48, 32}, {33, 6, 129},
                                   {100, 120, 64}, {1, 33, 17}, {33, 1, 17},  {17, 33, 1}};
#define N_SIZES ((int)(sizeof sizes / sizeof *sizes))

static real A[PLACES], B[PLACES], before[PLACES], C[PLACES], bias[LARGEST];

static void fill(real *x, uint64_t stream) {
    struct rng r = rng_at(7, STREAM_TEST, stream);
    for (int i = 0; i < PLACES; i++) x[i] = (real)(2 * rng_uniform(&r) - 1);
}

static void set_up(void) {
    gemm_init();
    fill(A, 1);
    fill(B, 2);
    fill(before, 3);
    memcpy(bias, before, sizeof bias);
}

/* One product of three sizes in memory with `gap` numbers between rows. */
struct product {
    int64_t M, N, K, lda, ldb, ldc;
    bool ta, tb, add;
    double alpha;
};

static struct product product_of(const int64_t size[3], int form, int64_t gap) {
    struct product p = {.M = size[0], .N = size[1], .K = size[2], .ta = form & 1, .tb = form & 2, .add = form & 4};
    p.alpha = form & 8 ? 0.25 : 1;
    p.lda = (p.ta ? p.M : p.K) + gap;
    p.ldb = (p.tb ? p.K : p.N) + gap;
    p.ldc = p.N + gap;
    return p;
}

static void multiply(const struct product *p, real *to) {
    memcpy(to, before, sizeof before);
    real_gemm(p->ta, p->tb, p->M, p->N, p->K, (real)p->alpha, A, p->lda, B, p->ldb, p->add, to, p->ldc);
}

/* Memory that does not belong to C stays as it is. ck_assert_msg of each number would take longer than the products. */
static void check_against_sums(const struct product *p) {
    for (int64_t at = 0; at < PLACES; at++) {
        int64_t i = at / p->ldc, j = at % p->ldc;
        if (i >= p->M || j >= p->N) {
            if (C[at] != before[at]) ck_abort_msg("number %lld outside of C was written", (long long)at);
            continue;
        }
        double sum = 0, terms = 0;
        for (int64_t k = 0; k < p->K; k++) {
            double term = p->alpha * (double)A[p->ta ? k * p->lda + i : i * p->lda + k] *
                          (double)B[p->tb ? j * p->ldb + k : k * p->ldb + j];
            sum += term;
            terms += fabs(term);
        }
        if (p->add) sum += (double)before[at], terms += fabs((double)before[at]);
        double bound = REAL_EPSILON * (double)(p->K + 4) * terms; /* of any order of summation */
        if (!(fabs((double)C[at] - sum) <= bound))
            ck_abort_msg("%lld x %lld x %lld, A%s B%s%s: %g instead of %g", (long long)p->M, (long long)p->N,
                         (long long)p->K, p->ta ? "^T" : "", p->tb ? "^T" : "", p->add ? ", added" : "", (double)C[at],
                         sum);
    }
}

START_TEST(a_product_is_its_sums) {
    for (int form = 0; form < 16; form++)
        for (int64_t gap = 0; gap <= 3; gap += 3) {
            struct product p = product_of(sizes[_i], form, gap);
            multiply(&p, C);
            check_against_sums(&p);
        }
}
END_TEST

START_TEST(a_bias_is_added_to_every_row) {
    int64_t M = sizes[_i][0], N = sizes[_i][1], K = sizes[_i][2];
    struct product p = product_of(sizes[_i], 2, 0);
    memcpy(C, before, sizeof before);
    real_gemm_bias(M, N, K, A, B, NULL, C);
    check_against_sums(&p);
    p.add = true; /* to a C whose rows are the bias */
    for (int64_t at = 0; at < M * N; at++) before[at] = bias[at % N];
    real_gemm_bias(M, N, K, A, B, bias, C);
    check_against_sums(&p);
}
END_TEST

/* --- factors of 16 bits ------------------------------------------------------------------------------------------- */

/* Sizes of trainings: outputs, gradients of inputs and of weights of linear maps, by tiles of 512 rows and of all. And
 * those that hurt: one row, one column, one term, an odd number of terms, gaps between rows. */
static const struct halves {
    int64_t M, N, K, gap;
    bool ta, tb, add, bias;
} halves[] = {
    {512, 1920, 128, 0, false, true, false, true},  {512, 128, 1920, 0, false, false, true, false},
    {1920, 128, 512, 0, true, false, false, false}, {2048, 1920, 128, 0, false, true, false, false},
    {1920, 128, 2048, 0, true, false, true, false}, {2048, 128, 64, 0, false, true, false, true},
    {1, 128, 129, 0, false, true, false, true},     {1, 65, 31, 0, true, false, true, false},
    {37, 1, 77, 0, false, true, false, false},      {33, 6, 1, 0, true, false, true, false},
    {50, 51, 127, 3, true, true, true, false},      {50, 51, 127, 3, false, false, false, false},
    {17, 120, 33, 5, false, true, true, true},
};
#define N_HALVES ((int)(sizeof halves / sizeof *halves))

/* Numbers from -1 to 1, or their magnitudes; to be freed. */
static real *real_matrix(int64_t n, uint64_t stream, bool magnitudes) {
    struct rng r = rng_at(7, STREAM_TEST, stream);
    real *to = malloc((size_t)n * sizeof *to);
    ck_assert_ptr_nonnull(to);
    for (int64_t i = 0; i < n; i++) to[i] = (real)(2 * rng_uniform(&r) - 1);
    for (int64_t i = 0; i < n && magnitudes; i++) to[i] = to[i] < 0 ? -to[i] : to[i];
    return to;
}

static uint16_t *half_matrix(int64_t n, uint64_t stream, bool magnitudes) {
    real *from = real_matrix(n, stream, magnitudes);
    uint16_t *to = malloc((size_t)n * sizeof *to);
    ck_assert_ptr_nonnull(to);
    round_to_bf16(n, from, to);
    free(from);
    return to;
}

/* C, to be freed. */
static real *product_of_halves(const struct halves *h, bool widen, bool magnitudes) {
    int64_t lda = (h->ta ? h->M : h->K) + h->gap, ldb = (h->tb ? h->K : h->N) + h->gap, ldc = h->N + h->gap;
    uint16_t *a = half_matrix((h->ta ? h->K : h->M) * lda, 1, magnitudes);
    uint16_t *b = half_matrix((h->tb ? h->N : h->K) * ldb, 2, magnitudes);
    real *c = real_matrix(h->M * ldc, 3, magnitudes), *row = real_matrix(h->N, 4, magnitudes);
    (widen ? gemm_widened : gemm_bf16)(h->ta, h->tb, h->M, h->N, h->K, a, lda, b, ldb, h->bias ? row : NULL, h->add, c,
                                       ldc);
    free(a);
    free(b);
    free(row);
    return c;
}

/* Without products of pairs of bf16 the factors are widened and nothing is compared.
 *
 * The products are exact; a sum of K of them, C and the bias is off by at most half a unit of the sum of magnitudes an
 * addition, in whatever order, and there are two. A hundredth for the rounding of that sum itself. What does not belong
 * to C stays as it was. */
START_TEST(halves_give_what_widened_ones_give) {
    const struct halves *h = &halves[_i];
    if (_i == 0 && (REAL_IS_DOUBLE || !cpuinfo_has("avx512_bf16")))
        printf("  products of pairs of bf16 are not covered by this %s\n", REAL_IS_DOUBLE ? "build" : "machine");
    real *got = product_of_halves(h, false, false), *want = product_of_halves(h, true, false);
    real *magnitudes = product_of_halves(h, true, true);
    for (int64_t at = 0; at < h->M * (h->N + h->gap); at++) {
        bool within = at % (h->N + h->gap) < h->N;
        double bound = within ? 1.01 * (double)(h->K + 2) * REAL_EPSILON * (double)magnitudes[at] : 0;
        expect_near((double)got[at], (double)want[at], bound, "a number of C");
    }
    free(got);
    free(want);
    free(magnitudes);
}
END_TEST

/* Factors larger than any address space, of which nothing is read. */
START_TEST(no_memory_to_widen_ends_the_process_as_no_memory_does) {
    int status;
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        gemm_widened(false, false, (int64_t)1 << 40, 1, 1 << 19, NULL, 1 << 19, NULL, 1, NULL, false, C, 1);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == status_exit_code(ST_MEMORY), "status %d", status);
}
END_TEST

/* More shapes than a thread keeps; those before are made again. */
START_TEST(any_number_of_shapes_may_come) {
    for (int64_t n = 0; n < 2080; n++) {
        int64_t i = n % 2060, size[3] = {2 + i % 3, 2 + i / 3 % 7, 1 + i / 21};
        struct product p = product_of(size, (int)(i % 8), 0);
        multiply(&p, C);
        if (n % 16 == 0) check_against_sums(&p);
    }
}
END_TEST

START_TEST(every_thread_computes_the_same_bits) {
    enum { THREADS = 7 };
    static real each[THREADS][PLACES];
    for (int form = 0; form < 8; form++) {
        struct product p = product_of(sizes[N_SIZES - 1], form, 0);
        multiply(&p, C);
#pragma omp parallel for num_threads(THREADS) schedule(static, 1)
        for (int i = 0; i < THREADS; i++) multiply(&p, each[i]);
        for (int i = 0; i < THREADS; i++) ck_assert_msg(!memcmp(each[i], C, sizeof C), "thread %d, form %d", i, form);
    }
}
END_TEST

Suite *check_products(void) {
    Suite *suite = suite_create("products");
    TCase *c = tcase_create("products");
    tcase_add_checked_fixture(c, set_up, NULL);
    tcase_add_loop_test(c, a_product_is_its_sums, 0, N_SIZES);
    tcase_add_loop_test(c, a_bias_is_added_to_every_row, 0, N_SIZES);
    tcase_add_loop_test(c, halves_give_what_widened_ones_give, 0, N_HALVES);
    if (ALLOCATIONS_COUNTED) /* where AddressSanitizer's allocator does not end the process its own way */
        tcase_add_test(c, no_memory_to_widen_ends_the_process_as_no_memory_does);
    tcase_add_test(c, any_number_of_shapes_may_come);
    tcase_add_test(c, every_thread_computes_the_same_bits);
    suite_add_tcase(suite, c);
    return suite;
}
