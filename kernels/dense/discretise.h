/* discretise.h - computes one element of discretise (dense.h), in double on CPU and CUDA: there are only N elements. */
#ifndef LRNN_KERNELS_DENSE_DISCRETISE_H
#define LRNN_KERNELS_DENSE_DISCRETISE_H

#include <math.h>

#include "kernels/dense/dense.h"

struct discrete {
    double re, im;
};

LRNN_INLINE struct discrete discrete_times(struct discrete u, struct discrete v) {
    struct discrete w = {u.re * v.re - u.im * v.im, u.re * v.im + u.im * v.re};
    return w;
}

/* Returns conj(u) v: the gradient v of a product with u, carried to the other factor. */
LRNN_INLINE struct discrete discrete_back(struct discrete u, struct discrete v) {
    struct discrete w = {u.re * v.re + u.im * v.im, u.re * v.im - u.im * v.re};
    return w;
}

LRNN_INLINE struct discrete discrete_over(struct discrete u, struct discrete v) {
    double size = v.re * v.re + v.im * v.im;
    struct discrete w = discrete_back(v, u);
    w.re /= size;
    w.im /= size;
    return w;
}

/* Returns phi(z) = (e^z - 1) / z, and its slope phi'(z) = (e^z - phi(z)) / z. For |z| < 1/2 both quotients would
 * cancel, so it sums their series; 18 terms leave less than 1e-21. */
LRNN_INLINE struct discrete discrete_phi(struct discrete z, struct discrete power, struct discrete *slope) {
    struct discrete phi, rest;
    if (z.re * z.re + z.im * z.im < 0.25) {
        struct discrete term = {1, 0};
        phi = term;
        slope->re = slope->im = 0;
        for (int k = 1; k <= 18; k++) {
            slope->re += k * term.re / (k + 1);
            slope->im += k * term.im / (k + 1);
            term = discrete_times(term, z);
            term.re /= k + 1;
            term.im /= k + 1;
            phi.re += term.re;
            phi.im += term.im;
        }
        return phi;
    }
    rest.re = power.re - 1;
    rest.im = power.im;
    phi = discrete_over(rest, z);
    rest.re = power.re - phi.re;
    rest.im = power.im - phi.im;
    *slope = discrete_over(rest, z);
    return phi;
}

/* a and b of one state; their derivatives da and db by z = lambda step; the derivative of b by step at fixed z. */
struct discrete_step {
    struct discrete a, b, da, db, b_by_step;
    double z_by_step; /* z is lambda times step times this number */
};

LRNN_INLINE struct discrete_step discrete_step_of(enum discretisation form, struct discrete lambda, double step) {
    struct discrete_step s;
    if (form == DISCRETISE_ZOH) {
        struct discrete z = {lambda.re * step, lambda.im * step}, slope;
        s.a.re = exp(z.re) * cos(z.im);
        s.a.im = exp(z.re) * sin(z.im);
        s.b_by_step = discrete_phi(z, s.a, &slope);
        s.da = s.a;
        s.db.re = step * slope.re;
        s.db.im = step * slope.im;
        s.z_by_step = 1;
    } else {
        struct discrete one = {1, 0}, below = {1 - lambda.re * step / 2, -lambda.im * step / 2};
        struct discrete above = {1 + lambda.re * step / 2, lambda.im * step / 2}, square;
        s.b_by_step = discrete_over(one, below);
        s.a = discrete_over(above, below);
        square = discrete_times(s.b_by_step, s.b_by_step);
        s.da.re = 2 * square.re;
        s.da.im = 2 * square.im;
        s.db.re = step * square.re;
        s.db.im = step * square.im;
        s.z_by_step = 0.5;
    }
    s.b.re = step * s.b_by_step.re;
    s.b.im = step * s.b_by_step.im;
    return s;
}

/* One state of a call. `clipped`: its real part was replaced by DISCRETISE_MOST. */
struct discrete_state {
    struct discrete lambda;
    double step;
    bool clipped;
};

LRNN_INLINE struct discrete_state discrete_state_of(const struct discretise_attr *a, real re, real im, real step) {
    struct discrete_state s;
    s.clipped = a->clip && re > DISCRETISE_MOST;
    s.lambda.re = s.clipped ? DISCRETISE_MOST : (double)re;
    s.lambda.im = im;
    s.step = step;
    return s;
}

/* Computes the gradients of (lambda.re, lambda.im, step) from the gradients of a and b. */
LRNN_INLINE void discrete_gradients(const struct discretise_attr *attr, const struct discrete_state *x,
                                    struct discrete Ga, struct discrete Gb, double out[3]) {
    struct discrete_step s = discrete_step_of(attr->form, x->lambda, x->step);
    struct discrete by_a = discrete_back(s.da, Ga), by_b = discrete_back(s.db, Gb), Gz;
    Gz.re = by_a.re + by_b.re;
    Gz.im = by_a.im + by_b.im;
    out[0] = x->clipped ? 0 : s.z_by_step * x->step * Gz.re;
    out[1] = s.z_by_step * x->step * Gz.im;
    out[2] = discrete_back(s.b_by_step, Gb).re + s.z_by_step * discrete_back(x->lambda, Gz).re;
}

#endif
