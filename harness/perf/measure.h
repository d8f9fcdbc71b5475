/* measure.h - how perf measures: seconds of repeated work, rates of the machine, and sittings. A sitting is one
 * measurement with its warm-up, and tells whether other processes disturbed it (docs/design.md). */
#ifndef LRNN_HARNESS_PERF_MEASURE_H
#define LRNN_HARNESS_PERF_MEASURE_H

#include "core/arena.h"
#include "core/real.h"
#include "harness/store/machine.h"
#include "harness/store/logs.h"

/* --- samples: seconds of repeated measurements of one thing --------------------------------------------------------*/

#define PERF_SAMPLES 2048 /* most samples kept; later ones are dropped */

struct samples {
    int n;
    double seconds[PERF_SAMPLES];
};

/* Clock of the samples, in seconds. With one thread it is the thread's CPU time, so that other processes disturb only
 * through shared caches and memory; with more threads it is wall time. */
double perf_time_s(void);

/* True while another sample is due: at least `least`, then as many as fit into `seconds` since `begin` (time_now_s). */
bool samples_due(const struct samples *s, int least, double begin, double seconds);

void samples_add(struct samples *s, double seconds);

/* Return the smallest sample, the median, and the median absolute deviation from the median. NAN: there is no
 * sample. */
double samples_best(const struct samples *s);
double samples_median(const struct samples *s);
double samples_mad(const struct samples *s);

/* --- rates of the machine, with OpenMP's current number of threads -------------------------------------------------*/

/* Copies `bytes` from one buffer to another. Traffic counts reads and writes: 2 x bytes. */
struct copy_bench {
    struct arena arena; /* owns the buffers */
    char *from, *to;
    size_t bytes;
};
enum status copy_create(struct copy_bench *c, size_t bytes, struct error *e);
void copy_free(struct copy_bench *c);

/* Rates per second for floors (lower bounds for times): FLOPs of matrix products, FLOPs of multiply-adds on registers,
 * and bytes of copies that do not fit into the caches. */
struct floor_rates {
    double products, flops, bytes;
};

/* Measures flops and bytes in less than a millisecond, and keeps the best rates. */
void floor_rates_sample(struct floor_rates *r, struct copy_bench *copy);

/* noise_end returns the share of all cores' time that other processes used since noise_begin, 0..1; NAN: unknown. A
 * child that was waited for meanwhile does not count as another process. */
struct noise {
    double busy, all, own; /* seconds */
};
void noise_begin(struct noise *n);
double noise_end(const struct noise *n);

/* --- sittings ------------------------------------------------------------------------------------------------------*/

#define SITTING_WINDOW  10   /* samples of a warm-up window */
#define SITTING_AGREE   0.01 /* relative: the work is warm when three successive windows differ by at most this */
#define SITTING_FOREIGN 0.03 /* largest share of all cores' time that other processes may use */
#define SITTING_SPREAD  1.3  /* 95th percentile over median */

/* One measurement: warm-up until windows agree, samples, and the activity of other processes. */
struct sitting {
    int samples, warm_up;    /* warm_up: windows until three agreed; -1: they did not agree in time */
    double median, mad, p95; /* seconds of a sample */
    double foreign;          /* share of the cores' time that other processes used; NAN: unknown */
};

/* Calls `one`, each call a sample, until it is warm (at most 5 times `seconds` and a window). Then it takes samples for
 * `seconds`, at least 30; if the work is slow, for up to 5 times `seconds`, at least 5; at most PERF_SAMPLES. Errors:
 * as `one`; ST_MEMORY. */
enum status sitting_run(struct sitting *s, enum status (*one)(void *context, struct error *e), void *context,
                        double seconds, struct error *e);

/* Sets number, median, mad and p95 from the samples, of which there is at least one. */
void sitting_summarise(struct sitting *s, const struct samples *all);

/* True if the work was warm, other processes were idle and the samples vary little. False if `foreign` is NAN. */
bool sitting_is_quiet(const struct sitting *s);

/* True if `s` is better than `other`, a sitting of the same work: it is quiet and `other` is not, or it is the less
 * disturbed. */
bool sitting_is_better(const struct sitting *s, const struct sitting *other);

/* Runs a sitting, and a second one if the first was disturbed; keeps the better. */
enum status sitting_run_quiet(struct sitting *s, enum status (*one)(void *context, struct error *e), void *context,
                              double seconds, struct error *e);

/* Gives the expected duration of sitting_run_quiet in seconds, for samples of `one` seconds: on a quiet machine, and if
 * the work never gets warm. */
void sitting_expect(double one, double seconds, double *least, double *most);

/* --- rows of perf.csv ----------------------------------------------------------------------------------------------*/

/* Sets the sitting's columns; tokens: per sample. */
void sitting_fill(const struct sitting *s, double tokens, struct perf_row *row);

/* Sets the columns for the time (now), the build, the machine and the threads. The precision is the program's own; the
 * columns of ops do not apply. */
void sitting_describe(struct perf_row *row, const struct machine *m, int threads);

/* Appends the row to OUT/perf.csv and the machine to OUT/machines.csv. ST_FAIL: a file cannot be written. */
enum status sitting_append(const char *out, const struct perf_row *row, const struct machine *m, struct error *e);

/* Prints members of a JSON object: "commit":"0123456789ab","machine":"..."; the commit ends with + if files were
 * edited. */
void perf_print_origin(void);

#endif
