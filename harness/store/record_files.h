/* record_files.h - run records on disk: OUT/runs/<ab>/<run_id>.json, one immutable file per run, or packed
 * (record_pack.h). Every function here that takes the path of such a file finds a packed record too.
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

#define WEIGHTS_FOLDER "weights" /* below the output folder */

/* Names the file, below the output folder, for the weights of an attempt at a run; kind "": of its best step, ".last":
 * of its last step. */
void record_weights_name(const struct run *run, const char *kind, char name[RECORD_TEXT]);

/* Writes the record. If there is a record of that id, it is kept, which counts as success. *won, if not NULL, says
 * whether the record on disk is this one. Errors: ST_FAIL with path and reason (unwritable, disk full); nothing
 * half-written is left visible. */
enum status record_write(const char *out, const struct run_record *r, bool *won, struct error *e);

/* Returns the number of the next attempt at a run: 1 plus the number of its records that were set aside. */
int64_t record_attempt(const char *out, const char *run_id);

/* Reads one record. Texts and arrays are on `arena`, which is reserved here if it is empty. ST_DATA: damaged (the first
 * line has the XXH3-128 of all bytes after it), of another run than its name says, or of another schema; ST_FAIL: it
 * cannot be read. Both with path and reason. */
enum status record_read(const char *path, struct run_record *r, struct arena *arena, struct error *e);

/* A record with its own memory. *open is NULL after an error; record_close allows NULL. */
struct open_record {
    struct run_record record;
    struct arena arena;
};
enum status record_open(const char *path, struct open_record **open, struct error *e);

struct record_pack;

/* Like record_open, for one record after the other of a folder; `last` is as in record_text. */
enum status record_open_next(const char *path, struct record_pack *last, struct open_record **open, struct error *e);
void record_close(struct open_record *open);

enum build_state { RECORD_ABSENT, RECORD_DONE, RECORD_WAS_CORRUPT };

/* Checks whether the run has a record on disk. A corrupt record is renamed to <name>.corrupt, or .corrupt.2, .3 (never
 * deleted) and reported on stderr; the result is then RECORD_WAS_CORRUPT, and the run must be done again. */
enum build_state record_check(const char *out, const char *run_id);

/* Renames the run's record to <name>.SUFFIX, or .SUFFIX.2, .3. If it is packed, its pack is unpacked before. Does
 * nothing if there is no record. ST_FAIL with path and reason; ST_DATA: the pack is damaged. */
enum status record_set_aside(const char *out, const char *run_id, const char *suffix, struct error *e);

/* Sets every damaged record under OUT/runs aside as record_check does, for commands that write. ST_DATA as
 * records_list. */
enum status records_mend(const char *out, struct error *e);

/* The files of all records under OUT/runs and of attempts that were set aside, sorted by folder and name. n is 0 if
 * there is no such folder. ST_DATA: a folder or a pack cannot be read, or has a record that belongs elsewhere. With
 * `strict` also: another file that ends like a record is not at its place, runs/AB/ID.json, where it would be read. */
struct record_file {
    char *path;
    char id[RUN_ID_HEX];
    bool set_aside;
    size_t packed; /* bytes of a record that is in a pack; 0: it is a file */
};
struct record_list {
    struct record_file *list;
    int n;
};
enum status records_list(struct record_list *files, const char *out, bool strict, struct error *e);
void records_list_free(struct record_list *files);

/* All records under OUT/runs, sorted by started then run_id, with the failed attempts that were set aside, since they
 * count as failures. Nothing is renamed or written. ST_DATA: a record is damaged, of another schema, in a wrong folder,
 * or unreadable; a table without it would be wrong. */
struct record_set {
    struct run_record *list;
    int n;
    struct arena arena;
};
enum status records_load(struct record_set *set, const char *out, struct error *e);

/* Like records_load, but leaves out damaged records and records of another schema, and writes a line with the reason
 * for each to `broken`. NULL: they are errors. */
enum status records_load_sound(struct record_set *set, const char *out, FILE *broken, struct error *e);
void records_free(struct record_set *set);

/* Writes OUT/runs.csv, OUT/curves.csv and OUT/evals.csv from the records, each atomically. Nothing is written if
 * records_export_check refuses. */
enum status records_export_csv(const struct record_set *set, const char *out, struct error *e);

/* ST_USAGE: a file with one of these names was not written by this program (own_file_check). */
enum status records_export_check(const char *out, struct error *e);

/* Finds a run by its id, the first digits of its id, or the path of its record. `out` is the folder to search, and
 * becomes the folder of the run; `command` begins messages. ST_USAGE: several ids begin with the digits, or the text is
 * neither id nor path; ST_DATA: there is no such run, or it is not finished. */
enum status run_find(const char *command, const char *text, char out[PATH_BYTES], char id[RUN_ID_HEX], struct error *e);

/* Opens the record of a run of OUT. The caller closes it. Errors as record_read. */
enum status run_record_open(const char *command, const char *out, const char *id, struct open_record **open,
                            struct error *e);

#endif
