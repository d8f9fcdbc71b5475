/* bench.c - benches of the gate, and the process that serves one; see compare.h. */
#include "harness/gate/compare.h"

#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "harness/gate/trace.h"
#include "harness/perf/kernel_run.h"
#include "harness/perf/measure.h"
#include "harness/study/study.h"
#include "harness/run/trainer.h"
#include "harness/store/clock.h"
#include "harness/store/version.h"
#include "models/model.h"

/* A call of the first ones takes about half a millisecond: 30 of them are short beside the noise of a time slice. */
#define STEP "dim=64 layers=1 batch=8 threads=1 seed=1"
#define LONG "dim=64 layers=1 batch=1 threads=1 seed=1"
static const struct gate_bench listed[] = {
    {"scan_block", "scan_block", "batch=4 length=64 blocks=64 m=5", NULL, NULL, NULL},
    {"scan_companion", "scan_companion", "batch=16 length=64 blocks=64 m=5", NULL, NULL, NULL},
    {"scan_flow", "scan_flow", "batch=4 length=64 blocks=64 m=5", NULL, NULL, NULL},
    {"scan_outer", "scan_outer", "batch=4 length=64 heads=4 dk=32 dv=32", NULL, NULL, NULL},
    {"scan_delta", "scan_delta", "batch=4 length=64 heads=4 dk=32 dv=32", NULL, NULL, NULL},
    {"linear", "linear", "batch=8 length=64 dim=128", NULL, NULL, NULL},
    {"step-bdlru", NULL, STEP, "s5", "bdlru:m=4", NULL},
    {"step-attention", NULL, STEP, "s5", "attention", NULL},
    /* from here on by name alone */
    {"long-scan_block", "scan_block", "batch=1 length=4096 blocks=16 m=5", NULL, NULL, NULL},
    {"long-scan_companion", "scan_companion", "batch=1 length=4096 blocks=64 m=5", NULL, NULL, NULL},
    {"long-scan_flow", "scan_flow", "batch=1 length=4096 blocks=16 m=5", NULL, NULL, NULL},
    {"long-scan_outer", "scan_outer", "batch=1 length=4096 heads=2 dk=32 dv=32", NULL, NULL, NULL},
    {"long-scan_delta", "scan_delta", "batch=1 length=4096 heads=2 dk=32 dv=32", NULL, NULL, NULL},
    {"long-step-bdlru", NULL, LONG, "s5:length=2048,n_train=64,n_val=8,n_test=8", "bdlru:m=4", NULL},
    {"long-step-attention", NULL, LONG, "s5:length=2048,n_train=64,n_val=8,n_test=8", "attention", NULL},
};
#define N_LISTED (int)(sizeof listed / sizeof *listed)
#define N_USUAL  8

/* The list, and then the step of every other mixer with its default options. */
static struct gate_bench benches[GATE_BENCHES + 1];
static char step_names[GATE_BENCHES][48];
static int n_benches;

static void make_benches(void) {
    memcpy(benches, listed, sizeof listed);
    n_benches = N_LISTED;
    for (const struct model *const *m = model_list(); *m && n_benches < GATE_BENCHES; m++) {
        char *name = step_names[n_benches];
        snprintf(name, sizeof step_names[0], "step-%.40s", (*m)->name);
        bool is_listed = (*m)->hidden;
        for (int i = 0; i < N_LISTED; i++) is_listed = is_listed || !strcmp(listed[i].name, name);
        if (!is_listed) benches[n_benches++] = (struct gate_bench){name, NULL, STEP, "s5", (*m)->name, NULL};
    }
}

const struct gate_bench *gate_benches(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_benches);
    return benches;
}

static const char *bench_name(const void *list, int i) {
    return ((const struct gate_bench *)list)[i].name;
}

enum status gate_bench_find(const char *name, const struct gate_bench **bench, struct error *e) {
    int index;
    const struct gate_bench *list = gate_benches();
    TRY(name_choose("bench", name, n_benches, bench_name, list, &index, e));
    *bench = &list[index];
    return ST_OK;
}

/* Adds the benches of a word: one name, or "step-*" for all that begin so. */
static enum status choose_word(const char *word, struct compare_row *rows, int *n, struct error *e) {
    size_t begin = strlen(word) - 1;
    int before = *n;
    if (word[begin] != '*') {
        if (*n == GATE_BENCHES) return fail(e, ST_USAGE, "more than %d benches are named", GATE_BENCHES);
        return gate_bench_find(word, &rows[(*n)++].bench, e);
    }
    for (const struct gate_bench *b = gate_benches(); b->name; b++)
        if (!strncmp(b->name, word, begin) && *n < GATE_BENCHES) rows[(*n)++].bench = b;
    return *n > before ? ST_OK : fail(e, ST_USAGE, "no bench begins with '%.*s'", (int)begin, word);
}

enum status gate_benches_choose(const char *names, struct compare_row *rows, int *n, struct error *e) {
    char copy[OPTION_TEXT], *rest = NULL;
    *n = 0;
    TRY(text_copy(names, copy, sizeof copy, e));
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        TRY(choose_word(word, rows, n, e));
    for (int i = 0; i < N_USUAL && !names[strspn(names, " ")]; i++) rows[(*n)++].bench = &gate_benches()[i];
    return ST_OK;
}

/* --- a bench, open ------------------------------------------------------------------------------------------------ */

struct opened {
    struct kernel_run op;
    struct setup *setup;     /* of a training step; else NULL */
    struct trainer *trainer; /* of it */
    double delay;
};

static enum status call_once(void *context, struct error *e) {
    struct opened *o = context;
    double start = time_now_s(), end;
    if (o->setup)
        trainer_step(o->trainer);
    else
        kernel_run_sample(&o->op);
    end = time_now_s();
    for (double until = end + o->delay * (end - start); o->delay > 0 && time_now_s() < until;) continue;
    return o->setup ? trainer_sync(o->trainer, e) : ST_OK;
}

static enum status open_bench(struct opened *o, const struct gate_bench *b, struct error *e) {
    struct op_sizes sizes;
    struct label given;
    struct config c;
    const char *why;
    if (!b->op) {
        char task[LABEL_TEXT] = "", model[LABEL_TEXT] = "";
        TRY(config_default(&c, e));
        if (b->config) TRY(config_read(b->config, &c, task, model, &given, e));
        TRY(flags_set(&c, b->config ? "threads=1" : b->sizes, e));
        o->setup = setup_make(&c, b->config ? task : b->task, b->config ? model : b->model, e);
        o->trainer = o->setup ? trainer_open(trainer_create, o->setup, e) : NULL;
        return o->trainer ? ST_OK : e->status;
    }
    TRY(options_default(op_sizes_options, &sizes, e));
    TRY(label_parse_pairs(&given, "bench", b->sizes, " ", e));
    TRY(label_apply(&given, op_sizes_options, &sizes, "bench", e));
    return kernel_run_open(&o->op, op_find(b->op), NULL, &sizes, &why, e);
}

enum status gate_serve(const struct gate_bench *bench, double seconds, double delay, FILE *from, FILE *to,
                       struct error *e) {
    const struct build_info *b = build_info();
    struct sitting s;
    char line[64];
    struct opened *o = calloc(1, sizeof *o);
    if (!o) return fail(e, ST_MEMORY, "no memory for the bench %s", bench->name);
    omp_set_num_threads(1);
    o->delay = delay;
    enum status status = open_bench(o, bench, e);
    if (status == ST_OK)
        fprintf(to, GATE_PROTOCOL "\t%s\t%s\t%s\t%s\n", b->real_name, b->compiler, b->flags, b->commit);
    while (status == ST_OK && fflush(to) == 0 && fgets(line, sizeof line, from)) {
        status = sitting_run(&s, call_once, o, seconds, e);
        if (status == ST_OK) fprintf(to, "%.9g %d\n", s.median, s.samples);
    }
    trainer_close(o->trainer);
    setup_free(o->setup);
    kernel_run_close(&o->op);
    free(o);
    return status;
}
