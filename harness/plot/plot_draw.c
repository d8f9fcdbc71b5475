/* plot_draw.c - the kinds of figures: what each draws, when it applies, and its file. Bars, accuracy by length and
 * against cost are here; accuracy over training is in plot_curve.c, maps in plot_heat.c, throughput over length in
 * plot_speed.c. gnuplot.h draws. */
#include "harness/plot/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/option.h"
#include "harness/plot/gnuplot.h"
#include "harness/plot/plot_kinds.h"
#include "harness/rows/test_lengths.h"
#include "tasks/task.h"

static const char *const axis_names[] = {"auto", "steps", "tokens", "time", "epochs", "params", "state", "flops"};

/* --- the table as bars -------------------------------------------------------------------------------------------- */

/* Gives the ends of a row's interval, or without an interval the smallest and largest value of its seeds. For a single
 * seed, or the best of the grid, both ends are the number itself. */
static void ends_of(const struct report_row *row, const struct protocol *protocol, double *low, double *high) {
    *low = row->interval.low;
    *high = row->interval.high;
    for (int i = 0; row->interval.kind == INTERVAL_NONE && i < row->n; i++) {
        *low = i ? fmin(*low, row->value[i]) : row->value[i];
        *high = i ? fmax(*high, row->value[i]) : row->value[i];
    }
    if (row->n < 2 || protocol->level == 0) *low = *high = row->estimate;
}

static void print_bars(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    const struct protocol *protocol = protocol_of(v->protocol);
    int least = t->rows[0].n_all, most = least; /* runs per model */
    bool published = false, intervals = false, values = false;
    char range[32] = "", interval[64] = "";
    for (int k = 0; k < t->n_rows; k++) {
        const struct report_row *row = &t->rows[k];
        bool has_interval = row->interval.kind != INTERVAL_NONE;
        double low, high, paper = row->unlike_published ? NAN : row->published.value;
        ends_of(row, protocol, &low, &high);
        gnuplot_row(data, 6, (double[]){k + 1, row->estimate, low, high, row->best, paper});
        published = published || isfinite(paper);
        intervals = intervals || has_interval;
        values = values || (!has_interval && row->n > 1 && protocol->level > 0);
        least = row->n_all < least ? row->n_all : least;
        most = row->n_all > most ? row->n_all : most;
    }
    print_plot_settings(script, t, v, MARK_ESTIMATE, "ours beside the published numbers",
                        "a failed run counts as chance");
    if (least < most) snprintf(range, sizeof range, "%d to ", least);
    if (intervals) snprintf(interval, sizeof interval, "%g %% interval", 100 * protocol->level);
    gnuplot_setting(script, "metric", "test %s", run_metric_name(t->rows[0].run));
    gnuplot_setting(script, "best", "best of %s%d run%s", range, most, most == 1 ? "" : "s");
    gnuplot_setting(script, "estimate", "%s", protocol->name);
    gnuplot_setting(script, "interval", "%s%s%s", interval, intervals && values ? "; of fewer " : "",
                    values ? "seeds, min to max" : "");
    fprintf(script, "bests = %d\nsome_published = %d\n", most > 1 && v->protocol != PROTOCOL_BEST_OF_GRID, published);
}

/* --- accuracy by length ------------------------------------------------------------------------------------------- */

static bool has_lengths(const struct report_table *t, const struct plot_view *v) {
    (void)v;
    return test_lengths_of(t, EVAL_BY_LENGTH).longest > 0;
}

static bool has_positions(const struct report_table *t, const struct plot_view *v) {
    (void)v;
    return test_lengths_of(t, EVAL_BY_POSITION).longest > 0;
}

/* Prints a data line with Wilson's interval and returns 1; returns 0 if no seed has such sequences. */
static int print_point(FILE *data, const struct report_row *row, const char *by, int64_t first, int64_t last,
                       double x) {
    struct lengths_mean mean = lengths_mean(row, by, first, last);
    if (!isfinite(mean.value)) return 0;
    gnuplot_row(data, 4, (double[]){x, mean.value, mean.interval.low, mean.interval.high});
    return 1;
}

/* Prints the settings for plots/length.gp. */
static void print_line_settings(FILE *script, const struct report_table *t, const struct plot_view *v,
                                const char *heading, const char *what, const char *xtitle) {
    print_plot_settings(script, t, v, MARK_CHOSEN, heading, what);
    gnuplot_setting(script, "metric", "test token accuracy");
    gnuplot_setting(script, "xtitle", "%s", xtitle);
    fprintf(script, "chance = %.9g\ntrained = %lld\n", run_chance(t->rows[0].run),
            (long long)t->rows[0].run->len_train);
}

static void print_lengths(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    struct length_bins b = length_bins_of(t, EVAL_BY_LENGTH, true);
    int64_t fewest = INT64_MAX;
    char what[160];
    bool shared = false;
    for (int i = 0; i < b.n; i++) {
        shared = shared || b.last[i] > b.first[i];
        if (b.n_measured[i] > 0 && b.n_measured[i] < fewest) fewest = b.n_measured[i];
    }
    for (int k = 0; k < t->n_rows; k++) {
        int lines = 0;
        for (int i = 0; i < b.n; i++)
            lines += print_point(data, &t->rows[k], b.by, b.first[i], b.last[i], (double)(b.first[i] + b.last[i]) / 2);
        if (lines == 0) fputs("0\tNaN\tNaN\tNaN\n", data);
        gnuplot_end_block(data);
    }
    snprintf(what, sizeof what, "mean over seeds (failed: chance)%s, 95%% Wilson%s%.0lld%s",
             shared ? ", neighbouring lengths share a point" : "", fewest < INT64_MAX ? " of at least " : "",
             fewest < INT64_MAX ? (long long)fewest : 0LL, fewest < INT64_MAX ? " sequences" : "");
    print_line_settings(script, t, v, "accuracy by length", what, "length");
}

/* Prints a point for every recorded position. */
static void print_positions(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v) {
    struct test_lengths l = test_lengths_of(t, EVAL_BY_POSITION);
    for (int k = 0; k < t->n_rows; k++) {
        int lines = 0;
        for (int64_t at = l.shortest; at <= l.longest; at++)
            lines += print_point(data, &t->rows[k], EVAL_BY_POSITION, at, at, (double)at);
        if (lines == 0) fputs("0\tNaN\tNaN\tNaN\n", data);
        gnuplot_end_block(data);
    }
    print_line_settings(script, t, v, "accuracy by position", "mean over seeds (failed: chance)", "inputs read");
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
        gnuplot_row(data, 4, (double[]){cost > 0 ? cost : NAN, t->rows[k].estimate, low, high});
        gnuplot_end_block(data);
    }
    print_plot_settings(script, t, v, MARK_ESTIMATE, "accuracy against cost", "a failed run counts as chance");
    gnuplot_setting(script, "xtitle", "%s", plot_axis_titles[v->x]);
    gnuplot_setting(script, "metric", "test %s", run_metric_name(t->rows[0].run));
    fprintf(script, "chance = %.9g\n", run_chance(t->rows[0].run));
}

/* --- kinds -------------------------------------------------------------------------------------------------------- */

static bool always(const struct report_table *t, const struct plot_view *v) {
    (void)t;
    (void)v;
    return true;
}

/* Returns the height of a figure with names beside it. */
static int height_of_names(const struct report_table *t) {
    return figure_height(t->n_rows, longest_name(t));
}

static int height_of_bars(const struct report_table *t) {
    return 220 + (longest_name(t) > FIGURE_WIDE ? 80 : 58) * t->n_rows; /* wide names are above their bars */
}

static int height_of_map(const struct report_table *t) {
    return 220 + 28 * heat_rows(t);
}

static const struct plot_kind {
    const char *name;
    const char *script;  /* in plots/, without .gp; NULL: the name */
    const char *of_y[3]; /* its name for each --y; NULLs: --y has no effect */
    void (*print)(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v);
    bool (*applies)(const struct report_table *t, const struct plot_view *v); /* whether there is anything to draw */
    int (*height)(const struct report_table *t);                              /* pixels */
    const char *otherwise; /* the error if there is nothing to draw */
    const char *axes;      /* flags of its axes, each followed by a blank */
    int x;                 /* enum plot_axis meant by auto */
    bool usual;            /* drawn if no kind is named */
    bool by_length;        /* only for runs that are tested at several lengths */
    bool of_speeds;        /* drawn from perf.csv by plot_speed.c; only its name above is used */
} kinds[] = {
    {.name = "accuracy",
     .of_y = {"accuracy", "loss", "test"},
     .print = print_curves,
     .applies = has_curve,
     .height = height_of_names,
     .otherwise = "no run here has a number of its validation; --y test draws runs with --test-each yes",
     .axes = "x y log-x log-y ",
     .x = PLOT_STEPS,
     .usual = true},
    {.name = "table",
     .print = print_bars,
     .applies = always,
     .height = height_of_bars,
     .otherwise = "",
     .axes = "",
     .usual = true},
    {.name = "length",
     .print = print_lengths,
     .applies = has_lengths,
     .height = height_of_names,
     .otherwise = "no run here was tested at several lengths",
     .axes = "",
     .usual = true,
     .by_length = true},
    {.name = "position",
     .script = "length",
     .print = print_positions,
     .applies = has_positions,
     .height = height_of_names,
     .otherwise = "no run here has its accuracy by position",
     .axes = ""},
    {.name = "position-map",
     .script = "heat",
     .print = print_position_map,
     .applies = has_positions,
     .height = height_of_map,
     .otherwise = "no run here has its accuracy by position",
     .axes = ""},
    {.name = "cost",
     .print = print_cost,
     .applies = has_costs,
     .height = height_of_names,
     .otherwise = "no model here has a cost of that kind",
     .axes = "x ",
     .x = PLOT_PARAMS},
    {.name = "heat",
     .print = print_heat,
     .applies = has_several_runs,
     .height = height_of_map,
     .otherwise = "no model here has several rates or seeds",
     .axes = ""},
    {.name = "throughput", .axes = "", .of_speeds = true},
};

#define N_KINDS (sizeof kinds / sizeof kinds[0])

/* Finds a kind by name; NULL: there is none. */
static const struct plot_kind *kind_of(const char *name) {
    for (size_t k = 0; k < N_KINDS; k++)
        if (!strcmp(kinds[k].name, name)) return &kinds[k];
    return NULL;
}

static const char *kind_name(const void *list, int i) {
    return ((const struct plot_kind *)list)[i].name;
}

const char *plot_axis_flags(const char *kind) {
    const struct plot_kind *known = kind_of(kind);
    return known ? known->axes : NULL;
}

bool plot_is_of_speeds(const char *kind) {
    const struct plot_kind *known = kind ? kind_of(kind) : NULL;
    return known && known->of_speeds;
}

/* --- drawing ------------------------------------------------------------------------------------------------------ */

/* Names a figure: the kind, or its name for --y, and the x axis if it is not the usual one. */
static void name_kind(const struct plot_kind *kind, const struct plot_view *v, char *name, size_t size) {
    bool other = kind->x != PLOT_AUTO && v->x != kind->x;
    snprintf(name, size, "%s%s%s", kind->of_y[v->y] ? kind->of_y[v->y] : kind->name, other ? "-" : "",
             other ? axis_names[v->x] : "");
}

/* A figure to draw. */
struct job {
    const struct report_table *table;
    const struct plot_kind *kind;
    struct plot_view view;
    char stem[PLOT_STEM_BYTES];
};

static void print_job(FILE *script, FILE *data, const void *context) {
    const struct job *job = context;
    job->kind->print(script, data, job->table, &job->view);
}

static enum status check_view(const struct plot_kind *kind, const struct plot_view *v, struct error *e) {
    bool over_training = !kind || (kind->x != PLOT_AUTO && !is_cost(kind->x));
    if (over_training && is_cost(v->x))
        return fail(e, ST_USAGE,
                    "plot accuracy: over %s there is no curve; `lrnn plot cost --x %s` has one point per model",
                    axis_names[v->x], axis_names[v->x]);
    if (kind && is_cost(kind->x) && v->x != PLOT_AUTO && !is_cost(v->x))
        return fail(e, ST_USAGE, "plot cost: %s is no cost of a model; --x is params, state or flops",
                    axis_names[v->x]);
    return ST_OK;
}

/* Lists the figures of the tables in `jobs`, which has room for every kind of every table. Returns their number. */
static int list_jobs(struct job *jobs, const struct report_tables *tables, const struct plot_kind *only,
                     const struct plot_view *asked) {
    int n = 0;
    for (int i = 0; i < tables->n; i++)
        for (size_t k = 0; k < N_KINDS; k++) {
            const struct plot_kind *kind = &kinds[k];
            struct plot_view view = *asked;
            char name[32];
            view.protocol = tables->protocol;
            view.confirm = tables->confirm;
            view.own_numbers = tables->published.own;
            if (view.x == PLOT_AUTO) view.x = kind->x;
            if (!(only ? only == kind : kind->usual) || !kind->applies(&tables->list[i], &view)) continue;
            jobs[n] = (struct job){.table = &tables->list[i], .kind = kind, .view = view};
            name_kind(kind, &view, name, sizeof name);
            plot_stem(tables, i, name, jobs[n++].stem);
        }
    return n;
}

/* Draws all figures or none: files that must not be replaced are found before the first figure is drawn. */
static enum status draw_jobs(const struct job *jobs, int n, const char *to, struct error *e) {
    for (int i = 0; i < n; i++)
        TRY(gnuplot_check(&(struct figure){.stem = jobs[i].stem, .formats = jobs[i].view.formats}, to, e));
    for (int i = 0; i < n; i++)
        TRY(gnuplot_draw(&(struct figure){.stem = jobs[i].stem,
                                          .kind = jobs[i].kind->script ? jobs[i].kind->script : jobs[i].kind->name,
                                          .height = jobs[i].kind->height(jobs[i].table),
                                          .formats = jobs[i].view.formats,
                                          .told = jobs[i].view.told},
                         print_job, &jobs[i], to, e));
    return ST_OK;
}

static enum status plot_tables(const struct report_tables *tables, const struct plot_kind *only,
                               const struct plot_view *asked, const char *to, struct error *e) {
    struct job *jobs = calloc((size_t)tables->n * N_KINDS + 1, sizeof *jobs);
    if (!jobs) return fail(e, ST_MEMORY, "no memory to plot");
    int n = list_jobs(jobs, tables, only, asked);
    enum status status = n ? draw_jobs(jobs, n, to, e) : ST_OK;
    free(jobs);
    if (n || tables->n == 0 || !only) return status;
    return fail(e, ST_USAGE, "%s, so there is no plot of the kind %s", only->otherwise, only->name);
}

enum status report_plot_view(const struct record_set *set, const struct report_filter *filter, const char *kind,
                             const struct plot_view *view, const char *out, const char *to, struct error *e) {
    struct report_tables tables;
    const struct plot_kind *only = NULL;
    int index;
    if (kind) TRY(name_choose("plot", kind, (int)N_KINDS, kind_name, kinds, &index, e));
    if (kind) only = &kinds[index];
    TRY(check_view(only, view, e));
    if (only && only->of_speeds) return plot_throughput(&(struct speed_choice){0}, view, out, to, e);
    TRY(report_tables_make(&tables, set, filter, out, e));
    enum status status = plot_tables(&tables, only, view, to, e);
    report_tables_free(&tables);
    return status;
}

enum status report_plot_check(const struct report_tables *tables, bool lengths, const char *to, struct error *e) {
    char stem[PLOT_STEM_BYTES];
    TRY(gnuplot_find(e));
    for (int i = 0; i < tables->n; i++)
        for (size_t k = 0; k < N_KINDS; k++) {
            if (!kinds[k].usual || (kinds[k].by_length && !lengths)) continue;
            plot_stem(tables, i, kinds[k].name, stem);
            TRY(gnuplot_check(&(struct figure){.stem = stem}, to, e));
        }
    return ST_OK;
}
