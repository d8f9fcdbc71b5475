/* append.h - tables that grow by a row, each in a CSV file that several processes may write. */
#ifndef LRNN_HARNESS_STORE_APPEND_H
#define LRNN_HARNESS_STORE_APPEND_H

#include "harness/store/schema.h"

/* Appends one row to OUT/<table>.csv, the header before the first, under a lock and in one write; flushed and fsynced.
 * What could not be written whole is taken back, as is a row that another writer left unfinished. A file of an earlier
 * schema is first written anew with the columns of this one. ST_FAIL with path and reason; ST_DATA: the file is of a
 * later schema, or no table. */
enum status table_append(const struct table *table, const void *object, const char *out, struct error *e);

/* Hands each row of FROM/<table>.csv on to `add`, which appends it to the table of OUT unless it is known there; `row`
 * is where it lies, all zeros. None, where there is no such file. ST_DATA: it cannot be read, or what `add` says. */
enum status table_merge(const struct table *table, const char *from, const char *out, void *row,
                        enum status (*add)(const char *out, const void *row, struct error *e), struct error *e);

/* Whether a row could be appended, where the file is there: ST_USAGE: it is not ours; ST_DATA: as table_append, or it
 * cannot be read. */
enum status table_check(const struct table *table, const char *out, struct error *e);

#endif
