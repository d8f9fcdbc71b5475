/* plot_settings.h - what figures of tables have in common: title, sizes, names with their marks. */
#ifndef LRNN_HARNESS_PLOT_PLOT_SETTINGS_H
#define LRNN_HARNESS_PLOT_PLOT_SETTINGS_H

#include <stdio.h>

#include "harness/plot/plot_view.h"

extern const char *const plot_axis_titles[]; /* by enum plot_axis */

/* The runs whose ends the marks tell: those at the chosen rate; those that give a row's estimate; every run, each of
 * which stands alone then. */
enum marked_runs { MARK_CHOSEN, MARK_ESTIMATE, MARK_EVERY };

/* Lines of a script: heading, subheading (`what`, the sizes that all rows share, what the marks mean that some run
 * has), and the rows' names, each with the marks of its runs behind it. */
void print_plot_settings(FILE *f, const struct report_table *t, const struct plot_view *v, enum marked_runs marked,
                         const char *heading, const char *what);

/* What stands in the script behind that name: marks and, where it is not "", `more`. */
void print_plot_name(FILE *f, const struct report_table *t, int k, const struct plot_view *v, enum marked_runs marked,
                     const char *more);

/* Whether a run that failed has a part in a row's number under that protocol. */
bool estimate_failed(const struct report_row *row, enum report_protocol protocol);

/* Characters of the longest name of a row. */
int longest_name(const struct report_table *t);

#endif
