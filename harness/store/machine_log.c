/* machine_log.c - see machine_log.h. */
#include "harness/store/machine_log.h"

#include <string.h>

#include "harness/store/append.h"
#include "harness/store/clock.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/schema.h"

bool machines_have(const char *out, const char *machine_id, const char *env_epoch) {
    char path[PATH_BYTES];
    struct csv_table t;
    bool known = false;
    if (path_format(path, sizeof path, NULL, "%s/machines.csv", out) != ST_OK || csv_read(&t, path, NULL) != ST_OK)
        return false;
    for (int i = 0; i < t.rows && !known; i++)
        known = strcmp(csv_cell(&t, i, "machine_id"), machine_id) == 0 &&
                strcmp(csv_cell(&t, i, "env_epoch"), env_epoch) == 0;
    csv_free(&t);
    return known;
}

static enum status add_row(const char *out, const void *object, struct error *e) {
    const struct machine_row *row = object;
    if (machines_have(out, row->machine.id, row->machine.env_epoch)) return ST_OK;
    return table_append(&machines_table, row, out, e);
}

enum status machines_export(const char *out, const struct machine *m, struct error *e) {
    struct machine_row row = {.machine = *m};
    time_now_text(row.first_seen, sizeof row.first_seen);
    return add_row(out, &row, e);
}

enum status machines_check(const char *out, struct error *e) {
    return table_check(&machines_table, out, e);
}

enum status machines_merge(const char *from, const char *out, struct error *e) {
    struct machine_row row = {0};
    return table_merge(&machines_table, from, out, &row, add_row, e);
}
