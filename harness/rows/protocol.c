/* protocol.c - see protocol.h. */
#include "harness/rows/protocol.h"

#include <math.h>

#include "core/option.h"

static const struct protocol protocols[] = {
    [PROTOCOL_VAL_MEAN] = {"val-mean", "95% CI or values",
                           "Mean over the seeds at the learning rate that validation chose",
                           "acc (protocol val-mean): test %s averaged over seeds, at the learning rate with the best "
                           "mean validation value.",
                           0.95, 5},
    [PROTOCOL_BEST_OF_GRID] = {"best-of-grid", "grid", "Largest value of all learning rates and seeds",
                               "acc (protocol best-of-grid): the largest test %s of all learning rates and seeds; "
                               "grid: the number of these runs.",
                               0, 0},
    [PROTOCOL_MEAN_CI90] = {"mean-ci90", "90% CI or values",
                            "Mean over the seeds at the learning rate that validation chose",
                            "acc (protocol mean-ci90): test %s averaged over seeds, at the learning rate with the best "
                            "mean validation value, with a t-interval if there are two seeds or more.",
                            0.90, 2},
    [PROTOCOL_IQM] =
        {"iqm", "95% CI or values", "Interquartile mean over the seeds at the learning rate that validation chose",
         "acc (protocol iqm): the interquartile mean of test %s over seeds, at the learning rate with the best "
         "mean validation value, with a bootstrap interval.",
         0.95, 5},
};

static const char *protocol_name(const void *list, int i) {
    return ((const struct protocol *)list)[i].name;
}

enum status protocol_find(const char *name, enum report_protocol *p, struct error *e) {
    int index;
    TRY(name_choose("protocol", name, (int)(sizeof protocols / sizeof *protocols), protocol_name, protocols, &index,
                    e));
    *p = (enum report_protocol)index;
    return ST_OK;
}

const struct protocol *protocol_of(enum report_protocol p) {
    return &protocols[p];
}

static struct interval clipped(struct interval i) {
    i.low = fmin(fmax(i.low, 0), 1);
    i.high = fmin(fmax(i.high, 0), 1);
    return i;
}

double protocol_estimate(enum report_protocol p, const double *value, int n, double best, struct interval *interval) {
    double level = protocols[p].level;
    switch (p) {
    case PROTOCOL_BEST_OF_GRID:
        *interval = (struct interval){NAN, NAN, NAN, INTERVAL_NONE};
        return best;
    case PROTOCOL_MEAN_CI90:
        *interval = stats_t_interval(value, n, level);
        if (interval->kind != INTERVAL_NONE) *interval = clipped(*interval);
        return stats_mean(value, n);
    case PROTOCOL_IQM:
        *interval = stats_iqm_interval(value, &n, 1, level);
        return stats_iqm(value, n);
    case PROTOCOL_VAL_MEAN:
        break;
    }
    *interval = stats_interval(value, n, level, 0, 1);
    return stats_mean(value, n);
}
