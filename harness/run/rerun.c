/* rerun.c - see rerun.h. */
#include "harness/run/rerun.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/study/study.h"
#include "harness/run/train.h"
#include "harness/store/record_files.h"
#include "harness/store/schema.h"
#include "harness/store/shell.h"
#include "kernels/lib/gemm.h"
#include "tasks/task.h"

/* --- the command -------------------------------------------------------------------------------------------------- */

/* Writes the flags of a table that decide the result and are not at their default. */
static void put_flags(FILE *f, const struct option *table, const struct config *config, const struct config *plain) {
    for (const struct option *o = table; o->name; o++) {
        char value[OPTION_TEXT + 1], usual[OPTION_TEXT + 1];
        if (o->flags & (OPT_RUNTIME | OPT_HERE | OPT_FOUND)) continue;
        option_format_value(o, config, value, sizeof value);
        option_format_value(o, plain, usual, sizeof usual);
        if (!strcmp(value, usual)) continue;
        fprintf(f, " --%s ", o->name);
        shell_quote(f, value);
    }
}

static enum status write_command(const struct spec *s, const char *task, FILE *f, struct error *e) {
    struct config plain;
    struct label model;
    char text[LABEL_TEXT];
    TRY(config_default(&plain, e));
    TRY(label_of(&model, s->model.model->name, s->model.model->options, s->model.inst, 0, e));
    TRY(label_shorten(&model, s->model.model->options, OPT_BLOCKS | OPT_ORDER, e));
    TRY(label_format(&model, text, sizeof text, e));
    fputs("lrnn train ", f);
    shell_quote(f, task);
    fputc(' ', f);
    shell_quote(f, text);
    put_flags(f, backbone_options, &s->config, &plain);
    put_flags(f, config_options, &s->config, &plain);
    if (*s->config.from_xxh3) fprintf(f, " --from FILE # of XXH3-128 %s", s->config.from_xxh3);
    return ST_OK;
}

/* Makes the setup of a record; NULL with *e set. */
static struct setup *stored(const struct run_record *r, int64_t threads, struct error *e) {
    char name[RUN_ID_HEX + 8];
    snprintf(name, sizeof name, "run %s", r->run.run_id);
    return setup_stored(r->config, name, threads, e);
}

enum status rerun_command(const struct run_record *r, char *text, size_t size, struct error *e) {
    struct setup *s = stored(r, 0, e);
    if (!s) return e->status;
    FILE *f = fmemopen(text, size, "w");
    enum status status = f ? write_command(&s->spec, r->run.task, f, e) : fail(e, ST_MEMORY, "no memory for a command");
    bool whole = f && fflush(f) == 0 && ftell(f) + 1 < (long)size;
    if (f) fclose(f);
    setup_free(s);
    if (status == ST_OK && !whole) return fail(e, ST_USAGE, "the command is longer than %zu characters", size - 1);
    return status;
}

bool rerun_rounds(const struct run *run, const char *now, char *text, size_t size) {
    const char *then = run_products(run);
    if (!now) now = strcmp(run->backend, "cpu") == 0 ? gemm_library() : then;
    bool other = *then && strcmp(then, now) != 0, mixed = run->mixed_builds == 1;
    text[0] = '\0';
    if (other)
        snprintf(text, size, "its matrices were multiplied by %s, and are by %s here", then, now);
    else if (mixed)
        snprintf(text, size, "it went on from a checkpoint of another build, or of other kernels of matrix products");
    return other || mixed;
}

/* --- comparing ---------------------------------------------------------------------------------------------------- */

/* Compares the numbers of two points, or of two evaluations, bit for bit, except times. False: they differ, and `text`
 * has the first difference with all digits, such as "loss 1.5, now 1.6". */
static bool same_numbers(const struct table *table, size_t object_size, const void *a, const void *b, char *text,
                         size_t size) {
    for (const struct field *f = table->fields; f->name; f++) {
        char digits[2][40];
        bool of_clock = !strcmp(f->name, "wall_s") || !strcmp(f->name, "tok_per_s");
        if (f->type != FIELD_REAL || of_clock || !field_within(f, object_size) || field_equal(f, a, b)) continue;
        const char *then = field_text(f, a, digits[0], sizeof digits[0]);
        const char *now = field_text(f, b, digits[1], sizeof digits[1]);
        if (!then && !now) continue; /* both are NAN, whose bits may differ */
        snprintf(text, size, "%s %s, now %s", f->name, then ? then : "nan", now ? now : "nan");
        return false;
    }
    return true;
}

static bool same_point(const struct curve_point *a, const struct curve_point *b, char *text, size_t size) {
    bool kind = a->split == b->split && !strcmp(a->event, b->event);
    snprintf(text, size, "%s, now %s of step %" PRId64, split_names[a->split], split_names[b->split], b->step);
    return a->step == b->step && kind && same_numbers(&curves_table, sizeof *a, a, b, text, size);
}

static bool same_evaluation(const struct eval_point *a, const struct eval_point *b, char *text, size_t size) {
    snprintf(text, size, "length %" PRId64 ", now %" PRId64, a->length, b->length);
    return a->step == b->step && a->split == b->split && a->length == b->length && a->n == b->n &&
           same_numbers(&evals_table, sizeof *a, a, b, text, size);
}

/* Compares a recorded run with its rerun. `text` says what agrees, or gives the first difference. The rerun may have
 * more evaluations at the end, because later builds test at more positions. */
static bool compare(const struct run_record *a, const struct run_record *b, char *text, size_t size) {
    char what[128];
    bool weights = *a->run.ckpt_xxh3 && *b->run.ckpt_xxh3, macro = a->run.metric == METRIC_MACRO_ACC;
    double accuracy = macro ? a->run.test_macro_acc : a->run.test_acc;
    for (int64_t i = 0; i < a->n_curve && i < b->n_curve; i++) {
        if (same_point(&a->curve[i], &b->curve[i], what, sizeof what)) continue;
        snprintf(text, size, "the curves part at step %" PRId64 ": %s", a->curve[i].step, what);
        return false;
    }
    if (a->n_curve != b->n_curve) {
        snprintf(text, size, "the curves agree as far as both go: %" PRId64 " points, now %" PRId64, a->n_curve,
                 b->n_curve);
        return false;
    }
    for (int64_t i = 0; i < a->n_evals && i < b->n_evals; i++) {
        if (same_evaluation(&a->evals[i], &b->evals[i], what, sizeof what)) continue;
        snprintf(text, size, "the curves agree; the evaluations part at number %" PRId64 ": %s", i + 1, what);
        return false;
    }
    if (a->n_evals > b->n_evals) {
        snprintf(text, size, "the curves agree; there were %" PRId64 " evaluations, now %" PRId64, a->n_evals,
                 b->n_evals);
        return false;
    }
    if (weights && strcmp(a->run.ckpt_xxh3, b->run.ckpt_xxh3) != 0) {
        snprintf(text, size, "curve and evaluations agree, the best weights do not");
        return false;
    }
    int n = snprintf(text, size, "the bits agree: %" PRId64 " point%s of the curve, %" PRId64 " evaluation%s",
                     a->n_curve, a->n_curve == 1 ? "" : "s", a->n_evals, a->n_evals == 1 ? "" : "s");
    if (b->n_evals > a->n_evals) n += snprintf(text + n, size - (size_t)n, " (now %" PRId64 ")", b->n_evals);
    if (weights) n += snprintf(text + n, size - (size_t)n, ", the best weights");
    if (isfinite(accuracy)) /* a run that ended in NaN was not tested */
        snprintf(text + n, size - (size_t)n, "; test %saccuracy %.4f", macro ? "macro " : "", accuracy);
    return true;
}

/* --- doing it ----------------------------------------------------------------------------------------------------- */

/* Removes the files of the rerun, and folders that are then empty. */
static void remove_traces(const char *folder, const char *id) {
    char path[PATH_BYTES], runs[16];
    record_path(folder, id, path, sizeof path);
    unlink(path);
    for (int i = 0; i < 2; i++)
        if (path_format(path, sizeof path, NULL, "%s/weights/%.32s%s.safetensors", folder, id, i ? ".last" : "") ==
            ST_OK)
            unlink(path);
    snprintf(runs, sizeof runs, "runs/%.2s", id);
    const char *const folders[] = {runs, "runs", "weights", "checkpoints", ""};
    for (int i = 0; i < 5; i++)
        if (path_format(path, sizeof path, NULL, "%s%s%s", folder, *folders[i] ? "/" : "", folders[i]) == ST_OK)
            rmdir(path);
}

static enum status train_again(struct setup *s, const struct run_record *r, const char *out, bool keep,
                               struct rerun_result *result, struct error *e) {
    char folder[PATH_BYTES], path[PATH_BYTES];
    if (r->n_curve == 0) /* another process wrote the record and did not know the curve */
        return fail(e, ST_DATA,
                    "rerun: run %.8s has no curve on record (%s), so there is nothing to compare; `lrnn show %.8s "
                    "--out %.400s` has the command that trains it",
                    r->run.run_id, run_status_names[r->run.status], r->run.run_id,
                    shell_word(out, folder, sizeof folder));
    if (strcmp(s->id.run_id, r->run.run_id) != 0)
        return fail(
            e, ST_DATA,
            "rerun: the configuration of run %.8s is that of run %.8s in this program: its task, the numerics or "
            "the precision is another",
            r->run.run_id, s->id.run_id);
    if (*s->spec.config.from_xxh3)
        return fail(e, ST_USAGE, "rerun: run %.8s started from a file; `lrnn show` has the command, with --from",
                    s->id.run_id);
    TRY(path_format(folder, sizeof folder, e, "%s/rerun", out));
    record_path(folder, s->id.run_id, path, sizeof path);
    if (access(path, F_OK) == 0)
        return fail(e, ST_USAGE, "rerun: %s is there already, kept by --keep; move the folder %s away", path, folder);
    TRY(text_copy(folder, s->spec.config.out, sizeof s->spec.config.out, e));
    s->spec.config.keep_weights = *r->run.ckpt ? s->spec.config.keep_weights : KEEP_NONE;
    s->spec.config.quiet = true;
    TRY(train_run(s, NULL, NULL, e));
    struct open_record *second;
    TRY(run_record_open("rerun", folder, r->run.run_id, &second, e));
    result->agrees = compare(r, &second->record, result->text, sizeof result->text);
    snprintf(result->products, sizeof result->products, "%s", run_products(&second->record.run));
    record_close(second);
    if (!keep) remove_traces(folder, s->id.run_id);
    return ST_OK;
}

enum status rerun_do(const struct run_record *r, const char *out, int64_t threads, bool keep,
                     struct rerun_result *result, struct error *e) {
    *result = (struct rerun_result){.agrees = false};
    struct setup *s = stored(r, threads, e);
    if (!s) return e->status;
    enum status status = train_again(s, r, out, keep, result, e);
    setup_free(s);
    return status;
}
