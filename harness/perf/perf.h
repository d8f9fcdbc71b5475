/* perf.h - speed beside what the machine can do: samples, the rates of copying, multiplying and adding that are
 * measured in the same run at the same threads, and the measurements of `lrnn perf`. */
#ifndef LRNN_HARNESS_PERF_PERF_H
#define LRNN_HARNESS_PERF_PERF_H

#include <stdio.h>

#include "core/arena.h"
#include "core/op_sizes.h"
#include "harness/plan/setup.h"
#include "kernels/kernel.h"

/* Seconds for what the CPU does: with one thread those that it has run, so that other processes have no part in them
 * but for the caches and the memory that they share; with more threads those of the clock. */
double perf_time_s(void);

/* Prints what a line of JSON says of where it is from: "commit":"0123456789ab","machine":"..."; + behind the commit of
 * edited files. */
void perf_print_origin(void);

/* --- samples: seconds of repeated measurements of one thing ------------------------------------------------------- */

#define PERF_SAMPLES 2048 /* kept; later ones are dropped */

struct samples {
    int n;
    double seconds[PERF_SAMPLES];
};

void samples_add(struct samples *s, double seconds);
double samples_best(const struct samples *s); /* NAN for no sample; so the others */
double samples_median(const struct samples *s);
double samples_mad(const struct samples *s); /* median absolute deviation from the median */

/* --- the machine's rates; all with OpenMP's current number of threads --------------------------------------------- */

/* Copying `bytes` from one buffer to another. Traffic counts what is read and what is written: 2 x bytes. */
struct copy_bench {
    struct arena arena; /* owns the buffers */
    char *from, *to;
    size_t bytes;
};
enum status copy_create(struct copy_bench *c, size_t bytes, struct error *e);
void copy_free(struct copy_bench *c);
double copy_run(struct copy_bench *c); /* seconds of one copy */

/* FLOP/s of fused multiply-adds on registers in a burst of less than a millisecond. */
double fma_run(void);

/* C = A B of n x n matrices. */
struct gemm_bench {
    struct arena arena; /* owns a, b, c */
    real *a, *b, *c;
    uint16_t *half_a, *half_b; /* in bf16; NULL: the product is of reals */
    int64_t n;
};
/* As the products of that precision run here: of bf16 where the CPU gains by them, else of reals. */
enum status gemm_create(struct gemm_bench *g, int64_t n, enum precision precision, struct error *e);
void gemm_free(struct gemm_bench *g);
double gemm_run(struct gemm_bench *g); /* seconds, by tiles of rows on our threads */

/* Share of all cores' time that other processes used between the two calls, 0..1; NAN if the system does not say. A
 * child that is waited for between them is no other process. */
struct noise {
    double busy, all, own; /* seconds */
};
void noise_begin(struct noise *n);
double noise_end(const struct noise *n);

/* Largest resident memory of this process so far, bytes; 0 if the system does not say. */
size_t peak_resident_bytes(void);

/* --- one kernel at one shape -------------------------------------------------------------------------------------- */

enum { PASS_BOTH = 2 }; /* behind enum pass */

struct kernel_run {
    enum precision precision;  /* of products; set before kernel_run_open */
    const struct place *place; /* where it runs: set before kernel_run_open; NULL: the CPU */
    struct step_state *live;   /* what its ops read: &state, or its like in the memory of the place */
    struct arena there;        /* owns live elsewhere */
    struct graph graph;
    struct call *call;
    struct step_state state;
    struct cost cost[3]; /* forward, backward, both */
    struct samples time[3];
    char shape[256];
};

/* Builds, plans and fills the op with that kernel of it, or with the one that is taken unasked (NULL). *why says why
 * the kernel does not apply, nothing is planned then; else NULL. r starts zeroed; kernel_run_close also after an
 * error. */
enum status kernel_run_open(struct kernel_run *r, const struct op *op, const struct kernel *kernel,
                            const struct op_sizes *sizes, const char **why, struct error *e);
void kernel_run_sample(struct kernel_run *r); /* forward, and backward if the op has one */
void kernel_run_close(struct kernel_run *r);

/* --- the measurements; they print to stdout ----------------------------------------------------------------------- */

struct perf_op_request {
    struct op_sizes sizes;
    char kernel[OPTION_TEXT]; /* only this one; "" = all that apply */
    double seconds;           /* for each kernel */
    int threads;
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
    int threads;
    bool profile; /* where the time goes, by op */
};
enum status perf_step(const char *model, const struct perf_step_request *request, struct error *e);

/* One layer of every mixer with its default options, alone, forward and backward at lengths 64, 512 and 2048: a
 * Markdown table, and where `out` is given a row of OUT/perf.csv a number. A mixer that does not fit has a dash, and
 * the last such reason is said below the table. Errors: ST_FAIL: a row cannot be written. */
struct perf_layers_request {
    int64_t dim, batch, wanted_threads;
    double seconds; /* for each sitting */
    int threads;
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
    bool no_error;           /* kernels are not compared with their references, which are the host's work */
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
