/* planned.c - see planned.h. */
#include "harness/pool/planned.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/values.h"
#include "harness/rows/rows.h"
#include "harness/run/checkpoint.h"
#include "harness/store/claim.h"
#include "harness/store/record_files.h"
#include "harness/store/record_json.h"
#include "harness/store/shell.h"
#include "harness/study/row_key.h"
#include "harness/run/sweep_list.h"

/* --- lists of runs, before they are done -------------------------------------------------------------------------- */

/* Whether a time limit decides the run's steps. Then they are not known before the run is done. */
static bool is_timed(const struct spec *s, bool timed) {
    return timed || s->config.budget > 0;
}

enum status run_list_print(const struct plan *plan, const struct label *axes, bool timed, bool retry, struct error *e) {
    struct label differing;
    TRY(plan_differing_flags(plan, axes, &differing, e));
    for (int i = 0; i < plan->n; i++) {
        const struct setup *s = plan->setups[i];
        printf("%s %s %s lr %g", s->id.run_id, s->spec.task.name, s->id.model_label, s->spec.config.lr);
        for (int k = 0; k < differing.n; k++) {
            char value[OPTION_TEXT + 1];
            option_format_value(row_key_flag(label_key(&differing, k)), &s->spec.config, value, sizeof value);
            printf(" %s %s", label_key(&differing, k), *value ? value : "none");
        }
        printf(" seed %" PRId64 " steps %" PRId64 "%s%s\n", s->spec.config.seed, s->shapes.steps,
               is_timed(&s->spec, timed) ? " or those of its time" : "",
               reuse_is_there(&s->spec.config, s->id.run_id, retry) ? ", on record" : "");
    }
    return ST_OK;
}

enum status run_list_json(const struct plan *plan, bool timed, bool retry, struct error *e) {
    for (int i = 0; i < plan->n; i++) {
        const struct setup *s = plan->setups[i];
        char config[CONFIG_TEXT];
        TRY(setup_config_text(&s->spec, config, e));
        json_t *steps = is_timed(&s->spec, timed) ? json_null() : json_integer(s->shapes.steps);
        json_t *line =
            json_pack("{s:s s:o s:o s:f s:I s:o s:b s:o}", "run_id", s->id.run_id, "task",
                      json_from_text(s->spec.task.name), "model", json_from_text(s->id.model_label), "lr",
                      s->spec.config.lr, "seed", (json_int_t)s->spec.config.seed, "steps", steps, "on_record",
                      reuse_is_there(&s->spec.config, s->id.run_id, retry), "config", json_from_text(config));
        if (!line) return fail(e, ST_MEMORY, "no memory for a list of %d runs", plan->n);
        json_dumpf(line, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(line);
    }
    return ST_OK;
}

/* --- the configuration -------------------------------------------------------------------------------------------- */

/* Whether --match chose the value of a key: the key is the width or the mixer's option for the size of its state, and
 * the study gives it another value. */
static bool is_matched(const struct study *study, const struct model *model, const char *key, const char *value) {
    const struct option *o = !strncmp(key, "model.", 6) ? option_find(model->options, key + 6)
                             : !strcmp(key, "dim")      ? option_find(backbone_options, key)
                                                        : NULL;
    const char *match = study_get(study, "match", NULL), *said = study_get(study, key, NULL);
    char usual[OPTION_TEXT + 1];
    if (!o || !match || !*match || (strcmp(key, "dim") != 0 && !(o->flags & OPT_STATE))) return false;
    if (!said) said = o->value;
    return option_canonical(o, "the study", o->name, said, usual, sizeof usual, NULL) != ST_OK || strcmp(value, usual);
}

/* Writes where the value of a key is from; "default" if nothing sets it. An option of a task that nothing sets and that
 * is not at its default is from the task's name, as s5 is the word problem of the group S5. */
static void origin_of(const struct study *study, const struct spec *s, const char *key, const char *value, char *origin,
                      size_t size) {
    const struct task_choice *task = &s->task;
    const struct option *o = !strncmp(key, "task.", 5) ? option_find(task->task->options, key + 5) : NULL;
    char usual[OPTION_TEXT + 1];
    study_origin_text(study, key, origin, size);
    if (is_matched(study, s->model.model, key, value)) snprintf(origin, size, "--match");
    if (o && !study_get(study, key, NULL) &&
        option_canonical(o, "the task", o->name, o->value, usual, sizeof usual, NULL) == ST_OK &&
        strcmp(value, usual) != 0)
        snprintf(origin, size, "task %.*s", (int)strcspn(task->asked, ":"), task->asked);
}

#define MOST_LINES 256

/* Whether one of the lines "key=value" has the key of this line. */
static bool has_key(char *const *lines, int n, const char *line) {
    size_t length = strcspn(line, "=") + 1;
    for (int i = 0; i < n; i++)
        if (!strncmp(lines[i], line, length)) return true;
    return false;
}

/* Adds to `others` the lines of a configuration whose keys neither the n lines nor `others` have. Cuts up the text. */
static enum status add_others(char *text, char *const *lines, int n, struct texts *others, struct error *e) {
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        if (!has_key(lines, n, line) && !has_key(others->list, others->n, line)) TRY(texts_add(others, line, e));
    return ST_OK;
}

/* Splits the configuration of the first run into *n lines, and finds those that not all runs have, and the lines with
 * further keys of other runs. Call texts_free also after an error. */
static enum status compare_lines(struct setup *const *setups, int n_setups, char *text, char *lines[MOST_LINES], int *n,
                                 bool differs[MOST_LINES], struct texts *others, struct error *e) {
    char other[CONFIG_TEXT + 1] = "\n", *rest = NULL;
    *n = 0;
    for (char *line = strtok_r(text, "\n", &rest); line && *n < MOST_LINES; line = strtok_r(NULL, "\n", &rest))
        lines[(*n)++] = line;
    for (int i = 1; i < n_setups; i++) {
        TRY(setup_config_text(&setups[i]->spec, other + 1, e));
        for (int k = 0; k < *n; k++) {
            char whole[CONFIG_TEXT + 2];
            snprintf(whole, sizeof whole, "\n%s\n", lines[k]);
            differs[k] = differs[k] || !strstr(other, whole);
        }
        TRY(add_others(other + 1, lines, *n, others, e));
    }
    return ST_OK;
}

enum status run_print_config(const struct study *study, struct setup *const *setups, int n, struct error *e) {
    char text[CONFIG_TEXT], *lines[MOST_LINES];
    bool differs[MOST_LINES] = {false};
    struct texts others = {0};
    int n_lines = 0, n_differ = 0;
    TRY(setup_config_text(&setups[0]->spec, text, e));
    enum status status = compare_lines(setups, n, text, lines, &n_lines, differs, &others, e);
    for (int k = 0; k < n_lines && status == ST_OK; k++) {
        char key[128], origin[128];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(lines[k], "="), lines[k]);
        n_differ += differs[k];
        if (differs[k]) continue;
        origin_of(study, &setups[0]->spec, key, lines[k] + strlen(key) + 1, origin, sizeof origin);
        if (strcmp(origin, "default") != 0)
            printf("%-32s # %s\n", lines[k], origin);
        else
            puts(lines[k]);
    }
    bool any = status == ST_OK && n_differ + others.n;
    if (any) printf("# the %d runs differ in:", n);
    for (int k = 0; any && k < n_lines; k++)
        if (differs[k]) printf(" %.*s", (int)strcspn(lines[k], "="), lines[k]);
    for (int k = 0; any && k < others.n; k++) printf(" %.*s", (int)strcspn(others.list[k], "="), others.list[k]);
    if (any) putchar('\n');
    texts_free(&others);
    return status;
}

/* --- progress of sweeps ------------------------------------------------------------------------------------------- */

/* The contents of a folder of records. */
struct folder {
    const char *out;
    struct sweep_list *sweeps;
    struct claim_info *claims;
    int n_sweeps, n_claims, n_runs;
    struct record_set set;
    const struct run **runs; /* finished runs, sorted by id */
};

static int by_run_id(const void *a, const void *b) {
    return strcmp((*(const struct run *const *)a)->run_id, (*(const struct run *const *)b)->run_id);
}

static enum status sort_runs(struct folder *f, struct error *e) {
    f->runs = calloc((size_t)f->set.n + 1, sizeof *f->runs);
    if (!f->runs) return fail(e, ST_MEMORY, "no memory for %d runs", f->set.n);
    for (int i = 0; i < f->set.n; i++) {
        const struct run_record *r = &f->set.list[i];
        if (!r->set_aside && !r->again) f->runs[f->n_runs++] = &r->run;
    }
    qsort(f->runs, (size_t)f->n_runs, sizeof *f->runs, by_run_id);
    return ST_OK;
}

static const struct run *find_record(const struct folder *f, const char *run_id) {
    struct run wanted;
    const struct run *key = &wanted, **found;
    snprintf(wanted.run_id, sizeof wanted.run_id, "%s", run_id);
    found = bsearch(&key, f->runs, (size_t)f->n_runs, sizeof *f->runs, by_run_id);
    return found ? *found : NULL;
}

static bool is_worked_on(const struct folder *f, const char *run_id) {
    for (int i = 0; i < f->n_claims; i++)
        if (f->claims[i].live && !strcmp(f->claims[i].run_id, run_id)) return true;
    return false;
}

/* Returns the share of a run's steps that are done in its checkpoint. */
static double share_saved(const struct folder *folder, const struct sweep_list *p, int i) {
    int64_t step = p->steps[i] ? checkpoint_step(folder->out, p->ids[i]) : 0;
    return step > 0 ? (double)step / (double)p->steps[i] : 0;
}

/* Prints the line of a sweep. Returns true if the sweep has runs left but no process works on them. */
static bool print_sweep(const struct folder *folder, const struct sweep_list *p, int width, FILE *f) {
    char line[PATH_BYTES + 256];
    int n = 0;
    int done = 0, failed = 0, working = 0;
    double work = 0, all = 0;
    for (int i = 0; i < p->n; i++) {
        const struct run *run = find_record(folder, p->ids[i]);
        all += p->flops[i];
        work += p->flops[i] * (run ? 1 : share_saved(folder, p, i));
        done += run != NULL;
        failed += run && run_failed(run);
        working += !run && is_worked_on(folder, p->ids[i]);
    }
    n = snprintf(line, sizeof line, "%.4000s: %d of %d runs done", p->name, done, p->n);
    if (failed) n += snprintf(line + n, sizeof line - (size_t)n, ", %d of them failed", failed);
    if (working) n += snprintf(line + n, sizeof line - (size_t)n, ", %d in work", working);
    n += snprintf(line + n, sizeof line - (size_t)n, ", %d left", p->n - done);
    if (all > 0)
        n += snprintf(line + n, sizeof line - (size_t)n, "; %.0f %% of the steps' work at most", 100 * work / all);
    bool idle = done < p->n && !working;
    if (idle) snprintf(line + n, sizeof line - (size_t)n, "; nobody is at work on it");
    print_cut(f, width, line);
    return idle;
}

static int by_id(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Counts the runs in all lists that have no record. A run may be in several lists, for example with --confirm-seeds,
 * but counts once. */
static enum status count_left(const struct folder *folder, int *left, struct error *e) {
    size_t n = 0;
    for (int i = 0; i < folder->n_sweeps; i++) n += (size_t)folder->sweeps[i].n;
    const char **ids = calloc(n + 1, sizeof *ids);
    if (!ids) return fail(e, ST_MEMORY, "no memory for lists of %zu runs", n);
    n = 0;
    for (int i = 0; i < folder->n_sweeps; i++)
        for (int k = 0; k < folder->sweeps[i].n; k++)
            if (!find_record(folder, folder->sweeps[i].ids[k])) ids[n++] = folder->sweeps[i].ids[k];
    qsort(ids, n, sizeof *ids, by_id);
    *left = 0;
    for (size_t i = 0; i < n; i++) *left += i == 0 || strcmp(ids[i], ids[i - 1]) != 0;
    free(ids);
    return ST_OK;
}

/* Prints the runs of the folder that are in progress or abandoned. A killed process may leave the claim (lock file) of
 * a run that has a record; such claims are skipped. */
static void print_claims(const struct folder *folder, const struct run_look *look, FILE *f, int *working) {
    int open = 0, shown = 0, room = look && look->height ? (look->height - folder->n_sweeps - 2) / 2 : INT_MAX;
    if (room < 1) room = 1;
    for (const struct claim_info *c = folder->claims; c < folder->claims + folder->n_claims; c++) {
        if (find_record(folder, c->run_id)) continue;
        open++;
        *working += c->live;
        if (look && shown < room) run_lines_print(f, look, folder->out, c), shown++;
        if (look) continue;
        int64_t step = checkpoint_step(folder->out, c->run_id);
        char line[RECORD_TEXT + 256], saved[64] = "";
        if (step >= 0) snprintf(saved, sizeof saved, ", saved at step %" PRId64, step);
        snprintf(line, sizeof line, "  %.8s %s: %s %ld, since %s%s%s", c->run_id, c->what, c->host, c->pid, c->since,
                 saved, c->live ? "" : "; gone, its next start goes on with it");
        print_cut(f, 0, line);
    }
    if (look && open > shown) fprintf(f, "and %d more\n", open - shown);
}

enum status status_print(const char *out, const struct run_look *look, FILE *f, struct status_left *left,
                         struct error *e) {
    struct folder folder = {.out = out};
    int width = look ? look->width : 0;
    *left = (struct status_left){0};
    if (access(out, F_OK) != 0) return fail(e, ST_DATA, "cannot read the folder %s: %s", out, strerror(errno));
    enum status status = records_load(&folder.set, out, e);
    if (status == ST_OK) status = sort_runs(&folder, e);
    if (status == ST_OK) status = sweep_lists_read(out, &folder.sweeps, &folder.n_sweeps, e);
    if (status == ST_OK) status = claims_list(out, &folder.claims, &folder.n_claims, e);
    if (status == ST_OK) {
        bool idle = false;
        for (int i = 0; i < folder.n_sweeps; i++) idle = print_sweep(&folder, &folder.sweeps[i], width, f) || idle;
        print_claims(&folder, look, f, &left->working);
        if (idle && !look) fprintf(f, "(delete its list in %s/sweeps to stop counting an abandoned sweep)\n", out);
        if (folder.n_sweeps == 0 && !look)
            fprintf(f, "%d record%s, no list of a sweep: %s sweep writes one\n", folder.set.n,
                    folder.set.n == 1 ? "" : "s", shell_program());
        if (look && !left->working) fprintf(f, "no run is in progress in %s, %d on record\n", out, folder.set.n);
        status = count_left(&folder, &left->runs, e);
    }
    free(folder.runs);
    free(folder.claims);
    sweep_lists_free(folder.sweeps, folder.n_sweeps);
    records_free(&folder.set);
    return status;
}
