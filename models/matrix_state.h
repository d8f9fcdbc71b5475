/* matrix_state.h - parts that the mixers with a matrix state a head (mamba2, deltanet, deltaproduct, mlstm) share.
 * Private to models/. */
#ifndef LRNN_MODELS_MATRIX_STATE_H
#define LRNN_MODELS_MATRIX_STATE_H

#include "models/model.h"

#define NORM_EPS 1e-5
#define L2_EPS   1e-6

/* silu of the causal depthwise convolution of x with the parameter `name` [C][width] (and bias `bias_name`, or NULL).
 * Drawn from U(-1/sqrt(width), 1/sqrt(width)), the framework's default. */
struct tensor *silu_conv(struct graph *g, struct tensor *x, const char *name, const char *bias_name, int64_t width);

/* Delta = softplus(x + dt.bias) > 0 a head: x (B,T,H). dt.bias: softplus^-1 of a step drawn log-uniform in [0.001,
 * 0.1]. */
struct tensor *time_step(struct graph *g, struct tensor *x);

/* exp(-Delta exp(A.log)) in (0, 1] a head; A.log = log of U(low, 16]. */
struct tensor *time_decay(struct graph *g, struct tensor *delta, double low);

/* The delta rule with its projections: deltanet and deltaproduct. */
struct delta_rule {
    int64_t heads, headdim, steps, conv;
    double beta;
    bool forget, outgate;
};

/* y of the mixer; x (B,T,D). The equations are in deltaproduct.c. */
struct tensor *delta_rule(const struct delta_rule *o, struct graph *g, struct tensor *x);

#endif
