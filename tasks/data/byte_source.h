/* byte_source.h - the bytes of a data file, plain or gzip, and the file's SHA-256.
 *
 * Decompression stops where the reader stops: a reader that knows the size from a header never unpacks more. */
#ifndef LRNN_TASKS_DATA_BYTE_SOURCE_H
#define LRNN_TASKS_DATA_BYTE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "core/file/sha256.h"
#include "core/status.h"

#define SOURCE_WINDOW 65536

struct byte_source {
    const char *name;          /* in messages; borrowed */
    int fd;                    /* -1: the bytes in memory are all there is */
    const uint8_t *next, *end; /* bytes that are read and not yet used */
    uint8_t *window;           /* owned; NULL in memory */
    bool gzip, ended;          /* ended: the last gzip member is complete */
    z_stream z;
    int64_t file_bytes; /* read of the file so far */
    int64_t bytes;      /* given out so far */
    int64_t size;       /* of the file, from the system */
    bool hashed;        /* source_end gives the file's SHA-256 */
    struct sha256 sha;
};

/* Opens a regular file. ST_DATA: it cannot be read, with the system's reason. Close it in either case. */
enum status source_open(struct byte_source *s, const char *path, struct error *e);

/* Like source_open, for one of thousands of files in an open folder: no SHA-256 is made, so source_end must not be
 * called. `path` names the file in messages. */
enum status source_open_one_of_many(struct byte_source *s, int folder, const char *file, const char *path,
                                    struct error *e);

/* Opens bytes in memory, which outlives the source. */
enum status source_open_memory(struct byte_source *s, const void *bytes, size_t size, const char *name,
                               struct error *e);

/* Reads up to n bytes; *got < n only at the end. ST_DATA: bad or truncated gzip data, or a disk error. */
enum status source_read(struct byte_source *s, void *to, size_t n, size_t *got, struct error *e);

/* Reads exactly n bytes; `what` names them in messages. ST_DATA: there are fewer, with their number. */
enum status source_take(struct byte_source *s, void *to, size_t n, const char *what, struct error *e);

/* Checks that nothing follows, and writes the file's SHA-256 into `hex`. ST_DATA: there is more. */
enum status source_end(struct byte_source *s, char hex[SHA256_HEX], struct error *e);

/* Counts of files that were read: their bytes on disk and unpacked. */
struct read_count {
    int64_t files, bytes, unpacked;
    int64_t passed_over; /* other files in the folder */
};
static inline void read_count_add(struct read_count *count, const struct byte_source *s) {
    count->files++;
    count->bytes += s->file_bytes;
    count->unpacked += s->bytes;
}

/* Closes the source; zeros are no error. */
void source_close(struct byte_source *s);

#endif
