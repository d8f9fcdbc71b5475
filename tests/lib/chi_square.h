/* chi_square.h - are these counts what chance gives? */
#ifndef LRNN_TESTS_LIB_CHI_SQUARE_H
#define LRNN_TESTS_LIB_CHI_SQUARE_H

#include <math.h>
#include <stdint.h>

/* Pearson's statistic of `bins` equally likely bins as a standard normal deviate (Wilson and Hilferty 1931: the cube
 * root of a chi-square is nearly normal). */
static inline double chi_square_z(const int64_t *count, int bins, int64_t draws) {
    double expected = (double)draws / bins, sum = 0, unit = 2.0 / (9.0 * (bins - 1));
    for (int i = 0; i < bins; i++) sum += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
    return (cbrt(sum / (bins - 1)) - (1 - unit)) / sqrt(unit);
}

/* Like chi_square_z, for bins with the given shares, which sum to 1. Bins that expect fewer than 5 are counted as one.
 */
static inline double chi_square_shares_z(const int64_t *count, const double *share, int bins, int64_t draws) {
    double sum = 0, rest = 0, rest_expected = 0;
    int used = 0;
    for (int i = 0; i < bins; i++) {
        double expected = share[i] * (double)draws, deviation = (double)count[i] - expected;
        if (expected < 5) {
            rest += deviation;
            rest_expected += expected;
        } else {
            sum += deviation * deviation / expected;
            used++;
        }
    }
    if (rest_expected > 0) {
        sum += rest * rest / rest_expected;
        used++;
    } else if (rest != 0) {
        return INFINITY; /* something that cannot happen did */
    }
    double unit = 2.0 / (9.0 * (used - 1));
    return (cbrt(sum / (used - 1)) - (1 - unit)) / sqrt(unit);
}

#endif
