/* grid_positions.h - the rows of a table of positions that the twins of grid_positions read for a token, and their
 * weights.
 *
 * Along an axis of n positions a table of m entries is resized by the cubic kernel of Keys (1981) with a = -1/2:
 *   entry j has at position i the weight k(c - j), c = (i + 1/2) m / n - 1/2,
 *   k(d) = 3/2 |d|^3 - 5/2 |d|^2 + 1 for |d| <= 1, -1/2 |d|^3 + 5/2 |d|^2 - 4 |d| + 2 for |d| < 2, else 0,
 * where entries outside the table are left out and the weights of the others are scaled to the sum 1. With m = n the
 * weights are exactly 1 and 0. For larger grids this equals jax.image.resize with method "cubic"; for smaller grids
 * that function also smooths, which we do not. */
#ifndef LRNN_KERNELS_MOVE_GRID_POSITIONS_H
#define LRNN_KERNELS_MOVE_GRID_POSITIONS_H

#include <math.h>

#include "kernels/move/take_rows.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CUBIC_TAPS 4

/* The weights of entries first .. first + 3; 0 where there is no such entry. */
struct cubic {
    int64_t first;
    double weight[CUBIC_TAPS];
};

LRNN_INLINE double cubic_kernel(double d) {
    d = fabs(d);
    if (d <= 1) return (1.5 * d - 2.5) * d * d + 1;
    return d < 2 ? ((-0.5 * d + 2.5) * d - 4) * d + 2 : 0;
}

/* The weights at position i of n, for a table of m entries. */
LRNN_INLINE struct cubic cubic_at(int64_t i, int64_t n, int64_t m) {
    double centre = ((double)i + 0.5) * (double)m / (double)n - 0.5, sum = 0;
    struct cubic c;
    c.first = (int64_t)floor(centre) - 1;
    for (int k = 0; k < CUBIC_TAPS; k++) {
        int64_t j = c.first + k;
        c.weight[k] = j >= 0 && j < m ? cubic_kernel(centre - (double)j) : 0;
        sum += c.weight[k];
    }
    for (int k = 0; k < CUBIC_TAPS; k++) c.weight[k] /= sum;
    return c;
}

/* The weight of entry j. */
LRNN_INLINE double cubic_weight(const struct cubic *c, int64_t j) {
    return j >= c->first && j < c->first + CUBIC_TAPS ? c->weight[j - c->first] : 0;
}

/* The grid of one sequence: n tokens in rows of `width`. */
struct token_grid {
    int64_t n, height, width;
};

LRNN_INLINE struct token_grid token_grid_in(const struct grid *own, int64_t n) {
    int64_t width = grid_columns(own, n);
    struct token_grid g = {n, own->height ? own->height : (n + width - 1) / width, width};
    return g;
}

LRNN_INLINE struct token_grid token_grid_of(const struct call *c, int64_t b) {
    const struct grid_positions_attr *a = grid_positions_attr(c);
    return token_grid_in(&a->own, c->in[2] ? tensor_i32(c->in[2])[b] : c->in[0]->dims[1]);
}

/* True if the grid has the table's sides, so that nothing is resized. */
LRNN_INLINE bool token_grid_is(const struct token_grid *g, const struct grid *trained) {
    return g->height == trained->height && g->width == trained->width;
}

#ifdef __cplusplus
}
#endif
#endif
