/* scale.c - a folder of thousands of records: the time of commands that read all grows with them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "harness/store/record_json.h"
#include "tests/faults/exercise.h"
#include "tests/lib/scratch.h"
#include "tests/testing.h"

#define STEEPEST 2.0  /* times as long as in proportion to the records */
#define START    0.05 /* s of CPU time that a command takes without records */

/* %1$s: the folder. */
static const char *const commands[] = {
    "report --out %1$s --format csv",
    "status --out %1$s",
    "store check %1$s",
    "report --out %1$s --html %1$s/site",
    "plot accuracy --format svg --out %1$s --to %1$s/plots",
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Prints the record of the same training with another seed: its id and the seed are other texts. */
static void print_with_seed(FILE *f, const char *record, const char *id, int seed) {
    char other_id[RUN_ID_HEX], number[16];
    snprintf(number, sizeof number, "%d", seed);
    record_hash(number, other_id);
    const struct {
        const char *from, *before, *to;
    } changes[] = {{id, "", other_id}, {"\n \"seed\": 1,", "\n \"seed\": ", number}, {"seed=1", "seed=", number}};
    for (const char *at = record; *at;) {
        int k = 0;
        while (k < 3 && strncmp(at, changes[k].from, strlen(changes[k].from)) != 0) k++;
        if (k == 3) {
            fputc(*at++, f);
            continue;
        }
        fprintf(f, "%s%s%s", changes[k].before, changes[k].to, k == 1 ? "," : "");
        at += strlen(changes[k].from);
    }
}

/* Writes the records of seeds [from, to) into the store; `record` is that of seed 1. */
static void add_records(const char *store, const char *record, const char *id, int from, int to) {
    for (int seed = from; seed < to; seed++) {
        char path[PATH_BYTES], folder[PATH_BYTES], number[16], other_id[RUN_ID_HEX], sum[RUN_ID_HEX], *body;
        struct error e = {0};
        size_t size;
        snprintf(number, sizeof number, "%d", seed);
        record_hash(number, other_id);
        record_path(store, other_id, path, sizeof path);
        snprintf(folder, sizeof folder, "%s/runs/%.2s", store, other_id);
        ck_assert_msg(make_folder(folder, &e) == ST_OK, "%s", e.text);
        FILE *f = open_memstream(&body, &size);
        print_with_seed(f, strchr(record, '\n') + 1, id, seed);
        fclose(f);
        record_hash(body, sum);
        f = fopen(path, "w");
        ck_assert_ptr_nonnull(f);
        fprintf(f, "{\"checksum\": \"%s\",\n%s", sum, body);
        ck_assert_int_eq(fclose(f), 0);
        free(body);
    }
}

static double children_cpu_s(void) {
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + 1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Does every command on the store; cpu_s[k]: the CPU time of number k. */
static void time_commands(const char *folder, const char *store, int records, double cpu_s[COMMANDS], struct tally *t) {
    for (int k = 0; k < COMMANDS; k++) {
        char arguments[1024];
        snprintf(arguments, sizeof arguments, commands[k], store); /* NOLINT: of the table above */
        double begin = children_cpu_s();
        int status = run_words(folder, NULL, arguments);
        cpu_s[k] = children_cpu_s() - begin;
        t->tried++;
        if (cpu_s[k] > t->worst) t->worst = cpu_s[k];
        if (status == 0) continue;
        char *text = said(folder, "err");
        bad(t, "lrnn %s of %d records: status %d: %.300s", arguments, records, status, text);
        free(text);
    }
}

void scale_exercise(int records, struct tally *t) {
    char folder[SCRATCH_BYTES], store[SCRATCH_BYTES + 16], arguments[1024], id[RUN_ID_HEX], path[PATH_BYTES];
    double few[COMMANDS], many[COMMANDS];
    struct record_set set;
    struct error e = {0};
    size_t size;
    scratch_make(folder);
    snprintf(store, sizeof store, "%s/store", folder);
    snprintf(arguments, sizeof arguments, TRAIN, store, 1L);
    ck_assert_int_eq(run_words(folder, NULL, arguments), 0);
    ck_assert_msg(records_load(&set, store, &e) == ST_OK && set.n == 1, "%s", e.text);
    memcpy(id, set.list[0].run.run_id, sizeof id);
    records_free(&set);
    record_path(store, id, path, sizeof path);
    char *record = slurp(path, &size);
    add_records(store, record, id, 2, 1 + records / 10);
    time_commands(folder, store, records / 10, few, t);
    add_records(store, record, id, 1 + records / 10, 1 + records);
    time_commands(folder, store, records, many, t);
    ck_assert_int_eq(whole_records(store, &e), records);
    for (int k = 0; k < COMMANDS; k++)
        if (many[k] > STEEPEST * 10 * few[k] + START)
            bad(t, "%s: %.2f s of %d records, %.2f s of %d", commands[k], few[k], records / 10, many[k], records);
    free(record);
    scratch_remove(folder);
}
