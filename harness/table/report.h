/* report.h - reports: what run records show, as tables. One protocol a table, every seed counted, failures shown. */
#ifndef LRNN_HARNESS_TABLE_REPORT_H
#define LRNN_HARNESS_TABLE_REPORT_H

#include "harness/rows/facts.h"
#include "harness/rows/paper_cells.h"
#include "harness/rows/rows.h"
#include "harness/sheet/sheet.h"
#include "harness/sheet/sheet_pick.h"

/* A report adds sheets: for people one per table; for programs (`data`) one sheet with headings that stay and values
 * that are not rounded. A report without such a sheet adds the same for both. */
struct report {
    const char *name;           /* of `lrnn report --what NAME` */
    const char *help;           /* one line */
    bool hidden;                /* the template: works like the others, and help does not name it */
    const char *has_no_use_for; /* flags of a filter that change nothing in it, as " protocol "; NULL: none */
    /* Reports on the rows. ST_DATA: they hold nothing to report on. */
    enum status (*make)(struct sheets *sheets, const struct report_tables *tables, bool data, struct error *e);
    /* Reports on the cells of a plan's table, in place of `make`. */
    enum status (*make_plan)(struct sheets *sheets, const struct paper_cells *cells, bool data, struct error *e);
};

/* One file defines `const struct report report_NAME` of each report in reports.def. */
#define REPORT(name) extern const struct report report_##name;
#include "harness/table/reports.def"
#undef REPORT

const struct report *const *report_list(void); /* NULL-terminated, in the order of the list */

/* Adds the report's sheets as the reader wants to see them (NULL: whole), and names them. Of `tables` and `cells` the
 * report reads one. Errors as `make` and sheets_view. */
enum status report_make(struct sheets *sheets, const struct report *report, const struct report_tables *tables,
                        const struct paper_cells *cells, bool data, const struct sheet_view *view, struct error *e);

/* Writes the report of the records that pass the filter (NULL: all). `out` is the folder of the records, which may hold
 * perf.csv and published.csv. Nothing is written on any error. ST_DATA: no record passes, or the report finds nothing;
 * ST_USAGE: the reader names an unknown column. */
enum status report_print(const struct report *report, const struct record_set *set, const struct report_filter *filter,
                         const struct sheet_view *view, const struct sheet_format *format, const char *out,
                         FILE *stream, struct error *e);

/* Whether the run has a record; attempts that were set aside are never the only ones. */
bool report_has_run(const struct record_set *set, const char *run_id);

/* --- marks -------------------------------------------------------------------------------------------------------- */

/* Counts, while the rows of a table are added, what their numbers have against them, for one note each below it. Starts
 * as zeros. */
struct marks {
    int runs, failed;         /* runs of the numbers, and failed ones, which count as chance */
    int least, most;          /* runs of a number */
    bool cut_off;             /* a run of some number was cut off */
    bool settings;            /* a published number is of another setting */
    char unlike[RECORD_TEXT]; /* in what (setting.h) */
    bool published;           /* there is a published number */
    bool best, mean;          /* one that is the best of the paper's runs; one that is none */
    struct facts facts;       /* of all rows */
};

/* Appends the marks of a number to the latest cell: "*" after one with a run that was cut off, "#" after one with a run
 * that failed, "~" after one of another setting. */
void marks_append(struct sheet *s, bool cut_off, bool failed, bool settings);

/* Counts a row: its facts, and in what its published number is of another setting. */
void marks_count(struct marks *m, const struct report_row *row);

/* Add the notes: on each mark that stands in the table; on all rows and the reader's choice; on another setting. */
void marks_note(struct sheet *s, const struct marks *m);
void marks_note_facts(struct sheet *s, const struct facts *facts);
void marks_note_unlike(struct sheet *s, const char *columns, const char *unlike);

/* Says where the speeds of a table were measured, `format` having one %s, if they are of one place; else that each has
 * a footnote, and that they are not to be compared. */
void note_speeds(struct sheet *s, const char *columns, const char *format, const struct facts *facts)
    __attribute__((format(printf, 3, 0)));

/* Says that the papers' numbers are a file of the reader's. */
void note_own_numbers(struct sheet *s, bool own);

/* Adds to the latest cell, a best of ours, that the paper's is of fewer runs: " (best of 36, paper: of 15)". */
void note_more_runs(struct sheet *s, const struct report_row *row);

/* Whether a published number is of the row's setting, for data: "same", "other", or "" without one. */
const char *published_setting(const struct report_row *row);

/* Adds a cell of data: the row's flags that are not as usual. */
void add_flags_data(struct sheet *s, const struct report_row *row);

/* Adds a paper's number to the latest cell, " / 0.370 +- 0.06", or " / -"; or as a cell of its own. */
void published_append(struct sheet *s, const struct published_value *v);
void published_cell(struct sheet *s, const struct published_value *v);

#endif
