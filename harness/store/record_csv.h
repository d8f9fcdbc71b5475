/* record_csv.h - the run records as tables: runs.csv, curves.csv and evals.csv. */
#ifndef LRNN_HARNESS_RECORD_CSV_H
#define LRNN_HARNESS_RECORD_CSV_H

#include "harness/store/record_files.h"

/* Writes OUT/runs.csv, OUT/curves.csv and OUT/evals.csv from the records, each through a temporary name. */
enum status records_export_csv(const struct record_set *set, const char *out, struct error *e);

#endif
