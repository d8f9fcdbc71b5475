/* perf_rows.h - loads the measurements of a perf.csv, and pairs them with those of another such file. */
#ifndef LRNN_HARNESS_PERF_PERF_ROWS_H
#define LRNN_HARNESS_PERF_PERF_ROWS_H

#include "harness/sheet/sheet.h"
#include "harness/store/logs.h"

struct perf_rows {
    struct perf_row *list; /* owned; the caller frees it */
    int n;
    char path[RECORD_TEXT]; /* of the file */
};

/* Reads a file with the columns of perf.csv, or the perf.csv of a folder. If a thing has several rows, one is kept by
 * the rule of perf_replaces. ST_DATA: there is no such file, it is no such table, or it has no row; ST_MEMORY. */
enum status perf_rows_read(struct perf_rows *rows, const char *path, struct error *e);

/* Finds the row with the same bench, shape, precision, pass, device and threads. NULL: none. */
const struct perf_row *perf_rows_find(const struct perf_rows *rows, const struct perf_row *like);

/* Gives comparable nanoseconds of two rows: the smallest samples if both rows have them, else the medians. */
void perf_pair_ns(const struct perf_row *a, const struct perf_row *b, double ns[2]);

/* Returns two standard errors of the ratio of two rows' medians, from the scatter of their samples. Two sittings
 * (measurements) of one program may differ by more; `lrnn gate` therefore measures in turns. NAN: a row lacks the
 * numbers. */
#define PERF_ERROR_NOTE                                                                                                \
    "two standard errors by the scatter within each sitting; two sittings of one program may differ by more"
double perf_pair_error(const struct perf_row *a, const struct perf_row *b);

/* If two machines are compared, adds a remark that says so. */
void perf_note_machines(struct sheet *s, const char *names[2], const struct perf_row *a, const struct perf_row *b);

/* Fills the sheet of `lrnn perf compare A B`, with a row per pair. ST_DATA: no row of A has a partner. */
enum status perf_compare(struct sheet *s, const char *const paths[2], struct error *e);

#endif
