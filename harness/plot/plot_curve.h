/* plot_curve.h - accuracy or loss over training: the kind "accuracy". */
#ifndef LRNN_HARNESS_PLOT_PLOT_CURVE_H
#define LRNN_HARNESS_PLOT_PLOT_CURVE_H

#include <stdio.h>

#include "harness/plot/plot_view.h"

/* Whether some run has a point of a curve. */
bool has_curve(const struct report_table *t, const struct plot_view *v);

/* Settings and data of plots/accuracy.gp. */
void print_curves(FILE *script, FILE *data, const struct report_table *t, const struct plot_view *v);

#endif
