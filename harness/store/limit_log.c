/* limit_log.c - see limit_log.h. */
#include "harness/store/limit_log.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/option.h"
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
    double given;
    *row = (struct limit_row){.seconds = seconds};
    if (strcmp(csv_cell(t, i, "run_id"), run_id) != 0) return false;
    if (!parse_double(csv_cell(t, i, "seconds"), &given) || given != seconds) return false;
    if (!parse_int64(csv_cell(t, i, "steps"), &row->steps) || row->steps < 1) return false;
    if (!parse_double(csv_cell(t, i, "time_ns"), &row->time_ns)) row->time_ns = NAN;
    if (!parse_int64(csv_cell(t, i, "threads"), &row->threads)) row->threads = -1;
    snprintf(row->run_id, sizeof row->run_id, "%s", run_id);
    snprintf(row->commit, sizeof row->commit, "%s", csv_text_plain(csv_cell(t, i, "commit")));
    snprintf(row->machine_id, sizeof row->machine_id, "%s", csv_text_plain(csv_cell(t, i, "machine_id")));
    snprintf(row->started, sizeof row->started, "%s", csv_text_plain(csv_cell(t, i, "started")));
    return true;
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
