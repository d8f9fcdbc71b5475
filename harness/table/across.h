/* across.h - tasks side by side, a row a model: what the reports "across" and "suites" share. */
#ifndef LRNN_HARNESS_TABLE_ACROSS_H
#define LRNN_HARNESS_TABLE_ACROSS_H

#include "harness/table/report.h"

/* A sheet a profile with several tasks, or a profile of a suite, which then may have one task; `data`: the sheet for
 * programs. ST_DATA: no profile has been run on several tasks. */
enum status across_make(struct sheets *sheets, const struct report_tables *tables, bool of_suite, bool data,
                        struct error *e);

#endif
