/* damage.c - files of ours with another byte or without their end, read by the program; see exercise.h. */
#include <glob.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/philox.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "tests/faults/exercise.h"
#include "tests/lib/process.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define LONGER                                                                                                         \
    "train s3:length=6,n_train=256,n_val=64,n_test=64 bdlru:m=2,blocks=4 --dim 8 --layers 1 --mlp none --batch 8 "     \
    "--steps 600 --eval-every 100 --threads 1 --checkpoint-every 0.01s --quiet --out %s"

/* Files that are damaged, below the folder, and the command that reads each. %1$s: the folder; %2$s: the id of its
 * finished run. */
static const struct kind {
    const char *file, *command;
    bool checked; /* a checksum is in the file, or a record has it: what is accepted is the whole file's result */
} kinds[] = {
    {"runs/*/*.json", "report --out %1$s --format csv --what each", true},
    {"weights/*.safetensors", "eval %2$s --out %1$s", true},
    {"cut/checkpoints/*.ckpt", LONGER, true}, /* its record's hash of the weights is compared */
    {"own.plan", "sweep %1$s/own.plan --dry-run --json --quiet --out %1$s/none", false},
    {"net.safetensors", "import %1$s/net.safetensors", true},
    {"case.safetensors", "verify %1$s/case.safetensors", false},
    {"sweeps/*.tsv", "status %1$s", false},
    {"runs.csv", "store check %1$s", false},
    {"summary.csv", "report --out %1$s --format csv", true},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static void run_whole(const char *folder, const char *arguments) {
    int status = run_words(folder, NULL, arguments);
    char *text = said(folder, "err");
    ck_assert_msg(status == 0, "lrnn %s: exit %d: %s", arguments, status, text);
    free(text);
}

/* The only record below a folder. */
static void only_record(const char *store, struct run *run) {
    struct record_set set;
    struct error e = {0};
    ck_assert_msg(records_load(&set, store, &e) == ST_OK && set.n == 1, "%d records. %s", set.n, e.text);
    *run = set.list[0].run;
    records_free(&set);
}

/* Copies a folder, or a file. */
static void copy(const char *from, const char *to) {
    char command[1200];
    snprintf(command, sizeof command, "rm -rf '%s' && cp -a '%s' '%s'", to, from, to);
    ck_assert_int_eq(system(command), 0); /* NOLINT(cert-env33-c) */
}

/* Kills the longer training after it has saved a checkpoint and before its end. */
static void cut_off(const char *folder, const char *store) {
    char arguments[1024], pattern[SCRATCH_BYTES + 96];
    glob_t found;
    bool saved = false;
    snprintf(arguments, sizeof arguments, LONGER, store);
    snprintf(pattern, sizeof pattern, "%s/checkpoints/*.ckpt", store);
    for (int i = 0; i < 20 && !saved; i++) {
        scratch_remove(store);
        pid_t pid = start(folder, "cut", NULL, arguments);
        wait_for_files(store, ".ckpt", 1);
        kill(-pid, SIGKILL);
        wait_for(pid);
        saved = glob(pattern, 0, NULL, &found) == 0 && scratch_count(store, ".json") == 0;
        globfree(&found);
    }
    ck_assert(saved);
}

/* A folder with one of each kind of files, in FOLDER/whole; the id of its run; the hash of the weights of the longer
 * one. */
static void make_ground(const char *folder, char id[RUN_ID_HEX], char weights[RUN_ID_HEX]) {
    static const char plan[] = "tasks=s3\nmodels=lstm bdlru:m=2\nprofile=smoke\nseeds=2\nlr=0.001,0.002\ntitle=Ours\n";
    char store[SCRATCH_BYTES + 32], path[SCRATCH_BYTES + 64], arguments[1024];
    struct run run;
    snprintf(arguments, sizeof arguments, BENCH, 1, folder);
    run_whole(folder, arguments);
    snprintf(path, sizeof path, "%s/store", folder);
    snprintf(store, sizeof store, "%s/whole", folder);
    ck_assert_int_eq(rename(path, store), 0);
    only_record(store, &run);
    snprintf(id, RUN_ID_HEX, "%s", run.run_id);
    snprintf(arguments, sizeof arguments, "export %s %s/net.safetensors --out %s", id, store, store);
    run_whole(folder, arguments);
    snprintf(path, sizeof path, "%s/own.plan", store);
    spill(path, plan, sizeof plan - 1);
    snprintf(path, sizeof path, "%s/case.safetensors", store);
    copy("tests/cases/18-lstm-hidden8.safetensors", path);
    snprintf(path, sizeof path, "%s/once", folder);
    snprintf(arguments, sizeof arguments, LONGER, path);
    run_whole(folder, arguments);
    only_record(path, &run);
    snprintf(weights, RUN_ID_HEX, "%s", run.ckpt_xxh3);
    snprintf(path, sizeof path, "%s/cut", store);
    cut_off(folder, path);
}

/* Reads the file of that kind in FOLDER/now: its output, the caller's to free; the exit status. */
static int read_it(const char *folder, const struct kind *k, const char *id, char **output, char **errors) {
    char now[SCRATCH_BYTES + 32], arguments[1024];
    snprintf(now, sizeof now, "%s/now%s", folder, strstr(k->file, "cut/") ? "/cut" : "");
    snprintf(arguments, sizeof arguments, k->command, now, id); /* NOLINT: of the table above */
    int status = run_words(folder, NULL, arguments);
    *output = said(folder, "out");
    *errors = said(folder, "err");
    return status;
}

static void judge(const char *folder, const struct kind *k, const char *what, int status, const char *wanted,
                  const char *weights, const char *output, const char *errors, struct tally *t) {
    char store[SCRATCH_BYTES + 32];
    struct run run;
    t->tried++;
    t->failed += status != 0 || *errors != 0;
    if (status > 6) bad(t, "%s: exit %d: %.300s", what, status, errors);
    if (status != 0 && !strstr(errors, "lrnn: ")) bad(t, "%s: exit %d without a sentence", what, status);
    if (status != 0 || !k->checked) return;
    if (!strstr(k->file, "cut/")) {
        if (strcmp(output, wanted) != 0) bad(t, "%s: accepted, and other numbers: %.300s", what, output);
        return;
    }
    snprintf(store, sizeof store, "%s/now/cut", folder);
    only_record(store, &run);
    if (strcmp(run.ckpt_xxh3, weights) != 0) bad(t, "%s: accepted, and other weights", what);
}

void damage_exercise(int cases, uint64_t seed, double seconds, struct tally *t) {
    char folder[SCRATCH_BYTES], whole[SCRATCH_BYTES + 16], now[SCRATCH_BYTES + 16], path[2 * SCRATCH_BYTES + 64];
    char id[RUN_ID_HEX], weights[RUN_ID_HEX], what[1200], *wanted[KINDS], *output, *errors;
    double begin = time_now_s();
    scratch_make(folder);
    snprintf(whole, sizeof whole, "%s/whole", folder);
    snprintf(now, sizeof now, "%s/now", folder);
    make_ground(folder, id, weights);
    for (size_t k = 0; k < KINDS; k++) {
        copy(whole, now);
        int status = read_it(folder, &kinds[k], id, &wanted[k], &errors);
        ck_assert_msg(status == 0, "%s: exit %d: %s", kinds[k].command, status, errors);
        free(errors);
    }
    for (int i = 0; i < cases && (seconds <= 0 || time_now_s() - begin < seconds); i++) {
        const struct kind *k = &kinds[(size_t)i % KINDS];
        struct rng r = rng_at(seed, STREAM_TEST, (uint64_t)i);
        glob_t found;
        size_t size;
        copy(whole, now);
        snprintf(path, sizeof path, "%s/%s", now, k->file);
        ck_assert_msg(glob(path, 0, NULL, &found) == 0, "there is no %s", path);
        char *bytes = slurp(found.gl_pathv[0], &size);
        size_t at = rng_below(&r, size);
        bool cut = rng_below(&r, 4) == 0;
        char flip = (char)(1 + rng_below(&r, 255));
        if (!cut) bytes[at] ^= flip;
        spill(found.gl_pathv[0], bytes, cut ? at : size);
        snprintf(what, sizeof what, "%s, %s %zu of %zu: lrnn %s", k->file, cut ? "cut at" : "byte", at, size,
                 k->command);
        int status = read_it(folder, k, id, &output, &errors);
        judge(folder, k, what, status, wanted[(size_t)i % KINDS], weights, output, errors, t);
        free(output);
        free(errors);
        free(bytes);
        globfree(&found);
    }
    for (size_t k = 0; k < KINDS; k++) free(wanted[k]);
    scratch_remove(folder);
}
