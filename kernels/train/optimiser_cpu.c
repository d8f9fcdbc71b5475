/* optimiser_cpu.c - step_begin and adamw, with fixed chunks of the flat array on threads. Each op makes one pass over
 * memory. The equations are in optimiser.c. */
#include "kernels/lib/scratch.h"
#include "kernels/train/optimiser.h"

#include "core/real_math.h"
#include "kernels/lib/parallel.h"

static int64_t chunk_count(int64_t n, int64_t size) {
    return (n + size - 1) / size;
}

static size_t step_begin_cpu_workspace(const struct call *c, enum pass pass) {
    int64_t chunks = pass == PASS_FORWARD ? chunk_count(tensor_count(c->in[1]), NORM_CHUNK) : 0;
    return scratch_single(c, (size_t)chunks * sizeof(double));
}

static void step_begin_cpu_forward(const struct call *c, const struct exec *exec) {
    int64_t n = tensor_count(c->in[1]), chunks = chunk_count(n, NORM_CHUNK);
    const real *grad = tensor_real(c->in[1]);
    double *sums = c->scratch[PASS_FORWARD], total = 0;
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t k = 0; k < chunks; k++) {
        int64_t end = (k + 1) * NORM_CHUNK < n ? (k + 1) * NORM_CHUNK : n;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = k * NORM_CHUNK; i < end; i++) sum += (double)grad[i] * (double)grad[i];
        sums[k] = sum;
    }
    for (int64_t k = 0; k < chunks; k++) total += sums[k];
    begin_step(exec->state, step_attr(c), tensor_real(c->in[0])[0], total);
}

/* Updates elements [begin, end) of one segment. */
static void update(const struct call *c, int64_t begin, int64_t end, struct adamw_scalars k, double lr,
                   const struct adamw_segment *segment) {
    const struct adamw_attr *a = adamw_attr(c);
    real *restrict w = tensor_real(c->in[0]);
    const real *restrict grad = tensor_real(c->in[1]);
    real *restrict m1 = tensor_real(c->in[2]), *restrict m2 = tensor_real(c->in[3]);
    real scale_g = (real)k.gradient, rate = (real)(k.rate * segment->rate), root = (real)k.root;
    real eps = (real)a->eps, keep = (real)(1 - lr * segment->rate * segment->decay);
    real b1 = (real)a->beta1, b2 = (real)a->beta2, rest1 = (real)(1 - a->beta1), rest2 = (real)(1 - a->beta2);
#pragma omp simd
    for (int64_t i = begin; i < end; i++) {
        real g = grad[i] * scale_g;
        real first = real_fma(b1, m1[i], rest1 * g), second = real_fma(b2, m2[i], rest2 * g * g);
        m1[i] = first;
        m2[i] = second;
        w[i] = w[i] * keep - rate * first / real_fma(real_sqrt(second), root, eps);
    }
}

static void adamw_cpu_forward(const struct call *c, const struct exec *exec) {
    const struct adamw_attr *a = adamw_attr(c);
    struct step_state *state = exec->state;
    struct adamw_scalars k = adamw_scalars(a, state);
    double lr = state->lr;
    int64_t n = tensor_count(c->in[0]), chunks = state->frozen ? 0 : chunk_count(n, UPDATE_CHUNK);
#pragma omp parallel for schedule(static) if (n > PARALLEL_MIN)
    for (int64_t chunk = 0; chunk < chunks; chunk++) {
        int64_t from = chunk * UPDATE_CHUNK, to = from + UPDATE_CHUNK;
        for (int s = 0; s < a->n_segments; s++) {
            int64_t begin = a->segments[s].offset, end = begin + a->segments[s].count;
            update(c, begin > from ? begin : from, end < to ? end : to, k, lr, &a->segments[s]);
        }
    }
    state->step++;
}

/* Tolerance: a chunk of 16384 squares is summed in double, with an error of at most about sqrt(16384) / 2 = 64 units of
 * the sum (in a scalar build, which adds one by one). This is invisible in float; in double the root halves it. */
const struct kernel kernel_step_begin_cpu = {
    .name = "step_begin_cpu",
    .op = &op_step_begin,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = REAL_IS_DOUBLE ? 32 : 4,
    .workspace = step_begin_cpu_workspace,
    .forward = step_begin_cpu_forward,
};

/* Tolerance: a dozen roundings; only w and its small update may cancel. */
const struct kernel kernel_adamw_cpu = {
    .name = "adamw_cpu",
    .op = &op_adamw,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 16,
    .forward = adamw_cpu_forward,
};
