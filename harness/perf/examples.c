/* examples.c - how fast a task makes its examples. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "harness/perf/perf.h"
#include "harness/perf/rates.h"
#include "harness/perf/samples.h"
#include "harness/perf/sitting.h"
#include "harness/store/perf_row.h"
#include "tasks/task.h"

#define ROUND 64 /* examples between two looks at the clock */

struct examples_run {
    struct task_choice task;
    struct arena host;
    enum split split;
    struct example example;
    int64_t next; /* index of the next one */
    struct samples round;
    int64_t tokens; /* of a round, mean */
    double foreign;
};

static enum status make_room(struct examples_run *r, struct error *e) {
    const struct task_shape *s = &r->task.shape;
    struct example *x = &r->example;
    int64_t inputs = task_inputs(s, r->split);
    x->targets = arena_alloc(&r->host, (size_t)task_targets(s, r->split) * sizeof(int32_t));
    if (s->vocab_in)
        x->tokens = arena_alloc(&r->host, (size_t)inputs * sizeof(int32_t));
    else
        x->values = arena_alloc(&r->host, (size_t)inputs * sizeof(real));
    if (s->links.edges) x->links = arena_alloc(&r->host, (size_t)links_words(s->links) * sizeof(int32_t));
    if (x->targets && (x->tokens || x->values) && (x->links || !s->links.edges)) return ST_OK;
    return fail(e, ST_MEMORY, "%s: no memory for an example of length %" PRId64, r->task.name,
                task_length(s, r->split));
}

/* Tokens of so many examples. */
static int64_t make_round(struct examples_run *r) {
    const struct task_shape *s = &r->task.shape;
    struct example *x = &r->example;
    int64_t tokens = 0, targets = task_targets(s, r->split);
    for (int i = 0; i < ROUND; i++) {
        for (int64_t t = 0; t < targets; t++) x->targets[t] = IGNORED;
        r->task.task->fill(r->task.inst, r->split, r->next++ % s->examples[r->split], x);
        tokens += x->length + x->second;
    }
    return tokens;
}

/* The first round brings code and tables into the caches. */
static void measure(struct examples_run *r, double seconds) {
    struct noise noise;
    int64_t tokens = 0;
    omp_set_num_threads(1); /* a task's examples are made one by one, and their time is what the thread ran */
    make_round(r);
    noise_begin(&noise);
    for (double begin = perf_time_s();
         r->round.n == 0 || (perf_time_s() - begin < seconds && r->round.n < PERF_SAMPLES);) {
        double start = perf_time_s();
        tokens += make_round(r);
        samples_add(&r->round, perf_time_s() - start);
    }
    r->foreign = noise_end(&noise);
    r->tokens = tokens / r->round.n;
}

static void print(const struct examples_run *r, bool json) {
    double best = (double)r->tokens / samples_best(&r->round), median = (double)r->tokens / samples_median(&r->round);
    double examples = ROUND / samples_median(&r->round);
    if (json)
        printf(
            "{\"task\":\"%s\",\"threads\":1,\"tok_per_s_med\":%.6g,\"tok_per_s_best\":%.6g,\"examples_per_s_med\":%.6g,"
            "\"examples_per_s_best\":%.6g}\n",
            r->task.name, median, best, examples, ROUND / samples_best(&r->round));
    else
        printf("%s, one core: %.0f tokens/s median, best %.0f; %.0f examples/s median\n", r->task.name, median, best,
               examples);
}

/* A row of OUT/perf.csv, of which tools/examples_table.awk makes results/tables/speed.md. */
static enum status keep(const struct examples_run *r, const char *out, struct error *e) {
    static const char *const splits[SPLIT_COUNT] = {"train", "val", "test"};
    struct perf_row row = {.bench = "examples"};
    snprintf(row.pass, sizeof row.pass, "%s", splits[r->split]);
    if (snprintf(row.shape, sizeof row.shape, "%s examples%d", r->task.name, ROUND) >= (int)sizeof row.shape)
        return fail(e, ST_USAGE, "%.60s...: the task's text is too long for a row of perf.csv", r->task.name);
    return sitting_keep(&row, &r->round, r->foreign, (double)r->tokens, out, e);
}

enum status perf_data(const char *task, int split, double seconds, uint64_t seed, bool json, const char *out,
                      struct error *e) {
    struct examples_run *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for the samples");
    r->split = (enum split)split;
    enum status status = task_parse(&r->task, task, e);
    if (status == ST_OK) status = arena_reserve(&r->host, TASK_TABLE_BYTES, e);
    if (status == ST_OK) status = task_open(&r->task, seed, &r->host, e);
    if (status == ST_OK) status = make_room(r, e);
    if (status == ST_OK) measure(r, seconds);
    if (status == ST_OK) print(r, json);
    if (status == ST_OK && *out) status = keep(r, out, e);
    arena_free(&r->host);
    free(r);
    return status;
}
