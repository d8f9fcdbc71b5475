/* cache_file.h - files in the cache folder: where they lie, and how tasks read them. */
#ifndef LRNN_TASKS_DATA_CACHE_FILE_H
#define LRNN_TASKS_DATA_CACHE_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

#define CACHE_PATH  1024
#define CACHE_HASH  33  /* characters of an XXH3-128, the last one 0 */
#define CACHE_SET   256 /* bytes of a parser's result at most */
#define CACHE_FILES 32  /* that a process reads */

/* Path of NAME.SUFFIX: in $LRNN_CACHE, else $XDG_CACHE_HOME/lrnn, else $HOME/.cache/lrnn. ST_USAGE: none of them is
 * set, or too long. */
enum status cache_path(const char *name, const char *suffix, char path[CACHE_PATH], struct error *e);

/* Parser of a kind of files: parses `size` bytes in memory, which outlive the result, into *set. */
typedef enum status cache_parse(void *set, const void *bytes, size_t size, const char *name, struct error *e);

/* Maps a file into memory and parses it into *set of set_bytes. The mapping lives as long as the process: a file is
 * mapped and parsed once, however many runs read it, unless it changes. ST_DATA: it is missing, or the parser's
 * error. */
enum status cache_open(const char *path, cache_parse *parse, void *set, size_t set_bytes, struct error *e);

/* A file that is being written, under a temporary name until it is complete. One of zeros is none. */
struct cache_writing {
    FILE *file;
    char path[CACHE_PATH], temporary[CACHE_PATH + 64];
};

/* Begins a file and makes the folders above it; ends it, in place of an earlier file of its name; or drops it, leaving
 * nothing. Dropping after cache_end, or one of zeros, does nothing. ST_FAIL with path and reason. */
enum status cache_begin(struct cache_writing *w, const char *path, struct error *e);
enum status cache_end(struct cache_writing *w, struct error *e);
void cache_drop(struct cache_writing *w);

/* Returns 128 plus the signal as a status if `stop` (or NULL) reports a signal that asks to stop. */
enum status cache_heed(int (*stop)(void), struct error *e);

/* Returns ST_FAIL for a write that failed; errno says why. */
enum status cache_cannot_write(const struct cache_writing *w, struct error *e);

/* Writes the digits of an XXH3-128 in its canonical form. */
void cache_hex(const uint8_t digest[16], char hex[CACHE_HASH]);

#endif
