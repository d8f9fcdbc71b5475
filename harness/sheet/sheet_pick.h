/* sheet_pick.h - a sheet as the reader wants it: fewer columns, or rows in another order. */
#ifndef LRNN_HARNESS_SHEET_SHEET_PICK_H
#define LRNN_HARNESS_SHEET_SHEET_PICK_H

#include "harness/sheet/sheet.h"

/* The reader's wishes; zeros: none. */
struct sheet_view {
    /* Headings, comma-separated: those columns alone, in that order; "+NAME,...": these after all others that are shown
     * unasked; NULL or "": the others. Tables of a report may be of several kinds: one without all of them stays as if
     * nothing was named. */
    const char *columns;
    /* A heading: rows by that column, numbers downwards, texts upwards; "-NAME": the other way. Texts come after the
     * numbers either way. */
    const char *sort;
};

/* To be called before sheets are written: what is shown on request leaves them here. ST_USAGE: no sheet has all
 * columns that are named, or the one to sort by; the message lists the columns of every kind of table. */
enum status sheets_view(struct sheets *sheets, const struct sheet_view *view, struct error *e);

#endif
