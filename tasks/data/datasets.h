/* datasets.h - the released data that tasks read: their files, where to fetch them, and their import into the cache
 * folder. The program opens no socket: it names the files, and people fetch them. */
#ifndef LRNN_TASKS_DATA_DATASETS_H
#define LRNN_TASKS_DATA_DATASETS_H

#include "tasks/data/image_files.h"
#include "tasks/data/image_set.h"
#include "tasks/data/entry_set.h"

#define DATASET_FILES 8

/* A released file; bytes is 0 and sha256 NULL if they are not published. */
struct dataset_file {
    const char *name; /* ".gz" may be missing or added */
    const char *url;
    int64_t bytes;
    const char *sha256; /* of the file as it is released */
    bool test;          /* holds test images */
};

#define DATASET_TEXT 200
#define ARCHIVE_NAME 64 /* bytes of "uea:NAME" at most */

struct import_log;
struct dataset {
    const char *name, *summary, *tasks;       /* tasks: those that read it */
    int64_t height, width, channels, labels;  /* of images; for entries, the numbers that their kind needs */
    int64_t examples;                         /* of the released files, for training and test together */
    struct dataset_file files[DATASET_FILES]; /* ends with name == NULL */
    const char *kind;                         /* of entries (tasks/data/entry_set.h); NULL: images */
    /* Adds all examples in the folder, images to the one pack or entries to the other; the other pack is NULL. Each
     * file that it reads goes to `log`. */
    enum status (*import)(const struct dataset *d, const char *folder, struct image_pack *images,
                          struct entry_pack *entries, struct import_log *log, struct error *e);
};

/* The findings of an import. */
struct import_log {
    void (*read)(struct import_log *log, const char *path, int64_t bytes, const char sha256[SHA256_HEX],
                 const struct dataset_file *released);
    int (*stop)(void);       /* a signal that asks to stop, else 0; or NULL */
    struct read_count count; /* of all files; `read` gets each file whose hash is published */
    int64_t examples;        /* that were read */
    char folder[CACHE_PATH]; /* the folder that was read, if it is not the named folder; else "" */
};

const struct dataset *const *dataset_list(void); /* NULL-terminated */

/* Finds a set by its name. "uea:BasicMotions" and "tud:ENZYMES" name any set of these archives. ST_USAGE: no such set,
 * with the nearest name. */
enum status dataset_find(const char *name, const struct dataset **d, struct error *e);

/* Path of its file in the cache folder. ST_USAGE: there is no such folder. */
enum status dataset_path(const struct dataset *d, char path[CACHE_PATH], struct error *e);

/* Imports the released files in `folder` into the cache folder: all of them, or nothing. Without `keep` it only reads
 * and checks them. 128 plus a signal: it was asked to stop. ST_DATA names the file, the place in it, the expected and
 * the found value. */
enum status dataset_import(const struct dataset *d, const char *folder, bool keep, struct import_log *log,
                           struct error *e);

/* Whether a run of the label's task on so many examples in all splits may have used the whole released files: nearly as
 * many, because tasks leave out duplicates. True for a task that reads no files. */
bool dataset_is_whole(const char *task, int64_t examples);

/* Describes the imported set in words, after reading all of it. ST_DATA: nothing was imported, or it is damaged. */
enum status dataset_describe(const struct dataset *d, char text[DATASET_TEXT], struct error *e);

/* Opens the imported set of a task, in `file` or, if that is empty, in the cache folder. ST_DATA: it was not imported
 * (the message says how), or the file holds another data set. */
enum status dataset_open(const char *name, const char *task, const char *file, struct image_set *set, struct error *e);
enum status dataset_open_entries(const char *name, const char *task, const char *file, struct entry_set *set,
                                 struct error *e);

#endif
