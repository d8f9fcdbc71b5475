/* summary.h - summary.csv: the rows of all tables with all their numbers, for programs. */
#ifndef LRNN_HARNESS_TABLE_SUMMARY_H
#define LRNN_HARNESS_TABLE_SUMMARY_H

#include "harness/sheet/sheet.h"
#include "harness/rows/rows.h"

/* Adds the sheet. */
void summary_make(struct sheets *sheets, const struct report_tables *tables);

/* ST_USAGE: TO/summary.csv exists and was not written by this program. */
enum status summary_check(const char *to, struct error *e);

/* Writes the text of summary.csv, with a row for every row of every table of the records of the folder `out` under the
 * filter (NULL: all, by val-mean). The caller frees the text. Errors as report_tables_make. */
enum status summary_format(const struct record_set *set, const struct report_filter *filter, const char *out,
                           char **text, size_t *size, struct error *e);

/* Writes it to TO/summary.csv. Errors as summary_check. */
enum status summary_write(const char *text, size_t size, const char *to, struct error *e);

#endif
