/* model.h - a sequence mixer: (B,T,D) -> (B,T,D) inside a net (models/net.h). One file per mixer, one line in
 * list.def. */
#ifndef LRNN_MODELS_MODEL_H
#define LRNN_MODELS_MODEL_H

#include "core/builder.h"
#include "core/option.h"

struct dims {
    int64_t B, T, D;
    int64_t height, width;   /* the tokens are the pixels of such an image, row by row; 0: no image */
    struct links_size links; /* room for the links of an example that is a graph; 0: no graph */
    int64_t layer;           /* the current layer, from 0; only state_floats reads it */
};

struct model {
    const char *name;             /* "bdlru" */
    const char *title;            /* as people write it, "BD-LRU"; NULL: its name */
    const char *summary;          /* one line, ends with the paper's short cite */
    const char *equation;         /* ASCII, may have several lines */
    const struct option *options; /* the keys after the mixer's name; ends with name == NULL */
    size_t inst_bytes;            /* size of the parsed options; at most MODEL_INST_BYTES */
    bool causal;                  /* output at t depends on inputs up to t only */
    bool takes_rows_before;       /* the net may have rows before its tokens (graph_builder.rows_before) */
    const char *small;            /* labels of its variants at small sizes, for the tests, separated by blanks */
    bool hidden;                  /* the template: tested like the others, not shown by `lrnn list` */
    /* Names of the mixer's parameters that its authors exempt from decay, besides the group PARAM_STATE, separated by
     * blanks; only --decay-all no reads them. */
    const char *undecayed;
    int version; /* raised when bits of its trainings change; 0 means 1 (harness/study/numerics.h) */

    /* Checks that the options fit the sizes, and fills OPT_AUTO fields that are 0; a mixer on a grid fills them with
     * the image's sides. ST_USAGE names both numbers. */
    enum status (*check)(void *inst, const struct dims *d, struct error *e);
    /* Calls the mixer's ops in the order of its equations and returns y. Declares its parameters by their contract
     * names with initialisers. Computes nothing. If it adds a term to the training loss, it calls graph_keep_term. */
    struct tensor *(*build)(const void *inst, struct graph *g, struct tensor *x);
    /* Floats of recurrent state per sequence and layer. */
    int64_t (*state_floats)(const void *inst, const struct dims *d);
    /* For a mixer with more nodes than tokens (a tree); else both are NULL. `nodes` gives the number of nodes for T
     * tokens and fills options that are auto; the backbone then takes the nodes as the length. `append` is called
     * before the first layer. It makes (B,T,D) -> (B,nodes,D), the tokens first, and says in
     * graph_builder(g)->row_first which rows have a token below them. The head reads only the tokens, unless --pool top
     * reads the uppermost levels. */
    enum status (*nodes)(void *inst, int64_t T, int64_t *nodes, struct error *e);
    struct tensor *(*append)(const void *inst, struct graph *g, struct tensor *x);
    /* Whether xLSTM's nets give the layer an MLP: they do after sLSTM, which has no maps to another width
     * and back. NULL: no layer gets one. */
    bool (*takes_mlp)(const void *inst, int64_t layer);
    /* For a mixer whose layers differ: the number of layers after which they are the same again. NULL: 1. */
    int64_t (*period)(const void *inst);
};

#define MODEL_INST_BYTES 512

/* Whether --decay-all no exempts a parameter of a net with this mixer: one of PARAM_STATE or of `undecayed`. */
bool model_exempts(const struct model *m, const struct param *p);

const struct model *const *model_list(void); /* NULL-terminated */
const struct model *model_find(const char *name);

/* A mixer with its parsed options; fitted once model_fit has filled the sizes. */
struct model_choice {
    const struct model *model;
    int64_t tokens;   /* length of the sequences that it is fitted to; 0: not fitted */
    struct dims dims; /* the sizes as the mixer sees them: T is its number of nodes */
    _Alignas(16) unsigned char inst[MODEL_INST_BYTES];
};

/* Parses "bdlru:m=5,blocks=32". ST_USAGE: unknown name or option, with the nearest one. */
enum status model_parse(struct model_choice *choice, const char *text, struct error *e);

/* Fits the mixer to d->B sequences of d->T tokens of width d->D: sets `tokens` and `dims`, fills options at auto. A
 * choice is fitted once; for another length, fit a copy of the parsed choice. ST_USAGE names the numbers that do not
 * fit. */
enum status model_fit(struct model_choice *choice, const struct dims *d, struct error *e);

#endif
