/* plot.h - figures of run records. */
#ifndef LRNN_HARNESS_PLOT_PLOT_H
#define LRNN_HARNESS_PLOT_PLOT_H

#include "harness/plot/plot_view.h"

/* Writes plots of the records of the folder `out` with gnuplot (gnuplot.h), run without a shell, into the folder `to`,
 * which is made where there is something to draw: kind "accuracy"
 * TO/<task>-accuracy.{svg,png}, seeds and their mean; "table" TO/<task>-table, bars; "length", of tables whose runs
 * were tested at several lengths; "cost", accuracy against parameters, state or FLOPs; "heat", every rate and seed;
 * "throughput" TO/throughput of perf.csv. NULL: the first three, where they apply. <task> is the name in front of the
 * ':', followed by the profile, the task's options or both where the filter passes several tables of that name, and by
 * a hash where that is not enough; characters other than letters, digits and . _ = , + become '-'. A table that
 * a kind has nothing to draw of has no such plot. ST_USAGE: unknown kind, an axis that it has not, or nothing of it to
 * draw of any table; ST_FAIL: without gnuplot, with what to install (tables and CSV do not need it). */
enum status report_plot_view(const struct record_set *set, const struct report_filter *filter, const char *kind,
                             const struct plot_view *view, const char *out, const char *to, struct error *e);

/* Before there are records: whether the figures that are drawn of such tables where no kind is named would take the
 * place of somebody else's file in TO. Of the tables the tasks and profiles alone are read; lengths: their runs will be
 * tested at several. ST_USAGE with the file. */
enum status report_plot_check(const struct report_tables *tables, bool lengths, const char *to, struct error *e);

/* Flags of the axes that a kind of plot takes: "x y "; NULL: there is no such kind. */
const char *plot_axis_flags(const char *kind);

/* Whether a kind is drawn of perf.csv, which may be there without records. NULL: no kind. */
bool plot_is_of_speeds(const char *kind);

#endif
