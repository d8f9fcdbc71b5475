/* slice.c - SLiCE: a homogeneous recurrence whose generator is linear in the input, with a choice of structures.
 *
 *   w_t = dt (1, x_t)     y_0 = W_i x_0 + b_i     y_t = y_{t-1} + A(w_t) y_{t-1}
 *   diagonal  A = diag(w A)          block, dense  A = blocks of w A        sparse   A = w (A * mask)
 *   dplr      A = diag(w A) + (w U)(w V)^T         hadamard  A = H diag(w tanh(A))
 *   diagonal-dense: diag(w A.diagonal) on the first D - b states, w A.dense on the last b
 *
 * Walker et al. 2025 as in structured-linear-cdes (spec/lru-slice-baselines.md 6), without its overflow clip. The matrices
 * A are [D+1][columns], row 0 the time channel; inside they are stored transposed, as the weight of a linear map of w. */
#include <inttypes.h>

#include "kernels/kernel.h"
#include "models/parts.h"

enum structure { DIAGONAL, BLOCK, DENSE, DPLR, HADAMARD, SPARSE, DIAGONAL_DENSE };

struct slice {
    int structure;
    int64_t block, rank;
    double keep, dt, init_std, penalty;
};

static const struct option options[] = {
    {"structure", OPT_CHOICE, offsetof(struct slice, structure), "block", 0, 0,
     "diagonal block dense dplr hadamard sparse diagonal-dense", "structure of the generator A", 0},
    {"block", OPT_INT, offsetof(struct slice, block), "4", 1, 1 << 16, NULL, "block size b of block and diagonal-dense",
     0},
    {"rank", OPT_INT, offsetof(struct slice, rank), "1", 1, 1 << 16, NULL, "rank r of dplr", 0},
    {"keep", OPT_REAL, offsetof(struct slice, keep), "0.1", 0, 1, NULL, "chance that sparse keeps an entry", 0},
    {"dt", OPT_REAL, offsetof(struct slice, dt), "0.025", 1e-9, 1e3, NULL, "length of a step", 0},
    {"init-std", OPT_REAL, offsetof(struct slice, init_std), "0.5", 0, 1e3, NULL,
     "standard deviation of initial values", 0},
    {"penalty", OPT_REAL, offsetof(struct slice, penalty), "0", 0, 1e3, NULL,
     "weight of each layer's Frobenius norm of A in the training loss; the paper's token tasks: 0.001", OPT_LATER},
    {0}};

/* Columns of A, U and V together. */
static double generator_columns(const struct slice *o, int64_t D) {
    double d = (double)D, b = (double)o->block;
    switch ((enum structure)o->structure) {
    case BLOCK:
        return d * b;
    case DENSE:
    case SPARSE:
        return d * d;
    case DPLR:
        return d * (1 + 2 * (double)o->rank);
    case DIAGONAL_DENSE:
        return d - b + b * b;
    default:
        return d;
    }
}

static enum status check(void *inst, const struct dims *d, struct error *e) {
    const struct slice *o = inst;
    double bytes = generator_columns(o, d->D) * (double)d->B * (double)d->T * sizeof(real);
    if (o->structure == BLOCK && d->D % o->block)
        return fail(e, ST_USAGE, "slice: block=%" PRId64 " does not divide D=%" PRId64, o->block, d->D);
    if (o->structure == DIAGONAL_DENSE && o->block >= d->D)
        return fail(e, ST_USAGE,
                    "slice: block=%" PRId64 " leaves no diagonal part of D=%" PRId64
                    "; it must be smaller, or structure=dense",
                    o->block, d->D);
    if (o->structure == HADAMARD && (d->D & (d->D - 1)))
        return fail(e, ST_USAGE, "slice: structure=hadamard needs D to be a power of two, but D=%" PRId64, d->D);
    if (bytes > (double)machine_memory_bytes())
        return fail(e, ST_USAGE,
                    "slice: the generators of D=%" PRId64 " at batch %" PRId64 " length %" PRId64
                    " need %.0f MB but the machine has %zu MB; try a sparser structure",
                    d->D, d->B, d->T, bytes / 1048576, machine_memory_bytes() >> 20);
    return ST_OK;
}

/* The contract's [E][columns] with columns = d1*d2*d3, stored as (axes of the columns in the order a, b, c)[E]. */
static struct layout transposed(int64_t E, int64_t d1, int64_t d2, int64_t d3, int a, int b, int c) {
    return (struct layout){4, {E, d1, d2, d3}, {a, b, c, 0}};
}

/* Parameter [E][columns] as the weight (columns, E) of a linear map of w. */
static struct tensor *map_of_path(struct graph *g, const char *name, struct layout layout, struct init init,
                                  enum param_group group) {
    int64_t E = layout.dims[0], columns_of = layout.dims[1] * layout.dims[2] * layout.dims[3];
    struct tensor *p = graph_param(
        g, &(struct param_spec){
               .name = name, .rank = 2, .dims = {E, columns_of}, .layout = layout, .init = init, .group = group});
    return graph_reshape(g, p, 2, (int64_t[]){columns_of, E});
}

/* N(0, (init_std / sqrt(fan))^2) */
static struct init normal(const struct slice *o, int64_t fan) {
    return (struct init){.kind = INIT_NORMAL, .b = o->init_std / sqrt((double)fan)};
}

/* N blocks of m: column (k*m + i)*m + j is row i, column j of block k; stored as scan_flow wants, k fastest. */
static struct tensor *blocks(const struct slice *o, struct graph *g, const char *name, struct tensor *w, int64_t N,
                             int64_t m) {
    struct layout layout = transposed(tensor_cols(w), N, m, m, 2, 3, 1);
    return linear(g, w, map_of_path(g, name, layout, normal(o, m), PARAM_DECAY), NULL);
}

static double draw_mask(struct rng *r, int64_t element, double keep, double b) {
    (void)element, (void)b;
    return rng_uniform(r) < keep;
}

static struct tensor *masked_dense(const struct slice *o, struct graph *g, struct tensor *w, int64_t D) {
    struct layout layout = transposed(tensor_cols(w), 1, D, D, 2, 3, 1);
    struct init drawn = {.kind = INIT_CUSTOM, .a = o->keep, .draw = draw_mask};
    struct tensor *A = map_of_path(g, "A", layout, normal(o, D), PARAM_DECAY);
    struct tensor *mask = map_of_path(g, "mask", layout, drawn, PARAM_CONST);
    return linear(g, w, mul(g, A, mask), NULL);
}

static struct tensor *low_rank(const struct slice *o, struct graph *g, struct tensor *w, struct tensor *y0, int64_t D) {
    struct layout layout = transposed(tensor_cols(w), D, o->rank, 1, 2, 3, 1); /* column i*r + q, stored q*D + i */
    struct tensor *d = blocks(o, g, "A", w, D, 1);
    struct tensor *u = linear(g, w, map_of_path(g, "U", layout, normal(o, o->rank), PARAM_DECAY), NULL);
    struct tensor *v = linear(g, w, map_of_path(g, "V", layout, normal(o, o->rank), PARAM_DECAY), NULL);
    return scan_dplr(g, d, u, v, y0);
}

static struct tensor *walsh_hadamard(const struct slice *o, struct graph *g, struct tensor *w, struct tensor *y0,
                                     int64_t D) {
    struct tensor *A = map_of_path(g, "A", transposed(tensor_cols(w), D, 1, 1, 1, 2, 3), normal(o, 1), PARAM_DECAY);
    return scan_hadamard(g, linear(g, w, activate(g, A, ACT_TANH), NULL), y0);
}

static struct tensor *diagonal_dense(const struct slice *o, struct graph *g, struct tensor *w, struct tensor *y0,
                                     int64_t D) {
    int64_t b = o->block, n = D - b;
    struct tensor *diagonal = blocks(o, g, "A.diagonal", w, n, 1), *dense = blocks(o, g, "A.dense", w, 1, b);
    struct tensor *first = scan_flow(g, diagonal, columns(g, y0, 0, n), n, 1);
    return join_columns(g, first, scan_flow(g, dense, columns(g, y0, n, b), 1, b));
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct slice *o = inst;
    int64_t B = x->dims[0], T = x->dims[1], D = x->dims[2], b = o->block;
    struct tensor *w_init =
        graph_param(g, &(struct param_spec){.name = "init.weight", .rank = 2, .dims = {D, D}, .init = normal(o, 1)});
    struct tensor *b_init = vector(g, "init.bias", D, normal(o, 1), AS_CONTRACT);
    struct tensor *x0 = columns(g, graph_reshape(g, x, 2, (int64_t[]){B, T * D}), 0, D);
    struct tensor *y0 = linear(g, x0, w_init, b_init);
    struct tensor *w = prepend_one(g, x, o->dt);
    if (!y0 || !w) return NULL;
    switch ((enum structure)o->structure) {
    case DIAGONAL:
        return scan_flow(g, blocks(o, g, "A", w, D, 1), y0, D, 1);
    case BLOCK:
        return scan_flow(g, blocks(o, g, "A", w, D / b, b), y0, D / b, b);
    case DENSE:
        return scan_flow(g, blocks(o, g, "A", w, 1, D), y0, 1, D);
    case SPARSE:
        return scan_flow(g, masked_dense(o, g, w, D), y0, 1, D);
    case DPLR:
        return low_rank(o, g, w, y0, D);
    case HADAMARD:
        return walsh_hadamard(o, g, w, y0, D);
    case DIAGONAL_DENSE:
        return diagonal_dense(o, g, w, y0, D);
    }
    return NULL;
}

/* penalty * ||A||_F: vf_A of the reference, so neither U nor V, and tanh not yet applied; both parts of diagonal-dense, of
 * sparse what the mask keeps. */
static struct tensor *loss_term(const void *inst, struct graph *g) {
    const struct slice *o = inst;
    if (o->penalty == 0) return NULL;
    struct tensor *A = declared(g, "A"), *more = NULL;
    if (o->structure == DIAGONAL_DENSE) {
        A = declared(g, "A.diagonal");
        more = declared(g, "A.dense");
    } else if (o->structure == SPARSE)
        A = mul(g, A, declared(g, "mask"));
    return scale_by(g, frobenius(g, A, more), o->penalty);
}

static int64_t state_floats(const void *inst, const struct dims *d) {
    (void)inst;
    return d->D;
}

const struct model model_slice = {
    .name = "slice",
    .summary = "structured linear CDE: y_t = (I + A(w_t)) y_{t-1}, seven structures of A (Walker et al. 2025)",
    .equation = "w_t = dt (1, x_t);  y_0 = W_i x_0 + b_i;  y_t = y_{t-1} + A(w_t) y_{t-1}",
    .options = options,
    .inst_bytes = sizeof(struct slice),
    .causal = true,
    .slice_wrapper = "slice",
    .check = check,
    .build = build,
    .loss_term = loss_term,
    .state_floats = state_floats,
};
