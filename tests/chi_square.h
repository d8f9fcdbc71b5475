/* chi_square.h - are these counts what chance gives? */
#ifndef LRNN_TESTS_CHI_SQUARE_H
#define LRNN_TESTS_CHI_SQUARE_H

#include <math.h>
#include <stdint.h>

/* Pearson's statistic of `bins` equally likely bins as a standard normal deviate (Wilson and Hilferty 1931: the cube
 * root of a chi-square is nearly normal). */
static inline double chi_square_z(const int64_t *count, int bins, int64_t draws) {
    double expected = (double)draws / bins, sum = 0, unit = 2.0 / (9.0 * (bins - 1));
    for (int i = 0; i < bins; i++) sum += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
    return (cbrt(sum / (bins - 1)) - (1 - unit)) / sqrt(unit);
}

#endif
