/* plot_heat.h - every run as a cell, a row a model and rate, a column a seed: the kind "heat". */
#ifndef LRNN_HARNESS_PLOT_PLOT_HEAT_H
#define LRNN_HARNESS_PLOT_PLOT_HEAT_H

#include <stdio.h>

#include "harness/plot/plot_view.h"

bool has_several_runs(const struct report_table *t, const struct plot_view *v);

/* How many rows the map has: rates of every model. */
int heat_rows(const struct report_table *t);

/* Settings and data of plots/heat.gp. */
void print_heat(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v);

#endif
