/* trace.c - see trace.h. */
#include "tests/golden/trace.h"

#include <stdlib.h>
#include <string.h>

#include "harness/plan/args.h"
#include "harness/run/trainer.h"
#include "kernels/kernel.h"
#include "tests/lib/support.h"

/* Three steps and a partial fourth an epoch; the last steps are those of a thirteenth. */
#define WORDS "s3:n_train=30,n_val=8,n_test=8,length=9"

/* Under every trace's own flags. Training never ends early; it is validated once, at its end. */
static const char *const trace_flags =
    "dim=12 layers=1 batch=8 steps=50 lr=0.001 eval-every=50 stop-at=2 threads=1 seed=3 allow-non-causal=yes ahead=no";

/* Beside the mixers: nets, read-outs, schedules and the optimiser, on one mixer. */
#define MIXER "bdlru:m=2,blocks=5"
static const struct trace others[] = {
    {WORDS, MIXER, "backbone=slice"},
    {WORDS, MIXER, "backbone=slice-glu"},
    {WORDS, MIXER, "backbone=stacked"},
    {WORDS, MIXER, "backbone=s5 decay=0.1"},
    {WORDS, "lru:state=9", "backbone=s5 decay=0.1 ssm-lr-factor=0.25"},
    {WORDS, MIXER, "backbone=slice-paper"},
    {WORDS, "mamba2:state=3,headdim=8", "backbone=slice-paper decay=0.1"},
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
};

bool trace_at(int index, struct trace *t) {
    int mixers = 0;
    while (small_models()[mixers]) mixers++;
    if (index >= mixers + (int)(sizeof others / sizeof *others)) return false;
    if (index >= mixers) {
        *t = others[index - mixers];
        return true;
    }
    snprintf(t->task, sizeof t->task, "%s", WORDS);
    snprintf(t->model, sizeof t->model, "%s", small_models()[index]);
    t->flags[0] = 0;
    return true;
}

void trace_name(const struct trace *t, char name[TRACE_TEXT]) {
    snprintf(name, TRACE_TEXT, "%s %s%s%s", t->task, t->model, *t->flags ? " " : "", t->flags);
}

const char *trace_arithmetic(void) {
#ifdef __FMA__
    return "fma";
#else
    return "plain";
#endif
}

/* --- training ----------------------------------------------------------------------------------------------------- */

static void set_flags(struct config *c, const char *flags) {
    for (const char *at = flags; *at; at += strspn(at, " ")) {
        char pair[64];
        struct error e = {0};
        size_t n = strcspn(at, " ");
        ck_assert_uint_lt(n, sizeof pair);
        snprintf(pair, sizeof pair, "%.*s", (int)n, at);
        char *equals = strchr(pair, '=');
        ck_assert_ptr_nonnull(equals);
        *equals = 0;
        ck_assert_msg(config_set(c, pair, equals + 1, &e) == ST_OK, "%s", e.text);
        at += n;
    }
}

/* In contract order, so that another inner layout is no other trace. */
static void hash_weights(const struct params *p, char hex[RUN_ID_HEX]) {
    int64_t n = 0, used = 0;
    for (int i = 0; i < p->n; i++) n += p->list[i].count;
    double *all = malloc((size_t)n * sizeof *all);
    ck_assert_ptr_nonnull(all);
    for (int i = 0; i < p->n; i++) {
        param_to_contract(&p->list[i], p->value + p->list[i].offset, all + used);
        used += p->list[i].count;
    }
    record_hash_bytes(all, (size_t)n * sizeof *all, hex);
    free(all);
}

void trace_run(const struct trace *t, const char *kernel, struct trace_row *row) {
    struct config c;
    struct error e = {0};
    struct trainer *trainer = calloc(1, sizeof *trainer);
    ck_assert_ptr_nonnull(trainer);
    ck_assert_int_eq(config_default(&c, &e), ST_OK);
    set_flags(&c, trace_flags);
    set_flags(&c, t->flags);
    ck_assert_msg(config_set(&c, "kernel", kernel, &e) == ST_OK, "%s", e.text);
    struct setup *s = setup_make(&c, t->task, t->model, &e);
    ck_assert_msg(s != NULL, "%s %s: %s", t->task, t->model, e.text);
    ck_assert_msg(trainer_create(trainer, s, &e) == ST_OK, "%s %s: %s", t->task, t->model, e.text);
    *row = (struct trace_row){0};
    trace_name(t, row->name);
    snprintf(row->real, sizeof row->real, "%s", REAL_NAME);
    snprintf(row->arithmetic, sizeof row->arithmetic, "%s", trace_arithmetic());
    snprintf(row->numerics, sizeof row->numerics, "%s", s->numerics);
    static const int points[TRACE_POINTS] = {0, 9, TRACE_STEPS - 1};
    for (int step = 0; step < TRACE_STEPS; step++) {
        trainer_step(trainer);
        ck_assert_msg(!trainer->state.frozen, "%s: frozen at step %d", row->name, step);
        for (int i = 0; i < TRACE_POINTS; i++)
            if (points[i] == step) row->loss[i] = trainer->state.loss;
    }
    hash_weights(&trainer->params, row->weights);
    trainer_free(trainer);
    free(trainer);
    setup_free(s);
    free(s);
}

/* --- the file ----------------------------------------------------------------------------------------------------- */

bool trace_read(FILE *f, struct trace_row *row) {
    char line[2 * TRACE_TEXT];
    do {
        if (!fgets(line, sizeof line, f)) return false;
    } while (line[0] == '#');
    int read = sscanf(line, "%399[^\t]\t%7[^\t]\t%7[^\t]\t%63[^\t]\t%lf\t%lf\t%lf\t%32[0-9a-f]", row->name, row->real,
                      row->arithmetic, row->numerics, &row->loss[0], &row->loss[1], &row->loss[2], row->weights);
    ck_assert_msg(read == 8, "not a row of golden traces: %s", line);
    return true;
}

void trace_write(FILE *f, const struct trace_row *row) {
    char loss[TRACE_POINTS][32];
    for (int i = 0; i < TRACE_POINTS; i++) format_double(row->loss[i], loss[i], sizeof loss[i]);
    fprintf(f, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", row->name, row->real, row->arithmetic, row->numerics, loss[0],
            loss[1], loss[2], row->weights);
}

/* --- another file ------------------------------------------------------------------------------------------------- */

static bool same_place(const struct trace_row *a, const struct trace_row *b) {
    return !strcmp(a->name, b->name) && !strcmp(a->real, b->real) && !strcmp(a->arithmetic, b->arithmetic);
}

static bool same_bits(const struct trace_row *a, const struct trace_row *b) {
    return !strcmp(a->weights, b->weights) && memcmp(a->loss, b->loss, sizeof a->loss) == 0;
}

static bool is_listed(const char *name) {
    struct trace t;
    char listed[TRACE_TEXT];
    for (int i = 0; trace_at(i, &t); i++) {
        trace_name(&t, listed);
        if (!strcmp(listed, name)) return true;
    }
    return false;
}

/* Rows of another build go over as they are, if their trace is still listed. */
static void keep_rows(const char *path, const char *precision, const char *arithmetic, FILE *to) {
    struct trace_row row;
    FILE *f = fopen(path, "r");
    while (f && trace_read(f, &row))
        if (!strcmp(row.real, precision) && !strcmp(row.arithmetic, arithmetic) && is_listed(row.name))
            trace_write(to, &row);
    if (f) fclose(f);
}

static bool find_row(const char *path, const struct trace_row *like, struct trace_row *row) {
    FILE *f = fopen(path, "r");
    bool found = false;
    while (f && !found && trace_read(f, row)) found = same_place(row, like);
    if (f) fclose(f);
    return found;
}

static void write_rows(const char *path, FILE *to) {
    struct trace t;
    struct trace_row row, before;
    for (int i = 0; trace_at(i, &t); i++) {
        trace_run(&t, "reference", &row);
        trace_write(to, &row);
        bool changed = find_row(path, &row, &before) && !same_bits(&row, &before);
        ck_assert_msg(
            !changed || strcmp(row.numerics, before.numerics) != 0,
            "%s has other bits than %s under the same numerics version %s; raise the version of what changed in "
            "harness/plan/numerics.c first",
            row.name, path, row.numerics);
    }
}

void trace_update(const char *path) {
    static const char *const builds[][2] = {{"fp32", "fma"}, {"fp32", "plain"}, {"fp64", "fma"}, {"fp64", "plain"}};
    char next[TRACE_TEXT];
    snprintf(next, sizeof next, "%s.new", path);
    FILE *f = fopen(next, "w");
    ck_assert_msg(f != NULL, "cannot write %s", next);
    fputs("# Golden traces, written by `make golden`. Columns: name, precision, arithmetic, numerics version, loss of "
          "steps 1, 10 "
          "and 50, hash of the weights.\n",
          f);
    for (size_t i = 0; i < sizeof builds / sizeof *builds; i++) {
        if (!strcmp(builds[i][0], REAL_NAME) && !strcmp(builds[i][1], trace_arithmetic()))
            write_rows(path, f);
        else
            keep_rows(path, builds[i][0], builds[i][1], f);
    }
    ck_assert_msg(fclose(f) == 0 && rename(next, path) == 0, "cannot write %s", path);
}
