/* slice.c - SLiCE: a homogeneous recurrence whose generator is linear in the input, with a choice of structures.
 *
 *   w_t = dt (1, x_t)     y_0 = W_i x_0 + b_i     y_t = y_{t-1} + A(w_t) y_{t-1}
 *   time-letter=no: w_t = dt x_t, for a path whose channels have the time, such as a series
 *   diagonal  A = diag(w A)          block, dense  A = blocks of w A        sparse   A = w (A * mask)
 *   dplr      A = diag(w A) + (w U)(w V)^T         hadamard  A = H diag(w tanh(A))
 *   diagonal-dense: diag(w A.diagonal) on the first D - b states, w A.dense on the last b
 *
 * Walker et al. 2025 (arXiv 2505.17761) as in Benjamin-Walker/structured-linear-cdes (models/slcde.py), commit 76dd0dd.
 * There a step's move s = A y_{t-1} becomes c tanh(s / c), c = 1e11, against overflow; the option `clip` is this c, and
 * leaves every move below c / 4096 unchanged. That commit has no diagonal-dense. Commit 00f605522dab, of another
 * history, has it: its dense part starts at N(0, init_std^2), sqrt(b) above ours, which starts like blocks. Its dplr
 * sums w_c U_c V_c^T over the letters c, so it is linear in w. We do not know which commit the paper's runs used. The
 * matrices A are [D+1][columns], row 0 for the letter of time; in memory they are transposed, as the weight of a linear
 * map of w.
 *
 * Log-ODE form (Walker et al. 2024, log-neural-cdes): positions 1..T-1 are cut into intervals of `interval` steps, the
 * last one perhaps shorter, and the state moves once per interval, by the interval's log-signature (l, a):
 *   L = sum_i l_i A_i  (+ sum_{i<j} a_ij (A_j A_i - A_i A_j) at depth 2)     y_k = (I + L) y_{k-1}, or exp(L) y_{k-1}
 * Blocks of one state commute, so they need only the letters at any depth: diagonal, and the diagonal part of
 * diagonal-dense. In this form each letter has its own matrix A_i: dplr A_i = diag(A[i]) + U_i V_i^T, hadamard A_i = H
 * diag(A[i]); token nets take products of sums instead, and tanh(A). The reference returns one state per interval. A
 * mixer returns one per position: the state after the last interval that has ended, y_0 before the first one ends, and
 * at a sequence's last position the state after its shorter last interval. Steps past a sequence's end move nothing. */
#include <inttypes.h>

#include "kernels/dense/dense.h"
#include "kernels/flow/flow.h"
#include "kernels/move/move.h"
#include "kernels/norm/norm.h"
#include "models/parts.h"

enum structure { DIAGONAL, BLOCK, DENSE, DPLR, HADAMARD, SPARSE, DIAGONAL_DENSE };
static const char *const structure_names[] = {"diagonal", "block",  "dense",         "dplr",
                                              "hadamard", "sparse", "diagonal-dense"};

struct slice {
    int structure;
    int64_t block, rank;
    double keep, dt, init_std, penalty, clip;
    int64_t interval, depth;
    int flow;
    bool table, time_letter;
};

enum flow { FLOW_EULER, FLOW_EXP };

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
     "weight of each layer's Frobenius norm of A in the training loss; the paper's token tasks: 0.001", 0},
    {"interval", OPT_INT, offsetof(struct slice, interval), "1", 1, 1 << 20, NULL,
     "steps of an interval of the log-ODE form: one move of the state each", 0},
    {"depth", OPT_INT, offsetof(struct slice, depth), "1", 1, 2, NULL,
     "depth of the log-signature of an interval: 1 sums, 2 areas as well", 0},
    {"flow", OPT_CHOICE, offsetof(struct slice, flow), "euler", 0, 0, "euler exp",
     "how an interval's generator L moves the state: I + L or exp(L)", 0},
    {"clip", OPT_REAL, offsetof(struct slice, clip), "1e11", 0, 1e30, NULL,
     "c of a step's bound, y + c tanh(s / c) instead of y + s; 0 = none", 0},
    {"table", OPT_BOOL, offsetof(struct slice, table), "no", 0, 0, NULL,
     "generators of the vocabulary's tokens computed once a step, then looked up by the first layer; for few tokens, "
     "in nets whose first layer reads the embedding itself (slice, slice-glu, stacked); dropout then draws other masks",
     0},
    {"time-letter", OPT_BOOL, offsetof(struct slice, time_letter), "yes", 0, 0, NULL,
     "a letter of time beside the letters of the input: it moves the state by dt a step whatever the input is", 0},
    {0}};

/* Whether the mixer reads log-signatures of w instead of w. */
static bool takes_signature(const struct slice *o) {
    return o->interval > 1;
}

/* The number of letters of w for n channels of the input. */
static int64_t letters(const struct slice *o, int64_t n) {
    return n + o->time_letter;
}

/* Depth of the log-signature that the mixer reads. It is 1 for 1 x 1 blocks, whose brackets are 0, and for intervals of
 * one step, which have no area. */
static int depth_of(const struct slice *o, int64_t D) {
    int64_t m = o->structure == DIAGONAL ? 1 : o->structure == DENSE ? D : o->block;
    return o->depth == 2 && m > 1 && o->interval > 1 ? 2 : 1;
}

#define RANK 1 /* the defaults of rank and keep */
#define KEEP 0.1

static enum status check_structure(const struct slice *o, const struct dims *d, struct error *e) {
    if (o->structure == BLOCK && d->D % o->block)
        return fail(e, ST_USAGE, "slice: block=%" PRId64 " does not divide D=%" PRId64, o->block, d->D);
    if (o->structure == DIAGONAL_DENSE && o->block >= d->D)
        return fail(e, ST_USAGE,
                    "slice: block=%" PRId64 " leaves no diagonal part of D=%" PRId64
                    "; it must be smaller, or structure=dense",
                    o->block, d->D);
    if (o->structure == HADAMARD && (d->D & (d->D - 1)))
        return fail(e, ST_USAGE, "slice: structure=hadamard needs D to be a power of two, but D=%" PRId64, d->D);
    if (o->rank != RANK && o->structure != DPLR)
        return fail(e, ST_USAGE,
                    "slice: rank=%" PRId64
                    " has an effect on structure=dplr alone, and this one is structure=%s; leave "
                    "it out, or take structure=dplr",
                    o->rank, structure_names[o->structure]);
    if (o->keep != KEEP && o->structure != SPARSE)
        return fail(e, ST_USAGE,
                    "slice: keep=%g is the chance of an entry of structure=sparse, and this one is structure=%s; leave "
                    "it out, or take structure=sparse",
                    o->keep, structure_names[o->structure]);
    /* Brackets of block matrices have the same blocks; brackets of the others would fill a dense matrix. */
    bool closed = o->structure != DPLR && o->structure != HADAMARD && o->structure != SPARSE;
    if (!closed && (o->depth > 1 || o->flow == FLOW_EXP))
        return fail(e, ST_USAGE,
                    "slice: %s would make dense matrices of structure=%s; try %s, or structure=block, dense, diagonal "
                    "or diagonal-dense",
                    o->depth > 1 ? "the brackets of depth=2" : "flow=exp", structure_names[o->structure],
                    o->depth == 1           ? "flow=euler"
                    : o->flow == FLOW_EULER ? "depth=1"
                                            : "depth=1 with flow=euler");
    return ST_OK;
}

/* Checks that the machine has memory for depth 2 and intervals. Counts only values, no gradients: log-signatures,
 * generators of all letters and brackets, and generators of each interval, which exp(L) - I doubles. */
static enum status check_memory(const struct slice *o, const struct dims *d, struct error *e) {
    double D = (double)d->D, b = (double)o->block, columns = D;
    switch (
        (enum structure)o->structure) { /* of A, U and V together; of the matrices they make in dplr's log-ODE form */
    case BLOCK:
        columns = D * b;
        break;
    case DENSE:
    case SPARSE:
        columns = D * D;
        break;
    case DPLR:
        columns = takes_signature(o) ? D * D : D * (1 + 2 * (double)o->rank);
        break;
    case DIAGONAL_DENSE:
        columns = D - b + b * b;
        break;
    case DIAGONAL:
    case HADAMARD:
        break;
    }
    double rows = (double)d->B * (double)(1 + log_signature_intervals(d->T, o->interval));
    double S = (double)log_signature_size(letters(o, d->D), depth_of(o, d->D));
    double moves = columns * rows * (o->flow == FLOW_EXP ? 2 : 1) * sizeof(real);
    double signatures = takes_signature(o) ? S * rows * sizeof(real) : 0;
    double of_pairs = o->structure == DIAGONAL_DENSE ? b * b : columns;
    bool made = depth_of(o, d->D) == 2 || (o->structure == DPLR && takes_signature(o));
    double brackets = made ? S * of_pairs * sizeof(real) : 0;
    if (moves + signatures + brackets <= (double)machine_memory_bytes()) return ST_OK;
    if (signatures == 0)
        return fail(e, ST_USAGE,
                    "slice: the generators of D=%" PRId64 " at batch %" PRId64 " length %" PRId64
                    " need %.0f MB but the machine has %zu MB; try a sparser structure%s",
                    d->D, d->B, d->T, moves / 1048576, machine_memory_bytes() >> 20,
                    o->flow == FLOW_EXP ? " or flow=euler" : "");
    return fail(
        e, ST_USAGE,
        "slice: interval=%" PRId64 " depth=%" PRId64 " of D=%" PRId64 " at batch %" PRId64 " length %" PRId64
        " need %.0f MB (%.0f for the moves of the state, %.0f for log-signatures of %.0f numbers, %.0f for their "
        "generators) but the machine has %zu MB; try %s",
        o->interval, o->depth, d->D, d->B, d->T, (moves + signatures + brackets) / 1048576, moves / 1048576,
        signatures / 1048576, S, brackets / 1048576, machine_memory_bytes() >> 20,
        depth_of(o, d->D) == 2 ? "depth=1 or a smaller D" : "a longer interval or a sparser structure");
}

static enum status check(void *inst, const struct dims *d, struct error *e) {
    const struct slice *o = inst;
    if (o->table && takes_signature(o))
        return fail(e, ST_USAGE,
                    "slice: table=yes looks up the generators of tokens, and interval=%" PRId64
                    " has generators of log-signatures; take interval=1 or table=no",
                    o->interval);
    TRY(check_structure(inst, d, e));
    if (o->depth > 1 && !takes_signature(o))
        return fail(e, ST_USAGE,
                    "slice: depth=2 takes the areas of intervals, and with interval=1 an interval is one step, which "
                    "has none; take a longer interval or depth=1");
    return check_memory(inst, d, e);
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

/* The training loss has the term penalty * |A|, where A is vf_A of the reference: without U and V, before tanh, both
 * parts of diagonal-dense together, and for sparse the entries that the mask keeps. */
static struct tensor *norm_of(struct graph *g, const struct graph_term *term) {
    return scale_by(g, frobenius(g, term->of[0], term->of[1]), term->weight);
}

static struct tensor *norm_of_masked(struct graph *g, const struct graph_term *term) {
    return scale_by(g, frobenius(g, mul(g, term->of[0], term->of[1]), NULL), term->weight);
}

static void penalise(const struct slice *o, struct graph *g,
                     struct tensor *(*norm)(struct graph *g, const struct graph_term *term), struct tensor *A,
                     struct tensor *other) {
    if (o->penalty > 0) graph_keep_term(g, &(struct graph_term){.build = norm, .of = {A, other}, .weight = o->penalty});
}

/* The generators of N blocks of m. Column (k*m + i)*m + j of A [C][N*m*m] is row i, column j of block k. They are
 * stored as scan_flow wants, k fastest. */
static struct tensor *generators(const struct slice *o, struct graph *g, const char *name, int64_t C, int64_t N,
                                 int64_t m) {
    return map_of_path(g, name, transposed(C, N, m, m, 2, 3, 1), normal(o, m), PARAM_WEIGHT);
}

/* The path that drives the state: w (B,1+K,C) with one row per step or per interval. */
struct drive {
    struct tensor *w;
    struct lookup tokens; /* table=yes: the embedding lookup that gave x_t; x NULL: none */
    bool masked;          /* rows of w past a sequence's end are 0 */
};

/* Returns dt (1, x), or dt x. */
static struct tensor *path_of(const struct slice *o, struct graph *g, struct tensor *x) {
    return o->time_letter ? prepend_one(g, x, o->dt) : scale_by(g, x, o->dt);
}

/* The generators A(w), one row per step. With a table of V tokens, one generator per token is computed and each step
 * looks its own up: V rows instead of one per step. Where w is 0 the generator is 0. */
static struct tensor *generated(const struct slice *o, struct graph *g, const struct drive *d, struct tensor *A) {
    if (!d->tokens.x) return linear(g, d->w, A, NULL);
    struct tensor *of_tokens = linear(g, path_of(o, g, d->tokens.table), A, NULL);
    struct tensor *all = embedding(g, d->tokens.ids, of_tokens);
    return d->masked ? rows_in_use(g, all, graph_builder(g)->lengths, NULL) : all;
}

/* The states of N blocks of m with generators A, driven by w of C letters or by log-signatures of it. */
static struct tensor *flow(const struct slice *o, struct graph *g, struct tensor *A, const struct drive *d,
                           struct tensor *y0, int64_t N, int64_t m) {
    if (!A || !d->w) return NULL;
    if (tensor_cols(d->w) > tensor_cols(A)) A = brackets(g, A, N, m);
    struct tensor *L = generated(o, g, d, A);
    return scan_flow(g, o->flow == FLOW_EXP ? expm_flow(g, L, N, m) : L, y0, N, m, o->clip);
}

static struct tensor *blocks(const struct slice *o, struct graph *g, const struct drive *d, struct tensor *y0,
                             int64_t N, int64_t m) {
    struct tensor *A = generators(o, g, "A", letters(o, N * m), N, m);
    penalise(o, g, norm_of, A, NULL);
    return flow(o, g, A, d, y0, N, m);
}

static double draw_mask(struct rng *r, int64_t element, double keep, double b) {
    (void)element, (void)b;
    return rng_uniform(r) < keep;
}

static struct tensor *masked_dense(const struct slice *o, struct graph *g, const struct drive *d, struct tensor *y0,
                                   int64_t D) {
    struct init drawn = {.kind = INIT_CUSTOM, .a = o->keep, .draw = draw_mask};
    struct tensor *A = generators(o, g, "A", letters(o, D), 1, D);
    struct tensor *mask = map_of_path(g, "mask", transposed(letters(o, D), 1, D, D, 2, 3, 1), drawn, PARAM_CONST);
    penalise(o, g, norm_of_masked, A, mask);
    return flow(o, g, mul(g, A, mask), d, y0, 1, D);
}

/* Builds dplr. Token nets multiply (w U)(w V)^T; the log-ODE form sums w_c U_c V_c^T over the letters c. */
static struct tensor *low_rank(const struct slice *o, struct graph *g, const struct drive *d, struct tensor *y0,
                               int64_t D) {
    struct layout layout = transposed(letters(o, D), D, o->rank, 1, 2, 3, 1); /* column i*r + q, stored q*D + i */
    struct tensor *A = generators(o, g, "A", letters(o, D), D, 1);
    penalise(o, g, norm_of, A, NULL);
    if (takes_signature(o)) {
        struct tensor *U = map_of_path(g, "U", layout, normal(o, o->rank), PARAM_WEIGHT);
        struct tensor *V = map_of_path(g, "V", layout, normal(o, o->rank), PARAM_WEIGHT);
        return flow(o, g, dense_generators(g, A, U, V), d, y0, 1, D);
    }
    struct tensor *diagonal = generated(o, g, d, A);
    struct tensor *u = generated(o, g, d, map_of_path(g, "U", layout, normal(o, o->rank), PARAM_WEIGHT));
    struct tensor *v = generated(o, g, d, map_of_path(g, "V", layout, normal(o, o->rank), PARAM_WEIGHT));
    return scan_dplr(g, diagonal, u, v, y0, o->clip);
}

/* Builds hadamard. Token nets use tanh(A), the log-ODE form uses A. */
static struct tensor *walsh_hadamard(const struct slice *o, struct graph *g, const struct drive *d, struct tensor *y0,
                                     int64_t D) {
    struct tensor *A = map_of_path(g, "A", transposed(letters(o, D), D, 1, 1, 1, 2, 3), normal(o, 1), PARAM_WEIGHT);
    penalise(o, g, norm_of, A, NULL);
    struct tensor *diagonal = generated(o, g, d, takes_signature(o) ? A : activate(g, A, ACT_TANH));
    return scan_hadamard(g, diagonal, y0, o->clip);
}

static struct tensor *diagonal_dense(const struct slice *o, struct graph *g, const struct drive *d, struct tensor *y0,
                                     int64_t D) {
    int64_t b = o->block, n = D - b, C = letters(o, D);
    struct drive letters_alone = *d;
    if (depth_of(o, D) == 2) letters_alone.w = columns(g, d->w, 0, C);
    struct tensor *diagonal = generators(o, g, "A.diagonal", C, n, 1);
    struct tensor *dense = generators(o, g, "A.dense", C, 1, b);
    penalise(o, g, norm_of, diagonal, dense);
    struct tensor *first = flow(o, g, diagonal, &letters_alone, columns(g, y0, 0, n), n, 1);
    return join_columns(g, first, flow(o, g, dense, d, columns(g, y0, n, b), 1, b));
}

/* The states y_0 .. y_K (B,1+K,.), from y_0 and the path. */
static struct tensor *states(const struct slice *o, struct graph *g, const struct drive *d, struct tensor *y0,
                             int64_t D) {
    int64_t b = o->block;
    switch ((enum structure)o->structure) {
    case DIAGONAL:
        return blocks(o, g, d, y0, D, 1);
    case BLOCK:
        return blocks(o, g, d, y0, D / b, b);
    case DENSE:
        return blocks(o, g, d, y0, 1, D);
    case SPARSE:
        return masked_dense(o, g, d, y0, D);
    case DPLR:
        return low_rank(o, g, d, y0, D);
    case HADAMARD:
        return walsh_hadamard(o, g, d, y0, D);
    case DIAGONAL_DENSE:
        return diagonal_dense(o, g, d, y0, D);
    }
    return NULL;
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct slice *o = inst;
    int64_t B = x->dims[0], T = x->dims[1], D = x->dims[2];
    const struct graph_builder *now = graph_builder(g);
    struct drive d = {0};
    if (o->table && x == now->embedded.x) d.tokens = now->embedded;
    if (o->table && !d.tokens.x && now->layer == 0 && !now->backwards) {
        graph_fail(
            g, ST_USAGE,
            "slice: table=yes looks up the generators of tokens, and the first layer of this net reads something "
            "else; take --backbone slice, slice-glu or stacked on a task of tokens, or table=no");
        return NULL;
    }
    struct tensor *w_init =
        graph_param(g, &(struct param_spec){.name = "init.weight", .rank = 2, .dims = {D, D}, .init = normal(o, 1)});
    struct tensor *b_init = vector(g, "init.bias", D, normal(o, 1), AS_CONTRACT);
    struct tensor *x0 = columns(g, graph_reshape(g, x, 2, (int64_t[]){B, T * D}), 0, D);
    struct tensor *y0 = linear(g, x0, w_init, b_init);
    d.w = path_of(o, g, x);
    d.masked = o->clip == 0 && now->lengths; /* else states past an end may overflow */
    if (d.masked) d.w = rows_in_use(g, d.w, now->lengths, NULL);
    if (!takes_signature(o)) return states(o, g, &d, y0, D);
    d.w = log_signature(g, rows_in_use(g, d.w, now->lengths, NULL), o->interval, depth_of(o, D));
    return rows_of_intervals(g, states(o, g, &d, y0, D), now->lengths, o->interval, T);
}

/* y and, with intervals longer than a step, the log-signature of the current interval so far. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    const struct slice *o = inst;
    return d->D + (takes_signature(o) ? log_signature_size(letters(o, d->D), depth_of(o, d->D)) : 0);
}

const struct model model_slice = {
    .name = "slice",
    .title = "SLiCE",
    .summary = "structured linear CDE: y_t = (I + A(w_t)) y_{t-1}, seven structures of A (Walker et al. 2025)",
    .equation =
        "w_t = dt (1, x_t), or dt x_t with time-letter=no;  y_0 = W_i x_0 + b_i;  y_t = y_{t-1} + A(w_t) y_{t-1}\n"
        "interval, depth: A of the log-signature of each interval, sum_i l_i A_i + sum_{i<j} a_ij (A_j A_i - "
        "A_i A_j);\n"
        "flow=exp: y_k = exp(A) y_{k-1}",
    .options = options,
    .small = "slice:structure=diagonal slice:structure=block,block=3 slice:structure=dense "
             "slice:structure=dplr,rank=2 slice:structure=sparse,keep=0.4 "
             "slice:structure=diagonal-dense,block=5 slice:structure=block,block=3,interval=3,depth=2 "
             "slice:structure=diagonal-dense,block=5,interval=4,depth=2,flow=exp "
             "slice:structure=dplr,rank=2,interval=2",
    .inst_bytes = sizeof(struct slice),
    .causal = true,
    .check = check,
    .build = build,
    .state_floats = state_floats,
};
