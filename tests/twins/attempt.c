/* attempt.c - see attempt.h. */
#include "tests/twins/attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/support.h"

#define CASE_TIMEOUT_S 60
#define MOST_ATTEMPTS  400

static void (*attempt_body)(void *context);
static void *attempt_context;

START_TEST(attempted) {
    (void)_i;
    attempt_body(attempt_context);
}
END_TEST

bool attempt(void (*body)(void *context), void *context, int timeout_s, char message[ATTEMPT_TEXT]) {
    Suite *suite = suite_create("twins");
    TCase *tests = tcase_create("twins");
    attempt_body = body;
    attempt_context = context;
    tcase_add_checked_fixture(tests, start_kernels, NULL);
    tcase_set_timeout(tests, timeout_s);
    tcase_add_test(tests, attempted);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_SILENT);
    bool failed = srunner_ntests_failed(runner) > 0;
    if (failed) {
        TestResult **failures = srunner_failures(runner);
        snprintf(message, ATTEMPT_TEXT, "%s", tr_msg(failures[0]));
        free(failures);
    }
    srunner_free(runner);
    attempt_context = NULL;
    return !failed;
}

static void compare_body(void *context) {
    case_compare(context);
}

bool attempt_case(const struct twin_case *c, char message[ATTEMPT_TEXT]) {
    struct twin_case copy = *c;
    return attempt(compare_body, &copy, CASE_TIMEOUT_S, message);
}

/* --- shrinking ---------------------------------------------------------------------------------------------------- */

struct shrinking {
    struct twin_case *smallest;
    char *message;
    int attempts;
};

/* Takes the case over if it fails as well. */
static bool take(struct shrinking *s, const struct twin_case *smaller) {
    char message[ATTEMPT_TEXT];
    if (s->attempts >= MOST_ATTEMPTS || !case_applies(smaller)) return false;
    s->attempts++;
    if (attempt_case(smaller, message)) return false;
    *s->smallest = *smaller;
    memcpy(s->message, message, sizeof message);
    return true;
}

/* Tries 1, half, and one less for an integer field of the case. */
static bool shrink_integer(struct shrinking *s, size_t offset, int64_t least) {
    int64_t now = *(int64_t *)(void *)((char *)s->smallest + offset);
    const int64_t wanted[] = {least, (now + least) / 2, now - 1};
    for (int i = 0; i < 3; i++) {
        struct twin_case smaller = *s->smallest;
        if (wanted[i] >= now || wanted[i] < least) continue;
        *(int64_t *)(void *)((char *)&smaller + offset) = wanted[i];
        if (take(s, &smaller)) return true;
    }
    return false;
}

static bool shrink_choice(struct shrinking *s, size_t offset) {
    struct twin_case smaller = *s->smallest;
    int *choice = (int *)(void *)((char *)&smaller + offset);
    if (*choice == 0) return false;
    *choice = 0;
    return take(s, &smaller);
}

static bool shrink_outputs(struct shrinking *s) {
    for (int64_t bit = 1; bit < s->smallest->outputs; bit *= 2) {
        struct twin_case smaller = *s->smallest;
        if (!(smaller.outputs & bit) || smaller.outputs == bit) continue;
        smaller.outputs &= ~bit;
        if (take(s, &smaller)) return true;
    }
    return false;
}

static bool shrink_once(struct shrinking *s) {
    bool any = shrink_outputs(s);
    any |= shrink_choice(s, offsetof(struct twin_case, fill));
    for (const struct option *o = op_sizes_options; o->name; o++) {
        size_t offset = offsetof(struct twin_case, sizes) + o->offset;
        bool variant = strcmp(o->name, "variant") == 0;
        if (!variant && !op_reads_size(s->smallest->kernel->op, o->name)) continue;
        any |= o->type == OPT_CHOICE ? shrink_choice(s, offset) : shrink_integer(s, offset, variant ? 0 : 1);
    }
    return any;
}

int case_shrink(struct twin_case *c, char message[ATTEMPT_TEXT]) {
    struct shrinking s = {c, message, 0};
    while (shrink_once(&s)) {
    }
    return s.attempts;
}
