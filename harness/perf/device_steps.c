/* device_steps.c - rows of `lrnn perf device` for a training step: walked, replayed, replayed in branches instead of
 * overlapping launches, and replayed with neither (docs/gpu.md). A device below capability 9.0 has no overlap, and the
 * second and the third are the same there. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "harness/perf/device.h"
#include "harness/study/args.h"
#include "harness/run/trainer.h"

#define STEP_MODEL "bdlru:m=5,blocks=64"

static void step_walked(void *context) {
    struct trainer *t = context;
    place_capture_free(&t->place, t->capture);
    t->capture = NULL;
    t->steps_queued = 0; /* the first step is walked, as every one here is */
    trainer_step(t);
}

static void step_replayed(void *context) {
    trainer_step(context);
}

/* How a step is done, and what is turned off for it (docs/gpu.md): what does not overlap has branches. */
struct step_way {
    const char *name;
    void (*work)(void *context);
    const char *off[2];
};

static const struct step_way step_ways[] = {
    {"walked", step_walked, {NULL}},
    {"replayed", step_replayed, {NULL}},
    {"replayed in branches", step_replayed, {"LRNN_CUDA_OVERLAP"}},
    {"replayed in a row", step_replayed, {"LRNN_CUDA_OVERLAP", "LRNN_CUDA_BRANCHES"}}};

/* A row of the trainer's step; times include the way of the batches. */
static enum status time_step(const struct device_run *d, enum precision precision, const struct setup *s,
                             struct trainer *t, const struct step_way *way, struct error *e) {
    struct device_run own = *d;
    char shape[256];
    void *context = t;
    struct device_work w = {.work = way->work, .contexts = &context, .n = 1};
    snprintf(shape, sizeof shape, "%.120s batch=%" PRId64 " parameters=%" PRId64, s->id.model_label,
             s->spec.config.batch, params_trained(&t->params));
    struct device_row row = {.name = "step",
                             .kernel = way->name,
                             .shape = shape,
                             .pass = "step",
                             .taken = "",
                             .precision = (int)precision,
                             .cache = "",
                             .error = NAN,
                             .cost = trainer_step_cost(t)};
    struct samples *times = calloc(1, sizeof *times);
    if (!times) return fail(e, ST_MEMORY, "no memory for times");
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

static enum status measure_way(const struct device_run *d, enum precision precision, struct setup *s,
                               const struct step_way *way, struct error *e) {
    struct trainer *t = calloc(1, sizeof *t);
    if (!t) return fail(e, ST_MEMORY, "no memory for a trainer");
    for (int i = 0; i < 2 && way->off[i]; i++) setenv(way->off[i], "0", 1);
    enum status status = trainer_create(t, s, e);
    for (int i = 0; i < 2 && way->off[i]; i++) unsetenv(way->off[i]);
    if (status == ST_OK) status = time_step(d, precision, s, t, way, e);
    trainer_free(t);
    free(t);
    return status;
}

/* The step of an S5 model of about a million parameters, in each way. */
static enum status measure_ways(const struct device_run *d, enum precision precision, struct error *e) {
    struct config c;
    TRY(config_default(&c, e));
    const char *const flags[][2] = {{"device", d->request->device},
                                    {"dim", d->request->small ? "8" : "256"},
                                    {"batch", d->request->small ? "4" : "128"},
                                    {"precision", precision_name(precision)},
                                    {"epochs", "1000"},
                                    {"quiet", "yes"}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) TRY(config_set(&c, flags[i][0], flags[i][1], e));
    struct setup *s =
        setup_make(&c, d->request->small ? "s3" : "s5", d->request->small ? "bdlru:m=2,blocks=2" : STEP_MODEL, e);
    if (!s) return e->status;
    enum status status = ST_OK;
    for (size_t i = 0; i < sizeof step_ways / sizeof *step_ways && status == ST_OK; i++)
        status = measure_way(d, precision, s, &step_ways[i], e);
    setup_free(s);
    free(s);
    return status;
}

enum status device_measure_steps(struct device_run *d, struct error *e) {
    for (int precision = PRECISION_FULL; precision < (REAL_IS_DOUBLE ? 1 : PRECISION_COUNT); precision++)
        TRY(measure_ways(d, (enum precision)precision, e));
    return ST_OK;
}
