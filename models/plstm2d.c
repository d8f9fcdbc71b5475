/* plstm2d.c - pLSTM on a grid of height x width nodes (token r*width + s), in four directions whose outputs are summed.
 *
 * Tokens fill the grid row by row. If a sequence does not fill it, all gates of the missing nodes are 0, so nothing
 * comes from them, as from outside the grid. An image that is read row by row is its own grid. A side that is not given
 * follows from the number of the sequence's own tokens, not from the padded length.
 *
 *   q, k, v = affine in x;   D = sig(b) for all directions;   each direction has its own gates, affine in x:
 *   P-mode: S, M = sig, T = tanh(5 .), angle a = sig(b + 0.5/D W x) splits S and T between right and down
 *   D-mode: sources, marks = sig, right, down and turn = tanh(5 .)
 *   gates read all of x, or a slice of D/4H channels each, as in the released code, or nothing (constant); the angle
 *   always reads all of x
 *   y = dk^-1/2 (sum over directions and in-edges M C^T q + D (q.k) v);   out = W_o RMSNorm_head(y)
 *
 * A net of the paper (pLSTM-Vis) has layers of P-mode and D-mode in turn: mode=PD, gates=sliced, form=ref.
 *
 * pLSTM paper (workshop version), section 3.3.1 and Eq. 5; the fused layer of ml-jku/plstm (plstm_2d_layer_fused.py);
 * initialisation of the paper's table 2. */
#include <inttypes.h>

#include "kernels/dense/dense.h"
#include "kernels/move/move.h"
#include "kernels/plstm/plstm.h"
#include "models/plstm.h"

struct plstm2d {
    int64_t height, width, heads;
    int mode, form, chirality, gates;
};

enum { MODE_P, MODE_D, MODE_PD };
enum { FORM_PAPER, FORM_REF };
enum { CHIRALITY_L, CHIRALITY_R };
enum { GATES_DENSE, GATES_SLICED, GATES_BIAS };

static const struct option options[] = {
    {"height", OPT_INT, offsetof(struct plstm2d, height), "auto", 1, 1 << 20, NULL,
     "rows of the grid, height*width the length; auto: the image's, or as each sequence needs", OPT_AUTO},
    {"width", OPT_INT, offsetof(struct plstm2d, width), "auto", 1, 1 << 20, NULL,
     "columns of the grid; auto: the image's, as square as each sequence's length allows, or what height leaves",
     OPT_AUTO},
    {"heads", OPT_INT, offsetof(struct plstm2d, heads), "4", 1, 1 << 16, NULL, "heads H; D must be divisible", 0},
    {"mode", OPT_CHOICE, offsetof(struct plstm2d, mode), "P", 0, 0, "P D PD",
     "transitions: propagation, diffusion, or layer by layer in turn", 0},
    {"form", OPT_CHOICE, offsetof(struct plstm2d, form), "paper", 0, 0, "paper ref",
     "P-mode of the paper's formulas or of the released code", 0},
    {"chirality", OPT_CHOICE, offsetof(struct plstm2d, chirality), "L", 0, 0, "L R", "which turn D-mode keeps", 0},
    {"gates", OPT_CHOICE, offsetof(struct plstm2d, gates), "dense", 0, 0, "dense sliced bias",
     "source, mark and transition read all channels, a slice of D/4H each, or nothing", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    struct plstm2d *o = inst;
    if (!o->height && !o->width) o->height = d->height, o->width = d->width;
    if (o->height && o->width && o->height * o->width != d->T)
        return fail(e, ST_USAGE,
                    "plstm2d: height=%" PRId64 " times width=%" PRId64 " is %" PRId64 ", not the length %" PRId64,
                    o->height, o->width, o->height * o->width, d->T);
    if (o->chirality != CHIRALITY_L && o->mode == MODE_P)
        return fail(e, ST_USAGE,
                    "plstm2d: chirality=R is the turn that diffusion keeps, and mode=P has none; leave it out, or take "
                    "mode=D or PD");
    if (o->gates == GATES_SLICED && d->D % (4 * o->heads))
        return fail(e, ST_USAGE,
                    "plstm2d: gates=sliced cuts dim=%" PRId64 " into 4 * heads = %" PRId64
                    " slices, which do not divide it; choose heads that do, or gates=dense",
                    d->D, 4 * o->heads);
    return check_heads("plstm2d", o->heads, d, e);
}

/* Whether the current layer has P-mode. */
static bool is_p(const struct plstm2d *o, struct graph *g) {
    return o->mode == MODE_P || (o->mode == MODE_PD && graph_builder(g)->layer % 2 == 0);
}

/* Bias [4][H] of the orientation: -2 to 2 over the heads, equal in all directions; a = H. */
static double draw_orientation(struct rng *r, int64_t element, double a, double b) {
    (void)r, (void)b;
    int64_t H = (int64_t)a;
    return H > 1 ? -2 + 4 * (double)(element % H) / (double)(H - 1) : 0;
}

struct raw_gate {
    const char *weight, *bias;
    double start, factor; /* initial bias; factor on W x, 1 except for the angle */
};

/* The biases of all directions and heads: [4H]. */
static struct tensor *raw_bias(const struct plstm2d *o, struct graph *g, const struct raw_gate *gate) {
    int64_t H = o->heads;
    struct init start = {.kind = INIT_CONST, .a = gate->start};
    if (gate->factor != 1) start = (struct init){.kind = INIT_CUSTOM, .a = (double)H, .draw = draw_orientation};
    struct tensor *b = graph_param(
        g, &(struct param_spec){.name = gate->bias, .rank = 2, .dims = {4, H}, .init = start, .group = PARAM_VECTOR});
    return graph_reshape(g, b, 1, (int64_t[]){4 * H});
}

/* factor W x + b of all directions and heads: (B,T,4H). If sliced, each direction and head reads its own slice of x, in
 * the order of the biases. */
static struct tensor *raw(const struct plstm2d *o, struct graph *g, struct tensor *x, const struct raw_gate *gate) {
    int64_t H = o->heads, D = x->dims[2];
    bool angle = gate->factor != 1, sliced = o->gates == GATES_SLICED && !angle;
    if (o->gates == GATES_BIAS && !angle) return repeat_rows(g, raw_bias(o, g, gate), x->dims[0], x->dims[1]);
    int64_t in = sliced ? D / (4 * H) : D;
    struct tensor *w = graph_param(
        g, &(struct param_spec){.name = gate->weight, .rank = 3, .dims = {4, H, in}, .init = {.kind = INIT_ZERO}});
    struct tensor *b = raw_bias(o, g, gate);
    w = graph_reshape(g, w, 2, (int64_t[]){4 * H, in});
    if (sliced) return bias(g, linear_slices(g, x, w), b);
    if (!angle) return linear(g, x, w, b);
    return bias(g, scale_by(g, linear(g, x, w, NULL), gate->factor), b);
}

static struct tensor *gates(const struct plstm2d *o, struct graph *g, struct tensor *x) {
    const struct raw_gate p_mode[] = {{"source.weight", "source.bias", -4, 1},
                                      {"transition.weight", "transition.bias", 1, 1},
                                      {"mark.weight", "mark.bias", -4, 1},
                                      {"orientation.weight", "orientation.bias", 0, 0.5 / (double)x->dims[2]}};
    const struct raw_gate d_mode[] = {{"source.right.weight", "source.right.bias", -4, 1},
                                      {"source.down.weight", "source.down.bias", -4, 1},
                                      {"transition.right.weight", "transition.right.bias", 1, 1},
                                      {"transition.down.weight", "transition.down.bias", 1, 1},
                                      {"transition.turn.weight", "transition.turn.bias", 1, 1},
                                      {"mark.left.weight", "mark.left.bias", -4, 1},
                                      {"mark.top.weight", "mark.top.bias", -4, 1}};
    bool p = is_p(o, g);
    enum grid_form form =
        p ? (o->form == FORM_PAPER ? GRID_P : GRID_P_REF) : (o->chirality == CHIRALITY_L ? GRID_D_LEFT : GRID_D_RIGHT);
    struct tensor *z[7];
    for (int i = 0; i < grid_raw_count(form); i++) z[i] = raw(o, g, x, p ? &p_mode[i] : &d_mode[i]);
    return grid_gates(g, z, form);
}

static struct grid grid_of(const struct plstm2d *o) {
    return (struct grid){.height = o->height, .width = o->width};
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct plstm2d *o = inst;
    int64_t H = o->heads, B = x->dims[0], T = x->dims[1], head = x->dims[2] / H;
    struct grid grid = grid_of(o);
    int64_t width = grid_width(&grid, T), nodes = grid_nodes(&grid, T);
    struct tensor *lengths = graph_builder(g)->lengths;
    bool fixed = o->height && o->width, full = !lengths && nodes == T;
    struct plstm_qkv in = plstm_project(g, x);
    struct tensor *gate = gates(o, g, x);
    if (fixed && !full) gate = rows_in_use(g, gate, lengths, NULL);
    if (!fixed && !full) {
        gate = rows_to_grid(g, gate, lengths, &grid);
        in.q = rows_to_grid(g, in.q, lengths, &grid);
        in.k = rows_to_grid(g, in.k, lengths, &grid);
        in.v = rows_to_grid(g, in.v, lengths, &grid);
    }
    struct tensor *direct = vector(g, "direct.bias", H, (struct init){.kind = INIT_CONST, .a = -6}, AS_CONTRACT);
    struct tensor *D_gate = repeat_rows(g, activate(g, direct, ACT_SIGMOID), B, nodes);
    struct tensor *y = grid_scan(g, in.q, in.k, in.v, gate, D_gate, nodes / width, width, H, 1 / sqrt((double)head));
    if (!fixed && !full) y = rows_from_grid(g, y, lengths, &grid, T);
    return plstm_finish(g, y, H);
}

/* In each direction, a sweep row by row carries one state per column to the next row, and one state along the row. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    const struct plstm2d *o = inst;
    struct grid grid = grid_of(o);
    return 4 * (grid_width(&grid, d->T) + 1) * d->D * (d->D / o->heads);
}

const struct model model_plstm2d = {
    .name = "plstm2d",
    .title = "pLSTM-2D",
    .summary = "pLSTM on a grid: four directions, P-mode or D-mode transitions (pLSTM paper)",
    .equation = "Cr = T_rl l + T_ru u + S_r k v^T;  Cd = T_dl l + T_du u + S_d k v^T;\n"
                "y = dk^-1/2 (sum over 4 directions (M_l l + M_u u)^T q + D (q.k) v);  out = W_o RMSNorm_head(y)",
    .options = options,
    .small = "plstm2d:heads=2 plstm2d:heads=2,form=ref plstm2d:heads=2,mode=D "
             "plstm2d:heads=2,mode=D,chirality=R plstm2d:heads=2,width=3 plstm2d:heads=2,height=2,mode=D "
             "plstm2d:heads=1,mode=PD,gates=sliced,form=ref plstm2d:heads=1,mode=D,gates=sliced "
             "plstm2d:heads=2,gates=bias",
    .inst_bytes = sizeof(struct plstm2d),
    .causal = false,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
