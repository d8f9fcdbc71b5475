/* plot_curve.c - accuracy or loss over training, the kind "accuracy" (plot_kinds.h). */
#include "harness/plot/plot_kinds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/batch.h"
#include "harness/plot/gnuplot.h"

/* Returns the value to plot for a point; NAN if it is not a validation, or of the test not of the longest examples. The
 * points of a test come by ascending length. */
static double y_of(const struct run_record *r, const struct curve_point *p, const struct plot_view *v) {
    bool last = p + 1 == r->curve + r->n_curve || p[1].split != SPLIT_TEST;
    if (v->y == PLOT_TEST) return p->split == SPLIT_TEST && last ? p->acc : NAN;
    if (p->split != SPLIT_VAL) return NAN;
    return v->y == PLOT_LOSS ? p->loss : run_point_metric(&r->run, p);
}

/* Returns the value of a run after `step` steps, from its last evaluation until then. After its end a run that stopped
 * well keeps its last value; a failed run counts as chance, and has no loss. NAN before the first evaluation; *awaited:
 * an evaluation follows. */
static double y_at(const struct run_record *r, int64_t step, const struct plot_view *v, bool *awaited) {
    double value = NAN;
    int64_t last = -1;
    for (int64_t i = 0; i < r->n_curve; i++) {
        double y = y_of(r, &r->curve[i], v);
        if (!isfinite(y)) continue;
        last = r->curve[i].step;
        if (last <= step) value = y;
    }
    *awaited = !isfinite(value) && last > step;
    if (!run_failed(&r->run) || step <= last) return value;
    return v->y == PLOT_LOSS ? NAN : run_chance(&r->run);
}

static int by_step(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Lists the steps at which any run of the row was evaluated, in order, and returns their number. The caller frees
 * *steps. */
static int64_t evaluation_steps(const struct report_row *row, int64_t **steps) {
    int64_t most = 1, n = 0, kept = 0;
    for (int i = 0; i < row->n; i++) most += row->chosen[i]->n_curve;
    *steps = malloc((size_t)most * sizeof **steps);
    if (!*steps) return 0;
    for (int i = 0; i < row->n; i++)
        for (int64_t k = 0; k < row->chosen[i]->n_curve; k++)
            if (row->chosen[i]->curve[k].split == SPLIT_VAL) (*steps)[n++] = row->chosen[i]->curve[k].step;
    qsort(*steps, (size_t)n, sizeof **steps, by_step);
    for (int64_t i = 0; i < n; i++)
        if (kept == 0 || (*steps)[i] != (*steps)[kept - 1]) (*steps)[kept++] = (*steps)[i];
    return kept;
}

/* Returns the step at which the first of a row's runs was cut off; the row's curve ends there. */
static int64_t end_of_curve(const struct report_row *row) {
    int64_t end = INT64_MAX;
    for (int i = 0; i < row->n; i++) {
        const struct run *run = &row->chosen[i]->run;
        if (run_cut_off(run) && run->steps < end) end = run->steps;
    }
    return end;
}

/* Returns the mean length of a run's step on the x axis. */
static double step_width(const struct run *run, int x) {
    double steps = run->steps > 0 ? (double)run->steps : NAN;
    switch (x) {
    case PLOT_TOKENS:
        return (double)run->tokens / steps;
    case PLOT_TIME:
        return run->wall_s / steps;
    case PLOT_EPOCHS:
        return run_step_epochs(run);
    default:
        return 1;
    }
}

/* Prints a block (gnuplot's term) of the data file: a run at its own evaluations. */
static void print_seed(FILE *f, const struct run_record *r, const struct plot_view *v) {
    for (int64_t i = 0; i < r->n_curve; i++) {
        const struct curve_point *p = &r->curve[i];
        double y = y_of(r, p, v);
        if (!isfinite(y)) continue;
        double x = v->x == PLOT_TIME     ? p->wall_s
                   : v->x == PLOT_TOKENS ? (double)p->tokens
                                         : (double)p->step * step_width(&r->run, v->x);
        gnuplot_row(f, 2, (double[]){x, y});
    }
    fputs("0\tNaN\n", f); /* an empty block would shift the numbers of later blocks */
    gnuplot_end_block(f);
}

/* Returns the mean after `step` steps over the *seeds seeds that have a value then. NAN if none has, or if a seed's
 * first value is still to come. */
static double mean_at(const struct report_row *row, int64_t step, const struct plot_view *v, int *seeds) {
    double sum = 0;
    *seeds = 0;
    for (int i = 0; i < row->n; i++) {
        bool awaited;
        double y = y_at(row->chosen[i], step, v, &awaited);
        if (awaited) return NAN;
        if (!isfinite(y)) continue;
        sum += y;
        ++*seeds;
    }
    return *seeds ? sum / *seeds : NAN;
}

/* Prints a block: the mean over the seeds. Returns its number of lines; *seeds: seeds in the last mean. */
static int print_mean(FILE *f, const struct report_row *row, const struct plot_view *v, int *seeds) {
    int64_t *steps, n = evaluation_steps(row, &steps), end = end_of_curve(row);
    int lines = 0;
    double width = 0;
    *seeds = 0;
    for (int i = 0; i < row->n; i++) width += step_width(&row->chosen[i]->run, v->x) / row->n;
    for (int64_t k = 0; k < n && steps[k] <= end; k++) {
        int own;
        double mean = mean_at(row, steps[k], v, &own);
        if (!isfinite(mean)) continue;
        gnuplot_row(f, 2, (double[]){(double)steps[k] * width, mean});
        *seeds = own;
        lines++;
    }
    free(steps);
    if (lines == 0) fputs("0\tNaN\n", f);
    gnuplot_end_block(f);
    return lines;
}

/* Most thin lines of a row. More would hide each other, and gnuplot would take minutes. */
#define SEED_LINES 100

/* Returns the number of thin lines of a row; a row of one seed has none. */
static int seed_lines(const struct report_row *row) {
    return row->n < 2 ? 0 : row->n < SEED_LINES ? row->n : SEED_LINES;
}

/* Prints the thin lines, each with the number of its row. Of more seeds it takes some, evenly spread. */
static void print_seeds(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    int m = 0;
    for (int k = 0; k < t->n_rows; k++) m += seed_lines(&t->rows[k]);
    fprintf(script, "m = %d\narray of[%d]\nof[%d] = 1\n", m, m + 1, m + 1); /* read even without seeds */
    int j = 0;
    for (int k = 0; k < t->n_rows; k++)
        for (int64_t i = 0, n = seed_lines(&t->rows[k]); i < n; i++) {
            print_seed(data, t->rows[k].chosen[i * t->rows[k].n / n], v);
            fprintf(script, "of[%d] = %d\n", ++j, k + 1);
        }
}

/* Prints the paper's numbers, which are accuracies. */
static void print_published(FILE *script, const struct report_table *t, bool wanted) {
    bool some = false, best = false;
    fprintf(script, "array published[%d]\n", t->n_rows);
    for (int k = 0; k < t->n_rows; k++) {
        double value = wanted && !t->rows[k].unlike_published ? t->rows[k].published.value : NAN;
        fprintf(script, "published[%d] = ", k + 1);
        gnuplot_number(script, value, "\n");
        some = some || isfinite(value);
        best = best || (isfinite(value) && t->rows[k].published.best);
    }
    gnuplot_setting(script, "published_title", "published (test%s)", best ? ", the best of theirs" : "");
    fprintf(script, "some_published = %d\n", some);
}

bool has_curve(const struct report_table *t, const struct plot_view *v) {
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < t->rows[k].n; i++)
            for (int64_t j = 0; j < t->rows[k].chosen[i]->n_curve; j++)
                if (isfinite(y_of(t->rows[k].chosen[i], &t->rows[k].chosen[i]->curve[j], v))) return true;
    return false;
}

/* Prints the rows' means, and after their names how many seeds are missing. Rows without points are listed separately,
 * because gnuplot prints no title for such lines. Returns the number of points of the longest line. */
static int print_means(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    int most = 1, n_empty = 0;
    fprintf(script, "array empty[%d]\n", t->n_rows);
    for (int k = 0; k < t->n_rows; k++) {
        char missing[64] = "";
        int seeds, lines = print_mean(data, &t->rows[k], v, &seeds);
        if (lines == 0) {
            snprintf(missing, sizeof missing, " (no %s)",
                     v->y == PLOT_LOSS   ? "loss"
                     : v->y == PLOT_TEST ? "test"
                                         : "validation");
            fprintf(script, "empty[%d] = %d\n", ++n_empty, k + 1);
        } else if (seeds < t->rows[k].n) {
            snprintf(missing, sizeof missing, " (%d of %d seeds)", seeds, t->rows[k].n);
        }
        if (*missing) print_plot_name(script, t, k, v, MARK_CHOSEN, missing);
        most = lines > most ? lines : most;
    }
    fprintf(script, "n_empty = %d\n", n_empty);
    return most;
}

/* Whether a run of the table has test points of single lengths; else its test points are of all lengths together. */
static bool tells_lengths_apart(const struct report_table *t) {
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < t->rows[k].n; i++)
            for (int64_t j = 0; j < t->rows[k].chosen[i]->n_curve; j++)
                if (t->rows[k].chosen[i]->curve[j].length > 0) return true;
    return false;
}

void print_curves(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    bool loss = v->y == PLOT_LOSS;
    int seeds = 1, failed = 0;
    for (int k = 0; k < t->n_rows; k++) {
        seeds = t->rows[k].n > seeds ? t->rows[k].n : seeds;
        failed += t->rows[k].n_failed;
    }
    char what[128] = "one seed", lines[64] = "each seed a thin line";
    if (seeds > SEED_LINES) snprintf(lines, sizeof lines, "at most %d seeds of a model as thin lines", SEED_LINES);
    if (seeds > 1)
        snprintf(what, sizeof what, "mean %s, %s", failed && !loss ? "(failed: chance)" : "over seeds", lines);
    print_plot_settings(script, t, v, MARK_CHOSEN,
                        loss                     ? "loss over training"
                        : v->y != PLOT_TEST      ? "accuracy over training"
                        : tells_lengths_apart(t) ? "test accuracy of the longest over training"
                                                 : "test accuracy over training",
                        what);
    int most = print_means(script, data, t, v);
    print_seeds(script, data, t, v);
    print_published(script, t, v->y == PLOT_ACC);
    gnuplot_setting(script, "xtitle", "%s", plot_axis_titles[v->x]);
    if (v->y == PLOT_TEST)
        gnuplot_setting(script, "ytitle", "test accuracy");
    else
        gnuplot_setting(script, "ytitle", "validation %s", loss ? "loss" : run_metric_name(t->rows[0].run));
    fputs("chance = ", script);
    gnuplot_number(script, v->y == PLOT_ACC ? run_chance(t->rows[0].run) : NAN, "\n");
    fprintf(script, "every = %d\nlogx = %d\nlogy = %d\n", 1 + most / 16, v->log_x, v->log_y);
}
