/* paper.h - the table of a paper as a plan says it: the paper's rows and columns with its numbers and ours, then each
 * cell with its interval, runs, steps and verdict. */
#ifndef LRNN_HARNESS_TABLE_PAPER_H
#define LRNN_HARNESS_TABLE_PAPER_H

#include "harness/plot/plot.h"
#include "harness/table/sheet_pick.h"
#include "harness/table/paper_cells.h"

/* Which runs of which plan, as a command line says it; "": the plan's own. where: flags of `lrnn sweep` in place of the
 * plan's, "precision=bf16 seeds=2". */
struct paper_choice {
    const char *name, *tasks, *profile, *where;
};

/* Writes it in a format, as the reader wants to see it; of one for programs the cells alone. Nothing is written on an
 * error: as paper_cells_make, sheets_view; ST_USAGE: no such flag. */
enum status paper_print(const struct paper_choice *choice, const char *out, const struct sheet_view *view,
                        const struct sheet_format *format, FILE *f, struct error *e);

/* The same, whole, of a request that has a plan file, with all that the command line says; cells say how many of their
 * runs are of another build than this program. */
enum status paper_print_request(const struct request *request, const char *out, const struct sheet_format *format,
                                FILE *f, struct error *e);

/* Figures of the plan's runs that are on record, as report_plot_view; their titles name the plan. Of throughput its
 * cells in perf.csv. ST_DATA: none is. */
enum status paper_plot(const struct paper_choice *choice, const char *out, const char *to, const char *kind,
                       const struct plot_view *view, struct error *e);

#endif
