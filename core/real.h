/* real.h - the working floating-point type: float in ./lrnn, double in ./lrnn-f64 (make REAL=double).
 *
 * real_fma is the only fused multiply-add in the program, because -ffp-contract=off forbids the compiler to make any.
 * Without hardware support (PORTABLE=1) it is a multiply and an add, because the library call would be too slow. */
#ifndef LRNN_CORE_REAL_H
#define LRNN_CORE_REAL_H

#include <stdint.h>

#ifdef LRNN_DOUBLE
typedef double real;
#define REAL_IS_DOUBLE 1
#define REAL_NAME      "fp64"
#else
typedef float real;
#define REAL_IS_DOUBLE 0
#define REAL_NAME      "fp32"
#endif

#define REAL_EPSILON (REAL_IS_DOUBLE ? 0x1p-52 : 0x1p-23) /* distance from 1 to the next number */

/* FORCE_INLINE: inlined in any case. It is for functions whose call would keep a loop from being vectorised, or an
 * argument from being a compile-time constant. */
#if defined(__CUDACC__)
#define LRNN_INLINE  static inline __host__ __device__
#define FORCE_INLINE static __forceinline__ __host__ __device__
#else
#define LRNN_INLINE static inline
#if defined(__SANITIZE_ADDRESS__) && !defined(__cplusplus) /* there, each copy takes long to compile */
#define FORCE_INLINE static inline
#else
#define FORCE_INLINE static inline __attribute__((always_inline))
#endif
#endif

/* Returns a * b + c. */
LRNN_INLINE real real_fma(real a, real b, real c) {
#if defined(__FMA__) || defined(__CUDA_ARCH__)
#ifdef LRNN_DOUBLE
    return __builtin_fma(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
#else
    return a * b + c;
#endif
}

#endif
