/* paper.c - see paper.h; the cells are made by harness/rows/paper_cells.h. */
#include "harness/table/paper.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/logs.h"
#include "harness/rows/row_label.h"
#include "harness/rows/setting.h"
#include "harness/store/record_files.h"
#include "harness/store/shell.h"
#include "harness/run/sweep_list.h"

/* --- the paper's rows and columns --------------------------------------------------------------------------------- */

static void append_marks(struct sheet *s, const struct paper_cell *c) {
    marks_append(s, c->cut_off, c->failed + c->earlier > 0, paper_cell_is_other(c));
    if (c->sees_future) sheet_append(s, FUTURE_MARK);
}

/* Adds "12.3k!" tokens per second, or "0.998* / 1.000 +- 0.06": our number, then the paper's if the paper has
 * numbers. */
static void add_number(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    if (p->speed) {
        sheet_count(s, c->ours);
        if (c->disturbed) sheet_append(s, DISTURBED_MARK);
        if (c->done) append_marks(s, c);
        if (c->done && p->facts.speeds_differ) {
            char place[SPEED_PLACE];
            speed_place(&c->speed, place, sizeof place);
            sheet_footnote(s, "%s, %s: %s", p->rows[c->row], p->columns[c->column], place);
        }
        return;
    }
    sheet_real(s, "%.3f", c->ours);
    if (isfinite(c->ours)) append_marks(s, c);
    if (!p->has_published) return;
    published_append(s, &c->published);
    if (p->protocol == PROTOCOL_BEST_OF_GRID && isfinite(c->ours) && c->published.n &&
        c->done > c->published.n * c->settings)
        sheet_append(s, " (best of %d, paper: of %d)", c->done, c->published.n * c->settings);
}

/* Adds the row's mean over its columns, with the marks of its cells. */
static void add_overall(struct sheet *s, const struct paper_cells *p, int row) {
    struct paper_cell all = {.row = row, .ours = p->overall[row].ours, .published = PUBLISHED_NONE};
    all.published = p->overall[row].published;
    for (int c = 0; c < p->n_columns; c++) {
        const struct paper_cell *cell = paper_cell_at(p, row, c);
        all.cut_off = all.cut_off || cell->cut_off;
        all.failed += cell->failed + cell->earlier;
        all.other = all.other || paper_cell_is_other(cell);
        all.sees_future = all.sees_future || cell->sees_future;
    }
    add_number(s, p, &all);
}

/* Adds a note on each difference between the cells' settings and the paper's; a text for several models comes once. */
static void note_differences(struct sheet *s, const struct paper_cells *p) {
    uint64_t any = 0;
    for (int i = 0; i < p->n_rows * p->n_columns; i++) any |= p->cells[i].differs;
    for (int k = 0; k < PAPER_MOST_DIFFERENCES; k++) {
        const char *text = paper_difference(p, any, k), *model, *other;
        char models[LABEL_TEXT] = "";
        if (!text) continue;
        for (int i = k; (other = plan_file_differs(&p->request.file, p->resolved.profile, i, &model)) != NULL; i++) {
            size_t used = strlen(models);
            if (any >> i & 1 && *model && !strcmp(other, text))
                snprintf(models + used, sizeof models - used, ", %s", model);
        }
        sheet_note(s, SETTINGS_MARK " Not the paper's setting%s: %s.", models, text);
    }
}

/* Adds the notes that explain the matrix: its numbers and marks, or speeds, and why cells have another setting. */
static void note_matrix(struct sheet *s, const struct paper_cells *p) {
    bool disturbed = false, other = false;
    char unlike[RECORD_TEXT] = "";
    struct marks marks = {0};
    for (int i = 0; i < p->n_rows * p->n_columns; i++) {
        const struct paper_cell *c = &p->cells[i];
        disturbed = disturbed || c->disturbed;
        other = other || (c->other && c->done);
        if (c->done) unlike_add(unlike, c->unlike);
        marks.cut_off = marks.cut_off || c->cut_off;
        marks.runs += c->done + c->earlier;
        marks.failed += c->failed + c->earlier;
    }
    if (p->speed) {
        sheet_note(s, "Tokens a second of training steps, each model alone, the latest measurement in perf.csv. The "
                      "paper's figures are of another machine.");
        note_speeds(s, NULL, "Measured: %s", &p->facts);
        if (!p->facts.speeds_differ) sheet_note_on_strong(s, "Bold: the fastest in its column.");
        if (disturbed) sheet_note(s, "%s.", DISTURBED_NOTE);
    } else {
        if (p->shortened)
            sheet_note(s,
                       "Shortened: none of the whole plan's runs is on record there; these are of its latest sweep "
                       "there, with %s.",
                       p->flags);
        if (p->n_done == 0)
            sheet_note(s, "None of its runs is on record there; runs of another profile, or with other flags, are "
                          "asked for by --profile and --where.");
        sheet_note(s, "%s%s.", protocol_of(p->protocol)->phrase, p->has_published ? " / the paper's" : "");
        sheet_note_on_strong(s, "Bold: the best of ours in its column.");
        if (p->lengths[0])
            sheet_note(s, "at N: accuracy of the test sequences of length N alone, of images of those with N pixels a "
                          "side.");
        marks.runs /= p->n_lengths; /* each run was counted once per length */
        marks.failed /= p->n_lengths;
        marks_note(s, &marks);
    }
    if (other) marks_note_unlike(s, NULL, unlike);
    note_own_numbers(s, p->has_published && p->published.own);
    marks_note_facts(s, &p->facts);
    note_differences(s, p);
    if (p->short_tasks) sheet_note(s, "Tasks: %s.", p->resolved.tasks);
    if (*paper_setting(p, "note", "")) sheet_note(s, "%s.", paper_setting(p, "note", ""));
}

static void add_matrix(struct sheets *sheets, const struct paper_cells *p) {
    struct sheet *s = sheets_add(sheets);
    const char *columns = paper_setting(p, "columns", ""), *dot = strrchr(columns, '.');
    sheet_name(s, "%s", p->request.file.name);
    sheet_caption(s, "%s; profile %s%s%s, %d of %d %s", paper_setting(p, "title", p->request.file.name),
                  p->resolved.profile, *p->flags ? ", " : "", p->flags, p->n_done, p->n_planned,
                  p->speed ? "measured" : "runs");
    sheet_column(s, SHEET_LEFT, "%s", *columns ? dot ? dot + 1 : columns : "model");
    sheet_names_rows(s);
    for (int c = 0; c < p->n_columns; c++) sheet_column(s, SHEET_RIGHT, "%s", p->columns[c]);
    if (p->overall) sheet_column(s, SHEET_RIGHT, "mean");
    for (int r = 0; r < p->n_rows; r++) {
        sheet_row(s);
        sheet_text(s, "%s", p->rows[r]);
        for (int c = 0; c < p->n_columns; c++) add_number(s, p, paper_cell_at(p, r, c));
        if (p->overall) add_overall(s, p, r);
    }
    for (int c = 1; c <= p->n_columns + (p->overall != NULL) && !p->facts.speeds_differ; c++) sheet_strong_best(s, c);
    note_matrix(s, p);
}

/* Adds the first row of each column that is above the plan's bound, in place of a paper's "fewest". */
static void add_least(struct sheets *sheets, const struct paper_cells *p) {
    struct sheet *s = sheets_add(sheets);
    sheet_caption(s, "First of these rows above %g", p->bound);
    sheet_columns(s, "column|>published|first row|>accuracy");
    for (const struct paper_least *l = p->least; l < p->least + p->n_least; l++) {
        const struct paper_cell *shown = paper_cell_at(p, l->row < 0 ? 0 : l->row, l->column);
        bool other = false;
        for (int r = 0; r < p->n_rows; r++) {
            const struct paper_cell *cell = paper_cell_at(p, r, l->column);
            other |= paper_cell_is_other(cell);
            if (l->row < 0 && !(cell->ours <= shown->ours)) shown = isfinite(cell->ours) ? cell : shown;
        }
        sheet_row(s);
        sheet_text(s, "%s", p->columns[l->column]);
        published_cell(s, other ? &PUBLISHED_NONE : &l->published);
        sheet_text(s, "%s", l->row >= 0 ? p->rows[l->row] : l->not_run ? "-" : "none");
        if (l->not_run) sheet_footnote(s, "rows without a run that might be it: %d", l->not_run);
        sheet_real(s, "%.3f", shown->ours);
        if (isfinite(shown->ours)) append_marks(s, shown);
    }
    sheet_note(s,
               "accuracy: of that row, or the best if there is none, with the marks of the table above. published: the "
               "option's value in the paper, unless the column has ~.");
}

/* --- cell by cell ------------------------------------------------------------------------------------------------- */

/* Adds "553..15800/15800": fewest and most steps done, of the schedule's; "-": nothing is done. */
static void add_steps(struct sheet *s, const struct paper_cell *c) {
    if (c->most < 0) {
        sheet_text(s, "-");
        return;
    }
    if (c->least < c->most)
        sheet_text(s, "%" PRId64 "..%" PRId64, c->least, c->most);
    else
        sheet_text(s, "%" PRId64, c->most);
    sheet_append(s, "/%" PRId64, c->of);
    sheet_sort_key(s, (double)c->most);
}

static void note_spreads(struct sheet *s, const struct paper_cells *p) {
    static const char *const kinds[][2] = {
        {"sd", "the standard deviation of the paper's values; its interval is that of their mean, 95% by t"},
        {"ci90", "the paper's interval of 90%"}};
    for (int k = 0; k < 2; k++) {
        bool any = false;
        for (int i = 0; i < p->n_rows * p->n_columns; i++) {
            const struct published_value *v = &p->cells[i].published;
            any = any || (isfinite(v->spread) && !strcmp(v->kind, kinds[k][0]));
        }
        if (any) sheet_note(s, "+-: %s. within: it and our interval overlap.", kinds[k][1]);
    }
}

static void add_cells(struct sheets *sheets, const struct paper_cells *p) {
    struct sheet *s = sheets_add(sheets);
    sheet_caption(s, "Cell by cell of %s; profile %s", paper_setting(p, "title", p->request.file.name),
                  p->resolved.profile);
    sheet_name(s, "%s-cells", p->request.file.name);
    sheet_columns(s, "row|column|>published|>ours|>interval|>runs|>steps|verdict|run");
    sheet_on_request(s);
    for (int i = 0; i < p->n_rows * p->n_columns; i++) {
        const struct paper_cell *c = &p->cells[i];
        if (c->planned == 0) continue;
        sheet_row(s);
        sheet_text(s, "%s", p->rows[c->row]);
        sheet_text(s, "%s", p->columns[c->column]);
        published_cell(s, &c->published);
        sheet_real(s, "%.3f", c->ours);
        if (isfinite(c->ours)) append_marks(s, c);
        if (c->interval.kind == INTERVAL_NONE)
            sheet_text(s, "-");
        else
            sheet_text(s, "[%.3f, %.3f]", c->interval.low, c->interval.high);
        if (c->interval.kind != INTERVAL_NONE) sheet_sort_key(s, c->interval.low);
        sheet_text(s, "%d/%d", c->done, c->planned);
        sheet_sort_key(s, (double)c->done / c->planned);
        if (c->failed) sheet_footnote(s, "%d of them failed and count as chance", c->failed);
        if (c->earlier == 1) sheet_footnote(s, "1 earlier attempt failed and counts as chance");
        if (c->earlier > 1) sheet_footnote(s, "%d earlier attempts failed and count as chance", c->earlier);
        if (c->without)
            sheet_footnote(s, "%d of them have no test sequences of that length and do not count there", c->without);
        if (p->tell_builds && c->other_builds)
            sheet_footnote(s, "%d of them by another build of the program; --force does them again", c->other_builds);
        add_steps(s, c);
        sheet_text(s, "%s", paper_verdict_names[c->verdict]);
        sheet_text(s, "%s", "");
        for (const char *id = c->run_ids; id && *id; id += strcspn(id, " "), id += strspn(id, " "))
            sheet_append(s, "%s%.8s", id > c->run_ids ? " " : "", id);
    }
    sheet_note(s,
               "within: the paper's number, as it is rounded, reaches our interval, or lies within %.2f of ours where "
               "there is none. unfinished: runs are missing that could change the verdict: planned ones, or as many as "
               "the paper has of each setting. cut off: runs stopped before the end of their schedule, and a higher "
               "number could change the verdict.",
               PAPER_MARGIN);
    note_spreads(s, p);
    sheet_note(s, "runs: done/planned. steps: done, from the fewest to the most, of the schedule's.");
}

/* --- for programs ------------------------------------------------------------------------------------------------- */

static void add_data(struct sheets *sheets, const struct paper_cells *p) {
    struct sheet *s = sheets_add(sheets);
    sheet_columns(s, "plan|profile|protocol|row|column|published|ours|ci_lo|ci_hi|ci_kind|n|n_planned|n_failed|"
                     "steps_least|steps_most|steps_planned|verdict|cut_off|other_setting|run_ids|differs|"
                     "published_spread|published_spread_kind|quiet|sees_future|speed_of|flags");
    for (int i = 0; i < p->n_rows * p->n_columns; i++) {
        const struct paper_cell *c = &p->cells[i];
        const char *before = "", *text;
        if (c->planned == 0) continue;
        sheet_row(s);
        sheet_text(s, "%s", p->request.file.name);
        sheet_text(s, "%s", p->resolved.profile);
        sheet_text(s, "%s", protocol_of(p->protocol)->name);
        sheet_text(s, "%s", p->rows[c->row]);
        sheet_text(s, "%s", p->columns[c->column]);
        sheet_real(s, "%g", c->published.value);
        sheet_real(s, "%g", c->ours);
        sheet_real(s, "%g", c->interval.kind == INTERVAL_NONE ? NAN : c->interval.low);
        sheet_real(s, "%g", c->interval.kind == INTERVAL_NONE ? NAN : c->interval.high);
        sheet_text(s, "%s", interval_kind_name(c->interval.kind));
        sheet_int(s, c->done);
        sheet_int(s, c->planned);
        sheet_int(s, c->failed + c->earlier);
        sheet_int(s, c->least);
        sheet_int(s, c->most);
        sheet_int(s, c->of);
        sheet_text(s, "%s", c->verdict == PAPER_NONE ? "" : paper_verdict_names[c->verdict]);
        sheet_int(s, c->any_cut_off);
        sheet_int(s, paper_cell_is_other(c));
        sheet_text(s, "%s", c->run_ids ? c->run_ids : "");
        sheet_text(s, "%s", before);
        for (int k = 0; k < PAPER_MOST_DIFFERENCES; k++) {
            if (!(text = paper_difference(p, c->differs, k))) continue;
            sheet_append(s, "%s%s", before, text);
            before = "; ";
        }
        sheet_real(s, "%g", c->published.spread);
        sheet_text(s, "%s", isfinite(c->published.spread) ? c->published.kind : "");
        sheet_int(s, p->speed && c->done ? !c->disturbed : -1);
        sheet_int(s, c->sees_future);
        char place[SPEED_PLACE] = "";
        if (p->speed && c->done) speed_place(&c->speed, place, sizeof place);
        sheet_text(s, "%s", place);
        sheet_text(s, "%s", p->flags);
    }
}

static enum status make(struct sheets *sheets, const struct paper_cells *cells, bool data, struct error *e) {
    (void)e;
    if (data) {
        add_data(sheets, cells);
    } else {
        add_matrix(sheets, cells);
        if (cells->n_least) add_least(sheets, cells);
        if (!cells->speed) add_cells(sheets, cells);
    }
    return ST_OK;
}

const struct report report_paper = {
    .name = "paper",
    .help = "with --paper PLAN: the paper's table, with its numbers, ours, and a verdict on each",
    .make_plan = make,
};

/* --- shortened plans ---------------------------------------------------------------------------------------------- */

/* Whether the request is for a whole plan, without changes from the command line. */
static bool is_whole(const struct request *r) {
    return !*r->tasks && !*r->profile && !r->said.n && !*r->config_file;
}

/* Replaces the request of a plan by the request of the latest sweep that did a part of the plan or shorter runs, and
 * has records in the folder. *words: how it differs, "s3-250 seeds=2 stop-after=60"; "": there is no such sweep.
 * ST_DATA: a list of a sweep is damaged. */
static enum status find_shortened(struct request *r, const struct record_set *set, const char *out,
                                  char words[LABEL_TEXT], struct error *e) {
    struct sweep_list *lists, *latest = NULL;
    size_t used = 0;
    int n;
    words[0] = 0;
    enum status status = sweep_lists_read(out, &lists, &n, e);
    for (struct sweep_list *l = lists; l < lists + n; l++) {
        const char *plan = label_get(&l->call, "plan");
        int k = 0;
        if (!plan || strcmp(plan, r->name) != 0 || (latest && l->written_ns <= latest->written_ns)) continue;
        while (k < l->n && !report_has_run(set, l->ids[k])) k++;
        if (k < l->n) latest = l;
    }
    if (latest) status = request_recall(r, &latest->call, e);
    for (int i = 0; latest && i < latest->call.n; i++) {
        const char *key = label_key(&latest->call, i);
        bool tasks = !strcmp(key, "tasks");
        if (!strcmp(key, "plan") || !strcmp(key, "profile")) continue;
        used += (size_t)snprintf(words + used, LABEL_TEXT - used, "%s%s%s%s", used ? " " : "", tasks ? "" : key,
                                 tasks ? "" : "=", label_value(&latest->call, i));
    }
    sweep_lists_free(lists, n);
    return status;
}

/* --- from the command line ---------------------------------------------------------------------------------------- */

static enum status print_request(const struct request *request, const char *flags, bool tell_builds, const char *out,
                                 const struct sheet_view *view, const struct sheet_format *format, FILE *f,
                                 struct error *e) {
    struct sheets sheets = {0};
    struct record_set set = {0};
    char words[LABEL_TEXT] = "";
    struct paper_cells *p = calloc(1, sizeof *p);
    enum status status = p ? report_load(&set, out, e) : fail(e, ST_MEMORY, "no memory for a table");
    if (p) *p = (struct paper_cells){.request = *request, .set = &set, .flags = flags, .tell_builds = tell_builds};
    if (status == ST_OK) status = paper_cells_make(p, out, e);
    if (status == ST_OK && p->n_done == 0 && is_whole(request)) {
        struct request part = *request;
        status = find_shortened(&part, &set, out, words, e);
        if (status == ST_OK && *words) {
            paper_cells_free(p);
            *p = (struct paper_cells){
                .request = part, .set = &set, .flags = words, .tell_builds = tell_builds, .shortened = true};
            status = paper_cells_make(p, out, e);
        }
    }
    if (status == ST_OK) status = report_make(&sheets, &report_paper, NULL, p, format->for_programs, view, e);
    if (status == ST_OK) status = sheets_write(&sheets, format, f, e);
    sheets_free(&sheets);
    if (p) paper_cells_free(p);
    free(p);
    records_free(&set);
    return status;
}

/* Applies flags such as "precision=bf16 seeds=2" to the plan, as `lrnn sweep` does. */
static enum status take_flags(struct request *r, const char *where, struct error *e) {
    struct label flags = {0};
    TRY(label_parse_pairs(&flags, "--where", where, " ", e));
    for (int i = 0; i < flags.n; i++) {
        bool done = !strncmp(label_key(&flags, i), "task.", 5) || !strncmp(label_key(&flags, i), "model.", 6);
        if (done) TRY(request_say(r, label_key(&flags, i), label_value(&flags, i), e));
        if (done) continue;
        if (!strcmp(label_key(&flags, i), "seed"))
            return fail(e, ST_USAGE, "--where seed: with --paper it is seeds=3 (1 to 3), or a list such as seeds=3,7");
        TRY(request_flag(r, label_key(&flags, i), label_value(&flags, i), &done, e));
        if (!done)
            return fail(e, ST_USAGE,
                        "--where %s: with --paper it takes flags of `lrnn sweep`, for example precision=bf16",
                        label_key(&flags, i));
    }
    return ST_OK;
}

/* Makes a request from the words of a command line. The caller frees it. NULL: no such plan, or no memory. */
static struct request *new_request(const struct paper_choice *choice, struct error *e) {
    struct request *r = calloc(1, sizeof *r);
    enum status status = r ? request_words(r, &choice->name, 1, e) : fail(e, ST_MEMORY, "no memory for a plan");
    if (status == ST_OK && r->file.lines.n == 0)
        status = fail(e, ST_USAGE, "--paper %.60s: that is a task; `lrnn list papers` names the plans", choice->name);
    if (status == ST_OK) status = text_copy(choice->tasks, r->tasks, sizeof r->tasks, e);
    if (status == ST_OK) status = text_copy(choice->profile, r->profile, sizeof r->profile, e);
    if (status == ST_OK) status = take_flags(r, choice->where, e);
    if (status == ST_OK) return r;
    free(r);
    return NULL;
}

enum status paper_cells_of(struct paper_cells *p, const struct paper_choice *choice, const struct record_set *set,
                           const char *out, struct error *e) {
    struct request *r = new_request(choice, e);
    if (!r) return e->status;
    *p = (struct paper_cells){.request = *r, .flags = choice->where, .set = set};
    free(r);
    return paper_cells_make(p, out, e);
}

enum status paper_print(const struct paper_choice *choice, const char *out, const struct sheet_view *view,
                        const struct sheet_format *format, FILE *f, struct error *e) {
    struct request *r = new_request(choice, e);
    if (!r) return e->status;
    enum status status = print_request(r, choice->where, false, out, view, format, f, e);
    free(r);
    return status;
}

enum status paper_print_request(const struct request *request, const char *out, const struct sheet_format *format,
                                FILE *f, struct error *e) {
    return print_request(request, "", true, out, NULL, format, f, e);
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* Says why a plan's speeds were not drawn and, if some are missing, which command measures them. */
static enum status tell_missing_speeds(const struct plan *plan, const struct request *r, bool speed, const char *out,
                                       const struct error *why, struct error *e) {
    struct perf_row row;
    char folder[4 * OPTION_TEXT], word[4 * OPTION_TEXT];
    int missing = 0;
    for (int i = 0; i < plan->n; i++) missing += !perf_latest(out, plan->setups[i]->id.cell_id, NULL, &row);
    if ((why->status != ST_USAGE && why->status != ST_DATA) || !missing) return fail(e, why->status, "%s", why->text);
    if (speed)
        return fail(e, ST_USAGE,
                    "%s/perf.csv has no speed of %d of the %d runs of %s; lrnn sweep %s --out %s measures them", out,
                    missing, plan->n, r->name, shell_word(r->file_word, word, sizeof word),
                    shell_word(out, folder, sizeof folder));
    return fail(e, ST_USAGE,
                "%s/perf.csv has no speed of %d of the %d runs of %s, which is a plan of trainings; lrnn bench TASK "
                "measures its models' speeds after their runs",
                out, missing, plan->n, r->name);
}

/* Plans the request. If it has no records, plans its latest shortened sweep instead; *name says so. */
static enum status plan_drawn(struct request *r, struct plan *plan, struct resolved *resolved, bool speeds,
                              const struct record_set *set, const char *out, char name[LABEL_TEXT], struct error *e) {
    char words[LABEL_TEXT];
    int i = 0;
    snprintf(name, LABEL_TEXT, "%s", r->name);
    TRY(request_plan(r, plan, resolved, e));
    while (i < plan->n && !report_has_run(set, plan->setups[i]->id.run_id)) i++;
    if (speeds || i < plan->n || !is_whole(r)) return ST_OK;
    TRY(find_shortened(r, set, out, words, e));
    if (!*words) return ST_OK;
    snprintf(name, LABEL_TEXT, "%.60s, shortened: %.600s", r->name, words);
    plan_free(plan);
    *plan = (struct plan){0};
    return request_plan(r, plan, resolved, e);
}

enum status paper_plot(const struct paper_choice *choice, const char *out, const char *to, const char *kind,
                       const struct plot_view *view, struct error *e) {
    struct plan plan = {0};
    struct resolved resolved;
    struct record_set set = {0};
    char name[LABEL_TEXT];
    struct request *r = new_request(choice, e);
    if (!r) return e->status;
    enum report_protocol protocol = PROTOCOL_VAL_MEAN;
    bool speeds = plot_is_of_speeds(kind); /* speeds have no records */
    const char **ids = NULL;
    enum status status = speeds ? ST_OK : report_load(&set, out, e);
    if (status == ST_OK) status = plan_drawn(r, &plan, &resolved, speeds, &set, out, name, e);
    if (status == ST_OK) status = paper_protocol(r, resolved.profile, &protocol, e);
    if (status == ST_OK && !(ids = calloc((size_t)plan.n + 1, sizeof *ids)))
        status = fail(e, ST_MEMORY, "no memory for a plan");
    for (int i = 0; i < plan.n && status == ST_OK; i++)
        ids[i] = speeds ? plan.setups[i]->id.cell_id : plan.setups[i]->id.run_id;
    if (status == ST_OK && speeds) {
        struct error why;
        status = plot_throughput(&(struct speed_choice){ids, plan.n}, view, out, to, &why);
        if (status != ST_OK) status = tell_missing_speeds(&plan, r, resolved.speed, out, &why, e);
    } else if (status == ST_OK) {
        struct plot_view named = *view;
        /* all of a plan's runs are in one figure, whatever their profiles */
        struct report_filter filter = {
            .runs = ids, .n_runs = plan.n, .protocol = protocol, .together = resolved.profile};
        named.plan = name;
        named.profile = resolved.profile;
        status = report_plot_view(&set, &filter, kind, &named, out, to, e);
    }
    records_free(&set);
    free(ids);
    plan_free(&plan);
    free(r);
    return status;
}
