/* series.c - see series.h. */
#include "tasks/series/series.h"

void series_end(const struct series *s, int64_t C, int64_t length, int64_t T, struct example *x) {
    int64_t width = series_channels(s, C);
    for (int64_t i = length * width - 1; i >= width && s->increments; i--) x->values[i] -= x->values[i - width];
    /* A step of time is computed by itself: the difference of two rounded times is off by up to 1e-3 of it. */
    for (int64_t t = 0; t < length && s->time; t++)
        x->values[t * width] = (real)((s->increments ? (double)(t > 0) : (double)t) / (double)length);
    for (int64_t i = length * width; i < T * width; i++) x->values[i] = 0;
    x->length = (int32_t)length;
}
