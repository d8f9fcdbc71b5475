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
#include "harness/store/own_file.h"

/* --- a file that several processes append to ---------------------------------------------------------------------- */

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

/* A file with a column that this program does not know, or with rows of another schema, must not be written anew: its
 * columns would go or mean something else. */
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

/* Writes a file that lacks columns anew with all of the table's; the cells that it did not have are empty. */
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

static enum status table_check(const struct table *table, const char *out, struct error *e) {
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

static enum status table_merge(const struct table *table, const char *from, const char *out, void *row,
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

/* --- perf.csv ----------------------------------------------------------------------------------------------------- */

enum status perf_append(const char *out, const struct perf_row *row, struct error *e) {
    struct perf_line line = {.row = *row, .schema = RECORD_SCHEMA};
    return table_append(&perf_table, &line, out, e);
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
    char path[PATH_BYTES];
    struct csv_table t;
    if (path_format(path, sizeof path, NULL, "%s/perf.csv", out) != ST_OK || csv_read(&t, path, NULL) != ST_OK)
        return false;
    bool found = false;
    for (int i = 0; i < t.rows; i++) {
        struct perf_line line = {0};
        if (strcmp(csv_cell(&t, i, "cell_id"), cell_id) != 0) continue;
        table_from_csv(&perf_table, &t, i, &line);
        if (like && !perf_is_alike(&line.row, like)) continue;
        if (found && !perf_replaces(&line.row, row)) continue;
        *row = line.row;
        found = true;
    }
    csv_free(&t);
    return found;
}

/* --- limits.csv --------------------------------------------------------------------------------------------------- */

enum status limit_append(const char *out, const struct limit_row *row, struct error *e) {
    struct limit_line line = {.row = *row, .schema = RECORD_SCHEMA};
    return table_append(&limits_table, &line, out, e);
}

/* A row that was edited into nonsense is none. */
static bool is_sound(const struct limit_row *row) {
    return row->seconds > 0 && row->steps >= 1;
}

bool limit_find(const char *out, const char *run_id, double seconds, struct limit_row *row) {
    char path[PATH_BYTES];
    struct csv_table t;
    bool found = false;
    if (path_format(path, sizeof path, NULL, "%s/limits.csv", out) != ST_OK || csv_read(&t, path, NULL) != ST_OK)
        return false;
    for (int i = 0; i < t.rows && !found; i++) {
        struct limit_line line;
        table_from_csv(&limits_table, &t, i, &line);
        *row = line.row;
        found = strcmp(row->run_id, run_id) == 0 && row->seconds == seconds && is_sound(row);
    }
    csv_free(&t);
    return found;
}

static enum status add_limit(const char *out, const void *object, struct error *e) {
    const struct limit_line *line = object;
    struct limit_row known;
    if (!is_sound(&line->row) || limit_find(out, line->row.run_id, line->row.seconds, &known)) return ST_OK;
    return limit_append(out, &line->row, e);
}

/* --- machines.csv ------------------------------------------------------------------------------------------------- */

bool machines_have(const char *out, const char *machine_id, const char *env_epoch) {
    char path[PATH_BYTES];
    struct csv_table t;
    bool known = false;
    if (path_format(path, sizeof path, NULL, "%s/machines.csv", out) != ST_OK || csv_read(&t, path, NULL) != ST_OK)
        return false;
    for (int i = 0; i < t.rows && !known; i++)
        known = strcmp(csv_cell(&t, i, "machine_id"), machine_id) == 0 &&
                strcmp(csv_cell(&t, i, "env_epoch"), env_epoch) == 0;
    csv_free(&t);
    return known;
}

static enum status add_machine(const char *out, const void *object, struct error *e) {
    const struct machine_row *row = object;
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
    struct machine_row machine = {0};
    struct limit_line limit = {0};
    TRY(table_merge(&machines_table, from, out, &machine, add_machine, e));
    return table_merge(&limits_table, from, out, &limit, add_limit, e);
}

enum status logs_check(const char *out, struct error *e) {
    TRY(table_check(&machines_table, out, e));
    return table_check(&limits_table, out, e);
}
