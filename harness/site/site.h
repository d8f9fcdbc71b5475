/* site.h - the records of a folder as pages for a browser, which can be put on any server or opened from a disk.
 *
 * DIR has a page per kind (index, task, mixer, compare, run, papers, history), a style sheet and two scripts, all from
 * web/, and data/: index.js with every row, task-STEM.js with a task's rows, runs and curves, papers.js, machines.js,
 * history.js. The scripts draw a page from them; every statistic is made here, by harness/rows. */
#ifndef LRNN_HARNESS_SITE_SITE_H
#define LRNN_HARNESS_SITE_SITE_H

#include "harness/rows/rows.h"
#include "harness/store/history.h"

struct site_request {
    const struct record_set *set;
    const struct report_filter *filter; /* NULL: all records */
    const char *out;                    /* the folder of the records */
    const char *dir;                    /* of the site */
    const char *broken;                 /* a line on each record that was left out: report_load_sound */
    const struct history *history;      /* of gates (harness/store/history.h) */
    const char *broken_history;         /* a line on each of its broken lines */
};

/* Writes the site; what is there of an earlier call is replaced. *files and *bytes: how much it is. ST_USAGE: DIR holds
 * something else; other errors as report_tables_make. */
enum status site_write(const struct site_request *r, int *files, double *bytes, struct error *e);

#endif
