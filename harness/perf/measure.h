/* measure.h - how perf measures: seconds of repeated work, the rates of the machine beside them, and sittings, which
 * say whether a measurement was alone (docs/design.md). */
#ifndef LRNN_HARNESS_PERF_MEASURE_H
#define LRNN_HARNESS_PERF_MEASURE_H

#include "core/arena.h"
#include "core/real.h"
#include "harness/store/machine.h"
#include "harness/store/logs.h"

/* --- samples: seconds of repeated measurements of one thing --------------------------------------------------------*/

#define PERF_SAMPLES 2048 /* kept; later ones are dropped */

struct samples {
    int n;
    double seconds[PERF_SAMPLES];
};

/* Clock of the samples, in seconds. With one thread it is the time that the thread ran, so that other processes count
 * only through the caches and the memory that they share; with more threads it is the time of day. */
double perf_time_s(void);

/* True while another sample is due: `least` are taken, then as many as fit into `seconds` since `begin` (time_now_s).
 * */
bool samples_due(const struct samples *s, int least, double begin, double seconds);

void samples_add(struct samples *s, double seconds);

/* Smallest sample, median, and median absolute deviation from the median. NAN: there is no sample. */
double samples_best(const struct samples *s);
double samples_median(const struct samples *s);
double samples_mad(const struct samples *s);

/* --- rates of the machine, with OpenMP's current number of threads -------------------------------------------------*/

/* Copying `bytes` from one buffer to another. Traffic counts reads and writes: 2 x bytes. */
struct copy_bench {
    struct arena arena; /* owns the buffers */
    char *from, *to;
    size_t bytes;
};
enum status copy_create(struct copy_bench *c, size_t bytes, struct error *e);
void copy_free(struct copy_bench *c);

/* Rates that floors are made of, a second: FLOPs of matrix products, FLOPs of multiply-adds on registers, and bytes of
 * copies that do not fit into the caches. */
struct floor_rates {
    double products, flops, bytes;
};

/* Measures the last two in less than a millisecond, and keeps the best. */
void floor_rates_sample(struct floor_rates *r, struct copy_bench *copy);

/* Share of all cores' time that other processes used between the two calls, 0..1; NAN: the system does not say. A child
 * that was waited for between them is no other process. */
struct noise {
    double busy, all, own; /* seconds */
};
void noise_begin(struct noise *n);
double noise_end(const struct noise *n);

/* --- sittings ------------------------------------------------------------------------------------------------------*/

#define SITTING_WINDOW  10   /* samples of a warm-up window */
#define SITTING_AGREE   0.01 /* relative: the work is warm when three windows in a row differ by no more */
#define SITTING_FOREIGN 0.03 /* share of all cores' time that others may use */
#define SITTING_SPREAD  1.3  /* 95th percentile over median */

/* One measurement: warm-up until windows agree, samples, and how much other processes worked meanwhile. */
struct sitting {
    int samples, warm_up;    /* windows until three agreed; -1: they did not before the time was over */
    double median, mad, p95; /* seconds of a sample */
    double foreign;          /* share of the cores' time that other processes used; NAN: the system does not say */
};

/* Calls `one`, whose seconds are a sample, until it is warm (for at most 5 times `seconds` and a window). Then it takes
 * 30 samples or more that fill `seconds`; of slow work 5 or more that fill 5 times `seconds`; PERF_SAMPLES at most.
 * Errors: as `one`; ST_MEMORY. */
enum status sitting_run(struct sitting *s, enum status (*one)(void *context, struct error *e), void *context,
                        double seconds, struct error *e);

/* Sets number, median, mad and p95 of samples; there is at least one. */
void sitting_summarise(struct sitting *s, const struct samples *all);

/* True if the work was warm, others were idle and the samples lie together. NAN of `foreign` is not quiet. */
bool sitting_is_quiet(const struct sitting *s);

/* True if `s` is to be kept rather than `other`, of the same work: the quiet one, else the less disturbed. */
bool sitting_is_better(const struct sitting *s, const struct sitting *other);

/* Runs a sitting, and a second one if the first was disturbed; keeps the better. */
enum status sitting_run_quiet(struct sitting *s, enum status (*one)(void *context, struct error *e), void *context,
                              double seconds, struct error *e);

/* Expected duration of sitting_run_quiet in seconds for samples of `one` second each: on a quiet machine, and where the
 * work never gets warm. */
void sitting_expect(double one, double seconds, double *least, double *most);

/* --- rows of perf.csv ----------------------------------------------------------------------------------------------*/

/* Sets the sitting's columns; `tokens` of a sample. */
void sitting_fill(const struct sitting *s, double tokens, struct perf_row *row);

/* Sets the columns that say when a sitting begins (now), by which build and on which machine, and on how many threads.
 * The precision is the program's own; the columns of ops do not apply. */
void sitting_describe(struct perf_row *row, const struct machine *m, int threads);

/* Appends the row to OUT/perf.csv and the machine to OUT/machines.csv. ST_FAIL: one cannot be written. */
enum status sitting_append(const char *out, const struct perf_row *row, const struct machine *m, struct error *e);

/* Prints the origin of a line of JSON: "commit":"0123456789ab","machine":"..."; + follows the commit of edited files.
 * */
void perf_print_origin(void);

#endif
