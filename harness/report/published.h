/* published.h - the papers' numbers, results/published.csv. */
#ifndef LRNN_HARNESS_PUBLISHED_H
#define LRNN_HARNESS_PUBLISHED_H

#include <stdbool.h>

#include "harness/store/csv.h"
#include "harness/store/record.h"

struct published {
    struct csv_table table; /* rows == 0 when the file was not found */
};

/* Reads OUT/published.csv if it is there, else the one that ships with the program. ST_DATA: damaged, or in no place
 * where it should be; the table is then empty and may be used. */
enum status published_read(struct published *p, const char *out, struct error *e);
void published_free(struct published *p);

/* The published number of the run's task, metric and model, or NAN. A published model "bdlru:m=5" stands for every run
 * of that mixer with those options, written or default, whatever its others are (blocks, layout, gate-init). */
double published_value(const struct published *p, const struct run *run);

#endif
