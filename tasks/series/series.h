/* series.h - shared by tasks on time series: how the values of a series become the input of a net.
 *
 * A series has C values at each of `length` points. The input is those values, or with increments=yes x_0 and then x_t
 * - x_{t-1}: the path that drives a controlled differential equation, where the recurrence takes its first state from
 * row 0 and moves by the others (slice with intervals). With time=yes a channel t / length comes first and is a part of
 * the path like the others. */
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

/* Number of input channels of a series of C channels. */
static inline int64_t series_channels(const struct series *s, int64_t C) {
    return C + s->time;
}

/* Version of a task's examples, from the version of the other tasks: with increments, a step of time is a number of its
 * own. */
static inline int series_version(const struct series *s, int version) {
    return s->increments && s->time ? version + 1 : version;
}

/* The place of the C values of point t in an example. */
static inline real *series_point(const struct series *s, int64_t C, int64_t t, struct example *x) {
    return x->values + t * series_channels(s, C) + s->time;
}

/* Ends an example whose points are written: adds time and increments, and zeros after its end, up to T. */
void series_end(const struct series *s, int64_t C, int64_t length, int64_t T, struct example *x);

#endif
