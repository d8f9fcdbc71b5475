/* each.c - the report "each": a row per run with its validation accuracy at every evaluation, which means over seeds
 * hide. */
#include <inttypes.h>
#include <math.h>

#include "harness/table/report.h"
#include "tasks/task.h"

#define SHOWN_MOST 24 /* most evaluations in a cell; of more, every second, third, ... and the last is shown */

static int64_t count_validations(const struct run_record *r) {
    int64_t n = 0;
    for (int64_t i = 0; i < r->n_curve; i++) n += r->curve[i].split == SPLIT_VAL;
    return n;
}

/* Adds the validation accuracies, "0.072 0.092 1.000". */
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

/* Adds the seed, as text if it is larger than a cell's integers. */
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
    bool cut = false, failed = false;
    struct marks marks = {0};
    sheet_caption(s, "%s, profile %s: %d run%s, chance %.4f", t->task, t->profile, t->n_runs, t->n_runs == 1 ? "" : "s",
                  run_chance(t->rows[0].run));
    sheet_columns(
        s, "model|run|>lr|>seed|>steps|stop|>training loss|validation accuracy at each evaluation|>test|>seq acc");
    for (int k = 0; k < t->n_rows; k++) {
        marks_count(&marks, &t->rows[k]);
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
    marks_note_facts(s, &marks.facts);
}

/* Adds a row per evaluation. */
static void fill_data(struct sheet *s, const struct report_row *row, const struct run_record *r) {
    for (int64_t i = 0; i < r->n_curve; i++) {
        if (r->curve[i].split != SPLIT_VAL) continue;
        sheet_row(s);
        sheet_text(s, "%s", r->run.run_id);
        sheet_text(s, "%s", r->run.task);
        sheet_text(s, "%s", record_profile(r));
        sheet_text(s, "%s", row->label);
        sheet_real(s, "%g", r->run.lr);
        add_seed(s, r->run.seed);
        sheet_int(s, r->curve[i].step);
        sheet_real(s, "%g", run_point_metric(&r->run, &r->curve[i]));
    }
}

static enum status make(struct sheets *sheets, const struct report_tables *tables, bool data, struct error *e) {
    struct sheet *s = data ? sheets_add(sheets) : NULL;
    (void)e;
    if (data) sheet_columns(s, "run_id|task|profile|model|lr|seed|step|val_acc");
    for (int i = 0; i < tables->n; i++) {
        const struct report_table *t = &tables->list[i];
        if (!data) fill(sheets_add(sheets), t);
        for (int k = 0; k < t->n_rows && data; k++)
            for (int j = 0; j < t->rows[k].n_all; j++) fill_data(s, &t->rows[k], t->rows[k].all[j]);
    }
    return ST_OK;
}

const struct report report_each = {
    .name = "each",
    .help = "a row per run, with its validation accuracy at every evaluation",
    .has_no_use_for = " protocol confirm-seeds ",
    .make = make,
};
