/* template.c - a report to copy: how many models and runs each table has. To make a copy your own:
 *
 *  1. cp harness/table/template.c harness/table/NAME.c, replace "template" by NAME, take .hidden away, and add the
 *     line REPORT(NAME) to harness/table/reports.def. `lrnn report --what NAME` prints it in every format; the tests
 *     walk the list.
 *  2. Write this banner: what is shown, and the paper's table that it follows, if there is one.
 *  3. make: add a sheet per table (sheet.h): caption, columns, then a cell per column in every row. Numbers go in as
 *     numbers, with the format that people see. Mark what a reader could misread with sheet_footnote; say below with
 *     sheet_note what the columns mean. The sheet keeps its own errors; return ST_DATA if the rows have nothing to
 *     report.
 *  4. `data`: if CSV needs other columns than people see, make one sheet with fixed headings and unrounded values. */
#include "harness/table/report.h"

static enum status make(struct sheets *sheets, const struct report_tables *tables, bool data, struct error *e) {
    (void)data;
    (void)e;
    struct sheet *s = sheets_add(sheets);
    sheet_caption(s, "What has been run");
    sheet_columns(s, "task|profile|>models|>runs");
    for (int i = 0; i < tables->n; i++) {
        const struct report_table *t = &tables->list[i];
        sheet_row(s);
        sheet_text(s, "%s", t->task);
        sheet_text(s, "%s", t->profile);
        sheet_int(s, t->n_rows);
        sheet_int(s, t->n_runs);
    }
    sheet_note(s, "models: settings of a model with other options, width or depth count as further ones.");
    return ST_OK;
}

const struct report report_template = {
    .name = "template",
    .help = "models and runs of each table",
    .hidden = true,
    .make = make,
};
