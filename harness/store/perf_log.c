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

/* like NULL: of all rows. */
static bool find_latest(const char *out, const char *cell_id, const struct perf_row *like, struct perf_row *row) {
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

bool perf_latest(const char *out, const char *cell_id, struct perf_row *row) {
    return find_latest(out, cell_id, NULL, row);
}

bool perf_latest_alike(const char *out, const char *cell_id, const struct perf_row *like, struct perf_row *row) {
    return find_latest(out, cell_id, like, row);
}
