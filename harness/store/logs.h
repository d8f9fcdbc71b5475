/* logs.h - tables to which rows are appended: perf.csv, limits.csv and machines.csv of an output folder. Several
 * processes may write to each of these CSV files.
 *
 * A row is appended under a lock, in one write, and fsynced; the first row comes after a header. A partly written row
 * is removed, also one that another writer left. A file that lacks columns is first rewritten with all columns. */
#ifndef LRNN_HARNESS_STORE_LOGS_H
#define LRNN_HARNESS_STORE_LOGS_H

#include "harness/store/schema.h"

/* --- perf.csv: speeds, measured separately from training, because runs share the machine --------------------- */

/* Appends one row to OUT/perf.csv. ST_FAIL with path and reason; ST_DATA: the file has another schema or an unknown
 * column, or is no table. */
enum status perf_append(const char *out, const struct perf_row *row, struct error *e);

/* Whether two rows have the same build, machine, system and number of threads. A build is its sources (in rows without
 * their hash the commit), flags and compiler. A system is the kernel and the libraries of the machine at that time
 * (machine.h); a row that does not name its system fits any. */
bool perf_is_alike(const struct perf_row *a, const struct perf_row *b);

/* Whether a row replaces an earlier row for the same measurement. It does, unless the earlier row is quiet (undisturbed
 * by other processes), alike, and the later is disturbed. */
bool perf_replaces(const struct perf_row *row, const struct perf_row *earlier);

/* Finds the valid row of a cell by that rule, among the rows that are alike to `like` (NULL: among all). With `like`,
 * rows of another machine that shares the folder cannot hide it. */
bool perf_latest(const char *out, const char *cell_id, const struct perf_row *like, struct perf_row *row);

/* --- limits.csv: the number of steps of runs with a time limit ------------------------------------------- */

/* Appends one row to OUT/limits.csv. Errors as perf_append. */
enum status limit_append(const char *out, const struct limit_row *row, struct error *e);

/* Finds the first row for a run and a time. The first row counts, because steps are decided once, before the run
 * starts. */
bool limit_find(const char *out, const char *run_id, double seconds, struct limit_row *row);

/* --- machines.csv: the machines named in the other tables ------------------------------------------------ */

/* Adds a machine's row to OUT/machines.csv unless the file has it. Errors as perf_append. */
enum status machines_export(const char *out, const struct machine *m, struct error *e);

/* Whether OUT/machines.csv has the row of a machine and its system. */
bool machines_have(const char *out, const char *machine_id, const char *env_epoch);

/* --- files of lines ----------------------------------------------------------------------------------------------- */

/* Appends a line to a file that several processes may write and that nobody writes anew, with the folders that it lies
 * in: under a lock, in one write, flushed and fsynced. A line that another writer left without its end stays as it is,
 * and the new one begins after it. ST_FAIL with path and reason. */
enum status line_append(const char *path, const char *line, struct error *e);

/* --- merging folders --------------------------------------------------------------------------------------- */

/* Adds the rows of FROM's limits.csv and machines.csv that OUT does not have. ST_FAIL; ST_DATA: a file cannot be
 * read. */
enum status logs_merge(const char *from, const char *out, struct error *e);

/* Checks that rows can be appended to these files of a folder, if they exist. ST_USAGE: a file is not ours; ST_DATA: as
 * perf_append, or it cannot be read. */
enum status logs_check(const char *out, struct error *e);

#endif
