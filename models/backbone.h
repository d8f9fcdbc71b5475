/* backbone.h - the nets around a mixer, by --backbone: the layers between embedding and read-out (net.c). */
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
    BACKBONE_SLICE_TRANSFORMER,
    BACKBONE_XLSTM,
    BACKBONE_COUNT
};
enum positions { POSITIONS_NONE, POSITIONS_LEARNT };
enum encoder { ENCODER_AFFINE, ENCODER_LINEAR };
enum pooled_rows {
    FROM_LAST,
    FROM_MEAN,
    FROM_ROOT,
    FROM_CORNERS,
    FROM_CLASS
}; /* the rows that the label of a sequence is read from */

struct backbone {
    int64_t dim, layers;       /* D; number of layers, each a mixer and an MLP */
    int mlp, norm, kind, pool; /* the enums above */
    int positions;             /* the enum above: vectors for the positions of an image */
    int encoder;               /* the enum above, for inputs of values */
    double dropout;            /* on each residual branch; training only */
    double layer_scale;        /* start of the learnt vector that scales each branch; 0: no scaling */
    int64_t top_levels;        /* uppermost levels of a tree whose mean --pool top reads */
    bool bidirectional;        /* each causal mixer gets a second mixer on the reversed sequence, which is added */
    bool degree_code;          /* the code of a node's number of neighbours is added to its embedding */
    double ssm_lr_factor;      /* s5: rate of PARAM_STATE and PARAM_NORM over the rate of the others */
};

extern const struct option backbone_options[]; /* dim, layers, mlp, norm, backbone, dropout, pool, bidirectional, ... */

/* The net that is built for a mixer: slice-paper becomes the net that the paper puts around that mixer. A net that
 * ignores --mlp gets its own MLP (slice-transformer) or none. */
struct backbone backbone_resolved(const struct backbone *b, const struct model *m);

/* Whether the layers of a resolved net are built as --mlp and --norm say; other nets have their own parts. */
bool backbone_takes_parts(const struct backbone *resolved);

/* The optimiser's treatment of a group of a net's parameters; the table in backbone.c gives the reasons. */
struct param_rule {
    bool decays; /* --decay acts on them */
    double rate; /* a factor on --lr */
};
struct param_rule backbone_param_rule(const struct backbone *b, enum param_group group);

/* The sum x + branch, not yet computed, because the norm that follows adds them in its own pass. branch NULL: x. */
struct residual {
    struct tensor *x, *branch;
};

/* The properties that tell one kind of net from the others. */
struct backbone_traits {
    struct residual (*layer)(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                             struct residual r, bool last);
    /* Parts of a layer, each where the layer has it: its norm (pre-norm), the branch added after the mixer (post-norm),
     * and the MLP of --mlp gelu (pre-norm). */
    struct tensor *(*norm)(struct graph *g, const struct backbone *b, const char *name, struct residual *r);
    struct tensor *(*branch)(struct graph *g, const struct backbone *b, struct tensor *z, int64_t D);
    struct tensor *(*gelu)(struct graph *g, const struct backbone *b, struct tensor *x);
    bool as_asked;     /* --norm and --mlp choose its norms and MLPs */
    bool ends_in_norm; /* one more norm before the head */
    bool zero_biases;  /* biases start at 0; else like weights */
    bool small_maps;   /* maps of values, and to logits, start at N(0, 0.4 / inputs); else at the framework's default */
    bool has_ssm_rate; /* state parameters and norms learn at --ssm-lr-factor of the rate */
    double embedding_sd; /* the tokens' vectors start at N(0, embedding_sd^2); 0: at N(0, 0.4 / D) */
    unsigned decays;     /* bits 1 << enum param_group of the groups that --decay acts on */
    int version;         /* raised when the bits of its trainings change; 0 means 1 (harness/study/numerics.h) */
};
const struct backbone_traits *backbone_traits(const struct backbone *b);

/* Builds one layer under the name layers.INDEX; b is resolved. */
struct residual backbone_layer(struct graph *g, const struct backbone *b, const struct model_choice *choice,
                               int64_t index, struct residual r);

/* Whether a layer has a second mixer on the reversed sequence; a mixer that looks both ways needs none. */
bool backbone_doubles(const struct backbone *b, const struct model *m);

struct tensor *residual_sum(struct graph *g, struct residual r);

/* The norm (enum norm_kind) of r's sum, with parameters under `name`. Stores the sum in r->x and clears r->branch. */
struct tensor *residual_norm(struct graph *g, int kind, const char *name, struct residual *r);

/* W x + b with parameters under `name`; W starts from init and b like the backbone's biases. */
struct tensor *affine(struct graph *g, const struct backbone *b, const char *name, struct tensor *x, int64_t out,
                      struct init init);

#endif
