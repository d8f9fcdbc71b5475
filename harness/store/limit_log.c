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

static enum status add_row(const char *out, const void *object, struct error *e) {
    const struct limit_line *line = object;
    struct limit_row known;
    if (!is_sound(&line->row) || limit_find(out, line->row.run_id, line->row.seconds, &known)) return ST_OK;
    return limit_append(out, &line->row, e);
}

enum status limits_merge(const char *from, const char *out, struct error *e) {
    struct limit_line line = {0};
    return table_merge(&limits_table, from, out, &line, add_row, e);
}

enum status limits_check(const char *out, struct error *e) {
    return table_check(&limits_table, out, e);
}
