/* record_csv.h - the run records as tables: runs.csv, curves.csv and evals.csv. */
#ifndef LRNN_HARNESS_STORE_RECORD_CSV_H
#define LRNN_HARNESS_STORE_RECORD_CSV_H

#include "harness/store/record_files.h"

/* ST_USAGE: a file of one of these names is there that this program did not write (own_file.h). */
enum status records_export_check(const char *out, struct error *e);

/* Writes OUT/runs.csv, OUT/curves.csv and OUT/evals.csv from the records, each through a temporary name. Nothing is
 * written where records_export_check refuses. */
enum status records_export_csv(const struct record_set *set, const char *out, struct error *e);

#endif
