/* files.h - files that appear whole or not at all. */
#ifndef LRNN_HARNESS_STORE_FILES_H
#define LRNN_HARNESS_STORE_FILES_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/status.h"

#define PATH_BYTES 4096
#define HASH_HEX   33 /* XXH3-128 as hex digits, terminator included */

/* snprintf of a path; ST_FAIL when it does not fit. */
enum status path_format(char *path, size_t size, struct error *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Makes a folder and its parents. */
enum status make_folder(const char *path, struct error *e);

/* Replaces a file atomically: temporary name in the same folder, fsync, rename. ST_USAGE: what has the name is a
 * device, a pipe or a link. ST_FAIL with path and reason. */
enum status write_file_atomic(const char *path, const void *bytes, size_t size, struct error *e);

/* Says how write_file_atomic would end, before there is anything to write: nothing is left there. */
enum status file_write_check(const char *path, struct error *e);

/* Creates and writes a file of a name nobody else uses in the folder of `path`, fsyncs and closes it; its name goes to
 * `temporary` (PATH_BYTES). On error nothing is left there. ST_FAIL with path and reason. */
enum status temporary_write(const char *path, const void *bytes, size_t size, char *temporary, struct error *e);

/* Gives a file a second name unless another file has it: what has it already is left alone. False with errno. link()
 * alone does not tell: it says EEXIST of its own work where the answer to its first try was lost (NFS), and where
 * another process, or one that was killed, has just linked the same file. */
bool file_link(const char *from, const char *to);

/* ST_FAIL of a link that could not be made, for this reason. */
enum status file_link_refused(const char *path, int reason, struct error *e);

/* Whether files of a folder can have second names, as records and claims do for a moment. ST_FAIL. */
enum status folder_links_check(const char *folder, struct error *e);

/* Puts a file where none of that name is, whole, with the folders that it lies in; *is_new: none was. ST_FAIL. */
enum status file_put(const char *path, const void *bytes, size_t size, bool *is_new, struct error *e);

/* Renames a file to PATH.SUFFIX, or .SUFFIX.2, .3, the first name that is free or the file's already; `target`
 * (PATH_BYTES) is that name. False with errno: it stays where it is. */
bool file_move_aside(const char *path, const char *suffix, char *target);

/* Opens a file for reading, never waiting for a pipe's writer; the caller closes it. NULL with errno. */
FILE *file_open(const char *path);

/* Reads a whole file into memory and ends it with a terminator; the caller frees *bytes. ST_DATA: no such file;
 * ST_FAIL: it cannot be read, or is larger than `most` bytes. */
enum status file_read(const char *path, size_t most, char **bytes, size_t *size, struct error *e);

/* Reads a file as file_read does, and names its content: the XXH3-128 of the bytes. */
enum status file_read_hashed(const char *path, size_t most, char **bytes, size_t *size, char hex[HASH_HEX],
                             struct error *e);

/* If `path` (PATH_BYTES) names no file, replaces it by the path of a file of that hash, PATH.*.tmp of at most so many
 * bytes, which a process that died had no time to rename. */
void file_find_unnamed(char path[PATH_BYTES], const char *hash, size_t most);

/* Text that is printed into memory. printed_begin gives the stream `f`; printed_end closes it and leaves the whole text
 * to the caller; printed_write closes it, replaces the file `path` atomically and frees the text. `status` says how the
 * printing went: where it is no ST_OK, or something fails, there is no text. ST_MEMORY names `path`, the file that the
 * text is for; printed_write: also as write_file_atomic. */
struct printed {
    FILE *f;
    char *text;
    size_t size;
};
enum status printed_begin(struct printed *p, const char *path, struct error *e);
enum status printed_end(struct printed *p, enum status status, const char *path, struct error *e);
enum status printed_write(struct printed *p, enum status status, const char *path, struct error *e);

/* Names in a folder, sorted by their bytes, "." and ".." left out: list[i]->d_name. None, where there is no such
 * folder. ST_DATA: it cannot be read. */
struct folder_names {
    struct dirent **list;
    int n;
};
enum status folder_names(struct folder_names *names, const char *folder, struct error *e);
void folder_names_free(struct folder_names *names);

/* A folder may hold files of other people: what is written anew at every call (tables, pictures) takes the place of an
 * earlier one of ours alone. ST_USAGE, with what to do: a file of that name is there and not ours, or, with the reason,
 * nobody can tell. A table (.csv) of ours begins with the column `schema`, machines.csv with `machine_id`, or ends
 * before that; a picture has the mark below. */
enum status own_file_check(const char *path, struct error *e);

/* Puts our mark into a picture, where it changes nothing that is seen: a text chunk of a PNG, a comment after the end
 * of an SVG or a PDF. ST_FAIL. */
enum status own_file_mark(const char *path, struct error *e);

/* Path of the running program. ST_FAIL: the system does not say. */
enum status own_program(char path[PATH_BYTES], struct error *e);

/* Finds a file that ships with the program, by its name in the repository ("results/published.csv"): in the working
 * folder, beside the binary, or in <binary>/../share/lrnn. ST_DATA when it is in none of them. */
enum status shipped_file_find(const char *name, char *path, size_t size, struct error *e);

#endif
