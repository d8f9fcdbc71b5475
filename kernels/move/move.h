/* move.h - ops that move columns and rows. Shapes as in kernels/kernel.h. */
#ifndef LRNN_KERNELS_MOVE_MOVE_H
#define LRNN_KERNELS_MOVE_MOVE_H

#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/move/list.def"

/* --- columns ------------------------------------------------------------------------------------------------------ */

/* Cuts x (rows, sum of widths) into `parts` <= OP_MAX_OUT tensors of neighbouring columns, widths[i] wide; leading axes
 * as x. The tensors go to out[]; all NULL after an error. */
void split(struct graph *g, struct tensor *x, int parts, const int64_t *widths, struct tensor **out);

/* y[r][c] = x[r][from + c] for c < count: x (rows,C) -> y (rows,count), leading axes as x. */
struct tensor *columns(struct graph *g, struct tensor *x, int64_t from, int64_t count);

/* y[r] = (a[r], b[r]): a (rows,P), b (rows,Q), equal leading axes -> y (rows,P+Q). */
struct tensor *join_columns(struct graph *g, struct tensor *a, struct tensor *b);

/* y[r] = factor * (1, x[r]): x (rows,C) -> y (rows,C+1). The increment of a path whose first channel is time. */
struct tensor *prepend_one(struct graph *g, struct tensor *x, double factor);

/* y[c*n + i] = p[c], i < n: p [C] -> y [C*n] (one number per head, used by all its channels). */
struct tensor *repeat_each(struct graph *g, struct tensor *p, int64_t n);

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* y[b] = (x[b], p[which]): appends n rows of the table p [R][D] to the rows of x (B,T,D), or a row of zeros where
 * which[i] is -1 -> (B,T+n,D). `which` must live as long as the graph. */
struct tensor *append_rows(struct graph *g, struct tensor *x, struct tensor *p, const int32_t *which, int64_t n);

/* --- whole rows of sequences -------------------------------------------------------------------------------------- */

/* lengths: ids (B), rows in use of each sequence, or NULL: all. */

/* y[b] = the last row in use, the mean of the rows in use, or the last of all rows (the root of a tree): x (B,T,D) ->
 * y (B,D); 0 if no row is in use. */
enum pooling { POOL_LAST, POOL_MEAN, POOL_TOP };
struct tensor *pool(struct graph *g, struct tensor *x, struct tensor *lengths, enum pooling how);

/* Reverses the rows in use and keeps the other rows: x (B,T,D) -> y likewise. */
struct tensor *reverse(struct graph *g, struct tensor *x, struct tensor *lengths);

/* y[b][p] = e[b] + PE[p], sinusoids of the position, first half sines, second half cosines (sequence.c): e (B,D) ->
 * y (B,T,D). */
struct tensor *decode_positions(struct graph *g, struct tensor *e, int64_t T);

/* --- rows at other places ----------------------------------------------------------------------------------------- */

/* These rules know the number of tokens n of each sequence. Rows of y for which a rule names no row of x are zeros. No
 * row past the end of a sequence reaches y. */

/* Keeps row r if it is in use, first[r] < n (NULL: r < n), else makes it zeros: x (B,R,C) -> y likewise. `first` [R]
 * must live as long as the graph. */
struct tensor *rows_in_use(struct graph *g, struct tensor *x, struct tensor *lengths, const int32_t *first);

/* y[b][t] = x[b][t-1], zeros at t = 0 (a token shift): x (B,T,C) -> y likewise. */
struct tensor *rows_before(struct graph *g, struct tensor *x);

/* Keeps the first n rows and makes the others zeros: x (B,R,C) -> y likewise. */
struct tensor *leading_rows(struct graph *g, struct tensor *x, int64_t n);

/* A row of x (B,1+K,C) for each of T positions -> (B,T,C). x has a row before the first interval and one after each
 * interval of `interval` steps, as log_signature (kernels/flow/flow.h) cuts them. Position t < n-1 gets the row after
 * the last interval that has ended by then. Position n-1 and all later positions get the row after the interval that
 * contains step n-1, even if it has not ended. */
struct tensor *rows_of_intervals(struct graph *g, struct tensor *x, struct tensor *lengths, int64_t interval,
                                 int64_t T);

/* A grid that tokens fill row by row. A side of 0 follows from the number of tokens of a sequence, whatever the graph's
 * length: the grid is as square as possible, or large enough with the given other side. */
struct grid {
    int64_t height, width;
};

/* The number of columns of the grid of n tokens, and the number of nodes, with missing nodes, of a grid that has room
 * for up to T tokens. */
int64_t grid_width(const struct grid *grid, int64_t n);
int64_t grid_nodes(const struct grid *grid, int64_t T);

/* Puts the tokens x (B,T,C) of each sequence at the upper left of the grid of T tokens -> (B,grid_nodes,C); and back
 * -> (B,T,C). */
struct tensor *rows_to_grid(struct graph *g, struct tensor *x, struct tensor *lengths, const struct grid *grid);
struct tensor *rows_from_grid(struct graph *g, struct tensor *x, struct tensor *lengths, const struct grid *grid,
                              int64_t T);

/* The four corners of the grid of each sequence's tokens x (B,T,C): upper left, lower left, upper right, lower right ->
 * (B,4,C). If the last row is not full, there is no lower right corner. */
struct tensor *rows_of_corners(struct graph *g, struct tensor *x, struct tensor *lengths, const struct grid *grid);

/* --- positions of a grid ------------------------------------------------------------------------------------------ */

/* y[b][t] = x[b][t] + the table's vector at the position of token t in the grid of sequence b. The sides of that grid
 * follow as above from `own` and the number of tokens n. x (B,T,D); table (height * width, D) of the grid `trained`,
 * with both sides given. Rows past a sequence's end do not change. If the grid has other sides than `trained`, the
 * table is resized: bicubic, pixels as areas (grid_positions.h). */
struct tensor *grid_positions(struct graph *g, struct tensor *x, struct tensor *table, struct tensor *lengths,
                              const struct grid *trained, const struct grid *own);

/* --- attributes of a call, for its twins -------------------------------------------------------------------------- */

struct split_attr {
    int64_t from; /* first column of the first part */
    int parts;
    int64_t widths[OP_MAX_OUT];
};

LRNN_INLINE const struct split_attr *split_attr(const struct call *c) {
    return (const struct split_attr *)c->attr;
}

struct prepend_one_attr {
    double factor;
};

LRNN_INLINE const struct prepend_one_attr *prepend_one_attr(const struct call *c) {
    return (const struct prepend_one_attr *)c->attr;
}

struct repeat_each_attr {
    int64_t n;
};

LRNN_INLINE const struct repeat_each_attr *repeat_each_attr(const struct call *c) {
    return (const struct repeat_each_attr *)c->attr;
}

struct append_rows_attr {
    const int32_t *which;
    int64_t n;
};

LRNN_INLINE const struct append_rows_attr *append_rows_attr(const struct call *c) {
    return (const struct append_rows_attr *)c->attr;
}

struct pool_attr {
    enum pooling how;
};

LRNN_INLINE const struct pool_attr *pool_attr(const struct call *c) {
    return (const struct pool_attr *)c->attr;
}

struct decode_attr {
    int64_t T;
};

LRNN_INLINE const struct decode_attr *decode_attr(const struct call *c) {
    return (const struct decode_attr *)c->attr;
}

struct grid_positions_attr {
    struct grid trained, own;
};

LRNN_INLINE const struct grid_positions_attr *grid_positions_attr(const struct call *c) {
    return (const struct grid_positions_attr *)c->attr;
}

enum row_rule { ROWS_IN_USE, ROWS_BEFORE, ROWS_OF_INTERVALS, ROWS_TO_GRID, ROWS_FROM_GRID, ROWS_OF_CORNERS };

struct take_rows_attr {
    enum row_rule rule;
    int64_t rows;     /* of y */
    int64_t tokens;   /* the most tokens that a sequence may have */
    int64_t interval; /* ROWS_OF_INTERVALS */
    struct grid grid; /* ROWS_TO_GRID, ROWS_FROM_GRID, ROWS_OF_CORNERS */
    const int32_t *first;
};

LRNN_INLINE const struct take_rows_attr *take_rows_attr(const struct call *c) {
    return (const struct take_rows_attr *)c->attr;
}

#ifdef __cplusplus
}
#endif
#endif
