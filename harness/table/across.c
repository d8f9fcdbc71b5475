/* across.c - the reports "across" and "suites": tasks of one profile, or of one suite under one profile, side by side,
 * with a row per model, as papers print their suites. A cell has the protocol's test metric and the paper's number, if
 * there is one.
 *
 * Options that differ within a task are in the rows' labels, so a row is one model in one setting. Options that are
 * equal in all rows of a task but differ between tasks (such as epochs) are listed once, in the note on the task. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/row_key.h"
#include "harness/table/family.h"
#include "tasks/task.h"

static void name_nothing(const struct run *run, char *family, size_t size) {
    (void)run;
    snprintf(family, size, "%s", "");
}

static void name_suite(const struct run *run, char *family, size_t size) {
    snprintf(family, size, "%s", run->suite);
}

static bool differs_between_tasks(const struct family *s, const char *key) {
    for (int t = 1; t < s->n_tasks; t++)
        if (strcmp(row_key_value(&s->tasks[t]->row->key, key), row_key_value(&s->tasks[0]->row->key, key)) != 0)
            return true;
    return false;
}

/* Whether another task of the family with the same name lacks the option or has another value. */
static bool tells_tasks_apart(const struct family *s, const struct label *task, int pair) {
    struct label other;
    for (int t = 0; t < s->n_tasks; t++) {
        if (label_parse(&other, "task", s->tasks[t]->task, NULL) != ST_OK) continue;
        const char *value = label_get(&other, label_key(task, pair));
        if (strcmp(label_name(&other), label_name(task)) == 0 &&
            (!value || strcmp(value, label_value(task, pair)) != 0))
            return true;
    }
    return false;
}

/* Writes the task with "..." for options that all tasks share: "arrow:patch=8,...". Its note has the whole label. */
static void shorten_task(const struct family *s, int t, char text[RECORD_TEXT]) {
    struct label task, kept = {0};
    bool all = true;
    snprintf(text, RECORD_TEXT, "%s", s->tasks[t]->task);
    if (label_parse(&task, "task", text, NULL) != ST_OK || label_set_name(&kept, label_name(&task), NULL) != ST_OK)
        return;
    for (int k = 0; k < task.n; k++) {
        bool keep = tells_tasks_apart(s, &task, k);
        all = all && keep;
        if (keep && label_add(&kept, label_key(&task, k), label_value(&task, k), NULL) != ST_OK) return;
    }
    char brief[RECORD_TEXT];
    if (all || label_format(&kept, brief, sizeof brief, NULL) != ST_OK) return;
    snprintf(text, RECORD_TEXT, "%.*s%s", RECORD_TEXT - 8, brief, kept.n ? ",..." : ":...");
}

static const struct report_row *find_row(const struct family *s, int model, int task) {
    for (int i = 0; i < s->n; i++)
        if (family_is(s, &s->entries[i], model, task)) return s->entries[i].row;
    return NULL;
}

static bool any_published(const struct family *s, int task) {
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->entries[i].task, s->tasks[task]->task) && isfinite(s->entries[i].row->published.value))
            return true;
    return false;
}

/* Adds "0.444 / 0.89" (ours / the paper's), "0.444 / -" if the paper has only other models' numbers, "0.444" if it has
 * none. */
static void add_cell(struct sheet *sheet, const struct report_row *row, bool published, enum report_protocol protocol) {
    if (!row) {
        sheet_text(sheet, "-");
        return;
    }
    sheet_real(sheet, "%.3f", row->estimate);
    marks_append(sheet, row->estimate_cut, row->n_estimate_failed, false);
    if (isfinite(row->published.value))
        published_append(sheet, &row->published);
    else if (published)
        sheet_append(sheet, " / -");
    if (row->unlike_published) sheet_append(sheet, SETTINGS_MARK);
    if (isfinite(row->published.value) && protocol == PROTOCOL_BEST_OF_GRID) note_more_runs(sheet, row);
}

/* Adds the interquartile mean over a model's runs on all tasks, each task a stratum (Agarwal et al. 2021). */
static void add_aggregate(struct sheet *sheet, const struct family *s, int model) {
    int sizes[s->n_tasks], n = 0;
    bool everywhere = true, cut = false, failed = false;
    for (int t = 0; t < s->n_tasks; t++) {
        const struct report_row *row = find_row(s, model, t);
        everywhere = everywhere && row;
        cut = cut || (row && row->n_cut);
        failed = failed || (row && row->n_failed);
        n += sizes[t] = row ? row->n : 0;
    }
    double *values = everywhere ? calloc((size_t)n + 1, sizeof *values) : NULL;
    if (!values) {
        sheet_text(sheet, "-");
        return;
    }
    n = 0;
    for (int t = 0; t < s->n_tasks; t++)
        for (int i = 0; i < sizes[t]; i++) values[n++] = find_row(s, model, t)->value[i];
    struct interval ci = stats_iqm_interval(values, sizes, s->n_tasks, REPORT_LEVEL);
    sheet_real(sheet, "%.3f", stats_iqm(values, n));
    marks_append(sheet, cut, failed, false);
    if (ci.kind != INTERVAL_NONE) sheet_append(sheet, " [%.3f, %.3f]", ci.low, ci.high);
    free(values);
}

/* Returns the most steps of a row's runs: the schedule's, or --stop-after. */
static int64_t most_steps(const struct report_row *row) {
    int64_t stop;
    bool early = parse_int64(row_key_value(&row->key, "stop-after"), &stop) && stop > 0;
    return early && stop < row->run->max_steps ? stop : row->run->max_steps;
}

/* Adds the note "s3: test token accuracy, chance 0.1667, 1580 steps; dim=64 epochs=20." on a task, after the whole
 * label if its heading is shortened. */
static void note_task(struct sheet *sheet, const struct family *s, int t) {
    const struct report_row *row = s->tasks[t]->row;
    char settings[RECORD_TEXT] = "", range[32] = "", brief[RECORD_TEXT];
    int64_t least = INT64_MAX, most = 0, schedule = 0;
    for (int i = 0; i < s->n; i++) {
        int64_t steps = most_steps(s->entries[i].row), all = s->entries[i].row->run->max_steps;
        if (strcmp(s->entries[i].task, s->tasks[t]->task) != 0) continue;
        least = steps < least ? steps : least;
        most = steps > most ? steps : most;
        schedule = all > schedule ? all : schedule;
    }
    char of[32] = "";
    if (most < schedule) snprintf(of, sizeof of, " of %" PRId64, schedule);
    if (least < most) snprintf(range, sizeof range, "%" PRId64 " to ", least);
    for (int k = 0; k < row->key.n; k++) {
        const char *key = label_key(&row->key, k);
        const struct option *o = row_key_flag(key);
        size_t used = strlen(settings);
        if (!o || o->flags & OPT_AUTO || !family_shares(s, key) || !differs_between_tasks(s, key)) continue;
        snprintf(settings + used, sizeof settings - used, "%s%s=%s", used ? " " : "; ", key, label_value(&row->key, k));
    }
    shorten_task(s, t, brief);
    bool whole = strcmp(brief, s->tasks[t]->task) == 0;
    sheet_note(sheet, "%s%s%s: test %s, chance %.4f, at most %s%" PRId64 "%s steps%s.", whole ? "" : brief,
               whole ? "" : " is ", s->tasks[t]->task, run_metric_name(row->run), run_chance(row->run), range, most, of,
               settings);
}

static void add_legend(struct sheet *sheet, const struct report_tables *tables, const struct marks *marks) {
    char least[32] = "";
    bool best = tables->protocol == PROTOCOL_BEST_OF_GRID;
    if (marks->least < marks->most) snprintf(least, sizeof least, "%d to ", marks->least);
    sheet_note(sheet, "%s, %s%d %s%s%s.", protocol_of(tables->protocol)->phrase, least, marks->most,
               best ? "run" : "seed", marks->most == 1 ? "" : "s", marks->published ? " / the paper's number" : "");
    if (marks->best && tables->protocol != PROTOCOL_BEST_OF_GRID)
        sheet_note(sheet,
                   "Some of the papers' numbers are the best of their runs, ours are not (report --what tables has our "
                   "best).");
    if (marks->mean && tables->protocol == PROTOCOL_BEST_OF_GRID)
        sheet_note(sheet, "Some of the papers' numbers are no best of their runs, and ours are: they flatter us.");
    if (tables->confirm) sheet_note(sheet, CONFIRMED_NOTE ".", (long long)tables->confirm);
    sheet_note_on_strong(sheet, "Bold: the best of a task.");
    if (tables->protocol == PROTOCOL_IQM)
        sheet_note(sheet, "all: the interquartile mean over all tasks and seeds, with a bootstrap that draws every "
                          "task's seeds by themselves; of models that have run on all of them.");
    note_own_numbers(sheet, marks->published && tables->published.own);
    marks_note(sheet, marks);
}

static void fill(struct sheet *sheet, const struct family *s, const struct report_tables *tables, struct marks *marks,
                 bool legend) {
    bool aggregate = tables->protocol == PROTOCOL_IQM;
    const struct report_row *first = s->entries->row;
    if (*s->entries->family)
        sheet_caption(sheet, "Suite %s, profile %s: %d model%s", s->entries->family, first->profile, s->n_models,
                      s->n_models == 1 ? "" : "s");
    else
        sheet_caption(sheet, "%d tasks, profile %s: %d model%s", s->n_tasks, first->profile, s->n_models,
                      s->n_models == 1 ? "" : "s");
    sheet_column(sheet, SHEET_LEFT, "model");
    sheet_names_rows(sheet);
    for (int t = 0; t < s->n_tasks; t++) {
        char brief[RECORD_TEXT];
        shorten_task(s, t, brief);
        sheet_column(sheet, SHEET_RIGHT, "%s%s", brief, any_published(s, t) ? " / published" : "");
    }
    if (aggregate) sheet_column(sheet, SHEET_RIGHT, "all");
    for (int i = 0; i < s->n; i++) {
        const struct report_row *row = s->entries[i].row;
        marks->cut_off = marks->cut_off || row->estimate_cut;
        marks->least = !marks->runs || row->n_estimate < marks->least ? row->n_estimate : marks->least;
        marks->most = row->n_estimate > marks->most ? row->n_estimate : marks->most;
        marks->runs += row->n_estimate;
        marks->failed += row->n_estimate_failed;
        marks_count(marks, row);
        marks->published = marks->published || isfinite(row->published.value);
        marks->best = marks->best || (isfinite(row->published.value) && row->published.best);
        marks->mean = marks->mean || (isfinite(row->published.value) && !row->published.best);
    }
    for (int m = 0; m < s->n_models; m++) {
        sheet_row(sheet);
        sheet_text(sheet, "%s", s->models[m]->model);
        for (int t = 0; t < s->n_tasks; t++) add_cell(sheet, find_row(s, m, t), any_published(s, t), tables->protocol);
        if (aggregate) add_aggregate(sheet, s, m);
    }
    for (int c = 1; c <= s->n_tasks + aggregate; c++) sheet_strong_best(sheet, c);
    for (int t = 0; t < s->n_tasks; t++) note_task(sheet, s, t);
    if (legend) add_legend(sheet, tables, marks);
}

static void fill_data(struct sheet *sheet, const struct family *s, const struct report_tables *tables) {
    for (int i = 0; i < s->n; i++) {
        const struct report_row *row = s->entries[i].row;
        sheet_row(sheet);
        sheet_text(sheet, "%s", row->profile);
        sheet_text(sheet, "%s", s->entries[i].model);
        sheet_text(sheet, "%s", row->run->task);
        sheet_text(sheet, "%s", protocol_of(tables->protocol)->name);
        sheet_real(sheet, "%g", row->estimate);
        sheet_int(sheet, row->n);
        sheet_int(sheet, row->n_cut);
        sheet_real(sheet, "%g", row->published.value);
        sheet_int(sheet, row->n_all);
        sheet_int(sheet, row->n_failed);
        sheet_int(sheet, row->n_failed_all);
        sheet_text(sheet, "%s", published_setting(row));
        add_flags_data(sheet, row);
    }
}

#define COLUMNS                                                                                                        \
    "profile|model|task|protocol|estimate|n|n_cut_off|published|n_grid|n_failed|n_failed_grid|published_setting|flags"

static const struct family_report tasks_of_profile = {
    .name_family = name_nothing,
    .least_tasks = 2,
    .fill = fill,
    .columns = COLUMNS,
    .fill_data = fill_data,
    .nothing = "no profile has been run on several of these tasks",
};

static const struct family_report tasks_of_suite = {
    .name_family = name_suite,
    .least_tasks = 1,
    .one_legend = true,
    .fill = fill,
    .columns = COLUMNS,
    .fill_data = fill_data,
    .nothing = "no profile has been run on several of these tasks",
};

static enum status make_across(struct sheets *sheets, const struct report_tables *tables, bool data, struct error *e) {
    return family_make(&tasks_of_profile, sheets, tables, data, e);
}

static enum status make_suites(struct sheets *sheets, const struct report_tables *tables, bool data, struct error *e) {
    return family_make(&tasks_of_suite, sheets, tables, data, e);
}

const struct report report_across = {
    .name = "across",
    .help = "the tasks of a profile side by side: a row per model, with accuracy and published number in each task's "
            "column",
    .make = make_across,
};

const struct report report_suites = {
    .name = "suites",
    .help = "one table like `across` for each suite of tasks (such as MAD) and profile; their footnotes are printed "
            "once, after the last table",
    .make = make_suites,
};
