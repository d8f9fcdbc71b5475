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

static void perf_from_csv(const struct csv_table *t, int i, struct perf_row *row) {
    *row = (struct perf_row){0};
    csv_cell_text(t, i, "sitting", row->sitting, sizeof row->sitting);
    csv_cell_text(t, i, "bench", row->bench, sizeof row->bench);
    csv_cell_text(t, i, "shape", row->shape, sizeof row->shape);
    csv_cell_text(t, i, "dtype", row->dtype, sizeof row->dtype);
    csv_cell_text(t, i, "pass", row->pass, sizeof row->pass);
    csv_cell_text(t, i, "commit", row->commit, sizeof row->commit);
    csv_cell_text(t, i, "build_id", row->build_id, sizeof row->build_id);
    csv_cell_text(t, i, "machine_id", row->machine_id, sizeof row->machine_id);
    csv_cell_text(t, i, "started", row->started, sizeof row->started);
    csv_cell_text(t, i, "cell_id", row->cell_id, sizeof row->cell_id);
    row->foreign = csv_cell_real(t, i, "foreign");
    row->warm_up = csv_cell_int(t, i, "warm_up");
    row->quiet = csv_cell_int(t, i, "quiet");
    row->samples = csv_cell_int(t, i, "samples");
    row->threads = csv_cell_int(t, i, "threads");
    row->time_ns_med = csv_cell_real(t, i, "time_ns");
    row->time_ns_mad = csv_cell_real(t, i, "time_ns_mad");
    row->time_ns_p95 = csv_cell_real(t, i, "time_ns_p95");
    row->tok_per_s = csv_cell_real(t, i, "tok_per_s");
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
