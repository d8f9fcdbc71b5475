/* perf.h - the measurements of `lrnn perf`, which print to stdout. Speeds are shown with the rates of the machine
 * (measure.h), measured in the same run with the same threads. */
#ifndef LRNN_HARNESS_PERF_PERF_H
#define LRNN_HARNESS_PERF_PERF_H

#include <stdio.h>

#include "core/op_sizes.h"
#include "harness/sheet/sheet_pick.h"
#include "harness/study/setup.h"

struct perf_op_request {
    struct op_sizes sizes;
    char kernel[OPTION_TEXT]; /* only this kernel; "": all that apply, for several shapes without the reference */
    double seconds;           /* per kernel */
    int64_t threads;          /* already set by the command, also for OpenMP; likewise in all requests */
    bool json;
    char shapes[OPTION_TEXT], sweep[OPTION_TEXT]; /* of op_shapes_make */
    char against[OPTION_TEXT];                    /* a perf.csv or its folder to compare with; "": none */
    char to[OPTION_TEXT], plot[OPTION_TEXT];      /* folders for perf.csv and for the roofline; "": none */
    int format;                                   /* of sheet_formats */
    char columns[OPTION_TEXT], sort[OPTION_TEXT];
    struct sheet_view view; /* from columns and sort */
};
/* Measures the CPU kernels of an op at each shape, and shows their floors and the older times. Rows go to TO/perf.csv
 * as they are measured. ST_USAGE: the op has no kernel of that name; errors as op_shapes_make, perf_rows_read,
 * op_roofline. */
enum status perf_op(const struct op *op, const struct perf_op_request *request, struct error *e);

/* Says from which length on a kernel is faster than another, for all CPU kernels of the op except the reference:
 * forward and backward on one core, at lengths from, 2 from, ... up to `to`. ST_USAGE: there are fewer than two such
 * kernels. */
struct perf_crossover_request {
    struct op_sizes sizes;
    int64_t from, to;
    double seconds; /* per kernel and length */
    bool json;
};
enum status perf_crossover(const struct op *op, const struct perf_crossover_request *request, struct error *e);

struct perf_step_request {
    struct config config;
    int64_t length, least; /* lengths of sequences, least .. length; least 0: all have `length` */
    int64_t vocab, count;  /* count: steps measured, at most PERF_SAMPLES */
    int64_t threads;
    bool profile; /* prints the time by op */
};
/* Measures a training step on random tokens, and the floor from its matrix products. */
enum status perf_step(const char *model, const struct perf_step_request *request, struct error *e);

/* Prints a Markdown table of times: a single layer of every mixer with default options, forward and backward, at
 * lengths 64, 512 and 2048. If `out` is given, each number becomes a row of OUT/perf.csv. A mixer that does not fit has
 * a dash, and the last such reason is printed below the table. Errors: ST_FAIL: a row cannot be written. */
struct perf_layers_request {
    int64_t dim, batch, threads;
    double seconds; /* per sitting */
    char out[OPTION_TEXT];
};
enum status perf_layers(const struct perf_layers_request *request, struct error *e);

/* Generates examples of a split of the task for `seconds` on one core. With `files` it instead reads the released files
 * of the data set in that folder repeatedly, as an import does but without writing (ListOps: as its task does); in turn
 * with this, it times only unpacking the packed files. With `out` each rate becomes a row of OUT/perf.csv. Errors:
 * ST_USAGE: no such task or set; ST_DATA as dataset_import; ST_FAIL: a row cannot be written. */
struct perf_data_request {
    int split; /* enum split */
    double seconds;
    int64_t seed;
    bool json;
    char files[OPTION_TEXT], out[OPTION_TEXT];
};
enum status perf_data(const char *name, const struct perf_data_request *request, struct error *e);

/* Measures every CUDA kernel at the shapes of device_kernels.c, copies, products, a training step and its calls on a
 * device. Prints CSV rows to stdout, and with `out` to OUT/device-COMMIT.csv, written whole or not at all. Errors:
 * ST_DEVICE; ST_USAGE, before anything is measured, also if that file exists; after all rows, the error of the first
 * failing kernel, or ST_FAIL if a kernel is too far from its reference. */
enum device_rows { DEVICE_ROWS_ALL, DEVICE_ROWS_STEPS, DEVICE_ROWS_CALLS, DEVICE_ROWS_KERNELS };
struct perf_device_request {
    char device[OPTION_TEXT], out[OPTION_TEXT];
    char only[OPTION_TEXT];  /* only kernels of this op, the copy and the product in fp32; "": all */
    char shape[OPTION_TEXT]; /* only shapes with these words, "length=16 m=5"; "": all */
    double seconds;          /* per kernel */
    int rows;                /* enum device_rows, besides the rows of copies and products */
    bool taken;              /* only kernels that runs use by default */
    bool once;               /* for a profiler: each kernel walks once, and nothing else runs or is printed */
    bool compare;            /* compares kernels with their references, computed on the host */
    bool small;              /* small sizes for tests */
};
enum status perf_device(const struct perf_device_request *request, struct error *e);

/* Prints a Markdown table of counts for a captured training step of a model, or of every mixer with default options:
 * launches, calls, the least traffic and the FLOPs that ops declare, and scratch. A net has one layer; if its layers
 * differ (xlstm), one of each kind. A mixer that does not fit has a dash, and the last such reason is printed below the
 * table. Errors: ST_DEVICE: there is no such device; the named model does not fit. */
struct perf_launches_request {
    const char *model; /* NULL: every mixer */
    char device[OPTION_TEXT];
    int64_t dim, batch, length;
    int precision; /* enum precision */
};
enum status perf_launches(const struct perf_launches_request *request, struct error *e);

#endif
