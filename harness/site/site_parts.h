/* site_parts.h - what the files site_*.c share: a site in the making, and the data files that each of them writes. */
#ifndef LRNN_HARNESS_SITE_SITE_PARTS_H
#define LRNN_HARNESS_SITE_SITE_PARTS_H

#include "harness/rows/rows.h"

#define STEM_BYTES 96

struct history; /* harness/store/history.h */

struct site {
    const struct record_set *set;
    const char *out, *dir;
    bool part; /* of some records alone, so that it has no tables of papers */
    struct report_tables tables;
    int files;    /* written so far */
    double bytes; /* of them */
};

/* The tables of a task, one per profile, whose rows lie one after another. */
struct task_rows {
    const struct report_table *tables;
    const struct report_row *rows;
    int n_tables, n, n_runs;
};

/* Names a task in files and links: itself where it is letters, digits and hyphens, else its name alone and six digits
 * of a hash. */
void task_stem(const char *task, char stem[STEM_BYTES]);

/* Begin a data file, and write it to DIR/data/NAME.js: site("NAME",{...}). */
enum status script_begin(struct printed *p, const char *name, struct error *e);
enum status script_write(struct site *site, struct printed *p, const char *name, struct error *e);

/* Write task-STEM.js; papers.js, the plans' tables; history.js, with a line on each of a history's broken ones. */
enum status site_write_task(struct site *site, const struct task_rows *task, struct error *e);
enum status site_write_papers(struct site *site, struct error *e);
enum status site_write_history(struct site *site, const struct history *h, const char *broken, struct error *e);

#endif
