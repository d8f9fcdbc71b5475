/* protocol.h - a protocol is how a row's number is computed from its runs (docs/papers.md, README.md). */
#ifndef LRNN_HARNESS_ROWS_PROTOCOL_H
#define LRNN_HARNESS_ROWS_PROTOCOL_H

#include <stdint.h>

#include "core/status.h"
#include "harness/rows/stats.h"

/* In the order of PROTOCOL_NAMES. */
enum report_protocol {
    /* mean over the seeds at the rate that validation chose, with the interval of stats_interval */
    PROTOCOL_VAL_MEAN,
    PROTOCOL_BEST_OF_GRID, /* the largest value over all rates and seeds */
    PROTOCOL_MEAN_CI90,    /* like val-mean, with a 90 % t-interval from two seeds on (pLSTM) */
    PROTOCOL_IQM /* interquartile mean over the seeds at the chosen rate, with a bootstrap interval (rliable) */
};

#define PROTOCOL_NAMES "val-mean best-of-grid mean-ci90 iqm" /* choices of an option */
#define PROTOCOL_HELP                                                                                                  \
    "how the runs of a row give its number. val-mean, mean-ci90 and iqm use the learning rate that validation chose: " \
    "val-mean = mean over seeds, mean-ci90 = this mean with a 90 % interval, iqm = interquartile mean over seeds. "    \
    "best-of-grid = the largest value over all rates and seeds"

struct protocol {
    const char *name;
    const char *heading;  /* heading of the column next to the number */
    const char *phrase;   /* explains the number of a row over several tasks */
    const char *sentence; /* explains the number; "%s" is the metric */
    double level;         /* coverage of the interval; 0: it has none */
    int least;            /* least number of seeds for an interval */
};

/* Finds a protocol by name. ST_USAGE: there is none; the message suggests the nearest. */
enum status protocol_find(const char *name, enum report_protocol *p, struct error *e);

const struct protocol *protocol_of(enum report_protocol p);

/* Gives the reason for which --confirm-seeds does not fit best-of-grid. That flag lets some seeds choose the rate and
 * reports the others. */
#define PROTOCOL_KEEPS_NO_SEEDS                                                                                        \
    "--confirm-seeds with --protocol best-of-grid: the largest value of all rates and seeds is of no seeds that are "  \
    "kept apart"

/* Returns the protocol's number and its interval. `value` has the test values at the chosen rate, and `best` is the
 * best of the grid. */
double protocol_estimate(enum report_protocol p, const double *value, int n, double best, struct interval *interval);

#endif
