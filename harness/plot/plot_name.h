/* plot_name.h - what the files of a table's figures are called. */
#ifndef LRNN_HARNESS_PLOT_PLOT_NAME_H
#define LRNN_HARNESS_PLOT_PLOT_NAME_H

#include "harness/rows/rows.h"

#define PLOT_STEM_BYTES 256

/* The name without its ending of the figure of that kind of table i: the shortest of the task's name, with its options,
 * its profile or both, that no other table has; where each of them is another's too, with the hash behind it. */
void plot_stem(const struct report_tables *tables, int i, const char *kind, char stem[PLOT_STEM_BYTES]);

/* Six digits of the hash of a table's task and profile, whole and as they are, for files that are called by both in
 * plain letters: two may look alike then. */
#define PLOT_HASH_BYTES 7
void plot_table_hash(const struct report_table *t, char hash[PLOT_HASH_BYTES]);

#endif
