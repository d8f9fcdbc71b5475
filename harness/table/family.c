/* family.c - see family.h. */
#include "harness/table/family.h"

#include <stdlib.h>
#include <string.h>

#include "harness/rows/row_label.h"
#include "harness/study/row_key.h"

static int same_family(const struct family_entry *a, const struct family_entry *b) {
    int order = strcmp(a->row->profile, b->row->profile);
    return order ? order : strcmp(a->family, b->family);
}

static int by_family_and_place(const void *left, const void *right) {
    const struct family_entry *a = left, *b = right;
    int order = same_family(a, b);
    if (!order) order = (a->rank > b->rank) - (a->rank < b->rank);
    if (!order) order = strcmp(a->task, b->task);
    if (!order) order = (a->row > b->row) - (a->row < b->row); /* rows are in one array, in the order of the tables */
    return order;
}

/* Orders families as their first rows are ordered in the tables. */
static int by_first_row(const void *left, const void *right) {
    const struct family *a = left, *b = right;
    return (a->entries->row > b->entries->row) - (a->entries->row < b->entries->row);
}

bool family_shares(const struct family *s, const char *key) {
    if (strncmp(key, "task.", 5) == 0) return true;
    for (int i = 1, first = 0; i < s->n; i++) { /* entries of a task are neighbours */
        if (strcmp(s->entries[i].task, s->entries[first].task) != 0) first = i;
        if (strcmp(row_key_value(&s->entries[i].row->key, key), row_key_value(&s->entries[first].row->key, key)) != 0)
            return false;
    }
    return true;
}

/* Chooses the options that name a family's models. */
struct naming {
    const struct family *family;
    const char *axis;
};

static bool is_left_out(const void *context, const char *key) {
    const struct naming *by = context;
    if (!by->axis) return family_shares(by->family, key);
    return strncmp(key, "task.", 5) == 0 || strcmp(key, by->axis) == 0;
}

/* Names the entries so that a family's models are distinguished, then lists its models and tasks. Models keep the order
 * of the tables. */
static enum status find_members(struct family *s, struct family_entry *entries, const char *axis, struct error *e) {
    struct row_name *names = calloc((size_t)s->n, sizeof *names);
    if (!names) return fail(e, ST_MEMORY, "no memory for a report of %d rows", s->n);
    for (int i = 0; i < s->n; i++)
        names[i] =
            (struct row_name){&entries[i].row->key, entries[i].apart, entries[i].model, sizeof entries[i].model, false};
    row_names_tell_apart(names, s->n, is_left_out, &(struct naming){s, axis});
    free(names);
    for (int i = 0; i < s->n; i++) {
        int m = 0, t = 0;
        while (m < s->n_models && strcmp(s->models[m]->model, entries[i].model) != 0) m++;
        while (t < s->n_tasks && strcmp(s->tasks[t]->task, entries[i].task) != 0) t++;
        if (m == s->n_models) s->models[s->n_models++] = &entries[i];
        if (t == s->n_tasks) s->tasks[s->n_tasks++] = &entries[i];
    }
    return ST_OK;
}

struct families {
    struct family *list;
    int n;
    struct family_entry *entries;        /* one per row */
    const struct family_entry **members; /* models and tasks of all families */
};

static enum status find_families(struct families *families, const struct report_tables *tables,
                                 const struct family_report *report, struct error *e) {
    size_t rows = 1;
    int n = 0;
    for (int i = 0; i < tables->n; i++) rows += (size_t)tables->list[i].n_rows;
    *families = (struct families){.list = calloc(rows, sizeof *families->list),
                                  .entries = calloc(rows, sizeof *families->entries),
                                  .members = calloc(2 * rows, sizeof *families->members)};
    if (!families->list || !families->entries || !families->members)
        return fail(e, ST_MEMORY, "no memory for a report of %zu rows", rows - 1);
    for (int i = 0; i < tables->n; i++)
        for (int k = 0; k < tables->list[i].n_rows; k++) {
            struct family_entry *entry = &families->entries[n++];
            const struct report_row *row = &tables->list[i].rows[k];
            const char *axis = report->axis ? label_get(&row->key, report->axis) : NULL;
            *entry = (struct family_entry){
                .row = row, .task = row->run->task, .rank = report->rank ? report->rank(row->run) : i};
            report->name_family(row->run, entry->family, sizeof entry->family);
            snprintf(entry->model, sizeof entry->model, "%s", row->mixer);
            snprintf(entry->apart, sizeof entry->apart, "%s %s", entry->task, axis ? axis : "");
        }
    qsort(families->entries, (size_t)n, sizeof *families->entries, by_family_and_place);
    for (int first = 0, last; first < n; first = last) {
        struct family_entry *entries = families->entries + first;
        const struct family_entry **members = families->members + 2 * (size_t)first;
        for (last = first; last < n && same_family(entries, families->entries + last) == 0;) last++;
        struct family s = {.entries = entries, .n = last - first, .models = members, .tasks = members + (last - first)};
        TRY(find_members(&s, entries, report->axis, e));
        if (s.n_tasks >= report->least_tasks) families->list[families->n++] = s;
    }
    if (!report->rank) qsort(families->list, (size_t)families->n, sizeof *families->list, by_first_row);
    return families->n ? ST_OK : fail(e, ST_DATA, "%s", report->nothing);
}

enum status family_make(const struct family_report *report, struct sheets *sheets, const struct report_tables *tables,
                        bool data, struct error *e) {
    struct families families;
    struct marks marks = {0};
    enum status status = find_families(&families, tables, report, e);
    for (int i = 0; i < families.n && report->check && !data && status == ST_OK; i++)
        status = report->check(&families.list[i], tables, e);
    struct sheet *sheet = data && status == ST_OK ? sheets_add(sheets) : NULL;
    if (data) sheet_columns(sheet, report->columns);
    for (int i = 0; i < families.n && status == ST_OK; i++) {
        if (data)
            report->fill_data(sheet, &families.list[i], tables);
        else
            report->fill(sheets_add(sheets), &families.list[i], tables, &marks,
                         !report->one_legend || i + 1 == families.n);
        if (!report->one_legend) marks = (struct marks){0};
    }
    free(families.list);
    free(families.entries);
    free(families.members);
    return status;
}

void family_begin_row(struct sheet *sheet, const struct family *s, int model) {
    const struct report_row *row = s->models[model]->row;
    sheet_row(sheet);
    sheet_int(sheet, RECORD_SCHEMA);
    sheet_text(sheet, "%s", row->profile);
    sheet_text(sheet, "%s", s->entries->family);
    sheet_text(sheet, "%s", row->run->model);
    sheet_text(sheet, "%s", s->models[model]->model);
}

bool family_is(const struct family *s, const struct family_entry *entry, int model, int task) {
    return strcmp(entry->model, s->models[model]->model) == 0 && strcmp(entry->task, s->tasks[task]->task) == 0;
}
