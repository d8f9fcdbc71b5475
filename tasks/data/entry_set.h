/* entry_set.h - a set of labelled entries of any length as `lrnn data import` stores it, and as tasks read it: series,
 * texts, graphs. Images, all of one size, have another file format (image_set.h).
 *
 *   bytes 0..7      "LRNNREC1"
 *   8..15           the kind, letters and then bytes of 0
 *   16..39          width, labels, training, validation and test entries, longest: six numbers of 4 bytes
 *   40..55          XXH3-128 of all that follows and then of bytes 8..39, canonical form
 *   from 56 on      per entry a label (4 bytes), a length (4 bytes) and an offset (8 bytes), in the order of the
 *                   splits; the offset of the end; then the payloads one after the other, each from a multiple of 4
 *                   bytes on
 *
 * A file's name ends in .records. Numbers are little-endian. The kind decides what a payload is, and what `width` and
 * an entry's length count. A file is written under another name and then renamed, so there is a whole one or none. */
#ifndef LRNN_TASKS_DATA_ENTRY_SET_H
#define LRNN_TASKS_DATA_ENTRY_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/batch.h"
#include "core/status.h"
#include "tasks/data/cache_file.h"

#define ENTRY_KIND     8
#define ENTRIES_MOST   2000000
#define ENTRIES_LABELS 65536
#define ENTRIES_BYTES  (INT64_C(1) << 34) /* payload of a set at most */

struct entry_set {
    char kind[ENTRY_KIND + 1];
    int64_t width, labels, n[SPLIT_COUNT], longest; /* longest: length of the longest entry */
    const uint8_t *table, *payload;                 /* borrowed */
    char hash[CACHE_HASH];
};

/* An entry's bytes; zeros follow up to a multiple of 4. */
struct entry {
    int64_t label, length;
    const uint8_t *bytes;
    int64_t size;
};

static inline int64_t entry_count(const struct entry_set *s) {
    return s->n[SPLIT_TRAIN] + s->n[SPLIT_VAL] + s->n[SPLIT_TEST];
}

/* Entry i < entry_count, in the order of the splits. */
struct entry entry_get(const struct entry_set *s, int64_t i);

/* Maps the file and checks header, size, hash, table and `kind`, but not the meaning of payloads. The mapping lives as
 * long as the process. ST_DATA: it is missing, or the fault in it. */
enum status entry_set_open(struct entry_set *set, const char *path, const char *kind, struct error *e);

/* Opens a set in memory, which outlives it. */
enum status entry_set_parse(struct entry_set *set, const void *bytes, size_t size, const char *name, const char *kind,
                            struct error *e);

/* --- writing ------------------------------------------------------------------------------------------------------ */

/* Entries while they are collected, in memory, because their number and sizes are known only at the end. */
struct entry_pack {
    struct entry_set set; /* kind, width and labels set by the caller; the rest is counted */
    int (*stop)(void);    /* a signal that asks to stop, else 0; or NULL. Set by the caller */
    uint64_t label_names; /* hash of the labels' names if the files have them: all files must number them alike */
    struct {
        int64_t label, length, offset;
    } * row;
    int64_t capacity;
    uint8_t *payload;
    int64_t used, room;
};

/* Adds an entry, in the order of the splits, and returns room for `size` bytes that the caller fills; NULL after an
 * error. ST_DATA: more than a set may hold; ST_MEMORY; 128 plus the signal: it was asked to stop. */
uint8_t *entry_pack_add(struct entry_pack *p, enum split split, int64_t label, int64_t length, int64_t size,
                        struct error *e);

/* Writes the file, after making its folder, and sets set.hash. ST_FAIL: no room on the disk. */
enum status entry_pack_write(struct entry_pack *p, const char *path, struct error *e);

/* Frees it; one of zeros is no error. */
void entry_pack_free(struct entry_pack *p);

#endif
