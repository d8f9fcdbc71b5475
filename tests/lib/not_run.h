/* not_run.h - a test that lacks its tool passes, and says that it has shown nothing. */
#ifndef LRNN_TESTS_LIB_NOT_RUN_H
#define LRNN_TESTS_LIB_NOT_RUN_H

#include <stdio.h>

/* Prints a line between the suites' lines, such as "  runs: zsh_loads_its_completion not run: there is no zsh". The
 * test returns after it. */
static inline void not_run(const char *suite, const char *test, const char *why) {
    printf("  %s: %s not run: %s\n", suite, test, why);
}

#endif
