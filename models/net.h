/* net.h - the common net around a mixer: embedding or linear encoder, [norm, mixer, +, norm, MLP, +] x layers, read-out
 * and loss. */
#ifndef LRNN_MODELS_NET_H
#define LRNN_MODELS_NET_H

#include "models/backbone.h"

/* Checks that the flags of the net fit each other and the mixer. ST_USAGE says which do not. */
enum status net_check(const struct backbone *b, const struct model *m, struct error *e);

/* The read-out of a net: every position, each sequence through one vector, or every position decoded from one vector
 * (MAD's auto-encoder). */
enum readout { READOUT_POSITIONS, READOUT_SEQUENCE, READOUT_DECODED };

/* A task's demands on a net. */
struct net_shape {
    int64_t B, T;
    int64_t documents;          /* per example: 0 and 1 mean one; 2: a pair with one label */
    int64_t vocab_in, channels; /* number of input ids; 0: the input is values, `channels` per position */
    int64_t vocab_out;
    int64_t height, width;   /* of an image in training, if its positions are in row order; 0: no image */
    bool reordered;          /* the T positions are an image in another order; all images have one size */
    struct links_size links; /* room for the links of an example; 0: there are none */
    enum readout readout;
};

/* A built net: tensors of one graph. */
struct net {
    struct tensor *input;   /* (B,T) ids or (B,T,C) values, filled by the caller; for pairs (2B,T), where first and
                               second documents alternate */
    struct tensor *lengths; /* (B), for pairs (2B): tokens in use of each sequence, filled by the caller */
    struct tensor *links;   /* (B, links_words), filled by the caller; NULL: examples are no graphs */
    struct tensor *targets; /* (B,T), per sequence (B,1): ids or IGNORED, filled by the caller */
    struct tensor *logits;  /* shape of targets, with a last axis V */
    struct tensor *loss;    /* [1], the task's loss: the mean over scored positions. The root of an evaluation graph; in
                                   training the root is its sum with the mixers' terms */
    struct tensor *predictions; /* ids, shape of targets */
};

/* Builds embedding or encoder, layers, read-out and loss on the graph. backbone.c has the equations of the backbones,
 * net.c the read-outs. Parameter names: embedding (for values: encoder.weight and, with a bias, encoder.bias),
 * positions, class, layers.I.norm.weight, layers.I.mixer.* (layers.I.mixer_back.* reads the reversed sequence),
 * layers.I.scale of a branch that is scaled, layers.I.mlp_norm.weight, layers.I.mlp.*, layers.I.mlp_scale, norm.weight,
 * decoder.I.*, head.weight, head.bias. `fitted` is the mixer fitted to the shape's sequences (model_fit); ST_FAIL: it
 * is not. ST_USAGE: as net_check. */
enum status net_build(struct net *net, struct graph *g, const struct backbone *b, const struct model_choice *fitted,
                      const struct net_shape *shape, struct error *e);

/* Floats of recurrent state of a sequence, over all layers and both directions. */
int64_t net_state_floats(const struct backbone *b, const struct model_choice *fitted);

/* Whether outputs at t depend on inputs up to t only. */
bool net_causal(const struct backbone *b, const struct model_choice *choice);

#endif
