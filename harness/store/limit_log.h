/* limit_log.h - limits.csv: how many steps a run takes in a time it was given, decided once, before it starts. */
#ifndef LRNN_HARNESS_STORE_LIMIT_LOG_H
#define LRNN_HARNESS_STORE_LIMIT_LOG_H

#include <stdbool.h>

#include "core/status.h"
#include "harness/store/limit_row.h"

/* Appends one row to OUT/limits.csv. ST_FAIL with path and reason. */
enum status limit_append(const char *out, const struct limit_row *row, struct error *e);

/* The first row of that run and time, or false: what was decided first stays. */
bool limit_find(const char *out, const char *run_id, double seconds, struct limit_row *row);

/* Adds the rows of FROM/limits.csv of whose run and time OUT has none, if there is such a file. ST_DATA: it cannot be
 * read; ST_FAIL. */
enum status limits_merge(const char *from, const char *out, struct error *e);

/* Whether a folder's file, if there is one, can be taken over and added to: errors as table_check. */
enum status limits_check(const char *out, struct error *e);

#endif
