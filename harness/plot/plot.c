/* plot.c - accuracy over training, the table as bars, accuracy by length and against cost, all runs as a heat map,
 * their numbers and settings. plot_speed.h has throughput over length, gnuplot.h draws. */
#include "harness/plot/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/batch.h"
#include "harness/plot/gnuplot.h"
#include "harness/plot/plot_name.h"
#include "harness/plot/plot_speed.h"
#include "harness/rows/test_lengths.h"
#include "harness/store/files.h"
#include "tasks/task.h"

const char *const plot_kinds = "accuracy table length cost heat throughput";

static const char *const axis_names[] = {"auto", "steps", "tokens", "time", "epochs", "params", "state", "flops"};
static const char *const axis_titles[] = {"",
                                          "training steps",
                                          "training tokens",
                                          "seconds",
                                          "epochs",
                                          "parameters",
                                          "state (numbers a sequence)",
                                          "FLOPs a training step"};

/* Characters of the longest name, behind which a mark may stand. */
static int longest_name(const struct report_table *t) {
    size_t longest = 0;
    for (int k = 0; k < t->n_rows; k++) {
        size_t length = strlen(t->rows[k].label);
        longest = length > longest ? length : longest;
    }
    return (int)longest;
}

/* Adds the sizes of the nets that all rows have: "; D = 64, 2 layers, batch 32". */
static void add_sizes(char *text, size_t size, const struct report_table *t) {
    static const struct {
        size_t at; /* in struct run */
        const char *before, *behind;
    } sizes[] = {{offsetof(struct run, d_model), "D = ", ""},
                 {offsetof(struct run, n_layers), "", " layer"},
                 {offsetof(struct run, batch), "batch ", ""}};
    const char *separator = "; ";
    for (int i = 0; i < 3; i++) {
        int64_t first = *(const int64_t *)((const char *)t->rows[0].run + sizes[i].at);
        bool shared = true;
        for (int k = 1; k < t->n_rows; k++)
            shared = shared && *(const int64_t *)((const char *)t->rows[k].run + sizes[i].at) == first;
        if (!shared) continue;
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s%" PRId64 "%s%s", separator, sizes[i].before, first, sizes[i].behind,
                 *sizes[i].behind && first != 1 ? "s" : "");
        separator = ", ";
    }
}

/* What all plots of a table say: names and sizes; which rows were cut off. */
static void print_settings(FILE *f, const struct report_table *t, const struct plot_view *v, const char *heading,
                           const char *what) {
    const struct run *run = t->rows[0].run;
    char text[2 * RECORD_TEXT], name[sizeof t->rows->label + 4];
    bool cut_off = false;
    for (int k = 0; k < t->n_rows; k++) cut_off = cut_off || t->rows[k].n_cut;
    snprintf(text, sizeof text, "%s%s%s, profile %s: %s", t->task, v->plan ? " of " : "", v->plan ? v->plan : "",
             v->plan ? v->profile : t->profile, heading);
    gnuplot_setting(f, "heading", text);
    snprintf(text, sizeof text, "%s", what);
    add_sizes(text, sizeof text, t);
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, ", %" PRId64 " training sequences of length %" PRId64 "%s", run->n_train,
             run->len_train, cut_off ? "; " CUT_OFF_MARK " cut off" : "");
    gnuplot_setting(f, "subheading", text);
    gnuplot_longest(f, longest_name(t));
    fprintf(f, "n = %d\narray name[%d]\n", t->n_rows, t->n_rows);
    for (int k = 0; k < t->n_rows; k++) {
        fprintf(f, "name[%d] = ", k + 1);
        snprintf(name, sizeof name, "%s%s", t->rows[k].label, t->rows[k].n_cut ? " " CUT_OFF_MARK : "");
        gnuplot_quoted(f, name);
        fputc('\n', f);
    }
}

/* --- over training ------------------------------------------------------------------------------------------------ */

/* What a curve shows of an evaluation; NAN of one that is of no validation. */
static double y_of(const struct run_record *r, const struct curve_point *p, const struct plot_view *v) {
    if (p->split != SPLIT_VAL) return NAN;
    return v->y == PLOT_LOSS ? p->loss : run_point_metric(&r->run, p);
}

/* That of a run when `step` steps were done: its last evaluation until then. After its end a run that stopped well
 * keeps its last value; one that failed counts as chance, and has no loss. NAN before the first evaluation. */
static double y_at(const struct run_record *r, int64_t step, const struct plot_view *v) {
    double value = NAN;
    int64_t last = -1;
    for (int64_t i = 0; i < r->n_curve; i++) {
        double y = y_of(r, &r->curve[i], v);
        if (!isfinite(y)) continue;
        last = r->curve[i].step;
        if (last <= step) value = y;
    }
    if (!run_failed(&r->run) || step <= last) return value;
    return v->y == PLOT_LOSS ? NAN : run_chance(&r->run);
}

static int by_step(const void *left, const void *right) {
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The steps at which any run of the row was evaluated, in order; returns their number. *steps is the caller's to
 * free. */
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

/* The step at which the first of a row's runs was cut off: behind it nothing is known of the row. */
static int64_t end_of_curve(const struct report_row *row) {
    int64_t end = INT64_MAX;
    for (int i = 0; i < row->n; i++) {
        const struct run *run = &row->chosen[i]->run;
        if (run_cut_off(run) && run->steps < end) end = run->steps;
    }
    return end;
}

/* How much of the x axis a step is, on the average over its run. */
static double step_width(const struct run *run, int x) {
    double steps = run->steps > 0 ? (double)run->steps : NAN;
    switch (x) {
    case PLOT_TOKENS:
        return (double)run->tokens / steps;
    case PLOT_TIME:
        return run->wall_s / steps;
    case PLOT_EPOCHS:
        return (double)run->batch / (double)run->n_train;
    default:
        return 1;
    }
}

/* A block of the data file, as gnuplot calls it: a run at its own evaluations. */
static void print_seed(FILE *f, const struct run_record *r, const struct plot_view *v) {
    for (int64_t i = 0; i < r->n_curve; i++) {
        const struct curve_point *p = &r->curve[i];
        double y = y_of(r, p, v);
        if (!isfinite(y)) continue;
        double x = v->x == PLOT_TIME     ? p->wall_s
                   : v->x == PLOT_TOKENS ? (double)p->tokens
                                         : (double)p->step * step_width(&r->run, v->x);
        gnuplot_number(f, x, "\t");
        gnuplot_number(f, y, "\n");
    }
    fputs("0\tNaN\n\n\n", f); /* an empty block would shift the ones behind it */
}

/* A block: the mean over the seeds. Returns the number of its lines. */
static int print_mean(FILE *f, const struct report_row *row, const struct plot_view *v) {
    int64_t *steps, n = evaluation_steps(row, &steps), end = end_of_curve(row);
    int lines = 0;
    double width = 0;
    for (int i = 0; i < row->n; i++) width += step_width(&row->chosen[i]->run, v->x) / row->n;
    for (int64_t k = 0; k < n && steps[k] <= end; k++) {
        double sum = 0;
        for (int i = 0; i < row->n; i++) sum += y_at(row->chosen[i], steps[k], v);
        if (!isfinite(sum)) continue; /* some seed has not been evaluated yet */
        gnuplot_number(f, (double)steps[k] * width, "\t");
        gnuplot_number(f, sum / row->n, "\n");
        lines++;
    }
    free(steps);
    if (lines == 0) fputs("0\tNaN\n", f);
    fputs("\n\n", f);
    return lines;
}

/* Thin lines of the seeds where there are several; which row each is of. */
static void print_seeds(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    int m = 0;
    for (int k = 0; k < t->n_rows; k++)
        if (t->rows[k].n > 1) m += t->rows[k].n;
    fprintf(script, "m = %d\narray of[%d]\nof[%d] = 1\n", m, m + 1, m + 1); /* read even where there are none */
    int j = 0;
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < t->rows[k].n && t->rows[k].n > 1; i++) {
            print_seed(data, t->rows[k].chosen[i], v);
            fprintf(script, "of[%d] = %d\n", ++j, k + 1);
        }
}

/* The paper's numbers, which are of accuracy. */
static void print_published(FILE *script, const struct report_table *t, bool wanted) {
    bool some = false;
    fprintf(script, "array published[%d]\n", t->n_rows);
    for (int k = 0; k < t->n_rows; k++) {
        double value = wanted && !published_is_other(&t->rows[k].published) ? t->rows[k].published.value : NAN;
        fprintf(script, "published[%d] = ", k + 1);
        gnuplot_number(script, value, "\n");
        some = some || isfinite(value);
    }
    fprintf(script, "some_published = %d\n", some);
}

/* Whether some run has a point of a curve. */
static bool has_curve(const struct report_table *t, const struct plot_view *v) {
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < t->rows[k].n; i++)
            for (int64_t j = 0; j < t->rows[k].chosen[i]->n_curve; j++)
                if (isfinite(y_of(t->rows[k].chosen[i], &t->rows[k].chosen[i]->curve[j], v))) return true;
    return false;
}

static void print_accuracy(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    int most = 1, seeds = 1;
    bool loss = v->y == PLOT_LOSS;
    for (int k = 0; k < t->n_rows; k++) {
        int lines = print_mean(data, &t->rows[k], v);
        most = lines > most ? lines : most;
        seeds = t->rows[k].n > seeds ? t->rows[k].n : seeds;
    }
    print_seeds(script, data, t, v);
    print_published(script, t, !loss);
    char title[64];
    snprintf(title, sizeof title, "validation %s", loss ? "loss" : run_metric_name(t->rows[0].run));
    print_settings(script, t, v, loss ? "loss over training" : "accuracy over training",
                   seeds > 1 ? "mean over seeds, each seed a thin line" : "one seed");
    gnuplot_setting(script, "xtitle", axis_titles[v->x]);
    gnuplot_setting(script, "ytitle", title);
    fputs("chance = ", script);
    gnuplot_number(script, loss ? NAN : run_chance(t->rows[0].run), "\n");
    fprintf(script, "every = %d\nlogx = %d\nlogy = %d\n", 1 + most / 16, v->log_x, v->log_y);
}

/* --- the table as bars -------------------------------------------------------------------------------------------- */

/* The ends of a row's interval, or where it has none its seeds' smallest and largest value. The number itself of a
 * single seed, and where it is the best of the grid, of which they say nothing. */
static void ends_of(const struct report_row *row, const struct protocol *protocol, double *low, double *high) {
    *low = row->interval.low;
    *high = row->interval.high;
    for (int i = 0; row->interval.kind == INTERVAL_NONE && i < row->n; i++) {
        *low = i ? fmin(*low, row->value[i]) : row->value[i];
        *high = i ? fmax(*high, row->value[i]) : row->value[i];
    }
    if (row->n < 2 || protocol->level == 0) *low = *high = row->estimate;
}

/* What they are: "95 % interval; of fewer seeds, min to max"; "": there are none. */
static void name_ends(const struct report_table *t, const struct protocol *protocol, char *text, size_t size) {
    bool interval = false, values = false;
    for (int k = 0; k < t->n_rows; k++) {
        bool has = t->rows[k].interval.kind != INTERVAL_NONE;
        interval = interval || has;
        values = values || (!has && t->rows[k].n > 1 && protocol->level > 0);
    }
    snprintf(text, size, "%s", values ? "seeds, min to max" : "");
    if (interval)
        snprintf(text, size, "%g %% interval%s", 100 * protocol->level, values ? "; of fewer seeds, min to max" : "");
}

static void print_bars(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    const struct protocol *protocol = protocol_of(v->protocol);
    int most = 1;
    bool published = false, is_best = v->protocol == PROTOCOL_BEST_OF_GRID;
    for (int k = 0; k < t->n_rows; k++) {
        const struct report_row *row = &t->rows[k];
        double low, high, paper = published_is_other(&row->published) ? NAN : row->published.value;
        ends_of(row, protocol, &low, &high);
        fprintf(data, "%d\t", k + 1);
        gnuplot_number(data, row->estimate, "\t");
        gnuplot_number(data, low, "\t");
        gnuplot_number(data, high, "\t");
        gnuplot_number(data, row->best, "\t");
        gnuplot_number(data, paper, "\n");
        most = row->n_all > most ? row->n_all : most;
        published = published || isfinite(paper);
    }
    char best[64], metric[64], interval[64];
    snprintf(best, sizeof best, most == 1 ? "best of %d run" : "best of %d runs", most);
    snprintf(metric, sizeof metric, "test %s", run_metric_name(t->rows[0].run));
    print_settings(script, t, v, "ours beside the published numbers", "a failed run counts as chance");
    gnuplot_setting(script, "metric", metric);
    gnuplot_setting(script, "best", best);
    name_ends(t, protocol, interval, sizeof interval);
    gnuplot_setting(script, "estimate", protocol->name);
    gnuplot_setting(script, "interval", interval);
    fprintf(script, "bests = %d\nsome_published = %d\n", most > 1 && !is_best, published);
}

/* --- accuracy by length ------------------------------------------------------------------------------------------- */

/* Of many lengths neighbours share a point. */
#define LENGTH_BIN 8

static bool has_lengths(const struct report_table *t, const struct plot_view *v) {
    (void)v;
    return test_lengths_of(t).longest > 0;
}

/* A line of data, unless a seed has no such sequences: then 0. */
static int print_point(FILE *data, const struct report_row *row, int64_t first, int64_t last, double x) {
    double value = lengths_mean(row, first, last);
    if (!isfinite(value)) return 0;
    fprintf(data, "%g\t", x);
    gnuplot_number(data, value, "\n");
    return 1;
}

static int print_points(FILE *data, const struct report_row *row, const struct test_lengths *l) {
    int lines = 0;
    for (int i = 0; i < l->n; i++) lines += print_point(data, row, l->each[i], l->each[i], (double)l->each[i]);
    for (int64_t bin = l->shortest / LENGTH_BIN; !l->n && bin <= l->longest / LENGTH_BIN; bin++)
        lines += print_point(data, row, bin * LENGTH_BIN, (bin + 1) * LENGTH_BIN - 1, ((double)bin + 0.5) * LENGTH_BIN);
    return lines;
}

static void print_lengths(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    struct test_lengths lengths = test_lengths_of(t);
    (void)v;
    for (int k = 0; k < t->n_rows; k++) {
        if (print_points(data, &t->rows[k], &lengths) == 0) fputs("0\tNaN\n", data);
        fputs("\n\n", data);
    }
    print_settings(script, t, v, "accuracy by length",
                   lengths.n ? "mean over seeds (failed: chance)"
                             : "mean over seeds (failed: chance), eight neighbouring lengths a point");
    gnuplot_setting(script, "metric", "test token accuracy");
    fprintf(script, "chance = %.9g\ntrained = %lld\n", run_chance(t->rows[0].run),
            (long long)t->rows[0].run->len_train);
}

/* --- against cost ------------------------------------------------------------------------------------------------- */

static double cost_of(const struct run *run, int x) {
    return x == PLOT_STATE ? (double)run->state_floats : x == PLOT_FLOPS ? run->flop_step : (double)run->params;
}

static bool is_cost(int x) {
    return x >= PLOT_PARAMS;
}

static bool has_costs(const struct report_table *t, const struct plot_view *v) {
    for (int k = 0; k < t->n_rows; k++)
        if (cost_of(t->rows[k].run, v->x) > 0) return true;
    return false;
}

static void print_cost(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    for (int k = 0; k < t->n_rows; k++) {
        double low, high, cost = cost_of(t->rows[k].run, v->x);
        ends_of(&t->rows[k], protocol_of(v->protocol), &low, &high);
        gnuplot_number(data, cost > 0 ? cost : NAN, "\t");
        gnuplot_number(data, t->rows[k].estimate, "\t");
        gnuplot_number(data, low, "\t");
        gnuplot_number(data, high, "\n\n\n");
    }
    char metric[64];
    snprintf(metric, sizeof metric, "test %s", run_metric_name(t->rows[0].run));
    print_settings(script, t, v, "accuracy against cost", "a failed run counts as chance");
    gnuplot_setting(script, "xtitle", axis_titles[v->x]);
    gnuplot_setting(script, "metric", metric);
    fprintf(script, "chance = %.9g\n", run_chance(t->rows[0].run));
}

/* --- every run ---------------------------------------------------------------------------------------------------- */

#define HEAT_MOST 200 /* columns, rows */

static bool has_several_runs(const struct report_table *t, const struct plot_view *v) {
    (void)v;
    for (int k = 0; k < t->n_rows; k++)
        if (t->rows[k].n_all > 1) return true;
    return false;
}

/* The number's index in the list, to which it is added. */
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

/* How many rows the map has: rates of every model. */
static int heat_rows(const struct report_table *t) {
    int n = 0;
    for (int k = 0; k < t->n_rows; k++) n += t->rows[k].n_rates;
    return n < HEAT_MOST ? n : HEAT_MOST;
}

static void print_heat(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    (void)v;
    uint64_t seeds[HEAT_MOST] = {0};
    int columns = 0, rows = 0;
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < t->rows[k].n_all; i++) index_of(seeds, &columns, t->rows[k].all[i]->run.seed);
    qsort(seeds, (size_t)columns, sizeof *seeds, by_value);
    fprintf(script, "array row[%d]\n", HEAT_MOST);
    for (int k = 0; k < t->n_rows; k++) {
        double last = NAN;
        for (int i = 0; i < t->rows[k].n_all; i++) { /* by rate, then seed */
            const struct run *run = &t->rows[k].all[i]->run;
            int column = index_of(seeds, &columns, run->seed);
            if (run->lr != last) {
                char text[sizeof t->rows->label + 32];
                snprintf(text, sizeof text, "%s, %g", t->rows[k].label, run->lr);
                if (++rows > HEAT_MOST) break;
                fprintf(script, "row[%d] = ", rows);
                gnuplot_quoted(script, text);
                fputc('\n', script);
                last = run->lr;
            }
            if (column < HEAT_MOST) {
                fprintf(data, "%d\t%d\t", column + 1, rows);
                gnuplot_number(data, run_test_metric(run), "\n");
            }
        }
    }
    int all = 0;
    for (int k = 0; k < t->n_rows; k++) all += t->rows[k].n_rates;
    char below[96] = "a failed run counts as chance";
    if (all > HEAT_MOST || columns == HEAT_MOST) {
        size_t used = strlen(below);
        snprintf(below + used, sizeof below - used, "; the first %d rates and seeds alone", HEAT_MOST);
    }
    print_settings(script, t, v, "every learning rate and seed", below);
    char metric[64];
    snprintf(metric, sizeof metric, "test %s", run_metric_name(t->rows[0].run));
    gnuplot_setting(script, "metric", metric);
    fprintf(script, "rows = %d\ncolumns = %d\narray seed[%d]\n", rows < HEAT_MOST ? rows : HEAT_MOST, columns, columns);
    for (int i = 0; i < columns; i++) fprintf(script, "seed[%d] = '%" PRIu64 "'\n", i + 1, seeds[i]);
}

/* --- kinds -------------------------------------------------------------------------------------------------------- */

static bool always(const struct report_table *t, const struct plot_view *v) {
    (void)t;
    (void)v;
    return true;
}

/* Bars, and rows of a map, need a height each; beside curves and marks stand names. */
static int height_of_names(const struct report_table *t) {
    return figure_height(t->n_rows, longest_name(t));
}

static int height_of_bars(const struct report_table *t) {
    return 220 + 58 * t->n_rows;
}

static int height_of_map(const struct report_table *t) {
    return 220 + 28 * heat_rows(t);
}

/* usual: drawn where no kind is named. */
static const struct plot_kind {
    const char *name;
    void (*print)(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v);
    bool (*applies)(const struct report_table *t, const struct plot_view *v); /* whether there is anything to draw */
    int (*height)(const struct report_table *t);                              /* pixels */
    const char *otherwise;                                                    /* why there is none */
    const char *axes; /* flags of its axes, a blank behind each */
    int x;            /* enum plot_axis that auto stands for */
    bool usual;
} kinds[] = {
    {"accuracy", print_accuracy, has_curve, height_of_names, "no run here has a number of its validation",
     "x y log-x log-y ", PLOT_STEPS, true},
    {"table", print_bars, always, height_of_bars, "", "", PLOT_AUTO, true},
    {"length", print_lengths, has_lengths, height_of_names, "no run here was tested at several lengths", "", PLOT_AUTO,
     true},
    {"cost", print_cost, has_costs, height_of_names, "no model here has a cost of that kind", "x ", PLOT_PARAMS, false},
    {"heat", print_heat, has_several_runs, height_of_map, "no model here has several rates or seeds", "", PLOT_AUTO,
     false},
};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

const char *plot_axis_flags(const char *kind) {
    for (size_t k = 0; k < N_KINDS; k++)
        if (!strcmp(kinds[k].name, kind)) return kinds[k].axes;
    return strcmp(kind, "throughput") ? NULL : "";
}

/* --- drawing ------------------------------------------------------------------------------------------------------ */

/* "accuracy", or what it shows instead; and over what, if that is not the usual. */
static void name_kind(const struct plot_kind *kind, const struct plot_view *v, char *name, size_t size) {
    bool other = kind->x != PLOT_AUTO && v->x != kind->x;
    snprintf(name, size, "%s%s%s", kind->print == print_accuracy && v->y == PLOT_LOSS ? "loss" : kind->name,
             other ? "-" : "", other ? axis_names[v->x] : "");
}

static enum status plot_one(const struct report_tables *tables, int i, const struct plot_kind *kind,
                            const struct plot_view *view, const char *to, struct error *e) {
    char stem[PLOT_STEM_BYTES], name[32], *text[2] = {NULL, NULL};
    size_t size[2];
    const struct report_table *t = &tables->list[i];
    name_kind(kind, view, name, sizeof name);
    plot_stem(tables, i, name, stem);
    FILE *script = open_memstream(&text[0], &size[0]), *data = open_memstream(&text[1], &size[1]);
    if (script && data) kind->print(script, data, t, view);
    struct figure figure = {.stem = stem, .kind = kind->name, .height = kind->height(t), .formats = view->formats};
    enum status status = gnuplot_draw_streams(&figure, script, data, text, to, e);
    free(text[0]);
    free(text[1]);
    return status;
}

static enum status check_view(const struct plot_kind *kind, const struct plot_view *v, struct error *e) {
    if ((!kind || kind->print == print_accuracy) && is_cost(v->x))
        return fail(e, ST_USAGE, "plot accuracy: over %s there is no curve; `lrnn plot cost --x %s` has a mark a model",
                    axis_names[v->x], axis_names[v->x]);
    if (kind && kind->print == print_cost && v->x != PLOT_AUTO && !is_cost(v->x))
        return fail(e, ST_USAGE, "plot cost: %s is no cost of a model; --x is params, state or flops",
                    axis_names[v->x]);
    return ST_OK;
}

static enum status plot_tables(const struct report_tables *tables, const struct plot_kind *only,
                               const struct plot_view *asked, const char *to, struct error *e) {
    int drawn = 0;
    for (int i = 0; i < tables->n; i++)
        for (size_t k = 0; k < N_KINDS; k++) {
            bool wanted = only ? only == &kinds[k] : kinds[k].usual;
            struct plot_view view = *asked;
            view.protocol = tables->protocol;
            if (view.x == PLOT_AUTO) view.x = kinds[k].x;
            if (!wanted || !kinds[k].applies(&tables->list[i], &view)) continue;
            TRY(plot_one(tables, i, &kinds[k], &view, to, e));
            drawn++;
        }
    if (tables->n > 0 && drawn == 0 && only)
        return fail(e, ST_USAGE, "%s, so there is no plot of the kind %s", only->otherwise, only->name);
    return ST_OK;
}

enum status report_plot_view(const struct record_set *set, const struct report_filter *filter, const char *kind,
                             const struct plot_view *view, const char *out, const char *to, struct error *e) {
    struct report_tables tables;
    const struct plot_kind *only = NULL;
    bool throughput = kind && !strcmp(kind, "throughput");
    for (size_t k = 0; kind && k < N_KINDS; k++)
        if (strcmp(kind, kinds[k].name) == 0) only = &kinds[k];
    if (kind && !only && !throughput) return fail(e, ST_USAGE, "unknown plot '%s'; there are: %s", kind, plot_kinds);
    TRY(check_view(only, view, e));
    TRY(make_folder(to, e));
    if (throughput) return plot_throughput(&(struct speed_choice){0}, view->formats, out, to, e);
    TRY(report_tables_make(&tables, set, filter, out, e));
    enum status status = plot_tables(&tables, only, view, to, e);
    report_tables_free(&tables);
    return status;
}

enum status report_plot_check(const struct report_tables *tables, bool lengths, const char *to, struct error *e) {
    char stem[PLOT_STEM_BYTES];
    for (int i = 0; i < tables->n; i++)
        for (size_t k = 0; k < N_KINDS; k++) {
            if (!kinds[k].usual || (kinds[k].applies == has_lengths && !lengths)) continue;
            plot_stem(tables, i, kinds[k].name, stem);
            TRY(gnuplot_check(&(struct figure){.stem = stem}, to, e));
        }
    return ST_OK;
}
