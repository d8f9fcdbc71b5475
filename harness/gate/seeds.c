/* seeds.c - see seeds.h. */
#include "harness/gate/seeds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/args.h"
#include "harness/run/trainer.h"

/* Half a second a run on one core, and every one of 20 seeds solves its task. */
#define WORDS "s3:length=6"
#define FLAGS "dim=32 layers=1 mlp=none batch=64 lr=0.003 steps=320 ahead=no threads=1"
static const struct trace cells[] = {{WORDS, "bdlru:m=3", FLAGS}, {WORDS, "lstm:hidden=32", FLAGS}};
#define N_CELLS (int)(sizeof cells / sizeof *cells)

int seeds_count(void) {
    return N_CELLS;
}

void seeds_name(int cell, char name[TRACE_TEXT]) {
    trace_name(&cells[cell], name);
}

int seeds_find(const char *name) {
    char listed[TRACE_TEXT];
    for (int i = 0; i < N_CELLS; i++) {
        seeds_name(i, listed);
        if (!strcmp(listed, name)) return i;
    }
    return -1;
}

static enum status configure(struct config *c, int cell, int seed, struct error *e) {
    TRY(config_default(c, e));
    TRY(flags_set(c, cells[cell].flags, e));
    c->seed = seed;
    return ST_OK;
}

enum status seeds_numerics(const char *name, char text[NUMERICS_TEXT], struct error *e) {
    struct config c;
    int cell = seeds_find(name);
    text[0] = 0;
    if (cell < 0) return ST_OK;
    TRY(configure(&c, cell, 1, e));
    return numerics_of_labels(&c, cells[cell].task, cells[cell].model, text, NUMERICS_TEXT, e);
}

static enum status train(struct trainer *t, const struct setup *s, double *metric, struct error *e) {
    struct scores scores;
    TRY(trainer_create(t, s, e));
    while (t->state.step < s->shapes.steps && !t->state.frozen) trainer_step(t);
    TRY(trainer_sync(t, e));
    trainer_evaluate(t, SPLIT_TEST, &scores);
    *metric = t->state.frozen ? 0 : trainer_metric(t, &scores);
    return ST_OK;
}

enum status seeds_run(int cell, int first, int n, double *metric, int *solved, struct error *e) {
    struct config c;
    struct trainer *t = calloc(1, sizeof *t);
    enum status status = t ? ST_OK : fail(e, ST_MEMORY, "no memory for a trainer");
    for (int i = 0; i < n && status == ST_OK; i++) {
        status = configure(&c, cell, first + i, e);
        struct setup *s = status == ST_OK ? setup_make(&c, cells[cell].task, cells[cell].model, e) : NULL;
        if (!s) status = e->status;
        if (s) status = train(t, s, &metric[i], e);
        if (s && status == ST_OK) *solved += metric[i] >= s->spec.task.shape.solved;
        trainer_free(t);
        *t = (struct trainer){0};
        if (s) setup_free(s);
        free(s);
    }
    free(t);
    return status;
}
