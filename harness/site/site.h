/* site.h - the records of a folder as static pages: DIR/index.html with all tasks, a page a table with its curves, a
 * page a run. No script, nothing from elsewhere: they can be put on any server, or opened from a disk. */
#ifndef LRNN_HARNESS_SITE_SITE_H
#define LRNN_HARNESS_SITE_SITE_H

#include "harness/rows/rows.h"

/* Writes the pages of the records that pass the filter. `out` is the folder of the records. Pages of an earlier call
 * are replaced, or go with their pictures; *pictures: figures that are there; *why: the first reason why another one is
 * not, or ST_OK. ST_USAGE: DIR holds something else; other errors as report_tables_make. */
enum status site_write(const struct record_set *set, const struct report_filter *filter, const char *out,
                       const char *dir, int *pages, int *pictures, struct error *why, struct error *e);

#endif
