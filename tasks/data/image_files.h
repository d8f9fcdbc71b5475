/* image_files.h - readers of the official files of images: IDX (MNIST) and CIFAR's binary form; each plain or gzip.
 *
 * A reader hands on one image at a time and holds only that one. Counts in a file's header only bound the loop. */
#ifndef LRNN_TASKS_DATA_IMAGE_FILES_H
#define LRNN_TASKS_DATA_IMAGE_FILES_H

#include "tasks/data/byte_source.h"

/* Takes an image of (height, width, channels) bytes and its label. */
struct image_sink {
    enum status (*keep)(struct image_sink *sink, int label, const uint8_t *pixels, struct error *e);
    int64_t height, width, channels, labels; /* required sizes of an image; `labels` is the number of labels */
    int64_t most;                            /* images a file may have */
};

/* A pair of IDX files: images (magic 00000803, count, rows, columns, big-endian, then bytes) and labels (magic
 * 00000801, count, bytes). ST_DATA names file and byte, what is expected there and what was found. */
enum status idx_read(struct byte_source *images, struct byte_source *labels, struct image_sink *sink, struct error *e);

/* A file of CIFAR: entries of a label and, plane by plane, red, green and blue. ST_DATA as above. */
enum status cifar_read(struct byte_source *s, struct image_sink *sink, struct error *e);

#endif
