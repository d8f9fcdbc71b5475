/* rows_cuda.cu - ops that move rows, on CUDA: take_rows, append_rows and decode_positions, one value per thread;
 * neighbouring threads have neighbouring columns. The op's table lists the terms of an entry's gradient, so that sums
 * are in the reference's order; they are in double too. Equations: take_rows.c, append_rows.c, sequence.c. */
#include "kernels/lib/cuda.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/move/sequence.h"
#include "kernels/move/take_rows.h"

namespace {

/* --- take_rows ---------------------------------------------------------------------------------------------------- */

/* Sequences of T rows in x and `rows` rows in y. */
struct taking {
    struct take_rows_attr attr; /* first: the table's */
    const int32_t *lengths;     /* or NULL */
    int64_t T, rows, D;

    __device__ struct row_source source(int64_t b) const {
        return row_source_in(&attr, lengths ? lengths[b] : attr.tokens);
    }
};

struct take {
    struct taking k;
    const real *x;
    real *y;
    __device__ void operator()(int64_t i) const {
        struct quotient row = divide(i, k.D), at = divide(row.whole, k.rows);
        struct row_source s = k.source(at.whole);
        int64_t from = row_source(&s, at.rest);
        y[i] = from < 0 ? 0 : x[(at.whole * k.T + from) * k.D + row.rest];
    }
};

struct take_gradient {
    struct taking k;
    const real *dy;
    real *dx;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        struct quotient row = divide(i, k.D), at = divide(row.whole, k.T);
        struct row_source s = k.source(at.whole);
        int64_t begin, end, again;
        const real *d = dy + at.whole * k.rows * k.D + row.rest;
        double sum = 0;
        row_targets(&s, at.rest, k.rows, &begin, &end, &again);
        for (int64_t r = begin; r < end; r++)
            if (row_source(&s, r) == at.rest) sum += (double)d[r * k.D];
        for (int64_t r = again; r < k.rows && row_source(&s, r) == at.rest; r++) sum += (double)d[r * k.D];
        put(dx + i, accumulate, (real)sum);
    }
};

struct taking taking_of(const struct call *c) {
    const struct tensor *x = c->in[0];
    struct taking k = {*take_rows_attr(c), c->in[1] ? tensor_i32(c->in[1]) : nullptr, x->dims[1], c->out[0]->dims[1],
                       x->dims[2]};
    k.attr.first = c->table;
    return k;
}

/* --- append_rows -------------------------------------------------------------------------------------------------- */

/* n rows after T. */
struct append {
    const real *x, *p;
    const int32_t *which;
    real *y;
    int64_t T, n, D;
    __device__ void operator()(int64_t i) const {
        struct quotient row = divide(i, D), at = divide(row.whole, T + n);
        if (at.rest < T) {
            y[i] = x[(at.whole * T + at.rest) * D + row.rest];
            return;
        }
        int32_t entry = which[at.rest - T];
        y[i] = entry < 0 ? 0 : p[entry * D + row.rest];
    }
};

struct append_dx {
    const real *dy;
    real *dx;
    int64_t T, n, D;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        put(dx + i, accumulate, dy[i + divide(i, T * D).whole * n * D]);
    }
};

struct append_dp {
    const real *dy;
    const int32_t *start; /* the inverse of which */
    real *dp;
    int64_t B, T, n, D, entries;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, D);
        const int32_t *place = start + entries + 1;
        double sum = 0;
        for (int64_t b = 0; b < B; b++)
            for (int32_t k = start[at.whole]; k < start[at.whole + 1]; k++)
                sum += (double)dy[(b * (T + n) + T + place[k]) * D + at.rest];
        put(dp + i, accumulate, (real)sum);
    }
};

/* --- decode_positions --------------------------------------------------------------------------------------------- */

/* The codes (T,D), computed once for all sequences, because sines and cosines in double take long. */
struct position_codes {
    real *to;
    int64_t D;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, D);
        int64_t h = D / 2, j = at.rest < h ? at.rest : at.rest - h;
        double angle = (double)at.whole * position_frequency(j, D);
        to[i] = (real)(at.rest >= 2 * h ? 0 : at.rest < h ? sin(angle) : cos(angle));
    }
};

struct decode {
    const real *e, *codes;
    real *y;
    int64_t T, D;
    __device__ void operator()(int64_t i) const {
        struct quotient sequence = divide(i, T * D);
        y[i] = e[sequence.whole * D + divide(i, D).rest] + codes[sequence.rest];
    }
};

struct decode_gradient {
    const real *dy;
    real *de;
    int64_t T, D;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, D);
        double sum = 0;
        for (int64_t p = 0; p < T; p++) sum += (double)dy[(at.whole * T + p) * D + at.rest];
        put(de + i, accumulate, (real)sum);
    }
};

} // namespace

static void take_rows_cuda_forward(const struct call *c, const struct exec *x) {
    each_value(c, x, tensor_count(c->out[0]), take{taking_of(c), tensor_real(c->in[0]), tensor_real(c->out[0])});
}

static void take_rows_cuda_backward(const struct call *c, const struct exec *x) {
    if (c->din[0])
        each_value(c, x, tensor_count(c->in[0]),
                   take_gradient{taking_of(c), call_dout(c, 0), c->din[0], call_accumulates(c, 0)});
}

static void append_rows_cuda_forward(const struct call *c, const struct exec *x) {
    const struct append_rows_attr *a = append_rows_attr(c);
    each_value(c, x, tensor_count(c->out[0]),
               append{tensor_real(c->in[0]), tensor_real(c->in[1]), c->table, tensor_real(c->out[0]), c->in[0]->dims[1],
                      a->n, c->in[0]->dims[2]});
}

static void append_rows_cuda_backward(const struct call *c, const struct exec *x) {
    const struct append_rows_attr *a = append_rows_attr(c);
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    if (c->din[0])
        each_value(c, x, B * T * D, append_dx{call_dout(c, 0), c->din[0], T, a->n, D, call_accumulates(c, 0)});
    if (c->din[1])
        each_value(c, x, tensor_count(c->in[1]),
                   append_dp{call_dout(c, 0), c->table + a->n, c->din[1], B, T, a->n, D, c->in[1]->dims[0],
                             call_accumulates(c, 1)});
}

static size_t decode_positions_cuda_workspace(const struct call *c, enum pass pass) {
    int64_t codes = c->out[0]->dims[1] * c->out[0]->dims[2];
    return pass == PASS_FORWARD ? scratch_single(c, (size_t)codes * sizeof(real)) : 0;
}

static void decode_positions_cuda_forward(const struct call *c, const struct exec *x) {
    int64_t T = c->out[0]->dims[1], D = c->out[0]->dims[2];
    real *codes = (real *)c->scratch[PASS_FORWARD];
    each_value(c, x, T * D, position_codes{codes, D});
    each_value(c, x, tensor_count(c->out[0]), decode{tensor_real(c->in[0]), codes, tensor_real(c->out[0]), T, D});
}

static void decode_positions_cuda_backward(const struct call *c, const struct exec *x) {
    if (c->din[0])
        each_value(
            c, x, tensor_count(c->in[0]),
            decode_gradient{call_dout(c, 0), c->din[0], c->out[0]->dims[1], c->in[0]->dims[1], call_accumulates(c, 0)});
}

const struct kernel kernel_take_rows_cuda = {
    .name = "take_rows_cuda",
    .op = &op_take_rows,
    .device = DEVICE_CUDA,
    .forward = take_rows_cuda_forward,
    .backward = take_rows_cuda_backward,
};

const struct kernel kernel_append_rows_cuda = {
    .name = "append_rows_cuda",
    .op = &op_append_rows,
    .device = DEVICE_CUDA,
    .forward = append_rows_cuda_forward,
    .backward = append_rows_cuda_backward,
};

/* Tolerance: sine and cosine of the device's library differ from the host's in their last digits, at angles up to the
 * length, and so may round to a neighbouring real. */
const struct kernel kernel_decode_positions_cuda = {
    .name = "decode_positions_cuda",
    .op = &op_decode_positions,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 32,
    .workspace = decode_positions_cuda_workspace,
    .forward = decode_positions_cuda_forward,
    .backward = decode_positions_cuda_backward,
};
