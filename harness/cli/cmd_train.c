/* cmd_train.c - lrnn train TASK MODEL: one run. */
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/perf/speed.h"
#include "harness/study/study.h"
#include "harness/rows/rows.h"
#include "harness/run/checkpoint.h"
#include "harness/run/live.h"
#include "harness/run/train.h"
#include "harness/run/signals.h"
#include "harness/pool/announce.h"
#include "harness/pool/planned.h"
#include "harness/pool/progress_line.h"
#include "harness/store/claim.h"
#include "harness/store/record_files.h"
#include "harness/store/record_json.h"
#include "harness/store/schema.h"
#include "harness/store/shell.h"
#include "tasks/task.h"

#define PLAIN_EVERY 10.0 /* seconds between progress lines when stderr is not a terminal */

static const struct option extra[] = {
    {"c", OPT_TEXT_FIELD, 0, "", 0, 0, NULL,
     "config file of key=value lines, or a run's record (.json); flags on the command line overrule the file",
     OPT_FILLED},
    {0}};

struct train_words {
    struct study study;
    char task[LABEL_TEXT], model[LABEL_TEXT], config_file[OPTION_TEXT], profile[OPTION_TEXT];
    struct config config;
    char log_steps[OPTION_TEXT];
    bool print_config, strict;
};

#define AT(field) offsetof(struct train_words, field)
static const struct option train_flags[] = {
    {"log-steps", OPT_TEXT_FIELD, AT(log_steps), "", 0, 0, NULL,
     "CSV file for loss, gradient norm and learning rate of every step; slows down training on a GPU", OPT_FILLED},
    {"print-config", OPT_BOOL, AT(print_config), "no", 0, 0, NULL,
     "print the final configuration and where each value comes from; train nothing", 0},
    {"strict", OPT_BOOL, AT(strict), "no", 0, 0, NULL, "exit with 1 if NaN or infinity ended the run", 0},
    {0}};

static enum status on_flag(void *context, const char *name, const char *value, bool *done, struct error *e) {
    struct train_words *r = context;
    if (option_find(train_flags, name)) return ST_OK;
    if (!strcmp(name, "profile")) TRY(text_copy(value, r->profile, sizeof r->profile, e));
    return study_note(&r->study.said[FROM_COMMAND], r->config_file, name, value, done, e);
}

struct display {
    const struct setup *setup;
    bool terminal;
    bool defaults; /* the run has no profile; a message says so when it begins */
    double last, beat;
    struct claim claim;
    struct live live;
};

/* Says that the run uses no profile, and which profiles the task has. */
static void tell_defaults(const struct spec *s) {
    struct label name;
    char names[256];
    if (label_parse(&name, "task", s->task.asked, NULL) != ST_OK) return;
    profile_names(label_name(&name), s->task.task->suite, names, sizeof names);
    fprintf(stderr,
            "no profile: flags that are not given have their defaults; `%s bench %s` has the profiles%s (--profile)\n",
            shell_program(), label_name(&name), names);
}

/* Rewrites the progress line. */
static void show_line(const struct setup *s, const struct progress *p, double left) {
    char text[512];
    struct progress_view v = {.total = 1,
                              .share = (double)p->step / (double)p->steps,
                              .best = NAN,
                              .left_s = left,
                              .model = s->id.model_label,
                              .lr = s->spec.config.lr,
                              .loss = p->loss,
                              .acc = p->acc,
                              .tok_per_s = p->tok_per_s,
                              .seed = s->spec.config.seed,
                              .step = p->step,
                              .steps = p->steps};
    progress_line(&v, progress_width(), text, sizeof text);
    fprintf(stderr, "\r\033[K%s", text);
    fflush(stderr);
}

static void show_plain(const struct setup *s, const struct progress *p, double left) {
    char acc[16] = "-", time[32];
    if (isfinite(p->acc)) snprintf(acc, sizeof acc, "%.4f", p->acc);
    fprintf(stderr, "%s %s: step %" PRId64 "/%" PRId64 " loss %.4f acc %s %.1fk tok/s", s->spec.task.name,
            s->id.model_label, p->step, p->steps, p->loss, acc, p->tok_per_s / 1e3);
    if (isfinite(left) && p->step < p->steps) {
        time_format(left, time, sizeof time);
        fprintf(stderr, ", about %s left", time);
    }
    fputc('\n', stderr);
}

static void show(void *context, const struct progress *p) {
    struct display *d = context;
    if (p->wall_s - d->beat >= CLAIM_BEAT_S) {
        claim_beat(&d->claim);
        d->beat = p->wall_s;
    }
    live_tell(&d->live, p, &d->claim);
    if (d->setup->spec.config.quiet) return;
    if (d->defaults) tell_defaults(&d->setup->spec);
    d->defaults = false;
    if (!d->terminal && p->wall_s - d->last < PLAIN_EVERY && p->step < p->steps) return;
    d->last = p->wall_s;
    double left = p->step ? p->wall_s * (double)(p->steps - p->step) / (double)p->step : NAN;
    if (d->terminal)
        show_line(d->setup, p, left);
    else
        show_plain(d->setup, p, left);
}

static json_t *json_from_count(int64_t n) {
    return n < 0 ? json_null() : json_integer((json_int_t)n);
}

static enum status print_line(const struct run *r, const char *path, struct error *e) {
    return cli_print_json(json_pack("{s:s, s:o, s:s, s:o, s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "run_id",
                                    r->run_id, "task", json_from_text(r->task), "model", r->model, "layers",
                                    json_from_text(r->layers), "status", run_status_names[r->status], "steps",
                                    json_from_count(r->steps), "params", json_from_count(r->params), "metric",
                                    metric_names[r->metric], "metric_value", json_from_real(r->metric_value), "val_acc",
                                    json_from_real(r->val_acc), "test_acc", json_from_real(r->test_acc), "test_seq_acc",
                                    json_from_real(r->test_seq_acc), "record", json_from_text(path)),
                          e);
}

/* Prints the scores of the test, the task's own metric first. */
static void print_scores(const struct run *r) {
    if (r->status != RUN_OK) return; /* not tested */
    printf("; test ");
    if (r->metric == METRIC_MACRO_ACC) printf("macro accuracy %.4f, token ", r->test_macro_acc);
    printf("accuracy %.4f, sequences %.4f, last position %.4f", r->test_acc, r->test_seq_acc, r->test_last_acc);
}

/* Prints the result. A record that another process wrote for a dead run has no steps. */
static void print_text(const struct run *r, bool on_record, const char *path) {
    printf("%s %s: %s", r->task, r->layers, run_status_names[r->status]);
    if (r->steps >= 0) {
        printf(" after %" PRId64 " step%s", r->steps, r->steps == 1 ? "" : "s");
        if (strcmp(r->stop_reason, run_status_names[r->status]) != 0) printf(" (%s)", r->stop_reason);
        if (r->best_step >= 0) printf(", best at %" PRId64, r->best_step);
        print_scores(r);
        printf("; %" PRId64 " parameters; %.0f s", r->params, r->wall_s);
    }
    if (on_record) printf(", on record since %s; nothing was trained now, --force does it again", r->finished);
    printf("\nrecord %s\n", path);
    if (*r->status_detail) printf("%s\n", r->status_detail);
}

static enum status print_result(const struct setup *s, bool on_record, bool strict, struct error *e) {
    char path[RECORD_TEXT * 2];
    struct open_record *open;
    record_path(s->spec.config.out, s->id.run_id, path, sizeof path);
    TRY(record_open(path, &open, e));
    const struct run *r = &open->record.run, shown = run_shown(r);
    enum status status = ST_OK;
    if (s->spec.config.json)
        status = print_line(r, path, e);
    else
        print_text(&shown, on_record, path);
    if (status == ST_OK && strict && run_not_finite(r))
        status = fail(e, ST_FAIL, "--strict: NaN or infinity in run %s: %s", r->run_id,
                      *r->status_detail ? r->status_detail : "logits of its test");
    record_close(open);
    return status;
}

/* Trains under a claim. If the process is killed, its claim stays, and `lrnn status` and reports show the lost run. A
 * run that another process has claimed is trained all the same: the bits are equal, and the first to end writes the
 * record. */
static enum status train_claimed(struct setup *s, const struct train_hooks *hooks, struct run *row, struct claim *claim,
                                 struct error *e) {
    const char *out = s->spec.config.out;
    char what[RECORD_TEXT];
    enum claim_state state;
    claim_words(what, s->spec.task.name, s->id.model_label, s->spec.config.lr, s->spec.config.seed);
    TRY(claim_take(claim, out, s->id.run_id, what, &state, e));
    if (state == CLAIM_OTHERS)
        fprintf(stderr, "lrnn: another process does this run as well; lrnn status --out %s says which\n", out);
    enum status status = train_run(s, hooks, row, e);
    if (status == ST_OK)
        claim_done(claim, out, s->id.run_id);
    else if (state == CLAIM_MINE)
        claim_release(claim);
    return status;
}

static enum status run_setup(struct setup *s, const struct train_words *words, struct error *e) {
    struct display display = {
        .setup = s, .terminal = progress_width() > 0, .defaults = !*words->profile && !*words->config_file};
    struct train_hooks hooks = {
        .progress = show, .context = &display, .log_steps = *words->log_steps ? words->log_steps : NULL};
    signals_install();
    struct plan alone = {.setups = &s, .n = 1};
    int threads = s->spec.config.threads ? (int)s->spec.config.threads : omp_get_num_procs();
    TRY(limits_apply(&alone, 0, 1, threads, s->spec.config.quiet, e));
    int64_t saved = s->spec.config.force ? -1 : checkpoint_step(s->spec.config.out, s->id.run_id);
    if (!s->spec.config.quiet) announce_warmup(&alone);
    if (!s->spec.config.quiet && saved > 0)
        fprintf(stderr, "goes on from step %" PRId64 " of %" PRId64 "\n", saved, s->shapes.steps);
    struct run row = {.run_id = ""};
    enum status status = train_claimed(s, &hooks, &row, &display.claim, e);
    if (display.terminal && !s->spec.config.quiet) fputs("\r\033[K", stderr);
    return status == ST_OK ? print_result(s, !*row.run_id, words->strict, e) : status;
}

/* Takes the named profile, as bench does for that task and model. ST_USAGE: the task has no such profile, or the
 * profile lists several values for a flag that the command line does not set. */
static enum status take_profile(struct train_words *r, const struct task_choice *task, const char *name,
                                struct error *e) {
    struct study *s = &r->study;
    TRY(profile_find(name, task->task->suite, r->profile, &s->profile, e));
    s->said[FROM_PROFILE] = s->profile->settings;
    TRY(study_add_word(s, r->model, FROM_PROFILE, e));
    for (int i = 0; i < s->said[FROM_PROFILE].n; i++) {
        const char *key = label_key(&s->said[FROM_PROFILE], i), *value = study_get(s, key, NULL);
        if (row_key_flag(key) && value && row_key_is_list(key, value))
            return fail(e, ST_USAGE, "profile %s has %s=%s, and train does one run; add --%s with one of them",
                        r->profile, key, value, key);
    }
    return ST_OK;
}

/* Makes the configuration, and completes task and model, by the defaults, the profile if one is named, the config
 * file and the command line. */
static enum status resolve(struct train_words *r, struct error *e) {
    struct label name;
    struct model_choice model;
    struct task_choice *task = calloc(1, sizeof *task);
    enum status status = task ? label_parse(&name, "task", r->task, e) : fail(e, ST_MEMORY, "no memory");
    if (status == ST_OK) status = task_parse(task, r->task, e);
    if (status == ST_OK) status = model_parse(&model, r->model, e);
    if (status == ST_OK && *r->profile) status = take_profile(r, task, label_name(&name), e);
    if (status == ST_OK) status = study_complete(&r->study, "task", task->task->options, r->task, e);
    if (status == ST_OK) status = study_complete(&r->study, "model", model.model->options, r->model, e);
    if (status == ST_OK) status = study_config(&r->study, NULL, &r->config, e);
    free(task);
    return status;
}

static enum status run(int argc, char **argv, struct error *e) {
    struct train_words *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory");
    const char *words[2] = {NULL, NULL};
    const struct flag_set sets[] = {{train_flags, r}, {backbone_options, &r->config}, {config_options, &r->config}};
    struct cli cli = {.command = &command_train,
                      .sets = sets,
                      .n_sets = 3,
                      .positional = words,
                      .max_positional = 2,
                      .extra = extra,
                      .common = " c print-config dim layers steps epochs batch lr seed precision device threads force "
                                "out profile ",
                      .headings = (const char *const[]){NULL, "the net", "training, and where it runs"},
                      .on_flag = on_flag,
                      .context = r};
    enum status status = options_default(train_flags, r, e);
    if (status == ST_OK) status = config_default(&r->config, e);
    if (status == ST_OK) status = cli_parse(&cli, argc, argv, e);
    if (status == ST_OK && words[0]) status = text_copy(words[0], r->task, sizeof r->task, e);
    if (status == ST_OK && words[1]) status = text_copy(words[1], r->model, sizeof r->model, e);
    if (status == ST_OK) status = study_words(&r->study, r->config_file, r->task, r->model, e);
    if (status == ST_OK && (!*r->task || !*r->model))
        status = fail(e, ST_USAGE, "train needs a task and a model, for example `lrnn train s3 bdlru:m=5`");
    if (status == ST_OK) status = resolve(r, e);
    struct setup *s = status == ST_OK ? setup_make(&r->config, r->task, r->model, e) : NULL;
    if (status == ST_OK) status = s ? setup_check_asked(&s, 1, NULL, e) : e->status;
    if (status == ST_OK && r->print_config) status = run_print_config(&r->study, &s, 1, e);
    if (status == ST_OK && !r->print_config) status = run_setup(s, r, e);
    setup_free(s);
    free(r);
    return status;
}

const struct command command_train = {.name = "train",
                                      .usage = "train TASK MODEL [flags]",
                                      .summary = "train one model on one task and write its run record",
                                      .run = run};
