/* family.h - tables that were run together: tasks of one family beside each other, a row a model, a column a task. */
#ifndef LRNN_HARNESS_TABLE_FAMILY_H
#define LRNN_HARNESS_TABLE_FAMILY_H

#include "harness/table/sheet.h"
#include "harness/rows/rows.h"

/* A row of a table as part of a family. */
struct family_entry {
    const struct report_row *row;
    const char *task;
    char family[RECORD_TEXT];    /* of the task */
    char model[4 * RECORD_TEXT]; /* the row's mixer, and what tells it from the family's others but task and axis */
    char apart[2 * RECORD_TEXT]; /* task and value of the axis: entries of one model differ in it */
    int64_t rank;                /* of the task in its family */
};

/* One family in one profile. */
struct family {
    const struct family_entry *entries; /* by rank of the task, then in the order of the tables */
    int n;
    const struct family_entry **models, **tasks; /* the first entry of each */
    int n_models, n_tasks;                       /* tasks: at least 2 */
};

/* A report on families: what makes a family of tasks, and what is shown of one. */
struct family_report {
    void (*name_family)(const char *task, char *family, size_t size); /* what the tasks have in common */
    int64_t (*rank)(const struct run *run); /* tasks come in this order; of equal ones by name */
    const char *axis;                       /* the flag over which a model's rows of one task are taken together */
    /* Whether what was asked for can be shown of a family; NULL: always. */
    enum status (*check)(const struct family *s, const struct report_tables *tables, struct error *e);
    /* Fills a sheet for people. */
    void (*fill)(struct sheet *sheet, const struct family *s, const struct report_tables *tables);
    /* The data (report.h): headings behind those of family_begin_row, NULL-terminated, and the rows of a family. */
    const char *const *columns;
    void (*fill_data)(struct sheet *sheet, const struct family *s);
    const char *nothing; /* the error's sentence where no family has two tasks */
};

/* `build` and `build_data` of such a report. ST_DATA: `nothing`; ST_MEMORY; of `build` errors as `check`. */
enum status family_build(const struct family_report *report, struct sheets *sheets, const struct report_tables *tables,
                         struct error *e);
enum status family_build_data(const struct family_report *report, struct sheets *sheets,
                              const struct report_tables *tables, struct error *e);

/* Begins a row of data on a model: schema, profile, family, model and label. */
void family_begin_row(struct sheet *sheet, const struct family *s, int model);

/* Whether an entry is of that model and that task of the family. */
bool family_is(const struct family *s, const struct family_entry *entry, int model, int task);

const struct run *family_run(const struct family *s); /* one of its runs, for what they share */

#endif
