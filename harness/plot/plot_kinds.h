/* plot_kinds.h - the kinds of figures of a table, and their common parts: title, sizes, names with marks. */
#ifndef LRNN_HARNESS_PLOT_PLOT_KINDS_H
#define LRNN_HARNESS_PLOT_PLOT_KINDS_H

#include <stdio.h>

#include "harness/plot/plot.h"

extern const char *const plot_axis_titles[]; /* by enum plot_axis */

/* The runs to which marks (cut off, failed) refer: those at the chosen rate; those that give a row's estimate; or every
 * run, shown separately. */
enum marked_runs { MARK_CHOSEN, MARK_ESTIMATE, MARK_EVERY };

/* Prints lines of a script: heading, subheading (`what`, sizes that are equal in all rows, the meaning of the marks
 * used), and the rows' names with the marks of their runs. */
void print_plot_settings(FILE *f, const struct report_table *t, const struct plot_view *v, enum marked_runs marked,
                         const char *heading, const char *what);

/* Prints the name of row k again, with its marks and `more`. */
void print_plot_name(FILE *f, const struct report_table *t, int k, const struct plot_view *v, enum marked_runs marked,
                     const char *more);

int longest_name(const struct report_table *t); /* characters */

/* Names the figure of a kind for table i, without an ending: by the shortest of the task's name, with its profile, its
 * options or both, that no other table has; if all are used by other tables, with a hash. */
#define PLOT_STEM_BYTES 256
void plot_stem(const struct report_tables *tables, int i, const char *kind, char stem[PLOT_STEM_BYTES]);

/* Accuracy or loss over training, for plots/accuracy.gp. has_curve: some run has a point; print_curves: settings and
 * data. */
bool has_curve(const struct report_table *t, const struct plot_view *v);
void print_curves(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v);

/* A map for plots/heat.gp with every run as a cell, a row per model and rate, a column per seed. */
bool has_several_runs(const struct report_table *t, const struct plot_view *v);
int heat_rows(const struct report_table *t);
void print_heat(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v);

/* A map of accuracy by position, with a row per model, for the same script. */
void print_position_map(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v);

#endif
