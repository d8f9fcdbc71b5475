/* cmd_eval.c - lrnn eval RUN --task TASK: evaluates the weights of a finished run on another task with the same
 * vocabulary, for example on longer sequences. The result is a separate file, OUT/evals/<run_id>-<hash of the
 * task>.json, which tables of runs do not read. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cli/cli.h"
#include "harness/rows/rows.h"
#include "harness/rows/stats.h"
#include "harness/run/running.h"
#include "harness/run/weights.h"
#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "harness/store/record_json.h"
#include "harness/store/schema.h"
#include "harness/study/study.h"
#include "kernels/lib/parallel.h"

#define WEIGHTS_MOST_BYTES ((size_t)1 << 36)

struct eval_flags {
    char out[OPTION_TEXT], task[OPTION_TEXT];
    int64_t batch, threads;
    bool json;
};

#define AT(field) offsetof(struct eval_flags, field)
static const struct option flags[] = {
    {"task", OPT_TEXT_FIELD, AT(task), "", 0, 0, NULL,
     "task with its options, such as a5:length=512; default: the run's task", OPT_FILLED},
    {"out", OPT_TEXT_FIELD, AT(out), "results", 0, 0, NULL, "folder of run records in which RUN is searched",
     OPT_FILLED},
    {"batch", OPT_INT, AT(batch), "auto", 1, 1 << 24, NULL, "sequences at a time; auto = as in the run", OPT_AUTO},
    {"threads", OPT_INT, AT(threads), "auto", 1, 4096, NULL, "CPU threads; auto = all cores", OPT_AUTO},
    {"json", OPT_BOOL, AT(json), "no", 0, 0, NULL, "print the result as one JSON line", 0},
    {0}};

/* An evaluation and its result. */
struct answer {
    const struct run *run;
    struct setup *setup; /* the run's net on the task */
    struct test_split test;
    struct eval_point *points;
    int64_t n;
};

/* Makes the setup of the run's net for another task. */
static struct setup *setup_for(const struct run_record *r, const struct eval_flags *f, struct error *e) {
    struct config config;
    char task[LABEL_TEXT], model[LABEL_TEXT];
    if (config_default(&config, e) != ST_OK ||
        config_read_text(r->config, "its record", &config, task, model, e) != ST_OK)
        return NULL;
    if (task_rename(task, r->run.task, e) != ST_OK) return NULL;
    config.threads = f->threads;
    if (f->batch) config.batch = f->batch;
    config.from[0] = config.from_xxh3[0] = '\0'; /* its weights come from the run */
    snprintf(config.device, sizeof config.device, "cpu");
    struct setup *s = setup_make(&config, *f->task ? f->task : task, model, e);
    if (!s || setup_check_causal(&s->spec, e) == ST_OK) return s;
    setup_free(s);
    return NULL;
}

static enum status load_weights(struct trainer *t, const struct run *run, const char *out, struct error *e) {
    struct safetensors file;
    char path[PATH_BYTES], hex[RUN_ID_HEX], *bytes;
    size_t size;
    if (!*run->ckpt)
        return fail(e, ST_DATA, "eval: run %s kept no weights; train it again with --keep-weights best", run->run_id);
    TRY(path_format(path, sizeof path, e, "%s/%s", out, run->ckpt));
    TRY(file_read_hashed(path, WEIGHTS_MOST_BYTES, &bytes, &size, hex, e));
    enum status status = ST_OK;
    if (*run->ckpt_xxh3 && strcmp(hex, run->ckpt_xxh3) != 0)
        status = fail(e, ST_DATA, "eval: %s has XXH3-128 %s, and the record says %s", path, hex, run->ckpt_xxh3);
    if (status == ST_OK) status = safetensors_parse(&file, bytes, size, path, e);
    free(bytes);
    TRY(status);
    status = weights_load(&t->params, &file, path, e);
    safetensors_free(&file);
    return status;
}

static enum status evaluate(struct answer *a, const char *out, struct error *e) {
    struct scores scores;
    struct trainer *t = trainer_open(trainer_create_evaluation, a->setup, e);
    if (!t) return e->status;
    enum status status = load_weights(t, a->run, out, e);
    if (status == ST_OK) {
        t->best_step = a->run->best_step;
        trainer_evaluate(t, SPLIT_TEST, &scores);
        a->points = trainer_list_evaluations(t, &scores, &a->n);
        status = a->points ? split_store_hash(&t->test, false, &a->test, e) : fail(e, ST_MEMORY, "eval: no memory");
    }
    trainer_close(t);
    return status;
}

/* Prints the scores of one length or of all: "512  2000 examples, accuracy 0.9120 (Wilson 0.8990 to 0.9240) ...". */
static void print_point(const struct eval_point *p, const char *name) {
    struct interval w = stats_wilson_interval(p->acc, (double)p->n, 0.95);
    printf("  %-8s %8" PRId64 " examples, accuracy %.4f (Wilson %.4f to %.4f), sequences %.4f, last position %.4f\n",
           name, p->n, p->acc, w.low, w.high, p->seq_acc, p->last_acc);
}

static void print(const struct answer *a, const char *path) {
    const struct run run = run_shown(a->run);
    printf("run %.8s (%s, %s) on %s, weights of step %" PRId64 "\n", run.run_id, run.task, run.layers,
           a->setup->spec.task.name, run.best_step);
    print_point(&a->points[0], "all");
    for (int64_t i = 1; i < a->n; i++) {
        char length[32];
        snprintf(length, sizeof length, "%" PRId64, a->points[i].length);
        if (strcmp(a->points[i].difficulty, EVAL_BY_LENGTH) == 0) print_point(&a->points[i], length);
    }
    printf("%s\n", path);
}

/* Returns the result as JSON. */
static json_t *to_json(const struct answer *a) {
    json_t *list = json_array();
    for (int64_t i = 0; i < a->n && list; i++) {
        const struct eval_point *p = &a->points[i];
        struct interval w = stats_wilson_interval(p->acc, (double)p->n, 0.95);
        json_t *point = json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o}", "by", i ? p->difficulty : "all",
                                  "length", (json_int_t)p->length, "n", (json_int_t)p->n, "acc", json_from_real(p->acc),
                                  "wilson_low", json_from_real(w.low), "wilson_high", json_from_real(w.high), "seq_acc",
                                  json_from_real(p->seq_acc), "last_acc", json_from_real(p->last_acc), "loss",
                                  json_from_real(p->loss));
        json_array_append_new(list, point);
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:I, s:s, s:o}", "kind", "evaluation", "run_id", a->run->run_id,
                     "trained_on", json_from_text(a->run->task), "task", json_from_text(a->setup->spec.task.name),
                     "layers", json_from_text(a->run->layers), "split_hash", a->test.hash, "step",
                     (json_int_t)a->run->best_step, "ckpt_xxh3", a->run->ckpt_xxh3, "points", list);
}

static enum status write_answer(const struct answer *a, const char *out, char path[PATH_BYTES], struct error *e) {
    char hash[RUN_ID_HEX], folder[PATH_BYTES];
    record_hash(a->setup->spec.task.name, hash);
    TRY(path_format(folder, sizeof folder, e, "%s/evals", out));
    TRY(make_folder(folder, e));
    TRY(path_format(path, PATH_BYTES, e, "%s/%s-%.8s.json", folder, a->run->run_id, hash));
    json_t *object = to_json(a);
    char *text = object ? json_dumps(object, JSON_INDENT(1)) : NULL;
    json_decref(object);
    if (!text) return fail(e, ST_MEMORY, "eval: no memory for %s", path);
    enum status status = write_file_atomic(path, text, strlen(text), e);
    free(text);
    return status;
}

static enum status eval_run(const struct run_record *r, const struct eval_flags *f, const char *out, struct error *e) {
    struct answer a = {.run = &r->run};
    char path[PATH_BYTES];
    if (run_failed(&r->run)) return fail(e, ST_DATA, "eval: run %s has not ended well", r->run.run_id);
    if (REAL_IS_DOUBLE != !strcmp(r->run.dtype, "fp64"))
        return fail(e, ST_DATA, "eval: run %s computed in %s, and this program in %s; %s evaluates it", r->run.run_id,
                    r->run.dtype, REAL_NAME, REAL_IS_DOUBLE ? "lrnn" : "lrnn-f64");
    a.setup = setup_for(r, f, e);
    if (!a.setup) return e->status;
    enum status status = parallel_start(f->threads, NULL, e);
    if (status == ST_OK) status = evaluate(&a, out, e);
    if (status == ST_OK) status = write_answer(&a, out, path, e);
    if (status == ST_OK && f->json) status = cli_print_json(to_json(&a), e);
    if (status == ST_OK && !f->json) print(&a, path);
    free(a.points);
    setup_free(a.setup);
    return status;
}

static enum status run(int argc, char **argv, struct error *e) {
    struct eval_flags f;
    const char *word = NULL;
    const struct flag_set set = {flags, &f};
    struct cli cli = {.command = &command_eval, .sets = &set, .n_sets = 1, .positional = &word, .max_positional = 1};
    char out[PATH_BYTES], id[RUN_ID_HEX] = "";
    struct open_record *open;
    TRY(options_default(flags, &f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (!word) return fail(e, ST_USAGE, "eval: say which run; usage: lrnn %s", command_eval.usage);
    snprintf(out, sizeof out, "%s", f.out);
    TRY(run_find("eval", word, out, id, e));
    TRY(run_record_open("eval", out, id, &open, e));
    enum status status = eval_run(&open->record, &f, out, e);
    record_close(open);
    return status;
}

const struct command command_eval = {
    .name = "eval",
    .usage = "eval RUN --task TASK [flags]",
    .summary = "test a finished run's weights on another task with the same vocabulary, such as longer sequences",
    .run = run,
};
