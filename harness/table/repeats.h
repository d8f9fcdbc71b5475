/* repeats.h - the note below a table that says which of its runs cannot be repeated bit for bit, and why. */
#ifndef LRNN_HARNESS_TABLE_REPEATS_H
#define LRNN_HARNESS_TABLE_REPEATS_H

#include "harness/table/sheet.h"
#include "harness/rows/rows.h"

/* Of the rows of a table. Zeros: none. */
struct repeats {
    bool outdated;           /* some are of other numerics than the program has now */
    int n, n_other_products; /* runs; those among them whose matrices a library multiplied that is gone */
};

/* Counts a row in. */
void repeats_count(struct repeats *r, const struct report_row *row);

/* Says what holds, or nothing where all can be repeated. */
void repeats_note(struct sheet *s, const struct repeats *r);

#endif
