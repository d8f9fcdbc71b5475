/* tables.c - the report "tables": a table per task and profile, a row per model. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/profile.h"
#include "harness/table/report.h"
#include "harness/table/summary.h"
#include "harness/rows/filter.h"
#include "harness/store/version.h"
#include "tasks/task.h"

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* All headings of the protocol's columns, to which notes are attached. */
#define INTERVAL "95% CI or values,90% CI or values,grid"
#define ACCURACY "acc," INTERVAL

/* Adds a footnote for every run that did not end well. */
static void note_failures(struct sheet *s, const struct report_row *row) {
    for (int i = 0; i < row->n_all; i++) {
        const struct run *run = &row->all[i]->run;
        if (!run_failed(run)) continue;
        const char *status = run->status == RUN_OK ? "no test result" : run_status_names[run->status];
        char attempt[32] = "";
        if (row->all[i]->set_aside || run->attempt > 1)
            snprintf(attempt, sizeof attempt, ", attempt %lld", (long long)run->attempt);
        sheet_footnote(s, "%s, lr %g, seed %llu%s: %s%s%s%s; counted as chance, %.4f", row->label, run->lr,
                       (unsigned long long)run->seed, attempt, status, run->status_detail[0] ? " (" : "",
                       run->status_detail, run->status_detail[0] ? ")" : "", run_chance(run));
    }
}

/* Adds a footnote for runs whose test logits are partly not finite. Older records lack the number of such positions,
 * but their test loss is then not finite. */
static void note_nonfinite(struct sheet *s, const struct report_row *row) {
    for (int i = 0; i < row->n_all; i++) {
        const struct run *run = &row->all[i]->run;
        char what[128] = "some scored test positions have logits that are not finite and were read as label 0 then";
        if (run_failed(run) || (isfinite(run->test_loss) && !(run->test_nonfinite > 0))) continue;
        if (isfinite(run->test_nonfinite))
            snprintf(what, sizeof what,
                     "%.3g %% of the scored test positions have logits that are not finite and count as wrong",
                     100 * run->test_nonfinite);
        sheet_footnote(s, "%s, lr %g, seed %llu: %s", row->label, run->lr, (unsigned long long)run->seed, what);
    }
}

/* Adds a footnote on runs of another build of the program. */
static void note_builds(struct sheet *s, const struct report_row *row) {
    int others = 0;
    for (int i = 0; i < row->n_all; i++) others += !build_made(&row->all[i]->run);
    if (others)
        sheet_footnote(s, "%s: %d of %d runs are of another build of the program; --force does them again", row->label,
                       others, row->n_all);
}

static const char *mark(bool cut_off) {
    return cut_off ? CUT_OFF_MARK : "";
}

/* Adds the interval, or the values if there are too few for an interval. */
static void add_interval(struct sheet *s, const struct report_row *row) {
    if (row->interval.kind != INTERVAL_NONE) {
        sheet_text(s, "[%.3f, %.3f]%s", row->interval.low, row->interval.high, mark(row->n_cut));
        sheet_sort_key(s, row->interval.low);
        return;
    }
    sheet_text(s, "%s", "");
    for (int i = 0; i < row->n; i++)
        sheet_append(s, "%s%.3f%s", i ? " " : "", row->value[i], mark(run_cut_off(&row->chosen[i]->run)));
    sheet_sort_key(s, row->value[0]);
}

/* Adds the steps of the chosen runs, the fewest to the most, and the steps of their schedule. */
static void add_steps(struct sheet *s, const struct report_row *row) {
    int64_t least = INT64_MAX, most = -1;
    for (int i = 0; i < row->n; i++) {
        int64_t steps = row->chosen[i]->run.steps;
        least = steps < least ? steps : least;
        most = steps > most ? steps : most;
    }
    if (most < 0)
        sheet_text(s, "-");
    else if (least < most)
        sheet_text(s, "%" PRId64 "..%" PRId64, least < 0 ? 0 : least, most);
    else
        sheet_text(s, "%" PRId64, most);
    sheet_append(s, "/%" PRId64, row->run->max_steps);
    if (most >= 0) sheet_sort_key(s, (double)most);
}

/* Adds the reasons why the chosen runs stopped, the first run's first: "target", or "3 target, 2 budget". */
static void add_reasons(struct sheet *s, const struct report_row *row) {
    const char *first = row->chosen[0]->run.stop_reason;
    sheet_text(s, "%s", "");
    for (int i = 0; i < row->n; i++) {
        const char *reason = row->chosen[i]->run.stop_reason;
        int n = 0;
        bool earlier = false;
        for (int k = 0; k < i && !earlier; k++) earlier = strcmp(row->chosen[k]->run.stop_reason, reason) == 0;
        if (earlier) continue;
        for (int k = i; k < row->n; k++) n += strcmp(row->chosen[k]->run.stop_reason, reason) == 0;
        if (n < row->n) sheet_append(s, "%s%d ", reason == first ? "" : ", ", n);
        sheet_append(s, "%s", reason);
    }
}

static void add_row(struct sheet *s, const struct report_row *row, const struct report_tables *tables,
                    bool speeds_differ) {
    sheet_row(s);
    sheet_text(s, "%s", row->label);
    if (tables->tell_builds) note_builds(s, row);
    note_failures(s, row);
    note_nonfinite(s, row);
    sheet_count(s, (double)row->run->params);
    sheet_count(s, (double)row->run->state_floats);
    sheet_real(s, "%g", row->lr);
    add_steps(s, row);
    add_reasons(s, row);
    sheet_real(s, "%.4f", row->estimate);
    sheet_append(s, "%s", mark(row->estimate_cut));
    if (tables->protocol == PROTOCOL_BEST_OF_GRID) {
        sheet_text(s, "best of %d", row->n_all);
        sheet_sort_key(s, row->n_all);
    } else {
        add_interval(s, row);
    }
    sheet_text(s, "%d/%d%s [%.2f, %.2f]", row->solved, row->n, mark(row->n_cut), row->solve_rate.low,
               row->solve_rate.high);
    sheet_sort_key(s, (double)row->solved / row->n);
    sheet_real(s, "%.4f", row->seq_acc);
    sheet_append(s, "%s", mark(row->n_cut));
    sheet_count(s, row->tok_per_s);
    if (row->disturbed) sheet_append(s, DISTURBED_MARK);
    if (speeds_differ && isfinite(row->tok_per_s)) {
        char place[SPEED_PLACE];
        speed_place(&row->speed, place, sizeof place);
        sheet_footnote(s, "%s: tok/s of %s", row->label, place);
    }
    sheet_real(s, "%.4f", row->best);
    sheet_append(s, "%s (%d", mark(row->best_cut), row->n_all);
    if (row->published.best && row->published.n && row->published.n < row->n_all)
        sheet_append(s, ", paper: of %d", row->published.n);
    sheet_append(s, ")");
    published_cell(s, &row->published);
    if (row->unlike_published) sheet_append(s, SETTINGS_MARK);
    sheet_difference(s, row->published.decimals > 3 ? row->published.decimals : 3, row->delta);
    sheet_text(s, "%s", "");
    for (int i = 0; i < row->n; i++) sheet_append(s, "%s%.8s", i ? " " : "", row->chosen[i]->run.run_id);
}

/* --- meaning of the columns --------------------------------------------------------------------------------------- */

/* Says which of our numbers is compared with the published number: the same kind, best or mean. */
static void note_best(struct sheet *s, const struct report_table *t) {
    bool best = false, mean = false;
    for (int k = 0; k < t->n_rows; k++) {
        const struct published_value *p = &t->rows[k].published;
        best = best || (isfinite(p->value) && p->best);
        mean = mean || (isfinite(p->value) && !p->best);
    }
    sheet_note_on(s, "best of,diff", "best of (n): the largest test value of all n runs, every rate and seed.%s",
                  best && mean
                      ? " diff = ours - published: the best where the paper reports the best of its runs, else the "
                        "mean at the chosen rate."
                  : best ? " The published number is the paper's best run, and diff = best - published."
                  : mean ? " diff = mean at the chosen rate - published: the paper reports no best of its runs."
                         : "");
}

static void note_protocol(struct sheet *s, const struct report_table *t, const struct report_tables *tables) {
    const struct protocol *protocol = protocol_of(tables->protocol);
    int most_grid = 1;
    bool few = false, speed_missing = false, cut = false, disturbed = false;
    struct marks marks = {0};
    for (int k = 0; k < t->n_rows; k++) {
        const struct report_row *row = &t->rows[k];
        few = few || (row->interval.kind == INTERVAL_NONE && protocol->level > 0);
        most_grid = row->n_all > most_grid ? row->n_all : most_grid;
        speed_missing = speed_missing || !isfinite(row->tok_per_s);
        cut = cut || row->n_cut_all;
        marks_count(&marks, row);
        marks.published = marks.published || isfinite(row->published.value);
        disturbed = disturbed || row->disturbed;
    }
    sheet_note_on(s, ACCURACY, protocol->sentence, run_metric_name(t->rows[0].run));
    if (tables->confirm) sheet_note(s, CONFIRMED_NOTE ".", (long long)tables->confirm);
    if (cut)
        sheet_note_on(s, ACCURACY ",solved,seq acc,best of,diff", "%s; such a row is not compared with the paper.",
                      CUT_OFF_NOTE);
    if (few)
        sheet_note_on(s, INTERVAL, "With fewer than %d seeds the seeds' values are shown instead of an interval.",
                      protocol->least);
    sheet_note_on(s, "solved",
                  "solved: runs that reached the task's threshold out of all runs, with the exact 95%% interval of "
                  "this fraction.");
    sheet_note_on(s, "seq acc", "seq acc: share of sequences without an error.");
    note_best(s, t);
    if (most_grid > 1)
        sheet_note_on(
            s, "best of,diff",
            "The largest of n values grows with n by luck: of %d draws from one normal distribution it lies %.2f "
            "sd above the mean.",
            most_grid, stats_normal_max_mean(most_grid));
    if (speed_missing)
        sheet_note_on(s, "tok/s",
                      "tok/s: measured by lrnn bench after training, on an otherwise idle machine; - if it has not "
                      "been measured.");
    note_speeds(s, "tok/s", "tok/s: %s", &marks.facts);
    if (disturbed) sheet_note_on(s, "tok/s", "%s.", DISTURBED_NOTE);
    if (marks.settings) marks_note_unlike(s, "published,diff", marks.unlike);
    note_own_numbers(s, marks.published && tables->published.own);
    marks_note_facts(s, &marks.facts);
    if (!tables->has_published) sheet_note(s, "The published numbers (results/published.csv) were not found.");
}

/* Whether another table has another fold of the same examples. */
static bool has_other_folds(const struct report_tables *tables, int i) {
    char whole[RECORD_TEXT], other[RECORD_TEXT];
    task_label_without(tables->list[i].task, OPT_FOLD, whole, sizeof whole);
    for (int k = 0; k < tables->n; k++) {
        task_label_without(tables->list[k].task, OPT_FOLD, other, sizeof other);
        if (k != i && strcmp(tables->list[k].profile, tables->list[i].profile) == 0 && strcmp(other, whole) == 0)
            return true;
    }
    return false;
}

static void fill(struct sheet *s, const struct report_table *t, const struct report_tables *tables) {
    const struct run *run = t->rows[0].run;
    const struct profile *p;
    struct label task;
    sheet_caption(s, "%s, profile %s: %d row%s, %d run%s, %lld training sequences of length %lld, chance %.4f", t->task,
                  t->profile, t->n_rows, t->n_rows == 1 ? "" : "s", t->n_runs, t->n_runs == 1 ? "" : "s",
                  (long long)run->n_train, (long long)run->len_train, run_chance(run));
    sheet_columns(s, "model|>params|>state|>lr|>steps|stop|>acc");
    sheet_column(s, SHEET_RIGHT, "%s", protocol_of(tables->protocol)->heading);
    sheet_columns(s, ">solved|>seq acc|>tok/s|>best of|>published|>diff|run");
    sheet_on_request(s); /* the ids of five runs would be the widest column */
    struct facts facts = {0};
    for (int k = 0; k < t->n_rows; k++) facts_add(&facts, &t->rows[k]);
    for (int k = 0; k < t->n_rows; k++) add_row(s, &t->rows[k], tables, facts.speeds_differ);
    note_protocol(s, t, tables);
    if (label_parse(&task, "task", t->task, NULL) == ST_OK &&
        profile_find(label_name(&task), run->suite, t->profile, &p, NULL) == ST_OK)
        sheet_note(s, "%s.", p->note);
}

/* Makes a sheet per table. Folds of one set are left to the report `settings`, which shows their mean. */
static enum status make(struct sheets *sheets, const struct report_tables *tables, bool data, struct error *e) {
    if (data) {
        summary_make(sheets, tables);
        return ST_OK;
    }
    struct report_tables folds = *tables;
    folds.n = 0;
    folds.list = calloc((size_t)tables->n, sizeof *folds.list);
    if (!folds.list) return fail(e, ST_MEMORY, "no memory for a report of %d tables", tables->n);
    for (int i = 0; i < tables->n; i++) {
        if (has_other_folds(tables, i))
            folds.list[folds.n++] = tables->list[i];
        else
            fill(sheets_add(sheets), &tables->list[i], tables);
    }
    enum status status = folds.n ? report_settings.make(sheets, &folds, false, e) : ST_OK;
    free(folds.list);
    return status;
}

const struct report report_tables = {
    .name = "tables",
    .help =
        "one table per task and profile: accuracy with its interval, solved runs, speed, published number; folds of a "
        "cross-validation are shown by their mean",
    .make = make,
};
