/* record_files.h - run records on disk: OUT/runs/<ab>/<run_id>.json, one immutable file per run.
 *
 * A record is written under a temporary name, fsynced, and linked into place without overwriting, then its folder is
 * fsynced. */
#ifndef LRNN_HARNESS_STORE_RECORD_FILES_H
#define LRNN_HARNESS_STORE_RECORD_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/arena.h"
#include "core/status.h"
#include "harness/store/files.h"
#include "harness/store/record.h"

/* OUT/runs/<ab>/<run_id>.json */
void record_path(const char *out, const char *run_id, char *path, size_t size);

#define WEIGHTS_FOLDER "weights" /* below the output folder */

/* Names the file for the weights of an attempt at a run, below the output folder; kind "" of its best step, ".last" of
 * its last one. */
void record_weights_name(const struct run *run, const char *kind, char name[RECORD_TEXT]);

/* Writes the record; an existing one of that id is kept and counts as success. *won, if not NULL, says whether it is
 * this one that is there now. Errors: ST_FAIL with path and reason (unwritable, disk full); nothing half-written is
 * left visible. */
enum status record_write(const char *out, const struct run_record *r, bool *won, struct error *e);

/* The number of the attempt at a run that writes its record next: 1, and 1 more for each record of it that was set
 * aside, for whatever reason. */
int64_t record_attempt(const char *out, const char *run_id);

/* Reads one record; texts and arrays live on `arena`, which gets room for any record of the file's size unless it has
 * memory already. ST_DATA: damaged (the first line holds the XXH3-128 of all bytes after it), of another run than its
 * name says, or of another schema; ST_FAIL: it cannot be read. Both with path and reason. */
enum status record_read(const char *path, struct run_record *r, struct arena *arena, struct error *e);

/* Reads a record into memory of its own. *open is NULL after an error; record_close takes NULL as well. */
struct open_record {
    struct run_record record;
    struct arena arena;
};
enum status record_open(const char *path, struct open_record **open, struct error *e);
void record_close(struct open_record *open);

enum build_state { RECORD_ABSENT, RECORD_DONE, RECORD_WAS_CORRUPT };

/* Whether the run is on disk. A corrupt record is renamed to <name>.corrupt, or .corrupt.2, .3 (never deleted), named
 * on stderr, and the answer is RECORD_WAS_CORRUPT: the run is to be done again. */
enum build_state record_check(const char *out, const char *run_id);

/* Renames the record of that run to <name>.SUFFIX, or .SUFFIX.2, .3; none there is fine. ST_FAIL with path and
 * reason. */
enum status record_set_aside(const char *out, const char *run_id, const char *suffix, struct error *e);

/* Treats every damaged record under OUT/runs as record_check does, for commands that write. ST_DATA as records_list. */
enum status records_mend(const char *out, struct error *e);

/* Files of all records under OUT/runs and of the attempts that were set aside, by folder and name. None, where there is
 * no such folder. ST_DATA: a folder cannot be read, or has the record of a run that belongs into another one. With
 * `strict` also: something else under OUT/runs has the ending of a record and not its place, runs/AB/ID.json; nothing
 * reads it. */
struct record_file {
    char *path;
    char id[RUN_ID_HEX];
    bool set_aside;
};
struct record_list {
    struct record_file *list;
    int n;
};
enum status records_list(struct record_list *files, const char *out, bool strict, struct error *e);
void records_list_free(struct record_list *files);

/* All records under OUT/runs, sorted by started then run_id, with failed attempts that were set aside: a run
 * that was done again after it had failed has failed once. Nothing is renamed or written. ST_DATA: one is damaged, or
 * of another schema, in another run's folder, or cannot be read: without it a table would say something false. */
struct record_set {
    struct run_record *list;
    int n;
    struct arena arena;
};
enum status records_load(struct record_set *set, const char *out, struct error *e);

/* Loads as records_load does, and leaves out damaged records and those of another schema: `broken` gets a line on each,
 * which says why. NULL: they are errors. */
enum status records_load_sound(struct record_set *set, const char *out, FILE *broken, struct error *e);
void records_free(struct record_set *set);

/* Writes OUT/runs.csv, OUT/curves.csv and OUT/evals.csv from the records, each atomically. Nothing is written where
 * records_export_check refuses. */
enum status records_export_csv(const struct record_set *set, const char *out, struct error *e);

/* ST_USAGE: a file of one of these names is there that this program did not write (own_file_check). */
enum status records_export_check(const char *out, struct error *e);

/* Finds the run that somebody names by its id, the first digits of it, or the path of its record. `out` comes in as the
 * folder to look in and goes out as the folder that holds the run; `command` begins messages. ST_USAGE: several runs
 * begin so, or it is neither id nor path; ST_DATA: there is none, or it is not finished. */
enum status run_find(const char *command, const char *text, char out[PATH_BYTES], char id[RUN_ID_HEX], struct error *e);

/* Opens the record of a run of OUT, which the caller closes. Errors as record_read. */
enum status run_record_open(const char *command, const char *out, const char *id, struct open_record **open,
                            struct error *e);

#endif
