/* turn.h - sizes that the kernels of running_turn and turn_heads share. */
#ifndef LRNN_KERNELS_TOKEN_TURN_H
#define LRNN_KERNELS_TOKEN_TURN_H

#include "kernels/token/token.h"

enum { TURN_DELTA, TURN_RATE };                         /* inputs of running_turn */
enum { TURN_COSINE, TURN_SINE };                        /* its outputs */
enum { HEADS_X, HEADS_BIAS, HEADS_COSINE, HEADS_SINE }; /* inputs of turn_heads */

#define TURN_PI 3.14159265358979323846

struct turn_size {
    int64_t B, T, H, R, S; /* S: only for turn_heads */
};

LRNN_INLINE struct turn_size running_turn_size(const struct call *c) {
    const struct tensor *delta = c->in[TURN_DELTA];
    struct turn_size s = {delta->dims[0], delta->dims[1], delta->dims[2], c->in[TURN_RATE]->dims[2], 0};
    return s;
}

LRNN_INLINE struct turn_size turn_heads_size(const struct call *c) {
    const struct tensor *x = c->in[HEADS_X];
    int64_t H = c->in[HEADS_BIAS]->dims[0];
    struct turn_size s = {x->dims[0], x->dims[1], H, c->in[HEADS_COSINE]->dims[2] / H, x->dims[2]};
    return s;
}

#endif
