/* aussm.c - AUSSM: a diagonal state space whose states only turn, by angles that the input sets.
 *
 *   (u, z) = W_in x   u = conv(u)   theta = W_theta u / sqrt(D) + b_theta, one for each state j of channel i
 *   Delta = softplus(W_up W_down u + dt.bias)   a = silu(u)
 *   h_t = e^(i theta_t) h_{t-1} + B Delta a   y = W_out ((Re sum_j C_j h_j + skip a) * silu(z))
 *   B = softplus(B.radius) e^(i B.angle), C likewise, a number a state
 * A constant factor of a state commutes with its turns, so B and C act by their product alone: scan_turned has states
 * without B and reads them with B C. Nothing decays: a state, and its rounding error, grow with the length.
 *
 * Karuvally et al. 2025 (arXiv 2507.05238); arjunkaruvally/AUSSM (aussm.py). The release adds the bias of its map of
 * Delta twice, and so do we at the start: dt.bias is drawn twice as wide. Other initial values are the framework's
 * defaults, b_theta uniform in (-pi, pi), radii and angles N(0, 1/2), skip 1. */
#include "kernels/dense/dense.h"
#include "kernels/move/move.h"
#include "kernels/token/token.h"
#include "models/parts.h"

struct aussm {
    int64_t state, conv, rank;
};

static const struct option options[] = {
    {"state", OPT_INT, offsetof(struct aussm, state), "16", 1, 1 << 16, NULL, "complex states N of a channel", 0},
    {"conv", OPT_INT, offsetof(struct aussm, conv), "4", 1, 64, NULL, "width of the causal convolution", 0},
    {"rank", OPT_INT, offsetof(struct aussm, rank), "auto", 1, 1 << 16, NULL, "rank of Delta's map; auto: state",
     OPT_AUTO},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    struct aussm *o = inst;
    char asked[60];
    if (o->rank == 0) o->rank = o->state;
    snprintf(asked, sizeof asked, "aussm: state=%lld", (long long)o->state);
    return check_room(asked, "map to the angles", (double)o->state * (double)d->D * (double)d->D, d, e);
}

/* The number softplus(radius) e^(i angle) of each state: its radius and its angle. */
struct polar {
    struct tensor *radius, *angle;
};

static struct polar polar(struct graph *g, const char *name, int64_t N) {
    struct init init = {.kind = INIT_NORMAL, .b = sqrt(0.5)};
    graph_scope_push(g, name);
    struct polar p = {activate(g, vector(g, "radius", N, init, AS_CONTRACT), ACT_SOFTPLUS), NULL};
    p.angle = vector(g, "angle", N, init, AS_CONTRACT);
    graph_scope_pop(g);
    return p;
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct aussm *o = inst;
    int64_t D = x->dims[2], N = o->state;
    struct tensor *parts[2];
    split(g, linear(g, x, weight(g, "in.weight", 2 * D, D, 1, AS_CONTRACT), NULL), 2, (int64_t[]){D, D}, parts);
    struct tensor *taps =
        weight_from(g, "conv.weight", D, o->conv, init_linear(o->conv, 1), (struct layout){2, {D, o->conv}, {1, 0}});
    struct tensor *u =
        conv_depthwise(g, parts[0], taps, vector(g, "conv.bias", D, init_linear(o->conv, 1), AS_CONTRACT));

    graph_scope_push(g, "dt");
    struct tensor *raw = linear(g, u, weight(g, "down.weight", o->rank, D, 1, AS_CONTRACT), NULL);
    raw = linear(g, raw, weight(g, "up.weight", D, o->rank, 1, AS_CONTRACT),
                 vector(g, "bias", D, init_linear(o->rank, 2), AS_CONTRACT));
    graph_scope_pop(g);
    struct tensor *a = activate(g, u, ACT_SILU), *source = mul(g, a, activate(g, raw, ACT_SOFTPLUS));

    double pi = acos(-1);
    struct tensor *w = weight(g, "angle.weight", N * D, D, 1, AS_CONTRACT);
    struct tensor *b =
        vector(g, "angle.bias", N * D, (struct init){.kind = INIT_UNIFORM, .a = -pi, .b = pi}, AS_CONTRACT);
    struct polar B = polar(g, "B", N), C = polar(g, "C", N);
    struct tensor *radius = mul(g, B.radius, C.radius), *angle = add(g, B.angle, C.angle);
    struct tensor *k_re = mul(g, radius, activate(g, angle, ACT_COS));
    struct tensor *k_im = mul(g, radius, activate(g, angle, ACT_SIN));
    struct tensor *y = scan_turned(g, source, scale_by(g, u, 1 / sqrt((double)D)), w, b, k_re, k_im);
    y = add(g, y, scale(g, a, vector(g, "skip", D, (struct init){.kind = INIT_CONST, .a = 1}, AS_CONTRACT)));
    return linear(g, silu_mul(g, parts[1], y), weight(g, "out.weight", D, D, 1, AS_CONTRACT), NULL);
}

/* The complex states h; the window of the convolution is not counted. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    return 2 * ((const struct aussm *)inst)->state * d->D;
}

const struct model model_aussm = {
    .name = "aussm",
    .title = "AUSSM",
    .summary = "complex diagonal states that only turn, by angles of the input (AUSSM, Karuvally et al. 2025)",
    .equation =
        "h_t[j][i] = e^(i theta_t[j][i]) h_{t-1}[j][i] + B_j Delta_t[i] a_t[i];  theta = W_theta u / sqrt(D) + b\n"
        "u = conv(W_u x);  a = silu(u);  y_t = W_out ((Re sum_j C_j h_j + skip a) * silu(z))",
    .options = options,
    .small = "aussm:state=3 aussm:state=5,conv=2,rank=2",
    .inst_bytes = sizeof(struct aussm),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
