/* family.h - tables side by side: a row per model, a column per task, for tasks of one family under one profile. */
#ifndef LRNN_HARNESS_TABLE_FAMILY_H
#define LRNN_HARNESS_TABLE_FAMILY_H

#include "harness/table/report.h"

/* A row of a table as part of a family. */
struct family_entry {
    const struct report_row *row;
    const char *task;
    char family[RECORD_TEXT];    /* of the task */
    char model[4 * RECORD_TEXT]; /* the row's mixer, and what tells it from the family's other models */
    char apart[2 * RECORD_TEXT]; /* task and value of the axis: entries of one model differ in it */
    int64_t rank;                /* of the task in its family */
};

/* One family under one profile. */
struct family {
    const struct family_entry *entries; /* by rank of the task, then in the order of the tables */
    int n;
    const struct family_entry **models, **tasks; /* the first entry of each */
    int n_models, n_tasks;
};

/* A report on families: what makes a family of tasks, and what is shown of one. */
struct family_report {
    /* The name of what the tasks have in common. */
    void (*name_family)(const struct run *run, char *family, size_t size);
    int64_t (*rank)(const struct run *run); /* orders tasks, equal ones by name; NULL: they keep the tables' order */
    /* The flag over which a model's rows of one task are taken together. NULL: each row is a model of its own, named by
     * the options that differ within a task. */
    const char *axis;
    int least_tasks; /* a family with fewer tasks is left out */
    bool one_legend; /* `legend` holds for the last family alone, and the marks of all are counted together */
    /* Checks that the reader's flags change something in a family's table; NULL: always. */
    enum status (*check)(const struct family *s, const struct report_tables *tables, struct error *e);
    /* Fills a sheet for people; `legend`: with the notes on its marks. */
    void (*fill)(struct sheet *sheet, const struct family *s, const struct report_tables *tables, struct marks *marks,
                 bool legend);
    const char *columns; /* headings of the data */
    void (*fill_data)(struct sheet *sheet, const struct family *s, const struct report_tables *tables);
    const char *nothing; /* the error's sentence where there is no family */
};

/* Makes the sheets of such a report. ST_DATA: `nothing`; ST_MEMORY; for people errors as `check`. */
enum status family_make(const struct family_report *report, struct sheets *sheets, const struct report_tables *tables,
                        bool data, struct error *e);

/* Begins a row of data on a model with the columns FAMILY_COLUMNS. */
#define FAMILY_COLUMNS "schema|profile|task|model|layers|"
void family_begin_row(struct sheet *sheet, const struct family *s, int model);

/* Whether an entry is of that model and that task of the family. */
bool family_is(const struct family *s, const struct family_entry *entry, int model, int task);

/* Whether all rows of each task have one value of a key, or the key is the task's: no row is told apart by it. */
bool family_shares(const struct family *s, const char *key);

#endif
