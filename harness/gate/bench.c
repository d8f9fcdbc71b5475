/* bench.c - benches of the gate, and the process that serves one; see compare.h. */
#include "harness/gate/compare.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "harness/gate/trace.h"
#include "harness/perf/kernel_run.h"
#include "harness/perf/measure.h"
#include "harness/study/study.h"
#include "harness/run/trainer.h"
#include "harness/store/clock.h"
#include "harness/store/version.h"

/* A call takes about half a millisecond: 30 of them are short beside the noise of a time slice. */
#define STEP "dim=64 layers=1 batch=8 threads=1 seed=1"
static const struct gate_bench benches[] = {
    {"scan_block", "scan_block", "batch=4 length=64 blocks=64 m=5", NULL, NULL},
    {"scan_companion", "scan_companion", "batch=16 length=64 blocks=64 m=5", NULL, NULL},
    {"scan_flow", "scan_flow", "batch=4 length=64 blocks=64 m=5", NULL, NULL},
    {"scan_outer", "scan_outer", "batch=4 length=64 heads=4 dk=32 dv=32", NULL, NULL},
    {"scan_delta", "scan_delta", "batch=4 length=64 heads=4 dk=32 dv=32", NULL, NULL},
    {"linear", "linear", "batch=8 length=64 dim=128", NULL, NULL},
    {"step-bdlru", NULL, STEP, "s5", "bdlru:m=4"},
    {"step-attention", NULL, STEP, "s5", "attention"},
    {0},
};

const struct gate_bench *gate_benches(void) {
    return benches;
}

static const char *bench_name(const void *list, int i) {
    return ((const struct gate_bench *)list)[i].name;
}

enum status gate_bench_find(const char *name, const struct gate_bench **bench, struct error *e) {
    int index;
    TRY(name_choose("bench", name, (int)(sizeof benches / sizeof *benches) - 1, bench_name, benches, &index, e));
    *bench = &benches[index];
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
        TRY(config_default(&c, e));
        TRY(flags_set(&c, b->sizes, e));
        o->setup = setup_make(&c, b->task, b->model, e);
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
