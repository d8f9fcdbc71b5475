/* linoss.c - LinOSS: forced harmonic oscillators, discretised implicitly (im) or implicitly and explicitly (imex).
 *
 *   A = relu(A)   d = sig(step)   u = B x   position w, velocity z over complex numbers
 *   im:   z' = (z + d (u - A w)) / (1 + d^2 A)   w' = w + d z'      imex: z' = z + d (u - A w)   w' = w + d z'
 *   y_t = Re(C w_t) + skip x_t
 * Each form is one recurrence of the position. The companion scan of order 2 runs it, real and imaginary parts side by
 * side. It cannot be made diagonal, because A = 0 gives a double eigenvalue 1:
 *   im: w_t = 2 s w_{t-1} - s w_{t-2} + s d^2 u_t, s = 1 / (1 + d^2 A)
 *   imex: w_t = (2 - d^2 A) w_{t-1} - w_{t-2} + d^2 u_t
 *
 * Rusch & Rus 2024 (arXiv 2410.03943); tk-rusch/linoss (models/LinOSS.py), whose initial values these are. */
#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "kernels/move/move.h"
#include "models/parts.h"

enum step { STEP_IM, STEP_IMEX };

struct linoss {
    int64_t state;
    int step;
};

static const struct option options[] = {
    {"state", OPT_INT, offsetof(struct linoss, state), "128", 1, 1 << 20, NULL, "oscillators N", OPT_STATE},
    {"step", OPT_CHOICE, offsetof(struct linoss, step), "im", 0, 0, "im imex",
     "discretisation: im loses energy, imex keeps it", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    (void)inst, (void)d, (void)e;
    return ST_OK;
}

static struct tensor *matrix(struct graph *g, const char *name, int64_t out, int64_t in) {
    return weight_from(g, name, out, in, init_linear(in, 1), AS_CONTRACT);
}

/* The gates [3N] of lag 1, of lag 2 and of the input, one after the other. */
static struct tensor *gates(struct graph *g, enum step step, struct tensor *A, struct tensor *d) {
    struct tensor *square = mul(g, d, scale_by(g, d, 1)), *pull = mul(g, square, activate(g, A, ACT_RELU));
    if (step == STEP_IMEX) {
        struct tensor *lags = join_columns(g, scale_shift(g, pull, -1, 2), scale_shift(g, pull, 0, -1));
        return join_columns(g, lags, square);
    }
    struct tensor *s = activate(g, activate(g, pull, ACT_NEG), ACT_HEAVY); /* 1 / (1 + pull), since pull >= 0 */
    return join_columns(g, join_columns(g, scale_by(g, s, 2), activate(g, s, ACT_NEG)), mul(g, s, square));
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct linoss *o = inst;
    int64_t B = x->dims[0], T = x->dims[1], D = x->dims[2], N = o->state;
    struct init unit = {.kind = INIT_UNIFORM, .a = 0, .b = 1};
    struct tensor *A = state_vector(g, "A", N, unit), *step = state_vector(g, "step", N, unit);
    struct tensor *z = repeat_rows(g, gates(g, (enum step)o->step, A, activate(g, step, ACT_SIGMOID)), B, T);
    struct tensor *Bs[2] = {matrix(g, "B.re", N, D), matrix(g, "B.im", N, D)};
    struct tensor *Cs[2] = {matrix(g, "C.re", D, N), matrix(g, "C.im", D, N)}, *y[2];
    for (int part = 0; part < 2; part++) {
        struct tensor *w = scan_companion(g, z, linear(g, x, Bs[part], NULL), N, 2, GATE_NONE, LAYOUT_COMPANION);
        y[part] = linear(g, columns(g, w, 0, N), Cs[part], NULL);
    }
    struct tensor *skip = vector(g, "skip", D, (struct init){.kind = INIT_NORMAL, .b = 1}, AS_CONTRACT);
    return add(g, sub(g, y[0], y[1]), scale(g, x, skip));
}

static int64_t state_floats(const void *inst, const struct dims *d) {
    (void)d;
    return 4 * ((const struct linoss *)inst)->state;
}

const struct model model_linoss = {
    .name = "linoss",
    .title = "LinOSS",
    .summary = "forced harmonic oscillators, not selective (LinOSS, Rusch & Rus 2024)",
    .equation =
        "z_t = (z_{t-1} + d (B x_t - A w_{t-1})) / (1 + d^2 A);  w_t = w_{t-1} + d z_t;  y_t = Re(C w_t) + skip "
        "x_t",
    .options = options,
    .small = "linoss:state=7 linoss:state=5,step=imex",
    .inst_bytes = sizeof(struct linoss),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
