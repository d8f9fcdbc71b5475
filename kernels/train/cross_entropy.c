/* cross_entropy.c - mean softmax cross-entropy in nats over the rows whose target is not IGNORED, and the prediction of
 * every row: the op and its reference, in double.
 *
 *   loss = (1/n) sum_r (log sum_v e^l[r][v] - l[r][t_r])     predictions[r] = least v of greatest l[r][v], or NO_CLASS
 *                                                            where a logit of the row is not finite
 * Adjoint: dl[r][v] = dloss (softmax(l[r])[v] - [v = t_r]) / n, and 0 in ignored rows. If n = 0, the loss is 0. */
#include <inttypes.h>
#include <math.h>

#include "core/batch.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/train/train.h"

struct tensor *cross_entropy(struct graph *g, struct tensor *logits, struct tensor *targets,
                             struct tensor **predictions) {
    struct call *c = graph_call(g, &op_cross_entropy, NULL, 0, (struct tensor *[]){logits, targets}, 2);
    if (predictions) *predictions = c ? c->out[1] : NULL;
    return c ? c->out[0] : NULL;
}

static void cross_entropy_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 2)) return;
    const struct tensor *logits = c->in[0], *targets = c->in[1];
    if (logits->dtype != DT_REAL || targets->dtype != DT_I32) {
        graph_fail(g, ST_FAIL, "cross_entropy: expected real logits and int32 targets");
    } else if (tensor_rows(logits) != tensor_count(targets)) {
        graph_fail(g, ST_USAGE, "cross_entropy: logits have %" PRId64 " rows but there are %" PRId64 " targets",
                   tensor_rows(logits), tensor_count(targets));
    } else if (targets->limit > tensor_cols(logits)) {
        graph_fail(g, ST_USAGE, "cross_entropy: targets go up to %" PRId32 " but logits have %" PRId64 " columns",
                   targets->limit - 1, tensor_cols(logits));
    } else {
        graph_output(g, c, DT_REAL, 1, (int64_t[]){1});
        graph_output(g, c, DT_I32, targets->rank, targets->dims);
    }
}

/* An exponential counts 10 FLOPs. */
static struct cost cross_entropy_cost(const struct call *c, enum pass pass) {
    double n = (double)tensor_count(c->in[0]), rows = (double)tensor_count(c->in[1]);
    if (pass == PASS_FORWARD) return (struct cost){13 * n, sizeof(real) * n + 2 * sizeof(int32_t) * rows};
    return (struct cost){14 * n, sizeof(real) * 2 * n + sizeof(int32_t) * rows};
}

/* Variants: only the loss; with predictions; with predictions and ignored targets. */
static bool cross_entropy_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 2) return false;
    struct tensor *logits = input_tokens(g, s, "logits", s->vocab), *predictions;
    struct tensor *targets = input_ids(g, s, "targets");
    if (targets) targets->ignorable = s->variant == 2;
    cross_entropy(g, logits, targets, s->variant ? &predictions : NULL);
    return true;
}

static int64_t greatest(const real *l, int64_t V) {
    int64_t best = 0;
    for (int64_t v = 1; v < V; v++)
        if (l[v] > l[best]) best = v;
    return best;
}

static bool all_finite(const real *l, int64_t V) {
    for (int64_t v = 0; v < V; v++)
        if (!isfinite(l[v])) return false;
    return true;
}

/* The loss of a row is the logarithm of a sum that is at least 1, plus the distance of the target's logit from the
 * largest logit. Its gradient at the target is p - 1. Near the end of a training p - 1 cancels: it is as small as the
 * loss. */
static double cross_entropy_terms(const struct call *c, enum pass pass, int j) {
    int64_t rows = tensor_rows(c->in[0]), V = tensor_cols(c->in[0]), scored = 0;
    const int32_t *targets = tensor_i32(c->in[1]);
    double sum = 0;
    if (j > 0) return 0;
    for (int64_t r = 0; r < rows; r++) {
        if (targets[r] == IGNORED) continue;
        const real *l = tensor_real(c->in[0]) + r * V;
        sum += 1 + ((double)l[greatest(l, V)] - l[targets[r]]);
        scored++;
    }
    if (scored == 0) return 0;
    return (pass == PASS_FORWARD ? sum : fabs((double)call_dout(c, 0)[0])) / (double)scored;
}

const struct op op_cross_entropy = {
    .name = "cross_entropy",
    .maths = "loss = mean over scored rows of logsumexp(l[r]) - l[r][t[r]]",
    .source = "",
    .needs_in = 3,
    .no_grad_in = 2,
    .infer = cross_entropy_infer,
    .cost = cross_entropy_cost,
    .terms = cross_entropy_terms,
    .sizes = "batch length vocab",
    .build = cross_entropy_build,
};

/* sum_v e^(l[v] - top). The largest logit is not added to the logarithm, because the sum would round like the logit: at
 * logits of 1e4 the digits of the loss would be lost. */
static double sum_exp(const real *l, int64_t V, double top) {
    double sum = 0;
    for (int64_t v = 0; v < V; v++) sum += exp(l[v] - top);
    return sum;
}

static void cross_entropy_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), V = tensor_cols(c->in[0]), scored = 0;
    const int32_t *targets = tensor_i32(c->in[1]);
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) {
        const real *l = tensor_real(c->in[0]) + r * V;
        int64_t best = greatest(l, V);
        tensor_i32(c->out[1])[r] = all_finite(l, V) ? (int32_t)best : NO_CLASS;
        if (targets[r] == IGNORED) continue;
        sum += log(sum_exp(l, V, l[best])) + ((double)l[best] - l[targets[r]]);
        scored++;
    }
    tensor_real(c->out[0])[0] = scored ? (real)(sum / (double)scored) : 0;
}

static void cross_entropy_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_rows(c->in[0]), V = tensor_cols(c->in[0]), scored = 0;
    const int32_t *targets = tensor_i32(c->in[1]);
    if (!c->din[0]) return;
    for (int64_t r = 0; r < rows; r++) scored += targets[r] != IGNORED;
    for (int64_t r = 0; r < rows; r++) {
        const real *l = tensor_real(c->in[0]) + r * V;
        bool ignored = targets[r] == IGNORED;
        double factor = ignored ? 0 : call_dout(c, 0)[0] / (double)scored, top = l[greatest(l, V)];
        double sum = sum_exp(l, V, top);
        for (int64_t v = 0; v < V; v++) {
            double d = ignored ? 0 : factor * (exp(l[v] - top) / sum - (v == targets[r]));
            put(&c->din[0][r * V + v], call_accumulates(c, 0), (real)d);
        }
    }
}

const struct kernel kernel_cross_entropy_ref = {
    .name = "cross_entropy_ref",
    .op = &op_cross_entropy,
    .device = DEVICE_CPU,
    .reference = true,
    .forward = cross_entropy_ref_forward,
    .backward = cross_entropy_ref_backward,
};
