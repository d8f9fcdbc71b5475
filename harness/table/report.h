/* report.h - reports: what run records show, as tables. One protocol a table, every seed counted, failures shown. */
#ifndef LRNN_HARNESS_TABLE_REPORT_H
#define LRNN_HARNESS_TABLE_REPORT_H

#include "harness/table/sheet.h"
#include "harness/table/sheet_pick.h"
#include "harness/rows/rows.h"

/* What a report makes of the rows. Both functions add sheets and return ST_DATA when the rows hold nothing to report
 * on. */
struct report {
    const char *name;           /* of `lrnn report --what NAME` */
    const char *help;           /* one line */
    bool hidden;                /* the template: works like the others, but is not named in help */
    const char *has_no_use_for; /* flags of a filter that change nothing in it, as " protocol "; NULL: none */
    /* For people: a sheet a table. */
    enum status (*build)(struct sheets *sheets, const struct report_tables *tables, struct error *e);
    /* For programs: one sheet whose headings are stable names and whose values are not rounded. NULL: that of
     * `build`. */
    enum status (*build_data)(struct sheets *sheets, const struct report_tables *tables, struct error *e);
};

/* One file a report: harness/table/NAME.c defines `const struct report report_NAME`, listed in reports.def. */
#define REPORT(name) extern const struct report report_##name;
#include "harness/table/reports.def"
#undef REPORT

const struct report *const *report_list(void); /* NULL-terminated, in the order of the list */

/* Adds the sheets of the report of the rows to `sheets`, for people or for programs, as the reader wants to see them.
 * ST_DATA, ST_USAGE as report_print_view. */
enum status report_make(struct sheets *sheets, const struct report *report, const struct report_tables *tables,
                        bool for_programs, const struct sheet_view *view, struct error *e);

/* Writes the report of the records that pass the filter (NULL: all). `out` is the folder of the records, which may hold
 * perf.csv and published.csv. ST_DATA: no record passes, or the report finds nothing; nothing is written on any
 * error. */
enum status report_print(const struct report *report, const struct record_set *set, const struct report_filter *filter,
                         const struct sheet_format *format, const char *out, FILE *stream, struct error *e);

/* The same, as the reader wants it. ST_USAGE: no column of a name. */
enum status report_print_view(const struct report *report, const struct record_set *set,
                              const struct report_filter *filter, const struct sheet_view *view,
                              const struct sheet_format *format, const char *out, FILE *stream, struct error *e);

#endif
