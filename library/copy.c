/* copy.c - see copy.h. */
#include "library/copy.h"

#include <string.h>

#include "kernels/lib/round.h"

/* --- elements ----------------------------------------------------------------------------------------------------- */

static void fetch(enum lrnn_dtype dtype, const void *base, int64_t at, int64_t stride, int64_t n, real *to) {
    if (dtype == LRNN_BF16) {
        const uint16_t *from = (const uint16_t *)base + at;
        for (int64_t i = 0; i < n; i++) {
            uint32_t bits = (uint32_t)from[i * stride] << 16;
            float value;
            memcpy(&value, &bits, sizeof value);
            to[i] = (real)value;
        }
        return;
    }
    const real *from = (const real *)base + at;
    if (stride == 1)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
}

static void store(enum lrnn_dtype dtype, void *base, int64_t at, int64_t stride, int64_t n, const real *from) {
    if (dtype == LRNN_BF16) {
        uint16_t *to = (uint16_t *)base + at;
        for (int64_t i = 0; i < n; i++) to[i * stride] = (uint16_t)(rounded_bits((float)from[i], 16) >> 16);
        return;
    }
    real *to = (real *)base + at;
    if (stride == 1)
        memcpy(to, from, (size_t)n * sizeof *to);
    else
        for (int64_t i = 0; i < n; i++) to[i * stride] = from[i];
}

static enum lrnn_dtype dtype_of(const struct recorder *r) {
    return (enum lrnn_dtype)r->call->dtype;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static int64_t length_of(const struct recorder *r, int64_t b) {
    if (b >= r->call->batch) return 0;
    return r->call->offsets ? r->call->offsets[b + 1] - r->call->offsets[b] : r->call->length;
}

/* Returns the index of element 0 of token t of sequence b. */
static int64_t token_at(const struct recorder *r, const struct side *s, int64_t b, int64_t t) {
    if (r->call->offsets) return (r->call->offsets[b] + t) * s->strides[1];
    return b * s->strides[0] + t * s->strides[1];
}

/* Loops over the parts of a state (B,width) that token t of sequence b has: `at` is the index of a part's first element
 * in the state, `column` its index in the token's row. */
#define FOR_STATE_PARTS(map, s, b, W, t, tokens, column, at)                                                           \
    for (int64_t column = 0,                                                                                           \
                 at = (b) * (s)->strides[0] + ((map).down ? (tokens)-1 - (t) : (t)) * (map).step * (s)->strides[1];    \
         column < (W); column += (map).I, at += (map).outer * (s)->strides[1])

static void pattern_row(const struct lead_pattern *p, int64_t W, int64_t t, real *row) {
    int64_t which = p->each && p->count ? t / p->each % p->count : p->which, period = p->period ? p->period : W;
    for (int64_t e = 0; e < W && p->count; e++) {
        int64_t at = e % period / p->inner % p->count;
        row[e] = at >= which && at <= which + p->more ? p->on : p->off;
    }
}

/* The rows of an array without tokens: shared arrays of rank 1 or 2, (B,W), and (B,rows,W), where the tensor may have
 * more sequences than the caller. */
struct rows {
    int64_t all, callers, inner; /* inner: rows of a sequence */
    int64_t outer_stride, stride, across;
};

static struct rows rows_of(const struct recorder *r, const struct operand *o, const struct side *s) {
    const struct tensor *t = o->tensor;
    struct rows rows = {.all = t->rank == 1 ? 1 : tensor_rows(t), .inner = t->rank == 3 ? t->dims[1] : 1};
    rows.callers = o->axes == AXES_SEQUENCES ? r->call->batch * rows.inner : rows.all;
    rows.outer_stride = s->strides[0];
    rows.stride = s->strides[1];
    rows.across = s->strides[t->rank - 1];
    return rows;
}

static int64_t row_at(const struct rows *rows, int64_t i) {
    return i / rows->inner * rows->outer_stride + i % rows->inner * rows->stride;
}

static void rows_in(const struct recorder *r, const struct operand *o, const struct side *from, real *dense) {
    struct rows rows = rows_of(r, o, from);
    int64_t W = tensor_cols(o->tensor);
    for (int64_t i = 0; i < rows.all; i++)
        if (i < rows.callers)
            fetch(dtype_of(r), from->base, row_at(&rows, i), rows.across, W, dense + i * W);
        else
            memset(dense + i * W, 0, (size_t)W * sizeof *dense);
}

static void rows_out(const struct recorder *r, const struct operand *o, const real *dense, const struct side *to) {
    struct rows rows = rows_of(r, o, to);
    int64_t W = tensor_cols(o->tensor);
    for (int64_t i = 0; i < rows.callers; i++)
        store(dtype_of(r), to->base, row_at(&rows, i), rows.across, W, dense + i * W);
}

/* --- operands ----------------------------------------------------------------------------------------------------- */

static void values_in(const struct recorder *r, const struct operand *o, const struct side *from,
                      const struct side *state, real *dense) {
    if (o->axes != AXES_TOKENS) {
        rows_in(r, o, from, dense);
        return;
    }
    int64_t W = tensor_cols(o->tensor), tokens = o->tensor->dims[1];
#pragma omp parallel for collapse(2) if (r->B * tokens * W >= 32768)
    for (int64_t b = 0; b < r->B; b++)
        for (int64_t t = 0; t < tokens; t++) {
            real *row = dense + (b * tokens + t) * W;
            int64_t length = length_of(r, b), token = t - r->lead;
            if (token >= 0 && token < length) {
                fetch(dtype_of(r), from->base, token_at(r, from, b, token), from->strides[2], W, row);
                continue;
            }
            memset(row, 0, (size_t)W * sizeof *row);
            if (token >= length) {
                if (token < length + r->tail) pattern_row(&o->tail, W, token - length, row);
            } else if (o->state && b < r->call->batch) {
                if (t >= r->lead - r->first.idle) continue;
                FOR_STATE_PARTS(r->first, state, b, W, t, r->lead, column, at)
                fetch(dtype_of(r), state->base, at, state->strides[1], r->first.I, row + column);
                for (int64_t e = 0; e < W; e++) row[e] = state_scaled(&r->first, row[e]);
            } else {
                pattern_row(&o->lead, W, t, row);
            }
        }
}

static void gradient_in(const struct recorder *r, const struct operand *o, const struct side *from,
                        const struct side *state, real *dense) {
    int64_t W = tensor_cols(o->tensor), tokens = o->tensor->dims[1];
#pragma omp parallel for if (r->B * tokens * W >= 32768)
    for (int64_t b = 0; b < r->B; b++) {
        int64_t length = length_of(r, b), last = r->lead + length - (r->tail ? 0 : 1);
        real *rows = dense + b * tokens * W;
        for (int64_t t = 0; t < tokens; t++) {
            int64_t token = t - r->lead;
            if (from->base && token >= 0 && token < length)
                fetch(dtype_of(r), from->base, token_at(r, from, b, token), from->strides[2], W, rows + t * W);
            else
                memset(rows + t * W, 0, (size_t)W * sizeof *rows);
        }
        if (!state->base || !o->state || b >= r->call->batch) continue;
        for (int64_t t = 0; t < (r->tail ? r->tail : 1) && last >= 0; t++)
            FOR_STATE_PARTS(r->last, state, b, W, t, r->tail, column, at)
        for (int64_t i = 0; i < r->last.I; i++) {
            real value;
            fetch(dtype_of(r), state->base, at + i * state->strides[1], 1, 1, &value);
            rows[(last + t) * W + column + i] += value;
        }
    }
}

static void values_out(const struct recorder *r, const struct operand *o, const real *dense, const struct side *to,
                       const struct side *state) {
    int64_t W = tensor_cols(o->tensor), tokens = o->tensor->dims[1];
#pragma omp parallel for if (r->B * tokens * W >= 32768)
    for (int64_t b = 0; b < r->call->batch; b++) {
        int64_t length = length_of(r, b), last = r->lead + length - (r->tail ? 0 : 1);
        const real *rows = dense + b * tokens * W;
        for (int64_t token = 0; token < length && to->base; token++)
            store(dtype_of(r), to->base, token_at(r, to, b, token), to->strides[2], W, rows + (r->lead + token) * W);
        if (!state->base || !o->state) continue;
        for (int64_t t = 0; t < (r->tail ? r->tail : 1); t++)
            FOR_STATE_PARTS(r->last, state, b, W, t, r->tail, column, at)
        for (int64_t i = 0; i < r->last.I; i++) {
            real value = last < 0 ? 0 : rows[(last + t) * W + column + i];
            store(dtype_of(r), state->base, at + i * state->strides[1], 1, 1, &value);
        }
    }
}

/* `dense` belongs to the call, so the gradients of the initial state may be scaled in place. */
static void gradient_out(const struct recorder *r, const struct operand *o, real *dense, const struct side *to,
                         const struct side *state) {
    if (o->axes != AXES_TOKENS) {
        rows_out(r, o, dense, to);
        return;
    }
    int64_t W = tensor_cols(o->tensor), tokens = o->tensor->dims[1];
#pragma omp parallel for if (r->B * tokens * W >= 32768)
    for (int64_t b = 0; b < r->call->batch; b++) {
        real *rows = dense + b * tokens * W;
        for (int64_t token = 0, length = length_of(r, b); token < length && to->base; token++)
            store(dtype_of(r), to->base, token_at(r, to, b, token), to->strides[2], W, rows + (r->lead + token) * W);
        if (!state->base || !o->state) continue;
        for (int64_t e = 0; e < r->lead * W; e++) rows[e] = state_scaled(&r->first, rows[e]);
        for (int64_t t = 0; t < r->lead - r->first.idle; t++)
            FOR_STATE_PARTS(r->first, state, b, W, t, r->lead, column, at)
        store(dtype_of(r), state->base, at, state->strides[1], r->first.I, rows + t * W + column);
    }
}

const struct copier copier_cpu = {
    .values_in = values_in,
    .gradient_in = gradient_in,
    .values_out = values_out,
    .gradient_out = gradient_out,
};
