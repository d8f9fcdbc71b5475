/* target.h - files that are replaced by a rename. */
#ifndef LRNN_CORE_FILE_TARGET_H
#define LRNN_CORE_FILE_TARGET_H

#include "core/status.h"

/* ST_USAGE: `path` is a device, a pipe or a link, which a rename to it would replace by a file. (For a folder, the
 * rename itself fails.) */
enum status file_target_check(const char *path, struct error *e);

#endif
