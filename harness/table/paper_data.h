/* paper_data.h - the cells of a plan's table for programs: a row a cell, unrounded. */
#ifndef LRNN_HARNESS_TABLE_PAPER_DATA_H
#define LRNN_HARNESS_TABLE_PAPER_DATA_H

#include "harness/table/sheet.h"
#include "harness/table/paper_table.h"

/* Adds the sheet, of the cells that have planned runs. */
void paper_add_data(struct sheets *sheets, const struct paper_cells *p);

#endif
