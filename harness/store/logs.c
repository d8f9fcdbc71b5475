/* logs.c - see logs.h. */
#include "harness/store/logs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file/name.h"
#include "harness/store/clock.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"

/* --- a file that several processes append to ---------------------------------------------------------------------- */

/* Returns the bytes of the file's whole lines, because a killed writer or a full disk may have left a partial line. No
 * cell of these tables contains a line feed. -1 with errno. */
static off_t whole_lines(int fd, off_t size) {
    for (char last; size > 0; size--) {
        ssize_t n = pread(fd, &last, 1, size - 1);
        if (n < 0) return -1;
        if (n == 1 && last == '\n') break;
    }
    return size;
}

/* Whether the file begins with the table's header or with a part of it. True for an empty file. */
static bool has_our_header(int fd, const struct table *table) {
    struct printed ours;
    if (printed_begin(&ours, table->name, NULL) != ST_OK) return true;
    table_csv_header(table, ours.f);
    if (printed_end(&ours, ST_OK, table->name, NULL) != ST_OK) return true;
    char *theirs = calloc(1, ours.size + 1);
    ssize_t n = theirs ? pread(fd, theirs, ours.size, 0) : 0;
    bool same = !theirs || (n >= 0 && memcmp(ours.text, theirs, (size_t)n) == 0);
    free(theirs);
    free(ours.text);
    return same;
}

/* Refuses a file with an unknown column or with rows of another schema, because rewriting it would lose or misread
 * data. */
static enum status check_convertible(const struct csv_table *t, const struct table *table, const char *path,
                                     struct error *e) {
    bool versioned = table_field(table, "schema") != NULL;
    for (int i = 0; i < t->rows && versioned; i++)
        if (csv_cell_int(t, i, "schema") != RECORD_SCHEMA)
            return fail(e, ST_DATA,
                        "%s, row %d: is of schema '%.20s'; this program writes schema %d: choose another output folder",
                        path, i + 1, csv_cell(t, i, "schema"), RECORD_SCHEMA);
    for (int c = 0; c < t->columns; c++)
        if (!table_field(table, t->header[c]))
            return fail(e, ST_DATA,
                        "%s has a column '%.60s', which this program does not know: a later one wrote it; choose "
                        "another output folder",
                        path, t->header[c]);
    return ST_OK;
}

/* Rewrites a file that lacks columns with all of the table's columns. The new cells are empty. */
static enum status convert(const char *path, const struct table *table, struct error *e) {
    struct csv_table t;
    struct printed longer;
    TRY(csv_read(&t, path, e));
    enum status status = check_convertible(&t, table, path, e);
    if (status == ST_OK) status = printed_begin(&longer, path, e);
    if (status == ST_OK) {
        table_csv_header(table, longer.f);
        for (int i = 0; i < t.rows; i++)
            for (const struct field *field = table->fields; field->name; field++) {
                csv_cell_again(longer.f, csv_cell(&t, i, field->name));
                fputc(field[1].name ? ',' : '\n', longer.f);
            }
        status = printed_write(&longer, ST_OK, path, e);
    }
    csv_free(&t);
    return status;
}

/* Opens and locks the file. It tries again if another process replaced the file before the lock was got. -1 with
 * errno. */
static int open_locked(const char *path, struct stat *locked) {
    for (;;) {
        struct stat named;
        int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        if (fd < 0) return -1;
        int held;
        while ((held = flock(fd, LOCK_EX)) != 0 && errno == EINTR) continue; /* a signal must not lose the row */
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

/* Writes bytes at the end of a locked file in one write, and makes them durable; what could not be written whole is
 * taken back. */
static enum status write_whole(int fd, off_t end, const char *text, size_t size, const char *path, struct error *e) {
    ssize_t n = write(fd, text, size);
    bool written = n == (ssize_t)size;
    int reason = n < 0 ? errno : ENOSPC; /* fewer bytes than asked for: the disk is full */
    if (written && fsync(fd) == 0) return ST_OK;
    if (written) reason = errno;
    if (ftruncate(fd, end) != 0) reason = errno;
    return fail(e, ST_FAIL, "cannot write %s: %s", path, strerror(reason));
}

/* Appends one row after the whole lines. The caller has the lock. */
static enum status append_locked(int fd, off_t bytes, const char *path, const struct table *table, const void *object,
                                 struct error *e) {
    struct printed row;
    off_t end = whole_lines(fd, bytes);
    if (end < 0 || (end < bytes && ftruncate(fd, end) != 0))
        return fail(e, ST_FAIL, "cannot take a torn row off %s: %s", path, strerror(errno));
    TRY(printed_begin(&row, path, e));
    if (end == 0) table_csv_header(table, row.f);
    table_csv_row(table, object, row.f);
    TRY(printed_end(&row, ST_OK, path, e));
    enum status status = write_whole(fd, end, row.text, row.size, path, e);
    free(row.text);
    return status;
}

enum status line_append(const char *path, const char *line, struct error *e) {
    char folder[PATH_BYTES], last = '\n';
    struct stat info;
    struct printed text;
    path_folder(path, folder, sizeof folder);
    TRY(make_folder(folder, e));
    int fd = open_locked(path, &info);
    if (fd < 0) return fail(e, ST_FAIL, "cannot write %s: %s", path, strerror(errno));
    bool known = info.st_size == 0 || pread(fd, &last, 1, info.st_size - 1) == 1;
    enum status status =
        known ? printed_begin(&text, path, e) : fail(e, ST_FAIL, "cannot read %s: %s", path, strerror(errno));
    if (status == ST_OK) {
        fprintf(text.f, "%s%s\n", last == '\n' ? "" : "\n", line);
        status = printed_end(&text, ST_OK, path, e);
        if (status == ST_OK) {
            status = write_whole(fd, info.st_size, text.text, text.size, path, e);
            free(text.text);
        }
    }
    if (status == ST_OK && info.st_size == 0) status = folder_sync(path, e);
    close(fd); /* releases the lock */
    return status;
}

static enum status table_append(const struct table *table, const void *object, const char *out, struct error *e) {
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

/* Reads the rows of a folder's table. If there is no such file, *t has no rows. */
static enum status table_open(const struct table *table, const char *out, bool ours, struct csv_table *t,
                              struct error *e) {
    char path[PATH_BYTES];
    *t = (struct csv_table){0};
    TRY(path_format(path, sizeof path, e, "%s/%s.csv", out, table->name));
    if (access(path, F_OK) != 0) return ST_OK;
    if (ours) TRY(own_file_check(path, e));
    TRY(csv_read(t, path, e));
    enum status status = ours ? check_convertible(t, table, path, e) : ST_OK;
    if (status != ST_OK) csv_free(t);
    return status;
}

/* --- perf.csv ----------------------------------------------------------------------------------------------------- */

enum status perf_append(const char *out, const struct perf_row *row, struct error *e) {
    return table_append(&perf_table, row, out, e);
}

bool perf_is_alike(const struct perf_row *a, const struct perf_row *b) {
    bool known = *a->source_id || *b->source_id;
    bool sources = known ? !strcmp(a->source_id, b->source_id) : !strcmp(a->commit, b->commit);
    bool system = !*a->env_epoch || !*b->env_epoch || !strcmp(a->env_epoch, b->env_epoch);
    return sources && system && !strcmp(a->build_id, b->build_id) && !strcmp(a->compiler, b->compiler) &&
           !strcmp(a->machine_id, b->machine_id) && a->threads == b->threads;
}

bool perf_replaces(const struct perf_row *row, const struct perf_row *earlier) {
    return earlier->quiet != 1 || row->quiet == 1 || !perf_is_alike(earlier, row);
}

bool perf_latest(const char *out, const char *cell_id, const struct perf_row *like, struct perf_row *row) {
    struct csv_table t;
    bool found = false;
    if (table_open(&perf_table, out, false, &t, NULL) != ST_OK) return false;
    for (int i = 0; i < t.rows; i++) {
        struct perf_row next;
        if (strcmp(csv_cell(&t, i, "cell_id"), cell_id) != 0) continue;
        table_from_csv(&perf_table, &t, i, &next);
        if (like && !perf_is_alike(&next, like)) continue;
        if (found && !perf_replaces(&next, row)) continue;
        *row = next;
        found = true;
    }
    csv_free(&t);
    return found;
}

/* --- limits.csv --------------------------------------------------------------------------------------------------- */

enum status limit_append(const char *out, const struct limit_row *row, struct error *e) {
    return table_append(&limits_table, row, out, e);
}

/* Whether the row makes sense; people may have edited the file. */
static bool is_sound(const struct limit_row *row) {
    return row->seconds > 0 && row->steps >= 1;
}

bool limit_find(const char *out, const char *run_id, double seconds, struct limit_row *row) {
    struct csv_table t;
    bool found = false;
    if (table_open(&limits_table, out, false, &t, NULL) != ST_OK) return false;
    for (int i = 0; i < t.rows && !found; i++) {
        table_from_csv(&limits_table, &t, i, row);
        found = strcmp(row->run_id, run_id) == 0 && row->seconds == seconds && is_sound(row);
    }
    csv_free(&t);
    return found;
}

/* --- machines.csv ------------------------------------------------------------------------------------------------- */

bool machines_have(const char *out, const char *machine_id, const char *env_epoch) {
    struct csv_table t;
    bool known = false;
    if (table_open(&machines_table, out, false, &t, NULL) != ST_OK) return false;
    for (int i = 0; i < t.rows && !known; i++)
        known = strcmp(csv_cell(&t, i, "machine_id"), machine_id) == 0 &&
                strcmp(csv_cell(&t, i, "env_epoch"), env_epoch) == 0;
    csv_free(&t);
    return known;
}

static enum status add_machine(const char *out, const struct machine_row *row, struct error *e) {
    if (machines_have(out, row->machine.id, row->machine.env_epoch)) return ST_OK;
    return table_append(&machines_table, row, out, e);
}

enum status machines_export(const char *out, const struct machine *m, struct error *e) {
    struct machine_row row = {.machine = *m};
    time_now_text(row.first_seen, sizeof row.first_seen);
    return add_machine(out, &row, e);
}

/* --- folders ------------------------------------------------------------------------------------------------------ */

enum status logs_merge(const char *from, const char *out, struct error *e) {
    struct csv_table t;
    struct machine_row machine;
    struct limit_row limit, known;
    enum status status = ST_OK;
    TRY(table_open(&machines_table, from, false, &t, e));
    for (int i = 0; i < t.rows && status == ST_OK; i++) {
        table_from_csv(&machines_table, &t, i, &machine);
        status = add_machine(out, &machine, e);
    }
    csv_free(&t);
    TRY(status);
    TRY(table_open(&limits_table, from, false, &t, e));
    for (int i = 0; i < t.rows && status == ST_OK; i++) {
        table_from_csv(&limits_table, &t, i, &limit);
        if (is_sound(&limit) && !limit_find(out, limit.run_id, limit.seconds, &known))
            status = limit_append(out, &limit, e);
    }
    csv_free(&t);
    return status;
}

enum status logs_check(const char *out, struct error *e) {
    struct csv_table t;
    TRY(table_open(&machines_table, out, true, &t, e));
    csv_free(&t);
    TRY(table_open(&limits_table, out, true, &t, e));
    csv_free(&t);
    return ST_OK;
}
