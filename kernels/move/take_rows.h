/* take_rows.h - the source of each row of y, shared by the twins of take_rows. */
#ifndef LRNN_KERNELS_MOVE_TAKE_ROWS_H
#define LRNN_KERNELS_MOVE_TAKE_ROWS_H

#include "kernels/lib/infer.h"
#include "kernels/move/move.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Like grid_width, for twins. */
LRNN_INLINE int64_t grid_columns(const struct grid *grid, int64_t n) {
    int64_t w = 1;
    if (grid->width) return grid->width;
    if (grid->height) return n > grid->height ? (n + grid->height - 1) / grid->height : 1;
    while (w * w < n) w++;
    return w;
}

/* One sequence: n tokens, in a grid of `own` columns within one of `width`. */
struct row_source {
    const struct take_rows_attr *attr;
    int64_t n, own, width;
};

LRNN_INLINE struct row_source row_source_in(const struct take_rows_attr *a, int64_t n) {
    struct row_source s = {a, n, 1, 1};
    if (a->rule == ROWS_TO_GRID || a->rule == ROWS_FROM_GRID || a->rule == ROWS_OF_CORNERS) {
        s.own = grid_columns(&a->grid, n);
        s.width = grid_columns(&a->grid, a->tokens);
    }
    return s;
}

LRNN_INLINE struct row_source row_source_of(const struct call *c, int64_t b) {
    const struct take_rows_attr *a = take_rows_attr(c);
    return row_source_in(a, c->in[1] ? tensor_i32(c->in[1])[b] : a->tokens);
}

/* The row of x that row r of y copies, or -1 for zeros. */
LRNN_INLINE int64_t row_source(const struct row_source *s, int64_t r) {
    const struct take_rows_attr *a = s->attr;
    int64_t last = s->n > 0 ? s->n - 1 : 0, token;
    switch (a->rule) {
    case ROWS_BEFORE:
        return r - 1;
    case ROWS_IN_USE:
        return (a->first ? a->first[r] : r) < s->n ? r : -1;
    case ROWS_OF_INTERVALS:
        return r < last ? r / a->interval : (last + a->interval - 1) / a->interval;
    case ROWS_TO_GRID:
        token = r / s->width * s->own + r % s->width;
        return r % s->width < s->own && token < s->n ? token : -1;
    case ROWS_FROM_GRID:
        return r < s->n ? r / s->own * s->width + r % s->own : -1;
    case ROWS_OF_CORNERS:
        token = (r & 1 ? last / s->own * s->own : 0) + (r & 2 ? s->own - 1 : 0);
        return token < s->n ? token : -1;
    }
    return -1;
}

/* Only rows of y in [*begin, *end) can copy row t of x, and rows from *again on, where the last interval's row is
 * repeated. */
LRNN_INLINE void row_targets(const struct row_source *s, int64_t t, int64_t rows, int64_t *begin, int64_t *end,
                             int64_t *again) {
    const struct take_rows_attr *a = s->attr;
    int64_t last = s->n > 0 ? s->n - 1 : 0;
    *begin = t;
    *again = rows;
    if (a->rule == ROWS_BEFORE) *begin = t + 1;
    if (a->rule == ROWS_TO_GRID) *begin = t / s->own * s->width + t % s->own;
    if (a->rule == ROWS_FROM_GRID) *begin = t / s->width * s->own + t % s->width;
    *end = *begin + 1;
    if (a->rule == ROWS_OF_CORNERS) *begin = 0, *end = rows; /* in a grid of one row or column, two corners are equal */
    if (a->rule == ROWS_OF_INTERVALS) {
        *begin = t * a->interval;
        *end = *begin + a->interval < last ? *begin + a->interval : last;
        *again = last;
    }
    if (*end > rows) *end = rows;
}

#ifdef __cplusplus
}
#endif
#endif
