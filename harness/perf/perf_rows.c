/* perf_rows.c - see perf_rows.h. */
#include "harness/perf/perf_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/store/files.h"

static bool is_same_thing(const struct perf_row *a, const struct perf_row *b) {
    return !strcmp(a->bench, b->bench) && !strcmp(a->shape, b->shape) && !strcmp(a->dtype, b->dtype) &&
           !strcmp(a->pass, b->pass) && !strcmp(a->device, b->device) && a->threads == b->threads;
}

const struct perf_row *perf_rows_find(const struct perf_rows *rows, const struct perf_row *like) {
    for (int i = 0; i < rows->n; i++)
        if (is_same_thing(&rows->list[i], like)) return &rows->list[i];
    return NULL;
}

static enum status collect(struct perf_rows *rows, const struct csv_table *t, struct error *e) {
    static const char *const needed[] = {"bench", "shape", "pass", "time_ns"};
    for (size_t k = 0; k < sizeof needed / sizeof *needed; k++) {
        bool there = false;
        for (int c = 0; c < t->columns; c++) there = there || !strcmp(t->header[c], needed[k]);
        if (!there)
            return fail(e, ST_DATA, "%s has no column %s; expected a perf.csv, as `lrnn perf op --to FOLDER` writes it",
                        rows->path, needed[k]);
    }
    rows->list = calloc((size_t)t->rows + 1, sizeof *rows->list);
    if (!rows->list) return fail(e, ST_MEMORY, "no memory for the rows of %s", rows->path);
    for (int i = 0; i < t->rows; i++) {
        struct perf_row *row = &rows->list[rows->n];
        table_from_csv(&perf_table, t, i, row);
        if (!(row->time_ns > 0)) continue;
        int k = 0;
        while (!is_same_thing(&rows->list[k], row)) k++; /* stops at the row itself */
        if (k == rows->n)
            rows->n++;
        else if (perf_replaces(row, &rows->list[k]))
            rows->list[k] = *row;
    }
    return rows->n ? ST_OK : fail(e, ST_DATA, "%s has no row with a time", rows->path);
}

enum status perf_rows_read(struct perf_rows *rows, const char *path, struct error *e) {
    struct stat s;
    struct csv_table t;
    bool folder = stat(path, &s) == 0 && S_ISDIR(s.st_mode);
    *rows = (struct perf_rows){0};
    TRY(path_format(rows->path, sizeof rows->path, e, "%s%s", path, folder ? "/perf.csv" : ""));
    TRY(csv_read(&t, rows->path, e));
    enum status status = collect(rows, &t, e);
    csv_free(&t);
    if (status == ST_OK) return ST_OK;
    free(rows->list);
    rows->list = NULL;
    return status;
}

void perf_pair_ns(const struct perf_row *a, const struct perf_row *b, double ns[2]) {
    bool best = a->best_ns > 0 && b->best_ns > 0;
    ns[0] = best ? a->best_ns : a->time_ns;
    ns[1] = best ? b->best_ns : b->time_ns;
}

/* Returns the relative standard error of a row's median, with the factors of normal samples. */
static double error_of(const struct perf_row *row) {
    const double sd_of_mad = 1.4826, of_median = 1.2533;
    return of_median * sd_of_mad * row->time_ns_mad / row->time_ns / sqrt((double)row->samples);
}

double perf_pair_error(const struct perf_row *a, const struct perf_row *b) {
    return 2 * hypot(error_of(a), error_of(b));
}

void perf_note_machines(struct sheet *s, const char *names[2], const struct perf_row *a, const struct perf_row *b) {
    if (!strcmp(a->machine_id, b->machine_id)) return;
    sheet_note(s, "Two machines: %s was measured on %s, %s on %s, so that ratios compare the machines, too.", names[0],
               *a->machine_id ? a->machine_id : "one that is not named", names[1],
               *b->machine_id ? b->machine_id : "one that is not named");
}

/* --- two files ---------------------------------------------------------------------------------------------------- */

static void add_pair(struct sheet *s, const struct perf_row *a, const struct perf_row *b, bool threads, bool dtypes) {
    double ns[2];
    perf_pair_ns(a, b, ns);
    sheet_row(s);
    sheet_text(s, "%s %s", a->bench, a->shape);
    sheet_text(s, "%s", a->pass);
    if (dtypes) sheet_text(s, "%s", a->dtype);
    if (threads) sheet_int(s, a->threads);
    for (int k = 0; k < 2; k++) sheet_real(s, "%.4g", ns[k] * 1e-6);
    sheet_real(s, "%.3f", ns[1] / ns[0]);
    sheet_real(s, "%.3f", perf_pair_error(a, b));
}

/* Adds a note that names some rows without a partner in `other`. */
static void note_alone(struct sheet *s, const struct perf_rows *rows, const struct perf_rows *other) {
    enum { NAMED = 3 };
    char names[4 * RECORD_TEXT] = "";
    int n = 0;
    for (int i = 0; i < rows->n; i++) {
        const struct perf_row *r = &rows->list[i];
        size_t used = strlen(names);
        if (perf_rows_find(other, r)) continue;
        if (n++ < NAMED)
            snprintf(names + used, sizeof names - used, "%s%s %s %s", used ? "; " : "", r->bench, r->shape, r->pass);
    }
    if (n)
        sheet_note(s, "Without a partner: %d of %d rows of %s: %s%s.", n, rows->n, rows->path, names,
                   n > NAMED ? "; ..." : "");
}

static enum status fill(struct sheet *s, const struct perf_rows *a, const struct perf_rows *b, struct error *e) {
    bool threads = false, dtypes = false;
    const char *names[2] = {"A", "B"};
    int n = 0, apart = -1;
    for (int i = 0; i < a->n; i++) {
        const struct perf_row *r = &a->list[i], *partner = perf_rows_find(b, r);
        threads = threads || r->threads != a->list[0].threads;
        dtypes = dtypes || strcmp(r->dtype, a->list[0].dtype) != 0;
        n += partner != NULL;
        if (partner && apart < 0 && strcmp(partner->machine_id, r->machine_id) != 0) apart = i;
    }
    if (n == 0)
        return fail(e, ST_DATA,
                    "%s and %s have no row in common; a pair has equal bench, shape, precision, pass, device, threads",
                    a->path, b->path);
    sheet_caption(s, "B = %s against A = %s: %d pair%s", b->path, a->path, n, n == 1 ? "" : "s");
    sheet_name(s, "perf compare");
    sheet_columns(s, "what|pass");
    if (dtypes) sheet_columns(s, "precision");
    if (threads) sheet_columns(s, ">threads");
    sheet_columns(s, ">A ms|>B ms|>B/A|>+-");
    for (int i = 0; i < a->n; i++) {
        const struct perf_row *partner = perf_rows_find(b, &a->list[i]);
        if (partner) add_pair(s, &a->list[i], partner, threads, dtypes);
    }
    sheet_note(s, "ms: the least of the samples, or their medians where a file has no least. +-: " PERF_ERROR_NOTE ".");
    if (apart >= 0) perf_note_machines(s, names, &a->list[apart], perf_rows_find(b, &a->list[apart]));
    note_alone(s, a, b);
    note_alone(s, b, a);
    return ST_OK;
}

enum status perf_compare(struct sheet *s, const char *const paths[2], struct error *e) {
    struct perf_rows a, b = {0};
    TRY(perf_rows_read(&a, paths[0], e));
    enum status status = perf_rows_read(&b, paths[1], e);
    if (status == ST_OK) status = fill(s, &a, &b, e);
    free(a.list);
    free(b.list);
    return status;
}
