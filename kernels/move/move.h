/* move.h - ops that move columns and rows. Shapes as in
 * kernels/kernel.h. */
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

/* y[b] = (x[b], p[which]): n rows of the table p [R][D] after the rows of x (B,T,D), which[i] = -1 for a row of zeros
 * -> (B,T+n,D). `which` lives as long as the graph. */
struct tensor *append_rows(struct graph *g, struct tensor *x, struct tensor *p, const int32_t *which, int64_t n);

/* --- whole rows of sequences -------------------------------------------------------------------------------------- */

/* lengths: ids (B), rows in use of each sequence, or NULL: all. */

/* y[b] = the last row in use, the mean of those in use, or the last row of all (the root of a tree): x (B,T,D) ->
 * y (B,D); 0 where there is none. */
enum pooling { POOL_LAST, POOL_MEAN, POOL_TOP };
struct tensor *pool(struct graph *g, struct tensor *x, struct tensor *lengths, enum pooling how);

/* The rows in use in reverse order, the others as they are: x (B,T,D) -> y likewise. */
struct tensor *reverse(struct graph *g, struct tensor *x, struct tensor *lengths);

/* y[b][p] = e[b] + PE[p], sinusoids of the position, first half sines, second half cosines (sequence.c): e (B,D) ->
 * y (B,T,D). */
struct tensor *decode_positions(struct graph *g, struct tensor *e, int64_t T);

/* --- rows at other places ----------------------------------------------------------------------------------------- */

/* By a rule that knows the tokens n of each sequence; zeros where the rule names no row. What stands past the end of
 * a sequence does not reach y. */

/* Row r as it is where it is in use, first[r] < n (NULL: r < n), else zeros: x (B,R,C) -> y likewise. `first` [R] lives
 * as long as the graph. */
struct tensor *rows_in_use(struct graph *g, struct tensor *x, struct tensor *lengths, const int32_t *first);

/* y[b][t] = x[b][t-1], zeros at t = 0 (a token shift): x (B,T,C) -> y likewise. */
struct tensor *rows_before(struct graph *g, struct tensor *x);

/* The first n rows as they are, zeros after them: x (B,R,C) -> y likewise. */
struct tensor *leading_rows(struct graph *g, struct tensor *x, int64_t n);

/* Rows of x (B,1+K,C) for each of T positions. x has a row after each interval of `interval` steps and one before the
 * first, as log_signature (kernels/flow/flow.h) cuts them: position t < n-1 gets the row after the last interval that
 * has ended by then. Position n-1, and all after it, get the row after the interval that holds step n-1, ended or not
 * -> (B,T,C). */
struct tensor *rows_of_intervals(struct graph *g, struct tensor *x, struct tensor *lengths, int64_t interval,
                                 int64_t T);

/* Tokens laid row by row into a grid whose sides are given, or 0: then they follow from the number of tokens, so that a
 * sequence has its own grid, whatever the graph's length: as square as it can be, or as wide as the other side asks
 * for. */
struct grid {
    int64_t height, width;
};

/* Columns of the grid of n tokens, and nodes, missing ones included, of the grid that has room for up to T tokens. */
int64_t grid_width(const struct grid *grid, int64_t n);
int64_t grid_nodes(const struct grid *grid, int64_t T);

/* The tokens x (B,T,C) of each sequence at the upper left of the grid of T tokens -> (B,grid_nodes,C); and back
 * -> (B,T,C). */
struct tensor *rows_to_grid(struct graph *g, struct tensor *x, struct tensor *lengths, const struct grid *grid);
struct tensor *rows_from_grid(struct graph *g, struct tensor *x, struct tensor *lengths, const struct grid *grid,
                              int64_t T);

/* The four corners of the grid of each sequence's tokens x (B,T,C): the upper left one, the lower left, the upper
 * right, the lower right -> (B,4,C). A last row that is not full has no lower right one. */
struct tensor *rows_of_corners(struct graph *g, struct tensor *x, struct tensor *lengths, const struct grid *grid);

/* --- positions of a grid ------------------------------------------------------------------------------------------ */

/* y[b][t] = x[b][t] + the table's vector at the position of token t in the grid of sequence b, whose sides follow as
 * above from `own` and its tokens n: x (B,T,D), table (height * width, D) of the grid `trained`, both sides given; what
 * stands past a sequence's end stays as it is. Where the grid has other sides, the table is resized to them: bicubic,
 * pixels as areas (grid_positions.h). */
struct tensor *grid_positions(struct graph *g, struct tensor *x, struct tensor *table, struct tensor *lengths,
                              const struct grid *trained, const struct grid *own);

/* --- attributes: what a call keeps for its twins ------------------------------------------------------------------ */

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
    int64_t tokens;   /* most that a sequence can have */
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
