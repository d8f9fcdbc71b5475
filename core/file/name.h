/* name.h - names of files: unused names for temporary files, and names that a loss of power does not undo. */
#ifndef LRNN_CORE_FILE_NAME_H
#define LRNN_CORE_FILE_NAME_H

#include <stddef.h>

#include "core/status.h"

/* Gives the folder part of a path, or "." if it has none. */
void path_folder(const char *path, char *folder, size_t size);

/* Makes earlier link, rename and unlink calls in the folder of `path` durable. ST_FAIL, with folder and reason. */
enum status folder_sync(const char *path, struct error *e);

/* Creates a file in the folder of `path` with an unused name, .FILE.*.tmp, and opens it for writing. Stores the name in
 * `temporary`. Returns -1 with errno after a failure. */
int temporary_open(const char *path, char *temporary, size_t size);

#endif
