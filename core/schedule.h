/* schedule.h - learning rate as a pure function of the step, usable on both devices. */
#ifndef LRNN_CORE_SCHEDULE_H
#define LRNN_CORE_SCHEDULE_H

#include <math.h>

#include "core/real.h"

enum schedule_kind {
    SCHEDULE_CONSTANT,
    SCHEDULE_COSINE, /* per step, to lr_min at `total` */
    /* The same, stepped once an epoch, warm-up included: the rate of an epoch's first step holds for all of it, as
     * where a scheduler is called behind each epoch (MAD and MQAR without a warm-up; pLSTM's graphs with one of 5
     * epochs). A warm-up has to be of whole epochs: setup_resolve refuses others. */
    SCHEDULE_COSINE_EPOCH
};

struct schedule {
    enum schedule_kind kind;
    double lr, lr_min;   /* peak and floor */
    int64_t warmup;      /* steps of linear warm-up from rate 0; 0 = none */
    double warmup_least; /* share of the peak that no rate of the warm-up is below */
    int64_t total;       /* steps of the whole run, warm-up included */
    int64_t steps_per_epoch;
};

/* Rate of step `step` (0-based). Step s of the warm-up runs at lr * s / warmup: the first step moves nothing but the
 * moments, and the peak is reached once, where the cosine begins. So does the code that the baselines come from:
 * SLiCE (Benjamin-Walker/structured-linear-cdes, train.py), pLSTM's images (ml-jku/plstm_experiments), and
 * get_cosine_schedule_with_warmup of transformers; that of pLSTM's graphs has at least 1e-6 of the peak, which is
 * warmup_least (plstm_graph/src/utils/scheduler.py). S5's code has (s + 1) / warmup (s5/train_helpers.py). */
LRNN_INLINE double schedule_rate(const struct schedule *s, int64_t step) {
    if (s->kind == SCHEDULE_COSINE_EPOCH && s->steps_per_epoch > 0) step -= step % s->steps_per_epoch;
    if (step < s->warmup) return fmax(s->lr * (double)step / (double)s->warmup, s->lr * s->warmup_least);
    if (s->kind == SCHEDULE_CONSTANT) return s->lr;
    int64_t done = step - s->warmup, span = s->total - s->warmup;
    if (span < 1) span = 1;
    if (done > span) done = span;
    return s->lr_min + 0.5 * (s->lr - s->lr_min) * (1.0 + cos(3.14159265358979323846 * (double)done / (double)span));
}

#endif
