/* suites.c - the report "suites": one matrix a suite and profile, tasks side by side, a row a model. What its marks
 * mean stands once, below the last. */
#include "harness/table/across.h"

static enum status build(struct sheets *sheets, const struct report_tables *tables, struct error *e) {
    return across_make(sheets, tables, true, false, e);
}

static enum status build_data(struct sheets *sheets, const struct report_tables *tables, struct error *e) {
    return across_make(sheets, tables, true, true, e);
}

const struct report report_suites = {
    .name = "suites",
    .help = "one matrix a suite and profile: its tasks side by side, the legend once",
    .build = build,
    .build_data = build_data,
};
