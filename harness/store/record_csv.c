/* record_csv.c - exports of the run records (runs.csv, curves.csv, evals.csv) and the log of speed, perf.csv. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/option.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/record.h"
#include "harness/store/record_table.h"

static void print_runs(FILE *f, const struct record_set *set) {
    table_csv_header(&runs_table, f);
    for (int i = 0; i < set->n; i++) table_csv_row(&runs_table, &set->list[i].run, f);
}

static void print_curves(FILE *f, const struct record_set *set) {
    table_csv_header(&curves_table, f);
    for (int i = 0; i < set->n; i++) {
        const struct run_record *r = &set->list[i];
        for (int64_t k = 0; k < r->n_curve; k++) {
            struct curve_row row = {.point = r->curve[k], .schema = RECORD_SCHEMA, .ppl = exp(r->curve[k].loss)};
            memcpy(row.run_id, r->run.run_id, sizeof row.run_id);
            table_csv_row(&curves_table, &row, f);
        }
    }
}

static void print_evals(FILE *f, const struct record_set *set) {
    table_csv_header(&evals_table, f);
    for (int i = 0; i < set->n; i++) {
        const struct run_record *r = &set->list[i];
        for (int64_t k = 0; k < r->n_evals; k++) {
            struct eval_row row = {.point = r->evals[k], .schema = RECORD_SCHEMA};
            memcpy(row.run_id, r->run.run_id, sizeof row.run_id);
            table_csv_row(&evals_table, &row, f);
        }
    }
}

static enum status export_one(const struct record_set *set, const char *out, const char *name,
                              void (*print)(FILE *, const struct record_set *), struct error *e) {
    char path[PATH_BYTES], *text = NULL;
    size_t size = 0;
    TRY(path_format(path, sizeof path, e, "%s/%s", out, name));
    FILE *f = open_memstream(&text, &size);
    if (!f) return fail(e, ST_FAIL, "no memory to write %s", path);
    print(f, set);
    bool whole = !ferror(f);
    whole = fclose(f) == 0 && whole;
    enum status status =
        whole ? write_file_atomic(path, text, size, e) : fail(e, ST_FAIL, "no memory to write %s", path);
    free(text);
    return status;
}

enum status records_export_csv(const struct record_set *set, const char *out, struct error *e) {
    TRY(make_folder(out, e));
    TRY(export_one(set, out, "runs.csv", print_runs, e));
    TRY(export_one(set, out, "curves.csv", print_curves, e));
    return export_one(set, out, "evals.csv", print_evals, e);
}

/* --- tables that grow by a row -------------------------------------------------------------------------------------- */

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
    if (!f) return fail(e, ST_FAIL, "no memory to write %s", path);
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

static enum status append_row(const struct table *table, const void *object, const char *out, struct error *e) {
    char path[PATH_BYTES];
    TRY(make_folder(out, e));
    TRY(path_format(path, sizeof path, e, "%s/%s.csv", out, table->name));
    int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return fail(e, ST_FAIL, "cannot write %s: %s", path, strerror(errno));
    enum status status = append_locked(fd, path, table, object, e);
    close(fd); /* releases the lock */
    return status;
}

enum status perf_append(const char *out, const struct perf_row *row, struct error *e) {
    struct perf_line line = {.row = *row, .schema = RECORD_SCHEMA};
    return append_row(&perf_table, &line, out, e);
}

static void cell_text(const struct csv_table *t, int i, const char *column, char *text, size_t size) {
    snprintf(text, size, "%s", csv_text_plain(csv_cell(t, i, column)));
}

static double cell_real(const struct csv_table *t, int i, const char *column) {
    double value;
    return parse_double(csv_cell(t, i, column), &value) ? value : NAN;
}

static int64_t cell_int(const struct csv_table *t, int i, const char *column) {
    int64_t value;
    return parse_int64(csv_cell(t, i, column), &value) ? value : -1;
}

static void perf_from_csv(const struct csv_table *t, int i, struct perf_row *row) {
    *row = (struct perf_row){0};
    cell_text(t, i, "sitting", row->sitting, sizeof row->sitting);
    cell_text(t, i, "bench", row->bench, sizeof row->bench);
    cell_text(t, i, "shape", row->shape, sizeof row->shape);
    cell_text(t, i, "dtype", row->dtype, sizeof row->dtype);
    cell_text(t, i, "pass", row->pass, sizeof row->pass);
    cell_text(t, i, "commit", row->commit, sizeof row->commit);
    cell_text(t, i, "build_id", row->build_id, sizeof row->build_id);
    cell_text(t, i, "machine_id", row->machine_id, sizeof row->machine_id);
    cell_text(t, i, "started", row->started, sizeof row->started);
    cell_text(t, i, "cell_id", row->cell_id, sizeof row->cell_id);
    row->samples = cell_int(t, i, "samples");
    row->threads = cell_int(t, i, "threads");
    row->time_ns_med = cell_real(t, i, "time_ns");
    row->time_ns_mad = cell_real(t, i, "time_ns_mad");
    row->time_ns_p95 = cell_real(t, i, "time_ns_p95");
    row->tok_per_s = cell_real(t, i, "tok_per_s");
}

bool perf_latest(const char *out, const char *cell_id, struct perf_row *row) {
    char path[PATH_BYTES];
    struct csv_table t;
    if (path_format(path, sizeof path, NULL, "%s/perf.csv", out) != ST_OK || csv_read(&t, path, NULL) != ST_OK)
        return false;
    int found = -1;
    for (int i = 0; i < t.rows; i++)
        if (strcmp(csv_cell(&t, i, "cell_id"), cell_id) == 0) found = i;
    if (found >= 0) perf_from_csv(&t, found, row);
    csv_free(&t);
    return found >= 0;
}

enum status machines_export(const char *out, const struct machine *m, struct error *e) {
    char path[PATH_BYTES];
    struct csv_table t;
    bool known = false;
    TRY(path_format(path, sizeof path, e, "%s/machines.csv", out));
    if (csv_read(&t, path, NULL) == ST_OK) {
        for (int i = 0; i < t.rows && !known; i++)
            known = strcmp(csv_cell(&t, i, "machine_id"), m->id) == 0 &&
                    strcmp(csv_cell(&t, i, "env_epoch"), m->env_epoch) == 0;
        csv_free(&t);
    }
    if (known) return ST_OK;
    struct machine_row row = {.machine = *m};
    time_now_text(row.first_seen, sizeof row.first_seen);
    return append_row(&machines_table, &row, out, e);
}
