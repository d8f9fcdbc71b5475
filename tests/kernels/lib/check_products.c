/* check_products.c - the one door to matrix products against sums in double: every layout, sum and bias, at sizes that
 * do not divide by anything, and the same bits on every thread. */
#include <math.h>
#include <string.h>

#include "core/philox.h"
#include "kernels/lib/gemm.h"
#include "tests/testing.h"

#define LARGEST 160 /* rows and columns of a matrix in memory, their gaps included */
#define PLACES  (LARGEST * LARGEST)

static const int64_t sizes[][3] = {{1, 1, 1}, {3, 7, 5}, {16, 48, 32}, {33, 6, 129}, {100, 120, 64}};
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

/* What does not belong to C stays as it was. */
static void check_against_sums(const struct product *p) {
    const double unit = REAL_IS_DOUBLE ? 2.3e-16 : 1.2e-7;
    for (int64_t at = 0; at < PLACES; at++) {
        int64_t i = at / p->ldc, j = at % p->ldc;
        if (i >= p->M || j >= p->N) {
            ck_assert_msg(C[at] == before[at], "number %lld outside of C was written", (long long)at);
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
        double bound = unit * (double)(p->K + 4) * terms; /* of any order of summation */
        ck_assert_msg(fabs((double)C[at] - sum) <= bound, "%lld x %lld x %lld, A%s B%s%s: %g instead of %g",
                      (long long)p->M, (long long)p->N, (long long)p->K, p->ta ? "^T" : "", p->tb ? "^T" : "",
                      p->add ? ", added" : "", (double)C[at], sum);
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

/* More shapes than a thread keeps; those before are made again. */
START_TEST(any_number_of_shapes_may_come) {
    for (int64_t n = 0; n < 530; n++) {
        int64_t size[3] = {1 + n % 512 % 3, 1 + n % 512 % 7, 1 + n % 512 / 5};
        struct product p = product_of(size, (int)(n % 512 % 8), 0);
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
    tcase_add_test(c, any_number_of_shapes_may_come);
    tcase_add_test(c, every_thread_computes_the_same_bits);
    suite_add_tcase(suite, c);
    return suite;
}
