/* perf_rows.h - measurements of a perf.csv in memory, and each one's partner in another such file. */
#ifndef LRNN_HARNESS_PERF_PERF_ROWS_H
#define LRNN_HARNESS_PERF_PERF_ROWS_H

#include "harness/sheet/sheet.h"
#include "harness/store/logs.h"

struct perf_rows {
    struct perf_row *list; /* owned; the caller frees it */
    int n;
    char path[RECORD_TEXT]; /* of the file */
};

/* Reads a file with the columns of perf.csv, or the perf.csv of a folder. Of rows of one thing it keeps the one that
 * perf_replaces leaves. ST_DATA: there is no such file, or it is no such table, or has no row; ST_MEMORY. */
enum status perf_rows_read(struct perf_rows *rows, const char *path, struct error *e);

/* Finds the row of the same thing: bench, shape, precision, pass, device and threads. NULL: none. */
const struct perf_row *perf_rows_find(const struct perf_rows *rows, const struct perf_row *like);

/* Nanoseconds of two rows that can be compared: the least of the samples where both have it, else the medians. */
void perf_pair_ns(const struct perf_row *a, const struct perf_row *b, double ns[2]);

/* Two standard errors of the ratio of two rows' medians, by the scatter of their samples. Two sittings of one program
 * may differ by more; `lrnn gate` measures in turns. NAN: a row does not say. */
#define PERF_ERROR_NOTE                                                                                                \
    "two standard errors by the scatter within each sitting; two sittings of one program may differ by more"
double perf_pair_error(const struct perf_row *a, const struct perf_row *b);

/* Adds the remark that two machines were compared; none where they are one. */
void perf_note_machines(struct sheet *s, const char *names[2], const struct perf_row *a, const struct perf_row *b);

/* Fills the sheet of `lrnn perf compare A B`: a row a pair. ST_DATA: no row of A has a partner. */
enum status perf_compare(struct sheet *s, const char *const paths[2], struct error *e);

#endif
