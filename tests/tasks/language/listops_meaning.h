/* listops_meaning.h - the tests' own meaning of a ListOps expression, written from the specification alone. */
#ifndef LRNN_TESTS_TASKS_LANGUAGE_LISTOPS_MEANING_H
#define LRNN_TESTS_TASKS_LANGUAGE_LISTOPS_MEANING_H

#include <stdint.h>

enum { EOS = 2, ZERO = 3, MAX = 13, MED, MIN, SM, CLOSE }; /* ids as the specification numbers them */

struct seen {
    int deepest, most, fewest; /* levels; arguments of an operator */
};

/* The value of the expression that starts at *at, which moves past it. */
int value_of(const int32_t **at, int level, struct seen *seen);

/* Applies an operator, by its id, to n values. */
int apply(int operator, const int * values, int n);

#endif
