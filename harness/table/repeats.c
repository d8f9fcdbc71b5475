/* repeats.c - see repeats.h. */
#include "harness/table/repeats.h"

void repeats_count(struct repeats *r, const struct report_row *row) {
    r->outdated = r->outdated || row->outdated;
    r->n += row->n_all;
    for (int i = 0; i < row->n_all; i++) r->n_other_products += run_products_gone(&row->all[i]->run);
}

void repeats_note(struct sheet *s, const struct repeats *r) {
    if (r->outdated) sheet_note(s, "%s.", OUTDATED_NOTE);
    if (r->n_other_products) sheet_note(s, "%d of %d runs %s.", r->n_other_products, r->n, OTHER_PRODUCTS_NOTE);
}
