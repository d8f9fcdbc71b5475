/* protocol.h - how a row's number is made of its runs (docs/papers.md, README.md). */
#ifndef LRNN_HARNESS_ROWS_PROTOCOL_H
#define LRNN_HARNESS_ROWS_PROTOCOL_H

#include <stdint.h>

#include "core/status.h"
#include "harness/rows/stats.h"

/* Has the order of PROTOCOL_NAMES. */
enum report_protocol {
    PROTOCOL_VAL_MEAN, /* mean over the seeds of the rate that validation chose, with the interval rule of stats.h */
    PROTOCOL_BEST_OF_GRID, /* the largest value of all rates and seeds */
    PROTOCOL_MEAN_CI90,    /* as val-mean, with a t-interval of 90 % from two seeds on (pLSTM) */
    PROTOCOL_IQM           /* the interquartile mean over those seeds, with a bootstrap interval (rliable) */
};

#define PROTOCOL_NAMES "val-mean best-of-grid mean-ci90 iqm" /* choices of an option */

struct protocol {
    const char *name;
    const char *heading;  /* of the column beside the number */
    const char *phrase;   /* what the number is, for a row of several tasks */
    const char *sentence; /* what the number is, "%s" being the metric */
    double level;         /* coverage of the interval; 0: it has none */
    int least;            /* seeds that an interval takes */
};

/* The protocol of that name; ST_USAGE with the nearest. */
enum status protocol_find(const char *name, enum report_protocol *p, struct error *e);

const struct protocol *protocol_of(enum report_protocol p);

/* ST_USAGE: `confirm` seeds that are reported on and choose nothing, beside a protocol that takes the best of all. */
enum status protocol_check_confirm(enum report_protocol p, int64_t confirm, struct error *e);

/* The number that stands for the test values of the chosen rate and the best of the grid, and its interval. */
double protocol_estimate(enum report_protocol p, const double *value, int n, double best, struct interval *interval);

#endif
