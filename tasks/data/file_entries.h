/* file_entries.h - options shared by tasks on imported entries: the file and its content. */
#ifndef LRNN_TASKS_DATA_FILE_ENTRIES_H
#define LRNN_TASKS_DATA_FILE_ENTRIES_H

#include "core/option.h"
#include "tasks/data/entry_set.h"

struct file_entries {
    char file[OPTION_TEXT], content[OPTION_TEXT]; /* options */
    struct entry_set set;
};

#define ENTRIES_ROW(NAME, OFFSET, HELP, FLAGS)                                                                         \
    { NAME, OPT_TEXT_FIELD, OFFSET, "", 0, 0, NULL, HELP, FLAGS }

/* Option rows of the struct file_entries that is MEMBER of TYPE. */
#define FILE_ENTRIES_OPTIONS(TYPE, MEMBER)                                                                             \
    ENTRIES_ROW("file", offsetof(TYPE, MEMBER.file),                                                                   \
                "file written by `lrnn data import`; none: the one in the cache folder", OPT_HERE),                    \
        ENTRIES_ROW("content", offsetof(TYPE, MEMBER.content),                                                         \
                    "XXH3-128 of the entries; found by itself, and part of a run's identity", OPT_FOUND)

/* Opens the data set and notes its content. ST_DATA: nothing was imported, or its content is not the one asked for. */
enum status file_entries_open(struct file_entries *from, const char *task, const char *dataset, struct error *e);

/* Number of examples of a split, and the entry of an example. A set without validation entries gives a tenth of its
 * training entries to validation: the last ones of a permutation with seed 42, for every seed of a run. */
int64_t file_entries_count(const struct file_entries *from, enum split split);
int64_t file_entries_index(const struct file_entries *from, enum split split, int64_t index);

#endif
