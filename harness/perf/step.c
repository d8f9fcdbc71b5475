/* step.c - `lrnn perf step`: measures a whole training step and compares it with the matrix products that it needs.
 *
 * The step is the trainer's own: batch, forward, backward, update. Its floor is 6 x matmul parameters x tokens FLOPs
 * (two for each multiply-add; forward, gradient of the input, gradient of the weight) at the rate of a 2048^3 product,
 * which is measured between rounds of steps at the same number of threads. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_plan.h"
#include "core/philox.h"
#include "harness/perf/measure.h"
#include "harness/perf/perf.h"
#include "harness/run/trainer.h"
#include "kernels/dense/dense.h"
#include "kernels/lib/gemm.h"
#include "kernels/lib/round.h"
#include "tasks/examples.h"

#define WARM_UP    3 /* steps not counted */
#define ROUND      5 /* steps between two products */
#define GEMM_SIZE  2048
#define COPY_BYTES ((size_t)64 << 20)
#define MANY       ((int64_t)1 << 30) /* training examples; never reached */

/* --- random tokens as a task -------------------------------------------------------------------------------------- */

struct uniform {
    int64_t length, least, vocab; /* lengths are uniform in least .. length */
};

static const struct option uniform_options[] = {
    {"length", OPT_INT, offsetof(struct uniform, length), "16", 1, 1e9, NULL, "tokens", 0},
    {"least", OPT_INT, offsetof(struct uniform, least), "16", 1, 1e9, NULL, "fewest of them", 0},
    {"vocab", OPT_INT, offsetof(struct uniform, vocab), "120", 1, 1e9, NULL, "ids", 0},
    {0},
};

static enum status uniform_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    (void)inst, (void)seed, (void)host, (void)e;
    return ST_OK;
}

static void uniform_shape(const void *inst, struct task_shape *out) {
    const struct uniform *u = inst;
    *out = (struct task_shape){.T = u->length,
                               .vocab_in = u->vocab,
                               .vocab_out = u->vocab,
                               .examples = {MANY, 1, 1},
                               .solved = 1,
                               .metric = METRIC_ACC};
}

static void uniform_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct uniform *u = inst;
    struct rng r = rng_at((uint64_t)split, STREAM_TEST, (uint64_t)index);
    for (int64_t t = 0; t < u->length; t++) {
        x->tokens[t] = (int32_t)rng_below(&r, (uint64_t)u->vocab);
        x->targets[t] = (int32_t)rng_below(&r, (uint64_t)u->vocab);
    }
    x->length = (int32_t)draw_length(&r, u->least, u->length);
    for (int64_t t = x->length; t < u->length; t++) x->targets[t] = IGNORED;
}

static const struct task uniform_task = {
    .name = "uniform",
    .summary = "random tokens and targets, for timing",
    .suite = "perf",
    .hidden = true,
    .version = 1,
    .options = uniform_options,
    .inst_bytes = sizeof(struct uniform),
    .open = uniform_open,
    .shape = uniform_shape,
    .fill = uniform_fill,
};

/* --- a matrix product --------------------------------------------------------------------------------------------- */

/* C = A B of GEMM_SIZE x GEMM_SIZE matrices. */
struct gemm_bench {
    struct arena arena; /* owns the matrices */
    real *a, *b, *c;
    uint16_t *half_a, *half_b; /* the factors in bf16; NULL: the product is of reals */
};

/* Makes a product in that precision: of bf16 if that is faster on this CPU, else of reals. */
static enum status gemm_create(struct gemm_bench *g, enum precision precision, struct error *e) {
    const int64_t n = (int64_t)GEMM_SIZE * GEMM_SIZE;
    size_t bytes = (size_t)n * sizeof(real);
    TRY(arena_reserve(&g->arena, 4 * (bytes + ARENA_ALIGN), e));
    arena_huge_pages(&g->arena);
    g->a = arena_alloc(&g->arena, bytes);
    g->b = arena_alloc(&g->arena, bytes);
    g->c = arena_alloc(&g->arena, bytes);
    for (int64_t i = 0; i < n; i++) {
        g->a[i] = (real)((i * 7 + 3) % 17) / 17;
        g->b[i] = (real)((i * 5 + 1) % 13) / 13;
        g->c[i] = 0;
    }
    if (precision != PRECISION_BF16 || !gemm_bf16_pays()) return ST_OK;
    g->half_a = arena_alloc(&g->arena, (size_t)n * sizeof *g->half_a);
    g->half_b = arena_alloc(&g->arena, (size_t)n * sizeof *g->half_b);
    round_to_bf16(n, g->a, g->half_a);
    round_to_bf16(n, g->b, g->half_b);
    return ST_OK;
}

/* Computes the product by tiles of rows, one per thread; returns the seconds. */
static double gemm_run(struct gemm_bench *g) {
    const int64_t n = GEMM_SIZE;
    int tiles = omp_get_max_threads();
    double start = perf_time_s();
#pragma omp parallel for schedule(static)
    for (int i = 0; i < tiles; i++) {
        int64_t begin = n * i / tiles, rows = n * (i + 1) / tiles - begin, at = begin * n;
        if (g->half_a)
            gemm_bf16(false, false, rows, n, n, g->half_a + at, n, g->half_b, n, NULL, false, g->c + at, n);
        else
            real_gemm(false, false, rows, n, n, 1, g->a + at, n, g->b, n, false, g->c + at, n);
    }
    return perf_time_s() - start;
}

/* --- time by op --------------------------------------------------------------------------------------------------- */

/* Best time of a call over the steps, which excludes disturbances by other processes. */
struct call_time {
    const struct call *call; /* NULL: the end of the list */
    double best[2];          /* seconds, by enum pass; INFINITY: never walked */
};

struct op_time {
    const struct op *op;
    int calls;
    double seconds[2], floor, by_bytes; /* by_bytes: the part of the floor that is due to bytes */
    double lost;                        /* seconds above the floors of its calls, at least 0 */
};

/* Times of calls in the order of the walk, and their sums by op. */
struct op_times {
    struct call_time *calls;
    struct op_time *ops;
    const struct call *current;
    enum pass pass;
    double since;
};

/* Notes the time of the call that has ended. A walk calls it before each call, and with NULL after the last. */
static void look(void *watcher, const struct call *c, enum pass pass) {
    struct op_times *p = watcher;
    if (p->current) {
        double seconds = perf_time_s() - p->since;
        struct call_time *t = p->calls;
        while (t->call && t->call != p->current) t++;
        if (!t->call) *t = (struct call_time){p->current, {INFINITY, INFINITY}};
        t->best[p->pass] = fmin(t->best[p->pass], seconds);
    }
    p->current = c;
    p->pass = pass;
    p->since = perf_time_s();
}

/* Times the calls of both graphs from now on. p starts zeroed, and must outlive the walks. ST_MEMORY. */
static enum status op_times_begin(struct op_times *p, struct graph *train, struct graph *update, struct error *e) {
    size_t room = (size_t)(train->n_calls + update->n_calls) + 1; /* the last entry stays empty */
    p->calls = calloc(room, sizeof *p->calls);
    p->ops = calloc(room, sizeof *p->ops);
    if (!p->calls || !p->ops) return fail(e, ST_MEMORY, "no memory for the times of %zu calls", room - 1);
    train->plan->watch = update->plan->watch = look;
    train->plan->watcher = update->plan->watcher = p;
    return ST_OK;
}

static int by_loss(const void *a, const void *b) {
    double x = ((const struct op_time *)a)->lost, y = ((const struct op_time *)b)->lost;
    return (x < y) - (x > y);
}

/* Sums the times of calls by op and prints a row per op, sorted by lost time. The last row is the time of a step
 * (`step`: its best seconds) outside all calls. */
static void print_op_times(const struct op_times *p, const struct floor_rates *rates, double step, bool json) {
    int n = 0;
    double all = 0;
    for (const struct call_time *c = p->calls; c->call; c++) {
        int i = 0;
        while (i < n && p->ops[i].op != c->call->op) i++;
        struct op_time *t = &p->ops[i];
        if (i == n) p->ops[n++] = (struct op_time){.op = c->call->op};
        t->calls++;
        for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
            if (!isfinite(c->best[pass])) continue;
            struct cost cost = c->call->op->cost(c->call, (enum pass)pass);
            double flops = cost.flops / (c->call->op == &op_linear ? rates->products : rates->flops);
            double bytes = cost.bytes / rates->bytes, floor = fmax(bytes, flops);
            t->seconds[pass] += c->best[pass];
            t->floor += floor;
            t->lost += fmax(c->best[pass] - floor, 0); /* the floor is a measurement too, so a call can be faster */
            if (bytes > flops) t->by_bytes += bytes;
        }
    }
    qsort(p->ops, (size_t)n, sizeof *p->ops, by_loss);
    if (json)
        printf(",\"fma_gflop_per_s\":%.6g,\"copy_gb_per_s\":%.6g,\"profile\":[", rates->flops / 1e9,
               rates->bytes / 1e9);
    else
        printf("  profile     best time of each call, summed by op, ms; floors: linear %.1f GFLOP/s, others %.1f,\n"
               "              copies %.1f GB/s (read and written both counted)\n"
               "  %-22s %5s %9s %9s %9s %-5s %9s %6s\n",
               rates->products / 1e9, rates->flops / 1e9, rates->bytes / 1e9, "op", "calls", "forward", "backward",
               "floor", "by", "lost", "step");
    for (const struct op_time *t = p->ops; t < p->ops + n; t++) {
        double seconds = t->seconds[PASS_FORWARD] + t->seconds[PASS_BACKWARD];
        const char *by = 2 * t->by_bytes > t->floor ? "bytes" : "flops";
        all += seconds;
        if (json)
            printf("%s{\"op\":\"%s\",\"calls\":%d,\"forward_ms\":%.6g,\"backward_ms\":%.6g,\"floor_ms\":%.6g,"
                   "\"bound\":\"%s\",\"lost_ms\":%.6g}",
                   t == p->ops ? "" : ",", t->op->name, t->calls, t->seconds[PASS_FORWARD] * 1e3,
                   t->seconds[PASS_BACKWARD] * 1e3, t->floor * 1e3, by, t->lost * 1e3);
        else
            printf("  %-22s %5d %9.4f %9.4f %9.4f %-5s %9.4f %4.1f %%\n", t->op->name, t->calls,
                   t->seconds[PASS_FORWARD] * 1e3, t->seconds[PASS_BACKWARD] * 1e3, t->floor * 1e3, by, t->lost * 1e3,
                   100 * seconds / step);
    }
    if (json)
        printf("]");
    else
        printf("  between the calls, or slower than the best of each: %.4f ms, %.1f %%\n", (step - all) * 1e3,
               100 * (step - all) / step);
}

/* --- one model ---------------------------------------------------------------------------------------------------- */

struct step_run {
    struct setup *setup;
    struct trainer trainer;
    struct gemm_bench gemm;
    struct samples step, product;
    struct op_times times; /* if requested */
    struct copy_bench copy;
    struct floor_rates rates;
    double noise;
    size_t resident; /* measured before the product's matrices exist */
};

/* Returns the largest resident memory of this process so far in bytes; 0: unknown. */
static size_t peak_resident_bytes(void) {
    char line[256];
    int64_t kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %" SCNd64, &kb) == 1) break;
    if (f) fclose(f);
    return (size_t)kb << 10;
}

static enum status measure(struct step_run *r, const struct perf_step_request *q, struct error *e) {
    struct noise noise;
    for (int i = 0; i < WARM_UP; i++) trainer_step(&r->trainer);
    r->resident = peak_resident_bytes();
    TRY(gemm_create(&r->gemm, (enum precision)q->config.precision, e));
    gemm_run(&r->gemm);
    if (q->profile) {
        TRY(copy_create(&r->copy, COPY_BYTES, e));
        TRY(op_times_begin(&r->times, &r->trainer.train, &r->trainer.update, e));
    }
    noise_begin(&noise);
    for (int64_t i = 0; i < q->count; i++) {
        if (i % ROUND == 0) {
            samples_add(&r->product, gemm_run(&r->gemm));
            if (q->profile) floor_rates_sample(&r->rates, &r->copy); /* for the floors of the calls */
            trainer_step(&r->trainer);                               /* refills the caches */
        }
        double start = perf_time_s();
        trainer_step(&r->trainer);
        samples_add(&r->step, perf_time_s() - start);
    }
    r->noise = noise_end(&noise);
    return ST_OK;
}

struct step_result {
    int64_t params, matmul;           /* trained parameters; those in matrix products: rank 2, no embedding */
    double tokens;                    /* mean per step */
    double best, median, mad;         /* seconds */
    double flops;                     /* per step, as the ops declare them */
    double rate_best, rate_median;    /* FLOP/s of the product */
    double floor_best, floor_median;  /* seconds */
    double planned, arrays, resident; /* bytes */
};

static struct step_result evaluate(const struct step_run *r) {
    const struct trainer *t = &r->trainer;
    const double product = 2.0 * GEMM_SIZE * GEMM_SIZE * GEMM_SIZE;
    struct step_result s = {.params = params_trained(&t->params)};
    for (int i = 0; i < t->params.n; i++) {
        const struct param *p = &t->params.list[i];
        bool looked_up = strcmp(p->name, "embedding") == 0;
        if (p->spec.rank == 2 && p->spec.group != PARAM_CONST && !looked_up) s.matmul += p->count;
    }
    const struct uniform *u = (const struct uniform *)r->setup->spec.task.inst;
    s.tokens = (double)r->setup->spec.config.batch * (double)(u->least + u->length) / 2;
    s.best = samples_best(&r->step);
    s.median = samples_median(&r->step);
    s.mad = samples_mad(&r->step);
    s.flops = graphs_step_flops(&t->train) + graph_cost(&t->update, PASS_FORWARD).flops;
    s.rate_best = product / samples_best(&r->product);
    s.rate_median = product / samples_median(&r->product);
    double needed = 6 * (double)s.matmul * s.tokens;
    s.floor_best = needed / s.rate_best;
    s.floor_median = needed / s.rate_median;
    s.planned = (double)t->train.plan->bytes;
    s.arrays = 4 * (double)t->params.floats * sizeof(real);
    s.resident = (double)r->resident;
    return s;
}

static void print_text(const struct step_run *r, const struct step_result *s, const struct perf_step_request *q) {
    char net[512];
    options_format(backbone_options, &q->config, " ", 0, net, sizeof net);
    printf("%s %s batch=%" PRId64 " length=%" PRId64 " vocab=%" PRId64 ", %" PRId64 " thread%s, %s, %d steps\n",
           r->setup->id.model_label, net, q->config.batch, q->length, q->vocab, q->threads, q->threads == 1 ? "" : "s",
           precision_name((enum precision)q->config.precision), r->step.n);
    if (q->least) printf("  examples    lengths %" PRId64 " to %" PRId64 "\n", q->least, q->length);
    printf("  parameters  %" PRId64 ", in matrix products %" PRId64 "\n", s->params, s->matmul);
    printf("  step        %.3f ms median, mad %.3f, best %.3f\n", s->median * 1e3, s->mad * 1e3, s->best * 1e3);
    printf("  tokens/s    %.0f median, best %.0f\n", s->tokens / s->median, s->tokens / s->best);
    printf("  GFLOP/s     %.1f median, best %.1f (%.2f GFLOP a step, all ops)\n", s->flops / s->median / 1e9,
           s->flops / s->best / 1e9, s->flops / 1e9);
    printf("  memory      %.1f MB: planned %.1f MB, parameters with gradients and moments %.1f MB; largest resident\n"
           "              size of the process %.1f MB\n",
           (s->planned + s->arrays) / 1e6, s->planned / 1e6, s->arrays / 1e6, s->resident / 1e6);
    printf("  product     %d^3 at %.1f GFLOP/s best, median %.1f, between the steps\n", GEMM_SIZE, s->rate_best / 1e9,
           s->rate_median / 1e9);
    printf("  floor       %.3f ms best, median %.3f (6 x %" PRId64 " x %.0f tokens at that rate)\n",
           s->floor_best * 1e3, s->floor_median * 1e3, s->matmul, s->tokens);
    printf("  ratio       %.2f best, median %.2f\n", s->best / s->floor_best, s->median / s->floor_median);
    if (isfinite(r->noise))
        printf("  noise       other processes used %.0f %% of the cores%s\n", r->noise * 100,
               q->threads == 1 ? "; times are those that the thread ran" : "");
    if (q->profile) print_op_times(&r->times, &r->rates, s->best, false);
}

static void print_json(const struct step_run *r, const struct step_result *s, const struct perf_step_request *q) {
    printf("{");
    perf_print_origin();
    printf(",\"products\":\"%s\",", gemm_library());
    printf("\"model\":\"%s\",\"dim\":%" PRId64 ",\"layers\":%" PRId64 ",\"batch\":%" PRId64 ",\"length\":%" PRId64
           ",\"min_length\":%" PRId64 ",\"vocab\":%" PRId64 ",\"threads\":%" PRId64
           ",\"dtype\":\"%s\",\"steps\":%d,\"params\":%" PRId64 ",\"matmul_params\":%" PRId64 ",",
           r->setup->id.model_label, q->config.net.dim, q->config.net.layers, q->config.batch, q->length,
           q->least ? q->least : q->length, q->vocab, q->threads, precision_name((enum precision)q->config.precision),
           r->step.n, s->params, s->matmul);
    printf("\"step_ms_med\":%.6g,\"step_ms_mad\":%.6g,\"step_ms_best\":%.6g,\"tok_per_s\":%.6g,\"gflop_per_s\":%.6g,"
           "\"planned_bytes\":%.0f,\"parameter_bytes\":%.0f,\"resident_bytes\":%.0f,",
           s->median * 1e3, s->mad * 1e3, s->best * 1e3, s->tokens / s->median, s->flops / s->median / 1e9, s->planned,
           s->arrays, s->resident);
    printf("\"gemm_gflop_per_s\":%.6g,\"floor_ms\":%.6g,\"ratio_best\":%.6g,\"ratio_med\":%.6g,\"noise\":%.3g",
           s->rate_best / 1e9, s->floor_best * 1e3, s->best / s->floor_best, s->median / s->floor_median,
           isfinite(r->noise) ? r->noise : -1);
    if (q->profile) print_op_times(&r->times, &r->rates, s->best, true);
    puts("}");
}

enum status perf_step(const char *model, const struct perf_step_request *q, struct error *e) {
    struct step_run *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    struct setup *s = r->setup = calloc(1, sizeof *s);
    enum status status = s ? ST_OK : fail(e, ST_MEMORY, "no memory for a run");
    if (s) {
        s->spec.config = q->config;
        s->spec.task = (struct task_choice){.task = &uniform_task, .name = "uniform"};
        *(struct uniform *)s->spec.task.inst = (struct uniform){q->length, q->least ? q->least : q->length, q->vocab};
        status = model_parse(&s->spec.model, model, e);
    }
    if (status == ST_OK) status = setup_resolve(s, e);
    if (status == ST_OK) status = trainer_create(&r->trainer, s, e);
    if (status == ST_OK) status = measure(r, q, e);
    if (status == ST_OK) {
        struct step_result result = evaluate(r);
        r->rates.products = result.rate_best;
        (q->config.json ? print_json : print_text)(r, &result, q);
    }
    free(r->times.calls);
    free(r->times.ops);
    copy_free(&r->copy);
    arena_free(&r->gemm.arena);
    trainer_free(&r->trainer);
    setup_free(r->setup);
    free(r);
    return status;
}
