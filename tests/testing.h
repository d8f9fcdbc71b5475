/* testing.h - libcheck for this project's tests: include this instead of <check.h>.
 *
 * libcheck 0.15 defines fail(...) as a (deprecated) macro; core/status.h has a function of that name. */
#ifndef LRNN_TESTS_TESTING_H
#define LRNN_TESTS_TESTING_H

#include <check.h>

#undef fail

#endif
