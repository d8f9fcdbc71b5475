/* paper.h - the report "paper", the table of a paper as a plan says it: the paper's rows and columns with its numbers
 * and ours, then each cell with its interval, runs, steps and verdict. And figures of a plan's runs. */
#ifndef LRNN_HARNESS_TABLE_PAPER_H
#define LRNN_HARNESS_TABLE_PAPER_H

#include "harness/plot/plot.h"
#include "harness/table/report.h"

/* The plan and its runs that a command line asks for; "": the plan's own. where: flags of `lrnn sweep` in place of the
 * plan's, "precision=bf16 seeds=2". */
struct paper_choice {
    const char *name, *tasks, *profile, *where;
};

/* Fills the cells of such a plan from the loaded records `set` of `out`. Free with paper_cells_free, also after an
 * error. Errors as paper_cells_make; ST_USAGE: an unknown flag. */
enum status paper_cells_of(struct paper_cells *p, const struct paper_choice *choice, const struct record_set *set,
                           const char *out, struct error *e);

/* Writes the report. Nothing is written on an error: as paper_cells_make, sheets_view; ST_USAGE: an unknown flag. */
enum status paper_print(const struct paper_choice *choice, const char *out, const struct sheet_view *view,
                        const struct sheet_format *format, FILE *f, struct error *e);

/* Writes the report of a request that has a plan file, with all that the command line says. Cells say how many of their
 * runs are of another build than this program. */
enum status paper_print_request(const struct request *request, const char *out, const struct sheet_format *format,
                                FILE *f, struct error *e);

/* Draws figures of the plan's runs that are on record, as report_plot_view; their titles name the plan. Throughput is
 * drawn of its cells in perf.csv. ST_DATA: none is. */
enum status paper_plot(const struct paper_choice *choice, const char *out, const char *to, const char *kind,
                       const struct plot_view *view, struct error *e);

#endif
