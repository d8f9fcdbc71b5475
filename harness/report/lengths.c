/* lengths.c - the report "lengths": accuracy by the length of the test sequences, beside what the training came to, so
 * that a model that has not learnt is told from one that does not generalise. Walker et al. 2025 (SLiCE), state
 * tracking on regular languages. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "harness/report/repeats.h"
#include "harness/report/report.h"
#include "tasks/task.h"

#define BINS_MOST 64

/* Lengths from first[i] up to the next. */
struct bins {
    int64_t first[BINS_MOST], last;
    int n;
};

static bool is_length(const struct eval_point *p) {
    return p->split == SPLIT_TEST && strcmp(p->difficulty, "length") == 0;
}

/* The shortest and the longest of the table's test sequences, where they differ in length; else 0. */
static void range_of_lengths(const struct report_table *t, int64_t *shortest, int64_t *longest) {
    *shortest = *longest = 0;
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < t->rows[k].n; i++) {
            const struct run_record *r = t->rows[k].chosen[i];
            for (int64_t j = 0; j < r->n_evals; j++) {
                if (!is_length(&r->evals[j])) continue;
                int64_t length = r->evals[j].length;
                *shortest = !*shortest || length < *shortest ? length : *shortest;
                *longest = length > *longest ? length : *longest;
            }
        }
}

/* Cut at the powers of two and half-way between them. */
static void cut_bins(struct bins *b, int64_t shortest, int64_t longest) {
    *b = (struct bins){.first = {shortest}, .last = longest, .n = 1};
    for (int64_t power = 1; power < longest && b->n < BINS_MOST - 1; power *= 2) {
        if (power > shortest) b->first[b->n++] = power;
        int64_t half = power + power / 2;
        if (power > 1 && half > shortest && half < longest) b->first[b->n++] = half;
    }
}

static int64_t end_of(const struct bins *b, int i) {
    return i + 1 < b->n ? b->first[i + 1] - 1 : b->last;
}

/* Sequences of the bin and, of those, how many are right, in mean: positions that are scored count alike. */
static void add_run(const struct run_record *r, const struct bins *b, int bin, double *n, double *right) {
    for (int64_t j = 0; j < r->n_evals; j++) {
        const struct eval_point *p = &r->evals[j];
        if (!is_length(p) || p->length < b->first[bin] || p->length > end_of(b, bin)) continue;
        *n += (double)p->n;
        *right += (double)p->n * p->acc;
    }
}

static double accuracy(const struct report_row *row, const struct bins *b, int bin) {
    double sum = 0;
    for (int i = 0; i < row->n; i++) {
        double n = 0, right = 0;
        add_run(row->chosen[i], b, bin, &n, &right);
        if (!run_failed(&row->chosen[i]->run) && n == 0) return NAN;
        sum += run_failed(&row->chosen[i]->run) ? run_chance(&row->chosen[i]->run) : right / n;
    }
    return sum / row->n;
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

static void fill(struct sheet *s, const struct report_table *t, const struct bins *b) {
    bool cut = false;
    struct repeats repeats = {0};
    sheet_caption(s, "%s, profile %s: accuracy by length, trained up to length %" PRId64 ", chance %.4f", t->task,
                  t->profile, t->rows[0].run->len_train, run_chance(t->rows[0].run));
    sheet_column(s, SHEET_LEFT, "model");
    for (int i = 0; i < b->n; i++) sheet_column(s, SHEET_RIGHT, "%" PRId64 "-%" PRId64, b->first[i], end_of(b, i));
    sheet_column(s, SHEET_RIGHT, "all");
    sheet_column(s, SHEET_RIGHT, "training loss");
    sheet_column(s, SHEET_RIGHT, "steps");
    for (int k = 0; k < t->n_rows; k++) {
        const struct report_row *row = &t->rows[k];
        cut = cut || row->n_cut;
        repeats_count(&repeats, row);
        sheet_row(s);
        sheet_text(s, "%s", row->label);
        for (int i = 0; i < b->n; i++) {
            sheet_real(s, "%.3f", accuracy(row, b, i));
            if (row->n_cut) sheet_append(s, CUT_OFF_MARK);
        }
        sheet_real(s, "%.3f", row->mean);
        if (row->n_cut) sheet_append(s, CUT_OFF_MARK);
        sheet_real(s, "%.3f", training_loss(row));
        sheet_int(s, most_steps(row));
    }
    sheet_note(s, "training loss: cross entropy, mean since the last but one evaluation; ln of the classes is chance.");
    if (cut) sheet_note(s, "%s.", CUT_OFF_NOTE);
    repeats_note(s, &repeats);
}

static void fill_data(struct sheet *s, const struct report_table *t, const struct bins *b) {
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < b->n; i++) {
            const struct report_row *row = &t->rows[k];
            sheet_row(s);
            sheet_text(s, "%s", t->task);
            sheet_text(s, "%s", t->profile);
            sheet_text(s, "%s", row->label);
            sheet_int(s, b->first[i]);
            sheet_int(s, end_of(b, i));
            sheet_real(s, "%g", accuracy(row, b, i));
            sheet_real(s, "%g", training_loss(row));
            sheet_int(s, row->n);
        }
}

static void add_data_columns(struct sheet *s) {
    static const char *const names[] = {"task", "profile", "model", "shortest", "longest", "acc", "train_loss", "n"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) sheet_column(s, SHEET_LEFT, "%s", names[i]);
}

/* One sheet a table; of data one for all. */
static enum status make(struct sheets *sheets, const struct report_tables *tables, bool data, struct error *e) {
    struct sheet *s = NULL;
    int found = 0;
    for (int i = 0; i < tables->n; i++) {
        int64_t shortest, longest;
        struct bins bins;
        range_of_lengths(&tables->list[i], &shortest, &longest);
        if (shortest == longest) continue;
        cut_bins(&bins, shortest, longest);
        if (!data || !found) s = sheets_add(sheets);
        if (data && !found) add_data_columns(s);
        found++;
        (data ? fill_data : fill)(s, &tables->list[i], &bins);
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
    .build = build,
    .build_data = build_data,
};
