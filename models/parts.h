/* parts.h - declarations that several mixers share. Private to models/. */
#ifndef LRNN_MODELS_PARTS_H
#define LRNN_MODELS_PARTS_H

#include <math.h>

#include "models/model.h"

/* The framework default of a linear map: U[-1/sqrt(fan_in), 1/sqrt(fan_in)), times `gain`. */
static inline struct init init_linear(int64_t fan_in, double gain) {
    double bound = gain / sqrt((double)fan_in);
    return (struct init){.kind = INIT_UNIFORM, .a = -bound, .b = bound};
}

/* The "small" initialisation of pLSTM and mLSTM: N(0, 0.4 / fan). */
static inline struct init init_small(int64_t fan) {
    return (struct init){.kind = INIT_NORMAL, .b = sqrt(0.4 / (double)fan)};
}

/* xLSTM's start of a map whose output is added to the residual stream, N(0, 4 / (layers^2 D)): it shrinks with the
 * number of layers, whose branches are all added up. */
static inline struct init init_of_branch(struct graph *g, int64_t D) {
    const struct graph_builder *now = graph_builder(g);
    double layers = now->layers > 0 ? now->layers : 1;
    return (struct init){.kind = INIT_NORMAL, .b = 2 / (layers * sqrt((double)D))};
}

/* Weight [out][in] that starts from `init`, decayed, stored by `layout`. */
static inline struct tensor *weight_from(struct graph *g, const char *name, int64_t out, int64_t in, struct init init,
                                         struct layout layout) {
    return graph_param(
        g, &(struct param_spec){.name = name, .rank = 2, .dims = {out, in}, .layout = layout, .init = init});
}

/* Weight of a linear map. Its start is the net's (graph_builder's linear_sd), times `gain`. */
static inline struct tensor *weight(struct graph *g, const char *name, int64_t out, int64_t in, double gain,
                                    struct layout layout) {
    double sd = graph_builder(g)->linear_sd;
    struct init normal = {.kind = INIT_NORMAL, .b = sd * gain};
    return weight_from(g, name, out, in, sd > 0 ? normal : init_linear(in, gain), layout);
}

/* Like weight, for a map that has its own start in the reference code: `own`, unless the net sets linear_sd. */
static inline struct tensor *weight_or(struct graph *g, const char *name, int64_t out, int64_t in, struct init own,
                                       struct layout layout) {
    if (graph_builder(g)->linear_sd > 0) return weight(g, name, out, in, 1, layout);
    return weight_from(g, name, out, in, own, layout);
}

/* Vector [n], decayed like the weights (MAD decays every parameter). */
static inline struct tensor *vector(struct graph *g, const char *name, int64_t n, struct init init,
                                    struct layout layout) {
    return graph_param(
        g, &(struct param_spec){
               .name = name, .rank = 1, .dims = {n}, .layout = layout, .init = init, .group = PARAM_VECTOR});
}

#define AS_CONTRACT ((struct layout){0})

/* Vector [n] of a state's dynamics: in the group PARAM_STATE, which papers exempt from decay. */
static inline struct tensor *state_vector(struct graph *g, const char *name, int64_t n, struct init init) {
    return graph_param(g,
                       &(struct param_spec){.name = name, .rank = 1, .dims = {n}, .group = PARAM_STATE, .init = init});
}

/* W x + b with parameters NAME.weight [out][in] and NAME.bias [out], both at the framework's default start. */
struct tensor *affine_map(struct graph *g, struct tensor *x, const char *name, int64_t out);

/* Values of an option `selective`: gates read the token, nothing, or the value of their channel alone. */
enum selective { SELECTIVE_YES, SELECTIVE_NO, SELECTIVE_POINTWISE };

/* The raw gates of a mixer whose gates are normalised: z_t = W_g x_t + b_g, or the constant b_g, or pointwise: gate k
 * of channel c is s_g v_t[c] + b_g with numbers s_g and b_g of its own, so that channels do not mix (H-LRU/BD-LRU
 * paper, appendix E, which leaves open what the gate reads). `gain` multiplies the initial W_g or s_g; `bias` is the
 * layout of gates.bias and gates.scale, `weight` the layout of gates.weight. */
struct gate_map {
    int64_t rows; /* of W_g */
    enum selective selective;
    double gain;
    struct layout bias, weight;
};

/* x (B,T,D), for pointwise gates the values v (B,T,N) -> (B,T,rows), in memory gate by gate. */
struct tensor *mapped_gates(struct graph *g, struct tensor *x, const struct gate_map *r);

/* ST_USAGE: the number of heads does not divide the width. */
enum status check_heads(const char *mixer, int64_t heads, const struct dims *d, struct error *e);

/* ST_USAGE: gate-init is given to gates that have no weights. */
enum status check_gate_start(const char *mixer, enum selective selective, double gate_init, struct error *e);

/* ST_USAGE: the machine's memory is too small for the `floats` that a mixer of sizes d needs for its `what`. `asked`
 * names the mixer and the options on which that number depends, such as "bdlru: blocks=64 m=5". */
enum status check_room(const char *asked, const char *what, double floats, const struct dims *d, struct error *e);

#endif
