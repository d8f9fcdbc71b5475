/* samples.c - see samples.h. */
#include "harness/perf/samples.h"

#include <math.h>
#include <omp.h>

#include "harness/rows/stats.h"
#include "harness/store/clock.h"

double perf_time_s(void) {
    return omp_get_max_threads() == 1 ? time_run_s() : time_now_s();
}

void samples_add(struct samples *s, double seconds) {
    if (s->n < PERF_SAMPLES) s->seconds[s->n++] = seconds;
}

double samples_best(const struct samples *s) {
    double best = s->n ? s->seconds[0] : NAN;
    for (int i = 1; i < s->n; i++)
        if (s->seconds[i] < best) best = s->seconds[i];
    return best;
}

double samples_median(const struct samples *s) {
    return stats_median(s->seconds, s->n);
}

double samples_mad(const struct samples *s) {
    double median = samples_median(s), deviation[PERF_SAMPLES];
    for (int i = 0; i < s->n; i++) deviation[i] = fabs(s->seconds[i] - median);
    return stats_median(deviation, s->n);
}
