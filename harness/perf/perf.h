/* perf.h - the measurements of `lrnn perf`, which print to stdout. Speed stands beside the rates of the machine
 * (measure.h), measured in the same run with the same threads. */
#ifndef LRNN_HARNESS_PERF_PERF_H
#define LRNN_HARNESS_PERF_PERF_H

#include <stdio.h>

#include "core/op_sizes.h"
#include "harness/sheet/sheet_pick.h"
#include "harness/study/setup.h"

struct perf_op_request {
    struct op_sizes sizes;
    char kernel[OPTION_TEXT]; /* only this one; "" = all that apply, at several shapes but the reference */
    double seconds;           /* for each kernel */
    int64_t threads;          /* already set by the command, for OpenMP too; so in all requests */
    bool json;
    char shapes[OPTION_TEXT], sweep[OPTION_TEXT]; /* of op_shapes_make */
    char against[OPTION_TEXT];                    /* a perf.csv, or its folder; "": none */
    char to[OPTION_TEXT], plot[OPTION_TEXT];      /* folder of perf.csv; of the roofline; "": none */
    int format;                                   /* of sheet_formats */
    char columns[OPTION_TEXT], sort[OPTION_TEXT];
    struct sheet_view view; /* of these two */
};
/* Measures the CPU kernels of an op at each shape, each kernel beside its floor and the older times. Rows go to
 * TO/perf.csv as they are measured. ST_USAGE: the op has no kernel of that name; errors as op_shapes_make,
 * perf_rows_read, op_roofline. */
enum status perf_op(const struct op *op, const struct perf_op_request *request, struct error *e);

/* Says from which length on a kernel is faster than another: all CPU kernels of the op but the reference, forward and
 * backward on one core, at lengths from, 2 from, ... up to `to`. ST_USAGE: there are fewer than two such kernels. */
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
/* Measures a training step on random tokens, beside the floor of its matrix products. */
enum status perf_step(const char *model, const struct perf_step_request *request, struct error *e);

/* Prints a Markdown table: one layer of every mixer with its default options, alone, forward and backward at lengths
 * 64, 512 and 2048. Each number becomes a row of OUT/perf.csv if `out` is given. A mixer that does not fit has a dash,
 * and the last such reason stands below the table. Errors: ST_FAIL: a row cannot be written. */
struct perf_layers_request {
    int64_t dim, batch, threads;
    double seconds; /* for each sitting */
    char out[OPTION_TEXT];
};
enum status perf_layers(const struct perf_layers_request *request, struct error *e);

/* Generates examples of a split of the task for `seconds` on one core. With `files` it reads the released files of the
 * data set in that folder again and again instead, as an import does without its writing (ListOps: as its task does);
 * packed files are also unpacked alone, by turns. With `out` each rate becomes a row of OUT/perf.csv. Errors: ST_USAGE:
 * no such task or set; ST_DATA as dataset_import; ST_FAIL: a row cannot be written. */
struct perf_data_request {
    int split; /* enum split */
    double seconds;
    int64_t seed;
    bool json;
    char files[OPTION_TEXT], out[OPTION_TEXT];
};
enum status perf_data(const char *name, const struct perf_data_request *request, struct error *e);

/* Measures every CUDA kernel at the shapes of device_kernels.c, copies, products, a training step and its calls on a
 * device, as CSV rows: to stdout, and with `out` to OUT/device-COMMIT.csv, whole or not at all. Errors: ST_DEVICE;
 * ST_USAGE, before anything is measured, also if that file is there already; after all rows, the error of the first
 * kernel that failed, or ST_FAIL if one is too far from its reference. */
enum device_rows { DEVICE_ROWS_ALL, DEVICE_ROWS_STEPS, DEVICE_ROWS_CALLS, DEVICE_ROWS_KERNELS };
struct perf_device_request {
    char device[OPTION_TEXT], out[OPTION_TEXT];
    char only[OPTION_TEXT];  /* kernels of this op, the copy and the product in fp32, no step; "": all */
    char shape[OPTION_TEXT]; /* kernels at the shapes that have these words, "length=16 m=5"; "": all */
    double seconds;          /* for each kernel */
    int rows;                /* enum device_rows: beside copies and products, which always have some */
    bool taken;              /* kernels that a run gets unasked alone */
    bool once;               /* each kernel walks once, for a profiler: nothing else runs, no row is printed or kept */
    bool compare;            /* kernels with their references, which the host computes */
    bool small;              /* sizes that a test can afford */
};
enum status perf_device(const struct perf_device_request *request, struct error *e);

/* Prints a Markdown table that counts a captured training step of a model, or of every mixer with its default options:
 * launches beside one per call and pass, the smallest traffic and the FLOPs that ops name, and scratch. A mixer that
 * does not fit has a dash, and the last such reason stands below the table. Errors: ST_DEVICE: there is no such device;
 * a model that is named does not fit. */
struct perf_launches_request {
    const char *model; /* NULL: every mixer */
    char device[OPTION_TEXT];
    int64_t dim, batch, length;
    int precision; /* enum precision */
};
enum status perf_launches(const struct perf_launches_request *request, struct error *e);

#endif
