/* file_records.h - what tasks on imported records share: the file and its content. */
#ifndef LRNN_TASKS_DATA_FILE_RECORDS_H
#define LRNN_TASKS_DATA_FILE_RECORDS_H

#include "core/option.h"
#include "tasks/data/record_set.h"

struct file_records {
    char file[OPTION_TEXT], content[OPTION_TEXT]; /* options */
    struct record_set set;
};

#define RECORDS_ROW(NAME, OFFSET, HELP, FLAGS)                                                                         \
    { NAME, OPT_TEXT_FIELD, OFFSET, "", 0, 0, NULL, HELP, FLAGS }

/* Option rows of the struct file_records that is MEMBER of TYPE. */
#define FILE_RECORDS_OPTIONS(TYPE, MEMBER)                                                                             \
    RECORDS_ROW("file", offsetof(TYPE, MEMBER.file),                                                                   \
                "a file that `lrnn data import` has written; none: the one in the cache folder", OPT_PLACE),           \
        RECORDS_ROW("content", offsetof(TYPE, MEMBER.content),                                                         \
                    "XXH3-128 that the records have to have; found by itself, and part of what a run is", OPT_LATER)

/* Opens the data set and notes its content. ST_DATA: nothing was imported, or it has another content than asked for. */
enum status file_records_open(struct file_records *from, const char *task, const char *dataset, struct error *e);

/* How many examples a split has, and the record that one of them is. Of a set without validation records a tenth of the
 * training records is for validation, those that a permutation with seed 42 puts last: the same ones for every seed. */
int64_t file_records_count(const struct file_records *from, enum split split);
int64_t file_records_index(const struct file_records *from, enum split split, int64_t index);

#endif
