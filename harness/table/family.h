/* family.h - reports with a row per model and a column per task, for tasks of one family under one profile. */
#ifndef LRNN_HARNESS_TABLE_FAMILY_H
#define LRNN_HARNESS_TABLE_FAMILY_H

#include "harness/table/report.h"

/* A row of a table as part of a family. */
struct family_entry {
    const struct report_row *row;
    const char *task;
    char family[RECORD_TEXT];    /* the task's family */
    char model[4 * RECORD_TEXT]; /* the row's mixer, and options that distinguish it from the family's other models */
    char apart[2 * RECORD_TEXT]; /* task and value of the axis, in which entries of one model differ */
    int64_t rank;                /* of the task in its family */
};

/* One family under one profile. */
struct family {
    const struct family_entry *entries; /* by rank of the task, then in the order of the tables */
    int n;
    const struct family_entry **models, **tasks; /* the first entry of each */
    int n_models, n_tasks;
};

/* A report on families: how tasks are grouped into families, and what is shown. */
struct family_report {
    /* Names the family of a run's task. */
    void (*name_family)(const struct run *run, char *family, size_t size);
    int64_t (*rank)(const struct run *run); /* orders tasks, ties by name; NULL: the order of the tables */
    /* The flag over which a model's rows on one task are combined. NULL: each row is its own model, named by the
     * options that differ within a task. */
    const char *axis;
    int least_tasks; /* a family with fewer tasks is left out */
    bool one_legend; /* `legend` is true only for the last family, and the marks of all families are counted together */
    /* Checks that the user's flags have an effect in a family's table; NULL: no check. */
    enum status (*check)(const struct family *s, const struct report_tables *tables, struct error *e);
    /* Fills a sheet for people; `legend`: with notes that explain the marks. */
    void (*fill)(struct sheet *sheet, const struct family *s, const struct report_tables *tables, struct marks *marks,
                 bool legend);
    const char *columns; /* headings of the data sheet */
    void (*fill_data)(struct sheet *sheet, const struct family *s, const struct report_tables *tables);
    const char *nothing; /* sentence of the error if there is no family */
};

/* Makes the sheets of such a report. ST_DATA: `nothing`; ST_MEMORY; for people also errors of `check`. */
enum status family_make(const struct family_report *report, struct sheets *sheets, const struct report_tables *tables,
                        bool data, struct error *e);

/* Begins a data row for a model with the columns FAMILY_COLUMNS. */
#define FAMILY_COLUMNS "schema|profile|task|model|layers|"
void family_begin_row(struct sheet *sheet, const struct family *s, int model);

/* Whether an entry is of that model and that task of the family. */
bool family_is(const struct family *s, const struct family_entry *entry, int model, int task);

/* Whether a key does not distinguish rows: all rows of each task have one value, or it is the task's option. */
bool family_shares(const struct family *s, const char *key);

#endif
