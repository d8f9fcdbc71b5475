/* datasets.h - the released data that tasks read: which files they are, where they lie in the world, and how they are
 * imported into the cache folder. The program opens no socket: it says where files are, and people fetch them. */
#ifndef LRNN_TASKS_DATA_DATASETS_H
#define LRNN_TASKS_DATA_DATASETS_H

#include "tasks/data/image_files.h"
#include "tasks/data/image_set.h"

#define DATASET_FILES 8

/* A released file; bytes 0 and sha256 NULL where nobody has published them. */
struct dataset_file {
    const char *name; /* may also lie there without its ".gz", or with one */
    const char *url;
    int64_t bytes;
    const char *sha256; /* of the file as it is released */
    bool test;          /* holds test images */
};

struct import_log;
struct dataset {
    const char *name, *summary, *tasks; /* tasks: those that read it */
    int64_t height, width, channels, labels;
    struct dataset_file files[DATASET_FILES]; /* ends with name == NULL */
    /* Adds all images of the folder. Each file it reads goes to `log`. */
    enum status (*import)(const struct dataset *d, const char *folder, struct image_pack *pack, struct import_log *log,
                          struct error *e);
};

/* What an import has read. */
struct import_log {
    void (*read)(struct import_log *log, const char *path, int64_t bytes, const char sha256[SHA256_HEX],
                 const struct dataset_file *released);
};

const struct dataset *const *dataset_list(void); /* NULL-terminated */

/* ST_USAGE: no such set, with the nearest name. */
enum status dataset_find(const char *name, const struct dataset **d, struct error *e);

/* Imports the released files in `folder` into the cache folder: all of them, or nothing. *set says what is there now.
 * ST_DATA names the file, the byte, what is expected and what was found. */
enum status dataset_import(const struct dataset *d, const char *folder, struct import_log *log, struct image_set *set,
                           struct error *e);

/* Opens what was imported for a task. ST_DATA: nothing was, and how to import it. */
enum status dataset_open(const char *name, const char *task, const char *file, struct image_set *set, struct error *e);

#endif
