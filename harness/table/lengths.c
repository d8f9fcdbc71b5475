/* lengths.c - the report "lengths": accuracy by the length of the test sequences, beside what the training came to, so
 * that a model that has not learnt is told from one that does not generalise. Walker et al. 2025 (SLiCE), state
 * tracking on regular languages. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "harness/table/repeats.h"
#include "harness/table/report.h"
#include "harness/rows/test_lengths.h"

#define BINS_MOST 64

/* Lengths from first[i] to last[i]. */
struct bins {
    int64_t first[BINS_MOST], last[BINS_MOST];
    int n;
};

/* From that length on there is another bin. */
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

static struct lengths_mean accuracy(const struct report_row *row, const struct bins *b, int bin) {
    return lengths_mean(row, b->first[bin], b->last[bin]);
}

static void add_marks(struct sheet *s, const struct report_row *row) {
    if (row->n_cut) sheet_append(s, CUT_OFF_MARK);
    if (row->n_failed) sheet_append(s, FAILED_MARK);
}

/* "0.812*", and where seeds have no such sequences, of how many it is the mean. */
static void add_accuracy(struct sheet *s, const struct report_row *row, const struct bins *b, int bin) {
    struct lengths_mean mean = accuracy(row, b, bin);
    sheet_real(s, "%.3f", mean.value);
    add_marks(s, row);
    if (mean.n > 0 && mean.n < row->n)
        sheet_footnote(s, "of %d of %d seeds, for the others have no such test sequences", mean.n, row->n);
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

static void add_column(struct sheet *s, int64_t first, int64_t last) {
    if (first == last)
        sheet_column(s, SHEET_RIGHT, "%" PRId64, first);
    else
        sheet_column(s, SHEET_RIGHT, "%" PRId64 "-%" PRId64, first, last);
}

static void fill(struct sheet *s, const struct report_table *t, const struct bins *b, int64_t confirm) {
    bool cut = false;
    int runs = 0, failed = 0;
    struct repeats repeats = {0};
    sheet_caption(s, "%s, profile %s: accuracy by length, trained up to length %" PRId64 ", chance %.4f", t->task,
                  t->profile, t->rows[0].run->len_train, run_chance(t->rows[0].run));
    sheet_column(s, SHEET_LEFT, "model");
    for (int i = 0; i < b->n; i++) add_column(s, b->first[i], b->last[i]);
    sheet_column(s, SHEET_RIGHT, "all");
    sheet_column(s, SHEET_RIGHT, "training loss");
    sheet_column(s, SHEET_RIGHT, "steps");
    for (int k = 0; k < t->n_rows; k++) {
        const struct report_row *row = &t->rows[k];
        cut = cut || row->n_cut;
        runs += row->n;
        failed += row->n_failed;
        repeats_count(&repeats, row);
        sheet_row(s);
        sheet_text(s, "%s", row->label);
        for (int i = 0; i < b->n; i++) add_accuracy(s, row, b, i);
        sheet_real(s, "%.3f", row->mean);
        add_marks(s, row);
        sheet_real(s, "%.3f", training_loss(row));
        sheet_int(s, most_steps(row));
    }
    sheet_note(s, "training loss: cross entropy, mean since the last but one evaluation; ln of the classes is chance.");
    if (confirm) sheet_note(s, CONFIRMED_NOTE ".", (long long)confirm);
    if (cut) sheet_note(s, "%s.", CUT_OFF_NOTE);
    if (failed) sheet_note(s, FAILED_COUNT_NOTE ".", failed, runs);
    repeats_note(s, &repeats);
}

static void fill_data(struct sheet *s, const struct report_table *t, const struct bins *b) {
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < b->n; i++) {
            const struct report_row *row = &t->rows[k];
            struct lengths_mean mean = accuracy(row, b, i);
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
        }
}

static void add_data_columns(struct sheet *s) {
    static const char *const names[] = {"task", "profile",    "model", "shortest",  "longest",
                                        "acc",  "train_loss", "n",     "n_cut_off", "n_failed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) sheet_column(s, SHEET_LEFT, "%s", names[i]);
}

/* One sheet a table; of data one for all. */
static enum status make(struct sheets *sheets, const struct report_tables *tables, bool data, struct error *e) {
    struct sheet *s = NULL;
    int found = 0;
    for (int i = 0; i < tables->n; i++) {
        struct test_lengths lengths = test_lengths_of(&tables->list[i]);
        struct bins bins;
        if (lengths.shortest == lengths.longest) continue;
        choose_bins(&bins, &lengths);
        if (!data || !found) s = sheets_add(sheets);
        if (data && !found) add_data_columns(s);
        found++;
        if (data)
            fill_data(s, &tables->list[i], &bins);
        else
            fill(s, &tables->list[i], &bins, tables->confirm);
    }
    return found ? ST_OK : fail(e, ST_DATA, "no task has test sequences of several lengths; `lrnn bench parity` does");
}

static enum status build(struct sheets *sheets, const struct report_tables *tables, struct error *e) {
    return make(sheets, tables, false, e);
}

static enum status build_data(struct sheets *sheets, const struct report_tables *tables, struct error *e) {
    return make(sheets, tables, true, e);
}

const struct report report_lengths = {
    .name = "lengths",
    .help = "of tasks with test sequences of several lengths: accuracy by length, and the training loss",
    .has_no_use_for = " protocol ",
    .build = build,
    .build_data = build_data,
};
