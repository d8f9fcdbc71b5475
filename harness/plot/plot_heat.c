/* plot_heat.c - maps (plot_kinds.h). Kind "heat": every run as a cell, with a row per model and rate and a column per
 * seed. Kind "position-map": accuracy by position, with a row per model. */
#include "harness/plot/plot_kinds.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plot/gnuplot.h"
#include "harness/rows/test_lengths.h"

#define HEAT_MOST 200 /* columns, rows */

bool has_several_runs(const struct report_table *t, const struct plot_view *v) {
    (void)v;
    for (int k = 0; k < t->n_rows; k++)
        if (t->rows[k].n_all > 1) return true;
    return false;
}

/* Returns the index of the number in the list, adding it if it is new. */
static int index_of(uint64_t *list, int *n, uint64_t value) {
    int i = 0;
    while (i < *n && list[i] != value) i++;
    if (i == *n && *n < HEAT_MOST) list[(*n)++] = value;
    return i;
}

static int by_value(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

int heat_rows(const struct report_table *t) {
    int n = 0;
    for (int k = 0; k < t->n_rows; k++) n += t->rows[k].n_rates;
    return n < HEAT_MOST ? n : HEAT_MOST;
}

/* Whether run i was done again, so that only a later attempt gets a cell. Runs are sorted by rate, then seed, then
 * attempt. */
static bool is_done_again(const struct report_row *row, int i) {
    if (i + 1 >= row->n_all) return false;
    const struct run *run = &row->all[i]->run, *next = &row->all[i + 1]->run;
    return row->all[i]->set_aside && next->lr == run->lr && next->seed == run->seed;
}

/* Prints a cell: its place, value and text. A failed run has no value, because the colour of chance would mean a run
 * that learnt nothing. `failed`: an earlier attempt failed. */
static void print_cell(FILE *data, const struct run *run, bool failed, int column, int row) {
    fprintf(data, "%d\t%d\t", column, row);
    gnuplot_number(data, run_failed(run) ? NAN : run_test_metric(run), "\t");
    if (run_failed(run))
        fputs("failed\n", data);
    else
        fprintf(data, "%.3f%s%s\n", run_test_metric(run), run_cut_off(run) ? CUT_OFF_MARK : "",
                failed ? FAILED_MARK : "");
}

/* Prints the cells of a model after `rows` rows of other models. Returns the number of rows including its own. */
static int print_cells(FILE *script, FILE *data, const struct report_row *row, uint64_t *seeds, int columns, int rows) {
    double last = NAN;
    bool failed = false;
    for (int i = 0; i < row->n_all; i++) {
        const struct run *run = &row->all[i]->run;
        int column = index_of(seeds, &columns, run->seed);
        if (run->lr != last) {
            if (++rows > HEAT_MOST) break;
            gnuplot_element(script, "row", rows, "%s, %g", row->label, run->lr);
            last = run->lr;
        }
        bool again = is_done_again(row, i);
        if (!again && column < HEAT_MOST) print_cell(data, run, failed, column + 1, rows);
        failed = again;
    }
    return rows;
}

/* Prints the sizes of a map. The names of its columns follow. */
static void print_map_size(FILE *script, const char *xtitle, int rows, int columns) {
    gnuplot_setting(script, "xtitle", "%s", xtitle);
    fprintf(script, "rows = %d\ncolumns = %d\narray column[%d]\n", rows < HEAT_MOST ? rows : HEAT_MOST, columns,
            columns);
}

void print_heat(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    uint64_t seeds[HEAT_MOST] = {0};
    int columns = 0, rows = 0, all = 0;
    bool again = false;
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < t->rows[k].n_all; i++) index_of(seeds, &columns, t->rows[k].all[i]->run.seed);
    qsort(seeds, (size_t)columns, sizeof *seeds, by_value);
    fprintf(script, "array row[%d]\n", HEAT_MOST);
    for (int k = 0; k < t->n_rows; k++) rows = print_cells(script, data, &t->rows[k], seeds, columns, rows);
    for (int k = 0; k < t->n_rows; k++) {
        all += t->rows[k].n_rates;
        for (int i = 0; i < t->rows[k].n_all; i++) again = again || is_done_again(&t->rows[k], i);
    }
    char below[160], limit[64] = "";
    if (all > HEAT_MOST || columns == HEAT_MOST)
        snprintf(limit, sizeof limit, "; the first %d rates and seeds alone", HEAT_MOST);
    snprintf(below, sizeof below, "the last attempt at each run%s%s",
             again ? " (" FAILED_MARK ": an earlier one failed, and counts as chance in tables)" : "", limit);
    print_plot_settings(script, t, v, MARK_EVERY, "every learning rate and seed", below);
    gnuplot_setting(script, "metric", "test %s", run_metric_name(t->rows[0].run));
    print_map_size(script, "seed", rows, columns);
    for (int i = 0; i < columns; i++) fprintf(script, "column[%d] = '%" PRIu64 "'\n", i + 1, seeds[i]);
}

void print_position_map(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    struct test_lengths l = test_lengths_of(t, EVAL_BY_POSITION);
    int64_t column[HEAT_MOST];
    int columns = 0, rows = t->n_rows < HEAT_MOST ? t->n_rows : HEAT_MOST;
    fprintf(script, "array row[%d]\n", HEAT_MOST);
    for (int k = 0; k < rows; k++) gnuplot_element(script, "row", k + 1, "%s", t->rows[k].label);
    for (int64_t at = l.shortest; at <= l.longest && columns < HEAT_MOST; at++) {
        bool some = false;
        for (int k = 0; k < rows; k++) {
            double value = lengths_mean(&t->rows[k], EVAL_BY_POSITION, at, at).value;
            if (isnan(value)) continue;
            fprintf(data, "%d\t%d\t%.9g\t \n", columns + 1, k + 1, value);
            some = true;
        }
        if (some) column[columns++] = at;
    }
    print_plot_settings(script, t, v, MARK_CHOSEN, "accuracy by position", "mean over seeds (failed: chance)");
    gnuplot_setting(script, "metric", "test token accuracy");
    print_map_size(script, "inputs read", rows, columns);
    for (int i = 0; i < columns; i++) fprintf(script, "column[%d] = '%" PRId64 "'\n", i + 1, column[i]);
}
