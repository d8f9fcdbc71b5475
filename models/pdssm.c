/* pdssm.c - PD-SSM: a complex state that each token permutes, or merges, by a matrix of zeros and ones that it chooses,
 * and scales by a diagonal one.
 *
 *   s = softmax(W_s x)   M[m][n] = sum_k dict[m][n][k] s_k   P: a 1 where M is largest, in each row or column
 *   d = sig(magnitude(x)) exp(2 pi i sig(phase(x)))
 *   row      h_t = d (P h_{t-1}) + B x, h_{-1} = (1, 0, .., 0);   y = W (Re h; Im h) + b + skip x
 *   column   h_t = P (d h_{t-1}) + B x, h_{-1} = 0;               y = Re(C h) + skip x
 *   magnitude, phase: W_2 gelu(W_1 x + b_1) + b_2 in form row, one map in form column; permute=no: P is the identity
 * A column's 1 moves a state on and may merge it with others: any automaton of N states runs on a one-hot h. A row's 1
 * copies a state, so that maps that are no permutations have no such h. The paper proves form column; its table of
 * state tracking was made with form row, and so are the defaults.
 *
 * Terzic et al. 2025 (arXiv 2509.22284); IBM/expressive-sparse-state-space-model: row is state_tracking_PyTorch
 * (models/pdssm.py), column time_series_JAX (models/PDSSM.py), each with its initial values. Both decay everything but
 * the embedding. P is hard, and its gradient the softmax's (kernels/route/route.h). permute=no is the paper's complex
 * diagonal model; whether that one started from (1, 0, .., 0) is not said, here it does in form row. */
#include "kernels/dense/dense.h"
#include "kernels/move/move.h"
#include "kernels/norm/norm.h"
#include "kernels/route/route.h"
#include "models/parts.h"

struct pdssm {
    int64_t state, dict, expand;
    int form; /* enum route_form */
    bool permute;
};

static const struct option options[] = {
    {"state", OPT_INT, offsetof(struct pdssm, state), "auto", 1, 1 << 14, NULL, "complex states N; auto: the width",
     OPT_AUTO},
    {"dict", OPT_INT, offsetof(struct pdssm, dict), "auto", 1, 1 << 16, NULL,
     "matrices K that a token mixes before it chooses; auto: 8, in form column 6", OPT_AUTO},
    {"expand", OPT_INT, offsetof(struct pdssm, expand), "2", 1, 64, NULL,
     "hidden units of magnitude and phase a state, in form row", 0},
    {"form", OPT_CHOICE, offsetof(struct pdssm, form), "row", 0, 0, "row column", "where each matrix has a single 1",
     0},
    {"permute", OPT_BOOL, offsetof(struct pdssm, permute), "yes", 0, 0, NULL, "choose a matrix; no: the identity", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    (void)e;
    struct pdssm *o = inst;
    if (o->state == 0) o->state = d->D;
    if (o->dict == 0) o->dict = o->form == ROUTE_COLUMN ? 6 : 8;
    return ST_OK;
}

static struct init normal(double variance) {
    return (struct init){.kind = INIT_NORMAL, .b = sqrt(variance)};
}

static struct tensor *map(struct graph *g, struct tensor *x, const char *name, int64_t out, double variance) {
    return linear(g, x, weight_from(g, name, out, x->dims[2], normal(variance), AS_CONTRACT), NULL);
}

/* Raw magnitude or phase. */
static struct tensor *generated(const struct pdssm *o, struct graph *g, struct tensor *x, const char *name) {
    int64_t N = o->state, D = x->dims[2];
    graph_scope_push(g, name);
    struct tensor *y;
    if (o->form == ROUTE_ROW) {
        y = affine_map(g, activate(g, affine_map(g, x, "in", o->expand * N), ACT_GELU_ERF), "out", N);
    } else {
        struct tensor *w = weight_or(g, "weight", N, D, normal(1 / (double)D), AS_CONTRACT);
        y = linear(g, x, w, vector(g, "bias", N, normal(1 / (double)N), AS_CONTRACT));
    }
    graph_scope_pop(g);
    return activate(g, y, ACT_SIGMOID);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct pdssm *o = inst;
    bool row = o->form == ROUTE_ROW;
    int64_t N = o->state, D = x->dims[2], K = o->dict;
    struct tensor *dict = NULL, *s = NULL;
    if (o->permute) {
        struct tensor *select = row ? weight(g, "select.weight", K, D, 1, AS_CONTRACT)
                                    : weight_or(g, "select.weight", K, D, normal(1), AS_CONTRACT);
        s = softmax(g, linear(g, x, select, NULL));
        struct param_spec spec = {.name = "dict", .rank = 3, .dims = {N, N, K}, .init = normal(1 / (double)N)};
        spec.layout = (struct layout){3, {N, N, K}, {row, 2, !row}};
        dict = graph_param(g, &spec);
    }
    struct tensor *radius = generated(o, g, x, "magnitude");
    struct tensor *angle = scale_by(g, generated(o, g, x, "phase"), 2 * acos(-1));
    struct tensor *d[] = {mul(g, radius, activate(g, angle, ACT_COS)), mul(g, radius, activate(g, angle, ACT_SIN))};
    double entry = 1 / (2 * (double)(row ? N : D));
    struct tensor *u[] = {map(g, x, "B.re", N, entry), map(g, x, "B.im", N, entry)};
    struct tensor *h_im, *h_re = scan_route(g, (enum route_form)o->form, d, u, dict, s, &h_im);
    if (!h_re) return NULL;
    struct tensor *y = row ? affine_map(g, join_columns(g, h_re, h_im), "readout", D)
                           : sub(g, map(g, h_re, "C.re", D, 1 / (double)N), map(g, h_im, "C.im", D, 1 / (double)N));
    return add(g, y, scale(g, x, vector(g, "skip", D, normal(row ? 1 / (double)D : 1), AS_CONTRACT)));
}

static int64_t state_floats(const void *inst, const struct dims *d) {
    int64_t N = ((const struct pdssm *)inst)->state;
    return 2 * (N ? N : d->D);
}

const struct model model_pdssm = {
    .name = "pdssm",
    .title = "PD-SSM",
    .summary = "complex state, permuted and scaled by matrices that each token chooses (PD-SSM, Terzic et al. 2025)",
    .equation = "h_t = d_t (P_t h_{t-1}) + B x_t;  y_t = W (Re h_t; Im h_t) + b + skip x_t;  |d_t| < 1\n"
                "P_t has a single 1 a row (column), where sum_k dict_k s_k is largest, s = softmax(W_s x_t)",
    .options = options,
    .small = "pdssm:state=7,dict=3 pdssm:state=9,form=column pdssm:expand=1,permute=no "
             "pdssm:state=5,form=column,permute=no",
    .inst_bytes = sizeof(struct pdssm),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
