/* name.c - see name.h. */
#include "core/file/name.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void path_folder(const char *path, char *folder, size_t size) {
    const char *slash = strrchr(path, '/');
    if (!slash)
        snprintf(folder, size, ".");
    else if (slash == path)
        snprintf(folder, size, "/");
    else
        snprintf(folder, size, "%.*s", (int)(slash - path), path);
}

enum status folder_sync(const char *path, struct error *e) {
    char folder[PATH_MAX];
    path_folder(path, folder, sizeof folder);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return fail(e, ST_FAIL, "cannot open the folder %s: %s", folder, strerror(errno));
    int result = fsync(fd), reason = errno;
    close(fd);
    /* EINVAL: this file system cannot sync folders, so there is nothing to wait for. */
    if (result != 0 && reason != EINVAL)
        return fail(e, ST_FAIL, "cannot sync the folder %s: %s", folder, strerror(reason));
    return ST_OK;
}

/* Exclusive creation makes the name unique. Process id and clock only make a second try unlikely. */
int temporary_open(const char *path, char *temporary, size_t size) {
    char folder[PATH_MAX];
    path_folder(path, folder, sizeof folder);
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    for (int attempt = 0; attempt < 100; attempt++) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        int n = snprintf(temporary, size, "%s/.%.100s.%ld.%lx.%d.tmp", folder, base, (long)getpid(),
                         (unsigned long)now.tv_nsec, attempt);
        if (n < 0 || (size_t)n >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        int fd = open(temporary, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
    }
    return -1;
}
