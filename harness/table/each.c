/* each.c - the report "each": a row a run, with its validation accuracy at every evaluation, for what a mean hides. */
#include <inttypes.h>
#include <math.h>

#include "harness/table/repeats.h"
#include "harness/table/report.h"
#include "tasks/task.h"

#define SHOWN_MOST 24 /* evaluations in a cell; of more, every second, third, ... and the last */

static int64_t count_validations(const struct run_record *r) {
    int64_t n = 0;
    for (int64_t i = 0; i < r->n_curve; i++) n += r->curve[i].split == SPLIT_VAL;
    return n;
}

/* "0.072 0.092 1.000" */
static void add_curve(struct sheet *s, const struct run_record *r) {
    int64_t n = count_validations(r), every = (n + SHOWN_MOST - 1) / SHOWN_MOST, seen = 0;
    sheet_text(s, "%s", "");
    for (int64_t i = 0; i < r->n_curve; i++) {
        if (r->curve[i].split != SPLIT_VAL) continue;
        seen++;
        if (seen % every && seen < n) continue;
        sheet_append(s, "%s%.3f", seen > every ? " " : "", run_point_metric(&r->run, &r->curve[i]));
    }
}

/* Seeds of runs made elsewhere may be larger than a cell's whole numbers. */
static void add_seed(struct sheet *s, uint64_t seed) {
    if (seed <= INT64_MAX) {
        sheet_int(s, (int64_t)seed);
        return;
    }
    sheet_text(s, "%" PRIu64, seed);
    sheet_sort_key(s, (double)seed);
}

static void add_run(struct sheet *s, const struct report_row *row, const struct run_record *r) {
    const struct run *run = &r->run;
    const char *mark = run_failed(run) ? FAILED_MARK : run_cut_off(run) ? CUT_OFF_MARK : "";
    sheet_row(s);
    sheet_text(s, "%s", row->label);
    sheet_text(s, "%.8s", run->run_id);
    sheet_real(s, "%g", run->lr);
    add_seed(s, run->seed);
    sheet_text(s, "%" PRId64 "/%" PRId64, run->steps, run->max_steps);
    sheet_sort_key(s, (double)run->steps);
    sheet_text(s, "%s", run_failed(run) ? run_status_names[run->status] : run->stop_reason);
    sheet_real(s, "%.3f", run->train_loss);
    add_curve(s, r);
    sheet_real(s, "%.4f", run_test_metric(run));
    sheet_append(s, "%s", mark);
    sheet_real(s, "%.4f", run->test_seq_acc);
    if (isfinite(run->test_seq_acc)) sheet_append(s, "%s", mark);
}

static void fill(struct sheet *s, const struct report_table *t) {
    static const char *const numbers[] = {"lr", "seed", "steps"};
    bool cut = false, failed = false;
    struct repeats repeats = {0};
    sheet_caption(s, "%s, profile %s: %d run%s, chance %.4f", t->task, t->profile, t->n_runs, t->n_runs == 1 ? "" : "s",
                  run_chance(t->rows[0].run));
    sheet_column(s, SHEET_LEFT, "model");
    sheet_column(s, SHEET_LEFT, "run");
    for (int i = 0; i < 3; i++) sheet_column(s, SHEET_RIGHT, "%s", numbers[i]);
    sheet_column(s, SHEET_LEFT, "stop");
    sheet_column(s, SHEET_RIGHT, "training loss");
    sheet_column(s, SHEET_LEFT, "validation accuracy at each evaluation");
    sheet_column(s, SHEET_RIGHT, "test");
    sheet_column(s, SHEET_RIGHT, "seq acc");
    for (int k = 0; k < t->n_rows; k++) {
        repeats_count(&repeats, &t->rows[k]);
        for (int i = 0; i < t->rows[k].n_all; i++) {
            add_run(s, &t->rows[k], t->rows[k].all[i]);
            cut = cut || run_cut_off(&t->rows[k].all[i]->run);
            failed = failed || run_failed(&t->rows[k].all[i]->run);
        }
    }
    sheet_note_on(
        s, "training loss,test",
        "training loss: cross entropy, mean since the last but one evaluation. test: the task's metric at the "
        "step with the best validation.");
    sheet_note_on(s, "run", "run: the first digits of its id, for `lrnn show` and `lrnn rerun`.");
    sheet_note_on(s, "validation accuracy at each evaluation",
                  "Of more than %d evaluations every second, third, ... is shown, and the last.", SHOWN_MOST);
    if (cut) sheet_note(s, "%s.", CUT_OFF_NOTE);
    if (failed) sheet_note_on(s, "test", "%s.", FAILED_NOTE);
    repeats_note(s, &repeats);
}

static enum status build(struct sheets *sheets, const struct report_tables *tables, struct error *e) {
    (void)e;
    for (int i = 0; i < tables->n; i++) fill(sheets_add(sheets), &tables->list[i]);
    return ST_OK;
}

/* A row an evaluation. */
static void fill_data(struct sheet *s, const struct report_row *row, const struct run_record *r) {
    for (int64_t i = 0; i < r->n_curve; i++) {
        if (r->curve[i].split != SPLIT_VAL) continue;
        sheet_row(s);
        sheet_text(s, "%s", r->run.run_id);
        sheet_text(s, "%s", r->run.task);
        sheet_text(s, "%s", r->run.profile);
        sheet_text(s, "%s", row->label);
        sheet_real(s, "%g", r->run.lr);
        add_seed(s, r->run.seed);
        sheet_int(s, r->curve[i].step);
        sheet_real(s, "%g", run_point_metric(&r->run, &r->curve[i]));
    }
}

static enum status build_data(struct sheets *sheets, const struct report_tables *tables, struct error *e) {
    static const char *const names[] = {"run_id", "task", "profile", "model", "lr", "seed", "step", "val_acc"};
    struct sheet *s = sheets_add(sheets);
    (void)e;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) sheet_column(s, SHEET_LEFT, "%s", names[i]);
    for (int i = 0; i < tables->n; i++)
        for (int k = 0; k < tables->list[i].n_rows; k++)
            for (int j = 0; j < tables->list[i].rows[k].n_all; j++)
                fill_data(s, &tables->list[i].rows[k], tables->list[i].rows[k].all[j]);
    return ST_OK;
}

const struct report report_each = {
    .name = "each",
    .help = "a row a run, with its validation accuracy at every evaluation",
    .has_no_use_for = " protocol confirm-seeds ",
    .build = build,
    .build_data = build_data,
};
