/* machine_log.c - see machine_log.h. */
#include "harness/store/machine_log.h"

#include <stdbool.h>
#include <string.h>

#include "harness/store/append.h"
#include "harness/store/clock.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/schema.h"

enum status machines_export(const char *out, const struct machine *m, struct error *e) {
    char path[PATH_BYTES];
    struct csv_table t;
    bool known = false;
    TRY(path_format(path, sizeof path, e, "%s/machines.csv", out));
    if (csv_read(&t, path, NULL) == ST_OK) {
        for (int i = 0; i < t.rows && !known; i++)
            known = strcmp(csv_cell(&t, i, "machine_id"), m->id) == 0 &&
                    strcmp(csv_cell(&t, i, "env_epoch"), m->env_epoch) == 0;
        csv_free(&t);
    }
    if (known) return ST_OK;
    struct machine_row row = {.machine = *m};
    time_now_text(row.first_seen, sizeof row.first_seen);
    return table_append(&machines_table, &row, out, e);
}
