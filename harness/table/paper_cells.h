/* paper_cells.h - a plan's runs as the cells of its paper's table: what was planned, what is done of it, the number
 * that the paper's protocol makes of it, and the paper's own. What rows and columns there are says paper_table.h, what
 * a cell says of the paper's number paper_verdict.h. */
#ifndef LRNN_HARNESS_TABLE_PAPER_CELLS_H
#define LRNN_HARNESS_TABLE_PAPER_CELLS_H

#include "harness/table/paper_table.h"

/* Of zeros but for `request`, which has a plan file. Records are read from `out`. Free with paper_cells_free, also
 * after an error. ST_USAGE, ST_DATA: as request_plan and report_load; rows or columns by what is no option, lengths
 * that are none. */
enum status paper_cells_make(struct paper_cells *p, const char *out, struct error *e);
/* Whether a request's plan says of its table what can be made: the errors that paper_cells_make has of any records, so
 * that they are said before runs are trained. */
enum status paper_cells_check(const struct request *request, const struct resolved *resolved, struct error *e);
void paper_cells_free(struct paper_cells *p);

#endif
