/* state.h - parts that the kernels of the matrix-state recurrences (scan_outer, scan_delta) share: sizes, pointers, and
 * the states that backward needs.
 *
 * A chunk is STATE_CHUNK tokens. Forward stores the state before every chunk in output 1, (B, chunks, heads, dk, dv);
 * these are the kept states. Backward takes the chunks from the last to the first, and computes the states inside a
 * chunk again. Output 1 has no gradient. */
#ifndef LRNN_KERNELS_MATRIX_STATE_H
#define LRNN_KERNELS_MATRIX_STATE_H

#include "kernels/matrix/matrix.h"

#define STATE_CHUNK 16

enum outer_input { OUTER_Q, OUTER_K, OUTER_V, OUTER_DECAY, OUTER_SOURCE, OUTER_MARK, OUTER_DIRECT, OUTER_INPUTS };
enum delta_input { DELTA_Q, DELTA_K, DELTA_V, DELTA_BETA, DELTA_DECAY, DELTA_READ, DELTA_ERASE, DELTA_INPUTS };

struct state_shape {
    /* groups: number of groups of heads with the same q and k; steps: of the delta rule, else 1 */
    int64_t B, T, heads, groups, steps, dk, dv, chunks;
};

/* Returns the number of values of one token: the product of all axes after B and T. */
LRNN_INLINE int64_t token_width(const struct tensor *t) {
    int64_t n = 1;
    for (int i = 2; i < t->rank; i++) n *= t->dims[i];
    return n;
}

LRNN_INLINE struct state_shape state_shape_of(const struct call *c, int64_t heads, int64_t groups, int64_t steps) {
    struct state_shape s = {c->in[0]->dims[0], c->in[0]->dims[1], heads, groups, steps, 0, 0, 0};
    s.dk = token_width(c->in[0]) / groups;
    s.dv = token_width(c->in[2]) / (steps * heads);
    s.chunks = (s.T + STATE_CHUNK - 1) / STATE_CHUNK;
    return s;
}

LRNN_INLINE struct state_shape outer_shape(const struct call *c) {
    const struct outer_attr *a = outer_attr(c);
    return state_shape_of(c, a->heads, a->groups, 1);
}

LRNN_INLINE struct state_shape delta_shape(const struct call *c) {
    const struct delta_attr *a = delta_attr(c);
    return state_shape_of(c, a->heads, a->heads, a->steps);
}

/* Returns the number of decays of a head and token: 0, or 1, or dk if each key channel has one. */
LRNN_INLINE int64_t delta_decays(const struct call *c) {
    return c->in[DELTA_DECAY] ? token_width(c->in[DELTA_DECAY]) / delta_attr(c)->heads : 0;
}

/* Whether the call has beta and at most one decay per head, so that q, k and v are its only vectors. */
LRNN_INLINE bool delta_is_scalar(const struct call *c) {
    return c->in[DELTA_BETA] && delta_decays(c) <= 1;
}
#define DELTA_NOT_SCALAR "it knows one beta and at most one decay a head"

/* Row `index` of a token in input i, or in its gradient. Rows are `width` wide. NULL if the call has no such input. */
LRNN_INLINE const real *value_row(const struct call *c, int i, int64_t token, int64_t index, int64_t width) {
    const struct tensor *t = c->in[i];
    return t ? tensor_real(t) + token * token_width(t) + index * width : NULL;
}

LRNN_INLINE real *gradient_row(const struct call *c, int i, int64_t token, int64_t index, int64_t width) {
    return c->din[i] ? c->din[i] + token * token_width(c->in[i]) + index * width : NULL;
}

/* The gates of scan_outer for one head at one token. A missing source is 1. Without mark, M = T and D = S. */
struct outer_token_gates {
    real T, S, M, D; /* decay, source, mark, direct */
};

LRNN_INLINE struct outer_token_gates outer_gates_at(const struct call *c, int64_t token, int64_t h) {
    const real *decay = value_row(c, OUTER_DECAY, token, h, 1), *source = value_row(c, OUTER_SOURCE, token, h, 1);
    const real *mark = value_row(c, OUTER_MARK, token, h, 1), *direct = value_row(c, OUTER_DIRECT, token, h, 1);
    real S = source ? *source : 1;
    struct outer_token_gates gates = {*decay, S, mark ? *mark : *decay, direct ? *direct : S};
    return gates;
}

/* Returns the kept state (dk x dv) before chunk `chunk` of head h of batch element b. */
LRNN_INLINE real *kept_state(const struct call *c, const struct state_shape *s, int64_t b, int64_t chunk, int64_t h) {
    return tensor_real(c->out[1]) + ((b * s->chunks + chunk) * s->heads + h) * s->dk * s->dv;
}

/* For op->infer: checks that input i is (B,T,...) and `width` wide, which `means` names in errors. NULL passes. */
bool infer_token_width(struct graph *g, const struct call *c, int i, int64_t width, const char *means);

/* For op->infer, after all inputs are checked: creates the output o and the kept states. */
void infer_state_outputs(struct graph *g, struct call *c, const struct state_shape *s);

#endif
