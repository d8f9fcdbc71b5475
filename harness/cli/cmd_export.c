/* cmd_export.c - lrnn export RUN FILE: the best, the last or the first weights of a run as a safetensors file; its
 * curve for TensorBoard, or as lines of MLPerf's log. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/study/args.h"
#include "harness/cli/export_log.h"
#include "harness/run/trainer.h"
#include "harness/run/weights.h"
#include "harness/store/find_run.h"

struct export_flags {
    char out[OPTION_TEXT];
    bool initial, last;
    int as;
};

enum { AS_WEIGHTS, AS_TENSORBOARD, AS_MLLOG };

#define AT(field) offsetof(struct export_flags, field)
static const struct option flags[] = {
    {"out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records that RUN is looked for in",
     OPT_FILLED},
    {"initial", OPT_BOOL, AT(initial), "no", 0, 0, NULL, "the weights before the first step, drawn once more", 0},
    {"last", OPT_BOOL, AT(last), "no", 0, 0, NULL,
     "those after the last step, of a run made with --keep-weights all; without either: those that validation chose",
     0},
    {"as", OPT_CHOICE, AT(as), "weights", 0, 0, "weights tensorboard mllog",
     "weights: a safetensors file; tensorboard: its curve as an event file, which TensorBoard finds where FILE has "
     "\"tfevents\" in its name; mllog: as lines of MLPerf's log",
     0},
    {0}};

/* --- the command -------------------------------------------------------------------------------------------------- */

/* Draws them once more: they are a function of the configuration. Only a program that gives the run the same id, which
 * covers the versions of its task and of the numerics, can say that they are the run's. */
static enum status draw_initial(const struct run_record *record, const struct setup *s, const char *target,
                                struct weights_count *count, struct error *e) {
    if (strcmp(s->id.run_id, record->run.run_id) != 0)
        return fail(e, ST_DATA,
                    "export: the configuration of run %s is that of run %s in this program: its task or the numerics "
                    "have another version, so the initial weights may be others",
                    record->run.run_id, s->id.run_id);
    if (*s->spec.config.from_xxh3)
        return fail(e, ST_DATA,
                    "export: run %s started from a file, of XXH3-128 %.40s: that file holds its initial "
                    "weights",
                    s->id.run_id, s->spec.config.from_xxh3);
    struct trainer *t = calloc(1, sizeof *t);
    if (!t) return fail(e, ST_MEMORY, "no memory for a net");
    enum status status = trainer_create_initial(t, s, e);
    if (status == ST_OK) status = weights_export_initial(record, &t->params, target, count, e);
    trainer_free(t);
    free(t);
    return status;
}

static enum status export_initial(const struct run_record *record, const char *target, struct weights_count *count,
                                  struct error *e) {
    char name[RUN_ID_HEX + 8];
    if (REAL_IS_DOUBLE != !strcmp(record->run.dtype, "fp64"))
        return fail(e, ST_DATA, "export: run %s computed in %s, and this program in %s; %s draws its initial weights",
                    record->run.run_id, record->run.dtype, REAL_NAME, REAL_IS_DOUBLE ? "lrnn" : "lrnn-f64");
    snprintf(name, sizeof name, "run %s", record->run.run_id);
    struct setup *s = setup_stored(record->config, name, 0, e);
    if (!s) return e->status;
    enum status status = draw_initial(record, s, target, count, e);
    setup_free(s);
    free(s);
    return status;
}

static enum status export_run(const char *out, const char *id, enum weights_of which, const char *target,
                              struct error *e) {
    static const char *const names[] = {"best", "last", "initial"};
    struct open_record *open;
    struct weights_count count = {0};
    TRY(run_record_open("export", out, id, &open, e));
    const struct run_record *record = &open->record;
    enum status status = which == WEIGHTS_INITIAL ? export_initial(record, target, &count, e)
                                                  : weights_export(record, which, out, target, &count, e);
    if (status == ST_OK)
        printf("exported run %s (%s, %s), %s weights: %d tensors, %" PRId64 " values, %s, to %s\n", id,
               record->run.task, record->run.layers, names[which], count.tensors, count.values, record->run.dtype,
               target);
    record_close(open);
    return status;
}

static enum status export_curve(const char *out, const char *id, int as, const char *target, struct error *e) {
    struct open_record *open;
    TRY(run_record_open("export", out, id, &open, e));
    const struct run_record *record = &open->record;
    enum status status = (as == AS_MLLOG ? export_mllog : export_tensorboard)(record, target, e);
    if (status == ST_OK)
        printf("exported run %.8s (%s, %s): %" PRId64 " points of its curve to %s\n", id, record->run.task,
               record->run.layers, record->n_curve, target);
    if (status == ST_OK && as == AS_TENSORBOARD && !strstr(target, "tfevents"))
        fprintf(stderr, "lrnn: TensorBoard looks at files alone that have \"tfevents\" in their names\n");
    record_close(open);
    return status;
}

static enum status run(int argc, char **argv, struct error *e) {
    struct export_flags f;
    const char *words[2] = {NULL, NULL};
    const struct flag_set set = {flags, &f};
    struct cli cli = {.command = &command_export, .sets = &set, .n_sets = 1, .positional = words, .max_positional = 2};
    char out[PATH_BYTES], id[RUN_ID_HEX] = "";
    TRY(options_default(flags, &f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (!words[1]) return fail(e, ST_USAGE, "export: say which run and where to; usage: lrnn %s", command_export.usage);
    if (f.initial && f.last)
        return fail(e, ST_USAGE, "export: --initial and --last are two sets of weights; ask for one at a time");
    if (f.as != AS_WEIGHTS && (f.initial || f.last))
        return fail(e, ST_USAGE, "export: --initial and --last are of weights; a curve is whole");
    snprintf(out, sizeof out, "%s", f.out);
    TRY(run_find("export", words[0], out, id, e));
    if (f.as != AS_WEIGHTS) return export_curve(out, id, f.as, words[1], e);
    enum weights_of which = f.initial ? WEIGHTS_INITIAL : f.last ? WEIGHTS_LAST : WEIGHTS_BEST;
    return export_run(out, id, which, words[1], e);
}

const struct command command_export = {
    .name = "export",
    .usage = "export RUN FILE [flags]",
    .summary = "weights of a finished run as a safetensors file, or its curve; RUN: an id, its first digits, a path",
    .run = run,
};
