/* plot.h - draws figures from run records. */
#ifndef LRNN_HARNESS_PLOT_PLOT_H
#define LRNN_HARNESS_PLOT_PLOT_H

#include "harness/rows/rows.h"

enum plot_axis { PLOT_AUTO, PLOT_STEPS, PLOT_TOKENS, PLOT_TIME, PLOT_EPOCHS, PLOT_PARAMS, PLOT_STATE, PLOT_FLOPS };
#define PLOT_X_NAMES "auto steps tokens time epochs params state flops"
enum plot_value { PLOT_ACC, PLOT_LOSS, PLOT_TEST };
#define PLOT_Y_NAMES "acc loss test"

struct plot_view {
    int x; /* enum plot_axis: curves have the first four, cost the last three; auto: steps or params */
    int y; /* enum plot_value, for curves */
    bool log_x, log_y;
    unsigned formats;              /* enum figure_format; 0: SVG and PNG */
    enum report_protocol protocol; /* protocol and confirm are copied from the tables */
    int64_t confirm;
    bool own_numbers; /* copied from the tables: published numbers are from the folder (published.h) */
    /* The plan of all runs, and its profile, for titles; a plan may change a profile, so that its runs are custom.
     * NULL: each table's own profile. */
    const char *plan, *profile;
    FILE *told; /* gets the path of each figure, one per line; may be NULL */
};

/* Writes plots of the records of the folder `out` with gnuplot (gnuplot.h), run without a shell, into the folder `to`,
 * which is made where there is something to draw: kind "accuracy" TO/<task>-accuracy.{svg,png}, seeds and their mean
 * (-loss, -test); "table" TO/<task>-table, bars; "length", of tables whose runs were tested at several lengths;
 * "position" and "position-map", accuracy by position; "cost", accuracy against parameters, state or FLOPs; "heat",
 * every rate and seed; "throughput" TO/throughput of perf.csv. NULL: the first three, where they apply. <task> is the
 * name before the ':'. The profile, the task's options or both follow it where the filter passes several tables of
 * that name, and a hash where that is not enough; characters other than letters, digits and . _ = , + become '-'. A
 * table that a kind has nothing to draw of has no such plot. ST_USAGE: unknown kind, an axis that it has not, or
 * nothing to draw of any table; ST_FAIL: without gnuplot, with what to install (tables and CSV do not need it). */
enum status report_plot_view(const struct record_set *set, const struct report_filter *filter, const char *kind,
                             const struct plot_view *view, const char *out, const char *to, struct error *e);

/* Checks, before there are records, that the usual figures of such tables would not replace files of the user in TO.
 * Only tasks and profiles of the tables are read; lengths: runs will be tested at several lengths. ST_USAGE names the
 * file. */
enum status report_plot_check(const struct report_tables *tables, bool lengths, const char *to, struct error *e);

/* Returns the flags for the axes of a kind of plot: "x y "; NULL: there is no such kind. */
const char *plot_axis_flags(const char *kind);

/* Whether a kind is drawn from perf.csv, which needs no records. NULL: no kind. */
bool plot_is_of_speeds(const char *kind);

/* Chooses rows of perf.csv with these cell ids; NULL: every row. */
struct speed_choice {
    const char *const *cells;
    int n_cells;
};

/* Draws TO/throughput, in the formats of the view, from OUT/perf.csv, where `bench` and `perf layers` leave
 * their rows: a line per model that was measured at two lengths or more, with one row per length by the rule of
 * perf_replaces. Names of models get the sizes, device, threads and machine in which rows differ: "bdlru:m=2 D312
 * cuda". ST_USAGE: there is no such model, or more than 64; ST_DATA, ST_FAIL: as csv_read and gnuplot_draw. */
enum status plot_throughput(const struct speed_choice *choice, const struct plot_view *view, const char *out,
                            const char *to, struct error *e);

#endif
