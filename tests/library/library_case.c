/* library_case.c - see library_case.h. */
#include "tests/library/library_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/philox.h"
#include "tests/testing.h"

#define GUARD 64

/* --- the ops ------------------------------------------------------------------------------------------------------ */

#define ENTRY(op)                                                                                                      \
    static lrnn_status op##_workspace(const void *d, lrnn_pass pass, size_t *bytes) {                                  \
        return lrnn_##op##_workspace((const lrnn_##op *)d, pass, bytes);                                               \
    }                                                                                                                  \
    static lrnn_status op##_forward(const void *d) {                                                                   \
        return lrnn_##op##_forward((const lrnn_##op *)d);                                                              \
    }                                                                                                                  \
    static lrnn_status op##_backward(const void *d) {                                                                  \
        return lrnn_##op##_backward((const lrnn_##op *)d);                                                             \
    }
#define LIBRARY(op) ENTRY(op)
#include "library/list.def"
#undef LIBRARY

/* SIZES(name, op, assignments to d) */
#define SIZES(name, op, ...)                                                                                           \
    static void name##_sizes(void *descriptor) {                                                                       \
        lrnn_##op *d = descriptor;                                                                                     \
        __VA_ARGS__;                                                                                                   \
    }
SIZES(diag, scan_diag, d->width = 5)
SIZES(diag_constant, scan_diag, d->width = 5; d->constant = 1)
SIZES(complex, scan_diag_complex, d->width = 3)
SIZES(complex_constant, scan_diag_complex, d->width = 3; d->constant = 1)
SIZES(block, scan_block, d->blocks = 3; d->m = 2)
SIZES(block_sigmoid, scan_block, d->blocks = 2; d->m = 3; d->gate = LRNN_SIGMOID)
SIZES(block_relu, scan_block, d->blocks = 2; d->m = 1; d->gate = LRNN_RELU)
SIZES(block_none, scan_block, d->blocks = 2; d->m = 2; d->gate = LRNN_NONE)
SIZES(companion, scan_companion, d->channels = 3; d->m = 3)
SIZES(observer, scan_companion, d->channels = 3; d->m = 2; d->observer = 1)
SIZES(observer_sigmoid, scan_companion, d->channels = 2; d->m = 1; d->gate = LRNN_SIGMOID; d->observer = 1)
SIZES(observer_relu, scan_companion, d->channels = 2; d->m = 3; d->gate = LRNN_RELU; d->observer = 1)
SIZES(observer_none, scan_companion, d->channels = 2; d->m = 4; d->gate = LRNN_NONE; d->observer = 1)
SIZES(lstm, scan_lstm, d->width = 3)
SIZES(outer, scan_outer, d->heads = d->groups = 2; d->key = 3; d->value = 4; d->scale = 0.5)
SIZES(outer_groups, scan_outer, d->heads = 4; d->groups = 2; d->key = 3; d->value = 2; d->scale = 1)
#define DELTA_SIZES                                                                                                    \
    d->heads = 2;                                                                                                      \
    d->key = 3;                                                                                                        \
    d->value = 2;                                                                                                      \
    d->scale = 0.7;                                                                                                    \
    d->rate = 1.5;                                                                                                     \
    d->steps
SIZES(delta, scan_delta, DELTA_SIZES = 1)
SIZES(delta_erase, scan_delta, DELTA_SIZES = 1; d->channels = 1)
SIZES(delta_steps, scan_delta, DELTA_SIZES = 2)
SIZES(delta_none, scan_delta, DELTA_SIZES = 1)
SIZES(plstm, scan_plstm, d->heads = 2; d->states = 2; d->key = 2; d->value = 3; d->scale = 0.7)
SIZES(grid, grid_scan, d->rows = 2; d->columns = 3; d->heads = 2; d->key = 2; d->value = 3; d->scale = 0.7)
/* Three graphs of 5 nodes: edges 0-1, 0-2, 1-3, 2-3, 3-4, where a multitree leaves out the pair of 2-3 and 3-4; a path;
 * and no edge. */
static const int32_t dag_links[3][2 * 5 + 3 * 5] = {
    {0, 1, 0, 2, 1, 3, 2, 3, 3, 4, 0, 2, 0, 1, 3, 0, 2, 4, 0, 3, 4, 0, -1, -1, -1},
    {0, 1, 1, 2, 2, 3, 3, 4, -1, -1, 0, 1, 0, 1, 2, 0, 2, 3, -1, -1, -1, -1, -1, -1, -1},
    {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
};
#define DAG_SIZES                                                                                                      \
    d->heads = 2;                                                                                                      \
    d->key = 2;                                                                                                        \
    d->value = 3;                                                                                                      \
    d->edges = d->pairs = 5;                                                                                           \
    d->scale = 0.7;                                                                                                    \
    d->links = dag_links[0];                                                                                           \
    d->reversed
SIZES(dag, dag_scan, DAG_SIZES = 0)
SIZES(dag_tree, dag_scan, DAG_SIZES = 1; d->tree = 1)
SIZES(flow, scan_flow, d->blocks = 2; d->m = 2)
SIZES(dplr, scan_dplr, d->width = 3; d->rank = 2)
SIZES(hadamard, scan_hadamard, d->width = 4)
SIZES(tree, tree_solve, d->arity = 2; d->levels = 3; d->width = 2; d->beta = 0.4)
SIZES(tree_free, tree_solve, d->arity = 3; d->levels = 2; d->width = 2; d->beta = 0.3; d->form = LRNN_FREE)

#define OP(op)    #op, sizeof(lrnn_##op), op##_workspace, op##_forward, op##_backward
#define AT(op, f) #f, offsetof(lrnn_##op, f)
#define IN(op, f, w)                                                                                                   \
    { AT(op, f), BOX_IN, BOX_TOKENS, 0, w, -1, 1 }
#define BETWEEN(op, f, w, a, b)                                                                                        \
    { AT(op, f), BOX_IN, BOX_TOKENS, 0, w, a, b }
#define ROW(op, f, w)                                                                                                  \
    { AT(op, f), BOX_IN, BOX_SEQUENCES, 0, w, -1, 1 }
#define SHARED(op, f, r, w)                                                                                            \
    { AT(op, f), BOX_IN, BOX_SHARED, r, w, -1, 1 }
#define OUT(op, f, w)                                                                                                  \
    { AT(op, f), BOX_OUT, BOX_TOKENS, 0, w, -1, 1 }
#define FIRST(op, f, w)                                                                                                \
    { AT(op, f), BOX_FIRST, BOX_SEQUENCES, 0, w, -1, 1 }
#define LAST(op, f, w)                                                                                                 \
    { AT(op, f), BOX_LAST, BOX_SEQUENCES, 0, w, -1, 1 }
#define EACH(op, f, r, w)                                                                                              \
    { AT(op, f), BOX_IN, BOX_SEQUENCES, r, w, -1, 1 }
#define DAG_ARRAYS                                                                                                     \
    {                                                                                                                  \
        IN(dag_scan, q, 4), IN(dag_scan, k, 4), IN(dag_scan, v, 6), EACH(dag_scan, source, 5, 2),                      \
            EACH(dag_scan, mark, 5, 2), EACH(dag_scan, transition, 5, 2), IN(dag_scan, direct, 2), OUT(dag_scan, y, 6) \
    }
#define LENGTH 7

const struct op_case op_cases[] = {
    {OP(scan_diag),
     diag_sizes,
     3,
     LENGTH,
     true,
     {IN(scan_diag, a, 5), IN(scan_diag, x, 5), OUT(scan_diag, h, 5), FIRST(scan_diag, h0, 5),
      LAST(scan_diag, last, 5)}},
    {OP(scan_diag),
     diag_constant_sizes,
     3,
     LENGTH,
     true,
     {SHARED(scan_diag, a, 0, 5), IN(scan_diag, x, 5), OUT(scan_diag, h, 5), FIRST(scan_diag, h0, 5),
      LAST(scan_diag, last, 5)}},
    {OP(scan_diag_complex),
     complex_sizes,
     3,
     LENGTH,
     true,
     {BETWEEN(scan_diag_complex, a_re, 3, -.7, .7), BETWEEN(scan_diag_complex, a_im, 3, -.7, .7),
      IN(scan_diag_complex, x_re, 3), IN(scan_diag_complex, x_im, 3), OUT(scan_diag_complex, h_re, 3),
      OUT(scan_diag_complex, h_im, 3), FIRST(scan_diag_complex, h0_re, 3), FIRST(scan_diag_complex, h0_im, 3),
      LAST(scan_diag_complex, last_re, 3), LAST(scan_diag_complex, last_im, 3)}},
    {OP(scan_diag_complex),
     complex_constant_sizes,
     2,
     LENGTH,
     true,
     {SHARED(scan_diag_complex, a_re, 0, 3), SHARED(scan_diag_complex, a_im, 0, 3), IN(scan_diag_complex, x_re, 3),
      IN(scan_diag_complex, x_im, 3), OUT(scan_diag_complex, h_re, 3), OUT(scan_diag_complex, h_im, 3)}},
    {OP(scan_block),
     block_sizes,
     3,
     LENGTH,
     true,
     {IN(scan_block, z, 18), IN(scan_block, v, 6), OUT(scan_block, h, 6), FIRST(scan_block, h0, 6),
      LAST(scan_block, last, 6)}},
    {OP(scan_block),
     block_sigmoid_sizes,
     3,
     LENGTH,
     true,
     {IN(scan_block, z, 24), IN(scan_block, v, 6), OUT(scan_block, h, 6), FIRST(scan_block, h0, 6),
      LAST(scan_block, last, 6)}},
    {OP(scan_block),
     block_relu_sizes,
     3,
     LENGTH,
     true,
     {BETWEEN(scan_block, z, 4, .1, 1), IN(scan_block, v, 2), OUT(scan_block, h, 2), FIRST(scan_block, h0, 2),
      LAST(scan_block, last, 2)}},
    {OP(scan_block),
     block_none_sizes,
     2,
     LENGTH,
     true,
     {BETWEEN(scan_block, z, 12, -.5, .5), IN(scan_block, v, 4), OUT(scan_block, h, 4), FIRST(scan_block, h0, 4),
      LAST(scan_block, last, 4)}},
    {OP(scan_companion),
     companion_sizes,
     3,
     LENGTH,
     true,
     {IN(scan_companion, z, 12), IN(scan_companion, v, 3), OUT(scan_companion, s, 9), FIRST(scan_companion, s0, 9),
      LAST(scan_companion, last, 9)}},
    {OP(scan_companion),
     observer_sizes,
     2,
     LENGTH,
     true,
     {IN(scan_companion, z, 9), IN(scan_companion, v, 3), OUT(scan_companion, s, 6), FIRST(scan_companion, s0, 6),
      LAST(scan_companion, last, 6)}},
    {OP(scan_companion),
     observer_sigmoid_sizes,
     3,
     LENGTH,
     true,
     {IN(scan_companion, z, 4), IN(scan_companion, v, 2), OUT(scan_companion, s, 2), FIRST(scan_companion, s0, 2),
      LAST(scan_companion, last, 2)}},
    {OP(scan_companion),
     observer_relu_sizes,
     2,
     LENGTH,
     true,
     {BETWEEN(scan_companion, z, 8, .1, 1), IN(scan_companion, v, 2), OUT(scan_companion, s, 6),
      FIRST(scan_companion, s0, 6), LAST(scan_companion, last, 6)}},
    {OP(scan_companion),
     observer_none_sizes,
     2,
     LENGTH,
     true,
     {BETWEEN(scan_companion, z, 10, -.5, .5), IN(scan_companion, v, 2), OUT(scan_companion, s, 8),
      FIRST(scan_companion, s0, 8), LAST(scan_companion, last, 8)}},
    {OP(scan_lstm),
     lstm_sizes,
     3,
     LENGTH,
     true,
     {IN(scan_lstm, u, 12), SHARED(scan_lstm, wh, 12, 3), SHARED(scan_lstm, bh, 0, 12), OUT(scan_lstm, h, 3)}},
    {OP(scan_lstm),
     lstm_sizes,
     3,
     LENGTH,
     true,
     {IN(scan_lstm, u, 12), SHARED(scan_lstm, wh, 12, 3), SHARED(scan_lstm, bh, 0, 12), ROW(scan_lstm, h0, 3),
      ROW(scan_lstm, c0, 3), OUT(scan_lstm, h, 3), OUT(scan_lstm, c, 3)}},
    {OP(scan_lstm),
     lstm_sizes,
     3,
     LENGTH,
     true,
     {IN(scan_lstm, u, 12), SHARED(scan_lstm, wh, 12, 3), SHARED(scan_lstm, bh, 0, 12), OUT(scan_lstm, h, 3),
      OUT(scan_lstm, c, 3)}},
    {OP(scan_outer),
     outer_sizes,
     2,
     LENGTH,
     true,
     {IN(scan_outer, q, 6), IN(scan_outer, k, 6), IN(scan_outer, v, 8), BETWEEN(scan_outer, decay, 2, .2, 1),
      IN(scan_outer, source, 2), OUT(scan_outer, o, 8), FIRST(scan_outer, c0, 24), LAST(scan_outer, last, 24)}},
    {OP(scan_outer),
     outer_groups_sizes,
     2,
     LENGTH,
     true,
     {IN(scan_outer, q, 6), IN(scan_outer, k, 6), IN(scan_outer, v, 8), BETWEEN(scan_outer, decay, 4, .2, 1),
      OUT(scan_outer, o, 8)}},
    {OP(scan_delta),
     delta_sizes,
     2,
     LENGTH,
     true,
     {IN(scan_delta, q, 6), IN(scan_delta, k, 6), IN(scan_delta, v, 4), BETWEEN(scan_delta, beta, 2, .2, .8),
      BETWEEN(scan_delta, decay, 2, .5, 1), OUT(scan_delta, o, 4), FIRST(scan_delta, s0, 12),
      LAST(scan_delta, last, 12)}},
    {OP(scan_delta),
     delta_erase_sizes,
     2,
     LENGTH,
     true,
     {IN(scan_delta, q, 6), IN(scan_delta, k, 6), IN(scan_delta, v, 4), BETWEEN(scan_delta, decay, 6, .5, 1),
      BETWEEN(scan_delta, read, 6, -.5, .5), BETWEEN(scan_delta, erase, 6, -.5, .5), OUT(scan_delta, o, 4),
      FIRST(scan_delta, s0, 12), LAST(scan_delta, last, 12)}},
    {OP(scan_delta),
     delta_steps_sizes,
     2,
     LENGTH,
     true,
     {IN(scan_delta, q, 6), IN(scan_delta, k, 12), IN(scan_delta, v, 8), BETWEEN(scan_delta, read, 12, -.5, .5),
      OUT(scan_delta, o, 4)}},
    {OP(scan_delta),
     delta_none_sizes,
     2,
     LENGTH,
     true,
     {IN(scan_delta, q, 6), IN(scan_delta, k, 6), IN(scan_delta, v, 4), OUT(scan_delta, o, 4),
      FIRST(scan_delta, s0, 12), LAST(scan_delta, last, 12)}},
    {OP(scan_plstm),
     plstm_sizes,
     2,
     LENGTH,
     true,
     {IN(scan_plstm, q, 4), IN(scan_plstm, k, 4), IN(scan_plstm, v, 6), IN(scan_plstm, source, 4),
      BETWEEN(scan_plstm, transition, 8, -.5, .5), IN(scan_plstm, mark, 4), IN(scan_plstm, direct, 2),
      OUT(scan_plstm, y, 6), FIRST(scan_plstm, c0, 24), LAST(scan_plstm, last, 24)}},
    {OP(grid_scan),
     grid_sizes,
     2,
     6,
     false,
     {IN(grid_scan, q, 4), IN(grid_scan, k, 4), IN(grid_scan, v, 6), BETWEEN(grid_scan, gates, 64, -.5, .5),
      IN(grid_scan, direct, 2), OUT(grid_scan, y, 6)}},
    {OP(dag_scan), dag_sizes, 3, 5, false, DAG_ARRAYS},
    {OP(dag_scan), dag_tree_sizes, 3, 5, false, DAG_ARRAYS},
    {OP(scan_flow),
     flow_sizes,
     3,
     LENGTH,
     true,
     {BETWEEN(scan_flow, a, 8, -.4, .4), ROW(scan_flow, y0, 4), OUT(scan_flow, y, 4)}},
    {OP(scan_dplr),
     dplr_sizes,
     3,
     LENGTH,
     true,
     {BETWEEN(scan_dplr, d, 3, -.4, .4), BETWEEN(scan_dplr, u, 6, -.5, .5), BETWEEN(scan_dplr, v, 6, -.5, .5),
      ROW(scan_dplr, y0, 3), OUT(scan_dplr, y, 3)}},
    {OP(scan_hadamard),
     hadamard_sizes,
     3,
     LENGTH,
     true,
     {BETWEEN(scan_hadamard, d, 4, -.4, .4), ROW(scan_hadamard, y0, 4), OUT(scan_hadamard, y, 4)}},
    {OP(tree_solve),
     tree_sizes,
     2,
     7,
     false,
     {IN(tree_solve, up_re, 2), IN(tree_solve, up_im, 2), IN(tree_solve, u_re, 2), IN(tree_solve, u_im, 2),
      OUT(tree_solve, x_re, 2), OUT(tree_solve, x_im, 2)}},
    {OP(tree_solve),
     tree_free_sizes,
     2,
     4,
     false,
     {IN(tree_solve, up_re, 2), IN(tree_solve, up_im, 2), IN(tree_solve, down_re, 2), IN(tree_solve, down_im, 2),
      IN(tree_solve, u_re, 2), IN(tree_solve, u_im, 2), OUT(tree_solve, x_re, 2), OUT(tree_solve, x_im, 2)}},
};

int op_case_count(void) {
    return (int)(sizeof op_cases / sizeof *op_cases);
}

const struct op_case *op_case_of(const char *name) {
    for (int i = 0; i < op_case_count(); i++)
        if (strcmp(op_cases[i].name, name) == 0) return &op_cases[i];
    return NULL;
}

/* --- boxes -------------------------------------------------------------------------------------------------------- */

static size_t element_bytes(int dtype) {
    return dtype == LRNN_BF16 ? 2 : dtype == LRNN_F32 ? 4 : 8;
}

int64_t box_count(const struct box *x) {
    int64_t n = 1;
    for (int i = 0; i < x->rank; i++) n *= x->dims[i];
    return n;
}

static char *element(const struct box *x, int64_t i) {
    int64_t at = 0;
    for (int axis = x->rank - 1; axis >= 0; axis--) {
        at += i % x->dims[axis] * x->strides[axis];
        i /= x->dims[axis];
    }
    return (char *)x->data + at * (int64_t)element_bytes(x->dtype);
}

double real_of_dtype(int dtype, double value) {
    if (dtype == LRNN_F64) return value;
    float f = (float)value;
    if (dtype == LRNN_F32 || isnan(f)) return f;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&f, &bits, sizeof f);
    return f;
}

double box_get(const struct box *x, int64_t i) {
    const char *at = element(x, i);
    uint16_t half;
    uint32_t bits;
    float f;
    double value;
    if (x->dtype == LRNN_F64) {
        memcpy(&value, at, sizeof value);
        return value;
    }
    if (x->dtype == LRNN_F32) {
        memcpy(&f, at, sizeof f);
        return (double)f;
    }
    memcpy(&half, at, sizeof half);
    bits = (uint32_t)half << 16;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

void box_put(const struct box *x, int64_t i, double value) {
    char *at = element(x, i);
    float f = (float)real_of_dtype(x->dtype, value);
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    uint16_t half = (uint16_t)(bits >> 16);
    if (x->dtype == LRNN_F64)
        memcpy(at, &value, sizeof value);
    else if (x->dtype == LRNN_F32)
        memcpy(at, &f, sizeof f);
    else
        memcpy(at, &half, sizeof half);
}

size_t box_memory_bytes(const struct box *x) {
    return (x->bytes + 2 * GUARD + 63) / 64 * 64;
}

void box_reserve(struct box *x, size_t bytes) {
    x->bytes = bytes;
    x->memory = aligned_alloc(64, box_memory_bytes(x));
    memset(x->memory, 0xA5, box_memory_bytes(x));
    x->data = (char *)x->memory + GUARD;
}

/* Whether nothing was written outside the elements: before and after them, and between them where they lie apart. */
static bool guards_intact(const struct box *x) {
    const unsigned char *bytes = x->memory;
    size_t total = x->bytes + 2 * GUARD, outside = 0;
    bool *own = calloc(total, sizeof *own);
    ck_assert_ptr_nonnull(own);
    if (x->rank == 0) memset(own + GUARD, true, x->bytes);
    for (int64_t i = 0; i < box_count(x) && x->rank > 0; i++)
        memset(own + (element(x, i) - (const char *)x->memory), true, element_bytes(x->dtype));
    for (size_t i = 0; i < total && bytes; i++) outside += !own[i] && bytes[i] != 0xA5;
    free(own);
    return outside == 0;
}

/* Apart: gaps between elements, rows and sequences, and the tokens of a sequence in reverse order of memory. */
static void box_make(struct box *x, int rank, const int64_t *dims, int dtype, enum box_layout layout) {
    int64_t stride = layout == LAYOUT_APART ? 2 : 1, elements = 1;
    *x = (struct box){.rank = rank, .dtype = dtype};
    for (int i = rank - 1; i >= 0; i--) {
        x->dims[i] = dims[i];
        x->strides[i] = stride;
        elements += stride * (dims[i] > 0 ? dims[i] - 1 : 0);
        stride = stride * dims[i] + (layout == LAYOUT_APART ? 3 : 0);
    }
    box_reserve(x, (size_t)elements * element_bytes(dtype));
    if (layout == LAYOUT_APART && rank == 3 && dims[1] > 1) {
        x->data = (char *)x->data + (dims[1] - 1) * x->strides[1] * (int64_t)element_bytes(dtype);
        x->strides[1] = -x->strides[1];
    }
    for (int64_t i = 0; i < box_count(x); i++) box_put(x, i, (double)NAN);
}

static void box_fill(const struct box *x, double low, double high, uint64_t seed, uint64_t index) {
    struct rng rng = rng_at(seed, STREAM_TEST, index);
    for (int64_t i = 0; i < box_count(x); i++) box_put(x, i, low + (high - low) * (double)rng_uniform(&rng));
}

lrnn_call *boxes_call(struct op_boxes *b) {
    return (lrnn_call *)(void *)b->descriptor;
}

lrnn_array *boxes_array(struct op_boxes *b, int i) {
    return (lrnn_array *)(void *)(b->descriptor + b->op->arrays[i].at);
}

void boxes_make(struct op_boxes *b, const struct op_case *op, int64_t batch, int64_t length, const int64_t *offsets,
                int dtype, enum box_layout layout, bool states, uint64_t seed) {
    memset(b, 0, sizeof *b);
    b->op = op;
    *boxes_call(b) =
        (lrnn_call){.size = op->size, .dtype = dtype, .batch = batch, .length = length, .offsets = offsets};
    op->sizes(b->descriptor);
    for (int i = 0; i < CASE_ARRAYS && op->arrays[i].name; i++) {
        const struct array_case *a = &op->arrays[i];
        if (!states && (a->role == BOX_FIRST || a->role == BOX_LAST)) continue;
        int64_t tokens[] = {offsets ? 1 : batch, length, a->width}, sequences[] = {batch, a->width},
                rows[] = {batch, a->rows, a->width};
        int rank = a->axes == BOX_TOKENS ? 3 : (a->axes == BOX_SEQUENCES) + (a->rows > 0) + 1;
        const int64_t *dims = a->axes == BOX_TOKENS   ? tokens
                              : a->axes == BOX_SHARED ? rows + (a->rows ? 1 : 2)
                              : a->rows               ? rows
                                                      : sequences;
        box_make(&b->value[i], rank, dims, dtype, layout);
        box_make(&b->gradient[i], rank, dims, dtype, layout);
        if (a->role == BOX_IN || a->role == BOX_FIRST) box_fill(&b->value[i], a->low, a->high, seed, (uint64_t)i);
        if (a->role == BOX_OUT || a->role == BOX_LAST) box_fill(&b->gradient[i], -1, 1, seed, 100 + (uint64_t)i);
        lrnn_array *array = boxes_array(b, i);
        array->data = b->value[i].data;
        array->grad = b->gradient[i].data;
        memcpy(array->strides, b->value[i].strides, sizeof array->strides);
        memcpy(array->grad_strides, b->gradient[i].strides, sizeof array->grad_strides);
    }
}

void boxes_leave_out(struct op_boxes *b, int i) {
    *boxes_array(b, i) = (lrnn_array){0};
    free(b->value[i].memory);
    free(b->gradient[i].memory);
    b->value[i] = b->gradient[i] = (struct box){0};
}

void boxes_forget(struct op_boxes *b, int i) {
    boxes_array(b, i)->data = boxes_array(b, i)->grad = NULL;
}

void boxes_forget_gradient(struct op_boxes *b, int i) {
    boxes_array(b, i)->grad = NULL;
}

void boxes_free(struct op_boxes *b) {
    for (int i = 0; i < CASE_ARRAYS; i++) {
        free(b->value[i].memory);
        free(b->gradient[i].memory);
    }
    free(b->workspace.memory);
}

void boxes_run(struct op_boxes *b, lrnn_pass pass) {
    size_t bytes = 0;
    ck_assert_msg(b->op->workspace(b->descriptor, pass, &bytes) == LRNN_OK, "%s", lrnn_last_error());
    free(b->workspace.memory);
    box_reserve(&b->workspace, bytes);
    boxes_call(b)->workspace = b->workspace.data;
    boxes_call(b)->workspace_bytes = bytes;
    lrnn_status status = pass == LRNN_FORWARD ? b->op->forward(b->descriptor) : b->op->backward(b->descriptor);
    ck_assert_msg(status == LRNN_OK, "%s", lrnn_last_error());
    boxes_check_guards(b);
}

/* A copy of the memory of all boxes, one after another. The caller frees it. */
static char *memory_of(const struct op_boxes *b, size_t *bytes) {
    char *copy = NULL;
    *bytes = 0;
    for (int i = 0; i < 2 * CASE_ARRAYS; i++) {
        const struct box *x = i % 2 ? &b->gradient[i / 2] : &b->value[i / 2];
        if (!x->memory) continue;
        copy = realloc(copy, *bytes + box_memory_bytes(x));
        ck_assert_ptr_nonnull(copy);
        memcpy(copy + *bytes, x->memory, box_memory_bytes(x));
        *bytes += box_memory_bytes(x);
    }
    return copy;
}

void boxes_refused(const struct op_boxes *b, lrnn_pass pass, lrnn_status status, const char *words) {
    size_t bytes;
    char *before = memory_of(b, &bytes);
    lrnn_status found = pass == LRNN_FORWARD ? b->op->forward(b->descriptor) : b->op->backward(b->descriptor);
    ck_assert_msg(found == status && strstr(lrnn_last_error(), words), "%s: %d, expected %d with \"%s\": %s",
                  b->op->name, found, status, words, lrnn_last_error());
    char *after = memory_of(b, &bytes);
    ck_assert_msg(memcmp(before, after, bytes) == 0, "%s writes although it refuses: %s", b->op->name,
                  lrnn_last_error());
    free(before);
    free(after);
}

void boxes_links_refused(struct op_boxes *b, const int32_t *(*put)(void *to, const int32_t *links, size_t bytes),
                         void *to) {
    static const struct {
        int row, at, value; /* the number to change */
        const char *words;
    } faults[] = {
        {0, 9, 5, "links of sequence 0: edge 4 leads from 3 to 5, expected nodes from 0 to 4"},
        {1, 6, INT32_MAX, "links of sequence 1: edge 3 leads from 2147483647 to 4"},
        {1, 8, 0, "edge 4 leads from 0 to -1"},
        {0, 0, -2, "edge 0 leads from -2 to 1"},
        {0, 6, 3, "edge 3 leads from 3 to 3, expected nodes from 0 to 4, the tail below the head"},
        {0, 1, 3, "edge 1, from 0 to 2, comes after one from 0 to 3"},
        {0, 14, 5, "pair 1 is 1, 5, 0"},
        {0, 14, INT32_MAX, "pair 1 is 1, 2147483647, 0"},
        {0, 13, 2, "pair 1 is 2, 3, 0, expected an edge, a later one that begins where it ends"},
        {0, 12, 7, "pair 0 is 0, 2, 7"},
        {2, 10, 0, "links of sequence 2: pair 0 is 0, -1, -1"},
    };
    lrnn_dag_scan *d = (lrnn_dag_scan *)(void *)b->descriptor;
    const int32_t *there = d->links;
    int32_t links[3][25];
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        memcpy(links, dag_links, sizeof links);
        links[faults[i].row][faults[i].at] = faults[i].value;
        d->links = put(to, links[0], sizeof links);
        boxes_refused(b, LRNN_FORWARD, LRNN_BAD_ARGUMENT, faults[i].words);
    }
    d->links = there;
}

void boxes_check_guards(const struct op_boxes *b) {
    ck_assert(guards_intact(&b->workspace));
    for (int i = 0; i < CASE_ARRAYS; i++)
        if (b->value[i].memory)
            ck_assert_msg(guards_intact(&b->value[i]) && guards_intact(&b->gradient[i]), "%s %s", b->op->name,
                          b->op->arrays[i].name);
}

void boxes_compare(const struct op_boxes *a, const struct op_boxes *b, lrnn_pass pass, double tolerance) {
    for (int i = 0; i < CASE_ARRAYS && a->op->arrays[i].name; i++) {
        enum box_role role = a->op->arrays[i].role;
        bool written = pass == LRNN_FORWARD ? role == BOX_OUT || role == BOX_LAST : role == BOX_IN || role == BOX_FIRST;
        const struct box *x = pass == LRNN_FORWARD ? &a->value[i] : &a->gradient[i];
        const struct box *y = pass == LRNN_FORWARD ? &b->value[i] : &b->gradient[i];
        for (int64_t e = 0; e < box_count(x) && written && x->memory; e++)
            ck_assert_msg(fabs(box_get(x, e) - box_get(y, e)) <= tolerance * (1 + fabs(box_get(y, e))),
                          "%s %s[%d] pass %d: %.9g and %.9g", a->op->name, a->op->arrays[i].name, (int)e, pass,
                          box_get(x, e), box_get(y, e));
    }
}
