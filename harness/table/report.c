/* report.c - see report.h. */
#include "harness/table/report.h"

#include <string.h>

const struct report *const *report_list(void) {
    static const struct report *const list[] = {
#define REPORT(name) &report_##name,
#include "harness/table/reports.def"
#undef REPORT
        NULL};
    return list;
}

enum status report_make(struct sheets *sheets, const struct report *report, const struct report_tables *tables,
                        const struct paper_cells *cells, bool data, const struct sheet_view *view, struct error *e) {
    static const struct sheet_view whole = {NULL, NULL};
    TRY(report->make_plan ? report->make_plan(sheets, cells, data, e) : report->make(sheets, tables, data, e));
    for (int i = 0; i < sheets->n; i++) { /* named by report and caption: two reports of one task are two tables */
        struct sheet *s = sheets->list[i];
        if (!s->caption || s->name) continue;
        const char *end = strstr(s->caption, ": ");
        sheet_name(s, "%s %.*s", report->name, (int)(end ? (size_t)(end - s->caption) : strlen(s->caption)),
                   s->caption);
    }
    return sheets_view(sheets, view ? view : &whole, e);
}

enum status report_print(const struct report *report, const struct record_set *set, const struct report_filter *filter,
                         const struct sheet_view *view, const struct sheet_format *format, const char *out,
                         FILE *stream, struct error *e) {
    struct report_tables tables;
    struct sheets sheets = {0};
    TRY(report_tables_make(&tables, set, filter, out, e));
    enum status status = report_make(&sheets, report, &tables, NULL, format->for_programs, view, e);
    if (status == ST_OK) status = sheets_write(&sheets, format, stream, e);
    sheets_free(&sheets);
    report_tables_free(&tables);
    return status;
}

/* --- marks -------------------------------------------------------------------------------------------------------- */

void marks_append(struct sheet *s, bool cut_off, bool failed, bool settings) {
    if (cut_off) sheet_append(s, CUT_OFF_MARK);
    if (failed) sheet_append(s, FAILED_MARK);
    if (settings) sheet_append(s, SETTINGS_MARK);
}

void marks_count(struct marks *m, const struct report_row *row) {
    m->settings = m->settings || published_is_other(&row->published);
    m->outdated = m->outdated || row->outdated;
    m->n += row->n_all;
    for (int i = 0; i < row->n_all; i++) m->n_products += run_has_other_products(&row->all[i]->run);
}

void marks_note_repeats(struct sheet *s, const struct marks *m) {
    if (m->outdated) sheet_note(s, "%s.", OUTDATED_NOTE);
    if (m->n_products) sheet_note(s, "%d of %d runs %s.", m->n_products, m->n, OTHER_PRODUCTS_NOTE);
}

void marks_note(struct sheet *s, const struct marks *m) {
    if (m->cut_off) sheet_note(s, "%s.", CUT_OFF_NOTE);
    if (m->failed) sheet_note(s, FAILED_COUNT_NOTE ".", m->failed, m->runs);
    marks_note_repeats(s, m);
    if (m->settings) sheet_note(s, "%s.", SETTINGS_NOTE);
}
