/* train.h - the loss, the optimiser, and batches from a split in the memory of the run's place. Shapes as in
 * kernels/kernel.h. */
#ifndef LRNN_KERNELS_TRAIN_TRAIN_H
#define LRNN_KERNELS_TRAIN_TRAIN_H

#include "core/schedule.h"
#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

#include "kernels/train/list.def"

/* Mean cross-entropy in nats over targets != IGNORED: logits (rows,V), targets (rows) ids -> loss [1].
 * *predictions, if not NULL, receives an int32 (rows) tensor: argmax of each row, the lowest id on ties, NO_CLASS
 * where a logit of the row is not finite. If no target counts, the mean is 0. */
struct tensor *cross_entropy(struct graph *g, struct tensor *logits, struct tensor *targets,
                             struct tensor **predictions);

/* --- data: an op without gradient, in its own graph --------------------------------------------------------------- */

/* Arrays with one row per example: the input (ids or values) and, as ids, the others; lengths may be NULL. */
struct batch_tensors {
    struct tensor *input, *targets, *lengths, *links;
};

/* Writes the batch of step state->step: its row b is example permute_index(seed, STREAM_SHUFFLE, at / period, at %
 * period) of the split, at = step B + b. If at % period is no example, the row has input 0, ignored targets, length 0
 * and no links. If the period is a multiple of B, the end of an epoch's last batch is empty; if it is the number of
 * examples, the next epoch fills it. */
struct take_batch_attr {
    uint64_t seed;
    int64_t period;
};

LRNN_INLINE const struct take_batch_attr *take_batch_attr(const struct call *c) {
    return (const struct take_batch_attr *)c->attr;
}
void take_batch(struct graph *g, const struct batch_tensors *split, const struct batch_tensors *batch,
                const struct take_batch_attr *attr);

/* --- optimiser: ops without gradient, in the update graph ------------------------------------------------ */

/* Global L2 norm of the flat gradient (n floats), summed in a fixed tree in double -> state->grad_norm; reads the loss
 * into state->loss, adds it to loss_sum; sets state->lr from the schedule. Freezes the state if the loss is not finite,
 * or if the square of the norm, clipped like in adamw, overflows in `real`, because a second moment of infinity would
 * stop its weight for good. in: loss [1], grad [n]. */
struct step_attr {
    struct schedule schedule;
    double clip; /* adamw's */
};

LRNN_INLINE const struct step_attr *step_attr(const struct call *c) {
    return (const struct step_attr *)c->attr;
}
void step_begin(struct graph *g, struct tensor *loss, struct tensor *grad, const struct step_attr *attr);

/* AdamW, decoupled decay (Loshchilov & Hutter 2019), then state->step += 1. If frozen, only the step is counted.
 * g = grad * min(1, clip / (grad_norm + 1e-6)) as torch.nn.utils.clip_grad_norm_ (clip 0 = off);
 * m1 = b1 m1 + (1-b1) g; m2 = b2 m2 + (1-b2) g^2;
 * w -= r * decay * w; w -= r * (m1 / (1-b1^t)) / (sqrt(m2 / (1-b2^t)) + eps), r = lr * rate of the segment. */
struct adamw_segment {
    int64_t offset, count; /* in the flat array */
    double decay;          /* weight decay of this segment */
    double rate;           /* its learning rate over the schedule's */
};
struct adamw_attr {
    double beta1, beta2, eps, clip;
    int n_segments;
    const struct adamw_segment *segments; /* ascending, disjoint; lives as long as the graph */
};

LRNN_INLINE const struct adamw_attr *adamw_attr(const struct call *c) {
    return (const struct adamw_attr *)c->attr;
}
void adamw(struct graph *g, struct tensor *value, struct tensor *grad, struct tensor *moment1, struct tensor *moment2,
           const struct adamw_attr *attr);

#ifdef __cplusplus
}
#endif
#endif
