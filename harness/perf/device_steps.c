/* device_steps.c - rows of `lrnn perf device` for a training step of an S5 model of about a million parameters: the
 * whole step in each way of doing it, and each of its calls (device.h). */
#include "harness/perf/device.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/graph_plan.h"
#include "harness/run/trainer.h"
#include "harness/study/study.h"

#define STEP_TASK   "s5:n_train=8192,n_val=128,n_test=128" /* few examples start faster; the step is the same */
#define STEP_MODEL  "bdlru:m=5,blocks=64"
#define MARKS       512 /* most calls of a step, with one more for the end of each walk */
#define WALKS       15  /* samples of each call */
#define AHEAD_BYTES ((size_t)256 << 20)
#define AHEAD       16 /* copies of AHEAD_BYTES: some milliseconds, longer than the host needs to queue a step */

/* --- whole steps -------------------------------------------------------------------------------------------------- */

static void step_walked(void *context) {
    struct trainer *t = context;
    place_capture_free(&t->place, t->capture);
    t->capture = NULL;
    t->steps_queued = 0; /* so that this step is walked, too */
    trainer_step(t);
}

static void step_replayed(void *context) {
    trainer_step(context);
}

/* Ways of doing a step, with the features turned off for each (docs/gpu.md). Without overlap there are branches. A
 * device below capability 9.0 never overlaps, so there the second and the third way are equal. */
static const struct step_way {
    const char *name;
    void (*work)(void *context);
    const char *off[2];
} step_ways[] = {{"walked", step_walked, {NULL}},
                 {"replayed", step_replayed, {NULL}},
                 {"replayed in branches", step_replayed, {"LRNN_CUDA_OVERLAP"}},
                 {"replayed in a row", step_replayed, {"LRNN_CUDA_OVERLAP", "LRNN_CUDA_BRANCHES"}}};

/* Prints a row for the trainer's step; times include bringing in the batch. */
static enum status time_step(const struct device_run *d, struct trainer *t, const struct step_way *way,
                             struct error *e) {
    const struct setup *s = t->setup;
    struct device_run own = *d;
    char shape[256];
    void *context = t;
    struct device_work w = {.work = way->work, .contexts = &context, .n = 1};
    struct samples *times = calloc(1, sizeof *times);
    if (!times) return fail(e, ST_MEMORY, "no memory for times");
    snprintf(shape, sizeof shape, "%.120s batch=%" PRId64 " parameters=%" PRId64, s->id.model_label,
             s->spec.config.batch, params_trained(&t->params));
    struct device_row row = {.name = "step",
                             .kernel = way->name,
                             .shape = shape,
                             .pass = "step",
                             .precision = s->spec.config.precision,
                             .error = NAN,
                             .cost = trainer_step_cost(t)};
    own.place = t->place;
    own.from = place_mark_create(&t->place);
    own.to = place_mark_create(&t->place);
    enum status status = device_sample(&own, &w, times, e);
    own.captured = t->capture;
    if (status == ST_OK) device_print_row(&own, &row, times);
    place_mark_free(&t->place, own.from);
    place_mark_free(&t->place, own.to);
    free(times);
    return status;
}

/* Opens the trainer in a way and measures it. Features are turned off while the trainer is made. */
static enum status measure_way(const struct device_run *d, const struct setup *s, const struct step_way *way,
                               enum status (*measure)(const struct device_run *, struct trainer *,
                                                      const struct step_way *, struct error *),
                               struct error *e) {
    for (int i = 0; i < 2 && way->off[i]; i++) setenv(way->off[i], "0", 1);
    struct trainer *t = trainer_open(trainer_create, s, e);
    for (int i = 0; i < 2 && way->off[i]; i++) unsetenv(way->off[i]);
    enum status status = t ? measure(d, t, way, e) : e->status;
    trainer_close(t);
    return status;
}

/* Returns the setup of the S5 model in that precision; NULL after an error. */
static struct setup *step_setup(const struct device_run *d, enum precision precision, struct error *e) {
    bool small = d->request->small;
    struct config c;
    if (config_default(&c, e) != ST_OK || config_set(&c, "device", d->request->device, e) != ST_OK ||
        config_set(&c, "precision", precision_name(precision), e) != ST_OK ||
        config_set(&c, "epochs", "1000", e) != ST_OK)
        return NULL;
    c.net.dim = small ? 8 : 256;
    c.batch = small ? 4 : 128;
    c.quiet = true;
    return setup_make(&c, small ? "s3" : STEP_TASK, small ? "bdlru:m=2,blocks=2" : STEP_MODEL, e);
}

enum status device_measure_step(const struct device_run *d, enum precision precision, struct error *e) {
    struct setup *s = step_setup(d, precision, e);
    if (!s) return e->status;
    enum status status = ST_OK;
    for (size_t i = 0; i < sizeof step_ways / sizeof *step_ways && status == ST_OK; i++)
        status = measure_way(d, s, &step_ways[i], time_step, e);
    setup_free(s);
    return status;
}

/* --- the calls of a step ------------------------------------------------------------------------------------------ */

/* Marks of a walked step: one before each call, and one at the end of each walk. */
struct call_marks {
    const struct place *place;
    int n;
    struct call_mark {
        struct place_mark *mark;
        const struct call *call; /* the call that begins here; NULL: end of a walk */
        enum pass pass;
        struct samples times; /* up to the next mark */
    } at[MARKS];
};

/* Sets the next mark. All steps have the same calls, so mark n always belongs to the same call. */
static void mark_call(void *watcher, const struct call *c, enum pass pass) {
    struct call_marks *m = watcher;
    if (m->n == MARKS) return;
    struct call_mark *at = &m->at[m->n++];
    if (!at->mark) at->mark = place_mark_create(m->place);
    at->call = c;
    at->pass = pass;
    if (at->mark) place_mark_set(m->place, at->mark);
}

/* Walks steps and samples each call. Copies are queued before each step, so that the host has queued the whole step
 * before the device begins it, and launch times are not measured. The first step loads the kernels. */
static enum status sample_calls(struct trainer *t, struct call_marks *m, const struct arena *copied, struct error *e) {
    size_t half = copied->size / 2 / ARENA_ALIGN * ARENA_ALIGN;
    for (int walk = 0; walk <= WALKS; walk++) {
        m->n = 0;
        for (int i = 0; i < AHEAD; i++) place_copy(&t->place, copied->base + half, copied->base, half);
        step_walked(t);
        TRY(place_wait(&t->place, e));
        for (int i = 0; i + 1 < m->n && walk > 0; i++)
            samples_add(&m->at[i].times, place_mark_seconds(&t->place, m->at[i].mark, m->at[i + 1].mark));
    }
    return ST_OK;
}

/* Prints a row per call and pass, in the order of the walk. */
static void print_calls(const struct device_run *d, const struct setup *s, const struct call_marks *m) {
    for (int i = 0; i + 1 < m->n; i++) {
        const struct call *c = m->at[i].call;
        char shape[256];
        if (!c) continue;
        snprintf(shape, sizeof shape, "call=%d rows=%" PRId64 " in=%" PRId64 " out=%" PRId64 " %.120s", i,
                 c->n_out ? tensor_rows(c->out[0]) : 0, tensor_cols(c->in[0]), c->n_out ? tensor_cols(c->out[0]) : 0,
                 s->id.model_label);
        struct device_row row = {.name = c->op->name,
                                 .kernel = c->kernel->name,
                                 .taken = "yes",
                                 .shape = shape,
                                 .pass = m->at[i].pass == PASS_FORWARD ? "forward" : "backward",
                                 .precision = s->spec.config.precision,
                                 .cache = "step",
                                 .error = NAN,
                                 .cost = call_cost(c, m->at[i].pass)};
        device_print_row(d, &row, &m->at[i].times);
    }
}

static enum status time_calls(const struct device_run *d, struct trainer *t, const struct step_way *way,
                              struct error *e) {
    struct device_run own = *d;
    struct call_marks *m = calloc(1, sizeof *m);
    struct arena copied = {0};
    struct graph *graphs[] = {&t->batches.taken, &t->train, &t->update};
    (void)way;
    if (!m) return fail(e, ST_MEMORY, "no memory for the times of calls");
    m->place = &t->place;
    enum status status = place_reserve(&t->place, &copied, d->request->small ? 4096 : 2 * AHEAD_BYTES, e);
    for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
        if (!graphs[i]->plan) continue;
        graphs[i]->plan->watch = mark_call;
        graphs[i]->plan->watcher = m;
    }
    if (status == ST_OK) status = sample_calls(t, m, &copied, e);
    own.captured = false;
    own.clock_mhz = place_clock_mhz(&t->place);
    if (status == ST_OK) print_calls(&own, t->setup, m);
    for (int i = 0; i < MARKS; i++)
        if (m->at[i].mark) place_mark_free(&t->place, m->at[i].mark);
    arena_free(&copied);
    free(m);
    return status;
}

enum status device_measure_calls(const struct device_run *d, enum precision precision, struct error *e) {
    static const struct step_way in_a_row = {"walked", step_walked, {"LRNN_CUDA_OVERLAP", "LRNN_CUDA_BRANCHES"}};
    struct setup *s = step_setup(d, precision, e);
    if (!s) return e->status;
    enum status status = measure_way(d, s, &in_a_row, time_calls, e);
    setup_free(s);
    return status;
}
