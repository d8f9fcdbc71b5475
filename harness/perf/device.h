/* device.h - what the parts of `lrnn perf device` share: a run of it, its rows, and times between events. */
#ifndef LRNN_HARNESS_PERF_DEVICE_H
#define LRNN_HARNESS_PERF_DEVICE_H

#include "harness/perf/kernel_run.h"
#include "harness/perf/perf.h"
#include "harness/perf/samples.h"

#define PRECISION_NONE (-1)

struct device_run {
    const struct perf_device_request *request;
    struct place place;
    struct place_info info;
    struct place_mark *from, *to;
    double copy_rate;                     /* bytes a second, read and written both counted; 0: not measured */
    double product_rate[PRECISION_COUNT]; /* FLOP/s of a large product in each; 0: not measured */
    FILE *file;                           /* in memory, until all is measured; NULL: stdout alone */
    double clock_mhz;                     /* behind the latest samples */
    bool captured;                        /* whether they were replayed */
    int failed, inexact;                  /* kernels that could not be measured; that are too far from the reference */
    struct error first;                   /* of those */
};

struct device_row {
    const char *name, *kernel, *shape, *pass;
    const char *taken; /* of kernels, whether it is the one that is taken unasked: "yes", "no"; else "" */
    int precision;     /* enum precision, or PRECISION_NONE */
    const char *cache; /* "warm", "cold", or "" of what knows no such thing */
    double error;      /* against the reference, relative to its largest magnitude; INFINITY: not finite; NAN: none */
    struct cost cost;
};

void device_print_row(const struct device_run *d, const struct device_row *r, const struct samples *t);

/* A piece of work to be timed, in its n contexts by turns. */
struct device_work {
    void (*work)(void *context);
    void *const *contexts;
    int n;
    bool captured; /* replay it where that is possible, so that launches from the host are not what is timed */
};

/* Opens the place of the request, without overlapping launches, and closes it. Errors: as place_open. */
enum status device_open(struct device_run *d, struct error *e);
void device_close(struct device_run *d);

/* Seconds of one walk. */
enum status device_sample(struct device_run *d, const struct device_work *w, struct samples *t, struct error *e);

/* "name=value name=value" over the defaults; small: nothing larger than a test can afford. */
enum status device_read_sizes(const char *text, bool small, struct op_sizes *sizes, struct error *e);

/* --- device_kernels.c --------------------------------------------------------------------------------------------- */

/* Errors: ST_USAGE, naming what there is: the request's op or its shape is none of those that are measured. */
enum status device_check_request(const struct perf_device_request *request, struct error *e);

/* Rows of every kernel that is asked for. One that fails is said on stderr and counted, and the next one has a place of
 * its own. Errors: no further place can be opened. */
enum status device_measure_kernels(struct device_run *d, struct error *e);

/* max |got - want| / max |want| of n reals; INFINITY where a difference is not finite. */
double device_error(const real *got, const real *want, int64_t n);

/* How many sets of buffers, of which a walk touches `bytes`, are together twice a cache: 1, one alone is; 0, more are
 * needed than are made. */
int device_cold_sets(double cache, double bytes);

/* --- device_steps.c ----------------------------------------------------------------------------------------------- */

/* Rows of a training step in every precision, in each way of doing it (G11). */
enum status device_measure_steps(struct device_run *d, struct error *e);

#endif
