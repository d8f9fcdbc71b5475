/* check_flips.c - the short form of what `make torture` does under the sanitizers. The suite preloads nothing, so that
 * `make sanitize` runs it. */
#include "tests/faults/exercise.h"
#include "tests/testing.h"

START_TEST(another_byte_or_no_end_is_told) {
    struct tally t = {0};
    flip_exercise(1000, 1, &t);
    ck_assert_msg(t.bad == 0, "%lld of %lld: %s", (long long)t.bad, (long long)t.tried, t.first);
    ck_assert_int_ge(t.failed, 800); /* a plan has no checksum */
}
END_TEST

Suite *check_flips(void);
Suite *check_flips(void) {
    Suite *suite = suite_create("flips");
    TCase *c = tcase_create("flips");
    tcase_add_test(c, another_byte_or_no_end_is_told);
    suite_add_tcase(suite, c);
    return suite;
}
