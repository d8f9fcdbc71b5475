/* rates.h - what the machine can do beside what is measured: the rates of copying, multiplying and adding, with
 * OpenMP's current number of threads, and what other processes do meanwhile. */
#ifndef LRNN_HARNESS_PERF_RATES_H
#define LRNN_HARNESS_PERF_RATES_H

#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/op.h"
#include "core/real.h"

/* Copying `bytes` from one buffer to another. Traffic counts what is read and what is written: 2 x bytes. */
struct copy_bench {
    struct arena arena; /* owns the buffers */
    char *from, *to;
    size_t bytes;
};
enum status copy_create(struct copy_bench *c, size_t bytes, struct error *e);
void copy_free(struct copy_bench *c);

/* What floors are made of: products of matrices, fused multiply-adds on registers, and bytes of copies that the caches
 * do not hold. */
struct floor_rates {
    double products, flops, bytes; /* a second */
};

/* Measures the last two once more, in a copy and a burst of less than a millisecond, and keeps the best. */
void floor_rates_sample(struct floor_rates *r, struct copy_bench *copy);

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

#endif
