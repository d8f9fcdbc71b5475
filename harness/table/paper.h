/* paper.h - the report "paper", a paper's table as described by a plan: its rows and columns with the paper's numbers
 * and ours, then each cell with its interval, runs, steps and verdict. Also figures of a plan's runs. */
#ifndef LRNN_HARNESS_TABLE_PAPER_H
#define LRNN_HARNESS_TABLE_PAPER_H

#include "harness/plot/plot.h"
#include "harness/table/report.h"

/* The plan and the runs that a command line chooses; "": as in the plan. where: flags as for `lrnn sweep` that replace
 * the plan's, "precision=bf16 seeds=2". */
struct paper_choice {
    const char *name, *tasks, *profile, *where;
};

/* Fills the cells of the chosen plan from the loaded records `set` of `out`. Free with paper_cells_free, also after an
 * error. Errors as paper_cells_make; ST_USAGE: an unknown flag. */
enum status paper_cells_of(struct paper_cells *p, const struct paper_choice *choice, const struct record_set *set,
                           const char *out, struct error *e);

/* Writes the report. Nothing is written on an error: as paper_cells_make, sheets_view; ST_USAGE: an unknown flag. */
enum status paper_print(const struct paper_choice *choice, const char *out, const struct sheet_view *view,
                        const struct sheet_format *format, FILE *f, struct error *e);

/* Writes the report of a request that has a plan file, with all settings of the command line. Cells say how many of
 * their runs are from another build than this program. */
enum status paper_print_request(const struct request *request, const char *out, const struct sheet_format *format,
                                FILE *f, struct error *e);

/* Draws figures of the plan's recorded runs, as report_plot_view; titles name the plan. Throughput is drawn from
 * perf.csv. ST_DATA: there is nothing to draw. */
enum status paper_plot(const struct paper_choice *choice, const char *out, const char *to, const char *kind,
                       const struct plot_view *view, struct error *e);

#endif
