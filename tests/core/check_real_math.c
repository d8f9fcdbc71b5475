/* check_real_math.c - exp, log, tanh, sigmoid and softplus in `real`: against libm in long double over a sample of all
 * floats, at their ends, and the same bits wherever in a vector an element sits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/real_math.h"
#include "tests/testing.h"

static real exp_of(real x) {
    return real_exp(x);
}
static real log_of(real x) {
    return real_log(x);
}
static real tanh_of(real x) {
    return real_tanh(x);
}
static real sigmoid_of(real x) {
    return real_sigmoid(x);
}
static real softplus_of(real x) {
    return real_softplus(x);
}

static long double sigmoid_exact(long double x) {
    return 1 / (1 + expl(-x));
}

static long double softplus_exact(long double x) {
    return (x > 0 ? x : 0) + log1pl(expl(-fabsl(x)));
}

/* Bounds in units in the last place, a little above the worst found over every 37th float (1.01, 0.79, 1.30, 2.43,
 * 1.96; glibc's double functions stay below 2.5 as well). */
static const struct {
    const char *name;
    real (*f)(real x);
    long double (*exact)(long double x);
    double ulps;
} functions[] = {
    {"exp", exp_of, expl, 1.1},
    {"log", log_of, logl, 1.1},
    {"tanh", tanh_of, tanhl, 2.5},
    {"sigmoid", sigmoid_of, sigmoid_exact, 2.6},
    {"softplus", softplus_of, softplus_exact, 2.6},
};
#define N_FUNCTIONS (int)(sizeof functions / sizeof *functions)

/* Distance from |y| to the next larger number. */
static double ulp_at(real y) {
    int exponent;
    frexp((double)y, &exponent);
    return ldexp(1, exponent - (REAL_IS_DOUBLE ? 53 : 24));
}

START_TEST(errors_stay_within_their_bounds) {
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += 100003) {
        uint32_t word = (uint32_t)bits;
        float x;
        memcpy(&x, &word, sizeof x);
        real got = functions[_i].f(x);
        long double want = functions[_i].exact(x);
        if (isnan((double)want)) {
            ck_assert_msg(isnan((double)got), "%s(%a) is not NaN but %g", functions[_i].name, (double)x, (double)got);
        } else if (isinf((double)(real)want) || isinf((double)got)) {
            ck_assert_msg(got == (real)want, "%s(%a) is %g, not %g", functions[_i].name, (double)x, (double)got,
                          (double)want);
        } else {
            double error = fabs((double)((long double)got - want)), bound = functions[_i].ulps * ulp_at((real)want);
            if (fabsl(want) < 1.7e-38L && error < 1.7e-38) continue; /* flushed to zero, as real_math.h says */
            ck_assert_msg(error <= bound, "%s(%a) is %.9g, want %.9g: %.2f ulp", functions[_i].name, (double)x,
                          (double)got, (double)want, error / ulp_at((real)want));
        }
    }
}
END_TEST

START_TEST(ends_are_exact) {
    ck_assert(real_exp(0) == 1 && real_exp(-INFINITY) == 0 && isinf(real_exp(INFINITY)) && isinf(real_exp(1000)));
    ck_assert(real_exp(-1000) == 0);
    real nothing = (real)strtod("0", NULL), negative = (real)strtod("-1", NULL); /* a checker objects to literals */
    ck_assert(real_log(1) == 0 && isinf(real_log(nothing)) && real_log(nothing) < 0 && isnan(real_log(negative)) &&
              isinf(real_log(INFINITY)));
    ck_assert(real_tanh(INFINITY) == 1 && real_tanh(-INFINITY) == -1 && real_tanh(0) == 0);
    ck_assert(real_sigmoid(0) == (real)0.5 && real_sigmoid(INFINITY) == 1 && real_sigmoid(-INFINITY) == 0);
    ck_assert(real_softplus(-INFINITY) == 0 && isinf(real_softplus(INFINITY)) && real_softplus(1000) == 1000);
    ck_assert(real_sqrt(9) == 3 && isnan(real_sqrt(negative)) && real_abs(-2) == 2);
}
END_TEST

/* Every NaN, also one whose payload is all ones, as in memory that was never written. */
START_TEST(nan_comes_through) {
    real poison[3] = {NAN, -(real)NAN};
    memset(poison + 2, 0xff, sizeof *poison);
    for (int i = 0; i < 3; i++)
        ck_assert_msg(isnan(functions[_i].f(poison[i])), "%s loses NaN %d", functions[_i].name, i);
}
END_TEST

#define COUNT 103 /* vectors and a remainder at any width */

START_TEST(bits_do_not_depend_on_position) {
    real x[COUNT + 16], y[COUNT + 16];
    for (int i = 0; i < COUNT + 16; i++) x[i] = (real)(sin(i) * 20);
    for (int shift = 0; shift < 16; shift++) {
#pragma omp simd
        for (int i = 0; i < COUNT; i++)
            y[i] = real_exp(x[i + shift]) + real_tanh(x[i + shift]) + real_softplus(x[i + shift]) +
                   real_sigmoid(x[i + shift]);
        for (int i = 0; i < COUNT; i++) {
            real want =
                exp_of(x[i + shift]) + tanh_of(x[i + shift]) + softplus_of(x[i + shift]) + sigmoid_of(x[i + shift]);
            ck_assert_msg(memcmp(y + i, &want, sizeof want) == 0, "element %d, shift %d: %a and %a", i, shift,
                          (double)y[i], (double)want);
        }
    }
}
END_TEST

Suite *check_real_math(void);
Suite *check_real_math(void) {
    Suite *suite = suite_create("real_math");
    TCase *tests = tcase_create("real_math");
    tcase_add_loop_test(tests, errors_stay_within_their_bounds, 0, N_FUNCTIONS);
    tcase_add_test(tests, ends_are_exact);
    tcase_add_loop_test(tests, nan_comes_through, 0, N_FUNCTIONS);
    tcase_add_test(tests, bits_do_not_depend_on_position);
    suite_add_tcase(suite, tests);
    return suite;
}
