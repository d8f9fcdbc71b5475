/* backbone.h - the nets around a mixer, by --backbone: what net.c puts between embedding and read-out. */
#ifndef LRNN_MODELS_BACKBONE_H
#define LRNN_MODELS_BACKBONE_H

#include "models/model.h"

enum mlp_kind { MLP_NONE, MLP_SWIGLU, MLP_GELU };
enum norm_kind { NORM_RMS, NORM_LAYER };
enum backbone_kind {
    BACKBONE_MAD_LM,
    BACKBONE_SLICE,
    BACKBONE_SLICE_GLU,
    BACKBONE_STACKED,
    BACKBONE_S5,
    BACKBONE_SLICE_PAPER,
    BACKBONE_VISION,
    BACKBONE_SLICE_XLSTM,
    BACKBONE_SLICE_TRANSFORMER
};
enum positions { POSITIONS_NONE, POSITIONS_LEARNT };
enum encoder { ENCODER_AFFINE, ENCODER_LINEAR };
enum pooled_rows { FROM_LAST, FROM_MEAN, FROM_ROOT, FROM_CORNERS }; /* what one label a sequence is read from */

struct backbone {
    int64_t dim, layers;       /* D; number of layers, each a mixer and an MLP */
    int mlp, norm, kind, pool; /* the enums above */
    int positions;             /* the enum above: of an image's grid */
    int encoder;               /* the enum above: of values */
    double dropout;            /* on each residual branch; training only */
    bool bidirectional;        /* a second mixer a layer on the reversed sequence, added to a causal one */
    bool degree_code;          /* the code of a node's number of neighbours is added to its embedding */
    double ssm_lr_factor;      /* s5: rate of PARAM_STATE and PARAM_NORM, as a part of the others' */
};

extern const struct option backbone_options[]; /* dim, layers, mlp, norm, backbone, dropout, pool, bidirectional, ... */

/* The net that is meant for a mixer: slice-paper is another name for one by mixer, and where a net is not built as
 * --mlp says, it has none of those MLPs or, like slice-transformer, always the same. */
struct backbone backbone_resolved(const struct backbone *b, const struct model *m);

/* Whether the layers of a resolved net are built as --mlp and --norm say; the others have parts of their own. */
bool backbone_takes_parts(const struct backbone *resolved);

/* How the optimiser treats a group of a net's parameters; the table of backbone.c says why. */
struct param_rule {
    bool decays; /* by --decay */
    double rate; /* as a part of --lr */
};
struct param_rule backbone_param_rule(const struct backbone *b, enum param_group group);

/* x + branch, not yet added: a norm of the sum does that in the same pass. No branch: x alone. */
struct residual {
    struct tensor *x, *branch;
};

/* What tells one kind of net from the others. */
struct backbone_traits {
    struct residual (*layer)(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                             struct residual r, bool last);
    /* Of a layer that has one: its norm (pre-norm), what is added behind the mixer (post-norm), and the MLP of --mlp
     * gelu (pre-norm). */
    struct tensor *(*norm)(struct graph *g, const struct backbone *b, const char *name, struct residual *r);
    struct tensor *(*branch)(struct graph *g, const struct backbone *b, struct tensor *z, int64_t D);
    struct tensor *(*gelu)(struct graph *g, const struct backbone *b, struct tensor *x);
    bool as_asked;       /* its norms and MLPs are those of --norm and --mlp */
    bool ends_in_norm;   /* that norm once more before the head */
    bool zero_biases;    /* at first; else like weights */
    bool small_maps;     /* from outside and to the logits: N(0, 0.4 / inputs), else the framework's default */
    bool has_ssm_rate;   /* state parameters and norms learn at --ssm-lr-factor of the rate */
    double embedding_sd; /* of the table of vectors at first */
    unsigned decays;     /* 1 << enum param_group of each group that --decay acts on */
};
const struct backbone_traits *backbone_traits(const struct backbone *b);

/* One layer under the name layers.INDEX; b is resolved. */
struct residual backbone_layer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                               int64_t index, struct residual r);

/* Whether a layer has a second mixer on the reversed sequence: one that looks both ways already needs none. */
bool backbone_doubles(const struct backbone *b, const struct model *m);

struct tensor *residual_sum(struct graph *g, struct residual r);

/* The norm of the sum under that name, by enum norm_kind. The sum becomes r->x, without a branch. */
struct tensor *residual_norm(struct graph *g, int kind, const char *name, struct residual *r);

/* W x + b under that name, W from init and b as the backbone's biases. */
struct tensor *affine(struct graph *g, const struct backbone *b, const char *name, struct tensor *x, int64_t out,
                      struct init init);

#endif
