/* image_set.h - a set of images as `lrnn data import` stores it, and as tasks read it: one file in the cache folder.
 *
 *   bytes 0..7      "LRNNIMG1"
 *   8..39           height, width, channels, labels, training images, test images: six numbers of 4 bytes, then 8 of 0;
 *                   little-endian
 *   40..55          XXH3-128 of all that follows and then of bytes 8..39, canonical form
 *   from 56 on      pixels (images, height, width, channels), training images first; then a label per image, a byte
 *                   each
 *
 * A file is written under another name and then renamed, so that there is a whole one or none. */
#ifndef LRNN_TASKS_DATA_IMAGE_SET_H
#define LRNN_TASKS_DATA_IMAGE_SET_H

#include <stdio.h>
#include <xxhash.h>

#include "core/arena.h"
#include "tasks/data/cache_file.h"

#define IMAGE_SET_LABELS 256
#define IMAGE_SET_SIDE   512
#define IMAGE_SET_MOST   2000000 /* images */

/* An imported set, or one that is being imported. */
struct image_set {
    int64_t height, width, channels, labels, n_train, n_test;
    const uint8_t *pixels, *label; /* of all images; borrowed */
    char hash[CACHE_HASH];
};

/* Maps the file into memory and checks its header, size, hash and labels. The mapping lives as long as the process: a
 * file is mapped once, however many runs read it. ST_DATA: it is missing, or the fault in it. */
enum status image_set_open(struct image_set *set, const char *path, struct error *e);

/* Opens a set in memory, which outlives it. */
enum status image_set_parse(struct image_set *set, const void *bytes, size_t size, const char *name, struct error *e);

/* --- writing ------------------------------------------------------------------------------------------------------ */

struct image_pack {
    struct image_set set; /* height, width, channels and labels set by the caller; the numbers of images count up */
    int (*stop)(void);    /* a signal that asks to stop, else 0; or NULL. Set by the caller */
    struct cache_writing to;
    XXH3_state_t *state;
    uint8_t *label;
    int64_t capacity;
};

/* Begins a file, after making its folder. ST_FAIL. */
enum status image_pack_begin(struct image_pack *p, const char *path, struct error *e);

/* Adds an image; all training images come before the test images. ST_FAIL: no room on the disk; 128 plus the signal: it
 * was asked to stop. */
enum status image_pack_add(struct image_pack *p, bool test, int label, const uint8_t *pixels, struct error *e);

/* Gives the file its final name and writes its hash into p->set. */
enum status image_pack_end(struct image_pack *p, struct error *e);

/* Drops a file that was not ended, leaving nothing. One of zeros, or one that was ended, is no error. */
void image_pack_drop(struct image_pack *p);

#endif
