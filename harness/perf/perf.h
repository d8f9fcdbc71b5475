/* perf.h - the measurements of `lrnn perf`, which print to stdout: speed beside what the machine can do, by rates
 * (measure.h) that are measured in the same run at the same threads. A request's `threads` is 0 where nobody asked,
 * until the command has set as many as OpenMP then has. */
#ifndef LRNN_HARNESS_PERF_PERF_H
#define LRNN_HARNESS_PERF_PERF_H

#include <stdio.h>

#include "core/op_sizes.h"
#include "harness/study/setup.h"

/* Prints what a line of JSON says of where it is from: "commit":"0123456789ab","machine":"..."; + behind the commit of
 * edited files. */
void perf_print_origin(void);

struct perf_op_request {
    struct op_sizes sizes;
    char kernel[OPTION_TEXT]; /* only this one; "" = all that apply */
    double seconds;           /* for each kernel */
    int64_t threads;
    bool json;
};
enum status perf_op(const struct op *op, const struct perf_op_request *request, struct error *e);

/* All CPU kernels of the op but the reference, forward and backward on one core, at lengths from, 2 from, ... up to
 * `to`: from which length on one is faster than another. ST_USAGE: there is only one such kernel. */
struct perf_crossover_request {
    struct op_sizes sizes;
    int64_t from, to;
    double seconds; /* for each kernel and length */
    bool json;
};
enum status perf_crossover(const struct op *op, const struct perf_crossover_request *request, struct error *e);

struct perf_step_request {
    struct config config;
    int64_t length, least; /* of the sequences; least 0: all have that length */
    int64_t vocab, count;  /* count: steps measured, at most PERF_SAMPLES */
    int64_t threads;
    bool profile; /* where the time goes, by op */
};
enum status perf_step(const char *model, const struct perf_step_request *request, struct error *e);

/* One layer of every mixer with its default options, alone, forward and backward at lengths 64, 512 and 2048: a
 * Markdown table, and where `out` is given a row of OUT/perf.csv a number. A mixer that does not fit has a dash, and
 * the last such reason is said below the table. Errors: ST_FAIL: a row cannot be written. */
struct perf_layers_request {
    int64_t dim, batch, threads;
    double seconds; /* for each sitting */
    char out[OPTION_TEXT];
};
enum status perf_layers(const struct perf_layers_request *request, struct error *e);

/* Examples of a split generated for `seconds` on one core. Where `out` is not empty a row of OUT/perf.csv. ST_FAIL: it
 * cannot be written. */
enum status perf_data(const char *task, int split, double seconds, uint64_t seed, bool json, const char *out,
                      struct error *e);

/* The released files of a data set in a folder, read again and again for `seconds` on one core as an import does, all
 * but the writing; of ListOps, as its task does. Packed files are unpacked alone as well, in turns. Where `out` is not
 * empty a row of OUT/perf.csv a number. ST_DATA as dataset_import. ST_USAGE: no such set. ST_FAIL: a row cannot be
 * written. */
enum status perf_files(const char *name, const char *folder, double seconds, bool json, const char *out,
                       struct error *e);

/* Every CUDA kernel at the shapes of device_kernels.c, copies, products and a training step on a device, as CSV rows:
 * to stdout, and where `out` is given to OUT/device-COMMIT.csv, whole or not at all. Errors: ST_DEVICE; behind the rows
 * of all others, that of the first kernel that fails, or ST_FAIL where one is too far from its reference; ST_USAGE,
 * before anything is measured also where that file is there already. */
struct perf_device_request {
    char device[OPTION_TEXT], out[OPTION_TEXT];
    char only[OPTION_TEXT];  /* kernels of this op, with the copy and the product in fp32 but no step; "": all */
    char shape[OPTION_TEXT]; /* kernels at those shapes that have these words, "length=16 m=5"; "": all */
    double seconds;          /* for each kernel */
    bool once;               /* each kernel walks once, for a profiler: nothing else runs, no row is printed or kept */
    bool compare;            /* kernels with their references, which are the host's work */
    bool small;              /* sizes that a test can afford */
};
enum status perf_device(const struct perf_device_request *request, struct error *e);

/* A training step of a model, or of every mixer with its default options, captured on a device and counted: launches
 * beside one a call and pass, the smallest traffic and the FLOPs that ops name, and scratch. A Markdown table; a mixer
 * that does not fit has a dash, and the last such reason is said below the table. Errors: ST_DEVICE: there is no such
 * device; those of a model that is named. */
struct perf_launches_request {
    const char *model; /* NULL: every mixer */
    char device[OPTION_TEXT];
    int64_t dim, batch, length;
    int precision; /* enum precision */
};
enum status perf_launches(const struct perf_launches_request *request, struct error *e);

#endif
