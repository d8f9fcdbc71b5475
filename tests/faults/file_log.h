/* file_log.h - the log that faults.so writes of what a program does to files: entries one after the other, each a
 * head, two paths with their terminators, and bytes. */
#ifndef LRNN_TESTS_FAULTS_FILE_LOG_H
#define LRNN_TESTS_FAULTS_FILE_LOG_H

#include <stdint.h>

enum file_op {
    FILE_CREATED = 'c',   /* opened for writing, there before or not */
    FILE_TRUNCATED = 't', /* the bytes are what is left */
    FILE_SYNCED = 's',    /* the bytes are what the file holds; of a folder, its entries are durable */
    FILE_LINKED = 'l',    /* the file `path`, which holds the bytes, is also called `other` */
    FILE_RENAMED = 'r',   /* the file `path`, which holds the bytes, was called `other` */
    FILE_REMOVED = 'u',
    FILE_FOLDER = 'm'
};

struct file_log_entry {
    char op;              /* enum file_op */
    uint32_t path, other; /* bytes of the paths, terminators included */
    uint32_t bytes;       /* after them */
};

#endif
