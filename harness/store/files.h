/* files.h - files that appear whole or not at all. */
#ifndef LRNN_HARNESS_STORE_FILES_H
#define LRNN_HARNESS_STORE_FILES_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include "core/status.h"

#define PATH_BYTES 4096
#define HASH_HEX   33 /* XXH3-128 as hex digits, terminator included */

/* Formats a path like snprintf; ST_FAIL: it does not fit. */
enum status path_format(char *path, size_t size, struct error *e, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Makes a folder and its parents. */
enum status make_folder(const char *path, struct error *e);

/* Replaces a file atomically: temporary name in the same folder, fsync, rename. ST_USAGE: the path is a device, a pipe
 * or a link. ST_FAIL with path and reason. */
enum status write_file_atomic(const char *path, const void *bytes, size_t size, struct error *e);

/* Checks whether write_file_atomic would succeed, and leaves nothing behind. */
enum status file_write_check(const char *path, struct error *e);

/* Writes a file under a new, unique name in the folder of `path`, fsyncs and closes it; its name goes to `temporary`
 * (PATH_BYTES). On error nothing is left behind. ST_FAIL with path and reason. */
enum status temporary_write(const char *path, const void *bytes, size_t size, char *temporary, struct error *e);

/* Returns the time of the folder's file system, which stamps the files of all machines that share it. Writes a file and
 * removes it; if that fails, returns this machine's time. */
time_t folder_now(const char *folder);

/* Gives a file a second name unless another file has that name. False with errno. If link() says EEXIST, this also
 * checks whether the name already belongs to the same file: on NFS the answer to a successful link can be lost, and
 * another process may have linked the same file. */
bool file_link(const char *from, const char *to);

/* Makes the ST_FAIL error for a link that could not be made for this reason. */
enum status file_link_refused(const char *path, int reason, struct error *e);

/* Checks that files of a folder can have second names, which records and claims need. ST_FAIL. */
enum status folder_links_check(const char *folder, struct error *e);

/* Writes a file whole, with its folders, unless there is already a file of that name; *is_new: there was none.
 * ST_FAIL. */
enum status file_put(const char *path, const void *bytes, size_t size, bool *is_new, struct error *e);

/* Renames a file to PATH.SUFFIX, or .SUFFIX.2, .3: the first name that is free or already belongs to this file.
 * `target` (PATH_BYTES) gets that name. False with errno: the file keeps its name. */
bool file_move_aside(const char *path, const char *suffix, char *target);

/* Opens a file for reading, without waiting for the writer of a pipe; the caller closes it. NULL with errno. */
FILE *file_open(const char *path);

/* Reads a whole file into memory and ends it with a terminator; the caller frees *bytes. ST_DATA: no such file;
 * ST_FAIL: it cannot be read, or is larger than `most` bytes. */
enum status file_read(const char *path, size_t most, char **bytes, size_t *size, struct error *e);

/* Like file_read, and gives the XXH3-128 of the bytes. */
enum status file_read_hashed(const char *path, size_t most, char **bytes, size_t *size, char hex[HASH_HEX],
                             struct error *e);

/* If `path` (PATH_BYTES) does not exist, looks for a file PATH.*.tmp with that hash and at most so many bytes, which a
 * dead process could not rename any more, and replaces `path` by its path. */
void file_find_unnamed(char path[PATH_BYTES], const char *hash, size_t most);

/* Text that is printed into memory. printed_begin opens the stream `f`. printed_end closes it and leaves the text to
 * the caller. printed_write closes it, replaces the file `path` atomically and frees the text. `status` is the result
 * of the printing; if it is not ST_OK, or something fails, there is no text. `path` is the file that the text is for,
 * named in ST_MEMORY. printed_write has the errors of write_file_atomic too. */
struct printed {
    FILE *f;
    char *text;
    size_t size;
};
enum status printed_begin(struct printed *p, const char *path, struct error *e);
enum status printed_end(struct printed *p, enum status status, const char *path, struct error *e);
enum status printed_write(struct printed *p, enum status status, const char *path, struct error *e);

/* The names in a folder without "." and "..", sorted by bytes: list[i]->d_name. n is 0 if there is no such folder.
 * ST_DATA: it cannot be read. */
struct folder_names {
    struct dirent **list;
    int n;
};
enum status folder_names(struct folder_names *names, const char *folder, struct error *e);
void folder_names_free(struct folder_names *names);

/* Checks that a table or picture of this name, if there is one, was written by this program, so that rewriting it
 * destroys no file of the user. ST_USAGE, with advice: the file is not ours, or cannot be read. Our tables (.csv) begin
 * with the column `schema`, machines.csv with `machine_id`, or are cut before that; our pictures have the mark
 * below. */
enum status own_file_check(const char *path, struct error *e);

/* Writes the picture in the file `drawn` to `path`, atomically, with our invisible mark: a text chunk of a PNG, a
 * comment after the end of an SVG or a PDF. ST_FAIL. */
enum status own_file_mark(const char *drawn, const char *path, struct error *e);

/* Gives the path of the running program. ST_FAIL: the system does not say. */
enum status own_program(char path[PATH_BYTES], struct error *e);

/* Finds a file that ships with the program, by its name in the repository ("results/published.csv"): in the working
 * folder, beside the binary, or in <binary>/../share/lrnn. ST_DATA: it is in none of them. */
enum status shipped_file_find(const char *name, char *path, size_t size, struct error *e);

#endif
