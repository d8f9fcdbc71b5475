/* name.h - names of files: unused names for temporary files, and names made durable against a loss of power. */
#ifndef LRNN_CORE_FILE_NAME_H
#define LRNN_CORE_FILE_NAME_H

#include <stddef.h>

#include "core/status.h"

/* The folder part of a path, "." if it has none. */
void path_folder(const char *path, char *folder, size_t size);

/* Makes earlier link, rename and unlink calls in the folder of `path` durable. ST_FAIL with folder and reason. */
enum status folder_sync(const char *path, struct error *e);

/* Creates a file with an unused name, .FILE.*.tmp, in the folder of `path`, opens it for writing, and stores its name
 * in `temporary`. -1 with errno after a failure. */
int temporary_open(const char *path, char *temporary, size_t size);

#endif
