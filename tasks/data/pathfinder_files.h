/* pathfinder_files.h - the released folders of Pathfinder: lists of images with their labels, and PNG files.
 *
 * FOLDER/metadata/N.npy is plain text despite its name: a line an image, its words apart by blanks: folder, file,
 * index, label, and numbers of the drawing that nobody needs here. */
#ifndef LRNN_TASKS_DATA_PATHFINDER_FILES_H
#define LRNN_TASKS_DATA_PATHFINDER_FILES_H

#include "tasks/data/image_files.h"

#define PATHFINDER_NAME 120 /* bytes of a folder's or a file's name, terminator included */

/* A line of a list. */
struct pathfinder_line {
    char folder[PATHFINDER_NAME], file[PATHFINDER_NAME];
    int label;
};

/* The next line of a list in memory: *at moves behind it. `line` counts from 1 and is of the message. ST_DATA: what is
 * expected there and what was found. Names do not leave the folder. */
enum status pathfinder_list_next(const char **at, const char *end, const char *name, int64_t line,
                                 struct pathfinder_line *out, struct error *e);

/* Hands on all images of a folder, the lists in the order of their numbers. ST_DATA names file, line and what was
 * found. */
enum status pathfinder_read(const char *folder, struct image_sink *sink, struct read_count *count, struct error *e);

#endif
