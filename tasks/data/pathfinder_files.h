/* pathfinder_files.h - reads the released folders of Pathfinder: lists of images with their labels, and PNG files.
 *
 * FOLDER/metadata/N.npy is plain text despite its name. A line describes one image by words apart by blanks: folder,
 * file, index, label, and numbers of the drawing, which are not used here. */
#ifndef LRNN_TASKS_DATA_PATHFINDER_FILES_H
#define LRNN_TASKS_DATA_PATHFINDER_FILES_H

#include "tasks/data/image_files.h"

#define PATHFINDER_NAME 120 /* bytes of a folder's or a file's name, terminator included */

/* A line of a list. */
struct pathfinder_line {
    char folder[PATHFINDER_NAME], file[PATHFINDER_NAME];
    int label;
};

/* Reads the next line of a list in memory; *at moves past it. `line`, from 1, is for messages. ST_DATA: the expected
 * and the found text. Names cannot leave the folder. */
enum status pathfinder_list_next(const char **at, const char *end, const char *name, int64_t line,
                                 struct pathfinder_line *out, struct error *e);

/* Hands on all images of a folder, its lists in ascending order. ST_DATA names file, line and the fault. */
enum status pathfinder_read(const char *folder, struct image_sink *sink, struct read_count *count, struct error *e);

#endif
