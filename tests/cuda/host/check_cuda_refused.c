/* check_cuda_refused.c - a short run, each of whose calls of the device's API fails once, through cuda_host.h. */
#include <stdlib.h>

#include "tests/faults/exercise.h"
#include "tests/testing.h"

#ifdef LRNN_CUDA_HOST

/* LRNN_CUDA_EVERY=n takes every nth call; without it every tenth. */
START_TEST(a_call_that_fails_is_said_and_loses_nothing) {
    const char *text = getenv("LRNN_CUDA_EVERY");
    struct tally t = {0};
    refuse_exercise(text && atol(text) > 0 ? atol(text) : 10, 0, &t);
    ck_assert_msg(t.bad == 0, "%lld of %lld: %s", (long long)t.bad, (long long)t.tried, t.first);
    ck_assert_int_gt(t.all, 100);
    ck_assert_int_gt(2 * t.failed, t.tried);
}
END_TEST

#endif

Suite *check_cuda_refused(void);
Suite *check_cuda_refused(void) {
    Suite *suite = suite_create("cuda_refused");
#ifdef LRNN_CUDA_HOST
    TCase *tests = tcase_create("cuda_refused");
    tcase_set_timeout(tests, 600); /* with every call some 400 runs */
    tcase_add_test(tests, a_call_that_fails_is_said_and_loses_nothing);
    suite_add_tcase(suite, tests);
#endif
    return suite;
}
