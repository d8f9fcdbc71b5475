/* series.h - what tasks on time series share: how the values of a series become the input of a net.
 *
 * A series is C values at each of `length` points. As input it is those values, or with increments=yes x_0 and then
 * x_t - x_{t-1}: the path that a controlled differential equation is driven by, where the recurrence takes its first
 * state from row 0 and moves by the others (slice with intervals). With time=yes a channel t / length stands before the
 * others, and is a part of the path like them. */
#ifndef LRNN_TASKS_SERIES_SERIES_H
#define LRNN_TASKS_SERIES_SERIES_H

#include "tasks/task.h"

struct series {
    bool increments, time; /* options */
};

#define SERIES_ROW(NAME, KIND, OFFSET, VALUE, HELP)                                                                    \
    { NAME, KIND, OFFSET, VALUE, 0, 0, NULL, HELP, 0 }

/* Option rows of the struct series that is MEMBER of TYPE. */
#define SERIES_OPTIONS(TYPE, MEMBER)                                                                                   \
    SERIES_ROW("increments", OPT_BOOL, offsetof(TYPE, MEMBER.increments), "no",                                        \
               "give the first point and then the steps between points"),                                              \
        SERIES_ROW("time", OPT_BOOL, offsetof(TYPE, MEMBER.time), "no", "put a channel t / length before the others")

/* Channels of the input of a series of C. */
static inline int64_t series_channels(const struct series *s, int64_t C) {
    return C + s->time;
}

/* The version of a task's examples, from that of the others: a step of time is a number of its own with increments. */
static inline int series_version(const struct series *s, int version) {
    return s->increments && s->time ? version + 1 : version;
}

/* The place of the C values of point t in an example. */
static inline real *series_point(const struct series *s, int64_t C, int64_t t, struct example *x) {
    return x->values + t * series_channels(s, C) + s->time;
}

/* Ends an example whose points have been written: time, increments, zeros behind its end, up to T. */
void series_end(const struct series *s, int64_t C, int64_t length, int64_t T, struct example *x);

#endif
