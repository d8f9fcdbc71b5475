/* launches.c - `lrnn perf launches`: what a captured training step of every mixer queues on a device, beside what it
 * cannot do without, as a Markdown table. It counts and does not time: CUDA on the host has the same numbers. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/graph_walk.h"
#include "harness/perf/perf.h"
#include "harness/study/plan.h"
#include "harness/run/trainer.h"
#include "models/model.h"

/* Of one step: the graph of training forward and backward, the optimiser's, and that of the resident data. */
struct step_count {
    int64_t calls; /* one for each op and pass: as many launches as there were if each were one kernel */
    int64_t launches;
    double scratch; /* bytes that kernels write and read for themselves */
    struct cost cost;
};

static void count_graph(struct step_count *n, const struct graph *g, bool backward) {
    for (int i = 0; i < g->n_calls; i++) {
        const struct call *c = &g->calls[i];
        bool both = backward && c->plan.active;
        n->calls += 1 + both;
        n->scratch += (double)c->scratch_bytes[PASS_FORWARD] + (both ? (double)c->scratch_bytes[PASS_BACKWARD] : 0);
    }
}

/* The second step is captured. */
static enum status count_step(struct step_count *n, struct trainer *t, struct error *e) {
    trainer_step(t);
    trainer_step(t);
    TRY(trainer_sync(t, e));
    if (!t->capture) return fail(e, ST_DEVICE, "a step cannot be captured: %s", place_capture_failure(&t->place));
    n->launches = place_capture_launches(&t->place, t->capture);
    n->cost = trainer_step_cost(t);
    count_graph(n, &t->train, true);
    count_graph(n, &t->update, false);
    if (t->resident) count_graph(n, &t->data.take, false);
    return ST_OK;
}

static enum status count_mixer(const struct perf_launches_request *q, const char *model, struct step_count *n,
                               struct error *e) {
    struct config c;
    char task[64], dim[24], batch[24];
    TRY(config_default(&c, e));
    snprintf(task, sizeof task, "s5:length=%" PRId64 ",n_train=%" PRId64, q->length, 4 * q->batch);
    snprintf(dim, sizeof dim, "%" PRId64, q->dim);
    snprintf(batch, sizeof batch, "%" PRId64, q->batch);
    const char *const flags[][2] = {{"device", q->device},
                                    {"dim", dim},
                                    {"batch", batch},
                                    {"epochs", "10"},
                                    {"quiet", "yes"},
                                    {"allow-non-causal", "yes"},
                                    {"precision", precision_name((enum precision)q->precision)}};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) TRY(config_set(&c, flags[i][0], flags[i][1], e));
    struct setup *s = setup_make(&c, task, model, e);
    if (!s) return e->status;
    struct trainer *t = calloc(1, sizeof *t);
    enum status status = t ? trainer_create(t, s, e) : fail(e, ST_MEMORY, "no memory for a trainer");
    if (status == ST_OK) status = count_step(n, t, e);
    if (t) trainer_free(t);
    free(t);
    setup_free(s);
    free(s);
    return status;
}

static void print_row(const char *model, const struct step_count *n) {
    printf("| %s | %" PRId64 " | %" PRId64 " | %.4g | %.3g | %.4g |\n", model, n->calls, n->launches,
           n->cost.bytes / 1e6, n->scratch / 1e6, n->cost.flops / 1e6);
    fflush(stdout);
}

enum status perf_launches(const struct perf_launches_request *q, struct error *e) {
    struct place place = {0};
    struct error why = {ST_OK, ""};
    struct step_count named = {0};
    TRY(place_open(&place, q->device, e));
    place_close(&place);
    if (q->model) TRY(count_mixer(q, q->model, &named, e));
    printf("| mixer | ops and passes | launches | bytes, MB | scratch, MB | MFLOP |\n|---|--:|--:|--:|--:|--:|\n");
    if (q->model) print_row(q->model, &named);
    for (const struct model *const *m = model_list(); *m && !q->model; m++) {
        struct step_count n = {0};
        if ((*m)->hidden) continue;
        if (count_mixer(q, (*m)->name, &n, &why) == ST_OK)
            print_row((*m)->name, &n);
        else
            printf("| %s | - | - | - | - | - |\n", (*m)->name);
    }
    printf("\n%s, D = %" PRId64 ", batch %" PRId64 ", length %" PRId64 "%s.%s%s\n",
           precision_name((enum precision)q->precision), q->dim, q->batch, q->length,
           q->model ? "" : ", default options", why.status != ST_OK ? " -: " : "", why.status != ST_OK ? why.text : "");
    return ST_OK;
}
