/* byte_source.h - the bytes of a file of data, plain or gzip, and what the file is named by.
 *
 * Decompression runs as far as it is asked to: a reader that knows from a header how much there is never takes more,
 * however far the file would unfold. */
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
    const uint8_t *next, *end; /* of the file, not yet used */
    uint8_t *window;           /* owned; NULL in memory */
    bool gzip, ended;          /* ended: the last gzip member is complete */
    z_stream z;
    int64_t file_bytes; /* read of the file so far */
    int64_t bytes;      /* given out so far */
    int64_t size;       /* of the file, as the system says */
    bool hashed;        /* source_end is to say what the file's SHA-256 is */
    struct sha256 sha;
};

/* Opens a regular file. ST_DATA: it cannot be read, with the system's reason. Close it in either case. */
enum status source_open(struct byte_source *s, const char *path, struct error *e);

/* The same of one of so many files of an open folder that nobody asks what each of them hashes to: source_end is not
 * for it. `path` names it in messages. */
enum status source_open_one_of_many(struct byte_source *s, int folder, const char *file, const char *path,
                                    struct error *e);

/* Opens bytes in memory, which outlives the source. */
enum status source_open_memory(struct byte_source *s, const void *bytes, size_t size, const char *name,
                               struct error *e);

/* Up to n bytes: *got < n only where they end. ST_DATA: gzip data that is none, or ends early; the disk. */
enum status source_read(struct byte_source *s, void *to, size_t n, size_t *got, struct error *e);

/* Exactly n bytes, which are `what`. ST_DATA: how many there are instead. */
enum status source_take(struct byte_source *s, void *to, size_t n, const char *what, struct error *e);

/* Nothing may follow. ST_DATA: something does. Then `hex` has the SHA-256 of the file. */
enum status source_end(struct byte_source *s, char hex[SHA256_HEX], struct error *e);

/* Files that were read, their bytes as they lie there, and what those unpack to. */
struct read_count {
    int64_t files, bytes, unpacked;
    int64_t passed_over; /* files that lie beside them and are none of the set */
};
static inline void read_count_add(struct read_count *count, const struct byte_source *s) {
    count->files++;
    count->bytes += s->file_bytes;
    count->unpacked += s->bytes;
}

/* One of zeros is no error. */
void source_close(struct byte_source *s);

#endif
