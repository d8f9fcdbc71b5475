/* site.c - see site.h. */
#include "harness/site/site.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/rows/facts.h"
#include "harness/rows/row_label.h"
#include "harness/site/script.h"
#include "harness/site/site_parts.h"
#include "harness/store/version.h"
#include "harness/study/row_key.h"
#include "models/model.h"
#include "tasks/task.h"

#define GENERATOR "lrnn report --html" /* by which a page is known to be ours */
#define MARK      "site("              /* with which each data file begins */

/* The files of web/, each ended by a 0; the Makefile says where they are. */
__asm__(".pushsection .rodata\n"
        "web_page: .incbin \"" WEB "/page.html\"\n.byte 0\n"
        "web_css: .incbin \"" WEB "/site.css\"\n.byte 0\n"
        "web_site: .incbin \"" WEB "/site.js\"\n.byte 0\n"
        "web_pages: .incbin \"" WEB "/pages.js\"\n.byte 0\n"
        ".popsection\n");
extern const char web_page[] __attribute__((visibility("hidden")));
extern const char web_css[] __attribute__((visibility("hidden")));
extern const char web_site[] __attribute__((visibility("hidden")));
extern const char web_pages[] __attribute__((visibility("hidden")));

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Whether a file begins so that it is ours: `mark` stands in its first bytes. */
static bool is_ours(const char *path, const char *mark) {
    char head[1024];
    FILE *f = fopen(path, "re");
    if (!f) return false;
    head[fread(head, 1, sizeof head - 1, f)] = 0;
    fclose(f);
    return strstr(head, mark) != NULL;
}

/* ST_USAGE: there is something in the folder `dir`, and its index is not ours. */
static enum status check_folder(const char *dir, struct error *e) {
    char path[PATH_BYTES];
    struct folder_names names;
    if (folder_names(&names, dir, NULL) != ST_OK) return fail(e, ST_USAGE, "--html %.500s: %s", dir, strerror(errno));
    bool empty = names.n == 0;
    folder_names_free(&names);
    if (empty) return ST_OK;
    TRY(path_format(path, sizeof path, e, "%s/index.html", dir));
    if (is_ours(path, "name=\"generator\" content=\"" GENERATOR "\"")) return ST_OK;
    return fail(e, ST_USAGE, "--html %.500s: that folder holds other files; name a new or an empty one", dir);
}

static enum status write_file(struct site *site, const char *name, const char *text, size_t size, struct error *e) {
    char path[PATH_BYTES];
    TRY(path_format(path, sizeof path, e, "%s/%s", site->dir, name));
    site->files++;
    site->bytes += (double)size;
    return write_file_atomic(path, text, size, e);
}

enum status script_begin(struct printed *p, const char *name, struct error *e) {
    TRY(printed_begin(p, "a page", e));
    fprintf(p->f, MARK "\"%s\",{\n", name);
    return ST_OK;
}

enum status script_write(struct site *site, struct printed *p, const char *name, struct error *e) {
    char file[STEM_BYTES + 32];
    fputs("});\n", p->f);
    TRY(printed_end(p, ST_OK, "a page", e));
    snprintf(file, sizeof file, "data/%s.js", name);
    enum status status = write_file(site, file, p->text, p->size, e);
    free(p->text);
    return status;
}

/* Removes our data files, and pictures, of tasks that are not there any more. */
static void remove_others(const struct site *site, const struct task_rows *tasks, int n) {
    char path[PATH_BYTES], stem[STEM_BYTES], name[STEM_BYTES + 16];
    struct folder_names names;
    if (path_format(path, sizeof path, NULL, "%s/data", site->dir) != ST_OK || folder_names(&names, path, NULL)) return;
    for (int i = 0; i < names.n; i++) {
        const char *own = names.list[i]->d_name;
        bool wanted = strncmp(own, "task-", 5) != 0;
        for (int k = 0; k < n && !wanted; k++) {
            task_stem(tasks[k].tables->task, stem);
            snprintf(name, sizeof name, "task-%s.js", stem);
            wanted = !strcmp(own, name);
        }
        if (!wanted && path_format(path, sizeof path, NULL, "%s/data/%s", site->dir, own) == ST_OK &&
            is_ours(path, MARK)) {
            unlink(path);
            snprintf(stem, sizeof stem, "%.*s", (int)strcspn(own + 5, "."), own + 5);
            if (path_format(path, sizeof path, NULL, "%s/data/%s.png", site->dir, stem) == ST_OK) unlink(path);
        }
    }
    folder_names_free(&names);
}

void task_stem(const char *task, char stem[STEM_BYTES]) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    char hash[RUN_ID_HEX];
    size_t n = strspn(task, plain);
    record_hash(task, hash);
    if (task[n] == 0 && n < STEM_BYTES)
        snprintf(stem, STEM_BYTES, "%s", task);
    else
        snprintf(stem, STEM_BYTES, "%.*s-%.6s", (int)(n < 60 ? n : 60), task, hash);
}

/* Writes the page of a kind: web/page.html with its name in place of each $PAGE and $TITLE. */
static enum status write_pages(struct site *site, struct error *e) {
    static const char *const pages[][2] = {{"index", "Results"},   {"task", "Task"}, {"mixer", "Mixer"},
                                           {"compare", "Compare"}, {"run", "Run"},   {"papers", "Papers"},
                                           {"history", "History"}};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        struct printed page;
        char name[32];
        TRY(printed_begin(&page, "a page", e));
        for (const char *at = web_page; *at; at++)
            if (!strncmp(at, "$PAGE", 5))
                fputs(pages[i][0], page.f), at += 4;
            else if (!strncmp(at, "$TITLE", 6))
                fputs(pages[i][1], page.f), at += 5;
            else
                fputc(*at, page.f);
        TRY(printed_end(&page, ST_OK, "a page", e));
        snprintf(name, sizeof name, "%s.html", pages[i][0]);
        enum status status = write_file(site, name, page.text, page.size, e);
        free(page.text);
        TRY(status);
    }
    TRY(write_file(site, "site.css", web_css, strlen(web_css), e));
    TRY(write_file(site, "site.js", web_site, strlen(web_site), e));
    return write_file(site, "pages.js", web_pages, strlen(web_pages), e);
}

/* --- index.js: all rows, and what they are of --------------------------------------------------------------------- */

static const char row_columns[] =
    "id task profile mixer setting outdated sees_future acc low high seeds solved solved_low solved_high rank lr rates "
    "params state flops precision steps max_steps batch speed speed_at disturbed cut failed grid delta delta_of_best "
    "published";

/* The number of rows of the task that validation prefers to it: 0 is the best. */
static int rank_of(const struct validation *v, int n, int k) {
    int rank = 0;
    for (int i = 0; i < n; i++) rank += validation_is_better(&v[i], &v[k]);
    return rank;
}

static double mean_steps(const struct report_row *row) {
    double sum = 0;
    for (int i = 0; i < row->n; i++) sum += (double)row->chosen[i]->run.steps;
    return sum / row->n;
}

/* Writes the row's mixer without its marks; of its name alone, or with its options. */
static void name_mixer(const struct report_row *row, bool options, char mixer[RECORD_TEXT]) {
    snprintf(mixer, RECORD_TEXT, "%.*s", (int)strcspn(row->mixer, options ? " " FUTURE_MARK : " :" FUTURE_MARK),
             row->mixer);
}

/* A row as the list of its columns. */
static void put_row(FILE *f, const struct report_row *row, int task, int rank) {
    const struct run *run = row->run;
    char mixer[RECORD_TEXT], format[PUBLISHED_FORMAT_BYTES], text[256] = "";
    name_mixer(row, true, mixer);
    put_open(f, NULL, '[');
    fprintf(f, "\"%.12s\",", row->id);
    put_int(f, NULL, task);
    put_text(f, NULL, row->profile);
    put_text(f, NULL, mixer);
    put_text(f, NULL, row->label + strlen(row->mixer));
    put_int(f, NULL, row->outdated);
    put_int(f, NULL, key_sees_future(&row->key));
    put_real(f, NULL, row->estimate);
    put_real(f, NULL, row->interval.low);
    put_real(f, NULL, row->interval.high);
    put_int(f, NULL, row->n);
    put_int(f, NULL, row->solved);
    put_real(f, NULL, row->solve_rate.low);
    put_real(f, NULL, row->solve_rate.high);
    put_int(f, NULL, rank);
    put_real(f, NULL, row->lr);
    put_int(f, NULL, row->n_rates);
    put_int(f, NULL, run->params);
    put_int(f, NULL, run->state_floats);
    put_real(f, NULL,
             run->tokens > 0 && run->steps > 0 ? run->flop_step * (double)run->steps / (double)run->tokens : NAN);
    put_text(f, NULL, row_key_value(&row->key, "precision"));
    put_real(f, NULL, mean_steps(row));
    put_int(f, NULL, run->max_steps);
    put_int(f, NULL, run->batch);
    put_real(f, NULL, row->tok_per_s);
    if (isfinite(row->tok_per_s)) speed_place(&row->speed, text, sizeof text);
    put_text(f, NULL, text);
    put_int(f, NULL, row->disturbed);
    put_int(f, NULL, row->estimate_cut);
    put_int(f, NULL, row->n_estimate_failed);
    put_int(f, NULL, row->n_all);
    put_real(f, NULL, row->delta);
    put_int(f, NULL, row->published.best);
    *text = 0;
    published_format(&row->published, format);
    if (isfinite(row->published.value)) snprintf(text, sizeof text, format, row->published.value);
    if (*text && row->unlike_published) strcat(text, SETTINGS_MARK);
    put_text(f, NULL, text);
    put_close(f, ']');
}

static enum status put_rows(FILE *f, const struct task_rows *tasks, int n, struct error *e) {
    put_text(f, "columns", row_columns);
    put_open(f, "rows", '[');
    for (int t = 0; t < n; t++) {
        const struct task_rows *task = &tasks[t];
        struct validation *v = malloc((size_t)task->n * sizeof *v);
        if (!v) return fail(e, ST_MEMORY, "no memory for a page");
        for (int k = 0; k < task->n; k++) v[k] = row_validation(&task->rows[k]);
        for (int k = 0; k < task->n; k++) put_row(f, &task->rows[k], t, rank_of(v, task->n, k));
        free(v);
    }
    put_close(f, ']');
    return ST_OK;
}

static void put_tasks(FILE *f, const struct task_rows *tasks, int n) {
    put_open(f, "tasks", '[');
    for (int t = 0; t < n; t++) {
        const struct run *run = tasks[t].rows[0].run;
        char stem[STEM_BYTES];
        task_stem(run->task, stem);
        put_open(f, NULL, '{');
        put_text(f, "label", run->task);
        put_text(f, "stem", stem);
        put_text(f, "suite", run->suite);
        put_text(f, "metric", run_metric_name(run));
        put_real(f, "chance", run_chance(run));
        put_int(f, "runs", tasks[t].n_runs);
        put_close(f, '}');
    }
    put_close(f, ']');
}

/* Whether a row is of that mixer that comes before row number `end` of all tasks. */
static bool has_mixer(const struct task_rows *tasks, int n, const char *name, int end) {
    char own[RECORD_TEXT];
    for (int t = 0, at = 0; t < n; t++)
        for (int k = 0; k < tasks[t].n && at < end; k++, at++) {
            name_mixer(&tasks[t].rows[k], false, own);
            if (!strcmp(own, name)) return true;
        }
    return false;
}

/* The mixers of rows that the program does not have, by their names alone. */
static void put_unknown_mixers(FILE *f, const struct task_rows *tasks, int n) {
    char name[RECORD_TEXT];
    for (int t = 0, at = 0; t < n; t++)
        for (int k = 0; k < tasks[t].n; k++, at++) {
            name_mixer(&tasks[t].rows[k], false, name);
            if (model_find(name) || has_mixer(tasks, n, name, at)) continue;
            put_open(f, NULL, '{');
            put_text(f, "name", name);
            put_text(f, "title", name);
            put_text(f, "summary", "this program does not have it, and can train none of its rows");
            put_open(f, "options", '[');
            put_close(f, ']');
            put_close(f, '}');
        }
}

/* The mixers that have rows: those of the program in the order of its list, then the others. */
static void put_mixers(FILE *f, const struct task_rows *tasks, int n) {
    put_open(f, "mixers", '[');
    for (const struct model *const *m = model_list(); *m; m++) {
        if (!has_mixer(tasks, n, (*m)->name, INT_MAX)) continue;
        put_open(f, NULL, '{');
        put_text(f, "name", (*m)->name);
        put_text(f, "title", (*m)->title ? (*m)->title : (*m)->name);
        put_text(f, "summary", (*m)->summary);
        put_text(f, "equation", (*m)->equation);
        put_int(f, "causal", (*m)->causal);
        put_open(f, "options", '[');
        for (const struct option *o = (*m)->options; o && o->name; o++) {
            put_open(f, NULL, '[');
            put_text(f, NULL, o->name);
            put_text(f, NULL, o->value);
            put_text(f, NULL, o->help);
            put_close(f, ']');
        }
        put_close(f, ']');
        put_close(f, '}');
    }
    put_unknown_mixers(f, tasks, n);
    put_close(f, ']');
}

/* The rows of a table of the folder, where `column` begins with `value`; none where there is no such file. */
static void put_table(FILE *f, const char *key, const struct site *site, const char *file, const char *column,
                      const char *value) {
    char path[PATH_BYTES];
    struct csv_table t;
    put_open(f, key, '[');
    if (path_format(path, sizeof path, NULL, "%s/%s", site->out, file) == ST_OK && csv_read(&t, path, NULL) == ST_OK) {
        for (int row = 0; row < t.rows; row++) {
            if (strncmp(csv_cell(&t, row, column), value, strlen(value)) != 0) continue;
            put_open(f, NULL, '{');
            for (int c = 0; c < t.columns; c++)
                if (*csv_cell(&t, row, t.header[c]))
                    put_text(f, t.header[c], csv_text_plain(csv_cell(&t, row, t.header[c])));
            put_close(f, '}');
        }
        csv_free(&t);
    }
    put_close(f, ']');
}

static enum status write_index(struct site *site, const struct task_rows *tasks, int n, const char *broken,
                               struct error *e) {
    struct printed data;
    const struct protocol *protocol = protocol_of(site->tables.protocol);
    const char *last = "", *folder = strrchr(site->out, '/');
    TRY(script_begin(&data, "index", e));
    FILE *f = data.f;
    for (int i = 0; i < site->set->n; i++)
        if (strcmp(site->set->list[i].run.finished, last) > 0) last = site->set->list[i].run.finished;
    put_int(f, "records", site->set->n);
    put_text(f, "folder", folder && folder[1] ? folder + 1 : site->out);
    put_text(f, "last", last);
    put_text(f, "version", build_info()->version);
    put_text(f, "commit", build_info()->commit);
    put_text(f, "protocol", protocol->name);
    put_text(f, "phrase", protocol->phrase);
    put_real(f, "level", protocol->level);
    put_int(f, "confirm", site->tables.confirm);
    put_open(f, "broken", '[');
    for (const char *line = broken; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        char text[2 * sizeof e->text];
        snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
        put_text(f, NULL, text);
    }
    put_close(f, ']');
    put_mixers(f, tasks, n);
    put_tasks(f, tasks, n);
    enum status status = put_rows(f, tasks, n, e);
    if (status == ST_OK) return script_write(site, &data, "index", e);
    return printed_end(&data, status, "a page", e);
}

static enum status write_speed(struct site *site, struct error *e) {
    struct printed data;
    TRY(script_begin(&data, "machines", e));
    put_table(data.f, "machines", site, "machines.csv", "machine_id", "");
    put_table(data.f, "layers", site, "perf.csv", "bench", "layer");
    return script_write(site, &data, "machines", e);
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

/* Joins the tables of each task. */
static int join_tasks(const struct report_tables *tables, struct task_rows *tasks) {
    int n = 0;
    for (int i = 0; i < tables->n; i++) {
        const struct report_table *t = &tables->list[i];
        if (n == 0 || strcmp(tasks[n - 1].tables->task, t->task) != 0)
            tasks[n++] = (struct task_rows){.tables = t, .rows = t->rows};
        tasks[n - 1].n_tables++;
        tasks[n - 1].n += t->n_rows;
        tasks[n - 1].n_runs += t->n_runs;
    }
    return n;
}

static enum status write_all(struct site *site, const struct site_request *r, struct error *e) {
    char path[PATH_BYTES];
    struct task_rows *tasks = calloc((size_t)site->tables.n + 1, sizeof *tasks);
    if (!tasks) return fail(e, ST_MEMORY, "no memory for a page");
    int n = join_tasks(&site->tables, tasks);
    enum status status = path_format(path, sizeof path, e, "%s/data", site->dir);
    if (status == ST_OK) status = make_folder(path, e);
    if (status == ST_OK) status = write_pages(site, e); /* first: a call that was stopped can be repeated */
    if (status == ST_OK) status = write_index(site, tasks, n, r->broken, e);
    if (status == ST_OK) status = write_speed(site, e);
    for (int i = 0; i < n && status == ST_OK; i++) status = site_write_task(site, &tasks[i], e);
    if (status == ST_OK) status = site_write_papers(site, e);
    if (status == ST_OK) status = site_write_history(site, r->history, r->broken_history, e);
    if (status == ST_OK) remove_others(site, tasks, n);
    free(tasks);
    return status;
}

enum status site_write(const struct site_request *r, int *files, double *bytes, struct error *e) {
    const struct report_filter *filter = r->filter;
    bool part = filter && (filter->task || filter->profile || filter->where);
    struct site site = {.set = r->set, .out = r->out, .dir = r->dir, .part = part};
    TRY(check_folder(r->dir, e));
    if (r->set->n || !r->history->n) TRY(report_tables_make(&site.tables, r->set, r->filter, r->out, e));
    enum status status = write_all(&site, r, e);
    report_tables_free(&site.tables);
    *files = site.files;
    *bytes = site.bytes;
    return status;
}
