/* published.c - finds the published number that a run is to be compared with. */
#include "harness/report/published.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "core/option.h"
#include "harness/store/files.h"

enum status published_read(struct published *p, const char *out, struct error *e) {
    char path[PATH_BYTES];
    *p = (struct published){0};
    TRY(path_format(path, sizeof path, e, "%s/published.csv", out));
    if (access(path, R_OK) != 0) TRY(shipped_file_find("results/published.csv", path, sizeof path, e));
    return csv_read(&p->table, path, e);
}

void published_free(struct published *p) {
    csv_free(&p->table);
}

bool layers_option(const char *layers, const char *option, char *value, size_t size) {
    size_t wanted = strlen(option);
    const char *end = layers + strcspn(layers, ";"), *at = layers + strcspn(layers, ":;");
    while (at < end) {
        const char *name = at + 1; /* behind ':' or ',' */
        size_t n = strcspn(name, ",;");
        if (strncmp(name, option, wanted) == 0 && name[wanted] == '=') {
            snprintf(value, size, "%.*s", (int)(n - wanted - 1), name + wanted + 1);
            return true;
        }
        at = name + n;
    }
    return false;
}

/* Whether the run is of the published model "name:a=1,b=2". */
static bool model_matches(const char *model, const struct run *run) {
    char option[64], wanted[64], got[OPTION_TEXT];
    size_t name = strcspn(model, ":");
    if (strlen(run->model) != name || strncmp(run->model, model, name) != 0) return false;
    for (const char *at = model + name; *at; at += strcspn(at, ",")) {
        at++;
        if (sscanf(at, "%63[^=]=%63[^,]", option, wanted) != 2) return false;
        if (!layers_option(run->layers, option, got, sizeof got) || strcmp(got, wanted) != 0) return false;
    }
    return true;
}

double published_value(const struct published *p, const struct run *run) {
    double value;
    const char *metric = run->metric[0] ? run->metric : "acc";
    for (int i = 0; i < p->table.rows; i++)
        if (strcmp(csv_cell(&p->table, i, "task"), run->task) == 0 &&
            strcmp(csv_cell(&p->table, i, "metric"), metric) == 0 &&
            model_matches(csv_cell(&p->table, i, "model"), run) &&
            parse_double(csv_cell(&p->table, i, "value"), &value))
            return value;
    return NAN;
}
