/* picture.h - a picture of examples: images in rows, each with its label below it. */
#ifndef LRNN_HARNESS_PLOT_PICTURE_H
#define LRNN_HARNESS_PLOT_PICTURE_H

#include "tasks/task.h"

struct picture {
    const struct task_shape *shape; /* of images; outlives it */
    int64_t count, columns, zoom;   /* number of images; images per row; enlargement of a pixel */
    int64_t height, width;
    int64_t rows, across;    /* pixels of the largest image */
    int64_t patch, channels; /* side of a position in pixels; channels per pixel */
    float *values;           /* (count, rows, across, channels); NAN outside smaller images */
    int32_t *labels;         /* (count) */
    uint8_t *pixels;         /* (height, width, 3) of the picture */
};

/* Makes a picture for `count` images of a split. ST_USAGE: the task has no images, or too many channels to draw.
 * ST_MEMORY. */
enum status picture_make(struct picture *p, const struct task_shape *shape, enum split split, int64_t count,
                         struct error *e);

/* Adds image number `index`, with its pixels put back in place from the order of visits. */
void picture_add(struct picture *p, int64_t index, const struct example *x);

/* Draws the picture: per channel the least value of all images is black, the largest white. Replaces the file
 * atomically; errors as write_file_atomic. */
enum status picture_write(struct picture *p, const char *path, struct error *e);

void picture_free(struct picture *p);

#endif
