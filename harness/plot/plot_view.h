/* plot_view.h - how figures of run records are asked for: their axes, their files, what they are of. */
#ifndef LRNN_HARNESS_PLOT_PLOT_VIEW_H
#define LRNN_HARNESS_PLOT_PLOT_VIEW_H

#include "harness/rows/rows.h"

enum plot_axis { PLOT_AUTO, PLOT_STEPS, PLOT_TOKENS, PLOT_TIME, PLOT_EPOCHS, PLOT_PARAMS, PLOT_STATE, PLOT_FLOPS };
#define PLOT_X_NAMES "auto steps tokens time epochs params state flops"
enum plot_value { PLOT_ACC, PLOT_LOSS };
#define PLOT_Y_NAMES "acc loss"

struct plot_view {
    int x; /* enum plot_axis: of curves four, of cost the last three; auto: steps of curves, params of cost */
    int y; /* enum plot_value, of curves */
    bool log_x, log_y;
    unsigned formats;              /* enum figure_format; 0: SVG and PNG */
    enum report_protocol protocol; /* of the tables, and so many seeds that confirm; nobody else has to set them */
    int64_t confirm;
    /* A plan that all runs are of, and its profile, which titles name: what the plan says may be another profile than
     * the one of that name, and its runs "custom" then. NULL: each table's own profile. */
    const char *plan, *profile;
    bool none_is_fine; /* a kind that has nothing to draw of any table is no error */
};

#endif
