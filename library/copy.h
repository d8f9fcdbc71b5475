/* copy.h - copies arrays of the caller, with any strides and dtype, to and from the kernels' dense arrays of reals with
 * lead and tail tokens (library.h). */
#ifndef LRNN_LIBRARY_COPY_H
#define LRNN_LIBRARY_COPY_H

#include "library/library.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One array of the caller: values or gradients of an operand. */
struct side {
    void *base;
    int64_t strides[3]; /* in elements; defaults are filled in */
};

/* The copies on one kind of device; on CUDA they are queued. */
struct copier {
    /* Fill the dense array of an operand, with zeros where there is no token. `state`: the initial state for values of
     * an input, the gradient of the final state for the gradient of an output; base NULL: none. */
    void (*values_in)(const struct recorder *r, const struct operand *o, const struct side *from,
                      const struct side *state, real *dense);
    void (*gradient_in)(const struct recorder *r, const struct operand *o, const struct side *from,
                        const struct side *state, real *dense);
    /* Write the caller's array from the dense array; a base of NULL is not written. `state`: the final state for values
     * of an output, the gradient of the initial state for the gradient of an input. gradient_out may change `dense`. */
    void (*values_out)(const struct recorder *r, const struct operand *o, const real *dense, const struct side *to,
                       const struct side *state);
    void (*gradient_out)(const struct recorder *r, const struct operand *o, real *dense, const struct side *to,
                         const struct side *state);
    /* Copies the call's offsets to r->offsets. Only on a device. */
    void (*send_offsets)(const struct recorder *r);
};

extern const struct copier copier_cpu;  /* copy.c */
extern const struct copier copier_cuda; /* copy_cuda.cu, in a build with CUDA */

#ifdef __cplusplus
}
#endif
#endif
