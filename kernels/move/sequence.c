/* sequence.c - ops that move whole rows of sequences: pool, reverse, decode_positions: the ops and their references.
 *
 *   pool               last: y[b] = x[b][n-1];  mean: y[b] = 1/n sum over t < n of x[b][t];  n = lengths[b], y = 0 if
 *                      n = 0
 *   reverse            y[b][t] = x[b][n-1-t] for t < n, else x[b][t]; its own adjoint
 *   decode_positions   y[b][p] = e[b] + PE[p], PE[p] = (sin(p w_j), cos(p w_j)), w_j = 10000^(-j/(h-1)), j < h = D/2;
 *                      an odd last column is 0 (athms/mad-lab, mad/model/auto_encoder.py)
 *                      de[b] = sum over p of dy[b][p] */
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"
#include "kernels/move/move.h"
#include "kernels/move/sequence.h"

#include <inttypes.h>
#include <string.h>

struct tensor *pool(struct graph *g, struct tensor *x, struct tensor *lengths, enum pooling how) {
    bool top = how == POOL_TOP; /* the last row in use, where all are */
    struct pool_attr attr = {.how = top ? POOL_LAST : how};
    return call1(g, &op_pool, &attr, sizeof attr, (struct tensor *[]){x, top ? NULL : lengths}, 2);
}

struct tensor *reverse(struct graph *g, struct tensor *x, struct tensor *lengths) {
    return call1(g, &op_reverse, NULL, 0, (struct tensor *[]){x, lengths}, 2);
}

struct tensor *decode_positions(struct graph *g, struct tensor *e, int64_t T) {
    struct decode_attr attr = {.T = T};
    return call1(g, &op_decode_positions, &attr, sizeof attr, (struct tensor *[]){e}, 1);
}

/* x (B,T,D) and lengths (B) of at most T each. */
static bool infer_lengths(struct graph *g, const struct call *c) {
    const struct tensor *x = c->in[0], *n = c->in[1];
    if (!infer_present(g, c, 1)) return false;
    if (x->rank != 3) {
        graph_fail(g, ST_USAGE, "%s: x has rank %d, expected 3 (B,T,D)", c->op->name, x->rank);
        return false;
    }
    if (!n || (n->rank == 1 && n->dims[0] == x->dims[0] && n->limit <= x->dims[1] + 1)) return true;
    graph_fail(g, ST_USAGE,
               "%s: %" PRId64 " lengths of at most %" PRId32 " do not fit x of %" PRId64 " sequences of %" PRId64,
               c->op->name, tensor_count(n), n->limit - 1, x->dims[0], x->dims[1]);
    return false;
}

static void pool_infer(struct graph *g, struct call *c) {
    if (infer_lengths(g, c)) graph_output(g, c, DT_REAL, 2, (int64_t[]){c->in[0]->dims[0], c->in[0]->dims[2]});
}

static void reverse_infer(struct graph *g, struct call *c) {
    if (infer_lengths(g, c)) graph_output(g, c, DT_REAL, 3, c->in[0]->dims);
}

static void decode_infer(struct graph *g, struct call *c) {
    int64_t T = decode_attr(c)->T;
    if (!infer_present(g, c, 1)) return;
    if (c->in[0]->rank != 2 || T < 1)
        graph_fail(g, ST_USAGE,
                   "decode_positions: e has rank %d and there are %" PRId64
                   " positions, expected rank 2 and at least 1",
                   c->in[0]->rank, T);
    else
        graph_output(g, c, DT_REAL, 3, (int64_t[]){c->in[0]->dims[0], T, c->in[0]->dims[1]});
}

/* Counts each of x and y once; a forward pool of the last row reads only that row. */
static struct cost sequence_cost(const struct call *c, enum pass pass) {
    double x = (double)tensor_count(c->in[0]), y = (double)tensor_count(c->out[0]);
    bool last = c->op == &op_pool && pool_attr(c)->how == POOL_LAST;
    bool sums = c->op == &op_decode_positions || (c->op == &op_pool && !last);
    double bytes = last && pass == PASS_FORWARD ? 2 * y : x + y;
    return (struct cost){sums ? fmax(x, y) : 0, sizeof(real) * bytes};
}

/* Variants: the last row in use; the mean of the rows in use; the last of all rows; the mean of all rows. */
static bool pool_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 3) return false;
    struct tensor *x = input_tokens(g, s, "x", s->dim), *lengths = s->variant < 2 ? input_lengths(g, s) : NULL;
    pool(g, x, lengths, s->variant % 2 ? POOL_MEAN : POOL_LAST);
    return true;
}

/* Variants: the rows in use; all rows. */
static bool reverse_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    struct tensor *x = input_tokens(g, s, "x", s->dim);
    reverse(g, x, s->variant ? NULL : input_lengths(g, s));
    return true;
}

static bool decode_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 0) return false;
    decode_positions(g, input_matrix(g, "e", s->batch, s->dim), s->length);
    return true;
}

const struct op op_pool = {
    .name = "pool",
    .maths = "y[b] = x[b][n-1] or the mean of x[b][0..n-1]",
    .source = "",
    .infer = pool_infer,
    .cost = sequence_cost,
    .sizes = "batch length dim",
    .build = pool_build,
};

const struct op op_reverse = {
    .name = "reverse",
    .maths = "y[b][t] = x[b][n-1-t] for t < n, else x[b][t]",
    .source = "",
    .infer = reverse_infer,
    .cost = sequence_cost,
    .sizes = "batch length dim",
    .build = reverse_build,
};

const struct op op_decode_positions = {
    .name = "decode_positions",
    .maths = "y[b][p] = e[b] + PE[p]",
    .source = "MAD (Poli et al. 2024); athms/mad-lab, mad/model/auto_encoder.py",
    .infer = decode_infer,
    .cost = sequence_cost,
    .sizes = "batch length dim",
    .build = decode_build,
};

static int64_t length_of(const struct call *c, int64_t b) {
    return c->in[1] ? tensor_i32(c->in[1])[b] : c->in[0]->dims[1];
}

/* Weight of row t, of the n rows in use, in the pooled row. */
static real pool_weight(const struct call *c, int64_t t, int64_t n) {
    if (pool_attr(c)->how == POOL_LAST) return t == n - 1;
    return t < n ? 1 / (real)n : 0;
}

static void pool_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    for (int64_t b = 0; b < B; b++)
        for (int64_t d = 0; d < D; d++) {
            double sum = 0;
            int64_t n = length_of(c, b);
            for (int64_t t = 0; t < n; t++)
                sum += (double)pool_weight(c, t, n) * tensor_real(c->in[0])[(b * T + t) * D + d];
            tensor_real(c->out[0])[b * D + d] = (real)sum;
        }
}

static void pool_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    if (!c->din[0]) return;
    for (int64_t i = 0; i < B * T * D; i++) {
        int64_t b = i / (T * D), t = i / D % T;
        put(c->din[0] + i, call_accumulates(c, 0), pool_weight(c, t, length_of(c, b)) * call_dout(c, 0)[b * D + i % D]);
    }
}

/* to (+)= the rows of `from` in reverse order. */
static void reverse_rows(const struct call *c, const real *from, real *to, bool accumulate) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    for (int64_t r = 0; r < B * T; r++) {
        int64_t b = r / T, t = r % T, n = length_of(c, b), source = b * T + (t < n ? n - 1 - t : t);
        for (int64_t d = 0; d < D; d++) put(to + r * D + d, accumulate, from[source * D + d]);
    }
}

static void reverse_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    reverse_rows(c, tensor_real(c->in[0]), tensor_real(c->out[0]), false);
}

static void reverse_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    if (c->din[0]) reverse_rows(c, call_dout(c, 0), c->din[0], call_accumulates(c, 0));
}

static double position_code(int64_t p, int64_t column, int64_t D) {
    int64_t h = D / 2, j = column < h ? column : column - h;
    if (column >= 2 * h) return 0;
    double angle = (double)p * position_frequency(j, D);
    return column < h ? sin(angle) : cos(angle);
}

static size_t decode_ref_workspace(const struct call *c, enum pass pass) {
    return scratch_single(c, pass == PASS_FORWARD ? (size_t)tensor_cols(c->in[0]) * sizeof(real) : 0);
}

static void decode_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], D = c->in[0]->dims[1], T = c->out[0]->dims[1];
    real *code = c->scratch[PASS_FORWARD];
    for (int64_t p = 0; p < T; p++) {
        for (int64_t d = 0; d < D; d++) code[d] = (real)position_code(p, d, D);
        for (int64_t b = 0; b < B; b++)
            for (int64_t d = 0; d < D; d++)
                tensor_real(c->out[0])[(b * T + p) * D + d] = tensor_real(c->in[0])[b * D + d] + code[d];
    }
}

static void decode_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], D = c->in[0]->dims[1], T = c->out[0]->dims[1];
    for (int64_t i = 0; c->din[0] && i < B * D; i++) {
        double sum = 0;
        for (int64_t p = 0; p < T; p++) sum += call_dout(c, 0)[(i / D * T + p) * D + i % D];
        put(c->din[0] + i, call_accumulates(c, 0), (real)sum);
    }
}

const struct kernel kernel_pool_ref = {
    .name = "pool_ref",
    .op = &op_pool,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = pool_ref_forward,
    .backward = pool_ref_backward,
};

const struct kernel kernel_reverse_ref = {
    .name = "reverse_ref",
    .op = &op_reverse,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = reverse_ref_forward,
    .backward = reverse_ref_backward,
};

const struct kernel kernel_decode_positions_ref = {
    .name = "decode_positions_ref",
    .op = &op_decode_positions,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = decode_ref_workspace,
    .forward = decode_ref_forward,
    .backward = decode_ref_backward,
};
