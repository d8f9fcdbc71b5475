/* layer.h - a mixer alone, for tests of its properties. Everything aborts the running test when it cannot do its
 * work. */
#ifndef LRNN_TESTS_LIB_LAYER_H
#define LRNN_TESTS_LIB_LAYER_H

#include "tests/lib/support.h"

/* x (2,T,D) -> y; parameters drawn from a fixed seed, x from another. */
struct layer {
    struct params params;
    struct graph g;
    struct tensor *x, *y;
};

void layer_open(struct layer *l, const char *text, int64_t T, int64_t D);

/* The two halves of layer_open: after the first one, a test keeps tensors of l->g that it wants to read. */
void layer_build(struct layer *l, const char *text, int64_t T, int64_t D);
void layer_plan(struct layer *l);

void layer_run(struct layer *l);
void layer_close(struct layer *l);

/* Returns the values of a parameter. */
real *layer_values(struct layer *l, const char *name);

/* Sets all elements of a parameter to one value, or multiplies them by `factor`. */
void layer_set_all(struct layer *l, const char *name, double value);
void multiply(struct layer *l, const char *name, real factor);

/* Returns element i of W x; the rows of the parameter W are D long. */
double mapped(struct layer *l, const char *name, const real *x, int64_t D, int64_t i);

/* The mixer does not fit width D at batch 2 and length 5, and the sentence has both words in it. */
void expect_layer_refused(const char *text, int64_t D, const char *one, const char *other);

#endif
