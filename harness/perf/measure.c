/* measure.c - see measure.h. */
#include "harness/perf/measure.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness/rows/stats.h"
#include "harness/store/clock.h"
#include "harness/store/logs.h"
#include "harness/store/version.h"

#define MIN_SAMPLES 30   /* least samples of a measurement */
#define FEW_SAMPLES 5    /* least samples if they are slow; they may take as many times the time */
#define WARM_UP     5.0  /* longest warm-up, in units of the time for samples */
#define WINDOW      0.02 /* shortest window, in the same units; shorter ones would measure clock and scheduler */

/* --- samples ------------------------------------------------------------------------------------------------------ */

double perf_time_s(void) {
    return omp_get_max_threads() == 1 ? time_run_s() : time_now_s();
}

bool samples_due(const struct samples *s, int least, double begin, double seconds) {
    return s->n < PERF_SAMPLES && (s->n < least || time_now_s() - begin < seconds);
}

void samples_add(struct samples *s, double seconds) {
    if (s->n < PERF_SAMPLES) s->seconds[s->n++] = seconds;
}

double samples_best(const struct samples *s) {
    double best = s->n ? s->seconds[0] : NAN;
    for (int i = 1; i < s->n; i++) best = fmin(best, s->seconds[i]);
    return best;
}

double samples_median(const struct samples *s) {
    return stats_median(s->seconds, s->n);
}

double samples_mad(const struct samples *s) {
    double median = samples_median(s), deviation[PERF_SAMPLES];
    for (int i = 0; i < s->n; i++) deviation[i] = fabs(s->seconds[i] - median);
    return stats_median(deviation, s->n);
}

/* --- rates -------------------------------------------------------------------------------------------------------- */

enum status copy_create(struct copy_bench *c, size_t bytes, struct error *e) {
    *c = (struct copy_bench){.bytes = bytes};
    TRY(arena_reserve(&c->arena, 2 * (bytes + ARENA_ALIGN), e));
    arena_huge_pages(&c->arena);
    c->from = arena_alloc(&c->arena, bytes);
    c->to = arena_alloc(&c->arena, bytes);
    memset(c->from, 1, bytes); /* allocates the pages */
    memset(c->to, 2, bytes);
    return ST_OK;
}

void copy_free(struct copy_bench *c) {
    arena_free(&c->arena);
}

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#define CHAINS 12 /* independent sums: latency x units of current cores is 8 to 10, and there are 16 registers */
#define ROUNDS 100000

enum { LANES = VECTOR_BYTES / sizeof(real) };
typedef real vector __attribute__((vector_size(VECTOR_BYTES)));

/* Computes x <- x * 0.5 + 1 in CHAINS x LANES registers, ROUNDS times. It is not inlined, so that the compiler cannot
 * move it past the clock. */
static __attribute__((noinline)) real fma_chains(real half, real one) {
    vector x[CHAINS], a = {0}, b = {0};
    for (int i = 0; i < LANES; i++) {
        a[i] = half;
        b[i] = one;
    }
    for (int c = 0; c < CHAINS; c++) x[c] = b * (real)c;
    for (int round = 0; round < ROUNDS; round++)
#pragma GCC unroll 12
        for (int c = 0; c < CHAINS; c++) {
#ifdef __FMA__
            for (int i = 0; i < LANES; i++) x[c][i] = real_fma(x[c][i], a[i], b[i]);
#else
            x[c] = x[c] * a + b;
#endif
        }
    real sum = 0;
    for (int c = 0; c < CHAINS; c++)
        for (int i = 0; i < LANES; i++) sum += x[c][i];
    return sum;
}

void floor_rates_sample(struct floor_rates *r, struct copy_bench *copy) {
    static volatile real sink;
    int threads = omp_get_max_threads();
    double start = perf_time_s(), sum = 0;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < threads; i++) {
        size_t part = copy->bytes / (size_t)threads, begin = part * (size_t)i;
        memcpy(copy->to + begin, copy->from + begin, i == threads - 1 ? copy->bytes - begin : part);
    }
    double middle = perf_time_s();
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int i = 0; i < threads; i++) sum += (double)fma_chains((real)0.5, (real)1);
    double end = perf_time_s();
    sink = (real)sum;
    (void)sink;
    r->bytes = fmax(r->bytes, 2 * (double)copy->bytes / (middle - start));
    r->flops = fmax(r->flops, 2.0 * ROUNDS * CHAINS * LANES * threads / (end - middle));
}

/* Returns user plus system time of this process or of its children, in seconds. */
static double seconds_of(int who) {
    struct rusage usage;
    getrusage(who, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* First line of /proc/stat: user nice system idle iowait irq softirq steal, in ticks of all cores together. */
void noise_begin(struct noise *n) {
    int64_t t[8] = {0};
    int got = 0;
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    FILE *f = fopen("/proc/stat", "re");
    if (f) {
        got = fscanf(f,
                     "cpu %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64,
                     &t[0], &t[1], &t[2], &t[3], &t[4], &t[5], &t[6], &t[7]);
        fclose(f);
    }
    n->busy = got == 8 ? tick * (double)(t[0] + t[1] + t[2] + t[5] + t[6] + t[7]) : NAN;
    n->all = n->busy + tick * (double)(t[3] + t[4]);
    n->own = seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN);
}

double noise_end(const struct noise *n) {
    struct noise now;
    noise_begin(&now);
    double others = (now.busy - n->busy) - (now.own - n->own), all = now.all - n->all;
    return all > 0 ? fmax(0, others / all) : NAN;
}

/* --- sittings ----------------------------------------------------------------------------------------------------- */

static enum status time_one(enum status (*one)(void *context, struct error *e), void *context, double *seconds,
                            struct error *e) {
    double start = time_now_s();
    TRY(one(context, e));
    *seconds = time_now_s() - start;
    return ST_OK;
}

/* Takes windows until the means of the latest three agree. A window is ten samples that fill WINDOW, or fewer that take
 * all of `seconds`. */
static enum status warm_up(struct sitting *s, enum status (*one)(void *context, struct error *e), void *context,
                           double seconds, struct error *e) {
    double last[3] = {0}, begin = time_now_s();
    s->warm_up = -1;
    for (int n = 1; s->warm_up < 0 && (n <= 3 || time_now_s() - begin < WARM_UP * seconds); n++) {
        double sum = 0, spent;
        int calls = 0;
        for (; calls == 0 || ((calls < SITTING_WINDOW || sum < WINDOW * seconds) && sum < seconds); calls++) {
            TRY(time_one(one, context, &spent, e));
            sum += spent;
        }
        last[n % 3] = sum / calls;
        double low = fmin(fmin(last[0], last[1]), last[2]), high = fmax(fmax(last[0], last[1]), last[2]);
        if (n >= 3 && high <= (1 + SITTING_AGREE) * low) s->warm_up = n;
    }
    return ST_OK;
}

static bool is_enough(int n, double spent) {
    return n >= MIN_SAMPLES ? spent >= 1 : n >= FEW_SAMPLES && spent >= FEW_SAMPLES;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sitting_summarise(struct sitting *s, const struct samples *all) {
    struct samples sorted = *all;
    qsort(sorted.seconds, (size_t)all->n, sizeof *sorted.seconds, compare_doubles);
    s->samples = all->n;
    s->mad = samples_mad(all);
    s->median = samples_median(all);
    s->p95 = sorted.seconds[(int)(0.95 * (all->n - 1) + 0.5)];
}

enum status sitting_run(struct sitting *s, enum status (*one)(void *context, struct error *e), void *context,
                        double seconds, struct error *e) {
    struct samples *all = calloc(1, sizeof *all);
    struct noise noise;
    double spent = 0, latest = 0;
    if (!all) return fail(e, ST_MEMORY, "no memory for the samples");
    enum status status = warm_up(s, one, context, seconds, e);
    noise_begin(&noise);
    while (status == ST_OK && all->n < PERF_SAMPLES && !is_enough(all->n, spent / seconds)) {
        status = time_one(one, context, &latest, e);
        if (status == ST_OK) samples_add(all, latest);
        spent += latest;
    }
    s->foreign = noise_end(&noise);
    if (status == ST_OK) sitting_summarise(s, all);
    free(all);
    return status;
}

bool sitting_is_quiet(const struct sitting *s) {
    return s->warm_up > 0 && s->foreign <= SITTING_FOREIGN && s->p95 <= SITTING_SPREAD * s->median;
}

bool sitting_is_better(const struct sitting *s, const struct sitting *other) {
    if (sitting_is_quiet(s) != sitting_is_quiet(other)) return sitting_is_quiet(s);
    return !(s->foreign > other->foreign); /* unknown: the later measurement */
}

enum status sitting_run_quiet(struct sitting *s, enum status (*one)(void *context, struct error *e), void *context,
                              double seconds, struct error *e) {
    struct sitting second;
    TRY(sitting_run(s, one, context, seconds, e));
    if (sitting_is_quiet(s)) return ST_OK;
    TRY(sitting_run(&second, one, context, seconds, e));
    if (sitting_is_better(&second, s)) *s = second;
    return ST_OK;
}

void sitting_expect(double one, double seconds, double *least, double *most) {
    double window = fmax(one, fmin(seconds, fmax(SITTING_WINDOW * one, WINDOW * seconds)));
    double samples = fmin(fmax(MIN_SAMPLES * one, seconds), FEW_SAMPLES * fmax(one, seconds));
    *least = 3 * window + samples;
    *most = 2 * (fmax(3 * window, WARM_UP * seconds) + samples);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

void sitting_fill(const struct sitting *s, double tokens, struct perf_row *row) {
    row->samples = s->samples;
    row->time_ns = s->median * 1e9;
    row->time_ns_mad = s->mad * 1e9;
    row->time_ns_p95 = s->p95 * 1e9;
    row->tok_per_s = tokens / s->median;
    row->foreign = s->foreign;
    row->warm_up = s->warm_up;
    row->quiet = sitting_is_quiet(s);
}

void sitting_describe(struct perf_row *row, const struct machine *m, int threads) {
    const struct build_info *b = build_info();
    row->threads = threads;
    time_now_text(row->started, sizeof row->started);
    snprintf(row->sitting, sizeof row->sitting, "%s", row->started);
    snprintf(row->dtype, sizeof row->dtype, "%s", REAL_NAME);
    snprintf(row->commit, sizeof row->commit, "%s", b->commit);
    snprintf(row->build_id, sizeof row->build_id, "%s", b->flags);
    snprintf(row->source_id, sizeof row->source_id, "%s", b->sources);
    snprintf(row->compiler, sizeof row->compiler, "%s", b->compiler);
    snprintf(row->machine_id, sizeof row->machine_id, "%s", m->id);
    snprintf(row->env_epoch, sizeof row->env_epoch, "%s", m->env_epoch);
    snprintf(row->device, sizeof row->device, "cpu");
    row->best_ns = row->floor_ns = row->flops = row->bytes = NAN;
}

enum status sitting_append(const char *out, const struct perf_row *row, const struct machine *m, struct error *e) {
    TRY(machines_export(out, m, e));
    return perf_append(out, row, e);
}

void perf_print_origin(void) {
    struct machine machine;
    machine_read(&machine);
    printf("\"commit\":\"%.12s%s\",\"machine\":\"%s\"", build_info()->commit, build_info()->dirty ? "+" : "",
           machine.id);
}
