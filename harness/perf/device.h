/* device.h - parts of `lrnn perf device`: an open device, samples timed by the device's events, rows (device_time.c),
 * rows for a training step (device_steps.c) and for kernels (device_kernels.c). */
#ifndef LRNN_HARNESS_PERF_DEVICE_H
#define LRNN_HARNESS_PERF_DEVICE_H

#include "harness/perf/kernel_run.h"
#include "harness/perf/perf.h"

#define PRECISION_NONE (-1)

struct device_run {
    const struct perf_device_request *request;
    struct place place;
    struct place_info info;
    struct place_mark *from, *to;
    double copy_rate;                     /* bytes per second, reads plus writes; 0: not measured */
    double product_rate[PRECISION_COUNT]; /* FLOP/s of a large product per precision; 0: not measured */
    FILE *file;                           /* in memory until all is measured; NULL: only stdout */
    double clock_mhz;                     /* after the latest samples */
    bool captured;                        /* whether the latest samples were replayed */
    int failed, inexact;                  /* kernels that failed; kernels too far from the reference */
    struct error first;                   /* first error of these kernels */
};

/* Open and close the place of the request. Launches there do not overlap, because overlapping launches of one kernel
 * would seem faster than a single launch. Errors: as place_open. */
enum status device_open(struct device_run *d, struct error *e);
void device_close(struct device_run *d);

/* Work to be timed, with its n contexts in turn. */
struct device_work {
    void (*work)(void *context);
    void *const *contexts;
    int n;
    bool captured; /* replay a capture if possible, so that launches from the host are not timed */
};

/* Takes samples: seconds per call of the work, by the device's clock. */
enum status device_sample(struct device_run *d, const struct device_work *w, struct samples *t, struct error *e);

struct device_row {
    const char *name, *kernel, *shape, *pass;
    const char *taken; /* whether the kernel is used by default: "yes", "no"; NULL: not a kernel */
    int precision;     /* enum precision, or PRECISION_NONE */
    const char *cache; /* state of the cache: "warm", "cold", "step" (as in a step); NULL: not applicable */
    double error;      /* error relative to the reference's largest magnitude; INFINITY: not finite; NAN: none */
    struct cost cost;
};

/* Print the names of the columns, and a row, to stdout and to the file of the run. */
void device_print_head(const struct device_run *d);
void device_print_row(const struct device_run *d, const struct device_row *r, const struct samples *t);

/* Reads "name=value name=value" over the default sizes; `small` reduces the sizes for tests. */
enum status device_read_sizes(const char *text, bool small, struct op_sizes *sizes, struct error *e);

/* --- a training step ---------------------------------------------------------------------------------------------- */

/* device_measure_step prints a row for the step of an S5 model in each way of doing it, device_measure_calls a row for
 * each call of a walked step. Errors: of the device, memory. */
enum status device_measure_step(const struct device_run *d, enum precision precision, struct error *e);
enum status device_measure_calls(const struct device_run *d, enum precision precision, struct error *e);

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* ST_USAGE, with the choices: the request's op or shape is not measured. */
enum status device_check_request(const struct perf_device_request *request, struct error *e);

/* Prints rows for every requested kernel. A failing kernel is reported on stderr and counted in *d, and the next kernel
 * gets a new place. Errors: no new place can be opened. */
enum status device_measure_kernels(struct device_run *d, struct error *e);

/* Returns max |got - want| / max |want| of n reals; INFINITY: a difference is not finite. */
double device_error(const real *got, const real *want, int64_t n);

/* Returns the number of sets of buffers that together are twice the cache, if a walk touches `bytes` of each. 1: one
 * set is enough; 0: too many would be needed. */
int device_cold_sets(double cache, double bytes);

#endif
