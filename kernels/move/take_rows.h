/* take_rows.h - which row each row of y comes from: what the twins of take_rows share. */
#ifndef LRNN_KERNELS_TAKE_ROWS_H
#define LRNN_KERNELS_TAKE_ROWS_H

#include "kernels/lib/infer.h"
#include "kernels/move/move.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One sequence: n tokens, in a grid of `own` columns within one of `width`. */
struct row_source {
    const struct take_rows_attr *attr;
    int64_t n, own, width;
};

LRNN_INLINE struct row_source row_source_of(const struct call *c, int64_t b) {
    const struct take_rows_attr *a = (const struct take_rows_attr *)c->attr;
    struct row_source s = {a, c->in[1] ? tensor_i32(c->in[1])[b] : a->tokens, 1, 1};
    if (a->rule == ROWS_TO_GRID || a->rule == ROWS_FROM_GRID) {
        s.own = grid_width(&a->grid, s.n);
        s.width = grid_width(&a->grid, a->tokens);
    }
    return s;
}

/* The row of x that row r of y is, or -1 for zeros. */
LRNN_INLINE int64_t row_source(const struct row_source *s, int64_t r) {
    const struct take_rows_attr *a = s->attr;
    int64_t last = s->n > 0 ? s->n - 1 : 0, token;
    switch (a->rule) {
    case ROWS_IN_USE:
        return (a->first ? a->first[r] : r) < s->n ? r : -1;
    case ROWS_OF_INTERVALS:
        return r < last ? r / a->interval : (last + a->interval - 1) / a->interval;
    case ROWS_TO_GRID:
        token = r / s->width * s->own + r % s->width;
        return r % s->width < s->own && token < s->n ? token : -1;
    case ROWS_FROM_GRID:
        return r < s->n ? r / s->own * s->width + r % s->own : -1;
    }
    return -1;
}

#ifdef __cplusplus
}
#endif
#endif
