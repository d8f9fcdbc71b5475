/* trace.c - see trace.h. */
#include "harness/gate/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/numerics.h"
#include "harness/study/study.h"
#include "harness/run/trainer.h"
#include "models/model.h"
#include "models/small.h"

/* An epoch has three steps and a partial fourth; the last steps are in the thirteenth. */
#define WORDS "s3:n_train=30,n_val=8,n_test=8,length=9"

/* Sequences that are longer than the largest chunk of every kernel. Three steps, since AUSSM's states never decay: in
 * ten steps its training makes differences of rounding 1e5 times as large. */
#define LONG_WORDS "s3:n_train=20,n_val=2,n_test=2,length=1024"
#define LONG_FLAGS "batch=2 steps=3 eval-every=3"

/* Flags of all traces, under a trace's own. Training never ends early; it is validated once, at its end. */
static const char *const trace_flags =
    "dim=12 layers=1 batch=8 steps=50 lr=0.001 eval-every=50 stop-at=2 threads=1 seed=3";

/* Traces that are made beside one of every mixer: nets, read-outs, schedules and the optimiser, on one mixer. */
#define MIXER "bdlru:m=2,blocks=5"
static const struct trace others[] = {
    {WORDS, MIXER, "backbone=slice"},
    {WORDS, MIXER, "backbone=slice-glu"},
    {WORDS, MIXER, "backbone=stacked"},
    {WORDS, MIXER, "backbone=s5 decay=0.1"},
    {WORDS, "lru:state=9", "backbone=s5 decay=0.1 ssm-lr-factor=0.25"},
    {WORDS, MIXER, "backbone=slice-paper"},
    {WORDS, "mamba2:state=3,headdim=8", "backbone=slice-paper decay=0.1"},
    {WORDS, "mlstm:heads=3", "backbone=slice-paper layers=2 decay=0.1"},
    {WORDS, "attention:heads=2", "backbone=slice-paper dropout=0.2"},
    {WORDS, MIXER, "norm=layernorm mlp=gelu"},
    {WORDS, MIXER, "mlp=none layers=2"},
    {WORDS, MIXER, "bidirectional=yes"},
    {WORDS, MIXER, "dropout=0.2"},
    {WORDS, MIXER, "schedule=cosine warmup=7 lr-min=0.0001"},
    {WORDS, MIXER, "schedule=cosine-epoch epochs=13"},
    {WORDS, MIXER, "schedule=mad-cosine"},
    {WORDS, MIXER, "clip=0.5 decay=0.1 beta2=0.95"},
    {"parity:max_length=9,eval_min_length=9,eval_max_length=12,n_val=8,n_test=8", MIXER, "pool=last"},
    {"parity:max_length=9,eval_min_length=9,eval_max_length=12,n_val=8,n_test=8", MIXER, "pool=mean"},
    {"listops:max_length=40,min_length=5,n_train=30,n_val=8,n_test=8", "myosotis:heads=3", "pool=top"},
    {"compression:length=9,n_train=30,n_val=8,n_test=8", MIXER, ""},
    {"a5-slice:length=5,n_train=30,n_val=8,n_test=8", "slice:penalty=0.01", "backbone=slice-paper"},
    {"mqar:length=32,pairs=4,n_train=30,n_val=8,n_test=8", MIXER, ""},
    {"shapes:size=12,n_train=30,n_val=8,n_test=8", "plstm2d:heads=2", "backbone=s5"},
    {"arrow:size=24,patch=4,n_train=30,n_val=8,n_test=8", "full-attention:heads=2",
     "backbone=vision mlp=gelu norm=layernorm positions=learnt"},
    {"arrow:size=24,patch=4,n_train=30,n_val=8,n_test=8", "full-attention:heads=2",
     "backbone=vision mlp=gelu positions=learnt pool=class layer-scale=1"},
    {"arrow:size=24,patch=4,n_train=30,n_val=8,n_test=8", "plstm2d:heads=2,mode=PD",
     "backbone=vision mlp=gelu positions=learnt pool=corners"},
    {"digits:size=8,order=morton,n_train=30,n_val=8,n_test=8", MIXER, ""},
    {"pathfinder:size=12,n_train=30,n_val=8,n_test=8", MIXER, "backbone=s5"},
    {"brackets:min_length=12,max_length=20,n_train=30,n_val=8,n_test=8", MIXER, "backbone=s5"},
    {"pairs:min_length=12,max_length=16,passage=4,n_train=30,n_val=8,n_test=8", MIXER, ""},
    {"molecules:graphs=20", "plstm-graph:heads=2", "degree-code=yes pool=mean"},
    {"molecules:graphs=20", "gat:heads=2", ""},
    {"spirals:min_length=16,max_length=20,n_train=30,n_val=8,n_test=8", "slice:interval=5,depth=2", "backbone=slice"},
    {LONG_WORDS, "myosotis:arity=1,levels=1024,heads=3", LONG_FLAGS},
    {LONG_WORDS, "slice:structure=block,block=3", LONG_FLAGS},
    {LONG_WORDS, "slice:structure=dplr,rank=2", LONG_FLAGS},
    {LONG_WORDS, "slice:structure=hadamard", "dim=16 " LONG_FLAGS},
    {LONG_WORDS, "xlstm:m=0,s=1,heads=2", LONG_FLAGS},
};

/* True for a mixer whose long trace is that of its first small variant. Variants of Myosotis fit one length only. */
static bool has_long(const struct model *m) {
    return !m->hidden && m->small && strncmp(m->small, "myosotis:", 9) != 0;
}

/* Gives the long trace of the index-th mixer that has one. */
static bool long_at(int index, struct trace *t) {
    const struct model *const *m = model_list();
    for (int left = index; *m && (!has_long(*m) || left-- > 0);) m++;
    if (!*m) return false;
    snprintf(t->task, sizeof t->task, "%s", LONG_WORDS);
    snprintf(t->model, sizeof t->model, "%.*s", (int)strcspn((*m)->small, " "), (*m)->small);
    snprintf(t->flags, sizeof t->flags, "%s", LONG_FLAGS);
    return true;
}

bool trace_at(int index, struct trace *t) {
    int variants = 0;
    while (small_models()[variants]) variants++;
    if (index < variants) {
        snprintf(t->task, sizeof t->task, "%s", WORDS);
        snprintf(t->model, sizeof t->model, "%s", small_models()[index]);
        t->flags[0] = 0;
        return true;
    }
    index -= variants;
    if (index < (int)(sizeof others / sizeof *others)) {
        *t = others[index];
        return true;
    }
    return long_at(index - (int)(sizeof others / sizeof *others), t);
}

void trace_name(const struct trace *t, char name[TRACE_TEXT]) {
    snprintf(name, TRACE_TEXT, "%.99s %.99s%s%.99s", t->task, t->model, *t->flags ? " " : "", t->flags);
}

const char *trace_arithmetic(void) {
#ifdef __FMA__
    return "fma";
#else
    return "plain";
#endif
}

const double trace_tuned_bounds[2][TRACE_POINTS] = {{1e-6, 3e-5, 5e-2}, {5e-14, 1e-12, 1e-7}};

bool trace_find(const char *name, struct trace *t) {
    char listed[TRACE_TEXT];
    for (int i = 0; trace_at(i, t); i++) {
        trace_name(t, listed);
        if (!strcmp(listed, name)) return true;
    }
    return false;
}

bool trace_same_bits(const struct trace_row *a, const struct trace_row *b) {
    return !strcmp(a->weights, b->weights) && memcmp(a->loss, b->loss, sizeof a->loss) == 0;
}

bool trace_is_near(const struct trace_row *got, const struct trace_row *want, const double bounds[2][TRACE_POINTS]) {
    int precision = strcmp(want->real, "fp64") == 0;
    bool near = true;
    for (int i = 0; i < TRACE_POINTS; i++)
        near = near && fabs(got->loss[i] - want->loss[i]) <= bounds[precision][i] * fabs(want->loss[i]);
    return near;
}

/* --- training ----------------------------------------------------------------------------------------------------- */

enum status flags_set(struct config *c, const char *flags, struct error *e) {
    struct label pairs;
    TRY(label_parse_pairs(&pairs, "a trace", flags, " ", e));
    for (int i = 0; i < pairs.n; i++) TRY(config_set(c, label_key(&pairs, i), label_value(&pairs, i), e));
    return ST_OK;
}

/* Hashes the weights in contract order, so that another inner layout is no other trace. */
static enum status hash_weights(const struct params *p, char hex[RUN_ID_HEX], struct error *e) {
    int64_t used = 0;
    double *all = malloc((size_t)p->floats * sizeof *all);
    if (!all) return fail(e, ST_MEMORY, "no memory for the weights of a trace");
    for (int i = 0; i < p->n; i++) {
        param_to_contract(&p->list[i], p->value + p->list[i].offset, all + used);
        used += p->list[i].count;
    }
    record_hash_bytes(all, (size_t)used * sizeof *all, hex);
    free(all);
    return ST_OK;
}

static enum status take_steps(struct trainer *trainer, struct trace_row *row, struct error *e) {
    const int64_t steps = trainer->setup->shapes.steps,
                  points[TRACE_POINTS] = {0, steps < 10 ? steps - 1 : 9, steps - 1};
    for (int64_t step = 0; step < steps; step++) {
        trainer_step(trainer);
        if (trainer->state.frozen)
            return fail(e, ST_FAIL, "%s: the loss of step %lld is not finite", row->name, (long long)step + 1);
        for (int i = 0; i < TRACE_POINTS; i++)
            if (points[i] == step) row->loss[i] = trainer->state.loss;
    }
    return hash_weights(&trainer->params, row->weights, e);
}

/* Sets a run's flags: defaults, flags of all of its kind, its own, and the kernel. */
static enum status configure(struct config *c, const struct trace *t, const char *common, const char *kernel,
                             struct error *e) {
    TRY(config_default(c, e));
    TRY(flags_set(c, common, e));
    TRY(flags_set(c, t->flags, e));
    return config_set(c, "kernel", kernel, e);
}

enum status trace_numerics(const struct trace *t, const char *kernel, char text[NUMERICS_TEXT], struct error *e) {
    struct config c;
    TRY(configure(&c, t, trace_flags, kernel, e));
    return numerics_of_labels(&c, t->task, t->model, text, NUMERICS_TEXT, e);
}

enum status trace_run(const struct trace *t, const char *kernel, struct trace_row *row, struct error *e) {
    struct config c;
    TRY(configure(&c, t, trace_flags, kernel, e));
    struct setup *s = setup_make(&c, t->task, t->model, e);
    if (!s) return e->status;
    struct trainer *trainer = trainer_open(trainer_create, s, e);
    *row = (struct trace_row){0};
    trace_name(t, row->name);
    snprintf(row->real, sizeof row->real, "%s", REAL_NAME);
    snprintf(row->arithmetic, sizeof row->arithmetic, "%s", trace_arithmetic());
    snprintf(row->numerics, sizeof row->numerics, "%s", s->id.numerics);
    enum status status = trainer ? take_steps(trainer, row, e) : e->status;
    trainer_close(trainer);
    setup_free(s);
    return status;
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

bool trace_parse(const char *line, struct trace_row *row) {
    int end = 0; /* characters that were read */
    int read = sscanf(line, "%399[^\t]\t%7[^\t]\t%7[^\t]\t%95[^\t]\t%lf\t%lf\t%lf\t%32[0-9a-f]%n", row->name, row->real,
                      row->arithmetic, row->numerics, &row->loss[0], &row->loss[1], &row->loss[2], row->weights, &end);
    return read == 8 && line[(size_t)end + strspn(line + end, "\n")] == 0;
}

void trace_format(const struct trace_row *row, char line[TRACE_LINE]) {
    char loss[TRACE_POINTS][32];
    for (int i = 0; i < TRACE_POINTS; i++) format_double(row->loss[i], loss[i], sizeof loss[i]);
    snprintf(line, TRACE_LINE, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", row->name, row->real, row->arithmetic, row->numerics,
             loss[0], loss[1], loss[2], row->weights);
}

/* --- seeds -------------------------------------------------------------------------------------------------------- */

/* Half a second a run on one core, and every one of 20 seeds solves its task. */
#define CELL_TASK "s3:length=6"
#define FLAGS     "dim=32 layers=1 mlp=none batch=64 lr=0.003 steps=320 threads=1"
static const struct trace cells[] = {{CELL_TASK, "bdlru:m=3", FLAGS}, {CELL_TASK, "lstm:hidden=32", FLAGS}};
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

enum status seeds_numerics(const char *name, char text[NUMERICS_TEXT], struct error *e) {
    struct config c;
    int cell = seeds_find(name);
    text[0] = 0;
    if (cell < 0) return ST_OK;
    TRY(configure(&c, &cells[cell], "", "", e));
    return numerics_of_labels(&c, cells[cell].task, cells[cell].model, text, NUMERICS_TEXT, e);
}

static enum status train_cell(struct trainer *t, double *metric, struct error *e) {
    struct scores scores;
    while (t->state.step < t->setup->shapes.steps && !t->state.frozen) trainer_step(t);
    TRY(trainer_sync(t, e));
    trainer_evaluate(t, SPLIT_TEST, &scores);
    *metric = t->state.frozen ? 0 : trainer_metric(t, &scores);
    return ST_OK;
}

enum status seeds_run(int cell, int first, int n, double *metric, int *solved, struct error *e) {
    struct config c;
    TRY(configure(&c, &cells[cell], "", "", e));
    for (int i = 0; i < n; i++) {
        c.seed = first + i;
        struct setup *s = setup_make(&c, cells[cell].task, cells[cell].model, e);
        struct trainer *t = s ? trainer_open(trainer_create, s, e) : NULL;
        enum status status = t ? train_cell(t, &metric[i], e) : e->status;
        if (status == ST_OK) *solved += metric[i] >= s->spec.task.shape.solved;
        trainer_close(t);
        setup_free(s);
        TRY(status);
    }
    return ST_OK;
}
