/* rates.c - see rates.h. */
#include "harness/perf/rates.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/perf/samples.h"
#include "kernels/lib/gemm.h"
#include "kernels/lib/round.h"

/* --- copying ------------------------------------------------------------------------------------------------------ */

enum status copy_create(struct copy_bench *c, size_t bytes, struct error *e) {
    *c = (struct copy_bench){.bytes = bytes};
    TRY(arena_reserve(&c->arena, 2 * (bytes + ARENA_ALIGN), e));
    arena_huge_pages(&c->arena);
    c->from = arena_alloc(&c->arena, bytes);
    c->to = arena_alloc(&c->arena, bytes);
    memset(c->from, 1, bytes); /* pages must exist */
    memset(c->to, 2, bytes);
    return ST_OK;
}

void copy_free(struct copy_bench *c) {
    arena_free(&c->arena);
}

/* Seconds of one copy. */
static double copy_run(struct copy_bench *c) {
    double start = perf_time_s();
    int parts = omp_get_max_threads();
#pragma omp parallel for schedule(static)
    for (int i = 0; i < parts; i++) {
        size_t begin = c->bytes / (size_t)parts * (size_t)i;
        size_t end = i == parts - 1 ? c->bytes : c->bytes / (size_t)parts * (size_t)(i + 1);
        memcpy(c->to + begin, c->from + begin, end - begin);
    }
    return perf_time_s() - start;
}

/* --- multiplying and adding --------------------------------------------------------------------------------------- */

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define CHAINS 12 /* independent sums: latency x units of current cores is 8 to 10, and 16 registers hold them */
#define ROUNDS 100000

enum { LANES = VECTOR_BYTES / sizeof(real) };
typedef real vector __attribute__((vector_size(VECTOR_BYTES)));

static inline vector vector_fma(vector a, vector b, vector c) {
#ifdef __FMA__
    vector r = a;
    for (int i = 0; i < LANES; i++) r[i] = real_fma(a[i], b[i], c[i]);
    return r;
#else
    return a * b + c;
#endif
}

/* x <- x * 0.5 + 1 in CHAINS x LANES registers, ROUNDS times. Not inlined, so that it is not moved past the clock. */
static __attribute__((noinline)) real fma_chains(real half, real one) {
    vector x[CHAINS], a = {0}, b = {0};
    for (int i = 0; i < LANES; i++) {
        a[i] = half;
        b[i] = one;
    }
    for (int c = 0; c < CHAINS; c++) x[c] = b * (real)c;
    for (int round = 0; round < ROUNDS; round++)
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++) x[c] = vector_fma(x[c], a, b);
    real sum = 0;
    for (int c = 0; c < CHAINS; c++)
        for (int i = 0; i < LANES; i++) sum += x[c][i];
    return sum;
}

/* FLOP/s. */
static double fma_run(void) {
    static volatile real sink;
    int threads = omp_get_max_threads();
    double start = perf_time_s(), sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int i = 0; i < threads; i++) sum += (double)fma_chains((real)0.5, (real)1);
    double seconds = perf_time_s() - start;
    sink = (real)sum;
    (void)sink;
    return 2.0 * ROUNDS * CHAINS * LANES * threads / seconds;
}

static void raise_to(double *best, double rate) {
    if (rate > *best) *best = rate;
}

void floor_rates_sample(struct floor_rates *r, struct copy_bench *copy) {
    raise_to(&r->bytes, 2 * (double)copy->bytes / copy_run(copy));
    raise_to(&r->flops, fma_run());
}

/* --- matrix products ---------------------------------------------------------------------------------------------- */

enum status gemm_create(struct gemm_bench *g, int64_t n, enum precision precision, struct error *e) {
    *g = (struct gemm_bench){.n = n};
    size_t bytes = (size_t)(n * n) * sizeof(real);
    TRY(arena_reserve(&g->arena, 4 * (bytes + ARENA_ALIGN), e));
    arena_huge_pages(&g->arena);
    g->a = arena_alloc(&g->arena, bytes);
    g->b = arena_alloc(&g->arena, bytes);
    g->c = arena_alloc(&g->arena, bytes);
    for (int64_t i = 0; i < n * n; i++) {
        g->a[i] = (real)((i * 7 + 3) % 17) / 17;
        g->b[i] = (real)((i * 5 + 1) % 13) / 13;
        g->c[i] = 0;
    }
    if (precision != PRECISION_BF16 || !gemm_bf16_pays()) return ST_OK;
    g->half_a = arena_alloc(&g->arena, bytes / sizeof(real) * sizeof *g->half_a);
    g->half_b = arena_alloc(&g->arena, bytes / sizeof(real) * sizeof *g->half_b);
    round_to_bf16(n * n, g->a, g->half_a);
    round_to_bf16(n * n, g->b, g->half_b);
    return ST_OK;
}

void gemm_free(struct gemm_bench *g) {
    arena_free(&g->arena);
}

double gemm_run(struct gemm_bench *g) {
    int tiles = omp_get_max_threads();
    int64_t n = g->n;
    double start = perf_time_s();
#pragma omp parallel for schedule(static)
    for (int i = 0; i < tiles; i++) {
        int64_t begin = n * i / tiles, end = n * (i + 1) / tiles;
        if (g->half_a) {
            gemm_bf16(false, false, end - begin, n, n, g->half_a + begin * n, n, g->half_b, n, NULL, false,
                      g->c + begin * n, n);
            continue;
        }
        real_gemm(false, false, end - begin, n, n, 1, g->a + begin * n, n, g->b, n, false, g->c + begin * n, n);
    }
    return perf_time_s() - start;
}

/* --- the rest of the machine -------------------------------------------------------------------------------------- */

/* First line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks of all cores together. */
static bool read_stat(struct noise *n) {
    int64_t t[8] = {0};
    FILE *f = fopen("/proc/stat", "re");
    if (!f) return false;
    int got =
        fscanf(f, "cpu %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64,
               &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]);
    fclose(f);
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    n->busy = tick * (double)(t[0] + t[1] + t[2] + t[5] + t[6] + t[7]);
    n->all = n->busy + tick * (double)(t[3] + t[4]);
    return got == 8;
}

static double seconds_of(int who) {
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

void noise_begin(struct noise *n) {
    if (!read_stat(n)) n->busy = n->all = NAN;
    n->own = seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN);
}

double noise_end(const struct noise *n) {
    struct noise now;
    noise_begin(&now);
    double others = (now.busy - n->busy) - (now.own - n->own), all = now.all - n->all;
    if (!(all > 0)) return NAN;
    return others < 0 ? 0 : others / all;
}

size_t peak_resident_bytes(void) {
    char line[256];
    int64_t kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %" SCNd64, &kb) == 1) break;
    if (f) fclose(f);
    return (size_t)kb << 10;
}
