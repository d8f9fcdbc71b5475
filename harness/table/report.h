/* report.h - reports: tables made from run records. A table has one protocol, counts every seed, and shows failures. */
#ifndef LRNN_HARNESS_TABLE_REPORT_H
#define LRNN_HARNESS_TABLE_REPORT_H

#include "harness/rows/facts.h"
#include "harness/rows/paper_cells.h"
#include "harness/rows/rows.h"
#include "harness/sheet/sheet.h"
#include "harness/sheet/sheet_pick.h"

/* A report adds sheets: for people one per table; for programs (`data`) one sheet with fixed headings and unrounded
 * values. A report may add the same sheets for both. */
struct report {
    const char *name;           /* of `lrnn report --what NAME` */
    const char *help;           /* one line */
    bool hidden;                /* for the template: it works, but help does not name it */
    const char *has_no_use_for; /* flags of the filter without effect in it, as " protocol "; NULL: none */
    /* Makes the sheets from rows. ST_DATA: the rows have nothing to report. */
    enum status (*make)(struct sheets *sheets, const struct report_tables *tables, bool data, struct error *e);
    /* Makes the sheets from the cells of a plan's table, in place of `make`. */
    enum status (*make_plan)(struct sheets *sheets, const struct paper_cells *cells, bool data, struct error *e);
};

/* Each report in reports.def is defined in its own file as `const struct report report_NAME`. */
#define REPORT(name) extern const struct report report_##name;
#include "harness/table/reports.def"
#undef REPORT

const struct report *const *report_list(void); /* NULL-terminated, in the order of the list */

/* Adds the report's sheets as `view` says (NULL: whole), and names them. The report reads either `tables` or `cells`.
 * Errors as `make` and sheets_view. */
enum status report_make(struct sheets *sheets, const struct report *report, const struct report_tables *tables,
                        const struct paper_cells *cells, bool data, const struct sheet_view *view, struct error *e);

/* Writes the report of the records that pass the filter (NULL: all). `out` is the folder of the records, with perf.csv
 * and published.csv if they exist. Nothing is written after an error. ST_DATA: no record passes, or there is nothing to
 * report; ST_USAGE: an unknown column. */
enum status report_print(const struct report *report, const struct record_set *set, const struct report_filter *filter,
                         const struct sheet_view *view, const struct sheet_format *format, const char *out,
                         FILE *stream, struct error *e);

/* Whether the run has a record. */
bool report_has_run(const struct record_set *set, const char *run_id);

/* --- marks -------------------------------------------------------------------------------------------------------- */

/* Collects the marks on the numbers while rows are added to a table, for one note on each mark below the table. Starts
 * as zeros. */
struct marks {
    int runs, failed;         /* runs that give the numbers; failed ones, which count as chance */
    int least, most;          /* fewest and most runs of a number */
    bool cut_off;             /* some number has a run that was cut off */
    bool settings;            /* some published number has another setting */
    char unlike[RECORD_TEXT]; /* how it differs (setting.h) */
    bool published;           /* some row has a published number */
    bool best, mean;          /* some published number is a best of the paper's runs; some is not */
    struct facts facts;       /* of all rows */
};

/* Appends the marks of a number to the latest cell: "*" for a cut-off run, "#" for a failed run, "~" for another
 * setting. */
void marks_append(struct sheet *s, bool cut_off, bool failed, bool settings);

/* Adds a row: its facts, and how the setting of its published number differs. */
void marks_count(struct marks *m, const struct report_row *row);

/* Add notes: on each mark in the table; on facts of all rows and the user's choice; on differing settings. */
void marks_note(struct sheet *s, const struct marks *m);
void marks_note_facts(struct sheet *s, const struct facts *facts);
void marks_note_unlike(struct sheet *s, const char *columns, const char *unlike);

/* If all speeds of a table were measured in one place, says where, by `format` with one %s. Else says that each has a
 * footnote and that they must not be compared. */
void note_speeds(struct sheet *s, const char *columns, const char *format, const struct facts *facts)
    __attribute__((format(printf, 3, 0)));

/* If `own`, says that the papers' numbers are from the user's file. */
void note_own_numbers(struct sheet *s, bool own);

/* Appends to the latest cell, our best, that the paper's best has fewer runs: " (best of 36, paper: of 15)". */
void note_more_runs(struct sheet *s, const struct report_row *row);

/* Returns for data whether a published number has the row's setting: "same", "other", or "" without a number. */
const char *published_setting(const struct report_row *row);

/* Adds a data cell: the row's unusual flags. */
void add_flags_data(struct sheet *s, const struct report_row *row);

/* Appends a paper's number to the latest cell, " / 0.370 +- 0.06" or " / -"; or adds it as its own cell. */
void published_append(struct sheet *s, const struct published_value *v);
void published_cell(struct sheet *s, const struct published_value *v);

#endif
