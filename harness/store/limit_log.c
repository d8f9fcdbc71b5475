/* limit_log.c - see limit_log.h. */
#include "harness/store/limit_log.h"

#include <stdio.h>
#include <string.h>

#include "harness/store/append.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/schema.h"

enum status limit_append(const char *out, const struct limit_row *row, struct error *e) {
    struct limit_line line = {.row = *row, .schema = RECORD_SCHEMA};
    return table_append(&limits_table, &line, out, e);
}

/* Whether row i is the decision of that run and time; a row that was edited into nonsense is none. */
static bool read_row(const struct csv_table *t, int i, const char *run_id, double seconds, struct limit_row *row) {
    if (strcmp(csv_cell(t, i, "run_id"), run_id) != 0 || csv_cell_real(t, i, "seconds") != seconds) return false;
    *row = (struct limit_row){.seconds = seconds,
                              .steps = csv_cell_int(t, i, "steps"),
                              .time_ns = csv_cell_real(t, i, "time_ns"),
                              .threads = csv_cell_int(t, i, "threads")};
    csv_cell_text(t, i, "run_id", row->run_id, sizeof row->run_id);
    csv_cell_text(t, i, "commit", row->commit, sizeof row->commit);
    csv_cell_text(t, i, "machine_id", row->machine_id, sizeof row->machine_id);
    csv_cell_text(t, i, "started", row->started, sizeof row->started);
    return row->steps >= 1;
}

bool limit_find(const char *out, const char *run_id, double seconds, struct limit_row *row) {
    char path[PATH_BYTES];
    struct csv_table t;
    bool found = false;
    if (path_format(path, sizeof path, NULL, "%s/limits.csv", out) != ST_OK || csv_read(&t, path, NULL) != ST_OK)
        return false;
    for (int i = 0; i < t.rows && !found; i++) found = read_row(&t, i, run_id, seconds, row);
    csv_free(&t);
    return found;
}
