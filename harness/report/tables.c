/* tables.c - the report "tables": one a task and profile, a row a model. */
#include <math.h>
#include <string.h>

#include "harness/report/report.h"
#include "harness/report/summary.h"
#include "tasks/task.h"

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void add_columns(struct sheet *s) {
    sheet_column(s, SHEET_LEFT, "model");
    sheet_column(s, SHEET_RIGHT, "params");
    sheet_column(s, SHEET_RIGHT, "state");
    sheet_column(s, SHEET_RIGHT, "lr");
    sheet_column(s, SHEET_RIGHT, "acc");
    sheet_column(s, SHEET_RIGHT, "95%% CI or values");
    sheet_column(s, SHEET_RIGHT, "solved");
    sheet_column(s, SHEET_RIGHT, "seq acc");
    sheet_column(s, SHEET_RIGHT, "tok/s");
    sheet_column(s, SHEET_RIGHT, "best of");
    sheet_column(s, SHEET_RIGHT, "published");
    sheet_column(s, SHEET_RIGHT, "diff");
}

/* A footnote for every run that did not end well. */
static void note_failures(struct sheet *s, const struct report_row *row) {
    for (int i = 0; i < row->n_all; i++) {
        const struct run *run = &row->all[i]->run;
        if (!run_failed(run)) continue;
        const char *status = run->status == RUN_OK ? "no test result" : run_status_names[run->status];
        sheet_footnote(s, "%s, lr %g, seed %llu: %s%s%s%s; counted as chance, %.4f", row->label, run->lr,
                       (unsigned long long)run->seed, status, run->status_detail[0] ? " (" : "", run->status_detail,
                       run->status_detail[0] ? ")" : "", run_chance(run));
    }
}

/* The interval, or the values themselves where there are too few for one. */
static void add_interval(struct sheet *s, const struct report_row *row) {
    if (row->interval.kind != INTERVAL_NONE) {
        sheet_text(s, "[%.3f, %.3f]", row->interval.low, row->interval.high);
        return;
    }
    sheet_text(s, "%s", "");
    for (int i = 0; i < row->n; i++) sheet_append(s, "%s%.3f", i ? " " : "", row->value[i]);
}

static void add_row(struct sheet *s, const struct report_row *row) {
    sheet_row(s);
    sheet_text(s, "%s", row->label);
    note_failures(s, row);
    sheet_count(s, (double)row->run->params);
    sheet_count(s, (double)row->run->state_floats);
    sheet_real(s, "%g", row->lr);
    sheet_real(s, "%.4f", row->mean);
    add_interval(s, row);
    sheet_text(s, "%d/%d [%.2f, %.2f]", row->solved, row->n, row->solve_rate.low, row->solve_rate.high);
    sheet_real(s, "%.4f", row->seq_acc);
    sheet_count(s, row->tok_per_s);
    sheet_real(s, "%.4f", row->best);
    sheet_append(s, " (%d)", row->n_all);
    sheet_real(s, "%.3f", row->published);
    sheet_real(s, "%+.3f", row->delta);
}

/* --- what the columns mean ---------------------------------------------------------------------------------------- */

static void note_protocol(struct sheet *s, const struct report_table *t, bool has_published) {
    int least = t->rows[0].n, most_grid = 1;
    bool uneven = false, speed_missing = false;
    for (int k = 0; k < t->n_rows; k++) {
        const struct report_row *row = &t->rows[k];
        least = row->n < least ? row->n : least;
        most_grid = row->n_all > most_grid ? row->n_all : most_grid;
        uneven = uneven || row->n_all != row->n_rates * row->n;
        speed_missing = speed_missing || !isfinite(row->tok_per_s);
    }
    sheet_note(s,
               "acc: val-mean, the mean test %s over the seeds of the learning rate with the best mean validation "
               "accuracy.",
               t->rows[0].run->metric == METRIC_MACRO_ACC ? "macro accuracy" : "token accuracy");
    if (least < 5) sheet_note(s, "Fewer than 5 seeds: the seeds' values instead of an interval.");
    sheet_note(s, "solved: runs that reached the task's threshold, exact 95%% interval of the rate. seq acc: whole "
                  "sequences right.");
    sheet_note(s, "best of (n): the largest test value of all n runs, every rate and seed, as the papers report it. "
                  "diff = best - published.");
    if (most_grid > 1)
        sheet_note(s,
                   "The largest of n grows by luck alone: of %d equal normal draws it lies %.2f sd above their mean.",
                   most_grid, stats_normal_max_mean(most_grid));
    if (uneven) sheet_note(s, "The grid is not complete: the rates have different numbers of seeds.");
    if (speed_missing)
        sheet_note(s, "tok/s: measured alone, after training, by lrnn bench; - where that has not been done.");
    if (!has_published) sheet_note(s, "The published numbers (results/published.csv) were not found.");
}

static void add_caption(struct sheet *s, const struct report_table *t) {
    const struct run *run = t->rows[0].run;
    sheet_caption(s, "%s, profile %s: %d model%s, %d run%s, %lld training sequences of length %lld, chance %.4f",
                  t->task, t->profile, t->n_rows, t->n_rows == 1 ? "" : "s", t->n_runs, t->n_runs == 1 ? "" : "s",
                  (long long)run->n_train, (long long)run->len_train, run_chance(run));
}

static enum status build(struct sheets *sheets, const struct report_tables *tables, struct error *e) {
    (void)e;
    for (int i = 0; i < tables->n; i++) {
        const struct report_table *t = &tables->list[i];
        struct sheet *s = sheets_add(sheets);
        add_caption(s, t);
        add_columns(s);
        for (int k = 0; k < t->n_rows; k++) add_row(s, &t->rows[k]);
        note_protocol(s, t, tables->has_published);
    }
    return ST_OK;
}

const struct report report_tables = {
    .name = "tables",
    .help = "one a task and profile: accuracy with its interval, solved runs, speed, the published number",
    .build = build,
    .build_data = summary_build,
};
