/* plot_kinds.h - the kinds of figures of a table, and what they share: title, sizes, names with their marks. */
#ifndef LRNN_HARNESS_PLOT_PLOT_KINDS_H
#define LRNN_HARNESS_PLOT_PLOT_KINDS_H

#include <stdio.h>

#include "harness/plot/plot.h"

extern const char *const plot_axis_titles[]; /* by enum plot_axis */

/* The runs whose ends the marks tell: those at the chosen rate; those that give a row's estimate; every run, each of
 * which stands alone then. */
enum marked_runs { MARK_CHOSEN, MARK_ESTIMATE, MARK_EVERY };

/* Prints lines of a script: heading, subheading (`what`, the sizes that all rows share, the meaning of the marks that
 * some run has), and the rows' names, each with the marks of its runs. */
void print_plot_settings(FILE *f, const struct report_table *t, const struct plot_view *v, enum marked_runs marked,
                         const char *heading, const char *what);

/* Prints the name of row k again, with its marks and `more`. */
void print_plot_name(FILE *f, const struct report_table *t, int k, const struct plot_view *v, enum marked_runs marked,
                     const char *more);

int longest_name(const struct report_table *t); /* characters */

/* Names the figure of that kind of table i, without an ending: the shortest of the task's name, with its options, its
 * profile or both, that no other table has; with the hash where each of them is another's too. */
#define PLOT_STEM_BYTES 256
void plot_stem(const struct report_tables *tables, int i, const char *kind, char stem[PLOT_STEM_BYTES]);

/* Accuracy or loss over training, for plots/accuracy.gp: whether some run has a point; settings and data. */
bool has_curve(const struct report_table *t, const struct plot_view *v);
void print_curves(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v);

/* Every run as a cell, a row per model and rate, a column per seed, for plots/heat.gp. */
bool has_several_runs(const struct report_table *t, const struct plot_view *v);
int heat_rows(const struct report_table *t);
void print_heat(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v);

/* Accuracy by position as colour, a row per model, for the same script. */
void print_position_map(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v);

#endif
