/* device.h - how `lrnn perf device` times work on a device and prints it: an open device, samples between its own
 * events, rows (device_time.c), rows of a training step (device_steps.c) and of kernels (device_kernels.c). */
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
    double copy_rate;                     /* bytes per second, read and written both counted; 0: not measured */
    double product_rate[PRECISION_COUNT]; /* FLOP/s of a large product in each; 0: not measured */
    FILE *file;                           /* in memory, until all is measured; NULL: stdout alone */
    double clock_mhz;                     /* after the latest samples */
    bool captured;                        /* whether they were replayed */
    int failed, inexact;                  /* kernels that could not be measured; that are too far from the reference */
    struct error first;                   /* of these kernels */
};

/* Opens the place of the request, and closes it. Launches there do not overlap: many of one kernel in a row would hide
 * in each other, and their time would not be the time of one. Errors: as place_open. */
enum status device_open(struct device_run *d, struct error *e);
void device_close(struct device_run *d);

/* Work to be timed, in its n contexts by turns. */
struct device_work {
    void (*work)(void *context);
    void *const *contexts;
    int n;
    bool captured; /* replay it where that is possible, so that launches from the host are not timed */
};

/* Takes samples: seconds of one call of the work, by the device's own clock. */
enum status device_sample(struct device_run *d, const struct device_work *w, struct samples *t, struct error *e);

struct device_row {
    const char *name, *kernel, *shape, *pass;
    const char *taken; /* of a kernel, whether it is taken unasked: "yes", "no"; NULL: no kernel */
    int precision;     /* enum precision, or PRECISION_NONE */
    const char *cache; /* "warm", "cold", "step": as the calls before leave it; NULL: the work has no such state */
    double error;      /* against the reference, relative to its largest magnitude; INFINITY: not finite; NAN: none */
    struct cost cost;
};

/* Prints the names of the columns, and a row, to stdout and to the file of the run. */
void device_print_head(const struct device_run *d);
void device_print_row(const struct device_run *d, const struct device_row *r, const struct samples *t);

/* Reads "name=value name=value" over the default sizes; `small` cuts them to what a test can afford. */
enum status device_read_sizes(const char *text, bool small, struct op_sizes *sizes, struct error *e);

/* --- a training step ---------------------------------------------------------------------------------------------- */

/* Prints a row of the step of an S5 model for each way of doing it; a row for each call of one that is walked. Errors:
 * the device's, memory. */
enum status device_measure_step(const struct device_run *d, enum precision precision, struct error *e);
enum status device_measure_calls(const struct device_run *d, enum precision precision, struct error *e);

/* --- kernels ------------------------------------------------------------------------------------------------------ */

/* ST_USAGE, naming the choices: the request's op or its shape is none of those that are measured. */
enum status device_check_request(const struct perf_device_request *request, struct error *e);

/* Prints rows of every kernel that is asked for. A kernel that fails is told on stderr and counted in *d, and the next
 * one has a place of its own. Errors: no further place can be opened. */
enum status device_measure_kernels(struct device_run *d, struct error *e);

/* max |got - want| / max |want| of n reals; INFINITY where a difference is not finite. */
double device_error(const real *got, const real *want, int64_t n);

/* Number of sets of buffers that are together twice a cache, where a walk touches `bytes` of each. 1: one alone is; 0:
 * more are needed than are made. */
int device_cold_sets(double cache, double bytes);

#endif
