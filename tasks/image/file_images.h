/* file_images.h - what tasks on imported images share: the file and its content, the splits.
 *
 * The validation images are a tenth of the training images, those that a permutation with seed 42 puts last: the same
 * ones for every seed (S4 draws them with another generator, which cannot be reproduced). Of a set without test images
 * the last tenth of that order are for test, the tenth before for validation. */
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
                  "a file that `lrnn data import` has written; none: the one in the cache folder", OPT_HERE),          \
        IMAGE_ROW("content", OPT_TEXT_FIELD, offsetof(TYPE, MEMBER.content), "", 0, 0, NULL,                           \
                  "XXH3-128 that the images have to have; found by itself, and part of what a run is", OPT_FOUND)

/* Opens the data set, notes its content, sets sizes and makes the order: channels and levels of from->image are the
 * task's, 0 for those of the file. */
enum status file_images_open(struct file_images *from, const char *task, const char *dataset, uint64_t seed,
                             struct arena *host, struct error *e);

/* The image in the file that example `index` of the split is. */
int64_t file_images_index(const struct file_images *from, enum split split, int64_t index);

/* Gives the image, with the channels that the file has. */
void file_images_fill(const struct file_images *from, enum split split, int64_t index, struct example *x);

#endif
