/* tree_bound.c - see tree_bound.h. Rows are computed in parallel, heads in lanes. */
#include "kernels/tree/tree_bound.h"

#include "core/real_math.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"

#define M     TREE_BLOCK_MAX
#define LANES 16 /* heads computed together; a strip of fewer heads has zeros in its other lanes */

/* The matrices of LANES heads; element (i,j) is number i * m + j. */
struct lanes {
    real re[M * M][LANES], im[M * M][LANES];
};

/* y += sign a b, with conj(a) or conj(b) if wanted. */
LRNN_INLINE void add(struct lanes *y, int64_t to, real sign, bool conj_a, const struct lanes *a, int64_t i, bool conj_b,
                     const struct lanes *b, int64_t j) {
    real of_a = conj_a ? -sign : sign, of_b = conj_b ? -1 : 1;
#pragma omp simd
    for (int k = 0; k < LANES; k++) {
        real a_re = sign * a->re[i][k], a_im = of_a * a->im[i][k], b_re = b->re[j][k], b_im = of_b * b->im[j][k];
        y->re[to][k] = real_fma(a_re, b_re, real_fma(-a_im, b_im, y->re[to][k]));
        y->im[to][k] = real_fma(a_re, b_im, real_fma(a_im, b_re, y->im[to][k]));
    }
}

/* y = by a */
LRNN_INLINE void scale(struct lanes *y, int64_t to, real by, const struct lanes *a, int64_t i) {
#pragma omp simd
    for (int k = 0; k < LANES; k++) {
        y->re[to][k] = by * a->re[i][k];
        y->im[to][k] = by * a->im[i][k];
    }
}

/* Reads the strip that begins with head p of one row of matrices. */
static void load(const struct tree_matrices *s, struct tree_planes from, int64_t row, int64_t p, struct lanes *to) {
    int64_t n = s->P - p < LANES ? s->P - p : LANES;
    for (int64_t e = 0; e < s->m * s->m; e++)
        for (int64_t k = 0; k < LANES; k++) {
            int64_t at = (row * s->m * s->m + e) * s->P + p + k;
            to->re[e][k] = k < n ? from.re[at] : 0;
            to->im[e][k] = k < n ? from.im[at] : 0;
        }
}

static void store(const struct tree_matrices *s, const struct lanes *from, int64_t row, int64_t p, real *const to[2],
                  const bool add[2]) {
    int64_t n = s->P - p < LANES ? s->P - p : LANES;
    for (int64_t e = 0; e < s->m * s->m; e++) {
        int64_t at = (row * s->m * s->m + e) * s->P + p;
        for (int64_t k = 0; to[0] && k < n; k++) put(to[0] + at + k, add[0], from->re[e][k]);
        for (int64_t k = 0; to[1] && k < n; k++) put(to[1] + at + k, add[1], from->im[e][k]);
    }
}

/* Makes the columns of [Theta; I] orthonormal (modified Gram-Schmidt): `top` has Theta and becomes B / beta, `bottom`
 * becomes L^-H, which is upper triangular. Its error grows like the norm of Theta; that of the Cholesky factor, like
 * its square. */
static void orthonormalise(int64_t m, struct lanes *top, struct lanes *bottom) {
    for (int64_t j = 0; j < m; j++) {
        struct lanes along;
        real size[LANES] = {0};
        for (int64_t i = 0; i <= j; i++)
            for (int k = 0; k < LANES; k++) bottom->re[i * m + j][k] = i == j, bottom->im[i * m + j][k] = 0;
        for (int64_t k = 0; k < j; k++) {
            scale(&along, 0, 0, top, 0);
            for (int64_t i = 0; i < m; i++) add(&along, 0, 1, true, top, i * m + k, false, top, i * m + j);
            for (int64_t i = 0; i <= k; i++) add(&along, 0, 1, true, bottom, i * m + k, false, bottom, i * m + j);
            for (int64_t i = 0; i < m; i++) add(top, i * m + j, -1, false, top, i * m + k, false, &along, 0);
            for (int64_t i = 0; i <= k; i++) add(bottom, i * m + j, -1, false, bottom, i * m + k, false, &along, 0);
        }
        for (int64_t i = 0; i < m + j + 1; i++) {
            const struct lanes *q = i < m ? top : bottom;
            int64_t e = (i < m ? i : i - m) * m + j;
            for (int k = 0; k < LANES; k++)
                size[k] = real_fma(q->re[e][k], q->re[e][k], real_fma(q->im[e][k], q->im[e][k], size[k]));
        }
        for (int k = 0; k < LANES; k++) size[k] = 1 / real_sqrt(size[k]);
        for (int64_t i = 0; i < m + j + 1; i++) {
            struct lanes *q = i < m ? top : bottom;
            int64_t e = (i < m ? i : i - m) * m + j;
            for (int k = 0; k < LANES; k++) q->re[e][k] *= size[k], q->im[e][k] *= size[k];
        }
    }
}

static void bound_strip(const struct tree_matrices *s, struct tree_planes from, real *const to[2], int64_t row,
                        int64_t p) {
    struct lanes b, bottom;
    load(s, from, row, p, &b);
    orthonormalise(s->m, &b, &bottom);
    for (int64_t e = 0; e < s->m * s->m; e++) scale(&b, e, (real)s->beta, &b, e);
    store(s, &b, row, p, to, (const bool[2]){false, false});
}

/* With Q = B / beta the gradient is beta (G - Q Y) L^-1, where Y is made of Q^H G^H. */
static void unbound_strip(const struct tree_matrices *s, struct tree_planes from, struct tree_planes gradient,
                          real *const to[2], const bool add_to[2], int64_t row, int64_t p) {
    struct lanes q, bottom, g, y, w, z;
    int64_t m = s->m;
    load(s, from, row, p, &q);
    load(s, gradient, row, p, &g);
    orthonormalise(m, &q, &bottom);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j <= i; j++) { /* the lower half of Y */
            scale(&y, i * m + j, 0, &g, 0);
            for (int64_t k = 0; k < m; k++) add(&y, i * m + j, 1, true, &g, k * m + i, false, &q, k * m + j);
            for (int k = 0; i == j && k < LANES; k++) y.im[i * m + j][k] = 0;
        }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) {
            scale(&w, i * m + j, 1, &g, i * m + j);
            for (int64_t k = 0; k < m; k++)
                add(&w, i * m + j, -1, false, &q, i * m + k, k < j, &y, k < j ? j * m + k : k * m + j);
        }
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) {
            scale(&z, i * m + j, 0, &w, 0);
            for (int64_t k = j; k < m; k++)
                add(&z, i * m + j, (real)s->beta, false, &w, i * m + k, true, &bottom, j * m + k);
        }
    store(s, &z, row, p, to, add_to);
}

void tree_bound_rows(const struct tree_matrices *s, struct tree_planes theta, real *b_re, real *b_im) {
    int64_t strips = (s->P + LANES - 1) / LANES;
    real *const to[2] = {b_re, b_im};
#pragma omp parallel for schedule(static) if (s->rows * s->m * s->m * s->P > PARALLEL_MIN)
    for (int64_t i = 0; i < s->rows * strips; i++) bound_strip(s, theta, to, i / strips, i % strips * LANES);
}

void tree_unbound_rows(const struct tree_matrices *s, struct tree_planes theta, struct tree_planes g, real *const to[2],
                       const bool add[2]) {
    int64_t strips = (s->P + LANES - 1) / LANES;
#pragma omp parallel for schedule(static) if (s->rows * s->m * s->m * s->P > PARALLEL_MIN)
    for (int64_t i = 0; i < s->rows * strips; i++) unbound_strip(s, theta, g, to, add, i / strips, i % strips * LANES);
}
