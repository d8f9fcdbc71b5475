/* logs.h - tables that grow by a row: perf.csv, limits.csv and machines.csv of an output folder, each a CSV file that
 * several processes may write.
 *
 * A row is appended under a lock and in one write, after the header if it is the first, flushed and fsynced. A row that
 * could not be written whole is taken back, and so is one that another writer left unfinished. A file that lacks
 * columns is first written anew with all of them. */
#ifndef LRNN_HARNESS_STORE_LOGS_H
#define LRNN_HARNESS_STORE_LOGS_H

#include "harness/store/schema.h"

/* --- perf.csv: speeds, which are measured apart from training, because runs share the machine --------------------- */

/* Appends one row to OUT/perf.csv. ST_FAIL with path and reason; ST_DATA: the file is of another schema, has a column
 * that this program does not know, or is no table. */
enum status perf_append(const char *out, const struct perf_row *row, struct error *e);

/* Whether both rows have one build, machine, system and number of threads. A build is its sources, committed or not,
 * flags and compiler; in rows without a hash of the sources the commit stands for them. A system is the kernel and the
 * libraries that the machine has at that time (machine.h); a row that does not name it fits any. */
bool perf_is_alike(const struct perf_row *a, const struct perf_row *b);

/* Whether a row takes the place of an earlier one of the same thing. A quiet row outlasts disturbed ones that follow it
 * and are alike. */
bool perf_replaces(const struct perf_row *row, const struct perf_row *earlier);

/* Finds the latest row of a cell by that rule, among rows that are alike `like` (NULL: among all). Another machine that
 * shares the folder then hides none of them. */
bool perf_latest(const char *out, const char *cell_id, const struct perf_row *like, struct perf_row *row);

/* --- limits.csv: how many steps a run takes in a time that it was given ------------------------------------------- */

/* Appends one row to OUT/limits.csv. Errors as perf_append. */
enum status limit_append(const char *out, const struct limit_row *row, struct error *e);

/* Finds the first row of a run and a time: a limit is decided once, before the run starts. */
bool limit_find(const char *out, const char *run_id, double seconds, struct limit_row *row);

/* --- machines.csv: the machines that rows of the other tables name ------------------------------------------------ */

/* Adds a machine's row to OUT/machines.csv unless it is there. Errors as perf_append. */
enum status machines_export(const char *out, const struct machine *m, struct error *e);

/* Whether OUT/machines.csv has the row of a machine and its system. */
bool machines_have(const char *out, const char *machine_id, const char *env_epoch);

/* --- files of lines ----------------------------------------------------------------------------------------------- */

/* Appends a line to a file that several processes may write and that nobody writes anew, with the folders that it lies
 * in: under a lock, in one write, flushed and fsynced. A line that another writer left without its end stays as it is,
 * and the new one begins after it. ST_FAIL with path and reason. */
enum status line_append(const char *path, const char *line, struct error *e);

/* --- folders taken together --------------------------------------------------------------------------------------- */

/* Adds the rows of FROM's limits.csv and machines.csv that OUT does not have. ST_FAIL; ST_DATA: a file cannot be
 * read. */
enum status logs_merge(const char *from, const char *out, struct error *e);

/* Whether those files of a folder, where they are there, can be added to. ST_USAGE: one is not ours; ST_DATA: as
 * perf_append, or it cannot be read. */
enum status logs_check(const char *out, struct error *e);

#endif
