/* myosotis.c - Myosotis: per head, one sparse linear system whose pattern is a k-ary tree, solved exactly in linear
 * time.
 *
 *   u = W_in x      z_v + b_v z_p(v) + sum over children c of c_c z_c = u_v      y = 2 Re(W_out z) + skip * x
 *   b = beta theta / sqrt(1 + |theta|^2)      theta = up[row of v], selective: up[row of v] + W x_v
 *   dd: c = conj(b), beta = rho/(k+1)   pd: c = conj(b), beta = rho/(2 sqrt k)   skew: c = -conj(b), b = theta
 *   free: c of its own, from `down`, beta as dd
 *
 * block=m: z_v, u_v are vectors of m numbers, b_v and c_v m x m matrices (appendix A.1 to A.3; tree_block.c, where the
 * bound of a matrix is in the spectral norm). P heads then have P m numbers per node. rhs=r: r such systems per head
 * share their couplings.
 *
 * Myosotis paper (Egorov et al.), Eq. 9 to 12 and section 3.5, which wants the system symmetric and diagonally dominant
 * but gives no formula: the bounds, and the forms pd, skew and free, are ours. The T rows are all nodes, leaves first,
 * then level by level. The tokens are the leaves, or all nodes of a chain (arity 1). A sequence has the tree over its
 * own tokens: a node with no token below it is cut off, and a chain ends with the sequence.
 *
 * Initial couplings follow S5 (s5/ssm_init.py), from HiPPO-N, as section 3.5 says; the rule is ours. lambda_h =
 * exp(Delta_h (-1/2 + i w_h)), w the lower half of the spectrum of -i (N + I/2), `blocks` copies side by side; b/beta =
 * -min(|lambda|, 0.99) lambda/|lambda| for every node. Blocks begin as diagonal matrices: component i of head h has the
 * frequency of head i P + h among m P scalar heads. Initial W_in = V^H G and W_out = G' V with V unitary. For normal
 * G and G' their planes are independent normal numbers, so these are drawn directly. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "kernels/dense/dense.h"
#include "kernels/move/move.h"
#include "kernels/tree/tree.h"
#include "models/hippo.h"
#include "models/parts.h"

#define RHO 0.95 /* the default */

enum form { FORM_DD, FORM_PD, FORM_SKEW, FORM_FREE };
enum share { SHARE_LEVEL, SHARE_HEAD, SHARE_NODE };

struct myosotis {
    int64_t arity, levels, heads, blocks, block, rhs;
    int form, share;
    double rho;
    char leaves[OPTION_TEXT];
    bool selective;
    int64_t tokens; /* not an option: the number of leaves, or nodes of a chain, that are tokens; 0: all */
};

static const struct option options[] = {
    {"arity", OPT_INT, offsetof(struct myosotis, arity), "2", 1, 1 << 20, NULL, "children a node k", 0},
    {"levels", OPT_INT, offsetof(struct myosotis, levels), "auto", 1, 1 << 30, NULL,
     "levels of the tree; auto: the smallest tree whose leaves hold the tokens", OPT_AUTO},
    {"heads", OPT_INT, offsetof(struct myosotis, heads), "64", 1, 1 << 20, NULL, "complex systems P", 0},
    {"form", OPT_CHOICE, offsetof(struct myosotis, form), "dd", 0, 0, "dd pd skew free",
     "how b and c are tied and bounded", 0},
    {"share", OPT_CHOICE, offsetof(struct myosotis, share), "level", 0, 0, "level head node", "who shares a coupling",
     0},
    {"rho", OPT_REAL, offsetof(struct myosotis, rho), "0.95", 1e-6, 1, NULL, "bound on the couplings' sum", 0},
    {"leaves", OPT_TEXT_FIELD, offsetof(struct myosotis, leaves), "all", 0, 0, NULL,
     "real leaves, or nodes of a chain; the rest is padding", 0},
    {"selective", OPT_BOOL, offsetof(struct myosotis, selective), "no", 0, 0, NULL, "couplings depend on the input", 0},
    {"blocks", OPT_INT, offsetof(struct myosotis, blocks), "1", 1, 1 << 20, NULL,
     "copies of HiPPO-N in the initial couplings", OPT_BLOCKS},
    {"block", OPT_INT, offsetof(struct myosotis, block), "1", 1, TREE_BLOCK_MAX, NULL,
     "size m: z_v has m numbers, b_v and c_v are m x m matrices of bounded spectral norm", 0},
    {"rhs", OPT_INT, offsetof(struct myosotis, rhs), "1", 1, 1 << 20, NULL,
     "right-hand sides r of a head, which share its couplings", 0},
    {0}};

/* The number of levels of the tree with T nodes. 0: there is no such tree; *below and *above are the nearest sizes. */
static int64_t levels_for(int64_t arity, int64_t T, int64_t *below, int64_t *above) {
    struct tree t = {arity, 1, 0};
    *below = 0;
    while ((*above = tree_nodes(&t)) < T && *above > 0 && arity > 1) {
        *below = *above;
        t.levels++;
    }
    if (arity == 1) t.levels = *above = T;
    return *above == T ? t.levels : 0;
}

/* Diagonal elements of a node's couplings: heads of a scalar system. */
static int64_t diagonals(const struct myosotis *o) {
    return o->heads * o->block;
}

static enum status check(void *inst, const struct dims *d, struct error *e) {
    struct myosotis *o = inst;
    int64_t below, above, leaves;
    if (o->levels == 0 && !(o->levels = levels_for(o->arity, d->T, &below, &above)))
        return fail(e, ST_USAGE,
                    "myosotis: no perfect tree of arity=%" PRId64 " has %" PRId64 " nodes; the nearest have %" PRId64
                    " and %" PRId64,
                    o->arity, d->T, below, above);
    struct tree t = {o->arity, o->levels, 0};
    int64_t nodes = tree_nodes(&t);
    if (nodes < 0)
        return fail(e, ST_USAGE, "myosotis: a tree of arity=%" PRId64 " levels=%" PRId64 " has 2^31 nodes or more",
                    o->arity, o->levels);
    if (nodes != d->T)
        return fail(e, ST_USAGE,
                    "myosotis: the tree of arity=%" PRId64 " levels=%" PRId64 " has %" PRId64
                    " nodes but the length is %" PRId64,
                    o->arity, o->levels, nodes, d->T);
    if (diagonals(o) % o->blocks)
        return fail(e, ST_USAGE, "myosotis: heads=%" PRId64 "%s is not divisible by blocks=%" PRId64, diagonals(o),
                    o->block > 1 ? " (times block)" : "", o->blocks);
    if (diagonals(o) / o->blocks > HIPPO_MAX)
        return fail(e, ST_USAGE,
                    "myosotis: heads=%" PRId64 "%s in blocks=%" PRId64 " are more than %d a block; raise blocks",
                    diagonals(o), o->block > 1 ? " (times block)" : "", o->blocks, HIPPO_MAX);
    bool all = strcmp(o->leaves, "all") == 0;
    if (!all && !parse_int64(o->leaves, &leaves))
        return fail(e, ST_USAGE, "myosotis: leaves=%s is neither a number nor all", o->leaves);
    if (!all && (leaves < 1 || leaves > tree_places(&t)))
        return fail(e, ST_USAGE,
                    "myosotis: leaves=%" PRId64 " but the tree of arity=%" PRId64 " levels=%" PRId64 " has 1..%" PRId64,
                    leaves, t.arity, t.levels, tree_places(&t));
    if (o->form == FORM_SKEW && o->rho != RHO)
        return fail(e, ST_USAGE,
                    "myosotis: rho=%g bounds the couplings of the other forms, and couplings of form=skew may have any "
                    "size; leave it out, or take another form",
                    o->rho);
    double floats =
        (double)diagonals(o) * (double)d->B * (double)d->T * (double)(4 * o->rhs + (o->selective ? 4 * o->block : 0));
    char asked[80];
    snprintf(asked, sizeof asked, "myosotis: heads=%" PRId64, o->heads);
    return check_room(asked, "systems", floats, d, e);
}

/* --- tokens as leaves ------------------------------------------------------------------------------------------- */

/* The number of nodes for T tokens: every node of a chain is a token, in a tree every leaf may be one. */
static enum status nodes(void *inst, int64_t T, int64_t *n, struct error *e) {
    struct myosotis *o = inst;
    struct tree t = {o->arity, o->levels ? o->levels : o->arity == 1 ? T : 1, 0};
    if (tree_nodes(&t) < 0)
        return fail(e, ST_USAGE, "myosotis: a tree of arity=%" PRId64 " levels=%" PRId64 " has 2^31 nodes or more",
                    t.arity, t.levels);
    while (o->levels == 0 && tree_places(&t) < T) t.levels++;
    if (tree_places(&t) < T)
        return fail(e, ST_USAGE,
                    "myosotis: the tree of arity=%" PRId64 " levels=%" PRId64 " has %" PRId64
                    " leaves but the length is %" PRId64,
                    t.arity, t.levels, tree_places(&t), T);
    o->levels = t.levels;
    o->tokens = T;
    *n = tree_nodes(&t);
    return ST_OK;
}

/* Appends a row for each node that is no token. Leaves without a token, and nodes past the end of a chain, are zeros;
 * the system cuts them off. The inner nodes of a level share one learnt vector that starts at 0, because the paper does
 * not say what its virtual nodes read. */
static struct tensor *append(const void *inst, struct graph *g, struct tensor *x) {
    const struct myosotis *o = inst;
    struct tree t = {o->arity, o->levels, 0};
    if (!x) return NULL;
    int64_t T = x->dims[1], D = x->dims[2], all = tree_nodes(&t), width = tree_places(&t);
    int32_t *first = graph_alloc(g, (size_t)(2 * all - T) * sizeof *first);
    if (!first) return NULL;
    graph_builder(g)->row_first = first;
    if (t.arity == 1) {
        for (int32_t v = 0; v < all; v++) first[v] = v;
        return rows_to_grid(g, x, graph_builder(g)->lengths, &(struct grid){.height = all, .width = 1});
    }
    int32_t *which = first + all;
    for (int64_t v = 0, level = 0, begin = 0, below = 1; v < all; v++) { /* `below` leaves under a node of the level */
        if (v == begin + width) {
            begin = v;
            level++;
            width /= t.arity;
            below *= t.arity;
        }
        if (v >= T) which[v - T] = (int32_t)(level - 1);
        first[v] = (int32_t)((v - begin) * below);
    }
    struct tensor *table = graph_param(
        g,
        &(struct param_spec){
            .name = "nodes", .rank = 2, .dims = {t.levels - 1, D}, .group = PARAM_FREE, .init = {.kind = INIT_ZERO}});
    return append_rows(g, x, table, which, all - T);
}

/* --- initial couplings ----------------------------------------------------------------------------------------- */

/* A row of couplings has columns (m,m,P). `blocks` has the fraction (m - 1) / TREE_BLOCK_MAX, because a draw takes two
 * numbers. */
static double blocks_and_size(const struct myosotis *o) {
    return (double)o->blocks + (double)(o->block - 1) / TREE_BLOCK_MAX;
}

/* Radius |t| and angle of t = b/beta; 0 off the diagonal of a block. Delta = exp(U(log 1e-3, log 1e-1)) is one number
 * per diagonal element of a row: every row draws it with the random numbers of the element among m P scalar heads. */
static void draw_target(struct rng *r, int64_t element, double heads, double blocks, double *radius, double *angle) {
    int64_t m = 1 + (int64_t)((blocks - floor(blocks)) * TREE_BLOCK_MAX), P = (int64_t)heads / m;
    int64_t i = element / P / m % m, head = i * P + element % P, per_block = (int64_t)heads / (int64_t)blocks;
    struct rng own = rng_at(r->seed, r->stream, (uint64_t)head);
    double delta = exp(log(1e-3) + (log(1e-1) - log(1e-3)) * rng_uniform(&own));
    double w = hippo_frequency(per_block, head % per_block);
    *radius = i == element / P % m ? fmin(exp(-0.5 * delta), 0.99) : 0;
    *angle = delta * w;
}

/* theta = t / sqrt(1 - |t|^2) undoes the bound. In the free form c starts at conj(b), its value in the dd form. */
static double draw_re(struct rng *r, int64_t element, double heads, double blocks) {
    double radius, angle;
    draw_target(r, element, heads, blocks, &radius, &angle);
    return -radius / sqrt(1 - radius * radius) * cos(angle);
}

static double draw_im(struct rng *r, int64_t element, double heads, double blocks) {
    double radius, angle;
    draw_target(r, element, heads, blocks, &radius, &angle);
    return -radius / sqrt(1 - radius * radius) * sin(angle);
}

static double draw_im_conjugate(struct rng *r, int64_t element, double heads, double blocks) {
    return -draw_im(r, element, heads, blocks);
}

/* Draws for form=skew, where theta is b itself. */
static double draw_unbounded_re(struct rng *r, int64_t element, double heads, double blocks) {
    double radius, angle;
    draw_target(r, element, heads, blocks, &radius, &angle);
    return -radius * cos(angle);
}

static double draw_unbounded_im(struct rng *r, int64_t element, double heads, double blocks) {
    double radius, angle;
    draw_target(r, element, heads, blocks, &radius, &angle);
    return -radius * sin(angle);
}

/* --- building ------------------------------------------------------------------------------------------------- */

static struct tensor *normal(struct graph *g, const char *name, int64_t out, int64_t in, double sd) {
    return graph_param(
        g, &(struct param_spec){.name = name, .rank = 2, .dims = {out, in}, .init = {.kind = INIT_NORMAL, .b = sd}});
}

/* One plane (re or im) of theta: the rows of table `name`, plus W x_v if selective. NULL: no nodes to couple. */
static struct tensor *plane(const struct myosotis *o, const struct tree *t, struct graph *g, struct tensor *x,
                            const char *name, const char *weight_name,
                            double (*draw)(struct rng *, int64_t, double, double)) {
    int64_t rows = o->share == SHARE_HEAD ? 1 : o->share == SHARE_LEVEL ? t->levels - 1 : tree_nodes(t) - 1;
    int64_t columns = diagonals(o) * o->block;
    struct tensor *table = NULL;
    if (rows)
        table = graph_param(g, &(struct param_spec){.name = name,
                                                    .rank = 2,
                                                    .dims = {rows, columns},
                                                    .group = PARAM_STATE,
                                                    .init = {.kind = INIT_CUSTOM,
                                                             .a = (double)diagonals(o),
                                                             .b = blocks_and_size(o),
                                                             .draw = draw,
                                                             .draws_as = "up.re"}});
    if (!o->selective) return table;
    struct tensor *w = linear(g, x,
                              graph_param(g, &(struct param_spec){.name = weight_name,
                                                                  .rank = 2,
                                                                  .dims = {columns, x->dims[2]},
                                                                  .init = {.kind = INIT_ZERO}}),
                              NULL);
    return rows ? tree_add(g, t, w, table) : w;
}

static struct tensor *build(const void *inst, struct graph *g, struct tensor *x) {
    if (!x) return NULL;
    const struct myosotis *o = inst;
    int64_t P = diagonals(o) * o->rhs, D = x->dims[2], k = o->arity;
    static const enum tree_form forms[] = {TREE_HERMITIAN, TREE_HERMITIAN, TREE_SKEW, TREE_FREE};
    bool bounded = o->form != FORM_SKEW;
    struct tree t = {k, o->levels, 0};
    if (!parse_int64(o->leaves, &t.leaves)) t.leaves = o->tokens ? o->tokens : tree_places(&t);
    struct tree_system s = {.tree = t, .form = forms[o->form], .leaves = graph_builder(g)->lengths};
    s.block = o->block > 1 || o->rhs > 1 ? o->block : 0; /* the scalar op is faster */
    s.beta = !bounded ? 0 : o->form == FORM_PD ? o->rho / (2 * sqrt((double)k)) : o->rho / (double)(k + 1);

    s.up_re = plane(o, &t, g, x, "up.re", "up.weight.re", bounded ? draw_re : draw_unbounded_re);
    s.up_im = plane(o, &t, g, x, "up.im", "up.weight.im", bounded ? draw_im : draw_unbounded_im);
    if (o->form == FORM_FREE) {
        s.down_re = plane(o, &t, g, x, "down.re", "down.weight.re", draw_re);
        s.down_im = plane(o, &t, g, x, "down.im", "down.weight.im", draw_im_conjugate);
    }
    double in_sd = 1 / sqrt(2.0 * (double)D), out_sd = 1 / sqrt(2.0 * (double)P);
    s.u_re = linear(g, x, normal(g, "in.re", P, D, in_sd), NULL);
    s.u_im = linear(g, x, normal(g, "in.im", P, D, in_sd), NULL);
    struct tensor *z_im, *z_re = tree_solve(g, &s, &z_im);
    /* One statement per parameter: the order of declarations is the order in memory, and C evaluates the arguments of a
     * call in any order. */
    struct tensor *out_im = normal(g, "out.im", D, P, out_sd);
    struct tensor *out_re = normal(g, "out.re", D, P, out_sd);
    struct tensor *half_im = linear(g, z_im, out_im, NULL);
    struct tensor *half = sub(g, linear(g, z_re, out_re, NULL), half_im);
    struct tensor *skip = vector(g, "skip", D, (struct init){.kind = INIT_NORMAL, .b = 1}, AS_CONTRACT);
    return add(g, half, add(g, half, scale(g, x, skip)));
}

/* z and u of every node: the system has no smaller state. */
static int64_t state_floats(const void *inst, const struct dims *d) {
    const struct myosotis *o = inst;
    return 2 * diagonals(o) * o->rhs * d->T;
}

const struct model model_myosotis = {
    .name = "myosotis",
    .title = "Myosotis",
    .summary = "tree-structured linear systems solved exactly in linear time (Myosotis paper)",
    .equation = "z_v + b_v z_p(v) + sum_c c_c z_c = (W_in x)_v on a k-ary tree;  y = 2 Re(W_out z) + skip x",
    .options = options,
    .small = "myosotis:arity=1,levels=12,heads=3 myosotis:arity=1,levels=12,heads=5,form=free,share=node "
             "myosotis:arity=1,levels=12,heads=4,form=skew,selective=yes,blocks=2 "
             "myosotis:arity=1,heads=3,form=free,share=head,selective=yes myosotis:heads=3 "
             "myosotis:arity=3,heads=2,selective=yes,share=node "
             "myosotis:heads=2,levels=5,leaves=5 "
             "myosotis:heads=2,block=3,rhs=2,form=free,selective=yes myosotis:arity=1,levels=12,heads=2,block=2",
    .inst_bytes = sizeof(struct myosotis),
    .causal = false,
    .check = check,
    .build = build,
    .state_floats = state_floats,
    .nodes = nodes,
    .append = append,
};
