/* report.h - tables and plots from run records: one protocol a table, every seed counted, failures shown. */
#ifndef LRNN_HARNESS_REPORT_H
#define LRNN_HARNESS_REPORT_H

#include <stdio.h>

#include "harness/store/record_files.h"

enum report_format { REPORT_TERM, REPORT_MD, REPORT_LATEX, REPORT_CSV, REPORT_FORMAT_COUNT };
extern const char *const report_format_names; /* "term md latex csv" */

struct report_filter {
    const char *task;         /* label ("s5"), or NULL = every task in turn */
    const char *profile;      /* or NULL = any */
    const char *const *cells; /* only these cell ids, in this order; or NULL = all, ordered by model list then params */
    int n_cells;
};

/* Prints the table(s): model, parameters, state, val-mean accuracy with interval and n, solve count, sequence accuracy,
 * tokens/s (perf.csv), best-of-grid with grid size, published number, difference (best-of-grid minus published);
 * footnotes name every run that is not ok. */
enum status report_print(const struct record_set *set, const struct report_filter *filter, enum report_format format,
                         const char *out, FILE *stream, struct error *e);

enum report_what { REPORT_TABLES, REPORT_LAYERS, REPORT_SETTINGS };

/* What several tasks were run together for, one table a family of tasks and profile:
 *   REPORT_LAYERS    families that differ in length alone: the fewest layers whose mean test metric exceeds REPORT_REACHED at
 *                    each length, a row a model
 *   REPORT_SETTINGS  a task and its changes: the best test metric of the grid in each setting and the mean over settings
 * REPORT_TABLES is report_print. ST_DATA: no family has two members. */
enum status report_print_what(const struct record_set *set, const struct report_filter *filter, enum report_what what,
                              enum report_format format, const char *out, FILE *stream, struct error *e);
extern const char *const report_what_names; /* "tables layers settings" */

/* Writes OUT/summary.csv, a row for every row of every table that the records make. */
enum status report_summary(const struct record_set *set, const char *out, struct error *e);

/* Writes plots with gnuplot, run without a shell: kind "table" OUT/<task>-table.{svg,png}, "accuracy"
 * OUT/<task>-accuracy.{svg,png}, "length" OUT/<task>-length.{svg,png} of tables whose runs were tested at several lengths,
 * NULL all that apply; also OUT/summary.csv. <task> is the name in front of the ':', followed by
 * the profile, the task's options or both where the filter passes several tables of that name; characters other than
 * letters, digits and . _ = , + become '-'.
 * ST_USAGE: unknown kind; ST_FAIL: without gnuplot, with what to install (tables and CSV do not need it). */
enum status report_plot(const struct record_set *set, const struct report_filter *filter, const char *kind,
                        const char *out, struct error *e);
extern const char *const plot_kinds; /* "accuracy table length" */

#endif
