/* schedule.h - the learning rate as a pure function of the step, for CPU and CUDA device. */
#ifndef LRNN_CORE_SCHEDULE_H
#define LRNN_CORE_SCHEDULE_H

#include <math.h>

#include "core/real.h"

/* The schedules. A row has: constant; name; when the rate changes after the warm-up; the floor and the epochs if the
 * schedule itself fixes them (0: the run decides); function of the rate; help. To add a schedule, add a row, and a
 * function unless an existing one fits. RATE_PER_EPOCH keeps the rate for all steps of an epoch, also in the warm-up,
 * like a scheduler that is called after each epoch (MAD, MQAR, pLSTM's graphs). MAD declares mad-cosine (athms/mad-lab,
 * mad/configs.py), but its code keeps the rate constant. */
#define SCHEDULES(ROW)                                                                                                 \
    ROW(CONSTANT, "constant", RATE_FIXED, 0, 0, rate_constant, "the peak")                                             \
    ROW(COSINE, "cosine", RATE_PER_STEP, 0, 0, rate_cosine, "a cosine to --lr-min")                                    \
    ROW(COSINE_EPOCH, "cosine-epoch", RATE_PER_EPOCH, 0, 0, rate_cosine, "the same, changed once an epoch")            \
    ROW(MAD_COSINE, "mad-cosine", RATE_PER_EPOCH, 1e-6, 200, rate_cosine, "MAD's declared one, to 1e-6 over 200 epochs")

enum schedule_kind {
#define ROW(id, name, changes, floor, epochs, rate, help) SCHEDULE_##id,
    SCHEDULES(ROW)
#undef ROW
};

enum schedule_change { RATE_FIXED, RATE_PER_STEP, RATE_PER_EPOCH };

struct schedule {
    enum schedule_kind kind;
    double lr, lr_min;              /* the highest rate, and the lowest */
    int64_t warmup;                 /* steps of a linear warm-up from rate 0; 0: none */
    double warmup_least;            /* lowest rate of the warm-up, as a share of the highest */
    int64_t total, steps_per_epoch; /* steps of the whole run, with the warm-up; steps of an epoch */
};

/* Returns the rate after `done` of the `span` steps that follow the warm-up. */
LRNN_INLINE double rate_constant(const struct schedule *s, int64_t done, int64_t span) {
    (void)done, (void)span;
    return s->lr;
}

LRNN_INLINE double rate_cosine(const struct schedule *s, int64_t done, int64_t span) {
    return s->lr_min + 0.5 * (s->lr - s->lr_min) * (1.0 + cos(3.14159265358979323846 * (double)done / (double)span));
}

/* Returns when the rate changes. */
LRNN_INLINE enum schedule_change schedule_change(enum schedule_kind kind) {
    switch (kind) {
#define ROW(id, name, changes, floor, epochs, rate, help)                                                              \
    case SCHEDULE_##id:                                                                                                \
        return changes;
        SCHEDULES(ROW)
#undef ROW
    }
    return RATE_FIXED;
}

/* Returns the rate of step `step`, counted from 0. Step s of the warm-up has the rate lr * s / warmup. So the first
 * step moves only the moments, and the cosine begins at the highest rate. SLiCE
 * (Benjamin-Walker/structured-linear-cdes, train.py), pLSTM's images (ml-jku/plstm_experiments) and transformers'
 * get_cosine_schedule_with_warmup do the same. pLSTM's graphs have warmup_least 1e-6
 * (plstm_graph/src/utils/scheduler.py). S5 uses (s + 1) / warmup (s5/train_helpers.py). */
LRNN_INLINE double schedule_rate(const struct schedule *s, int64_t step) {
    if (schedule_change(s->kind) == RATE_PER_EPOCH && s->steps_per_epoch > 0) step -= step % s->steps_per_epoch;
    if (step < s->warmup) return fmax(s->lr * (double)step / (double)s->warmup, s->lr * s->warmup_least);
    int64_t done = step - s->warmup, span = s->total - s->warmup;
    if (span < 1) span = 1;
    if (done > span) done = span;
    switch (s->kind) {
#define ROW(id, name, changes, floor, epochs, rate, help)                                                              \
    case SCHEDULE_##id:                                                                                                \
        return rate(s, done, span);
        SCHEDULES(ROW)
#undef ROW
    }
    return s->lr;
}

#endif
