/* xlstm.c - xLSTM[m:s]: m layers with the mixer mlstm, then s with slstm, and so on.
 *
 * Beck et al. 2024 (xLSTM), section 2.4: the ratio of the two kinds of blocks; [1:0] is all mLSTM, [0:1] all sLSTM. In
 * their code any block may be sLSTM (NX-AI/xlstm, slstm_at); their runs on parity have two blocks, mLSTM first. Their
 * net is --backbone xlstm. */
#include "models/xlstm.h"

struct xlstm {
    struct xlstm_cell cell; /* must be first: mlstm and slstm read it as their options */
    int64_t m, s;
};

static const struct option options[] = {
    {"m", OPT_INT, offsetof(struct xlstm, m), "1", 0, 256, NULL, "layers of mLSTM in a row", 0},
    {"s", OPT_INT, offsetof(struct xlstm, s), "1", 0, 256, NULL, "layers of sLSTM that follow them", 0},
    {"heads", OPT_INT, offsetof(struct xlstm, cell.heads), "4", 1, 1 << 16, NULL, "heads; must divide the width", 0},
    {"conv", OPT_INT, offsetof(struct xlstm, cell.conv), "4", 1, 64, NULL, "width of the causal convolutions", 0},
    {0}};

extern const struct model model_mlstm, model_slstm;

static int64_t period(const void *inst) {
    const struct xlstm *o = inst;
    return o->m + o->s;
}

static const struct model *mixer_of(const void *inst, int64_t layer) {
    const struct xlstm *o = inst;
    return layer % period(o) < o->m ? &model_mlstm : &model_slstm;
}

static enum status check(void *inst, const struct dims *d, struct error *e) {
    struct xlstm *o = inst;
    if (o->m + o->s == 0)
        return fail(e, ST_USAGE, "xlstm: m=0 and s=0 leave every layer without a mixer; give one of them a number");
    if (o->m > 0) TRY(model_mlstm.check(&o->cell, d, e));
    return o->s > 0 ? model_slstm.check(&o->cell, d, e) : ST_OK;
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    return mixer_of(inst, graph_builder(g)->layer)->build(inst, g, x);
}

static int64_t state_floats(const void *inst, const struct dims *d) {
    return mixer_of(inst, d->layer)->state_floats(inst, d);
}

static bool takes_mlp(const void *inst, int64_t layer) {
    return mixer_of(inst, layer) == &model_slstm;
}

const struct model model_xlstm = {
    .name = "xlstm",
    .title = "xLSTM",
    .summary = "layers of mLSTM and of sLSTM in turn (xLSTM[m:s], Beck et al. 2024)",
    .equation = "layer l is mlstm where l mod (m + s) < m, else slstm",
    .options = options,
    .small = "xlstm:heads=3 xlstm:m=0,s=1,heads=2",
    .inst_bytes = sizeof(struct xlstm),
    .causal = true,
    .undecayed = "recurrent.weight bias gates.bias conv.bias norm.weight skip",
    .check = check,
    .build = build,
    .state_floats = state_floats,
    .takes_mlp = takes_mlp,
    .period = period,
};
