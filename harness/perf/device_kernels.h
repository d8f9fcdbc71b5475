/* device_kernels.h - rows of `lrnn perf device` for kernels. */
#ifndef LRNN_HARNESS_PERF_DEVICE_KERNELS_H
#define LRNN_HARNESS_PERF_DEVICE_KERNELS_H

#include "harness/perf/device_time.h"

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
