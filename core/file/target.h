/* target.h - files that are replaced by a rename. */
#ifndef LRNN_CORE_FILE_TARGET_H
#define LRNN_CORE_FILE_TARGET_H

#include "core/status.h"

/* A rename puts a file in the place of whatever has the name: of a device, a pipe or a link as well, which would be
 * gone. ST_USAGE: `path` is one of these. (A folder is not replaced: the rename itself refuses it.) */
enum status file_target_check(const char *path, struct error *e);

#endif
