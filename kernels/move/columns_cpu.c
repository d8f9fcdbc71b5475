/* columns_cpu.c - split, join_columns and prepend_one with chunks of rows on threads, a row's columns in vectors.
 * Equations: columns.c. All are copies (times one factor), so the bits are the reference's. */
#include <string.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/move/move.h"

static void split_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct split_attr *a = split_attr(c);
    int64_t rows = tensor_rows(c->in[0]), columns = tensor_cols(c->in[0]), chunks = row_chunks(rows);
#pragma omp parallel for schedule(static) if (rows * columns > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) {
            const real *from = tensor_real(c->in[0]) + r * columns + a->from;
            for (int p = 0; p < a->parts; from += a->widths[p], p++)
                memcpy(tensor_real(c->out[p]) + r * a->widths[p], from, (size_t)a->widths[p] * sizeof *from);
        }
    }
}

/* The gradient of the columns of one part of a row; dy NULL: it is 0. */
static void gradient_part(int64_t n, const real *dy, real *dx, bool accumulate) {
    if (dy && accumulate) {
#pragma omp simd
        for (int64_t i = 0; i < n; i++) dx[i] += dy[i];
    } else if (dy) {
        memcpy(dx, dy, (size_t)n * sizeof *dx);
    } else if (!accumulate) {
        memset(dx, 0, (size_t)n * sizeof *dx);
    }
}

static void split_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    const struct split_attr *a = split_attr(c);
    int64_t rows = tensor_rows(c->in[0]), columns = tensor_cols(c->in[0]), chunks = row_chunks(rows);
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (rows * columns > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(rows, chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) {
            real *row = c->din[0] + r * columns, *to = row + a->from;
            gradient_part(a->from, NULL, row, call_accumulates(c, 0));
            for (int p = 0; p < a->parts; to += a->widths[p], p++)
                gradient_part(a->widths[p], call_dout(c, p) ? call_dout(c, p) + r * a->widths[p] : NULL, to,
                              call_accumulates(c, 0));
            gradient_part(row + columns - to, NULL, to, call_accumulates(c, 0));
        }
    }
}

/* dst[r][begin + c] (+)= factor * src[r][c]: n columns of rows that lie dst_stride and src_stride apart. */
struct move {
    int64_t rows, n;
    const real *src;
    int64_t src_stride;
    real *dst;
    int64_t dst_stride;
    real factor;
    bool add;
    int64_t begin;
};

static void move_row(const struct move *m, int64_t r) {
    const real *src = m->src + r * m->src_stride;
    real *dst = m->dst + r * m->dst_stride + m->begin;
    if (m->add) {
#pragma omp simd
        for (int64_t c = 0; c < m->n; c++) dst[c] += m->factor * src[c];
    } else if (m->factor != 1) {
#pragma omp simd
        for (int64_t c = 0; c < m->n; c++) dst[c] = m->factor * src[c];
    } else {
        memcpy(dst, src, (size_t)m->n * sizeof *dst);
    }
}

static void move_columns(struct move m) {
    int64_t chunks = row_chunks(m.rows);
#pragma omp parallel for schedule(static) if (m.rows * m.n > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        struct range part = part_at(m.rows, chunks, k);
        for (int64_t r = part.begin; r < part.end; r++) move_row(&m, r);
    }
}

static void join_columns_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t P = tensor_cols(c->in[0]), C = tensor_cols(c->out[0]);
    for (int part = 0; part < 2; part++)
        move_columns((struct move){.rows = tensor_rows(c->out[0]),
                                   .n = part ? C - P : P,
                                   .src = tensor_real(c->in[part]),
                                   .src_stride = part ? C - P : P,
                                   .dst = tensor_real(c->out[0]),
                                   .dst_stride = C,
                                   .factor = 1,
                                   .begin = part ? P : 0});
}

static void join_columns_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t P = tensor_cols(c->in[0]), C = tensor_cols(c->out[0]);
    for (int part = 0; part < 2; part++)
        if (c->din[part])
            move_columns((struct move){.rows = tensor_rows(c->out[0]),
                                       .n = part ? C - P : P,
                                       .src = call_dout(c, 0) + (part ? P : 0),
                                       .src_stride = C,
                                       .dst = c->din[part],
                                       .dst_stride = part ? C - P : P,
                                       .factor = 1,
                                       .add = call_accumulates(c, part)});
}

static void prepend_one_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    real factor = (real)prepend_one_attr(c)->factor;
    int64_t rows = tensor_rows(c->in[0]), C = tensor_cols(c->in[0]);
    move_columns((struct move){.rows = rows,
                               .n = C,
                               .src = tensor_real(c->in[0]),
                               .src_stride = C,
                               .dst = tensor_real(c->out[0]),
                               .dst_stride = C + 1,
                               .factor = factor,
                               .begin = 1});
    for (int64_t r = 0; r < rows; r++) tensor_real(c->out[0])[r * (C + 1)] = factor;
}

static void prepend_one_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    real factor = (real)prepend_one_attr(c)->factor;
    int64_t C = tensor_cols(c->in[0]);
    if (!c->din[0]) return;
    move_columns((struct move){.rows = tensor_rows(c->in[0]),
                               .n = C,
                               .src = call_dout(c, 0) + 1,
                               .src_stride = C + 1,
                               .dst = c->din[0],
                               .dst_stride = C,
                               .factor = factor,
                               .add = call_accumulates(c, 0)});
}

/* --- repeat_each -------------------------------------------------------------------------------------------------- */

static void repeat_each_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t n = repeat_each_attr(c)->n, C = tensor_count(c->in[0]);
#pragma omp parallel for schedule(static) if (C * n > PARALLEL_MIN)
    for (int64_t p = 0; p < C; p++) {
        real value = tensor_real(c->in[0])[p], *y = tensor_real(c->out[0]) + p * n;
#pragma omp simd
        for (int64_t i = 0; i < n; i++) y[i] = value;
    }
}

static void repeat_each_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t n = repeat_each_attr(c)->n, C = tensor_count(c->in[0]);
    if (!c->din[0]) return;
#pragma omp parallel for schedule(static) if (C * n > PARALLEL_MIN)
    for (int64_t p = 0; p < C; p++) {
        const real *dy = call_dout(c, 0) + p * n;
        real sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < n; i++) sum += dy[i];
        put(c->din[0] + p, call_accumulates(c, 0), sum);
    }
}

/* Tolerance: dp sums n terms in `real`, the reference in double. */
const struct kernel kernel_repeat_each_cpu = {
    .name = "repeat_each_cpu",
    .op = &op_repeat_each,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 32,
    .forward = repeat_each_cpu_forward,
    .backward = repeat_each_cpu_backward,
};

const struct kernel kernel_split_cpu = {
    .name = "split_cpu",
    .op = &op_split,
    .device = DEVICE_CPU,
    .forward = split_cpu_forward,
    .backward = split_cpu_backward,
};

const struct kernel kernel_join_columns_cpu = {
    .name = "join_columns_cpu",
    .op = &op_join_columns,
    .device = DEVICE_CPU,
    .forward = join_columns_cpu_forward,
    .backward = join_columns_cpu_backward,
};

const struct kernel kernel_prepend_one_cpu = {
    .name = "prepend_one_cpu",
    .op = &op_prepend_one,
    .device = DEVICE_CPU,
    .forward = prepend_one_cpu_forward,
    .backward = prepend_one_cpu_backward,
};
