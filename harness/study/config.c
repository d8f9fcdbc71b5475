/* config.c - flags and config files; see config.h. */
#include "harness/study/config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/schedule.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "harness/store/version.h"
#include "tasks/task.h"

#define AT(field) offsetof(struct config, field)

/* The choices of --schedule, each after a blank, and their help. */
#define SCHEDULE_NAME(id, name, changes, floor, epochs, rate, help) " " name
#define SCHEDULE_HELP(id, name, changes, floor, epochs, rate, help) "; " name ": " help

const struct option config_options[] = {
    {"steps", OPT_INT, AT(steps), "auto", 1, 1e12, NULL, "optimiser steps; auto = epochs x steps an epoch", OPT_AUTO},
    {"stop-after", OPT_INT, AT(stop_after), "auto", 1, 1e12, NULL,
     "training ends after this step, while the schedule is that of all steps; auto = after the last", OPT_AUTO},
    {"epochs", OPT_INT, AT(epochs), "20", 1, 1e9, NULL, "passes over the training examples", 0},
    {"batch", OPT_INT, AT(batch), "128", 1, 1 << 24, NULL, "sequences a step", 0},
    {"lr", OPT_REAL, AT(lr), "0.001", 0, 1e6, NULL, "peak learning rate of AdamW", OPT_RATE},
    {"lr-min", OPT_REAL, AT(lr_min), "1e-05", 0, 1e6, NULL, "floor of the cosine schedules", 0},
    {"decay", OPT_REAL, AT(decay), "0", 0, 100, NULL, "decoupled weight decay", 0},
    {"decay-all", OPT_CHOICE, AT(decay_all), "auto", 0, 0, "auto yes no",
     "what --decay acts on: yes: every parameter; no: not the mixer's state parameters, such as its rates and time "
     "steps; auto: as the code of the backbone's paper has it",
     0},
    {"match", OPT_TEXT_FIELD, AT(match), "", 0, 0, NULL,
     "params=N or state=N: take the width, or the mixer's own size of state, that comes nearest to so many parameters "
     "or numbers of state",
     0},
    {"beta1", OPT_REAL, AT(beta1), "0.9", 0, 0.999999, NULL, "AdamW beta1", 0},
    {"beta2", OPT_REAL, AT(beta2), "0.999", 0, 0.999999, NULL, "AdamW beta2", 0},
    {"schedule", OPT_CHOICE, AT(schedule), "constant", 0, 0, &SCHEDULES(SCHEDULE_NAME)[1],
     "learning rate after the warm-up" SCHEDULES(SCHEDULE_HELP), 0},
    {"warmup", OPT_INT, AT(warmup), "0", 0, 1e12, NULL, "steps of linear warm-up from rate 0", 0},
    {"warmup-least", OPT_REAL, AT(warmup_least), "0", 0, 1, NULL, "lowest rate of the warm-up, as a share of --lr", 0},
    {"clip", OPT_REAL, AT(clip), "0", 0, 1e9, NULL, "global gradient norm is clipped to this, as torch does; 0 = off",
     0},
    {"eval-every", OPT_INT, AT(eval_every), "auto", 1, 1e12, NULL,
     "steps between validations; auto = an epoch, at most 200 a run", OPT_AUTO},
    {"stop-at", OPT_REAL, AT(stop_at), "0.999", 0, 2, NULL, "stop when the validation metric reaches this; 2 = never",
     0},
    {"patience", OPT_INT, AT(patience), "0", 0, 1e9, NULL,
     "stop after so many validations in a row without a gain; 0 = never", 0},
    {"seed", OPT_INT, AT(seed), "1", 0, 9e18, NULL, "seed of initialisation, data and order", OPT_SEED},
    {"precision", OPT_CHOICE, AT(precision), REAL_NAME, 0, 0, CONFIG_PRECISIONS,
     "type to which the factors of matrix products are rounded; sums and all else stay in " REAL_NAME, OPT_OPEN},
    {"kernel", OPT_TEXT_FIELD, AT(kernel), "", 0, 0, NULL,
     "force this kernel for its op in every graph of the run, or 'reference' for all", OPT_OPEN},
    {"device", OPT_TEXT_FIELD, AT(device), "cpu", 0, 0, NULL, "where it runs: cpu, cuda or cuda:N", OPT_OPEN},
    {"budget", OPT_TIME, AT(budget), "0s", 0, 1e9, NULL,
     "longest training time, converted to --stop-after by timing some steps before the run; 0 = no limit", OPT_OPEN},
    {"threads", OPT_INT, AT(threads), "auto", 1, 4096, NULL, "CPU threads of one run; auto = all cores (bench: 1)",
     OPT_AUTO | OPT_RUNTIME},
    {"checkpoint-every", OPT_TIME, AT(checkpoint_every), "60s", 0, 1e9, NULL, "time between checkpoints; 0 = none",
     OPT_RUNTIME},
    {"keep-weights", OPT_CHOICE, AT(keep_weights), "yes", 0, 0, "no yes all",
     "keep the best weights in OUT/weights, for `lrnn export`; all: those of the last step as well", OPT_RUNTIME},
    {"from", OPT_TEXT_FIELD, AT(from), "", 0, 0, NULL,
     "safetensors file of the weights to start from, named as `lrnn export` names them; none = drawn from the seed",
     OPT_RUNTIME | OPT_HERE | OPT_FILLED},
    {"from-xxh3", OPT_TEXT_FIELD, AT(from_xxh3), "", 0, 0, NULL,
     "expected XXH3-128 of the file of --from; computed if absent, and part of the run's identity", OPT_FOUND},
    {"force", OPT_BOOL, AT(force), "no", 0, 0, NULL,
     "do again what is on record; the old record stays beside the new one as ID.json.replaced", OPT_RUNTIME | OPT_HERE},
    {"force-resume", OPT_BOOL, AT(force_resume), "no", 0, 0, NULL,
     "go on from a checkpoint of another build: the result comes from two builds, and its record says so",
     OPT_RUNTIME | OPT_HERE},
    {"out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records and exports",
     OPT_RUNTIME | OPT_HERE | OPT_FILLED},
    {"profile", OPT_TEXT_FIELD, AT(profile), "custom", 0, 0, NULL,
     "take sizes, budget and learning rates from this profile of the task, as lrnn bench does", OPT_RUNTIME},
    {"quiet", OPT_BOOL, AT(quiet), "no", 0, 0, NULL, "no progress", OPT_RUNTIME | OPT_HERE},
    {"json", OPT_BOOL, AT(json), "no", 0, 0, NULL, "result as one JSON line", OPT_RUNTIME | OPT_HERE},
    {0}};

static int64_t ceil_div(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

/* An evaluation an epoch, but at most 200 a run. */
struct run_length config_length(struct config *c, int64_t n_train) {
    struct run_length l = {.steps_per_epoch = ceil_div(n_train, c->batch)};
    l.schedule_steps = c->steps ? c->steps : c->epochs * l.steps_per_epoch;
    l.steps = c->stop_after && c->stop_after < l.schedule_steps ? c->stop_after : l.schedule_steps;
    int64_t least = ceil_div(l.schedule_steps, 200);
    l.eval_every = c->eval_every ? c->eval_every : l.steps_per_epoch > least ? l.steps_per_epoch : least;
    c->steps = l.schedule_steps;
    c->eval_every = l.eval_every;
    if (l.steps == l.schedule_steps) c->stop_after = 0;
    if ((double)c->epochs * (double)l.steps_per_epoch != (double)l.schedule_steps)
        (void)config_set(c, "epochs", option_find(config_options, "epochs")->value, NULL);
    return l;
}

const char *config_other_length(const char *flag) {
    return !strcmp(flag, "steps") ? "epochs" : !strcmp(flag, "epochs") ? "steps" : NULL;
}

enum status config_check_length(const struct config *c, int64_t n_train, struct error *e) {
    int64_t steps = ceil_div(n_train, c->batch);
    double most = option_find(config_options, "steps")->max;
    if (c->steps || (double)c->epochs * (double)steps <= most) return ST_OK;
    return fail(e, ST_USAGE,
                "--epochs %" PRId64 " of %" PRId64 " steps each are more than the %.0f steps that a run may have; take "
                "fewer epochs, or --steps",
                c->epochs, steps, most);
}

enum status config_default(struct config *c, struct error *e) {
    memset(c, 0, sizeof *c);
    TRY(options_default(backbone_options, c, e));
    return options_default(config_options, c, e);
}

enum status config_set(struct config *c, const char *name, const char *value, struct error *e) {
    const struct option *table = option_find(backbone_options, name) ? backbone_options : config_options;
    return options_set(table, c, "the configuration", name, value, e);
}

/* --- config files ------------------------------------------------------------------------------------------------- */

/* One line's flag, or option of the task or the model. */
static enum status add_option(struct label *l, const char *key, const char *value, struct error *e) {
    if (label_get(l, key)) return fail(e, ST_USAGE, "'%.60s' is given twice", key);
    return label_add(l, key, value, e);
}

/* "s5" or "s5:length=8" after "task="; the options may stand in lines of their own, before or after this one. */
static enum status set_name(struct label *l, const char *kind, const char *text, struct error *e) {
    struct label named;
    if (l->used && *label_name(l)) return fail(e, ST_USAGE, "'%s' is given twice", kind);
    TRY(label_parse(&named, kind, text, e));
    TRY(label_set_name(l, label_name(&named), e));
    for (int i = 0; i < named.n; i++) TRY(add_option(l, label_key(&named, i), label_value(&named, i), e));
    return ST_OK;
}

/* Contents of a file's lines. */
struct lines {
    struct config *c; /* in which flags are set */
    struct label task, model, flags;
};

static enum status set_line(const char *key, const char *value, struct lines *l, struct error *e) {
    if (!strcmp(key, "task")) return set_name(&l->task, "task", value, e);
    if (!strcmp(key, "model")) return set_name(&l->model, "model", value, e);
    if (!strncmp(key, "task.", 5)) return add_option(&l->task, key + 5, value, e);
    if (!strncmp(key, "model.", 6)) return add_option(&l->model, key + 6, value, e);
    TRY(config_set(l->c, key, value, e));
    return add_option(&l->flags, key, value, e);
}

static enum status config_line(char *line, const char *path, int number, struct lines *l, struct error *e) {
    struct error why = {ST_OK, ""};
    line += strspn(line, " \t");
    line[strcspn(line, "\r\n")] = 0;
    if (!*line || *line == '#') return ST_OK;
    char *equals = strchr(line, '=');
    if (!equals) return fail(e, ST_USAGE, "%s line %d: '%s' is not of the form key=value", path, number, line);
    *equals = 0;
    char *comment = strstr(equals + 1, " # ");
    if (comment && !strchr(equals, '/')) *comment = 0; /* a path may have one */
    text_trim(line);
    text_trim(equals + 1);
    if (set_line(line, equals + 1 + strspn(equals + 1, " \t"), l, &why) == ST_OK) return ST_OK;
    return fail(e, why.status, "%s line %d: %.900s", path, number, why.text);
}

static enum status read_lines(FILE *file, const char *path, struct lines *l, struct error *e) {
    char line[1024];
    TRY(label_set_name(&l->flags, "", e));
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        if (!strchr(line, '\n') && !feof(file))
            return fail(e, ST_USAGE, "%s line %d is longer than %zu bytes", path, number, sizeof line - 2);
        TRY(config_line(line, path, number, l, e));
    }
    return ferror(file) ? fail(e, ST_DATA, "cannot read config file %s to its end", path) : ST_OK;
}

static enum status read_text(const char *text, const char *name, struct lines *l, struct error *e) {
    char *copy = strdup(text); /* fmemopen wants bytes that may be written */
    FILE *file = copy ? fmemopen(copy, strlen(copy) + 1, "r") : NULL;
    enum status status = file ? read_lines(file, name, l, e) : fail(e, ST_MEMORY, "no memory for %s", name);
    if (file) fclose(file);
    free(copy);
    return status;
}

static enum status format_labels(const struct lines *l, char task[LABEL_TEXT], char model[LABEL_TEXT],
                                 struct error *e) {
    if (l->task.used) TRY(label_format(&l->task, task, LABEL_TEXT, e));
    return l->model.used ? label_format(&l->model, model, LABEL_TEXT, e) : ST_OK;
}

/* Keeps the caller's options of a machine or a call (OPT_HERE), whatever a record says of them. */
static enum status keep_own(struct lines *l, const struct config *own, struct error *e) {
    for (const struct option *o = config_options; o->name; o++) {
        char value[OPTION_TEXT + 1];
        if (!(o->flags & OPT_HERE) || !label_get(&l->flags, o->name)) continue;
        option_format_value(o, own, value, sizeof value);
        TRY(config_set(l->c, o->name, value, e));
        label_remove(&l->flags, o->name);
    }
    return ST_OK;
}

/* The configuration that a run's record holds. */
static enum status read_record(const char *path, struct lines *l, char task[LABEL_TEXT], char model[LABEL_TEXT],
                               struct error *e) {
    struct config own = *l->c;
    struct open_record *open;
    TRY(record_open(path, &open, e));
    enum status status = read_text(open->record.config, path, l, e);
    if (status == ST_OK) status = keep_own(l, &own, e);
    if (status == ST_OK) status = format_labels(l, task, model, e);
    if (status == ST_OK) status = task_rename(task, open->record.run.task, e);
    record_close(open);
    return status;
}

enum status config_read(const char *path, struct config *c, char task[LABEL_TEXT], char model[LABEL_TEXT],
                        struct label *flags, struct error *e) {
    struct lines l = {.c = c};
    enum status status = ST_OK;
    if (text_ends(path, ".json")) {
        status = read_record(path, &l, task, model, e);
    } else {
        FILE *file = fopen(path, "r");
        if (!file) return fail(e, ST_DATA, "cannot read config file %s: %s", path, strerror(errno));
        status = read_lines(file, path, &l, e);
        fclose(file);
        if (status == ST_OK) status = format_labels(&l, task, model, e);
    }
    *flags = l.flags;
    return status;
}

enum status config_read_text(const char *text, const char *name, struct config *c, char task[LABEL_TEXT],
                             char model[LABEL_TEXT], struct error *e) {
    struct lines l = {.c = c};
    TRY(read_text(text, name, &l, e));
    return format_labels(&l, task, model, e);
}
