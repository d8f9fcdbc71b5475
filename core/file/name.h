/* name.h - the names of files: new names that nobody else uses, and names that survive a loss of power. */
#ifndef LRNN_CORE_FILE_NAME_H
#define LRNN_CORE_FILE_NAME_H

#include <stddef.h>

#include "core/status.h"

/* The folder part of a path, "." if it has none. */
void path_folder(const char *path, char *folder, size_t size);

/* Makes earlier link, rename and unlink calls in the folder of `path` durable. ST_FAIL with folder and reason. */
enum status folder_sync(const char *path, struct error *e);

/* Creates a file of a name nobody else uses in the folder of `path`, .FILE.*.tmp, and opens it for writing; its name
 * goes to `temporary`. -1 with errno. */
int temporary_open(const char *path, char *temporary, size_t size);

#endif
