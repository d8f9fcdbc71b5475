/* flips.c - bytes of our files that are others, and files without their end, read in this process; see exercise.h. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/philox.h"
#include "harness/gate/baseline.h"
#include "harness/run/checkpoint.h"
#include "harness/store/files.h"
#include "harness/store/history.h"
#include "harness/store/record_files.h"
#include "harness/study/plan_file.h"
#include "tests/faults/exercise.h"
#include "tests/harness/run/small_run.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define CURVE 8
#define LINE                                                                                                           \
    "{\"gate\":1,\"date\":\"2026-01-01\",\"commit\":\"c\",\"machine\":\"m\",\"name\":\"n\",\"verdict\":\"same\","      \
    "\"figures\":[{\"name\":\"s3 lstm\",\"figure\":\"acc\",\"value\":0.9921875,\"verdict\":\"same\"}]}"

/* A folder with a file of each kind, and what its readers need. */
struct ground {
    char folder[SCRATCH_BYTES];
    struct setup *setup;
    struct trainer trainer;
    struct run_progress progress;
    struct baseline *baseline;
};

/* --- kinds of files: how one is made, and whether its reader accepts it ------------------------------------------- */

static void record_make(struct ground *g, char path[PATH_BYTES]) {
    static struct run_record r;
    struct error e = {0};
    snprintf(r.identity, sizeof r.identity, "%s", g->setup->id.text);
    snprintf(r.run.run_id, sizeof r.run.run_id, "%s", g->setup->id.run_id);
    ck_assert_msg(record_write(g->folder, &r, NULL, &e) == ST_OK, "%s", e.text);
    record_path(g->folder, r.run.run_id, path, PATH_BYTES);
}

static bool record_accepted(struct ground *g, const char *path, struct error *e) {
    struct open_record *open;
    (void)g;
    if (record_open(path, &open, e) != ST_OK) return false;
    record_close(open);
    return true;
}

static void checkpoint_make(struct ground *g, char path[PATH_BYTES]) {
    struct error e = {0};
    ck_assert_msg(checkpoint_write(&g->trainer, &g->progress, &e) == ST_OK, "%s", e.text);
    snprintf(path, PATH_BYTES, "%s/checkpoints/%s.ckpt", g->folder, g->setup->id.run_id);
}

/* A damaged one is set aside, and the sentence goes to stderr. */
static bool checkpoint_accepted(struct ground *g, const char *path, struct error *e) {
    struct run_progress p = g->progress;
    char aside[PATH_BYTES + 16];
    bool found = false;
    snprintf(aside, sizeof aside, "%s.corrupt", path);
    if (checkpoint_admit(&g->setup->spec, g->setup->id.run_id, e) != ST_OK ||
        checkpoint_read(&g->trainer, &p, &found, e) != ST_OK)
        return false;
    if (!found && unlink(aside) == 0) snprintf(e->text, sizeof e->text, "set aside");
    return found;
}

static void baseline_make(struct ground *g, char path[PATH_BYTES]) {
    struct error e = {0};
    baseline_init(g->baseline);
    g->baseline->n_figures = 1;
    g->baseline->figures[0] =
        (struct baseline_figure){.cell = "s3 lstm", .figure = "acc", .n = 2, .seed = {1, 2}, .value = {0.75, 0.8125}};
    ck_assert_msg(baseline_set_floor(g->baseline, "linear", 0.02, &e) == ST_OK, "%s", e.text);
    snprintf(path, PATH_BYTES, "%s/baseline", g->folder);
    ck_assert_msg(baseline_write(g->baseline, path, &e) == ST_OK, "%s", e.text);
}

static bool baseline_accepted(struct ground *g, const char *path, struct error *e) {
    return baseline_read(g->baseline, path, e) == ST_OK;
}

static void history_make(struct ground *g, char path[PATH_BYTES]) {
    struct error e = {0};
    snprintf(path, PATH_BYTES, "%s/gate.jsonl", g->folder);
    ck_assert_msg(history_append(path, LINE, &e) == ST_OK, "%s", e.text);
}

/* Accepted is a line that says something else. One that is left out is named; a file cut at 0 has none. */
static bool history_accepted(struct ground *g, const char *path, struct error *e) {
    struct history h;
    char *said = NULL;
    size_t size;
    FILE *broken = open_memstream(&said, &size);
    json_t *whole = json_loads(LINE, 0, NULL), *value;
    const char *key;
    (void)g;
    ck_assert(broken && whole);
    ck_assert_msg(history_read(&h, path, broken, e) == ST_OK, "%s", e->text);
    fclose(broken);
    bool wrong = h.later > 0;
    if (h.n)
        json_object_foreach(whole, key, value) wrong = wrong || !json_equal(value, json_object_get(h.lines[0], key));
    snprintf(e->text, sizeof e->text, "%s%.*s", *said ? "" : "all is said", (int)strcspn(said, "\n"), said);
    json_decref(whole);
    history_free(&h);
    free(said);
    return wrong;
}

static void plan_make(struct ground *g, char path[PATH_BYTES]) {
    size_t size;
    char *text = slurp("papers/hlru-table2.plan", &size);
    snprintf(path, PATH_BYTES, "%s/own.plan", g->folder);
    spill(path, text, size);
    free(text);
}

static bool plan_accepted(struct ground *g, const char *path, struct error *e) {
    static struct plan_file p;
    size_t size;
    char *text = slurp(path, &size);
    (void)g;
    bool accepted = plan_file_parse(&p, "FILE", text, size, e) == ST_OK;
    free(text);
    return accepted;
}

static const struct kind {
    const char *name;
    void (*make)(struct ground *g, char path[PATH_BYTES]);
    bool (*accepted)(struct ground *g, const char *path, struct error *e);
    bool checked; /* it has a checksum */
} kinds[] = {
    {"record", record_make, record_accepted, true},
    {"checkpoint", checkpoint_make, checkpoint_accepted, true},
    {"baseline", baseline_make, baseline_accepted, true},
    {"history", history_make, history_accepted, true},
    {"plan", plan_make, plan_accepted, false},
};
#define KINDS (sizeof kinds / sizeof *kinds)

/* --- cases -------------------------------------------------------------------------------------------------------- */

static void ground_make(struct ground *g) {
    struct error e = {0};
    scratch_make(g->folder);
    g->setup = small_run(g->folder, "none", "lstm:hidden=4", NULL, NULL);
    g->baseline = calloc(1, sizeof *g->baseline);
    g->progress = (struct run_progress){.curve = calloc(CURVE, sizeof(struct curve_point)), .n_curve = 2};
    g->progress.curve_capacity = CURVE;
    ck_assert(g->baseline && g->progress.curve);
    ck_assert_msg(trainer_create(&g->trainer, g->setup, &e) == ST_OK, "%s", e.text);
}

static void ground_leave(struct ground *g) {
    trainer_free(&g->trainer);
    small_run_free(g->setup);
    free(g->progress.curve);
    free(g->baseline);
    scratch_remove(g->folder);
}

void flip_exercise(int cases, uint64_t seed, struct tally *t) {
    struct ground g = {0};
    char path[KINDS][PATH_BYTES], *whole[KINDS];
    size_t size[KINDS];
    FILE *real_stderr = stderr, *nowhere = fopen("/dev/null", "w");
    ck_assert_ptr_nonnull(nowhere);
    ground_make(&g);
    for (size_t k = 0; k < KINDS; k++) {
        kinds[k].make(&g, path[k]);
        whole[k] = slurp(path[k], &size[k]);
    }
    stderr = nowhere; /* where a checkpoint that is set aside is named */
    for (int i = 0; i < cases; i++) {
        size_t k = (size_t)i % KINDS;
        struct rng r = rng_at(seed, STREAM_TEST, (uint64_t)i);
        struct error e = {0};
        size_t at = rng_below(&r, size[k]);
        bool cut = rng_below(&r, 4) == 0;
        char flip = (char)(1 + rng_below(&r, 255));
        whole[k][at] ^= flip;
        spill(path[k], whole[k], cut ? at : size[k]);
        whole[k][at] ^= flip;
        t->tried++;
        bool accepted = kinds[k].accepted(&g, path[k], &e);
        t->failed += !accepted;
        if (accepted && kinds[k].checked)
            bad(t, "%s, %s %zu of %zu: nobody noticed", kinds[k].name, cut ? "cut at" : "byte", at, size[k]);
        if (!accepted && (!*e.text || strchr(e.text, '\n')))
            bad(t, "%s, %s %zu of %zu: no sentence: %.300s", kinds[k].name, cut ? "cut at" : "byte", at, size[k],
                e.text);
    }
    stderr = real_stderr;
    fclose(nowhere);
    for (size_t k = 0; k < KINDS; k++) free(whole[k]);
    ground_leave(&g);
}
