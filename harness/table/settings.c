/* settings.c - the report "settings": a task and its one-at-a-time changes, with the best of the grid in each and the
 * mean over all, as in MAD (Poli et al. 2024). For folds, and if the published number is not a best, the protocol gives
 * each setting's number instead: papers then report runs chosen by validation, and our best on the test examples would
 * be unfairly high. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/table/family.h"
#include "harness/rows/setting.h"
#include "harness/rows/stats.h"
#include "tasks/task.h"
#include "tasks/variants.h"

static void name_family(const struct run *run, char *family, size_t size) {
    struct label label;
    bool read = label_parse(&label, "task", run->task, NULL) == ST_OK;
    snprintf(family, size, "%s", read ? label_name(&label) : run->task);
}

/* Orders tasks by the length of their names; the base has the shortest. */
static int64_t length_of_name(const struct run *run) {
    return (int64_t)strlen(run->task);
}

/* Names a task by its options that differ from the base, the first task. */
static void name_change(const struct family *s, int task, char *change, size_t size) {
    struct label base, label, difference = {0};
    const char *name = s->tasks[task]->task;
    if (label_parse(&base, "task", s->tasks[0]->task, NULL) == ST_OK &&
        label_parse(&label, "task", name, NULL) == ST_OK && label_set_name(&base, "", NULL) == ST_OK &&
        label_difference(&label, &base, &difference, NULL) == ST_OK &&
        label_format(&difference, change, size, NULL) == ST_OK)
        name = *change ? change : "base";
    if (name != change) snprintf(change, size, "%s", name);
}

struct value {
    int runs;            /* 0: nothing has been run */
    double best;         /* best of the grid; NAN without runs */
    double estimate;     /* the protocol's number; if there are several decays, for the one that validation prefers */
    int cut_off, failed; /* numbers of runs that were cut off, that failed */
    const struct report_row *row;
};

static struct value value_of(const struct family *s, int model, int task) {
    struct value v = {.best = NAN, .estimate = NAN};
    struct validation chosen = VALIDATION_NONE;
    bool healthy = false;
    for (int i = 0; i < s->n; i++) {
        const struct report_row *row = s->entries[i].row;
        if (!family_is(s, &s->entries[i], model, task)) continue;
        v.runs += row->n_all;
        v.cut_off += row->n_cut_all;
        v.failed += row->n_failed_all;
        bool failed = row->n_failed_all == row->n_all; /* all its runs failed, and its best is chance */
        if (!v.row || (!failed && !healthy) || (failed != healthy && row->best > v.best)) v.best = row->best;
        healthy = healthy || !failed;
        v.row = row;
        struct validation own = row_validation(row);
        if (!validation_is_better(&own, &chosen)) continue;
        chosen = own;
        v.estimate = row->estimate;
    }
    return v;
}

static double number_of(const struct family *s, int model, int task, bool best) {
    struct value v = value_of(s, model, task);
    return best ? v.best : v.estimate;
}

/* Returns the mean over all settings; NAN if a setting is missing. */
static double mean_of(const struct family *s, int model, bool best) {
    double sum = 0;
    for (int t = 0; t < s->n_tasks; t++) sum += number_of(s, model, t, best);
    return sum / s->n_tasks;
}

#define FOLDS_MOST 64

/* Whether the changes are folds of one set of examples. Only then is a standard deviation over them meaningful. */
static bool has_folds(const struct family *s) {
    char base[RECORD_TEXT], other[RECORD_TEXT];
    task_label_without(s->tasks[0]->task, OPT_FOLD, base, sizeof base);
    for (int t = 1; t < s->n_tasks; t++) {
        task_label_without(s->tasks[t]->task, OPT_FOLD, other, sizeof other);
        if (strcmp(other, base) != 0) return false;
    }
    return s->n_tasks > 1 && s->n_tasks <= FOLDS_MOST;
}

/* Returns the standard deviation over the folds; NAN if a fold is missing. */
static double spread_of_folds(const struct family *s, int model, bool best) {
    double each[FOLDS_MOST];
    for (int t = 0; t < s->n_tasks; t++) each[t] = number_of(s, model, t, best);
    return stats_sd(each, s->n_tasks);
}

/* Returns the published number for a model on the base task; value NAN: there is none. */
static struct published_value published_of(const struct family *s, int model) {
    const struct report_row *base = value_of(s, model, 0).row;
    return base ? base->published : PUBLISHED_NONE;
}

/* Whether the numbers are the best of the grid: if the user asks for it, or the paper's numbers are bests, or the paper
 * has no numbers. */
static bool takes_best(const struct family *s, const struct report_tables *tables) {
    if (tables->protocol == PROTOCOL_BEST_OF_GRID) return true;
    if (has_folds(s)) return false;
    for (int m = 0; m < s->n_models; m++) {
        struct published_value theirs = published_of(s, m);
        if (isfinite(theirs.value) && theirs.settings && !theirs.best) return false;
    }
    return true;
}

/* Refuses flags that would have no effect in the table. */
static enum status check(const struct family *s, const struct report_tables *tables, struct error *e) {
    if (tables->protocol == PROTOCOL_BEST_OF_GRID || !takes_best(s, tables)) return ST_OK;
    if (!tables->confirm && !tables->protocol_given) return ST_OK;
    return fail(e, ST_USAGE,
                "report --what settings: each number of %.200s is the best of the grid, all rates and seeds, so that "
                "--%s changes none; leave it out",
                s->entries->family, tables->confirm ? "confirm-seeds" : "protocol");
}

/* Whether task t of the family is the base with the change "vocab=32". */
static bool is_change(const struct family *s, int t, const char *change) {
    char text[2 * RECORD_TEXT];
    struct task_choice *choice = calloc(1, sizeof *choice);
    snprintf(text, sizeof text, "%s:%s", s->tasks[0]->task, change);
    bool same = choice && task_parse(choice, text, NULL) == ST_OK && strcmp(choice->name, s->tasks[t]->task) == 0;
    free(choice);
    return same;
}

/* Whether the tasks are the base and exactly the changes over which the published mean is taken. */
static bool has_published_settings(const struct family *s) {
    const char *const *changes = task_variants(s->tasks[0]->task); /* a base with options has no published mean */
    int n = 0;
    for (; changes && changes[n]; n++) {
        bool found = false;
        for (int t = 1; t < s->n_tasks && !found; t++) found = is_change(s, t, changes[n]);
        if (!found) return false;
    }
    return changes && s->n_tasks == n + 1;
}

/* Whether a model's settings agree with those of the published mean; else `unlike` says how they differ. */
static bool is_alike(const struct family *s, int model, char unlike[RECORD_TEXT]) {
    char own[RECORD_TEXT] = "";
    for (int i = 0; i < s->n; i++)
        for (int t = 0; t < s->n_tasks; t++)
            if (family_is(s, &s->entries[i], model, t)) unlike_add(own, s->entries[i].row->unlike);
    if (!has_published_settings(s))
        unlike_add(own, "a mean over other settings (`lrnn bench TASK --variants` runs its)");
    unlike_add(unlike, own);
    return !*own;
}

/* The filling of a sheet for people. */
struct view {
    bool folds, best; /* best: numbers are the best of the grid */
};

static void add_row(struct sheet *sheet, const struct family *s, int model, const struct view *view,
                    struct marks *marks) {
    struct published_value theirs = published_of(s, model);
    double mean = mean_of(s, model, view->best);
    int cut_off = 0, failed = 0;
    bool known = isfinite(theirs.value), alike = known && is_alike(s, model, marks->unlike);
    sheet_row(sheet);
    sheet_text(sheet, "%s", s->models[model]->model);
    for (int t = 0; t < s->n_tasks; t++) {
        struct value v = value_of(s, model, t);
        sheet_real(sheet, "%.3f", view->best ? v.best : v.estimate);
        marks_append(sheet, v.cut_off, v.failed, false);
        if (v.runs) sheet_append(sheet, " (%d)", v.runs);
        cut_off += v.cut_off;
        failed += v.failed;
        marks->runs += v.runs;
    }
    sheet_real(sheet, "%.3f", mean);
    if (isfinite(mean)) marks_append(sheet, cut_off, failed, false);
    if (view->folds) sheet_real(sheet, "%.3f", spread_of_folds(s, model, view->best));
    published_cell(sheet, &theirs);
    if (known && !alike) sheet_append(sheet, SETTINGS_MARK);
    sheet_difference(sheet, 3, cut_off || !alike ? NAN : mean - theirs.value);
    marks->cut_off = marks->cut_off || cut_off;
    marks->failed += failed;
    marks->settings = marks->settings || (known && !alike);
    marks->published = marks->published || known;
}

static void note_numbers(struct sheet *sheet, const struct view *view, const struct report_tables *tables) {
    if (view->best)
        sheet_note(sheet, "(n): the best of n runs, every rate, seed and decay.");
    else
        sheet_note(
            sheet,
            "%s, of several decays at the one that validation prefers; (n): of n runs, every rate, seed and decay.",
            protocol_of(tables->protocol)->phrase);
    if (!view->best && tables->confirm) sheet_note(sheet, CONFIRMED_NOTE ".", (long long)tables->confirm);
    if (view->folds) sheet_note_on(sheet, "sd", "sd: of the folds.");
}

static void fill(struct sheet *sheet, const struct family *s, const struct report_tables *tables, struct marks *marks,
                 bool legend) {
    const struct view view = {has_folds(s), takes_best(s, tables)};
    if (sheet) sheet->bare = true;
    sheet_caption(sheet, "%s, profile %s: %s in each %s, and the mean, chance %.4f", s->entries->family,
                  s->entries->row->profile, view.best ? "best of the grid" : protocol_of(tables->protocol)->name,
                  view.folds ? "fold" : "setting", run_chance(s->entries->row->run));
    sheet_column(sheet, SHEET_LEFT, "model");
    for (int t = 0; t < s->n_tasks; t++) {
        char change[RECORD_TEXT];
        name_change(s, t, change, sizeof change);
        sheet_column(sheet, SHEET_RIGHT, "%s", change);
    }
    sheet_column(sheet, SHEET_RIGHT, "mean");
    if (view.folds) sheet_column(sheet, SHEET_RIGHT, "sd");
    sheet_column(sheet, SHEET_RIGHT, "published");
    sheet_column(sheet, SHEET_RIGHT, "diff");
    for (int m = 0; m < s->n_models; m++) add_row(sheet, s, m, &view, marks);
    for (int i = 0; i < s->n; i++) facts_add(&marks->facts, s->entries[i].row);
    note_numbers(sheet, &view, tables);
    if (!legend) return;
    if (marks->cut_off) sheet_note(sheet, "%s; such a row is not compared with the paper.", CUT_OFF_NOTE);
    if (marks->failed) sheet_note(sheet, FAILED_COUNT_NOTE ".", marks->failed, marks->runs);
    if (marks->settings) marks_note_unlike(sheet, "published,diff", marks->unlike);
    note_own_numbers(sheet, marks->published && tables->published.own);
    marks_note_facts(sheet, &marks->facts);
}

static void fill_data(struct sheet *sheet, const struct family *s, const struct report_tables *tables) {
    (void)tables;
    for (int m = 0; m < s->n_models; m++) {
        int runs = 0, cut_off = 0, failed = 0;
        for (int t = 0; t < s->n_tasks; t++) {
            char change[RECORD_TEXT];
            struct value v = value_of(s, m, t);
            runs += v.runs;
            cut_off += v.cut_off;
            failed += v.failed;
            if (!v.runs) continue;
            name_change(s, t, change, sizeof change);
            family_begin_row(sheet, s, m);
            sheet_text(sheet, "%s", change);
            sheet_real(sheet, "%g", v.best);
            sheet_int(sheet, v.runs);
            sheet_int(sheet, v.cut_off);
            sheet_real(sheet, "%g", v.estimate);
            sheet_int(sheet, v.failed);
            add_flags_data(sheet, v.row);
        }
        family_begin_row(sheet, s, m);
        sheet_text(sheet, "mean");
        sheet_real(sheet, "%g", mean_of(s, m, true));
        sheet_int(sheet, runs);
        sheet_int(sheet, cut_off);
        sheet_real(sheet, "%g", mean_of(s, m, false));
        sheet_int(sheet, failed);
        add_flags_data(sheet, s->models[m]->row);
    }
}

static const struct family_report changes = {
    .name_family = name_family,
    .rank = length_of_name,
    .axis = "decay",
    .least_tasks = 2,
    .check = check,
    .fill = fill,
    .columns = FAMILY_COLUMNS "setting|best|n_runs|n_cut_off|estimate|n_failed|flags",
    .fill_data = fill_data,
    .nothing = "no task has been run with its changes; `lrnn bench in-context-recall --variants` does",
};

static enum status make(struct sheets *sheets, const struct report_tables *tables, bool data, struct error *e) {
    return family_make(&changes, sheets, tables, data, e);
}

const struct report report_settings = {
    .name = "settings",
    .help =
        "a column for each variant or fold of a task, and a column with their mean. A variant's column has the best "
        "result over learning rates and seeds, a fold's column the number that --protocol defines",
    .make = make,
};
