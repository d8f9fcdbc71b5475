/* perf_log.c - see perf_log.h. */
#include "harness/store/perf_log.h"

#include <stdio.h>
#include <string.h>

#include "harness/store/append.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/schema.h"

enum status perf_append(const char *out, const struct perf_row *row, struct error *e) {
    struct perf_line line = {.row = *row, .schema = RECORD_SCHEMA};
    return table_append(&perf_table, &line, out, e);
}

bool perf_latest(const char *out, const char *cell_id, struct perf_row *row) {
    char path[PATH_BYTES];
    struct csv_table t;
    if (path_format(path, sizeof path, NULL, "%s/perf.csv", out) != ST_OK || csv_read(&t, path, NULL) != ST_OK)
        return false;
    struct perf_line line = {0};
    int found = -1;
    for (int i = 0; i < t.rows; i++)
        if (strcmp(csv_cell(&t, i, "cell_id"), cell_id) == 0) found = i;
    if (found >= 0) table_from_csv(&perf_table, &t, found, &line);
    csv_free(&t);
    if (found >= 0) *row = line.row;
    return found >= 0;
}
