/* test_lengths.c - see test_lengths.h. */
#include "harness/rows/test_lengths.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/batch.h"

static bool is_point(const struct eval_point *p, const char *by) {
    return p->split == SPLIT_TEST && strcmp(p->difficulty, by) == 0;
}

/* Inserts a length in order, unless it is there already. *more becomes true if there is no room. */
static void add_length(struct test_lengths *l, int64_t length, bool *more) {
    int at = l->n;
    for (int i = 0; i < l->n; i++)
        if (l->each[i] == length) return;
    *more = *more || l->n == TEST_LENGTHS_FEW;
    if (*more) return;
    for (; at > 0 && l->each[at - 1] > length; at--) l->each[at] = l->each[at - 1];
    l->each[at] = length;
    l->n++;
}

struct test_lengths test_lengths_of(const struct report_table *t, const char *by) {
    struct test_lengths l = {0};
    bool more = false;
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < t->rows[k].n; i++) {
            const struct run_record *r = t->rows[k].chosen[i];
            for (int64_t j = 0; j < r->n_evals; j++) {
                int64_t length = r->evals[j].length;
                if (!is_point(&r->evals[j], by)) continue;
                l.shortest = !l.shortest || length < l.shortest ? length : l.shortest;
                l.longest = length > l.longest ? length : l.longest;
                add_length(&l, length, &more);
            }
        }
    if (more) l.n = 0;
    return l;
}

/* Returns a run's accuracy over the lengths from first to last; NAN if nothing was recorded for them. */
static double accuracy_within(const struct run_record *r, const char *by, int64_t first, int64_t last,
                              int64_t *measured) {
    double n = 0, right = 0;
    *measured = -1;
    if (run_failed(&r->run)) return run_chance(&r->run);
    for (int64_t j = 0; j < r->n_evals; j++) {
        const struct eval_point *p = &r->evals[j];
        if (!is_point(p, by) || p->length < first || p->length > last) continue;
        n += (double)p->n;
        right += (double)p->n * p->acc;
    }
    if (n > 0) *measured = (int64_t)n;
    return n > 0 ? right / n : NAN;
}

struct lengths_mean lengths_mean(const struct report_row *row, const char *by, int64_t first, int64_t last) {
    struct lengths_mean mean = {.value = NAN, .n_measured = -1};
    double sum = 0;
    for (int i = 0; i < row->n; i++) {
        int64_t measured;
        double one = accuracy_within(row->chosen[i], by, first, last, &measured);
        if (isnan(one)) continue;
        if (measured > 0 && (mean.n_measured < 0 || measured < mean.n_measured)) mean.n_measured = measured;
        sum += one;
        mean.n++;
    }
    if (mean.n) mean.value = sum / mean.n;
    mean.interval = stats_wilson_interval(mean.value, (double)mean.n_measured, 0.95);
    return mean;
}

/* --- bins --------------------------------------------------------------------------------------------------------- */

/* Ends the current bin and begins a new one at this length. */
static void begin_bin(struct length_bins *b, int64_t first, int64_t longest) {
    if (b->n) b->last[b->n - 1] = first - 1;
    b->first[b->n] = first;
    b->last[b->n++] = longest;
}

static void cut_bins(struct length_bins *b, int64_t shortest, int64_t longest, bool fine) {
    int64_t step = 8;
    while (longest / step - shortest / step >= LENGTH_BINS_MOST) step *= 2;
    begin_bin(b, shortest, longest);
    for (int64_t at = (shortest / step + 1) * step; fine && at <= longest; at += step) begin_bin(b, at, longest);
    for (int64_t power = 1; !fine && power < longest; power *= 2) {
        if (power > shortest) begin_bin(b, power, longest);
        int64_t half = power + power / 2;
        if (power > 1 && half > shortest && half < longest) begin_bin(b, half, longest);
    }
}

static int64_t fewest_of(const struct report_table *t, const struct length_bins *b, int i) {
    int64_t fewest = -1;
    for (int k = 0; k < t->n_rows; k++) {
        int64_t n = lengths_mean(&t->rows[k], b->by, b->first[i], b->last[i]).n_measured;
        if (n > 0 && (fewest < 0 || n < fewest)) fewest = n;
    }
    return fewest;
}

/* Joins bin i and bin i + 1. */
static void join_bins(struct length_bins *b, int i) {
    b->last[i] = b->last[i + 1];
    b->n--;
    for (int k = i + 1; k < b->n; k++) {
        b->first[k] = b->first[k + 1];
        b->last[k] = b->last[k + 1];
        b->n_measured[k] = b->n_measured[k + 1];
    }
}

struct length_bins length_bins_of(const struct report_table *t, const char *by, bool fine) {
    const struct test_lengths l = test_lengths_of(t, by);
    struct length_bins b = {.by = by};
    for (int i = 0; i < l.n; i++) {
        b.first[i] = b.last[i] = l.each[i];
        b.n++;
    }
    if (!l.n && l.longest) cut_bins(&b, l.shortest, l.longest, fine);
    for (int i = 0; i < b.n; i++) b.n_measured[i] = fewest_of(t, &b, i);
    for (int i = 0; i < b.n && b.n > 1;) {
        if (b.n_measured[i] < 0 || b.n_measured[i] >= LENGTHS_LEAST) {
            i++;
            continue;
        }
        i = i + 1 < b.n ? i : i - 1; /* the last bin is joined with the one before it */
        join_bins(&b, i);
        b.n_measured[i] = fewest_of(t, &b, i);
    }
    return b;
}

static double accuracy_at(const struct run_record *r, int64_t length) {
    if (run_failed(&r->run)) return run_chance(&r->run);
    for (int64_t i = 0; i < r->n_evals; i++)
        if (is_point(&r->evals[i], EVAL_BY_LENGTH) && r->evals[i].length == length) return r->evals[i].acc;
    return NAN;
}

enum status length_estimate(const struct report_row *row, enum report_protocol protocol, int64_t length,
                            struct length_estimate *estimate, struct error *e) {
    double best = -INFINITY, *value = malloc((size_t)row->n * sizeof *value);
    bool best_cut = false;
    int n = 0, n_of_grid = 0;
    if (!value) return fail(e, ST_MEMORY, "no memory for the numbers of %d runs", row->n);
    for (int i = 0; i < row->n_all; i++) {
        double one = accuracy_at(row->all[i], length);
        n_of_grid += !isnan(one);
        if (!(one > best) || (run_failed(&row->all[i]->run) && row->n_failed_all < row->n_all)) continue;
        best = one;
        best_cut = run_cut_off(&row->all[i]->run);
    }
    for (int i = 0; i < row->n; i++) {
        double one = accuracy_at(row->chosen[i], length);
        if (!isnan(one)) value[n++] = one;
    }
    bool of_grid = protocol == PROTOCOL_BEST_OF_GRID;
    *estimate = (struct length_estimate){.value = NAN,
                                         .interval = {NAN, NAN, NAN, INTERVAL_NONE},
                                         .cut = of_grid ? best_cut : row->n_cut > 0,
                                         .without = of_grid ? row->n_all - n_of_grid : row->n - n};
    if (of_grid ? isfinite(best) : n > 0)
        estimate->value = protocol_estimate(protocol, value, n, best, &estimate->interval);
    free(value);
    return ST_OK;
}
