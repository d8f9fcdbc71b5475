/* matrix_state.h - parts that the mixers with a matrix state per head share. Private to models/. */
#ifndef LRNN_MODELS_MATRIX_MATRIX_STATE_H
#define LRNN_MODELS_MATRIX_MATRIX_STATE_H

#include "models/model.h"

#define NORM_EPS 1e-5
#define L2_EPS   1e-6

/* --- parts -------------------------------------------------------------------------------------------------------- */

/* silu of the causal depthwise convolution of x with the parameter `name` [C][width] (and bias `bias_name`, or NULL).
 * Drawn from U(-1/sqrt(width), 1/sqrt(width)), the framework's default. */
struct tensor *silu_conv(struct graph *g, struct tensor *x, const char *name, const char *bias_name, int64_t width);

/* Delta = softplus(raw), raw = x + dt.bias, for x (B,T,H) and dt.bias [H]. dt.bias starts at softplus^-1 of a step that
 * is log-uniform in [0.001, 0.1]. */
struct tensor *time_step(struct graph *g, struct tensor *x, struct tensor **raw);

/* exp(-Delta exp(A.log)) in (0, 1] per head, from both results of time_step; A.log starts at log U(low, 16]. */
struct tensor *time_decay(struct graph *g, struct tensor *delta, struct tensor *raw, double low);

/* W x, the weight [width][D] under `name`. */
struct tensor *projection(struct graph *g, struct tensor *x, const char *name, int64_t width);

/* W x, and with conv > 0 silu(conv(W x)): parameters name.weight and name.conv. */
struct tensor *conv_projection(struct graph *g, struct tensor *x, const char *name, int64_t width, int64_t conv);

/* W_up W_down x, without a bias or with name.up.bias: parameters name.down.weight [rank][D], name.up.weight
 * [width][rank]. */
struct tensor *low_rank(struct graph *g, struct tensor *x, const char *name, int64_t rank, int64_t width, bool biased);

/* x (B,T,H*width) as (B,T,H,width). */
struct tensor *heads_of(struct graph *g, struct tensor *x, int64_t heads);

/* Fills headdim=auto by the largest divisor up to 64 of `inner`, the mixer's inner width. ST_USAGE: headdim does not
 * divide it. */
enum status headdim_check(const char *mixer, int64_t *headdim, int64_t inner, struct error *e);

/* RMSNorm of each head of o (B,T,H*dv) with norm.weight [dv]. */
struct tensor *normed_heads(struct graph *g, struct tensor *o, int64_t heads);

/* --- the delta rules of deltanet, deltaproduct, gated-deltanet, kda and gdn2 -------------------------------------- */

enum delta_decay { DELTA_SOFTPLUS, DELTA_BOUNDED };

/* The options of a delta-rule mixer, and the properties that the mixer fixes. */
struct delta_rule {
    int64_t heads, headdim, expandv, steps, conv; /* headdim is dk, expandv dv / dk; expandv and steps: 0 means 1 */
    double beta;
    bool forget, outgate;
    int64_t rank;  /* of the maps to the decay per channel and to the output gate */
    int decay;     /* enum delta_decay */
    double floor;  /* bounded: log of the least decay */
    bool channels; /* one decay per key channel, and an output gate that is a sigmoid */
    bool vectors;  /* erase and write gates, one per channel, in place of beta */
};

/* Options of kda and gdn2. */
extern const struct option delta_channel_options[];

/* y of the mixer; x (B,T,D). The equations are in the mixers' files. */
struct tensor *delta_rule(const struct delta_rule *o, struct graph *g, struct tensor *x);

/* For model->check: fills headdim and rank, and checks that the machine has memory for the keys. */
enum status delta_check(const char *mixer, struct delta_rule *o, const struct dims *d, struct error *e);

/* For model->state_floats: the matrices S; the windows of the convolutions are not counted. */
int64_t delta_state_floats(const void *rule, const struct dims *d);

#endif
