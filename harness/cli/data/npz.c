/* npz.c - see npz.h. */
#include "harness/cli/data/npz.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "harness/store/files.h"

#define HEADER_BYTES 192 /* of a member; NumPy requires data to begin at a multiple of 64 */

/* Facts of a member for the directory at the file's end. */
struct member {
    char name[40];
    unsigned char header[HEADER_BYTES];
    size_t data; /* bytes after the header */
    uint32_t crc, offset;
};

struct buffer {
    unsigned char *bytes;
    size_t used;
};

static void put(struct buffer *b, const void *bytes, size_t n) {
    memcpy(b->bytes + b->used, bytes, n);
    b->used += n;
}

/* Appends a number in little-endian order, as ZIP requires. */
static void put_number(struct buffer *b, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) b->bytes[b->used++] = (unsigned char)(value >> 8 * i);
}

static double bytes_of(const struct npz_array *a) {
    double n = a->dtype[2] - '0'; /* bytes of an item: "<i4" */
    for (int i = 0; i < a->rank; i++) n *= (double)a->dims[i];
    return n;
}

/* Writes "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }", padded with blanks and ended by a line feed. */
static void make_header(struct member *m, const struct npz_array *a) {
    char text[HEADER_BYTES];
    int used = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", a->dtype);
    for (int i = 0; i < a->rank; i++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%" PRId64 ",", a->dims[i]);
    used += snprintf(text + used, sizeof text - (size_t)used, "), }");
    memset(m->header, ' ', sizeof m->header);
    memcpy(m->header, "\x93NUMPY\x01\x00", 8);
    m->header[8] = HEADER_BYTES - 10;
    m->header[9] = 0;
    memcpy(m->header + 10, text, (size_t)used);
    m->header[HEADER_BYTES - 1] = '\n';
}

static uint32_t checksum(const struct member *m, const void *bytes) {
    uLong crc = crc32(0, m->header, HEADER_BYTES);
    const unsigned char *at = bytes;
    for (size_t left = m->data; left;) { /* crc32 counts in unsigned int */
        uInt now = left > (1u << 30) ? 1u << 30 : (uInt)left;
        crc = crc32(crc, at, now);
        at += now;
        left -= now;
    }
    return (uint32_t)crc;
}

/* Writes the fields that a member's header and its directory entry have in common. */
static void put_facts(struct buffer *b, const struct member *m) {
    put_number(b, 20, 2);   /* ZIP version needed to read */
    put_number(b, 0, 4);    /* no flags, stored */
    put_number(b, 0, 2);    /* time: midnight */
    put_number(b, 0x21, 2); /* date: the first day of ZIP, so that equal arrays give equal files */
    put_number(b, m->crc, 4);
    put_number(b, HEADER_BYTES + m->data, 4);
    put_number(b, HEADER_BYTES + m->data, 4);
    put_number(b, strlen(m->name), 2);
    put_number(b, 0, 2); /* no extra field */
}

enum status npz_write(const char *path, const struct npz_array *arrays, int n, struct error *e) {
    struct member members[NPZ_MOST_ARRAYS] = {{.data = 0}};
    double all = 0;
    for (int i = 0; i < n; i++) all += bytes_of(&arrays[i]);
    const size_t around = (size_t)n * (HEADER_BYTES + 256) + 64;
    if (all + (double)around >= (double)NPZ_MOST_BYTES)
        return fail(e, ST_USAGE,
                    "%s would have %.1f GB, more than a ZIP file of 4 GiB holds; take fewer examples at a "
                    "time",
                    path, all / 1e9);
    struct buffer b = {malloc((size_t)all + around), 0};
    if (!b.bytes) return fail(e, ST_MEMORY, "no memory for the %.1f MB of %s", all / 1e6, path);
    for (int i = 0; i < n; i++) {
        struct member *m = &members[i];
        snprintf(m->name, sizeof m->name, "%.32s.npy", arrays[i].name);
        m->data = (size_t)bytes_of(&arrays[i]);
        make_header(m, &arrays[i]);
        m->crc = checksum(m, arrays[i].bytes);
        m->offset = (uint32_t)b.used;
        put(&b, "PK\x03\x04", 4);
        put_facts(&b, m);
        put(&b, m->name, strlen(m->name));
        put(&b, m->header, HEADER_BYTES);
        put(&b, arrays[i].bytes, m->data);
    }
    size_t directory = b.used;
    for (struct member *m = members; m < members + n; m++) {
        put(&b, "PK\x01\x02", 4);
        put_number(&b, 20, 2); /* ZIP version of the writer */
        put_facts(&b, m);
        put_number(&b, 0, 6); /* no comment, disk */
        put_number(&b, 0, 4); /* attributes */
        put_number(&b, m->offset, 4);
        put(&b, m->name, strlen(m->name));
    }
    size_t size = b.used - directory;
    put(&b, "PK\x05\x06", 4);
    put_number(&b, 0, 4); /* disks */
    put_number(&b, (uint64_t)n, 2);
    put_number(&b, (uint64_t)n, 2);
    put_number(&b, size, 4);
    put_number(&b, directory, 4);
    put_number(&b, 0, 2); /* no comment */
    enum status status = write_file_atomic(path, b.bytes, b.used, e);
    free(b.bytes);
    return status;
}
