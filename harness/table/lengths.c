/* lengths.c - the reports "lengths" and "position": accuracy by the length of the test sequences, or by position in
 * them, beside the training's result. This distinguishes a model that has not learnt from a model that does not
 * generalise. Walker et al. 2025 (SLiCE), state tracking on regular languages. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/table/report.h"
#include "harness/rows/test_lengths.h"
#include "harness/store/files.h"

#define STILL 0.9 /* a model is said to follow up to the last length with this accuracy */

/* Adds "0.812* 0.75-0.86", with Wilson's interval if the report is by length. If some seeds have no such sequences, it
 * says how many seeds the mean has. */
static void add_accuracy(struct sheet *s, const struct report_row *row, const struct length_bins *b, int bin) {
    struct lengths_mean mean = lengths_mean(row, b->by, b->first[bin], b->last[bin]);
    sheet_real(s, "%.3f", mean.value);
    marks_append(s, row->n_cut, row->n_failed, false);
    if (!strcmp(b->by, EVAL_BY_LENGTH) && isfinite(mean.interval.low))
        sheet_append(s, " %.2f-%.2f", mean.interval.low, mean.interval.high);
    if (mean.n > 0 && mean.n < row->n)
        sheet_footnote(s, "of %d of %d seeds, for the others have no such test sequences", mean.n, row->n);
}

/* Returns the last length of the leading bins in which the row has at least STILL; -1: the first bin has less. */
static int64_t followed_to(const struct report_row *row, const struct length_bins *b) {
    int64_t to = -1;
    for (int i = 0; i < b->n; i++) {
        double value = lengths_mean(row, b->by, b->first[i], b->last[i]).value;
        if (value < STILL) break;
        if (value >= STILL) to = b->last[i];
    }
    return to;
}

static double training_loss(const struct report_row *row) {
    double sum = 0;
    for (int i = 0; i < row->n; i++) sum += row->chosen[i]->run.train_loss;
    return sum / row->n;
}

static int64_t most_steps(const struct report_row *row) {
    int64_t most = 0;
    for (int i = 0; i < row->n; i++) most = row->chosen[i]->run.steps > most ? row->chosen[i]->run.steps : most;
    return most;
}

/* Says how many sequences each column has, and how uncertain its numbers are. */
static void note_measured(struct sheet *s, const struct length_bins *b) {
    struct printed counts;
    if (printed_begin(&counts, "a note", NULL) != ST_OK) return;
    for (int i = 0; i < b->n; i++) {
        fprintf(counts.f, "%s%" PRId64, i ? ", " : "", b->first[i]);
        if (b->last[i] > b->first[i]) fprintf(counts.f, "-%" PRId64, b->last[i]);
        fprintf(counts.f, ": %" PRId64, b->n_measured[i] < 0 ? 0 : b->n_measured[i]);
    }
    if (printed_end(&counts, ST_OK, "a note", NULL) == ST_OK && !strcmp(b->by, EVAL_BY_LENGTH))
        sheet_note(
            s,
            "After each number its 95 %% Wilson interval, the chance of the test sequences. Sequences of a run, the "
            "fewest: %s. Lengths of fewer than %d are taken together with their neighbours.",
            counts.text, LENGTHS_LEAST);
    else if (counts.text)
        sheet_note(s, "Positions of a run, the fewest: %s; --format csv has Wilson intervals.", counts.text);
    free(counts.text);
}

static void fill(struct sheet *s, const struct report_table *t, const struct length_bins *b, int64_t confirm) {
    struct marks marks = {0};
    sheet_caption(s, "%s, profile %s: accuracy by %s, trained up to length %" PRId64 ", chance %.4f", t->task,
                  t->profile, b->by, t->rows[0].run->len_train, run_chance(t->rows[0].run));
    sheet_column(s, SHEET_LEFT, "model");
    for (int i = 0; i < b->n; i++) {
        if (b->first[i] == b->last[i])
            sheet_column(s, SHEET_RIGHT, "%" PRId64, b->first[i]);
        else
            sheet_column(s, SHEET_RIGHT, "%" PRId64 "-%" PRId64, b->first[i], b->last[i]);
    }
    sheet_columns(s, ">.9 up to|>all|>training loss|>steps");
    for (int k = 0; k < t->n_rows; k++) {
        const struct report_row *row = &t->rows[k];
        marks.cut_off = marks.cut_off || row->n_cut;
        marks.runs += row->n;
        marks.failed += row->n_failed;
        marks_count(&marks, row);
        sheet_row(s);
        sheet_text(s, "%s", row->label);
        for (int i = 0; i < b->n; i++) add_accuracy(s, row, b, i);
        sheet_int(s, followed_to(row, b));
        sheet_real(s, "%.3f", row->mean);
        marks_append(s, row->n_cut, row->n_failed, false);
        sheet_real(s, "%.3f", training_loss(row));
        sheet_int(s, most_steps(row));
    }
    note_measured(s, b);
    sheet_note(s, ".9 up to: the last %s up to which the accuracy is .9 or more in every column.", b->by);
    sheet_note(s, "training loss: cross entropy, mean since the last but one evaluation; ln of the classes is chance.");
    if (confirm) sheet_note(s, CONFIRMED_NOTE ".", (long long)confirm);
    marks.settings = false; /* published numbers are not shown */
    marks_note(s, &marks);
}

static void fill_data(struct sheet *s, const struct report_table *t, const struct length_bins *b) {
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < b->n; i++) {
            const struct report_row *row = &t->rows[k];
            struct lengths_mean mean = lengths_mean(row, b->by, b->first[i], b->last[i]);
            sheet_row(s);
            sheet_text(s, "%s", t->task);
            sheet_text(s, "%s", t->profile);
            sheet_text(s, "%s", row->label);
            sheet_int(s, b->first[i]);
            sheet_int(s, b->last[i]);
            sheet_real(s, "%g", mean.value);
            sheet_real(s, "%g", training_loss(row));
            sheet_int(s, mean.n);
            sheet_int(s, row->n_cut);
            sheet_int(s, row->n_failed);
            sheet_int(s, mean.n_measured);
            sheet_real(s, "%g", mean.interval.low);
            sheet_real(s, "%g", mean.interval.high);
            sheet_int(s, followed_to(row, b));
            add_flags_data(s, row);
        }
}

/* Adds a sheet per table; for data one sheet for all tables. */
static int add_sheets(struct sheets *sheets, const struct report_tables *tables, const char *by, bool data) {
    struct sheet *s = NULL;
    int found = 0;
    for (int i = 0; i < tables->n; i++) {
        struct test_lengths lengths = test_lengths_of(&tables->list[i], by);
        if (lengths.shortest == lengths.longest) continue;
        struct length_bins bins = length_bins_of(&tables->list[i], by, false);
        if (!data || !found) s = sheets_add(sheets);
        if (data && !found)
            sheet_columns(s, "task|profile|model|shortest|longest|acc|train_loss|n|n_cut_off|n_failed|n_measured|"
                             "wilson_low|wilson_high|followed_to|flags");
        found++;
        if (data)
            fill_data(s, &tables->list[i], &bins);
        else
            fill(s, &tables->list[i], &bins, tables->confirm);
    }
    return found;
}

static enum status make_lengths(struct sheets *sheets, const struct report_tables *tables, bool data, struct error *e) {
    if (add_sheets(sheets, tables, EVAL_BY_LENGTH, data)) return ST_OK;
    return fail(e, ST_DATA,
                "no task has test sequences of several lengths; `lrnn bench parity` does, and s3:test_length=16,64");
}

static enum status make_position(struct sheets *sheets, const struct report_tables *tables, bool data,
                                 struct error *e) {
    if (add_sheets(sheets, tables, EVAL_BY_POSITION, data)) return ST_OK;
    return fail(e, ST_DATA,
                "no record has the accuracy by position; runs of tasks that score several positions have it, as "
                "`lrnn bench s3`");
}

const struct report report_lengths = {
    .name = "lengths",
    .help = "for tasks tested at several lengths: accuracy at each length, and the training loss",
    .has_no_use_for = " protocol ",
    .make = make_lengths,
};

const struct report report_position = {
    .name = "position",
    .help = "for tasks with several scored positions: accuracy at each position of the test sequences",
    .has_no_use_for = " protocol ",
    .make = make_position,
};
