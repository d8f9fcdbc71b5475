/* plot_speed.h - the plot of throughput over length. */
#ifndef LRNN_HARNESS_PLOT_PLOT_SPEED_H
#define LRNN_HARNESS_PLOT_PLOT_SPEED_H

#include "core/status.h"

/* Rows of these cells; NULL: every row. */
struct speed_choice {
    const char *const *cells;
    int n_cells;
};

/* TO/throughput, in `formats` as struct figure has them, from OUT/perf.csv, where `bench` and `perf layers` leave their
 * rows: a line a model that was measured at two lengths or more, of each length the row that perf_replaces leaves.
 * Models have in their names the sizes, device, threads and machine in which rows differ: "bdlru:m=2 D312 cuda".
 * ST_USAGE: there is no such, or more than 64; ST_DATA, ST_FAIL: as csv_read and gnuplot_draw. */
enum status plot_throughput(const struct speed_choice *choice, unsigned formats, const char *out, const char *to,
                            struct error *e);

#endif
