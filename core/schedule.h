/* schedule.h - learning rate as a pure function of the step, usable on both devices. */
#ifndef LRNN_CORE_SCHEDULE_H
#define LRNN_CORE_SCHEDULE_H

#include <math.h>

#include "core/real.h"

enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_COSINE,      /* per step, to lr_min at `total` */
    SCHEDULE_COSINE_EPOCH /* the same, held constant within an epoch (MAD: stepped per epoch) */
};

struct schedule {
    enum schedule_kind kind;
    double lr, lr_min; /* peak and floor */
    int64_t warmup;    /* steps of linear warm-up from 0; 0 = none */
    int64_t total;     /* steps of the whole run, warm-up included */
    int64_t steps_per_epoch;
};

/* Rate of step `step` (0-based). Step s of the warm-up runs at lr * (s + 1) / warmup. */
LRNN_INLINE double schedule_rate(const struct schedule *s, int64_t step) {
    if (step < s->warmup) return s->lr * (double)(step + 1) / (double)s->warmup;
    if (s->kind == SCHEDULE_CONSTANT) return s->lr;
    int64_t done = step - s->warmup, span = s->total - s->warmup;
    if (s->kind == SCHEDULE_COSINE_EPOCH && s->steps_per_epoch > 0) done -= done % s->steps_per_epoch;
    if (span < 1) span = 1;
    if (done > span) done = span;
    return s->lr_min + 0.5 * (s->lr - s->lr_min) * (1.0 + cos(3.14159265358979323846 * (double)done / (double)span));
}

#endif
