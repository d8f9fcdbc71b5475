/* site.c - see site.h. */
#include "harness/site/site.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/batch.h"
#include "harness/plot/gnuplot.h"
#include "harness/plot/plot.h"
#include "harness/table/html.h"
#include "harness/table/report.h"
#include "harness/run/rerun.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/schema.h"
#include "harness/store/shell.h"

#define GENERATOR  "lrnn report --html" /* what <meta name="generator"> of each page says, by which it is ours */
#define HEAD_BYTES 1024                 /* of a page, which its generator stands in */
#define STEM_BYTES 96
#define NAME_BYTES 128 /* of a page's file */

/* --- the folder: whose it is, which pages in it are of an earlier call -------------------------------------------- */

/* Names of the pages that a call has written: "index.html". */
struct pages {
    char **names;
    int n;
};

static bool is_page(const char *path) {
    char head[HEAD_BYTES + 1];
    FILE *f = fopen(path, "re");
    if (!f) return false;
    head[fread(head, 1, HEAD_BYTES, f)] = 0;
    fclose(f);
    return strstr(head, "name=\"generator\" content=\"" GENERATOR "\"") != NULL;
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
    if (is_page(path)) return ST_OK;
    return fail(e, ST_USAGE, "--html %.500s: that folder holds other files; name a new or an empty one", dir);
}

static enum status add_page(struct pages *pages, const char *name, struct error *e) {
    int n = pages->n;
    if ((n & (n - 1)) == 0) { /* full: there is room for the next power of two */
        char **names = realloc(pages->names, (n ? 2 * (size_t)n : 1) * sizeof *names);
        if (!names) return fail(e, ST_MEMORY, "no memory for a page");
        pages->names = names;
    }
    pages->names[n] = strdup(name);
    if (!pages->names[n]) return fail(e, ST_MEMORY, "no memory for a page");
    pages->n++;
    return ST_OK;
}

static void free_pages(struct pages *pages) {
    for (int i = 0; i < pages->n; i++) free(pages->names[i]);
    free(pages->names);
    *pages = (struct pages){0};
}

/* Removes our pictures from a folder. */
static void remove_pictures(const char *folder) {
    char path[PATH_BYTES];
    struct folder_names names;
    if (folder_names(&names, folder, NULL) != ST_OK) return;
    for (int i = 0; i < names.n; i++)
        if (text_ends(names.list[i]->d_name, ".svg") &&
            path_format(path, sizeof path, NULL, "%s/%s", folder, names.list[i]->d_name) == ST_OK &&
            own_file_check(path, NULL) == ST_OK)
            unlink(path);
    folder_names_free(&names);
}

static int by_name(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Whether a name is one of a run's page, or of a table's with a hash of six digits at its end. A copy of a page under
 * another name is its reader's. */
static bool is_name_of_ours(const char *name) {
    size_t length = strlen(name), ending = strlen(".html");
    if (length < 7 + ending || !text_ends(name, ".html")) return false;
    if (strncmp(name, "run-", 4) == 0) return true;
    const char *hash = name + length - ending - 6;
    return hash[-1] == '-' && strspn(hash, "0123456789abcdef") == 6;
}

/* A page of ours, and the folder that its pictures were in. Links are nobody's that this program makes. */
static void remove_if_ours(const char *dir, const char *name) {
    char path[PATH_BYTES];
    struct stat what;
    if (!is_name_of_ours(name) || path_format(path, sizeof path, NULL, "%s/%s", dir, name) != ST_OK) return;
    if (lstat(path, &what) != 0 || !S_ISREG(what.st_mode) || !is_page(path)) return;
    unlink(path);
    path[strlen(path) - strlen(".html")] = 0;
    if (lstat(path, &what) != 0 || !S_ISDIR(what.st_mode)) return;
    remove_pictures(path);
    rmdir(path); /* which fails where something else is in it */
}

/* Removes from `dir` our pages that are not among these, with their pictures; what is not ours stays. */
static void remove_others(const char *dir, struct pages *written) {
    qsort(written->names, (size_t)written->n, sizeof *written->names, by_name);
    struct folder_names names;
    if (folder_names(&names, dir, NULL) != ST_OK) return;
    for (int i = 0; i < names.n; i++) {
        const char *name = names.list[i]->d_name;
        if (!bsearch(&name, written->names, (size_t)written->n, sizeof *written->names, by_name))
            remove_if_ours(dir, name);
    }
    folder_names_free(&names);
}

/* --- the pages ---------------------------------------------------------------------------------------------------- */

struct site {
    const struct record_set *set;
    const struct report_filter *filter;
    const char *out, *dir;
    struct report_tables tables;
    struct pages pages; /* that have been written */
    int pictures;
    struct error no_picture; /* the first reason why one is not there */
};

/* --- a page ------------------------------------------------------------------------------------------------------- */

static enum status page_begin(struct printed *p, const char *title, struct error *e) {
    TRY(printed_begin(p, "a page", e));
    html_begin(p->f, GENERATOR, title);
    return ST_OK;
}

/* Ends it and, where all went well so far, writes DIR/NAME.html. */
static enum status page_end(struct printed *p, struct site *site, const char *name, enum status status,
                            struct error *e) {
    char path[PATH_BYTES], file[NAME_BYTES];
    html_end(p->f);
    snprintf(file, sizeof file, "%s.html", name);
    if (status == ST_OK) status = path_format(path, sizeof path, e, "%s/%s", site->dir, file);
    TRY(printed_write(p, status, path, e));
    return add_page(&site->pages, file, e);
}

/* A table's page: its task and profile in plain letters, and their hash. */
static void table_stem(const struct report_table *t, char stem[STEM_BYTES]) {
    char text[RECORD_TEXT + 64], hash[PLOT_HASH_BYTES];
    snprintf(text, sizeof text, "%s %s", t->task, t->profile);
    plot_table_hash(t, hash);
    snprintf(stem, STEM_BYTES, "%.60s-%s", text, hash);
    for (char *c = stem; *c; c++)
        if (!isalnum((unsigned char)*c)) *c = '-';
}

/* A run's page. Of one that was done again its failed attempts have pages, too. */
#define RUN_PAGE_BYTES (RUN_ID_HEX + 40)
static void run_page(const struct run_record *r, char name[RUN_PAGE_BYTES]) {
    int used = snprintf(name, RUN_PAGE_BYTES, "run-%s", r->run.run_id);
    if (r->set_aside) snprintf(name + used, RUN_PAGE_BYTES - (size_t)used, "-attempt%" PRId64, r->run.attempt);
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

enum { CURVE_WIDTH = 336, CURVE_HEIGHT = 200, CURVE_EDGE = 36 };

/* The validation metric over steps as a line in the page itself. */
static void print_curve(FILE *f, const struct run_record *r) {
    double most = 1, width = CURVE_WIDTH - 2 * CURVE_EDGE, height = CURVE_HEIGHT - 2 * CURVE_EDGE;
    int64_t last = r->run.steps > 0 ? r->run.steps : 1, points = 0;
    double x = 0, y = 0;
    fprintf(f,
            "<svg class=\"curve\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"validation %s over steps\">\n"
            "<g fill=\"none\" stroke=\"currentColor\"><path stroke-opacity=\".4\" d=\"M%d %dV%dH%d\"/>"
            "<polyline stroke-width=\"2\" points=\"",
            CURVE_WIDTH, CURVE_HEIGHT, run_metric_name(&r->run), CURVE_EDGE, CURVE_EDGE, CURVE_HEIGHT - CURVE_EDGE,
            CURVE_WIDTH - CURVE_EDGE);
    for (int64_t i = 0; i < r->n_curve; i++) {
        double value = run_point_metric(&r->run, &r->curve[i]);
        if (r->curve[i].split != SPLIT_VAL || !isfinite(value)) continue;
        x = CURVE_EDGE + width * (double)r->curve[i].step / (double)last;
        y = CURVE_EDGE + height * (1 - value / most);
        fprintf(f, "%.1f,%.1f ", x, y);
        points++;
    }
    fputs("\"/></g>\n", f);
    if (points == 1) /* which is no line */
        fprintf(f, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"currentColor\"/>\n", x, y);
    fprintf(f,
            "<g fill=\"currentColor\"><text x=\"%d\" y=\"%d\" text-anchor=\"end\">1.0</text>"
            "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0.0</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">"
            "%" PRId64 " steps</text><text x=\"%d\" y=\"%d\">validation %s</text></g>\n</svg>\n",
            CURVE_EDGE - 6, CURVE_EDGE + 5, CURVE_EDGE - 6, CURVE_HEIGHT - CURVE_EDGE, CURVE_WIDTH - CURVE_EDGE,
            CURVE_HEIGHT - CURVE_EDGE + 20, last, CURVE_EDGE, CURVE_EDGE - 14, run_metric_name(&r->run));
}

static void print_field(FILE *f, const char *name, const char *value) {
    fputs("<tr><th>", f);
    html_text(f, name);
    fputs("</th><td>", f);
    html_text(f, value);
    fputs("</td></tr>\n", f);
}

/* Every field that has a value. */
static void print_fields(FILE *f, const struct run *run) {
    for (const struct field *field = runs_table.fields; field->name; field++) {
        char number[64];
        const char *text = field_text(field, run, number, sizeof number);
        if (text) print_field(f, field->name, text);
    }
}

/* Whether the row is of the run's machine, as it was then; without the second id where one of them does not have it. */
static bool is_machine_of(const struct run *run, const struct csv_table *t, int row) {
    const char *epoch = csv_cell(t, row, "env_epoch");
    bool known = *epoch && *run->env_epoch;
    return strcmp(csv_cell(t, row, "machine_id"), run->machine_id) == 0 &&
           (!known || strcmp(epoch, run->env_epoch) == 0);
}

/* The machine's row of machines.csv, if it is there. */
static void print_machine(FILE *f, const struct site *site, const struct run *run) {
    char path[PATH_BYTES];
    struct csv_table t;
    if (path_format(path, sizeof path, NULL, "%s/machines.csv", site->out) != ST_OK ||
        csv_read(&t, path, NULL) != ST_OK)
        return;
    for (int row = 0; row < t.rows; row++) {
        if (!is_machine_of(run, &t, row)) continue;
        fputs("<h2>Machine</h2>\n<div class=\"box\"><table>\n", f);
        for (int c = 0; c < t.columns; c++) print_field(f, t.header[c], csv_text_plain(csv_cell(&t, row, t.header[c])));
        fputs("</table></div>\n", f);
        break;
    }
    csv_free(&t);
}

/* Prints the command that does the run once more, or why this program cannot. */
static void print_again(FILE *f, const struct site *site, const struct run_record *r) {
    char command[8192], out[PATH_BYTES];
    struct error why;
    fputs("<h2>Again</h2>\n<pre>", f);
    if (rerun_command(r, command, sizeof command, &why) == ST_OK) {
        html_text(f, command);
        fprintf(f, "\nlrnn rerun %.8s --out ", r->run.run_id);
        html_text(f, shell_word(site->out, out, sizeof out));
    } else {
        html_text(f, why.text);
    }
    fputs("</pre>\n", f);
}

static void print_run(FILE *f, const struct site *site, const struct report_table *t, const struct run_record *r) {
    char stem[STEM_BYTES];
    table_stem(t, stem);
    fprintf(f, "<p><a href=\"%s.html\">", stem);
    html_text(f, t->task);
    fprintf(f, "</a> · <a href=\"index.html\">all</a></p>\n<h1>Run %.8s: ", r->run.run_id);
    html_text(f, r->run.layers);
    fprintf(f, ", rate %g, seed %" PRIu64 "</h1>\n", r->run.lr, r->run.seed);
    if (run_failed(&r->run)) {
        fprintf(f, "<p><strong>%s</strong>: ", run_status_names[r->run.status]);
        html_text(f, r->run.status_detail);
        fputs("</p>\n", f);
    }
    print_curve(f, r);
    print_again(f, site, r);
    fputs("<h2>Configuration</h2>\n<pre>", f);
    html_lines(f, r->config);
    fputs("</pre>\n<h2>Record</h2>\n<div class=\"box\"><table>\n", f);
    print_fields(f, &r->run);
    fputs("</table></div>\n", f);
    print_machine(f, site, &r->run);
}

static enum status write_run(struct site *site, const struct report_table *t, const struct run_record *r,
                             struct error *e) {
    struct printed page;
    char title[RECORD_TEXT], name[RUN_PAGE_BYTES];
    snprintf(title, sizeof title, "run %.8s, %.400s", r->run.run_id, r->run.task);
    run_page(r, name);
    TRY(page_begin(&page, title, e));
    print_run(page.f, site, t, r);
    return page_end(&page, site, name, ST_OK, e);
}

/* --- a table ------------------------------------------------------------------------------------------------------ */

/* The filter of that table alone or, where its task is the first of several folds, with the other folds. */
static struct report_filter only(const struct site *site, const struct report_table *t, bool with_folds) {
    struct report_filter filter = site->filter ? *site->filter : (struct report_filter){.task = NULL};
    filter.task = t->task;
    filter.profile = t->profile;
    filter.exact = !with_folds;
    return filter;
}

static enum status print_sheets(FILE *f, struct sheets *sheets, struct error *e) {
    struct sheet_format bare = format_html;
    bare.begin = bare.end = NULL;
    enum status status = sheets_write(sheets, &bare, f, e);
    sheets_free(sheets);
    return status;
}

/* Prints the sheets of a report. A report that has none is fine: there is nothing to show. */
static enum status print_report(FILE *f, const struct site *site, const struct report *report,
                                const struct report_filter *filter, struct error *e) {
    struct report_tables tables;
    struct sheets sheets = {0};
    TRY(report_tables_make(&tables, site->set, filter, site->out, e));
    enum status status = report_make(&sheets, report, &tables, NULL, false, NULL, e);
    if (status == ST_OK) status = print_sheets(f, &sheets, e);
    sheets_free(&sheets);
    report_tables_free(&tables);
    return status == ST_DATA ? ST_OK : status;
}

/* Figures go into DIR/STEM; a page has those that are there. */
static void draw(struct site *site, const struct report_table *t, const char *stem) {
    static const char *const kinds[] = {NULL, "cost", "heat"};
    char folder[PATH_BYTES];
    struct error why;
    struct report_filter filter = only(site, t, false);
    const struct plot_view view = {.x = PLOT_AUTO, .formats = FIGURE_SVG, .none_is_fine = true};
    if (path_format(folder, sizeof folder, NULL, "%s/%s", site->dir, stem) != ST_OK) return;
    remove_pictures(folder); /* pictures of an earlier call may show other numbers */
    for (int i = 0; i < 3; i++) {
        enum status status = report_plot_view(site->set, &filter, kinds[i], &view, site->out, folder, &why);
        if (status != ST_OK && site->no_picture.status == ST_OK) site->no_picture = why;
    }
}

static void print_pictures(FILE *f, struct site *site, const char *stem) {
    char folder[PATH_BYTES];
    struct folder_names names;
    bool first = true;
    if (path_format(folder, sizeof folder, NULL, "%s/%s", site->dir, stem) != ST_OK ||
        folder_names(&names, folder, NULL) != ST_OK)
        return;
    for (int i = 0; i < names.n; i++) {
        const char *name = names.list[i]->d_name, *kind = strrchr(name, '-');
        if (*name == '.' || !text_ends(name, ".svg")) continue;
        if (first) fputs("<h2>Pictures</h2>\n", f);
        first = false;
        for (int use = 0; use < 2; use++) {
            fprintf(f, use ? "\"><img src=\"%s/" : "<div class=\"box\"><a href=\"%s/", stem);
            html_text(f, name);
        }
        fprintf(f, "\" alt=\"%.*s\" width=\"1200\"></a></div>\n", kind ? (int)strcspn(kind + 1, ".") : 0,
                kind ? kind + 1 : "");
        site->pictures++;
    }
    folder_names_free(&names);
}

static void note_marks(struct sheet *s, bool cut_off, bool failed) {
    if (cut_off) sheet_note(s, "%s", CUT_OFF_NOTE);
    if (failed) sheet_note(s, "%s", FAILED_NOTE);
}

/* A row a run, with a link to its page. */
static enum status print_runs(FILE *f, const struct report_table *t, struct error *e) {
    bool cut_off = false, failed = false;
    struct sheets sheets = {0};
    struct sheet *s = sheets_add(&sheets);
    sheet_caption(s, "Runs");
    sheet_columns(s, "run|model|>rate|>seed|>steps|end|>test");
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < t->rows[k].n_all; i++) {
            const struct run *run = &t->rows[k].all[i]->run;
            char name[RUN_PAGE_BYTES];
            bool bad = run_failed(run), cut = !bad && run_cut_off(run);
            run_page(t->rows[k].all[i], name);
            sheet_row(s);
            sheet_text(s, "%.8s", run->run_id);
            sheet_link(s, "%s.html", name);
            sheet_text(s, "%s", t->rows[k].label);
            sheet_real(s, "%g", run->lr);
            sheet_text(s, "%" PRIu64, run->seed);
            sheet_text(s, "%" PRId64 "/%" PRId64, run->steps, run->max_steps);
            sheet_text(s, "%s", bad ? run_status_names[run->status] : run->stop_reason);
            sheet_real(s, "%.4f", run_test_metric(run));
            marks_append(s, cut, bad, false);
            failed = failed || bad;
            cut_off = cut_off || cut;
        }
    note_marks(s, cut_off, failed);
    return print_sheets(f, &sheets, e);
}

static enum status write_table(struct site *site, const struct report_table *t, struct error *e) {
    struct printed page;
    char stem[STEM_BYTES];
    struct report_filter with_folds = only(site, t, true), alone = only(site, t, false);
    table_stem(t, stem);
    draw(site, t, stem);
    TRY(page_begin(&page, t->task, e));
    fputs("<p><a href=\"index.html\">all</a></p>\n", page.f);
    fputs("<h1>", page.f);
    html_text(page.f, t->task);
    fputs(", profile ", page.f);
    html_text(page.f, t->profile);
    fputs("</h1>\n", page.f);
    enum status status = print_report(page.f, site, &report_tables, &with_folds, e);
    if (status == ST_OK) status = print_report(page.f, site, &report_lengths, &alone, e);
    print_pictures(page.f, site, stem);
    if (status == ST_OK) status = print_runs(page.f, t, e);
    status = page_end(&page, site, stem, status, e);
    for (int k = 0; k < t->n_rows && status == ST_OK; k++)
        for (int i = 0; i < t->rows[k].n_all && status == ST_OK; i++) status = write_run(site, t, t->rows[k].all[i], e);
    return status;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

static enum status write_index(struct site *site, struct error *e) {
    struct printed page;
    struct sheets sheets = {0};
    struct sheet *s = sheets_add(&sheets);
    bool cut_off = false, failed = false;
    sheet_caption(s, "Tasks");
    sheet_columns(s, "task|profile|>rows|>runs|best|>acc");
    for (int i = 0; i < site->tables.n; i++) {
        const struct report_table *t = &site->tables.list[i];
        const struct report_row *best = &t->rows[0];
        char stem[STEM_BYTES];
        for (int k = 1; k < t->n_rows; k++)
            if (!(t->rows[k].estimate <= best->estimate)) best = &t->rows[k];
        bool bad = estimate_failed(best, site->tables.protocol);
        table_stem(t, stem);
        sheet_row(s);
        sheet_text(s, "%s", t->task);
        sheet_link(s, "%s.html", stem);
        sheet_text(s, "%s", t->profile);
        sheet_int(s, t->n_rows);
        sheet_int(s, t->n_runs);
        sheet_text(s, "%s", best->label);
        sheet_real(s, "%.4f", best->estimate);
        marks_append(s, best->estimate_cut, bad, false);
        cut_off = cut_off || best->estimate_cut;
        failed = failed || bad;
    }
    note_marks(s, cut_off, failed);
    enum status status = page_begin(&page, "lrnn-bench: all tasks", e);
    if (status != ST_OK) sheets_free(&sheets);
    TRY(status);
    fprintf(page.f, "<h1>Structured linear recurrences</h1>\n<p>%d records, by lrnn-bench.</p>\n", site->set->n);
    status = print_sheets(page.f, &sheets, e);
    if (site->tables.confirm) fprintf(page.f, "<p>" CONFIRMED_NOTE ".</p>\n", (long long)site->tables.confirm);
    if (status == ST_OK) status = print_report(page.f, site, &report_across, site->filter, e);
    return page_end(&page, site, "index", status, e);
}

enum status site_write(const struct record_set *set, const struct report_filter *filter, const char *out,
                       const char *dir, int *pages, int *pictures, struct error *why, struct error *e) {
    struct site site = {.set = set, .filter = filter, .out = out, .dir = dir};
    TRY(check_folder(dir, e));
    TRY(report_tables_make(&site.tables, set, filter, out, e));
    enum status status = make_folder(dir, e);
    if (status == ST_OK) status = write_index(&site, e); /* first: a call that was stopped can be repeated */
    for (int i = 0; i < site.tables.n && status == ST_OK; i++) status = write_table(&site, &site.tables.list[i], e);
    report_tables_free(&site.tables);
    if (status == ST_OK) remove_others(dir, &site.pages);
    *pages = site.pages.n;
    *pictures = site.pictures;
    *why = site.no_picture;
    free_pages(&site.pages);
    return status;
}
