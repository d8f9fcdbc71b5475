/* attempt.h - cases in a process of their own: what crashes, hangs or differs is told, and the fuzzer goes on. */
#ifndef LRNN_TESTS_TWINS_ATTEMPT_H
#define LRNN_TESTS_TWINS_ATTEMPT_H

#include "tests/twins/case.h"

#define ATTEMPT_TEXT 1024

/* Runs body(context), the body of a test, in a process. False: it failed, and `message` says why. */
bool attempt(void (*body)(void *context), void *context, int timeout_s, char message[ATTEMPT_TEXT]);

/* One case. */
bool attempt_case(const struct twin_case *c, char message[ATTEMPT_TEXT]);

/* Makes a failing case as small as it gets and still fails: each size 1, half, or less by one; no variant, the first
 * choice, fewer outputs, small inputs. `message` gets the smallest case's message. Returns the number of attempts. */
int case_shrink(struct twin_case *c, char message[ATTEMPT_TEXT]);

#endif
