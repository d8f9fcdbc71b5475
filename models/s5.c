/* s5.c - S5: a continuous complex diagonal system of many inputs and outputs, discretised with a step per state.
 *
 *   D = exp(step.log)   zoh: a = exp(lambda D), b = (a - 1) / lambda
 *   bilinear: a = (1 + lambda D/2) / (1 - lambda D/2), b = D / (1 - lambda D/2)
 *   h_t = a h_{t-1} + b (B x_t)   y_t = [2] Re(C h_t) + skip x_t, the 2 if conj=yes
 * This file has only the state space; activation, gate and norm of S5's layer belong to --backbone s5.
 *
 * Smith et al. 2022 (arXiv 2208.04933); lindermanlab/S5 (s5/ssm.py, ssm_init.py). lambda starts as the eigenvalues of
 * `blocks` equal blocks of HiPPO-N, those with a negative imaginary part if conj=yes. The release draws B = V^H R and
 * C = R' V with the eigenvectors V. Here real and imaginary parts are drawn with the same variances but without V,
 * because V has orthonormal columns and changes no variance. lambda, step.log and B are state parameters, as in the
 * release's optimiser. */
#include <inttypes.h>

#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "models/hippo.h"
#include "models/parts.h"

struct s5 {
    int64_t state, blocks;
    bool conj, clip;
    int step;
};

static const struct option options[] = {
    {"state", OPT_INT, offsetof(struct s5, state), "128", 1, 1 << 20, NULL, "complex states N that are kept",
     OPT_STATE},
    {"conj", OPT_BOOL, offsetof(struct s5, conj), "yes", 0, 0, NULL, "each state stands for itself and its conjugate",
     0},
    {"step", OPT_CHOICE, offsetof(struct s5, step), "zoh", 0, 0, "zoh bilinear", "discretisation", 0},
    {"clip", OPT_BOOL, offsetof(struct s5, clip), "no", 0, 0, NULL, "hold the real parts of lambda below -0.0001", 0},
    {"blocks", OPT_INT, offsetof(struct s5, blocks), "1", 1, 1 << 20, NULL,
     "equal blocks of HiPPO-N in the initial lambda", 0},
    {0}};

static enum status check(void *inst, const struct dims *d, struct error *e) {
    (void)d;
    const struct s5 *o = inst;
    if (o->state % o->blocks != 0)
        return fail(e, ST_USAGE, "s5: blocks=%" PRId64 " does not divide state=%" PRId64 "; choose blocks that do",
                    o->blocks, o->state);
    if (o->state / o->blocks > HIPPO_MAX)
        return fail(e, ST_USAGE,
                    "s5: a block of state=%" PRId64 " / blocks=%" PRId64 " exceeds %d states; raise blocks", o->state,
                    o->blocks, HIPPO_MAX);
    return ST_OK;
}

/* The imaginary part of an eigenvalue, in blocks of size a. A whole block (b = 0, conj=no) has the lower half of its
 * spectrum, then its mirror image. A block of odd size has the next even size's spectrum without the last value. */
static double draw_lambda(struct rng *r, int64_t element, double a, double b) {
    (void)r;
    int64_t size = (int64_t)a, j = element % size, half = b > 0 ? size : (size + 1) / 2;
    return j < half ? hippo_frequency(half, j) : -hippo_frequency(half, j - half);
}

static double draw_step(struct rng *r, int64_t element, double a, double b) {
    (void)element;
    return a + (b - a) * rng_uniform(r);
}

static struct tensor *matrix(struct graph *g, const char *name, int64_t rows, int64_t columns, double variance,
                             enum param_group group) {
    return graph_param(g, &(struct param_spec){.name = name,
                                               .rank = 2,
                                               .dims = {rows, columns},
                                               .group = group,
                                               .init = {.kind = INIT_NORMAL, .b = sqrt(variance)}});
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct s5 *o = inst;
    int64_t N = o->state, D = x->dims[2];
    struct init frequencies = {
        .kind = INIT_CUSTOM, .a = (double)(N / o->blocks), .b = o->conj ? 1 : 0, .draw = draw_lambda};
    struct init steps = {.kind = INIT_CUSTOM, .a = log(0.001), .b = log(0.1), .draw = draw_step};
    struct tensor *re = state_vector(g, "lambda.re", N, (struct init){.kind = INIT_CONST, .a = -0.5});
    struct tensor *im = state_vector(g, "lambda.im", N, frequencies);
    struct tensor *step = activate(g, state_vector(g, "step.log", N, steps), ACT_EXP);
    struct discretise_attr attr = {o->step ? DISCRETISE_BILINEAR : DISCRETISE_ZOH, o->clip};
    struct tensor *ab[DISCRETISE_OUTPUTS];
    discretise(g, re, im, step, &attr, ab);

    double of_pair = o->conj ? 0.5 : 1; /* a kept state counts as two in the release's variances */
    struct tensor *Bx_re = linear(g, x, matrix(g, "B.re", N, D, of_pair / (2 * (double)N), PARAM_STATE), NULL);
    struct tensor *Bx_im = linear(g, x, matrix(g, "B.im", N, D, of_pair / (2 * (double)N), PARAM_STATE), NULL);
    struct tensor *u_re = sub(g, scale(g, Bx_re, ab[2]), scale(g, Bx_im, ab[3]));
    struct tensor *u_im = add(g, scale(g, Bx_re, ab[3]), scale(g, Bx_im, ab[2]));
    struct tensor *h_im, *h_re = scan_diag_complex(g, ab[0], ab[1], u_re, u_im, &h_im);
    struct tensor *y_re = linear(g, h_re, matrix(g, "C.re", D, N, of_pair / (double)N, PARAM_WEIGHT), NULL);
    struct tensor *y_im = linear(g, h_im, matrix(g, "C.im", D, N, of_pair / (double)N, PARAM_WEIGHT), NULL);
    struct tensor *skip = vector(g, "skip", D, (struct init){.kind = INIT_NORMAL, .b = 1}, AS_CONTRACT);
    return add(g, scale_by(g, sub(g, y_re, y_im), o->conj ? 2 : 1), scale(g, x, skip));
}

static int64_t state_floats(const void *inst, const struct dims *d) {
    (void)d;
    return 2 * ((const struct s5 *)inst)->state;
}

const struct model model_s5 = {
    .name = "s5",
    .title = "S5",
    .summary = "complex diagonal state space, discretised, not selective (S5, Smith et al. 2022)",
    .equation = "h_t = exp(lambda D) h_{t-1} + (exp(lambda D) - 1) / lambda (B x_t);  D = exp(step.log)\n"
                "y_t = 2 Re(C h_t) + skip x_t",
    .options = options,
    .small = "s5:state=7 s5:state=6,conj=no,step=bilinear,clip=yes,blocks=2",
    .inst_bytes = sizeof(struct s5),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
