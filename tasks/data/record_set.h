/* record_set.h - a set of labelled records of any length as `lrnn data import` stores it, and as tasks read it: series,
 * texts, graphs. Images, all of one size, have a file of their own (image_set.h).
 *
 *   bytes 0..7      "LRNNREC1"
 *   8..15           the kind, letters and then bytes of 0
 *   16..39          width, labels, training, validation and test records, longest: six numbers of 4 bytes
 *   40..55          XXH3-128 of all that follows and then of bytes 8..39, canonical form
 *   from 56 on      a label (4 bytes), a length (4 bytes) and an offset (8 bytes) a record, in the order of the splits;
 *                   the offset of the end; then the payloads one behind the other, each from a multiple of 4 bytes on
 *
 * Numbers are little-endian. What a payload is, and what `width` and a record's length count, is its kind's. A file is
 * written under another name and then renamed, so that there is a whole one or none. */
#ifndef LRNN_TASKS_DATA_RECORD_SET_H
#define LRNN_TASKS_DATA_RECORD_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/batch.h"
#include "core/status.h"
#include "tasks/data/cache_file.h"

#define RECORD_KIND    8
#define RECORDS_MOST   2000000
#define RECORDS_LABELS 65536
#define RECORDS_BYTES  (INT64_C(1) << 34) /* payload of a set at most */

struct record_set {
    char kind[RECORD_KIND + 1];
    int64_t width, labels, n[SPLIT_COUNT], longest; /* longest: length of the longest record */
    const uint8_t *table, *payload;                 /* borrowed */
    char hash[CACHE_HASH];
};

/* Its bytes, and then zeros up to a multiple of 4. */
struct record {
    int64_t label, length;
    const uint8_t *bytes;
    int64_t size;
};

static inline int64_t record_count(const struct record_set *s) {
    return s->n[SPLIT_TRAIN] + s->n[SPLIT_VAL] + s->n[SPLIT_TEST];
}

/* Record i < record_count, in the order of the splits. */
struct record record_get(const struct record_set *s, int64_t i);

/* Maps the file and checks all of it but what payloads mean: header, size, hash, table. Kind: that it has to be. The
 * mapping lives as long as the process. ST_DATA: it is missing, or what is wrong with it. */
enum status record_set_open(struct record_set *set, const char *path, const char *kind, struct error *e);

/* The same of bytes in memory, which outlive it. */
enum status record_set_parse(struct record_set *set, const void *bytes, size_t size, const char *name, const char *kind,
                             struct error *e);

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* Records as they are collected: in memory, since their number and their sizes are known at the end. */
struct record_pack {
    struct record_set set; /* kind, width and labels set by the caller; the rest is counted */
    struct {
        int64_t label, length, offset;
    } * row;
    int64_t capacity;
    uint8_t *payload;
    int64_t used, room;
};

/* Adds a record, in the order of the splits: room for `size` bytes that the caller fills, NULL after an error.
 * ST_DATA: more than a set may hold; ST_MEMORY. */
uint8_t *record_pack_add(struct record_pack *p, enum split split, int64_t label, int64_t length, int64_t size,
                         struct error *e);

/* Writes the file, its folder made if there is none, and sets set.hash. ST_FAIL: no room on the disk. */
enum status record_pack_write(struct record_pack *p, const char *path, struct error *e);

/* One of zeros is no error. */
void record_pack_free(struct record_pack *p);

#endif
