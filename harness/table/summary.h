/* summary.h - the rows of all tables with every number of theirs, for programs: summary.csv. */
#ifndef LRNN_HARNESS_TABLE_SUMMARY_H
#define LRNN_HARNESS_TABLE_SUMMARY_H

#include "harness/sheet/sheet.h"
#include "harness/rows/rows.h"

/* Adds the sheet. */
void summary_make(struct sheets *sheets, const struct report_tables *tables);

/* ST_USAGE: TO/summary.csv is there, and this program did not write it. */
enum status summary_check(const char *to, struct error *e);

/* The text of summary.csv, a row for every row of every table that the records of the folder `out` make under the
 * filter (NULL: all, by val-mean); the caller's to free. Errors as report_tables_make. */
enum status summary_format(const struct record_set *set, const struct report_filter *filter, const char *out,
                           char **text, size_t *size, struct error *e);

/* Writes it to TO/summary.csv. Errors as summary_check. */
enum status summary_write(const char *text, size_t size, const char *to, struct error *e);

#endif
