/* file_images.h - options and splits of tasks on imported images.
 *
 * A tenth of the training images is for validation: the last ones of a permutation with seed 42, for every seed of a
 * run (S4 draws them with another generator, which cannot be reproduced). A set without test images gives the last
 * tenth of that order to test and the tenth before to validation. */
#ifndef LRNN_TASKS_IMAGE_FILE_IMAGES_H
#define LRNN_TASKS_IMAGE_FILE_IMAGES_H

#include "tasks/data/image_set.h"
#include "tasks/image/image.h"

struct file_images {
    struct image image;
    char file[OPTION_TEXT], content[OPTION_TEXT];
    struct image_set set;
};

/* Option rows of the struct file_images that is MEMBER of TYPE. */
#define FILE_IMAGES_OPTIONS(TYPE, MEMBER)                                                                              \
    IMAGE_OPTIONS(TYPE, MEMBER.image),                                                                                 \
        IMAGE_ROW("file", OPT_TEXT_FIELD, offsetof(TYPE, MEMBER.file), "", 0, 0, NULL,                                 \
                  "file written by `lrnn data import`; none: the one in the cache folder", OPT_HERE),                  \
        IMAGE_ROW("content", OPT_TEXT_FIELD, offsetof(TYPE, MEMBER.content), "", 0, 0, NULL,                           \
                  "XXH3-128 of the images; found by itself, and part of a run's identity", OPT_FOUND)

/* Opens the data set, notes its content, sets sizes and makes the order. The task sets channels and levels of
 * from->image; 0 means the file's. */
enum status file_images_open(struct file_images *from, const char *task, const char *dataset, uint64_t seed,
                             struct arena *host, struct error *e);

/* The number in the file of the image for example `index` of the split. */
int64_t file_images_index(const struct file_images *from, enum split split, int64_t index);

/* Writes the image with the file's channels. */
void file_images_fill(const struct file_images *from, enum split split, int64_t index, struct example *x);

#endif
