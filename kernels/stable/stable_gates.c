/* stable_gates.c - exponential input gates and logistic forget gates, kept in range: the op and its reference.
 *
 * i_t and f_t are the raw input and forget gate of a head. The outputs are F_t (decay), I_t (source) and m_t:
 *   a_t = logsig(f_t) + m_{t-1};   m_t = max(a_t, i_t), m_{-1} = start;   F_t = exp(a_t - m_t);   I_t = exp(i_t - m_t)
 * If C_t = sig(f_t) C_{t-1} + exp(i_t) U_t, then C_t exp(-m_t) is a state with decay F_t and source I_t.
 *
 * Backward, from the last token to the first. dF, dI and dm are the gradients of the outputs, G_t is the whole gradient
 * of m_t:
 *   G_t = dm_t + da_{t+1} - F_t dF_t - I_t dI_t
 *   da_t = F_t dF_t + (m_t = i_t ? 0 : G_t);   di_t = I_t dI_t + (m_t = i_t ? G_t : 0);   df_t = da_t (1 - sig(f_t)) */
#include <inttypes.h>
#include <math.h>

#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/stable/stable.h"

struct tensor *stable_gates(struct graph *g, struct tensor *i, struct tensor *f, double start, struct tensor **source,
                            struct tensor **m) {
    struct stable_gates_attr attr = {.start = start};
    struct call *c = graph_call(g, &op_stable_gates, &attr, sizeof attr, (struct tensor *[]){i, f}, 2);
    *source = c ? c->out[STABLE_SOURCE] : NULL;
    *m = c ? c->out[STABLE_M] : NULL;
    return c ? c->out[STABLE_DECAY] : NULL;
}

static void stable_gates_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 2) || !infer_same_shape(g, c, 0, 1)) return;
    const struct tensor *i = c->in[0];
    if (i->rank != 3)
        graph_fail(g, ST_USAGE, "stable_gates: i has rank %d, expected 3 (batch, length, heads)", i->rank);
    else
        for (int out = 0; out < STABLE_OUTPUTS; out++) graph_output(g, c, DT_REAL, 3, i->dims);
}

/* An exponential or a logarithm counts as 10 FLOPs. */
static struct cost stable_gates_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->in[0]);
    if (pass == PASS_FORWARD) return (struct cost){46 * n, 5 * n * sizeof(real)};
    return (struct cost){22 * n, 10 * n * sizeof(real)};
}

/* The variant chooses the start of m. */
static bool stable_gates_build(struct graph *g, const struct op_sizes *s) {
    static const double starts[] = {0, 0.3, -0.7};
    if (s->variant >= (int64_t)(sizeof starts / sizeof starts[0])) return false;
    struct tensor *source, *m, *i = input_tokens(g, s, "i", s->heads);
    stable_gates(g, i, input_tokens(g, s, "f", s->heads), starts[s->variant], &source, &m);
    return true;
}

static struct heads stable_gates_heads(const struct call *c) {
    return (struct heads){tensor_cols(c->in[0]), {1, 1}, {1, 1, 1}};
}

const struct op op_stable_gates = {
    .name = "stable_gates",
    .maths = "m_t = max(logsig(f_t) + m_{t-1}, i_t); decay = exp(logsig(f_t) + m_{t-1} - m_t); source = exp(i_t - m_t)",
    .source = "xLSTM (Beck et al. 2024), Eq. 15 to 17",
    .needs_in = 3,
    .needs_out = 7,
    .infer = stable_gates_infer,
    .cost = stable_gates_cost,
    .heads = stable_gates_heads,
    .sizes = "batch length heads",
    .build = stable_gates_build,
};

/* --- reference: one head at a time, with m in double -------------------------------------------------------------- */

static void stable_gates_ref_forward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], H = c->in[0]->dims[2];
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++) {
            double m = stable_gates_attr(c)->start;
            for (int64_t t = 0; t < T; t++) {
                int64_t e = (b * T + t) * H + h;
                double a = stable_log_sigmoid(tensor_real(c->in[STABLE_F])[e]) + m, i = tensor_real(c->in[STABLE_I])[e];
                m = a < i ? i : a;
                tensor_real(c->out[STABLE_DECAY])[e] = (real)exp(a - m);
                tensor_real(c->out[STABLE_SOURCE])[e] = (real)exp(i - m);
                tensor_real(c->out[STABLE_M])[e] = (real)m;
            }
        }
}

static double gradient_at(const struct call *c, int out, int64_t e) {
    return call_dout(c, out) ? call_dout(c, out)[e] : 0;
}

static void stable_gates_ref_backward(const struct call *c, const struct exec *x) {
    (void)x;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], H = c->in[0]->dims[2];
    for (int64_t b = 0; b < B; b++)
        for (int64_t h = 0; h < H; h++) {
            double later = 0;
            for (int64_t t = T - 1; t >= 0; t--) {
                int64_t e = (b * T + t) * H + h;
                double decay = gradient_at(c, STABLE_DECAY, e) * tensor_real(c->out[STABLE_DECAY])[e];
                double source = gradient_at(c, STABLE_SOURCE, e) * tensor_real(c->out[STABLE_SOURCE])[e];
                double top = gradient_at(c, STABLE_M, e) + later - decay - source;
                bool input = tensor_real(c->out[STABLE_M])[e] == tensor_real(c->in[STABLE_I])[e];
                double di = source + (input ? top : 0);
                later = decay + (input ? 0 : top);
                double df = later / (1 + exp(tensor_real(c->in[STABLE_F])[e]));
                if (c->din[STABLE_I]) put(c->din[STABLE_I] + e, call_accumulates(c, STABLE_I), (real)di);
                if (c->din[STABLE_F]) put(c->din[STABLE_F] + e, call_accumulates(c, STABLE_F), (real)df);
            }
        }
}

const struct kernel kernel_stable_gates_ref = {
    .name = "stable_gates_ref",
    .op = &op_stable_gates,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = stable_gates_ref_forward,
    .backward = stable_gates_ref_backward,
};
