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

#include "core/file/name.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/own_file.h"

/* The bytes of the file's whole lines. A writer that was killed, or a disk that was full, may have left a part of one
 * behind them; no cell of these tables holds a line feed. -1 with errno. */
static off_t whole_lines(int fd, off_t size) {
    for (char last; size > 0; size--) {
        ssize_t n = pread(fd, &last, 1, size - 1);
        if (n < 0) return -1;
        if (n == 1 && last == '\n') break;
    }
    return size;
}

/* Whether the file's header is the table's, or the beginning of it: "" is, of a file that is to get one. */
static bool has_our_header(int fd, const struct table *table) {
    char *ours = NULL;
    size_t bytes = 0;
    FILE *f = open_memstream(&ours, &bytes);
    if (!f) return true;
    table_csv_header(table, f);
    fclose(f);
    char *theirs = calloc(1, bytes + 1);
    ssize_t n = theirs ? pread(fd, theirs, bytes, 0) : 0;
    bool same = !theirs || !ours || (n >= 0 && memcmp(ours, theirs, (size_t)n) == 0);
    free(theirs);
    free(ours);
    return same;
}

/* A program must not take columns out of a file that a later one wrote: of a later schema, or of its own with columns
 * that came since. */
static enum status check_convertible(const struct csv_table *t, const struct table *table, const char *path,
                                     struct error *e) {
    bool versioned = table_field(table, "schema") != NULL, own = !versioned;
    for (int i = 0; i < t->rows && versioned; i++) {
        int64_t schema = csv_cell_int(t, i, "schema");
        own = own || schema == RECORD_SCHEMA;
        if (schema >= 1 && schema <= RECORD_SCHEMA) continue;
        return fail(e, ST_DATA,
                    "%s, row %d: is of schema '%.20s'; this program writes up to %d: choose another output folder",
                    path, i + 1, csv_cell(t, i, "schema"), RECORD_SCHEMA);
    }
    for (int c = 0; c < t->columns && own; c++)
        if (!table_field(table, t->header[c]))
            return fail(
                e, ST_DATA,
                "%s has a column '%.60s', which this program does not know: a later one wrote it; choose another "
                "output folder",
                path, t->header[c]);
    return ST_OK;
}

/* Writes the file anew with the table's columns: what an earlier schema called the same keeps its value, what it did
 * not have is empty. */
static enum status convert(const char *path, const struct table *table, struct error *e) {
    struct csv_table t;
    char *text = NULL;
    size_t size = 0;
    TRY(csv_read(&t, path, e));
    enum status status = check_convertible(&t, table, path, e);
    if (status != ST_OK) {
        csv_free(&t);
        return status;
    }
    FILE *f = open_memstream(&text, &size);
    if (f) table_csv_header(table, f);
    for (int i = 0; f && i < t.rows; i++)
        for (const struct field *field = table->fields; field->name; field++) {
            csv_cell_again(f, csv_cell(&t, i, field->name));
            fputc(field[1].name ? ',' : '\n', f);
        }
    csv_free(&t);
    bool whole = f && !ferror(f);
    whole = f && fclose(f) == 0 && whole;
    status = whole ? write_file_atomic(path, text, size, e) : fail(e, ST_MEMORY, "no memory to write %s", path);
    free(text);
    return status;
}

/* Opens the file that has the name once it is locked; another process may have put a new one there before that. -1 with
 * errno. */
static int open_locked(const char *path, struct stat *locked) {
    for (;;) {
        struct stat named;
        int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0) return -1;
        int held;
        while ((held = flock(fd, LOCK_EX)) != 0 && errno == EINTR) continue; /* a signal says stop, not give up */
        bool known = held == 0 && fstat(fd, locked) == 0;
        int reason = errno;
        bool same =
            known && stat(path, &named) == 0 && locked->st_ino == named.st_ino && locked->st_dev == named.st_dev;
        if (same) return fd;
        close(fd); /* releases the lock */
        errno = reason;
        if (!known) return -1;
    }
}

/* Appends one row behind the whole lines, under a lock, in one write; what could not be written whole is taken back. */
static enum status append_locked(int fd, off_t bytes, const char *path, const struct table *table, const void *object,
                                 struct error *e) {
    char *text = NULL;
    size_t size = 0;
    off_t end = whole_lines(fd, bytes);
    if (end < 0 || (end < bytes && ftruncate(fd, end) != 0))
        return fail(e, ST_FAIL, "cannot take a torn row off %s: %s", path, strerror(errno));
    FILE *f = open_memstream(&text, &size);
    if (!f) return fail(e, ST_MEMORY, "no memory to write %s", path);
    if (end == 0) table_csv_header(table, f);
    table_csv_row(table, object, f);
    bool whole = !ferror(f);
    whole = fclose(f) == 0 && whole;
    ssize_t n = whole ? write(fd, text, size) : -1;
    int reason = n < 0 ? errno : ENOSPC; /* fewer bytes than asked for: the disk is full */
    free(text);
    if (n == (ssize_t)size && fsync(fd) == 0) return ST_OK;
    if (n == (ssize_t)size) reason = errno;
    if (ftruncate(fd, end) != 0) reason = errno;
    return fail(e, ST_FAIL, "cannot write %s: %s", path, strerror(reason));
}

enum status table_append(const struct table *table, const void *object, const char *out, struct error *e) {
    char path[PATH_BYTES];
    TRY(make_folder(out, e));
    TRY(path_format(path, sizeof path, e, "%s/%s.csv", out, table->name));
    for (;;) {
        struct stat info;
        int fd = open_locked(path, &info);
        if (fd < 0) return fail(e, ST_FAIL, "cannot write %s: %s", path, strerror(errno));
        bool ours = has_our_header(fd, table);
        enum status status = ours ? append_locked(fd, info.st_size, path, table, object, e) : convert(path, table, e);
        bool first = ours && status == ST_OK && info.st_size == 0; /* the file may be new */
        if (first) status = folder_sync(path, e);
        close(fd); /* releases the lock */
        if (ours || status != ST_OK) return status;
    }
}

enum status table_check(const struct table *table, const char *out, struct error *e) {
    char path[PATH_BYTES];
    struct csv_table t;
    TRY(path_format(path, sizeof path, e, "%s/%s.csv", out, table->name));
    if (access(path, F_OK) != 0) return ST_OK;
    TRY(own_file_check(path, e));
    TRY(csv_read(&t, path, e));
    enum status status = check_convertible(&t, table, path, e);
    csv_free(&t);
    return status;
}

enum status table_merge(const struct table *table, const char *from, const char *out, void *row,
                        enum status (*add)(const char *out, const void *row, struct error *e), struct error *e) {
    char path[PATH_BYTES];
    struct csv_table t;
    enum status status = ST_OK;
    TRY(path_format(path, sizeof path, e, "%s/%s.csv", from, table->name));
    if (access(path, F_OK) != 0) return ST_OK;
    TRY(csv_read(&t, path, e));
    for (int i = 0; i < t.rows && status == ST_OK; i++) {
        table_from_csv(table, &t, i, row);
        status = add(out, row, e);
    }
    csv_free(&t);
    return status;
}
