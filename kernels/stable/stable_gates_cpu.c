/* stable_gates_cpu.c - stable_gates on the CPU, with one sequence per thread. SIMD vectors compute the logarithms and
 * exponentials of a whole sequence. Only the recurrence of m is sequential: it takes one addition and one maximum per
 * step. The equations are in stable_gates.c. */
#include "core/real_math.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/stable/stable.h"

/* Computes m. Before the call m has logsig(f), after it the running maximum. decay and source receive the logarithms of
 * the gates. */
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
    real start = (real)stable_gates_attr(c)->start;
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
    struct scratch s = scratch_measure(c);
    int64_t B = c->in[0]->dims[0], n = c->in[0]->dims[1] * c->in[0]->dims[2];
    for (int64_t i = 0; i < 2 * B && pass == PASS_BACKWARD; i++) scratch_reals(&s, n); /* da and di of a sequence */
    return s.used;
}

/* Arrays of one sequence: raw input gates, outputs, and the gradients of the outputs (NULL: no gradient). */
struct sequence {
    const real *i, *decay, *source, *m, *d_decay, *d_source, *d_m;
};

static const real *gradient_from(const struct call *c, int out, int64_t first) {
    return call_dout(c, out) ? call_dout(c, out) + first : NULL;
}

static struct sequence sequence_at(const struct call *c, int64_t first) {
    return (struct sequence){.i = tensor_real(c->in[STABLE_I]) + first,
                             .decay = tensor_real(c->out[STABLE_DECAY]) + first,
                             .source = tensor_real(c->out[STABLE_SOURCE]) + first,
                             .m = tensor_real(c->out[STABLE_M]) + first,
                             .d_decay = gradient_from(c, STABLE_DECAY, first),
                             .d_source = gradient_from(c, STABLE_SOURCE, first),
                             .d_m = gradient_from(c, STABLE_M, first)};
}

/* Computes da and di of one sequence, from the last token to the first. da of the next token is at e + H. */
static void backward_maximum(int64_t T, int64_t H, const struct sequence *s, real *da, real *di) {
    for (int64_t e = T * H - 1; e >= 0; e--) {
        real decay = s->d_decay ? s->d_decay[e] * s->decay[e] : 0,
             source = s->d_source ? s->d_source[e] * s->source[e] : 0;
        real top = (s->d_m ? s->d_m[e] : 0) + (e + H < T * H ? da[e + H] : 0) - decay - source;
        bool input = s->m[e] == s->i[e];
        di[e] = source + (input ? top : 0);
        da[e] = decay + (input ? 0 : top);
    }
}

static void backward_sequence(const struct call *c, int64_t b, real *da, real *di) {
    int64_t T = c->in[0]->dims[1], H = c->in[0]->dims[2], n = T * H;
    struct sequence s = sequence_at(c, b * n);
    backward_maximum(T, H, &s, da, di);
    const real *f = tensor_real(c->in[STABLE_F]) + b * n;
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
    struct scratch s = scratch_of(c, PASS_BACKWARD);
#pragma omp parallel for schedule(static) if (B * n > PARALLEL_MIN)
    for (int64_t b = 0; b < B; b++) {
        struct scratch own = scratch_part(&s, b, B);
        real *da = scratch_reals(&own, n), *di = scratch_reals(&own, n);
        backward_sequence(c, b, da, di);
    }
}

/* Tolerance: m is a sum of up to T logarithms in working precision, and an absolute error of m is a relative error of
 * the gates. Gradients are sums over T tokens. */
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
