/* sheet_pick.h - chooses columns of a sheet and sorts its rows, as the user wishes. */
#ifndef LRNN_HARNESS_SHEET_SHEET_PICK_H
#define LRNN_HARNESS_SHEET_SHEET_PICK_H

#include "harness/sheet/sheet.h"

/* The user's wishes; all zeros: none. */
struct sheet_view {
    /* Comma-separated headings: only these columns, in this order; "+NAME,...": these after the default columns; NULL
     * or "": the default columns. A table that lacks one of these columns shows its default columns. */
    const char *columns;
    /* A heading: sorts rows by that column, numbers descending, texts ascending; "-NAME": the other way round. Texts
     * always come after numbers. */
    const char *sort;
};

/* Applies the wishes and removes columns that are only shown on request. Call it before writing. ST_USAGE: no sheet has
 * all named columns, or the column to sort by; the message lists the columns of every kind of table. */
enum status sheets_view(struct sheets *sheets, const struct sheet_view *view, struct error *e);

#endif
