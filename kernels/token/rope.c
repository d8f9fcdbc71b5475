/* rope.c - rotary positions: the op and its reference.
 *
 * x_i and x_{i+dk/2} are a pair of columns of a head at position t >= 0. R(w) is the rotation by the angle w:
 *   (y_i, y_{i+dk/2}) = R(t base^(-2i/dk)) (x_i, x_{i+dk/2}),   R(w) = [cos w, -sin w; sin w, cos w]
 * Backward rotates dy by -w. */
#include <inttypes.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/token/rope.h"

struct tensor *rope(struct graph *g, struct tensor *x, int64_t heads, int64_t dk, double base) {
    struct rope_attr attr = {heads, dk, base};
    return call1(g, &op_rope, &attr, sizeof attr, (struct tensor *[]){x}, 1);
}

static void rope_infer(struct graph *g, struct call *c) {
    const struct rope_attr *a = rope_attr(c);
    if (!infer_present(g, c, 1)) return;
    if (c->in[0]->rank != 3)
        graph_fail(g, ST_USAGE, "rope: x has rank %d, expected 3 (B,T,C)", c->in[0]->rank);
    else if (a->heads < 1 || a->dk < 2 || a->dk % 2)
        graph_fail(g, ST_USAGE, "rope: heads=%" PRId64 " of dk=%" PRId64 ", expected at least one, of even dk",
                   a->heads, a->dk);
    else if (a->heads * a->dk > c->in[0]->dims[2])
        graph_fail(g, ST_USAGE, "rope: %" PRId64 " heads of dk=%" PRId64 " do not fit into %" PRId64 " columns",
                   a->heads, a->dk, c->in[0]->dims[2]);
    else
        graph_output(g, c, DT_REAL, 3, c->in[0]->dims);
}

static struct cost rope_cost(const struct call *c, enum pass pass) {
    (void)pass;
    double x = (double)tensor_count(c->in[0]);
    return (struct cost){3 * x, sizeof(real) * 2 * x};
}

/* A head has dk columns, or dk + 1 if dk is odd. In variant 0 the heads fill the columns of x; in variant 1 three more
 * columns follow. */
static bool rope_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    int64_t dk = s->dk + s->dk % 2, rest = s->variant ? 3 : 0;
    rope(g, input_tokens(g, s, "x", s->heads * dk + rest), s->heads, dk, 10000);
    return true;
}

const struct op op_rope = {
    .name = "rope",
    .maths = "(y_i, y_{i+dk/2}) = R(t base^(-2i/dk)) (x_i, x_{i+dk/2})",
    .source = "Su et al. 2021",
    .infer = rope_infer,
    .cost = rope_cost,
    .sizes = "batch length heads dk",
    .build = rope_build,
};

/* Rotates the pairs by their angles times `direction`, which is 1 in forward and -1 in backward. */
static void rope_ref(const struct call *c, const real *x, real *y, bool accumulate, double direction) {
    const struct rope_attr *a = rope_attr(c);
    int64_t T = c->in[0]->dims[1], C = c->in[0]->dims[2], half = a->dk / 2;
    for (int64_t token = 0; token < tensor_rows(c->in[0]); token++, x += C, y += C) {
        for (int64_t col = 0; col < a->heads * a->dk; col++) {
            int64_t i = col % a->dk;
            double angle = direction * rope_angle(a, token % T, i % half);
            double turned = i < half ? x[col] * cos(angle) - x[col + half] * sin(angle)
                                     : x[col - half] * sin(angle) + x[col] * cos(angle);
            put(&y[col], accumulate, (real)turned);
        }
        for (int64_t col = a->heads * a->dk; col < C; col++) put(&y[col], accumulate, x[col]);
    }
}

static void rope_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    rope_ref(c, tensor_real(c->in[0]), tensor_real(c->out[0]), false, 1);
}

static void rope_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    if (c->din[0]) rope_ref(c, call_dout(c, 0), c->din[0], call_accumulates(c, 0), -1);
}

const struct kernel kernel_rope_ref = {
    .name = "rope_ref",
    .op = &op_rope,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = rope_ref_forward,
    .backward = rope_ref_backward,
};
