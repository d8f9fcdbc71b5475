/* report.c - see report.h. */
#include "harness/report/report.h"

#include "harness/report/sheet_pick.h"

const struct report *const *report_list(void) {
    static const struct report *const list[] = {
#define REPORT(name) &report_##name,
#include "harness/report/reports.def"
#undef REPORT
        NULL};
    return list;
}

static enum status apply_view(struct sheets *sheets, const struct report_view *view, struct error *e) {
    if (view && view->sort && *view->sort) TRY(sheets_sort(sheets, view->sort, e));
    return view && view->columns && *view->columns ? sheets_pick(sheets, view->columns, e) : ST_OK;
}

enum status report_print(const struct report *report, const struct record_set *set, const struct report_filter *filter,
                         const struct sheet_format *format, const char *out, FILE *stream, struct error *e) {
    return report_print_view(report, set, filter, NULL, format, out, stream, e);
}

enum status report_print_view(const struct report *report, const struct record_set *set,
                              const struct report_filter *filter, const struct report_view *view,
                              const struct sheet_format *format, const char *out, FILE *stream, struct error *e) {
    struct report_tables tables;
    struct sheets sheets = {0};
    TRY(report_tables_make(&tables, set, filter, out, e));
    bool data = format->for_programs && report->build_data;
    enum status status = (data ? report->build_data : report->build)(&sheets, &tables, e);
    if (status == ST_OK) status = apply_view(&sheets, view, e);
    if (status == ST_OK) status = sheets_write(&sheets, format, stream, e);
    sheets_free(&sheets);
    report_tables_free(&tables);
    return status;
}
