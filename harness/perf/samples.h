/* samples.h - seconds of repeated measurements of one thing. */
#ifndef LRNN_HARNESS_PERF_SAMPLES_H
#define LRNN_HARNESS_PERF_SAMPLES_H

/* Seconds for what the CPU does: with one thread those that it has run, so that other processes have no part in them
 * but for the caches and the memory that they share; with more threads those of the clock. */
double perf_time_s(void);

#define PERF_SAMPLES 2048 /* kept; later ones are dropped */

struct samples {
    int n;
    double seconds[PERF_SAMPLES];
};

void samples_add(struct samples *s, double seconds);
double samples_best(const struct samples *s); /* NAN for no sample; so the others */
double samples_median(const struct samples *s);
double samples_mad(const struct samples *s); /* median absolute deviation from the median */

#endif
