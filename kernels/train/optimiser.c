/* optimiser.c - step_begin and adamw, the update of all parameters at once over one flat array: the ops and their
 * references, in double. AdamW: Loshchilov & Hutter 2019, arXiv 1711.05101, algorithm 2.
 *
 *   step_begin  grad_norm = sqrt(sum grad^2); lr = schedule(step); freezes on a loss that is not finite, and on a norm
 *               whose square, after clipping, is too large for a second moment
 *   adamw       g = grad min(1, clip / (grad_norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ clips;
 *               m1 = b1 m1 + (1 - b1) g;  m2 = b2 m2 + (1 - b2) g^2
 *               w = w (1 - lr decay) - lr (m1 / (1 - b1^t)) / (sqrt(m2 / (1 - b2^t)) + eps),   t = step + 1; step = t
 * These ops have no gradient; they change their inputs and the step state in place. */
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/train/optimiser.h"
#include "kernels/train/train.h"

#include <inttypes.h>

void step_begin(struct graph *g, struct tensor *loss, struct tensor *grad, const struct step_attr *attr) {
    graph_call(g, &op_step_begin, attr, sizeof *attr, (struct tensor *[]){loss, grad}, 2);
}

void adamw(struct graph *g, struct tensor *value, struct tensor *grad, struct tensor *moment1, struct tensor *moment2,
           const struct adamw_attr *attr) {
    graph_call(g, &op_adamw, attr, sizeof *attr, (struct tensor *[]){value, grad, moment1, moment2}, 4);
}

static void step_begin_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 2)) return;
    if (tensor_count(c->in[0]) != 1)
        graph_fail(g, ST_FAIL, "step_begin: the loss has %" PRId64 " elements, expected 1", tensor_count(c->in[0]));
}

static void adamw_infer(struct graph *g, struct call *c) {
    const struct adamw_attr *a = adamw_attr(c);
    if (!infer_present(g, c, 4)) return;
    for (int i = 1; i < 4; i++)
        if (!infer_same_shape(g, c, 0, i)) return;
    int64_t end = 0;
    for (int s = 0; s < a->n_segments; s++) {
        const struct adamw_segment *segment = &a->segments[s];
        if (segment->offset < end || segment->count < 0 || segment->offset + segment->count > tensor_count(c->in[0])) {
            graph_fail(g, ST_FAIL,
                       "adamw: segment %d (offset %" PRId64 ", count %" PRId64
                       ") is out of order or beyond the array of %" PRId64,
                       s, segment->offset, segment->count, tensor_count(c->in[0]));
            return;
        }
        end = segment->offset + segment->count;
    }
}

static struct cost step_begin_cost(const struct call *c, enum pass pass) {
    double n = pass == PASS_FORWARD ? (double)tensor_count(c->in[1]) : 0;
    return (struct cost){2 * n, sizeof(real) * n};
}

/* Bytes: four streams read, three written. */
static struct cost adamw_cost(const struct call *c, enum pass pass) {
    const struct adamw_attr *a = adamw_attr(c);
    double n = 0;
    for (int s = 0; s < a->n_segments && pass == PASS_FORWARD; s++) n += (double)a->segments[s].count;
    return (struct cost){15 * n, sizeof(real) * 7 * n};
}

/* The parameters of one linear map. Variants: schedules, with and without clipping. */
static bool step_begin_build(struct graph *g, const struct op_sizes *s) {
    static const struct step_attr variants[] = {
        {{.kind = SCHEDULE_CONSTANT, .lr = 1e-3}, .clip = 0},
        {{.kind = SCHEDULE_COSINE, .lr = 1e-3, .lr_min = 1e-5, .warmup = 2, .total = 10}, .clip = 0.5},
        {{.kind = SCHEDULE_COSINE_EPOCH, .lr = 1e-3, .lr_min = 1e-5, .total = 10, .steps_per_epoch = 3}, .clip = 0},
    };
    if (s->variant >= (int64_t)(sizeof variants / sizeof variants[0])) return false;
    struct tensor *loss = input_constant(input_vector(g, "loss", 1));
    step_begin(g, loss, input_constant(input_vector(g, "grad", s->dim * op_sizes_out(s))), &variants[s->variant]);
    return true;
}

/* Bias and weights of a linear map, with gaps before, between and after them. Variants: without and with clipping. */
static bool adamw_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 1) return false;
    int64_t bias = s->dim, weights = s->dim * op_sizes_out(s), count = bias + weights + 9;
    struct adamw_segment segments[] = {{2, bias, 0.1, 1}, {bias + 5, weights, 0.2, 0.25}};
    struct adamw_segment *kept = graph_alloc(g, sizeof segments);
    for (int i = 0; kept && i < 2; i++) kept[i] = segments[i];
    struct adamw_attr attr = {
        .beta1 = 0.9, .beta2 = 0.98, .eps = 1e-8, .clip = s->variant ? 0.5 : 0, .n_segments = 2, .segments = kept};
    struct tensor *in[4];
    static const char *const names[] = {"value", "grad", "moment1", "moment2"};
    for (int i = 0; i < 4; i++) in[i] = input_constant(input_vector(g, names[i], count));
    if (kept) adamw(g, in[0], in[1], in[2], in[3], &attr);
    return true;
}

const struct op op_step_begin = {
    .name = "step_begin",
    .maths = "grad_norm = sqrt(sum grad^2); lr = schedule(step)",
    .source = "",
    .no_grad_in = 3,
    .infer = step_begin_infer,
    .cost = step_begin_cost,
    .sizes = "dim out",
    .build = step_begin_build,
};

const struct op op_adamw = {
    .name = "adamw",
    .maths = "w = w (1 - r decay) - r (m1 / (1 - b1^t)) / (sqrt(m2 / (1 - b2^t)) + eps), r = lr rate",
    .source = "Loshchilov & Hutter 2019, arXiv 1711.05101, algorithm 2",
    .no_grad_in = 15,
    .mutates = 1u | 4u | 8u,
    .infer = adamw_infer,
    .cost = adamw_cost,
    .sizes = "dim out",
    .build = adamw_build,
};

static void step_begin_ref_forward(const struct call *c, const struct exec *exec) {
    const real *grad = tensor_real(c->in[1]);
    long double sum = 0; /* more precise than the kernels that it is compared with, in both builds */
    for (int64_t i = 0; i < tensor_count(c->in[1]); i++) sum += (long double)grad[i] * grad[i];
    begin_step(exec->state, step_attr(c), tensor_real(c->in[0])[0], (double)sum);
}

static void adamw_ref_forward(const struct call *c, const struct exec *exec) {
    const struct adamw_attr *a = adamw_attr(c);
    struct step_state *state = exec->state;
    struct adamw_scalars k = adamw_scalars(a, state);
    real *w = tensor_real(c->in[0]), *m1 = tensor_real(c->in[2]), *m2 = tensor_real(c->in[3]);
    const real *grad = tensor_real(c->in[1]);
    for (int s = 0; s < a->n_segments && !state->frozen; s++) {
        const struct adamw_segment *segment = &a->segments[s];
        for (int64_t i = segment->offset; i < segment->offset + segment->count; i++) {
            double g = grad[i] * k.gradient;
            double first = a->beta1 * m1[i] + (1 - a->beta1) * g, second = a->beta2 * m2[i] + (1 - a->beta2) * g * g;
            double value = w[i] - state->lr * segment->rate * segment->decay * w[i];
            w[i] = (real)(value - k.rate * segment->rate * first / (sqrt(second) * k.root + a->eps));
            m1[i] = (real)first;
            m2[i] = (real)second;
        }
    }
    state->step++;
}

const struct kernel kernel_step_begin_ref = {
    .name = "step_begin_ref",
    .op = &op_step_begin,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = step_begin_ref_forward,
};

const struct kernel kernel_adamw_ref = {
    .name = "adamw_ref",
    .op = &op_adamw,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = adamw_ref_forward,
};
