/* hippo.c - the spectrum of HiPPO-N in closed form.
 *
 * S = Nm + I/2 is skew with S_ij = sign(j - i) p_i p_j / 2. Let s_i = sum_{j<i} p_j x_j - (sum_j p_j x_j) / 2; row i of
 * S x = lambda x reads s_{i+1} / s_i = (lambda - d_i) / (lambda + d_i), d_i = p_i^2 / 2 = i + 1/2, and s_N = -s_0. So
 * for lambda = i w the product of these N ratios, each -exp(-2 i atan(w / d_n)), is -1; for N even
 *   sum over n < N of atan(w / (n + 1/2)) = (m + 1/2) pi,  m = -N/2 .. N/2 - 1,
 * which increases in w, so each value of m has one root. */
#include "models/hippo.h"

#include <math.h>

/* The positive root for m >= 0. The sum is concave in w > 0, so Newton's steps from 0 never pass the root. */
static double root(int64_t N, int64_t m) {
    double w = 0, step = 1, goal = ((double)m + 0.5) * acos(-1.0);
    for (int i = 0; i < 200 && step > 1e-14 * w; i++) {
        double sum = 0, slope = 0;
        for (int64_t n = 0; n < N; n++) {
            double d = (double)n + 0.5;
            sum += atan(w / d);
            slope += d / (d * d + w * w);
        }
        step = (goal - sum) / slope;
        w += step;
    }
    return w;
}

/* Keeps the last spectrum, because a table of couplings asks for each frequency once per row. */
double hippo_frequency(int64_t half, int64_t j) {
    static _Thread_local int64_t known;
    static _Thread_local double spectrum[HIPPO_MAX];
    for (int64_t i = 0; known != half && i < half; i++) spectrum[i] = -root(2 * half, half - 1 - i);
    known = half;
    return spectrum[j];
}
