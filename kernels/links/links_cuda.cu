/* links_cuda.cu - fixed_links, link_rows and link_shares on CUDA, one value per thread. Equations: fixed_links.c,
 * link_rows.c, link_shares.c. */
#include "kernels/links/link_rows.h"
#include "kernels/links/linked.cuh"

namespace {

/* --- fixed_links -------------------------------------------------------------------------------------------------- */

struct fixed_words {
    const int32_t *words, *lengths; /* lengths: or NULL */
    int32_t *y;
    int64_t edges, count, T; /* count: of words */
    __device__ void operator()(int64_t i) const {
        struct quotient at = divide(i, count);
        int64_t length = lengths ? lengths[at.whole] : T, edge = at.rest / LINK_EDGE_WORDS * LINK_EDGE_WORDS;
        bool past = edge < LINK_EDGE_WORDS * edges && (words[edge] >= length || words[edge + 1] >= length);
        y[i] = past ? IGNORED : words[at.rest];
    }
};

/* --- link_rows ---------------------------------------------------------------------------------------------------- */

struct rows {
    struct linked k;
    const real *x;
    real *y;
    int64_t D, columns, rows;
    __device__ void operator()(int64_t i) const {
        struct quotient column = divide(i, D), row = divide(column.whole, columns), at = divide(row.whole, rows);
        struct links_view l = k.view(at.whole);
        int32_t ends[LINK_COLUMNS_MAX][2];
        const real *from = x + at.whole * k.T * D + column.rest;
        y[i] = link_row_ends(&l, k.attr.rule, at.rest, ends)
                   ? (real)(((double)from[ends[row.rest][0] * D] + (double)from[ends[row.rest][1] * D]) / 2)
                   : 0;
    }
};

struct rows_gradient {
    struct linked k;
    const real *dy;
    real *dx;
    int64_t D, columns, rows;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        struct quotient node = divide(i, D), at = divide(node.whole, k.T);
        struct links_view l = k.view(at.whole);
        int32_t ends[LINK_COLUMNS_MAX][2];
        double sum = 0;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns && link_row_ends(&l, k.attr.rule, r, ends); c++) {
                double half = 0.5 * (double)dy[((at.whole * rows + r) * columns + c) * D + node.rest];
                if (ends[c][0] == at.rest) sum += half;
                if (ends[c][1] == at.rest) sum += half;
            }
        put(dx + i, accumulate, (real)sum);
    }
};

/* --- link_shares: t (B,pairs,H) ----------------------------------------------------------------------------------- */

struct shares {
    struct linked k;
    int64_t H;

    /* The edge that pair p shares; -1: the pair is not in effect. */
    __device__ int32_t edge(const struct links_view *l, int64_t p) const {
        int32_t from, to;
        if (!links_pair(l, p, &from, &to)) return -1;
        return k.attr.rule == LINK_SAME_FROM ? from : to;
    }
    __device__ double size(const struct links_view *l, const real *column, int32_t of) const {
        double sum = 0.5;
        for (int64_t p = 0; p < l->size.pairs; p++)
            if (edge(l, p) == of) sum += fabs((double)column[p * H]);
        return sum;
    }
};

struct share {
    struct shares k;
    const real *t;
    real *y;
    __device__ void operator()(int64_t i) const {
        int64_t P = k.k.attr.size.pairs;
        struct quotient row = divide(i, k.H), at = divide(row.whole, P);
        struct links_view l = k.k.view(at.whole);
        int32_t e = k.edge(&l, at.rest);
        y[i] = e < 0 ? 0 : (real)((double)t[i] / k.size(&l, t + at.whole * P * k.H + row.rest, e));
    }
};

struct share_gradient {
    struct shares k;
    const real *t, *dy;
    real *dt;
    bool accumulate;
    __device__ void operator()(int64_t i) const {
        int64_t P = k.k.attr.size.pairs;
        struct quotient row = divide(i, k.H), at = divide(row.whole, P);
        struct links_view l = k.k.view(at.whole);
        int64_t first = at.whole * P * k.H + row.rest;
        int32_t e = k.edge(&l, at.rest);
        double size = e < 0 ? 1 : k.size(&l, t + first, e), dot = 0, sign = t[i] > 0 ? 1 : t[i] < 0 ? -1 : 0;
        for (int64_t p = 0; p < P && e >= 0; p++)
            if (k.edge(&l, p) == e) dot += (double)dy[first + p * k.H] * ((double)t[first + p * k.H] / size);
        put(dt + i, accumulate, e < 0 ? 0 : (real)(((double)dy[i] - sign * dot) / size));
    }
};

} // namespace

static void fixed_links_cuda_forward(const struct call *c, const struct exec *x) {
    const struct fixed_links_attr *a = fixed_links_attr(c);
    each_value(c, x, tensor_count(c->out[0]),
               fixed_words{c->table, c->in[1] ? tensor_i32(c->in[1]) : nullptr, tensor_i32(c->out[0]), a->size.edges,
                           links_words(a->size), c->in[0]->dims[1]});
}

static void link_rows_cuda_forward(const struct call *c, const struct exec *x) {
    const struct links_attr *a = links_attr(c);
    each_value(c, x, tensor_count(c->out[0]),
               rows{linked_of(c, c->in[0]->dims[1]), tensor_real(c->in[0]), tensor_real(c->out[0]), c->in[0]->dims[2],
                    link_columns(a->rule), link_row_count(a->size, a->rule)});
}

static void link_rows_cuda_backward(const struct call *c, const struct exec *x) {
    const struct links_attr *a = links_attr(c);
    if (c->din[0])
        each_value(c, x, tensor_count(c->in[0]),
                   rows_gradient{linked_of(c, c->in[0]->dims[1]), call_dout(c, 0), c->din[0], c->in[0]->dims[2],
                                 link_columns(a->rule), link_row_count(a->size, a->rule), call_accumulates(c, 0)});
}

static void link_shares_cuda_forward(const struct call *c, const struct exec *x) {
    struct shares k = {linked_of(c, INT32_MAX), c->in[0]->dims[2]};
    each_value(c, x, tensor_count(c->out[0]), share{k, tensor_real(c->in[0]), tensor_real(c->out[0])});
}

static void link_shares_cuda_backward(const struct call *c, const struct exec *x) {
    struct shares k = {linked_of(c, INT32_MAX), c->in[0]->dims[2]};
    if (c->din[0])
        each_value(c, x, tensor_count(c->in[0]),
                   share_gradient{k, tensor_real(c->in[0]), call_dout(c, 0), c->din[0], call_accumulates(c, 0)});
}

const struct kernel kernel_fixed_links_cuda = {
    .name = "fixed_links_cuda",
    .op = &op_fixed_links,
    .device = DEVICE_CUDA,
    .forward = fixed_links_cuda_forward,
};

const struct kernel kernel_link_rows_cuda = {
    .name = "link_rows_cuda",
    .op = &op_link_rows,
    .device = DEVICE_CUDA,
    .forward = link_rows_cuda_forward,
    .backward = link_rows_cuda_backward,
};

const struct kernel kernel_link_shares_cuda = {
    .name = "link_shares_cuda",
    .op = &op_link_shares,
    .device = DEVICE_CUDA,
    .forward = link_shares_cuda_forward,
    .backward = link_shares_cuda_backward,
};
