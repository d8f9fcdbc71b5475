/* picture.h - a picture of examples: images in rows, each with its label below it. */
#ifndef LRNN_HARNESS_PLOT_PICTURE_H
#define LRNN_HARNESS_PLOT_PICTURE_H

#include "tasks/task.h"

struct picture {
    const struct task_shape *shape; /* of images; outlives it */
    int64_t count, columns, zoom;   /* images; a row; pixels of the picture a pixel's side */
    int64_t height, width;
    int64_t rows, across;    /* pixels of the largest image */
    int64_t patch, channels; /* pixels a side of what the task calls a position; of a pixel */
    float *values;           /* (count, rows, across, channels) of the images as they were, NAN beside smaller ones */
    int32_t *labels;         /* (count) */
    uint8_t *pixels;         /* (height, width, 3) of the picture */
};

/* Room for `count` images of a split. ST_USAGE: the task has none, or too many channels to be drawn. ST_MEMORY. */
enum status picture_make(struct picture *p, const struct task_shape *shape, enum split split, int64_t count,
                         struct error *e);

/* Image number `index`, its pixels put back where they were visited. */
void picture_add(struct picture *p, int64_t index, const struct example *x);

/* Draws it: the least value of all images is black, the largest white, channel by channel. Errors as
 * write_file_atomic: an earlier file of the name is replaced by the whole picture or stays. */
enum status picture_write(struct picture *p, const char *path, struct error *e);

void picture_free(struct picture *p);

#endif
