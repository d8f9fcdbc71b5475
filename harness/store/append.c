/* append.c - see append.h. */
#include "harness/store/append.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/store/files.h"

/* Whether the file ends inside a row: a writer was killed, or the disk was full. */
static bool is_torn(int fd, off_t size) {
    char last = '\n';
    return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

/* Appends one row under a lock, in one write; what could not be written whole is taken back. */
static enum status append_locked(int fd, const char *path, const struct table *table, const void *object,
                                 struct error *e) {
    struct stat info;
    if (flock(fd, LOCK_EX) != 0 || fstat(fd, &info) != 0)
        return fail(e, ST_FAIL, "cannot lock %s: %s", path, strerror(errno));
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) return fail(e, ST_MEMORY, "no memory to write %s", path);
    if (info.st_size == 0) table_csv_header(table, f);
    if (is_torn(fd, info.st_size)) fputc('\n', f);
    table_csv_row(table, object, f);
    bool whole = !ferror(f);
    whole = fclose(f) == 0 && whole;
    ssize_t n = whole ? write(fd, text, size) : -1;
    int reason = n < 0 ? errno : ENOSPC; /* fewer bytes than asked for: the disk is full */
    free(text);
    if (n == (ssize_t)size && fsync(fd) == 0) return ST_OK;
    if (n == (ssize_t)size) reason = errno;
    if (ftruncate(fd, info.st_size) != 0) reason = errno;
    return fail(e, ST_FAIL, "cannot write %s: %s", path, strerror(reason));
}

enum status table_append(const struct table *table, const void *object, const char *out, struct error *e) {
    char path[PATH_BYTES];
    TRY(make_folder(out, e));
    TRY(path_format(path, sizeof path, e, "%s/%s.csv", out, table->name));
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return fail(e, ST_FAIL, "cannot write %s: %s", path, strerror(errno));
    enum status status = append_locked(fd, path, table, object, e);
    close(fd); /* releases the lock */
    return status;
}
