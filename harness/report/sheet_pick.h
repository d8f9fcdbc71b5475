/* sheet_pick.h - a sheet as the reader wants it: fewer columns, or rows in another order. */
#ifndef LRNN_HARNESS_SHEET_PICK_H
#define LRNN_HARNESS_SHEET_PICK_H

#include "harness/report/sheet.h"

/* Keeps the columns whose headings `names` lists, comma-separated, in that order. Tables of a report may be of several
 * kinds: one without all of them stays as it is. ST_USAGE: none has them all; the message lists those of the first. */
enum status sheets_pick(struct sheets *sheets, const char *names, struct error *e);

/* Sorts the rows of every sheet by a column: numbers downwards, what is none last, texts upwards; "-NAME": the other
 * way. ST_USAGE as above. */
enum status sheets_sort(struct sheets *sheets, const char *name, struct error *e);

#endif
