/* sweep.c - see sweep.h. */
#include "harness/report/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "harness/rows/row_label.h"

static int same_family(const struct sweep_entry *a, const struct sweep_entry *b) {
    int order = strcmp(a->row->run->profile, b->row->run->profile);
    return order ? order : strcmp(a->family, b->family);
}

static int by_family_and_place(const void *left, const void *right) {
    const struct sweep_entry *a = left, *b = right;
    int order = same_family(a, b);
    if (!order) order = (a->rank > b->rank) - (a->rank < b->rank);
    if (!order) order = strcmp(a->task, b->task);
    if (!order) order = (a->row > b->row) - (a->row < b->row); /* the rows are one array, in the order of the tables */
    return order;
}

static int gather_entries(struct sweep_entry *entries, const struct report_tables *tables,
                          const struct sweep_report *report) {
    int n = 0;
    for (int i = 0; i < tables->n; i++)
        for (int k = 0; k < tables->list[i].n_rows; k++) {
            struct sweep_entry *e = &entries[n++];
            const struct report_row *row = &tables->list[i].rows[k];
            *e = (struct sweep_entry){.row = row, .task = row->run->task, .rank = report->rank(row->run)};
            report->name_family(e->task, e->family, sizeof e->family);
            const char *axis = label_get(&row->key, report->axis);
            snprintf(e->model, sizeof e->model, "%s", row->mixer);
            snprintf(e->apart, sizeof e->apart, "%s %s", e->task, axis ? axis : "");
        }
    qsort(entries, (size_t)n, sizeof *entries, by_family_and_place);
    return n;
}

static bool is_task_or_axis(const void *context, const char *key) {
    const struct sweep_report *report = context;
    return strncmp(key, "task.", 5) == 0 || strcmp(key, report->axis) == 0;
}

/* What tells a family's models apart, in the names of its n entries. */
static enum status name_models(struct sweep_entry *entries, int n, const struct sweep_report *report, struct error *e) {
    struct row_name *names = calloc((size_t)n, sizeof *names);
    if (!names) return fail(e, ST_MEMORY, "no memory for a report of %d rows", n);
    for (int i = 0; i < n; i++)
        names[i] =
            (struct row_name){&entries[i].row->key, entries[i].apart, entries[i].model, sizeof entries[i].model, false};
    row_names_tell_apart(names, n, is_task_or_axis, report);
    free(names);
    return ST_OK;
}

/* The order that the tables have models in is kept: entries come from there one task after another. */
static int place_of(const struct sweep_entry **list, int n, const struct sweep_entry *e, bool model) {
    int i = 0;
    while (i < n && strcmp(model ? list[i]->model : list[i]->task, model ? e->model : e->task) != 0) i++;
    return i;
}

static void find_members(struct sweep *s) {
    for (int i = 0; i < s->n; i++) {
        const struct sweep_entry *e = &s->entries[i];
        int m = place_of(s->models, s->n_models, e, true), t = place_of(s->tasks, s->n_tasks, e, false);
        if (m == s->n_models) s->models[s->n_models++] = e;
        if (t == s->n_tasks) s->tasks[s->n_tasks++] = e;
    }
}

struct sweeps {
    struct sweep *list; /* families of two tasks and more */
    int n;
    struct sweep_entry *entries;        /* of all rows */
    const struct sweep_entry **members; /* models and tasks of all sweeps */
};

static enum status make(struct sweeps *sweeps, const struct report_tables *tables, const struct sweep_report *report,
                        struct error *e) {
    size_t rows = 1;
    for (int i = 0; i < tables->n; i++) rows += (size_t)tables->list[i].n_rows;
    *sweeps = (struct sweeps){.list = calloc(rows, sizeof *sweeps->list),
                              .entries = calloc(rows, sizeof *sweeps->entries),
                              .members = calloc(2 * rows, sizeof *sweeps->members)};
    if (!sweeps->list || !sweeps->entries || !sweeps->members)
        return fail(e, ST_MEMORY, "no memory for a report of %zu rows", rows - 1);
    int n = gather_entries(sweeps->entries, tables, report);
    for (int first = 0, last; first < n; first = last) {
        struct sweep_entry *entries = sweeps->entries + first;
        const struct sweep_entry **members = sweeps->members + 2 * (size_t)first;
        for (last = first; last < n && same_family(entries, sweeps->entries + last) == 0;) last++;
        TRY(name_models(entries, last - first, report, e));
        struct sweep s = {.entries = entries, .n = last - first, .models = members, .tasks = members + (last - first)};
        find_members(&s);
        if (s.n_tasks >= 2) sweeps->list[sweeps->n++] = s;
    }
    return sweeps->n ? ST_OK : fail(e, ST_DATA, "%s", report->nothing);
}

static void sweeps_free(struct sweeps *sweeps) {
    free(sweeps->list);
    free(sweeps->entries);
    free(sweeps->members);
}

enum status sweep_build(const struct sweep_report *report, struct sheets *sheets, const struct report_tables *tables,
                        struct error *e) {
    struct sweeps sweeps;
    enum status status = make(&sweeps, tables, report, e);
    for (int i = 0; i < sweeps.n; i++) report->fill(sheets_add(sheets), &sweeps.list[i], tables);
    sweeps_free(&sweeps);
    return status;
}

static void add_columns(struct sheet *sheet, const char *const *names) {
    for (; *names; names++) sheet_column(sheet, SHEET_LEFT, "%s", *names);
}

enum status sweep_build_data(const struct sweep_report *report, struct sheets *sheets,
                             const struct report_tables *tables, struct error *e) {
    static const char *const shared[] = {"schema", "profile", "task", "model", "layers", NULL};
    struct sweeps sweeps;
    struct sheet *sheet = sheets_add(sheets);
    enum status status = make(&sweeps, tables, report, e);
    add_columns(sheet, shared);
    add_columns(sheet, report->columns);
    for (int i = 0; i < sweeps.n; i++) report->fill_data(sheet, &sweeps.list[i]);
    sweeps_free(&sweeps);
    return status;
}

void sweep_begin_row(struct sheet *sheet, const struct sweep *s, int model) {
    const struct run *run = s->models[model]->row->run;
    sheet_row(sheet);
    sheet_int(sheet, RECORD_SCHEMA);
    sheet_text(sheet, "%s", run->profile);
    sheet_text(sheet, "%s", s->entries->family);
    sheet_text(sheet, "%s", run->model);
    sheet_text(sheet, "%s", s->models[model]->model);
}

bool sweep_is(const struct sweep *s, const struct sweep_entry *entry, int model, int task) {
    return strcmp(entry->model, s->models[model]->model) == 0 && strcmp(entry->task, s->tasks[task]->task) == 0;
}

const struct run *sweep_run(const struct sweep *s) {
    return s->entries->row->run;
}
