/* paper_verdict.h - what a cell of a plan's table says of the paper's number, and which cells say nothing of it, since
 * their runs are of another setting. A plan's `differs` and `differs.MODEL` say in what its runs are not the paper's:
 * such cells get no verdict. */
#ifndef LRNN_HARNESS_TABLE_PAPER_VERDICT_H
#define LRNN_HARNESS_TABLE_PAPER_VERDICT_H

#include "harness/table/paper_table.h"

extern const char *const paper_verdict_names[];

#define PAPER_MARGIN 0.02 /* where there is no interval: what a best of 15 differs by between two sets of seeds */

/* The verdict of a cell whose other fields are set. */
enum paper_verdict paper_judge(const struct paper_cell *c, enum report_protocol protocol);

/* Whether its runs are of another setting than the paper's: it has no verdict. */
bool paper_cell_is_other(const struct paper_cell *c);

/* Marks the cells whose runs the plan's own profile does not have, whatever made them others, and those that lack a
 * part of a task's settings. Errors as request_plan. */
enum status paper_mark_others(struct paper_cells *p, const struct paper_spot *spots, struct error *e);

/* ST_USAGE: the plan says more differences than a cell can have. */
enum status paper_check_differences(const struct paper_cells *p, struct error *e);

/* Gives each cell the numbers of what the plan says of its row. */
enum status paper_mark_differences(struct paper_cells *p, const struct paper_spot *spots, struct error *e);

/* Of the numbers that a set has, the text of number k where no smaller one has it already; NULL: there is none to be
 * told. */
const char *paper_difference(const struct paper_cells *p, uint64_t differs, int k);

#endif
