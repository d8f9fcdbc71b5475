/* flow_terms.c - the size of the terms of the bounded scans' gradients, for the tests (struct op, terms).
 *
 * A step near its bound multiplies a gradient by 1 - q^2, q = (y_t - y_{t-1}) / c. The rounding of y gives this factor
 * an error of |y_t| / c units, however small the factor is. So the adjoint is walked in magnitudes, and each step
 * multiplies by its slope plus |y_t| / c. Without a bound nothing cancels in this way; then the terms are 0, and the
 * largest result is the scale. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/flow/clip.h"
#include "kernels/flow/flow_output.h"

/* One step of one sequence. g: magnitudes of the gradient of the step's move, D of them; and the state before the
 * step. */
struct step {
    const struct call *c;
    int64_t token, D;
    const double *g;
    const real *before;
};

static double magnitude(const struct call *c, int input, int64_t at) {
    return fabs((double)tensor_real(c->in[input])[at]);
}

/* scan_flow: to[j] += sum_i |A_ij| g_i of each block. Returns the largest term of dA. */
static double flow_step(const struct step *s, double *to, int input) {
    const struct flow_attr *at = flow_attr(s->c);
    int64_t N = at->N, m = at->m;
    double most = 0;
    for (int64_t k = 0; k < N; k++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < m; j++) {
                double g = s->g[k * m + i];
                to[k * m + j] += magnitude(s->c, 0, ((s->token * m + i) * m + j) * N + k) * g;
                most = fmax(most, g * fabs((double)s->before[k * m + j]));
            }
    return input == 0 ? most : 0;
}

/* scan_dplr: the largest term of dd, dU or dV. */
static double dplr_step(const struct step *s, double *to, int input) {
    int64_t D = s->D, r = s->c->in[1]->dims[2] / D;
    double most = 0, largest = 0, state = 0;
    for (int64_t i = 0; i < D; i++) {
        double y = fabs((double)s->before[i]);
        to[i] += magnitude(s->c, 0, s->token * D + i) * s->g[i];
        if (input == 0) most = fmax(most, s->g[i] * y);
        largest = fmax(largest, s->g[i]);
        state = fmax(state, y);
    }
    for (int64_t q = 0; q < r; q++) {
        int64_t row = (s->token * r + q) * D;
        double p = 0, z = 0;
        for (int64_t i = 0; i < D; i++) p += magnitude(s->c, 1, row + i) * s->g[i];
        for (int64_t i = 0; i < D; i++) z += magnitude(s->c, 2, row + i) * fabs((double)s->before[i]);
        for (int64_t i = 0; i < D; i++) to[i] += magnitude(s->c, 2, row + i) * p;
        if (input == 1) most = fmax(most, largest * z);
        if (input == 2) most = fmax(most, state * p);
    }
    return most;
}

/* scan_hadamard: the largest term of dd. */
static double hadamard_step(const struct step *s, double *to, int input) {
    double sum = 0, most = 0;
    for (int64_t i = 0; i < s->D; i++) sum += s->g[i] / sqrt((double)s->D);
    for (int64_t i = 0; i < s->D; i++) {
        to[i] += magnitude(s->c, 0, s->token * s->D + i) * sum;
        most = fmax(most, sum * fabs((double)s->before[i]));
    }
    return input == 0 ? most : 0;
}

/* Computes one step t > 0 back in time at `token`. carry has the magnitudes of the gradient of y_t, and gets those of
 * y_{t-1} without the incoming gradient. */
static double walk_back(const struct call *c, int64_t token, int64_t D, double *carry, double *g, int input) {
    double clip = flow_attr(c)->clip;
    const real *y = tensor_real(c->out[0]) + token * D;
    for (int64_t i = 0; i < D; i++) g[i] = carry[i] * (clip_slope(y[i], y[i - D], clip) + fabs((double)y[i]) / clip);
    const struct step s = {c, token, D, g, y - D};
    if (c->op == &op_scan_flow) return flow_step(&s, carry, input);
    if (c->op == &op_scan_dplr) return dplr_step(&s, carry, input);
    return hadamard_step(&s, carry, input);
}

double flow_terms(const struct call *c, enum pass pass, int j) {
    if (pass == PASS_FORWARD || flow_attr(c)->clip == 0) return 0;
    const struct tensor *y = c->out[0];
    int64_t B = y->dims[0], T = y->dims[1], D = y->dims[2];
    int y0 = c->op == &op_scan_dplr ? 3 : 1;
    double most = 0, *carry = calloc((size_t)(2 * D), sizeof *carry);
    for (int64_t b = 0; carry && b < B; b++) {
        memset(carry, 0, (size_t)D * sizeof *carry);
        for (int64_t t = T - 1; t >= 0; t--) {
            int64_t token = b * T + t;
            for (int64_t i = 0; i < D; i++) carry[i] += fabs((double)call_dout(c, 0)[token * D + i]);
            if (t > 0) most = fmax(most, walk_back(c, token, D, carry, carry + D, j));
        }
        for (int64_t i = 0; j == y0 && i < D; i++) most = fmax(most, carry[i]);
    }
    free(carry);
    return most;
}
