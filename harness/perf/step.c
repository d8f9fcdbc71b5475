/* step.c - a whole training step beside the matrix products it cannot do without.
 *
 * The step is the trainer's own: batch, forward, backward, update. Its floor is 6 x matmul parameters x tokens FLOP
 * (two for each multiply-add; forward, gradient of the input, gradient of the weight) at the rate of a 2048^3 product
 * that is measured between rounds of steps at the same number of threads. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "core/philox.h"
#include "harness/perf/perf.h"
#include "harness/perf/op_times.h"
#include "harness/perf/rates.h"
#include "harness/perf/samples.h"
#include "harness/run/trainer.h"
#include "harness/store/clock.h"
#include "kernels/lib/gemm.h"
#include "tasks/examples.h"

#define WARM_UP    3 /* steps not counted */
#define ROUND      5 /* steps between two products */
#define GEMM_SIZE  2048
#define COPY_BYTES ((size_t)64 << 20)
#define MANY       ((int64_t)1 << 30) /* training examples; never reached */

/* --- random tokens as a task -------------------------------------------------------------------------------------- */

struct uniform {
    int64_t length, least, vocab; /* least: of the lengths, each alike */
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
                               .unequal = u->least < u->length,
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

/* --- one model ---------------------------------------------------------------------------------------------------- */

struct step_run {
    struct setup setup;
    struct trainer trainer;
    struct gemm_bench gemm;
    struct samples step, product;
    struct op_times times; /* if it was asked for */
    struct copy_bench copy;
    struct floor_rates rates;
    double noise;
    size_t resident; /* before the product's matrices exist */
};

/* Parameters that a token meets in a matrix product: all of rank 2 but the embedding, which is looked up. */
static int64_t matmul_parameters(const struct params *p) {
    int64_t n = 0;
    for (int i = 0; i < p->n; i++) {
        const struct param *q = &p->list[i];
        if (q->spec.rank == 2 && q->spec.group != PARAM_CONST && strcmp(q->name, "embedding") != 0) n += q->count;
    }
    return n;
}

static enum status prepare(struct step_run *r, const char *model, const struct perf_step_request *q, struct error *e) {
    struct setup *s = &r->setup;
    s->spec.config = q->config;
    s->spec.task = (struct task_choice){.task = &uniform_task, .name = "uniform"};
    *(struct uniform *)s->spec.task.inst = (struct uniform){q->length, q->least ? q->least : q->length, q->vocab};
    TRY(model_parse(&s->spec.model, model, e));
    TRY(setup_resolve(s, e));
    return trainer_create(&r->trainer, s, e);
}

static enum status measure(struct step_run *r, const struct perf_step_request *q, struct error *e) {
    struct noise noise;
    for (int i = 0; i < WARM_UP; i++) trainer_step(&r->trainer);
    r->resident = peak_resident_bytes();
    TRY(gemm_create(&r->gemm, GEMM_SIZE, (enum precision)q->config.precision, e));
    gemm_run(&r->gemm);
    if (q->profile) {
        TRY(copy_create(&r->copy, COPY_BYTES, e));
        TRY(op_times_begin(&r->times, &r->trainer.train, &r->trainer.update, e));
    }
    noise_begin(&noise);
    for (int64_t i = 0; i < q->count; i++) {
        if (i % ROUND == 0) {
            samples_add(&r->product, gemm_run(&r->gemm));
            if (q->profile) floor_rates_sample(&r->rates, &r->copy); /* what calls are held against */
            trainer_step(&r->trainer);                               /* brings the caches back */
        }
        double start = perf_time_s();
        trainer_step(&r->trainer);
        samples_add(&r->step, perf_time_s() - start);
    }
    r->noise = noise_end(&noise);
    return ST_OK;
}

struct step_result {
    int64_t params, matmul;
    double tokens;                    /* of a step, on average */
    double best, median, mad;         /* seconds */
    double flops;                     /* of a step, as the ops declare them */
    double rate_best, rate_median;    /* FLOP/s of the product */
    double floor_best, floor_median;  /* seconds */
    double planned, arrays, resident; /* bytes */
};

static struct step_result evaluate(const struct step_run *r) {
    const struct trainer *t = &r->trainer;
    const double product = 2.0 * GEMM_SIZE * GEMM_SIZE * GEMM_SIZE;
    struct step_result s = {.params = params_trained(&t->params), .matmul = matmul_parameters(&t->params)};
    const struct uniform *u = (const struct uniform *)r->setup.spec.task.inst;
    s.tokens = (double)r->setup.spec.config.batch * (double)(u->least + u->length) / 2;
    s.best = samples_best(&r->step);
    s.median = samples_median(&r->step);
    s.mad = samples_mad(&r->step);
    s.flops = graphs_step_flops(&t->train, &r->setup) + graph_cost(&t->update, PASS_FORWARD).flops;
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
           r->setup.id.model_label, net, q->config.batch, q->length, q->vocab, q->threads, q->threads == 1 ? "" : "s",
           precision_name((enum precision)q->config.precision), r->step.n);
    if (q->least || q->config.buckets > 1)
        printf("  examples    lengths %" PRId64 " to %" PRId64 ", %" PRId64 " bucket%s\n",
               q->least ? q->least : q->length, q->length, q->config.buckets, q->config.buckets == 1 ? "" : "s");
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
    if (q->profile) op_times_print(&r->times, &r->rates, s->best, false);
}

static void print_json(const struct step_run *r, const struct step_result *s, const struct perf_step_request *q) {
    printf("{");
    perf_print_origin();
    printf(",\"products\":\"%s\",", gemm_library());
    printf("\"model\":\"%s\",\"dim\":%" PRId64 ",\"layers\":%" PRId64 ",\"batch\":%" PRId64 ",\"length\":%" PRId64
           ",\"min_length\":%" PRId64 ",\"buckets\":%" PRId64 ",\"vocab\":%" PRId64 ",\"threads\":%" PRId64
           ",\"dtype\":\"%s\",\"steps\":%d,\"params\":%" PRId64 ",\"matmul_params\":%" PRId64 ",",
           r->setup.id.model_label, q->config.net.dim, q->config.net.layers, q->config.batch, q->length,
           q->least ? q->least : q->length, q->config.buckets, q->vocab, q->threads,
           precision_name((enum precision)q->config.precision), r->step.n, s->params, s->matmul);
    printf("\"step_ms_med\":%.6g,\"step_ms_mad\":%.6g,\"step_ms_best\":%.6g,\"tok_per_s\":%.6g,\"gflop_per_s\":%.6g,"
           "\"planned_bytes\":%.0f,\"parameter_bytes\":%.0f,\"resident_bytes\":%.0f,",
           s->median * 1e3, s->mad * 1e3, s->best * 1e3, s->tokens / s->median, s->flops / s->median / 1e9, s->planned,
           s->arrays, s->resident);
    printf("\"gemm_gflop_per_s\":%.6g,\"floor_ms\":%.6g,\"ratio_best\":%.6g,\"ratio_med\":%.6g,\"noise\":%.3g",
           s->rate_best / 1e9, s->floor_best * 1e3, s->best / s->floor_best, s->median / s->floor_median,
           isfinite(r->noise) ? r->noise : -1);
    if (q->profile) {
        printf(",\"fma_gflop_per_s\":%.6g,\"copy_gb_per_s\":%.6g", r->rates.flops / 1e9, r->rates.bytes / 1e9);
        op_times_print(&r->times, &r->rates, s->best, true);
    }
    puts("}");
}

enum status perf_step(const char *model, const struct perf_step_request *q, struct error *e) {
    struct step_run *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    enum status status = prepare(r, model, q, e);
    if (status == ST_OK) status = measure(r, q, e);
    if (status == ST_OK) {
        struct step_result s = evaluate(r);
        r->rates.products = s.rate_best;
        (q->config.json ? print_json : print_text)(r, &s, q);
    }
    op_times_free(&r->times);
    copy_free(&r->copy);
    gemm_free(&r->gemm);
    trainer_free(&r->trainer);
    setup_free(&r->setup);
    free(r);
    return status;
}
