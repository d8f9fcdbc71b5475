/* lengths.c - the reports "lengths" and "position": accuracy by the length of the test sequences, or by position in
 * them, beside what the training came to, so that a model that has not learnt is told from one that does not
 * generalise. Walker et al. 2025 (SLiCE), state tracking on regular languages. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "harness/table/report.h"
#include "harness/rows/test_lengths.h"

#define BINS_MOST 64
#define STILL     0.9 /* accuracy up to which a model is said to follow */

/* Lengths, or positions, from first[i] to last[i]. */
struct bins {
    const char *by; /* EVAL_BY_LENGTH, EVAL_BY_POSITION */
    int64_t first[BINS_MOST], last[BINS_MOST];
    int n;
};

/* Begins another bin at that length. */
static void begin_bin(struct bins *b, int64_t first, int64_t longest) {
    if (b->n) b->last[b->n - 1] = first - 1;
    b->first[b->n] = first;
    b->last[b->n++] = longest;
}

/* Cut at the powers of two and half-way between them. */
static void cut_bins(struct bins *b, int64_t shortest, int64_t longest) {
    b->n = 0;
    begin_bin(b, shortest, longest);
    for (int64_t power = 1; power < longest && b->n < BINS_MOST - 1; power *= 2) {
        if (power > shortest) begin_bin(b, power, longest);
        int64_t half = power + power / 2;
        if (power > 1 && half > shortest && half < longest) begin_bin(b, half, longest);
    }
}

static void choose_bins(struct bins *b, const struct test_lengths *lengths) {
    if (!lengths->n) cut_bins(b, lengths->shortest, lengths->longest);
    if (!lengths->n) return;
    memcpy(b->first, lengths->each, (size_t)lengths->n * sizeof *lengths->each);
    memcpy(b->last, lengths->each, (size_t)lengths->n * sizeof *lengths->each);
    b->n = lengths->n;
}

/* "0.812*", and where seeds have no such sequences, of how many it is the mean. */
static void add_accuracy(struct sheet *s, const struct report_row *row, const struct bins *b, int bin) {
    struct lengths_mean mean = lengths_mean(row, b->by, b->first[bin], b->last[bin]);
    sheet_real(s, "%.3f", mean.value);
    marks_append(s, row->n_cut, row->n_failed, false);
    if (mean.n > 0 && mean.n < row->n)
        sheet_footnote(s, "of %d of %d seeds, for the others have no such test sequences", mean.n, row->n);
}

/* The last length of the bins from the first on in which the row has at least STILL; -1: the first one has less. */
static int64_t followed_to(const struct report_row *row, const struct bins *b) {
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

static void fill(struct sheet *s, const struct report_table *t, const struct bins *b, int64_t confirm) {
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
    sheet_note(s, "95 %% Wilson intervals, and on how many %s each number rests: --format csv.",
               strcmp(b->by, EVAL_BY_LENGTH) == 0 ? "sequences of a run" : "positions of a run");
    sheet_note(s, ".9 up to: the last %s up to which the accuracy is .9 or more in every column.", b->by);
    sheet_note(s, "training loss: cross entropy, mean since the last but one evaluation; ln of the classes is chance.");
    if (confirm) sheet_note(s, CONFIRMED_NOTE ".", (long long)confirm);
    marks.settings = false; /* the table has no published numbers */
    marks_note(s, &marks);
}

static void fill_data(struct sheet *s, const struct report_table *t, const struct bins *b) {
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

/* One sheet a table; of data one for all. */
static int add_sheets(struct sheets *sheets, const struct report_tables *tables, const char *by, bool data) {
    struct sheet *s = NULL;
    int found = 0;
    for (int i = 0; i < tables->n; i++) {
        struct test_lengths lengths = test_lengths_of(&tables->list[i], by);
        struct bins bins = {.by = by};
        if (lengths.shortest == lengths.longest) continue;
        choose_bins(&bins, &lengths);
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
    .help = "of tasks with test sequences of several lengths: accuracy by length, and the training loss",
    .has_no_use_for = " protocol ",
    .make = make_lengths,
};

const struct report report_position = {
    .name = "position",
    .help = "of tasks with several scored positions: accuracy by position in the test sequences",
    .has_no_use_for = " protocol ",
    .make = make_position,
};
