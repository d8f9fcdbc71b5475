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

/* By the report and what its caption begins with: two reports of one task are two tables. */
static void name_sheets(struct sheets *sheets, const struct report *report) {
    for (int i = 0; i < sheets->n; i++) {
        struct sheet *s = sheets->list[i];
        if (!s->caption || s->name) continue;
        const char *end = strstr(s->caption, ": ");
        int length = (int)(end ? (size_t)(end - s->caption) : strlen(s->caption));
        sheet_name(s, "%s %.*s", report->name, length, s->caption);
    }
}

enum status report_make(struct sheets *sheets, const struct report *report, const struct report_tables *tables,
                        bool for_programs, const struct sheet_view *view, struct error *e) {
    bool data = for_programs && report->build_data;
    TRY((data ? report->build_data : report->build)(sheets, tables, e));
    name_sheets(sheets, report);
    return sheets_view(sheets, view, e);
}

enum status report_print(const struct report *report, const struct record_set *set, const struct report_filter *filter,
                         const struct sheet_format *format, const char *out, FILE *stream, struct error *e) {
    struct sheet_view whole = {NULL, NULL};
    return report_print_view(report, set, filter, &whole, format, out, stream, e);
}

enum status report_print_view(const struct report *report, const struct record_set *set,
                              const struct report_filter *filter, const struct sheet_view *view,
                              const struct sheet_format *format, const char *out, FILE *stream, struct error *e) {
    struct report_tables tables;
    struct sheets sheets = {0};
    TRY(report_tables_make(&tables, set, filter, out, e));
    enum status status = report_make(&sheets, report, &tables, format->for_programs, view, e);
    if (status == ST_OK) status = sheets_write(&sheets, format, stream, e);
    sheets_free(&sheets);
    report_tables_free(&tables);
    return status;
}
