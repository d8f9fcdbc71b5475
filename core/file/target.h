/* target.h - files that are replaced by a rename. */
#ifndef LRNN_CORE_FILE_TARGET_H
#define LRNN_CORE_FILE_TARGET_H

#include "core/status.h"

/* ST_USAGE if `path` is a device, a pipe or a link, because a rename to it would replace it by a file. (The rename
 * itself refuses a folder.) */
enum status file_target_check(const char *path, struct error *e);

#endif
