/* stable_gates_cpu.c - exponential gates in range: sequences on threads; what is one number a gate (logarithms, exponentials)
 * in vectors over all of a sequence, between them the recurrence of m, one addition and one maximum. The equations are in
 * stable_gates.c. */
#include "core/real_math.h"
#include "kernels/parallel.h"
#include "kernels/stable.h"

/* m[t] = max(m[t] + m[t-1], i[t]), logsig(f) standing in m. decay and source: the logarithms of the gates. */
static void running_maximum(int64_t T, int64_t H, real start, const real *i, real *m, real *decay, real *source) {
    for (int64_t e = 0; e < T * H; e++) {
        real a = m[e] + (e < H ? start : m[e - H]);
        m[e] = a < i[e] ? i[e] : a;
        decay[e] = a - m[e];
        source[e] = i[e] - m[e];
    }
}

static void stable_gates_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], H = c->in[0]->dims[2], n = T * H;
    real start = (real)((const struct stable_gates_attr *)c->attr)->start;
#pragma omp parallel for schedule(static) if (B * n > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++) {
        const real *i = tensor_real(c->in[STABLE_I]) + b * n, *f = tensor_real(c->in[STABLE_F]) + b * n;
        real *decay = tensor_real(c->out[STABLE_DECAY]) + b * n, *source = tensor_real(c->out[STABLE_SOURCE]) + b * n;
        real *m = tensor_real(c->out[STABLE_M]) + b * n;
#pragma omp simd
        for (int64_t e = 0; e < n; e++) m[e] = -real_softplus(-f[e]);
        running_maximum(T, H, start, i, m, decay, source);
#pragma omp simd
        for (int64_t e = 0; e < n; e++) {
            decay[e] = real_exp(decay[e]);
            source[e] = real_exp(source[e]);
        }
    }
}

static size_t stable_gates_cpu_workspace(const struct call *c, enum pass pass) {
    return pass == PASS_FORWARD ? 0 : 2 * (size_t)tensor_count(c->in[0]) * sizeof(real);
}

/* da and di of one sequence, e descending: da of the token behind stands H further on. d: the gradients of the outputs. */
static void backward_maximum(int64_t T, int64_t H, const real *const *out, const real *const *d, const real *i,
                             real *da, real *di) {
    const real *m = out[STABLE_M];
    for (int64_t e = T * H - 1; e >= 0; e--) {
        real decay = d[STABLE_DECAY] ? d[STABLE_DECAY][e] * out[STABLE_DECAY][e] : 0;
        real source = d[STABLE_SOURCE] ? d[STABLE_SOURCE][e] * out[STABLE_SOURCE][e] : 0;
        real top = d[STABLE_M] ? d[STABLE_M][e] : 0;
        top += (e + H < T * H ? da[e + H] : 0) - decay - source;
        di[e] = source + (m[e] == i[e] ? top : 0);
        da[e] = decay + (m[e] == i[e] ? 0 : top);
    }
}

static void backward_sequence(const struct call *c, int64_t b, real *da, real *di) {
    int64_t T = c->in[0]->dims[1], H = c->in[0]->dims[2], n = T * H;
    const real *out[STABLE_OUTPUTS], *d[STABLE_OUTPUTS], *f = tensor_real(c->in[STABLE_F]) + b * n;
    for (int j = 0; j < STABLE_OUTPUTS; j++) {
        out[j] = tensor_real(c->out[j]) + b * n;
        d[j] = call_dout(c, j) ? call_dout(c, j) + b * n : NULL;
    }
    backward_maximum(T, H, out, d, tensor_real(c->in[STABLE_I]) + b * n, da, di);
    real *to_i = c->din[STABLE_I] ? c->din[STABLE_I] + b * n : NULL;
    real *to_f = c->din[STABLE_F] ? c->din[STABLE_F] + b * n : NULL;
    bool add_i = call_accumulates(c, STABLE_I), add_f = call_accumulates(c, STABLE_F);
    for (int64_t e = 0; to_i && e < n; e++) put(to_i + e, add_i, di[e]);
    if (!to_f) return;
#pragma omp simd
    for (int64_t e = 0; e < n; e++) put(to_f + e, add_f, da[e] * real_sigmoid(-f[e]));
}

static void stable_gates_cpu_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], n = c->in[0]->dims[1] * c->in[0]->dims[2];
    real *scratch = c->scratch[PASS_BACKWARD];
#pragma omp parallel for schedule(static) if (B * n > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++) backward_sequence(c, b, scratch + 2 * b * n, scratch + (2 * b + 1) * n);
}

/* Tolerance: m is a sum of up to T logarithms in working precision, and an error of m is one relative to the gates; gradients
 * sum over T tokens. */
const struct kernel kernel_stable_gates_cpu = {
    .name = "stable_gates_cpu",
    .op = &op_stable_gates,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 256,
    .workspace = stable_gates_cpu_workspace,
    .forward = stable_gates_cpu_forward,
    .backward = stable_gates_cpu_backward,
};
