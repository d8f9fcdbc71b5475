/* copy.h - copies arrays of the caller, with any strides and dtype, to and from the kernels' dense arrays of reals with
 * lead and tail tokens (library.h). */
#ifndef LRNN_LIBRARY_COPY_H
#define LRNN_LIBRARY_COPY_H

#include "library/library.h"

/* One array of the caller: values or gradients of an operand. */
struct side {
    void *base;
    int64_t strides[3]; /* in elements; defaults are filled in */
};

/* Returns the number of tokens of sequence b. */
int64_t library_length_of(const struct recorder *r, int64_t b);

/* Fill the dense array of an operand, with zeros where there is no token. `state`: the initial state for values of an
 * input, the gradient of the final state for the gradient of an output; base NULL: none. */
void copy_values_in(const struct recorder *r, const struct operand *o, const struct side *from,
                    const struct side *state, real *dense);
void copy_gradient_in(const struct recorder *r, const struct operand *o, const struct side *from,
                      const struct side *state, real *dense);

/* Write the caller's array from the dense array; a base of NULL is not written. `state`: the final state for values of
 * an output, the gradient of the initial state for the gradient of an input. */
void copy_values_out(const struct recorder *r, const struct operand *o, const real *dense, const struct side *to,
                     const struct side *state);
void copy_gradient_out(const struct recorder *r, const struct operand *o, const real *dense, const struct side *to,
                       const struct side *state);

#endif
