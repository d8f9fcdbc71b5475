/* plstm.c - pLSTM on sequences: a matrix state per head, with source, transition, mark and direct gates.
 *
 *   q, k, v = affine in x       S, M = sig(b + W x)      D = sig(b)       T = tanh(5 (b + W x))
 *   y_t = dk^-1/2 (M_t C_{t-1}^T q_t + D (q_t.k_t) v_t)        C_t = T_t C_{t-1} + S_t k_t v_t^T
 *   out = W_o RMSNorm_head(y)
 * One state per head is scan_outer, the recurrence of Mamba2 with other gates. track = J > 1 keeps J states per head: S
 * and M have J entries, T = expm(L - L^T) diag(tanh(5 z)) expm(R - R^T).
 *
 * The released code starts J > 1 at an exact saddle: all J states are equal, and the gradient moves them alike. Here
 * the weights of S and M start at N(0, s^2), and numbers from N(0, s^2) are added to the biases of L and R, with s =
 * `track-init`.
 *
 * pLSTM paper (workshop version), Eq. 1, 2, App. D.6 and D.7; gates, norm and initialisation as the released 1D layer
 * (ml-jku/plstm, config/plstm_1d_layer.py). */
#include "kernels/dense/dense.h"
#include "kernels/flow/flow.h"
#include "kernels/matrix/matrix.h"
#include "kernels/plstm/plstm.h"
#include "models/plstm.h"

struct plstm {
    int64_t heads, track;
    int gates;
    double track_init;
};

enum { GATES_DENSE, GATES_BIAS };

static const struct option options[] = {
    {"heads", OPT_INT, offsetof(struct plstm, heads), "4", 1, 1 << 16, NULL, "heads H; D must be divisible", 0},
    {"gates", OPT_CHOICE, offsetof(struct plstm, gates), "dense", 0, 0, "dense bias",
     "source and mark gates: of the input, or constant", 0},
    {"track", OPT_INT, offsetof(struct plstm, track), "1", 1, SCAN_PLSTM_TRACK_MAX, NULL,
     "states per head J, coupled by a J x J transition", 0},
    {"track-init", OPT_REAL, offsetof(struct plstm, track_init), "0.02", 0, 10, NULL,
     "with track > 1: standard deviation of the initial differences between states; 0 = the released code's start", 0},
    {0}};

#define TRACK_INIT 0.02 /* the default */

static enum status check(void *inst, const struct dims *d, struct error *e) {
    const struct plstm *o = inst;
    if (o->track == 1 && o->track_init != TRACK_INIT)
        return fail(e, ST_USAGE,
                    "plstm: track-init=%g tells the states of a head apart, and with track=1 it has one; leave it out, "
                    "or take more states",
                    o->track_init);
    return check_heads("plstm", o->heads, d, e);
}

/* The start of weights that must make the J states of a head differ. */
static struct init apart(const struct plstm *o) {
    if (o->track == 1) return (struct init){.kind = INIT_ZERO};
    return (struct init){.kind = INIT_NORMAL, .b = o->track_init};
}

/* A source or mark gate: H*J logistic gates, computed from the input or constant. */
static struct tensor *gate(const struct plstm *o, struct graph *g, struct tensor *x, const char *weight_name,
                           const char *bias_name) {
    int64_t n = o->heads * o->track, D = x->dims[2];
    struct init start = {.kind = INIT_CONST, .a = -5};
    if (o->gates == GATES_BIAS)
        return repeat_rows(g, activate(g, vector(g, bias_name, n, start, AS_CONTRACT), ACT_SIGMOID), x->dims[0],
                           x->dims[1]);
    return activate(g, plstm_affine(g, x, weight_name, bias_name, n, D, apart(o), start), ACT_SIGMOID);
}

/* An element of a bias [H*J*J] that starts at H identity matrices (J = a) plus N(0, b^2). */
static double draw_identity(struct rng *r, int64_t element, double a, double b) {
    int64_t J = (int64_t)a, at = element % (J * J);
    return (at / J == at % J) + b * rng_normal(r);
}

static struct tensor *orthogonal(const struct plstm *o, struct graph *g, struct tensor *x, const char *weight_name,
                                 const char *bias_name) {
    int64_t J = o->track, D = x->dims[2];
    struct init identity = {.kind = INIT_CUSTOM, .a = (double)J, .b = o->track_init, .draw = draw_identity};
    struct tensor *a =
        plstm_affine(g, x, weight_name, bias_name, o->heads * J * J, D, (struct init){.kind = INIT_ZERO}, identity);
    return expm_skew(g, a, J);
}

static struct tensor *transition(const struct plstm *o, struct graph *g, struct tensor *x) {
    struct init one = {.kind = INIT_CONST, .a = 1};
    struct tensor *z = plstm_affine(g, x, "transition.weight", "transition.bias", o->heads * o->track, x->dims[2],
                                    (struct init){.kind = INIT_ZERO}, one);
    struct tensor *t = activate(g, scale_by(g, z, 5), ACT_TANH);
    if (o->track == 1) return t;
    struct tensor *left = orthogonal(o, g, x, "left.weight", "left.bias");
    struct tensor *right = orthogonal(o, g, x, "right.weight", "right.bias");
    return sandwich(g, left, t, right, o->track);
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct plstm *o = inst;
    int64_t H = o->heads, width = x->dims[2] / H;
    struct plstm_qkv in = plstm_project(g, x);
    struct tensor *S = gate(o, g, x, "source.weight", "source.bias"), *M = gate(o, g, x, "mark.weight", "mark.bias");
    struct tensor *T = transition(o, g, x);
    struct tensor *direct = vector(g, "direct.bias", H, (struct init){.kind = INIT_CONST, .a = -5}, AS_CONTRACT);
    struct tensor *D_gate = repeat_rows(g, activate(g, direct, ACT_SIGMOID), x->dims[0], x->dims[1]);
    double per_head = 1 / sqrt((double)width);
    if (o->track > 1)
        return plstm_finish(g, scan_plstm(g, in.q, in.k, in.v, S, T, M, D_gate, H, o->track, per_head), H);
    struct outer_gates gates = {.decay = T, .source = S, .mark = M, .direct = D_gate};
    return plstm_finish(g, scan_outer(g, in.q, in.k, in.v, &gates, H, H, per_head), H);
}

static int64_t state_floats(const void *inst, const struct dims *d) {
    const struct plstm *o = inst;
    return d->D * (d->D / o->heads) * o->track;
}

const struct model model_plstm = {
    .name = "plstm",
    .title = "pLSTM",
    .summary = "pLSTM on sequences: matrix state, source, transition, mark and direct gates (pLSTM paper)",
    .equation = "C_t = T_t C_{t-1} + S_t k_t v_t^T;  y_t = dk^-1/2 (M_t C_{t-1}^T q_t + D (q_t.k_t) v_t);  out = W_o "
                "RMSNorm_head(y)",
    .options = options,
    .small = "plstm:heads=2 plstm:heads=3,gates=bias plstm:heads=2,track=2 plstm:heads=2,gates=bias,track=3",
    .inst_bytes = sizeof(struct plstm),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
