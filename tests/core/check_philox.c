/* check_philox.c - known answers of Philox4x32-10, distributions of what is drawn from it, and permutations. Seeds are
 * fixed: a bound that holds once holds always. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/philox.h"
#include "tests/lib/chi_square.h"
#include "tests/testing.h"

/* DEShawResearch/random123, tests/kat_vectors, the lines "philox4x32 10": counter, key, answer. */
static const uint32_t known_answers[3][10] = {
    {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
    {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0x408f276d, 0x41c83b0e, 0xa20bc7c6,
     0x6d5451fd},
    {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
     0x24126ea1},
};

START_TEST(philox_gives_the_known_answers_of_random123) {
    for (int i = 0; i < 3; i++) {
        const uint32_t *k = known_answers[i];
        struct philox_block out = philox4x32((struct philox_block){{k[0], k[1], k[2], k[3]}}, k[4], k[5]);
        for (int j = 0; j < 4; j++) ck_assert_uint_eq(out.word[j], k[6 + j]);
    }
}
END_TEST

START_TEST(reader_yields_the_blocks_in_order) {
    struct rng r = rng_at(0x123456789abcdef0, STREAM_TEST, 0xfedcba9876543210);
    for (uint32_t block = 0; block < 5; block++) {
        struct philox_block counter = {{0x76543210, 0xfedcba98, STREAM_TEST, block}};
        struct philox_block want = philox4x32(counter, 0x9abcdef0, 0x12345678);
        for (int j = 0; j < 4; j++) ck_assert_uint_eq(rng_u32(&r), want.word[j]);
    }
}
END_TEST

START_TEST(below_is_uniform_and_in_range) {
    static const uint64_t sizes[] = {1,
                                     2,
                                     3,
                                     7,
                                     120,
                                     4097,
                                     UINT32_MAX,
                                     UINT64_C(1) << 32,
                                     UINT64_C(3) << 32,
                                     UINT64_C(3) << 61,
                                     UINT64_C(1) << 62,
                                     UINT64_MAX};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint64_t n = sizes[s];
        int bins = n < 200 ? (int)n : 17; /* of equal width, but for a share of at most 17/n */
        int64_t count[200] = {0}, draws = 100000;
        struct rng r = rng_at(1, STREAM_TEST, n);
        for (int64_t i = 0; i < draws; i++) {
            uint64_t v = rng_below(&r, n);
            if (v >= n) ck_abort_msg("%llu of %llu", (unsigned long long)v, (unsigned long long)n);
            count[n < 200 ? v : (uint64_t)((double)v / (double)n * bins) % (uint64_t)bins]++;
        }
        if (bins == 1) continue;
        double z = chi_square_z(count, bins, draws);
        ck_assert_msg(fabs(z) < 4, "n = %llu: chi-square %.1f sd off", (unsigned long long)n, z);
    }
}
END_TEST

/* With n = 3 * 2^30 a plain multiplication of a 32-bit word would hit every third value twice as often as others. */
START_TEST(below_rejects_what_would_bias) {
    int64_t count[3] = {0}, draws = 90000;
    struct rng r = rng_at(2, STREAM_TEST, 0);
    for (int64_t i = 0; i < draws; i++) count[rng_below(&r, UINT64_C(3) << 30) % 3]++;
    ck_assert_double_lt(fabs(chi_square_z(count, 3, draws)), 4);
}
END_TEST

START_TEST(normal_has_the_moments_of_a_normal) {
    double power[5] = {0}, inside = 0;
    const int n = 400000;
    struct rng r = rng_at(3, STREAM_TEST, 0);
    for (int i = 0; i < n; i++) {
        double z = rng_normal(&r), p = 1;
        if (!isfinite(z)) ck_abort_msg("draw %d is not finite", i); /* ck_assert writes a note each time: slow */
        for (int k = 0; k < 5; k++, p *= z) power[k] += p / n;
        inside += (fabs(z) < 1.0) / (double)n;
    }
    /* Standard errors are sqrt(1, 2, 15, 96) / sqrt(n) for the moments and 0.465 / sqrt(n) for the share; 4 of them. */
    double unit = 4 / sqrt(n);
    ck_assert_double_lt(fabs(power[1]), unit);
    ck_assert_double_lt(fabs(power[2] - 1), unit * sqrt(2));
    ck_assert_double_lt(fabs(power[3]), unit * sqrt(15));
    ck_assert_double_lt(fabs(power[4] - 3), unit * sqrt(96));
    ck_assert_double_lt(fabs(inside - 0.682689492), unit * 0.465);
}
END_TEST

START_TEST(normal_takes_four_words_a_draw) {
    struct rng r = rng_at(4, STREAM_TEST, 0);
    for (int i = 0; i < 10; i++) rng_normal(&r);
    ck_assert_uint_eq(r.block, 10);
    ck_assert_int_eq(r.left, 0);
}
END_TEST

START_TEST(permute_is_a_bijection) {
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 7, 64, 65, 1000, 4097};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (uint64_t epoch = 0; epoch < 4; epoch++) {
            uint64_t n = sizes[s];
            unsigned char seen[4097] = {0};
            for (uint64_t i = 0; i < n; i++) {
                uint64_t to = permute_index(5, STREAM_SHUFFLE, epoch, i, n);
                if (to >= n || seen[to]++) ck_abort_msg("n = %d: %d is outside or comes twice", (int)n, (int)to);
            }
        }
}
END_TEST

static int compare_words(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

START_TEST(permute_of_a_huge_range_stays_inside_and_does_not_collide) {
    static const uint64_t sizes[] = {UINT64_C(1) << 62, (UINT64_C(1) << 62) - 4001, (UINT64_C(1) << 60) + 1,
                                     2821109907456}; /* 6^16 */
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        uint64_t n = sizes[s], to[2000];
        for (uint64_t i = 0; i < 2000; i++) {
            to[i] = permute_index(6, STREAM_DATA, 0, i < 1000 ? i : n - 1 - (i - 1000), n);
            ck_assert_uint_lt(to[i], n);
        }
        qsort(to, 2000, sizeof *to, compare_words);
        for (int i = 1; i < 2000; i++) ck_assert_uint_ne(to[i - 1], to[i]);
        ck_assert_uint_lt(to[1000],
                          n / 2 + n / 16); /* spread over the range: a median of 2000 is within 0.011 n (1 sd) */
        ck_assert_uint_gt(to[1000], n / 2 - n / 16);
    }
}
END_TEST

/* Share of the first 1000 indices that two permutations of [0, 4097) send to the same place. */
static int agreements(uint64_t seed, uint32_t stream, uint64_t epoch) {
    int same = 0;
    for (uint64_t i = 0; i < 1000; i++)
        same += permute_index(7, STREAM_SHUFFLE, 0, i, 4097) == permute_index(seed, stream, epoch, i, 4097);
    return same;
}

START_TEST(permute_differs_between_epochs_seeds_and_streams) {
    ck_assert_int_eq(agreements(7, STREAM_SHUFFLE, 0), 1000);
    ck_assert_int_le(agreements(7, STREAM_SHUFFLE, 1), 5); /* chance: 0.24 on average */
    ck_assert_int_le(agreements(7, STREAM_SHUFFLE, UINT64_C(1) << 32), 5);
    ck_assert_int_le(agreements(8, STREAM_SHUFFLE, 0), 5);
    ck_assert_int_le(agreements(7 + (UINT64_C(1) << 32), STREAM_SHUFFLE, 0), 5);
    ck_assert_int_le(agreements(7, STREAM_DATA, 0), 5);
}
END_TEST

/* Over epochs each index of a small range goes everywhere equally often: 7 x 7 cells, and pairs of neighbours. */
START_TEST(permute_is_uniform_over_epochs) {
    const int64_t epochs = 21000;
    for (uint64_t i = 0; i < 7; i++) {
        int64_t count[7] = {0};
        for (uint64_t epoch = 0; epoch < (uint64_t)epochs; epoch++)
            count[permute_index(9, STREAM_SHUFFLE, epoch, i, 7)]++;
        ck_assert_double_lt(fabs(chi_square_z(count, 7, epochs)), 4);
    }
    int64_t pairs[42] = {0};
    for (uint64_t epoch = 0; epoch < (uint64_t)epochs; epoch++) {
        uint64_t first = permute_index(9, STREAM_SHUFFLE, epoch, 0, 7),
                 second = permute_index(9, STREAM_SHUFFLE, epoch, 1, 7);
        pairs[first * 6 + second - (second > first)]++;
    }
    ck_assert_double_lt(fabs(chi_square_z(pairs, 42, epochs)), 4);
}
END_TEST

Suite *check_philox(void) {
    Suite *suite = suite_create("philox");
    TCase *tests = tcase_create("philox");
    tcase_add_test(tests, philox_gives_the_known_answers_of_random123);
    tcase_add_test(tests, reader_yields_the_blocks_in_order);
    tcase_add_test(tests, below_is_uniform_and_in_range);
    tcase_add_test(tests, below_rejects_what_would_bias);
    tcase_add_test(tests, normal_has_the_moments_of_a_normal);
    tcase_add_test(tests, normal_takes_four_words_a_draw);
    tcase_add_test(tests, permute_is_a_bijection);
    tcase_add_test(tests, permute_of_a_huge_range_stays_inside_and_does_not_collide);
    tcase_add_test(tests, permute_differs_between_epochs_seeds_and_streams);
    tcase_add_test(tests, permute_is_uniform_over_epochs);
    suite_add_tcase(suite, tests);
    return suite;
}
