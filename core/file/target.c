/* target.c - see target.h. */
#include "core/file/target.h"

#include <sys/stat.h>

static const char *kind_of(mode_t mode) {
    if (S_ISLNK(mode)) return "a symbolic link";
    if (S_ISFIFO(mode)) return "a pipe";
    return "a device or a socket";
}

enum status file_target_check(const char *path, struct error *e) {
    struct stat there;
    if (lstat(path, &there) != 0 || S_ISREG(there.st_mode) || S_ISDIR(there.st_mode)) return ST_OK;
    return fail(e, ST_USAGE, "%s is %s, which the written file would replace: name a file", path,
                kind_of(there.st_mode));
}
