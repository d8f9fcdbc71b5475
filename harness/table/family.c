/* family.c - see family.h. */
#include "harness/table/family.h"

#include <stdlib.h>
#include <string.h>

#include "harness/rows/row_label.h"

static int same_family(const struct family_entry *a, const struct family_entry *b) {
    int order = strcmp(a->row->profile, b->row->profile);
    return order ? order : strcmp(a->family, b->family);
}

static int by_family_and_place(const void *left, const void *right) {
    const struct family_entry *a = left, *b = right;
    int order = same_family(a, b);
    if (!order) order = (a->rank > b->rank) - (a->rank < b->rank);
    if (!order) order = strcmp(a->task, b->task);
    if (!order) order = (a->row > b->row) - (a->row < b->row); /* the rows are one array, in the order of the tables */
    return order;
}

static int gather_entries(struct family_entry *entries, const struct report_tables *tables,
                          const struct family_report *report) {
    int n = 0;
    for (int i = 0; i < tables->n; i++)
        for (int k = 0; k < tables->list[i].n_rows; k++) {
            struct family_entry *e = &entries[n++];
            const struct report_row *row = &tables->list[i].rows[k];
            *e = (struct family_entry){.row = row, .task = row->run->task, .rank = report->rank(row->run)};
            report->name_family(e->task, e->family, sizeof e->family);
            const char *axis = label_get(&row->key, report->axis);
            snprintf(e->model, sizeof e->model, "%s", row->mixer);
            snprintf(e->apart, sizeof e->apart, "%s %s", e->task, axis ? axis : "");
        }
    qsort(entries, (size_t)n, sizeof *entries, by_family_and_place);
    return n;
}

static bool is_task_or_axis(const void *context, const char *key) {
    const struct family_report *report = context;
    return strncmp(key, "task.", 5) == 0 || strcmp(key, report->axis) == 0;
}

/* What tells a family's models apart, in the names of its n entries. */
static enum status name_models(struct family_entry *entries, int n, const struct family_report *report,
                               struct error *e) {
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
static int place_of(const struct family_entry **list, int n, const struct family_entry *e, bool model) {
    int i = 0;
    while (i < n && strcmp(model ? list[i]->model : list[i]->task, model ? e->model : e->task) != 0) i++;
    return i;
}

static void find_members(struct family *s) {
    for (int i = 0; i < s->n; i++) {
        const struct family_entry *e = &s->entries[i];
        int m = place_of(s->models, s->n_models, e, true), t = place_of(s->tasks, s->n_tasks, e, false);
        if (m == s->n_models) s->models[s->n_models++] = e;
        if (t == s->n_tasks) s->tasks[s->n_tasks++] = e;
    }
}

struct families {
    struct family *list; /* families of two tasks and more */
    int n;
    struct family_entry *entries;        /* of all rows */
    const struct family_entry **members; /* models and tasks of all families */
};

static enum status make(struct families *families, const struct report_tables *tables,
                        const struct family_report *report, struct error *e) {
    size_t rows = 1;
    for (int i = 0; i < tables->n; i++) rows += (size_t)tables->list[i].n_rows;
    *families = (struct families){.list = calloc(rows, sizeof *families->list),
                                  .entries = calloc(rows, sizeof *families->entries),
                                  .members = calloc(2 * rows, sizeof *families->members)};
    if (!families->list || !families->entries || !families->members)
        return fail(e, ST_MEMORY, "no memory for a report of %zu rows", rows - 1);
    int n = gather_entries(families->entries, tables, report);
    for (int first = 0, last; first < n; first = last) {
        struct family_entry *entries = families->entries + first;
        const struct family_entry **members = families->members + 2 * (size_t)first;
        for (last = first; last < n && same_family(entries, families->entries + last) == 0;) last++;
        TRY(name_models(entries, last - first, report, e));
        struct family s = {.entries = entries, .n = last - first, .models = members, .tasks = members + (last - first)};
        find_members(&s);
        if (s.n_tasks >= 2) families->list[families->n++] = s;
    }
    return families->n ? ST_OK : fail(e, ST_DATA, "%s", report->nothing);
}

static void families_free(struct families *families) {
    free(families->list);
    free(families->entries);
    free(families->members);
}

enum status family_build(const struct family_report *report, struct sheets *sheets, const struct report_tables *tables,
                         struct error *e) {
    struct families families;
    enum status status = make(&families, tables, report, e);
    for (int i = 0; i < families.n && report->check && status == ST_OK; i++)
        status = report->check(&families.list[i], tables, e);
    for (int i = 0; i < families.n && status == ST_OK; i++) report->fill(sheets_add(sheets), &families.list[i], tables);
    families_free(&families);
    return status;
}

static void add_columns(struct sheet *sheet, const char *const *names) {
    for (; *names; names++) sheet_column(sheet, SHEET_LEFT, "%s", *names);
}

enum status family_build_data(const struct family_report *report, struct sheets *sheets,
                              const struct report_tables *tables, struct error *e) {
    static const char *const shared[] = {"schema", "profile", "task", "model", "layers", NULL};
    struct families families;
    struct sheet *sheet = sheets_add(sheets);
    enum status status = make(&families, tables, report, e);
    add_columns(sheet, shared);
    add_columns(sheet, report->columns);
    for (int i = 0; i < families.n; i++) report->fill_data(sheet, &families.list[i]);
    families_free(&families);
    return status;
}

void family_begin_row(struct sheet *sheet, const struct family *s, int model) {
    const struct run *run = s->models[model]->row->run;
    sheet_row(sheet);
    sheet_int(sheet, RECORD_SCHEMA);
    sheet_text(sheet, "%s", s->models[model]->row->profile);
    sheet_text(sheet, "%s", s->entries->family);
    sheet_text(sheet, "%s", run->model);
    sheet_text(sheet, "%s", s->models[model]->model);
}

bool family_is(const struct family *s, const struct family_entry *entry, int model, int task) {
    return strcmp(entry->model, s->models[model]->model) == 0 && strcmp(entry->task, s->tasks[task]->task) == 0;
}

const struct run *family_run(const struct family *s) {
    return s->entries->row->run;
}
