/* plot.h - figures of run records. */
#ifndef LRNN_HARNESS_PLOT_H
#define LRNN_HARNESS_PLOT_H

#include "harness/report/rows.h"

/* Writes plots of the records of the folder `out` with gnuplot, run without a shell: kind "table"
 * TO/<task>-table.{svg,png}, "accuracy" TO/<task>-accuracy.{svg,png}, "length" TO/<task>-length.{svg,png} of tables
 * whose runs were tested at several lengths, NULL all that apply. <task> is the name in front of the ':', followed by
 * the profile, the task's options or both where the filter passes several tables of that name; characters other than
 * letters, digits and . _ = , + become '-'. ST_USAGE: unknown kind; ST_FAIL: without gnuplot, with what to install
 * (tables and CSV do not need it). */
enum status report_plot(const struct record_set *set, const struct report_filter *filter, const char *kind,
                        const char *out, const char *to, struct error *e);
extern const char *const plot_kinds; /* "accuracy table length" */

#endif
