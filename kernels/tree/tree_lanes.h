/* tree_lanes.h - small complex matrices and vectors in vector lanes: one of each a lane (a head), all of one size d. Any d;
 * meant for those where d*d rows of lanes stay in L1. */
#ifndef LRNN_KERNELS_TREE_LANES_H
#define LRNN_KERNELS_TREE_LANES_H

#include <string.h>

#include "kernels/lib/gate.h"

#define LANES_MAX     256 /* most lanes at once */
#define LANES_COLUMNS 4   /* of a matrix that one pass over the lanes multiplies */
#define LANES_CALLED  static __attribute__((unused))

static const real lanes_zeros[LANES_MAX];

/* A complex vector of d elements, or a matrix of d*d, of all lanes: element e is the row at re + e*step. */
struct lanes {
    real *re, *im;
    int64_t step;
};

struct const_lanes {
    const real *re, *im;
    int64_t step, im_step; /* im_step 0: every imaginary part is the row at im */
};

LRNN_INLINE struct const_lanes in(struct lanes x) {
    return (struct const_lanes){x.re, x.im, x.step, x.step};
}

/* Element e on. */
LRNN_INLINE struct lanes from(struct lanes x, int64_t e) {
    return (struct lanes){x.re + e * x.step, x.im + e * x.step, x.step};
}

/* Column j of a matrix. */
LRNN_INLINE struct lanes column(struct lanes A, int64_t d, int64_t j) {
    return (struct lanes){A.re + j * A.step, A.im + j * A.step, d * A.step};
}

/* y = s + or - the sum over n columns j of a_j x_j, one row; y may be s. */
GATE_INLINE void multiply_row(int n, bool minus, int64_t width, const real *a_re, const real *a_im, int64_t a_step,
                              struct const_lanes x, const real *s_re, const real *s_im, real *y_re, real *y_im) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real re = s_re[k], im = s_im[k];
        GATE_EACH(n, re = real_fma(minus ? -a_re[j * a_step + k] : a_re[j * a_step + k], x.re[j * x.step + k], re));
        GATE_EACH(n, re = real_fma(minus ? a_im[j * a_step + k] : -a_im[j * a_step + k], x.im[j * x.im_step + k], re));
        GATE_EACH(n, im = real_fma(minus ? -a_re[j * a_step + k] : a_re[j * a_step + k], x.im[j * x.im_step + k], im));
        GATE_EACH(n, im = real_fma(minus ? -a_im[j * a_step + k] : a_im[j * a_step + k], x.re[j * x.step + k], im));
        y_re[k] = re;
        y_im[k] = im;
    }
}

/* y = s - A x, or + A x, by the rows of A; y is not x, and may be s. */
GATE_INLINE void multiply_rows(bool minus, int64_t d, int64_t width, struct lanes A, struct const_lanes x,
                               struct const_lanes s, struct lanes y) {
    for (int64_t i = 0; i < d; i++)
        for (int64_t first = 0; first < d; first += LANES_COLUMNS) {
            struct lanes a = from(A, i * d + first), to = from(y, i);
            struct const_lanes part = {x.re + first * x.step, x.im + first * x.im_step, x.step, x.im_step};
            const real *re = first ? to.re : s.re + i * s.step, *im = first ? to.im : s.im + i * s.im_step;
            int64_t n = d - first;
            if (n == 1)
                multiply_row(1, minus, width, a.re, a.im, a.step, part, re, im, to.re, to.im);
            else if (n == 2)
                multiply_row(2, minus, width, a.re, a.im, a.step, part, re, im, to.re, to.im);
            else if (n == 3)
                multiply_row(3, minus, width, a.re, a.im, a.step, part, re, im, to.re, to.im);
            else
                multiply_row(LANES_COLUMNS, minus, width, a.re, a.im, a.step, part, re, im, to.re, to.im);
        }
}

/* y = s - A x, or y = A x where s is NULL. */
LANES_CALLED void multiply(int64_t d, int64_t width, struct lanes A, struct const_lanes x, const struct const_lanes *s,
                           struct lanes y) {
    if (s)
        multiply_rows(true, d, width, A, x, *s, y);
    else
        multiply_rows(false, d, width, A, x, (struct const_lanes){lanes_zeros, lanes_zeros, 0, 0}, y);
}

/* D -= sign a b^H. */
LANES_CALLED void subtract_outer(int64_t d, int64_t width, real sign, struct const_lanes a, struct const_lanes b,
                                 struct lanes D) {
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++) {
            const real *a_re = a.re + i * a.step, *a_im = a.im + i * a.im_step;
            const real *b_re = b.re + j * b.step, *b_im = b.im + j * b.im_step;
            struct lanes to = from(D, i * d + j);
#pragma omp simd
            for (int64_t k = 0; k < width; k++) {
                real re = sign * a_re[k], im = sign * a_im[k];
                to.re[k] = real_fma(-re, b_re[k], real_fma(-im, b_im[k], to.re[k]));
                to.im[k] = real_fma(-im, b_re[k], real_fma(re, b_im[k], to.im[k]));
            }
        }
}

LANES_CALLED void set_identity(int64_t d, int64_t width, struct lanes A) {
    for (int64_t e = 0; e < d * d; e++)
        for (int64_t k = 0; k < width; k++) {
            A.re[e * A.step + k] = e / d == e % d;
            A.im[e * A.step + k] = 0;
        }
}

/* Exchanges elements a and b of the lanes whose flag is set. */
LANES_CALLED void exchange(int64_t width, const real *flag, real *a, real *b) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real x = a[k], y = b[k];
        a[k] = flag[k] != 0 ? y : x;
        b[k] = flag[k] != 0 ? x : y;
    }
}

/* Brings the largest element of column j, rows j on, to row j; the rows of R follow. */
LANES_CALLED void pivot(int64_t d, int64_t width, struct lanes A, struct lanes R, int64_t j) {
    real flag[LANES_MAX];
    struct lanes top = from(A, j * d + j);
    for (int64_t i = j + 1; i < d; i++) {
        struct lanes other = from(A, i * d + j);
#pragma omp simd
        for (int64_t k = 0; k < width; k++) {
            real a = real_fma(top.re[k], top.re[k], top.im[k] * top.im[k]);
            real b = real_fma(other.re[k], other.re[k], other.im[k] * other.im[k]);
            flag[k] = b > a ? 1 : 0;
        }
        for (int64_t e = 0; e < d; e++) {
            struct lanes x = from(A, j * d + e), y = from(A, i * d + e), r = from(R, j * d + e), s = from(R, i * d + e);
            exchange(width, flag, x.re, y.re);
            exchange(width, flag, x.im, y.im);
            exchange(width, flag, r.re, s.re);
            exchange(width, flag, r.im, s.im);
        }
    }
}

/* x *= f. */
LANES_CALLED void scale_lanes(int64_t width, const real *f_re, const real *f_im, struct lanes x) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real re = x.re[k], im = x.im[k];
        x.re[k] = real_fma(f_re[k], re, -f_im[k] * im);
        x.im[k] = real_fma(f_re[k], im, f_im[k] * re);
    }
}

/* y -= f x. */
LANES_CALLED void subtract_scaled(int64_t width, const real *f_re, const real *f_im, struct lanes x, struct lanes y) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        y.re[k] = real_fma(-f_re[k], x.re[k], real_fma(f_im[k], x.im[k], y.re[k]));
        y.im[k] = real_fma(-f_re[k], x.im[k], real_fma(-f_im[k], x.re[k], y.im[k]));
    }
}

/* R = A^-1; A is overwritten. */
LANES_CALLED void invert(int64_t d, int64_t width, struct lanes A, struct lanes R) {
    real f_re[LANES_MAX], f_im[LANES_MAX];
    set_identity(d, width, R);
    for (int64_t j = 0; j < d; j++) {
        pivot(d, width, A, R, j);
        struct lanes diagonal = from(A, j * d + j);
#pragma omp simd
        for (int64_t k = 0; k < width; k++) {
            real re = diagonal.re[k], im = diagonal.im[k], norm = real_fma(re, re, im * im);
            f_re[k] = re / norm;
            f_im[k] = -im / norm;
        }
        for (int64_t e = 0; e < d; e++) {
            scale_lanes(width, f_re, f_im, from(A, j * d + e));
            scale_lanes(width, f_re, f_im, from(R, j * d + e));
        }
        for (int64_t i = 0; i < d; i++) {
            if (i == j) continue;
            memcpy(f_re, from(A, i * d + j).re, (size_t)width * sizeof *f_re);
            memcpy(f_im, from(A, i * d + j).im, (size_t)width * sizeof *f_im);
            for (int64_t e = 0; e < d; e++) {
                subtract_scaled(width, f_re, f_im, from(A, j * d + e), from(A, i * d + e));
                subtract_scaled(width, f_re, f_im, from(R, j * d + e), from(R, i * d + e));
            }
        }
    }
}

#endif
