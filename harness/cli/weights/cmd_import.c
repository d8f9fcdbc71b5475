/* cmd_import.c - lrnn import FILE: checks exported weights against the net of their configuration, and evaluates them
 * on its task. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/paragraph.h"
#include "harness/cli/cli.h"
#include "harness/study/study.h"
#include "harness/run/trainer.h"
#include "harness/run/weights.h"
#include "harness/store/record_json.h"
#include "kernels/lib/parallel.h"

struct import_flags {
    int64_t threads;
    bool json;
};

#define AT(field) offsetof(struct import_flags, field)
static const struct option flags[] = {
    {"threads", OPT_INT, AT(threads), "auto", 1, 4096, NULL, "CPU threads; auto = all cores", OPT_AUTO},
    {"json", OPT_BOOL, AT(json), "no", 0, 0, NULL, "result as one JSON line", 0},
    {0}};

/* --- the file ----------------------------------------------------------------------------------------------------- */

#define SHOWN 100 /* most bytes of a text from the file to print */

static enum status check_metadata(const struct safetensors *file, const char *path, struct error *e) {
    const char *version = safetensors_metadata(file, "lrnn_weights"), *dtype = safetensors_metadata(file, "dtype");
    if (!version && safetensors_metadata(file, "lrnn_case"))
        return fail(e, ST_DATA, "%s is a case file, not exported weights; `lrnn verify` reads it", path);
    if (!version)
        return fail(e, ST_DATA, "%s is not a file of `lrnn export`: its __metadata__ has no lrnn_weights", path);
    if (strcmp(version, WEIGHTS_VERSION) != 0)
        return fail(e, ST_DATA, "%s: lrnn_weights is \"%.99s\", expected \"%s\"", path, version, WEIGHTS_VERSION);
    if (!safetensors_metadata(file, "config"))
        return fail(e, ST_DATA, "%s has no configuration in its __metadata__; `lrnn export` writes it", path);
    if (dtype && REAL_IS_DOUBLE != !strcmp(dtype, "fp64"))
        return fail(e, ST_DATA, "%s holds %.99s weights, and this program computes in %s; %s reads them", path, dtype,
                    REAL_NAME, REAL_IS_DOUBLE ? "lrnn" : "lrnn-f64");
    return ST_OK;
}

/* --- evaluation --------------------------------------------------------------------------------------------------- */

struct evaluation {
    struct scores val, test;
    int tensors;
    int64_t values;
};

static enum status evaluate(const struct setup *s, const struct safetensors *file, const char *path,
                            struct evaluation *result, struct error *e) {
    struct trainer *t = trainer_open(trainer_create_evaluation, s, e);
    enum status status = t ? weights_load(&t->params, file, path, e) : e->status;
    if (status == ST_OK) {
        trainer_evaluate(t, SPLIT_VAL, &result->val);
        trainer_evaluate(t, SPLIT_TEST, &result->test);
        result->tensors = t->params.n;
        result->values = params_trained(&t->params);
    }
    trainer_close(t);
    return status;
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* Compares the numbers of the file with ours: "altered" (its values are not those of `hash`), "equal",
 * "different", or "unknown" without accuracies. */
static const char *comparison(const struct safetensors *file, const char *hash, const struct evaluation *v) {
    const char *exported = safetensors_metadata(file, "values_xxh3");
    if (exported && strcmp(exported, hash) != 0) return "altered";
    const struct {
        const char *key;
        double value;
    } numbers[] = {{"val_acc", v->val.acc},   {"test_acc", v->test.acc},   {"val_macro_acc", v->val.macro_acc},
                   {"val_loss", v->val.loss}, {"test_loss", v->test.loss}, {"test_macro_acc", v->test.macro_acc}};
    if (!safetensors_metadata(file, "test_acc") || !safetensors_metadata(file, "val_acc")) return "unknown";
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        double recorded;
        const char *text = safetensors_metadata(file, numbers[i].key);
        if (text && parse_double(text, &recorded) && recorded != numbers[i].value) return "different";
    }
    return "equal";
}

/* Returns the task's name as the user gave it: "s3", for word-problem in the configuration. */
static const char *task_of(const struct spec *s, const struct safetensors *file) {
    const char *called = safetensors_metadata(file, "task");
    return called ? called : s->task.name;
}

static enum status print_json(const struct setup *s, const struct safetensors *file, const struct evaluation *v,
                              const char *verdict, struct error *e) {
    json_t *line = json_pack("{s:s, s:o, s:s, s:o, s:i, s:I, s:s}", "run_id", s->id.run_id, "task",
                             json_from_text(task_of(&s->spec, file)), "model", s->shapes.model.model->name, "layers",
                             json_from_text(s->id.model_label), "tensors", v->tensors, "params", (json_int_t)v->values,
                             "metric", metric_names[s->spec.task.shape.metric]);
    const struct {
        const char *name;
        double value;
    } numbers[] = {{"val_acc", v->val.acc},
                   {"val_macro_acc", v->val.macro_acc},
                   {"val_seq_acc", v->val.seq_acc},
                   {"val_last_acc", v->val.last_acc},
                   {"val_loss", v->val.loss},
                   {"test_acc", v->test.acc},
                   {"test_macro_acc", v->test.macro_acc},
                   {"test_seq_acc", v->test.seq_acc},
                   {"test_last_acc", v->test.last_acc},
                   {"test_loss", v->test.loss}};
    bool whole = line != NULL;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && whole; i++)
        whole = json_object_set_new(line, numbers[i].name, json_from_real(numbers[i].value)) == 0;
    whole = whole && json_object_set_new(line, "recorded", json_string(verdict)) == 0;
    if (whole) return cli_print_json(line, e);
    json_decref(line);
    return cli_print_json(NULL, e);
}

static void print_text(const struct setup *s, const struct safetensors *file, const struct evaluation *v,
                       const char *verdict) {
    const struct scores *scores[] = {&v->val, &v->test};
    static const char *const names[] = {"val", "test"};
    bool macro = s->spec.task.shape.metric == METRIC_MACRO_ACC;
    char text[SHOWN];
    printf("%s %s, run %s: %d tensors, %" PRId64 " parameters\n", text_shown(task_of(&s->spec, file), text, SHOWN),
           s->id.model_label, s->id.run_id, v->tensors, v->values);
    for (int i = 0; i < 2; i++) { /* the task's metric comes first */
        printf("%-4s ", names[i]);
        if (macro) printf("macro accuracy %.4f, token ", scores[i]->macro_acc);
        printf("accuracy %.4f, sequences %.4f, last position %.4f, loss %.6f; %" PRId64 " examples\n", scores[i]->acc,
               scores[i]->seq_acc, scores[i]->last_acc, scores[i]->loss,
               s->spec.task.shape.examples[i == 0 ? SPLIT_VAL : SPLIT_TEST]);
    }
    if (!strcmp(verdict, "equal")) printf("accuracies and losses equal the run's record to the last bit\n");
    if (strcmp(verdict, "different") != 0) return;
    printf("they differ from the run's record: ");
    for (int i = 0; i < 2; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s_%s", names[i], metric_names[s->spec.task.shape.metric]);
        const char *value = safetensors_metadata(file, key);
        printf("%s%s %saccuracy %s", i ? ", " : "", names[i], macro ? "macro " : "",
               value ? text_shown(value, text, SHOWN) : "unknown");
    }
    putchar('\n');
}

static enum status import_file(const struct safetensors *file, const char *path, const struct import_flags *f,
                               struct error *e) {
    struct evaluation v;
    char hash[HASH_HEX];
    TRY(check_metadata(file, path, e));
    TRY(weights_hash(file, hash, e));
    struct setup *s = setup_stored(safetensors_metadata(file, "config"), path, f->threads, e);
    if (!s) return e->status;
    enum status status = parallel_start(f->threads, NULL, e);
    if (status == ST_OK) status = evaluate(s, file, path, &v, e);
    if (status == ST_OK) {
        /* The id follows from the configuration and the program's versions of task and numerics. */
        const char *id = safetensors_metadata(file, "run_id");
        char text[SHOWN];
        if (id && strcmp(id, s->id.run_id) != 0)
            fprintf(stderr,
                    "lrnn: the file names run %s, its configuration is that of run %s in this program: the text was "
                    "changed, or the task or the numerics have another version; accuracies may differ\n",
                    text_shown(id, text, SHOWN), s->id.run_id);
        const char *verdict = comparison(file, hash, &v);
        if (f->json)
            status = print_json(s, file, &v, verdict, e);
        else
            print_text(s, file, &v, verdict);
        if (status == ST_OK && !strcmp(verdict, "altered"))
            status = fail(e, ST_DATA,
                          "%s: its weights are not those that were exported; take values_xxh3 out of its metadata if "
                          "they were changed on purpose",
                          path);
    }
    setup_free(s);
    return status;
}

static enum status run(int argc, char **argv, struct error *e) {
    struct import_flags f;
    struct safetensors file;
    const char *path = NULL;
    const struct flag_set set = {flags, &f};
    struct cli cli = {.command = &command_import, .sets = &set, .n_sets = 1, .positional = &path, .max_positional = 1};
    TRY(options_default(flags, &f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (!path) return fail(e, ST_USAGE, "import: say which file; usage: lrnn %s", command_import.usage);
    TRY(safetensors_read(&file, path, e));
    enum status status = import_file(&file, path, &f, e);
    safetensors_free(&file);
    return status;
}

const struct command command_import = {
    .name = "import",
    .usage = "import FILE [flags]",
    .summary = "check exported weights against their net and evaluate them on their task",
    .run = run,
};
