/* target.h - files that are replaced by a rename. */
#ifndef LRNN_CORE_FILE_TARGET_H
#define LRNN_CORE_FILE_TARGET_H

#include "core/status.h"

/* Refuses a path whose rename would destroy a device, a pipe or a link: a rename puts a file in the place of whatever
 * has the name. ST_USAGE: `path` is one of these. (The rename itself refuses a folder.) */
enum status file_target_check(const char *path, struct error *e);

#endif
