/* tree_solve.c - linear systems on perfect trees, solved exactly by one pass up and one pass down: the op and its
 * reference.
 *
 * Node v has the parent p(v), the right-hand side u_v, the unknown x_v and the couplings b_v and c_v with its parent:
 *   x_v + b_v x_p(v) + sum over children j of c_j x_j = u_v
 * The pass up, from the leaves to the root, eliminates the children; a_v is the pivot and z_v the new right-hand side.
 * The pass down gives x (Myosotis, Eq. 9 to 12):
 *   up     a_v = 1 - sum_j c_j b_j / a_j,   z_v = (u_v - sum_j c_j z_j) / a_v
 *   down   x_root = z_root,   x_v = z_v - (b_v / a_v) x_p(v)
 *
 * Backward: T is the matrix of the system and g the gradient of x. T^H lambda = g is the same system with b replaced by
 * conj(c), c by conj(b) and a by conj(a). Then
 *   du = lambda;   db_v = -lambda_v conj(x_p(v));   dc_v = -lambda_p(v) conj(x_v)
 * If c = +-conj(b) (hermitian or skew), db += +-conj(dc). The bound is b = beta s theta, s = (1 + |theta|^2)^-1/2, so
 *   dtheta = beta (s db - s^3 theta Re(conj(theta) db))
 * Complex tensors are two real planes; the gradient of z is stored as dL/dre + i dL/dim. */
#include <complex.h>
#include <inttypes.h>
#include <math.h>

#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"
#include "kernels/tree/tree_walk.h"

int64_t tree_places(const struct tree *t) {
    return t->arity == 1 ? t->levels : tree_bottom(t, 0).count;
}

struct tree tree_for(int64_t arity, int64_t leaves) {
    struct tree t = {arity, arity == 1 ? leaves : 1, leaves};
    while (tree_places(&t) < leaves) t.levels++;
    return t;
}

struct tensor *input_couplings(struct graph *g, const struct op_sizes *nodes, const struct tree *t,
                               enum tree_sharing sharing, const char *name) {
    if (sharing == OWN_OF_SAMPLE) return input_tokens(g, nodes, name, nodes->blocks);
    bool one = sharing == SHARED_BY_ALL || t->levels == 1;
    int64_t rows = one ? 1 : sharing == SHARED_BY_LEVEL ? t->levels - 1 : nodes->length - 1;
    return input_matrix(g, name, rows, nodes->blocks);
}

struct tensor *tree_solve(struct graph *g, const struct tree_system *s, struct tensor **x_im) {
    struct tree_solve_attr attr = {.tree = s->tree, .form = s->form, .beta = s->beta, .block = s->block};
    struct tensor *in[TREE_INPUTS] = {s->up_re, s->up_im, s->down_re, s->down_im, s->u_re, s->u_im, s->leaves};
    const struct op *op = s->block ? &op_tree_block : &op_tree_solve;
    struct call *c = graph_call(g, op, &attr, sizeof attr, in, TREE_INPUTS);
    if (x_im) *x_im = c ? c->out[1] : NULL;
    return c ? c->out[0] : NULL;
}

/* Whether a table of couplings has P columns and u as many; with blocks (m,m,P), and u (m,r,P) for a whole r. */
static bool width_fits(const struct call *c, const struct tensor *p, const struct tensor *u) {
    int64_t m = tree_solve_attr(c)->block, width = tensor_cols(p);
    if (c->op != &op_tree_block) return width == u->dims[2];
    return width % (m * m) == 0 && u->dims[2] % (width / m) == 0;
}

/* Whether a plane of a table of couplings has one of the four shapes of tree.h, and the same shape as `first`. */
static bool table_fits(struct graph *g, const struct call *c, const struct tensor *p, const struct tensor *first,
                       const struct tensor *u) {
    const struct tree *t = &tree_solve_attr(c)->tree;
    int64_t nodes = u->dims[1], rows = p->dims[0];
    bool same = p->rank == first->rank;
    for (int i = 0; same && i < p->rank; i++) same = p->dims[i] == first->dims[i];
    if (p->rank != 2 && p->rank != 3) {
        graph_fail(g, ST_USAGE, "%s: couplings have rank %d, expected 2 (rows,P) or 3 (B,nodes,P)", c->op->name,
                   p->rank);
    } else if (!width_fits(c, p, u)) {
        graph_fail(g, ST_USAGE, "%s: couplings are %" PRId64 " wide, expected u's %" PRId64 " columns%s", c->op->name,
                   tensor_cols(p), u->dims[2], c->op == &op_tree_block ? " (m,r,P) as (m,m,P)" : "");
    } else if (!same) {
        graph_fail(g, ST_USAGE,
                   "%s: couplings hold %" PRId64 " and %" PRId64 " elements; all planes must have the same shape",
                   c->op->name, tensor_count(p), tensor_count(first));
    } else if (p->rank == 3 && (rows != u->dims[0] || p->dims[1] != nodes)) {
        graph_fail(g, ST_USAGE,
                   "%s: couplings are (%" PRId64 ",%" PRId64 ") and u (%" PRId64 ",%" PRId64
                   ") in batch and nodes; they must agree",
                   c->op->name, rows, p->dims[1], u->dims[0], nodes);
    } else if (p->rank == 2 && rows != 1 && rows != t->levels - 1 && rows != nodes - 1) {
        graph_fail(g, ST_USAGE,
                   "%s: couplings have %" PRId64 " rows, expected 1, levels-1 = %" PRId64 " or nodes-1 = %" PRId64,
                   c->op->name, rows, t->levels - 1, nodes - 1);
    } else {
        return true;
    }
    return false;
}

static bool tree_fits(struct graph *g, const struct call *c, const struct tensor *u) {
    const struct tree *t = &tree_solve_attr(c)->tree;
    int64_t nodes = tree_nodes(t);
    if (u->rank != 3)
        graph_fail(g, ST_USAGE, "%s: u has rank %d, expected 3 (B,nodes,P)", c->op->name, u->rank);
    else if (nodes < 0)
        graph_fail(g, ST_USAGE, "%s: a tree of arity %" PRId64 " and %" PRId64 " levels has no node or more than 2^31",
                   c->op->name, t->arity, t->levels);
    else if (u->dims[1] != nodes)
        graph_fail(g, ST_USAGE,
                   "%s: u has %" PRId64 " nodes but the tree of arity %" PRId64 " and %" PRId64 " levels has %" PRId64,
                   c->op->name, u->dims[1], t->arity, t->levels, nodes);
    else if (t->leaves < 0 || t->leaves > tree_places(t))
        graph_fail(g, ST_USAGE, "%s: %" PRId64 " real leaves do not fit a tree of %" PRId64, c->op->name, t->leaves,
                   tree_places(t));
    else
        return true;
    return false;
}

void tree_solve_infer(struct graph *g, struct call *c) {
    const struct tree_solve_attr *a = tree_solve_attr(c);
    const struct tensor *u = c->in[TREE_U_RE], *u_im = c->in[TREE_U_IM], *leaves = c->in[TREE_LEAVES];
    if (!u || !u_im) {
        graph_fail(g, ST_FAIL, "%s: input %d is missing", c->op->name, u ? TREE_U_IM : TREE_U_RE);
        return;
    }
    bool blocks = c->op == &op_tree_block;
    if (blocks && (a->block < 1 || a->block > TREE_BLOCK_MAX || tensor_cols(u) % a->block)) {
        graph_fail(g, ST_USAGE,
                   "%s: blocks of m = %" PRId64 " and u of %" PRId64 " columns, expected m in 1..%d and m r P columns",
                   c->op->name, a->block, tensor_cols(u), TREE_BLOCK_MAX);
        return;
    }
    if (!tree_fits(g, c, u) || !tree_fits(g, c, u_im)) return;
    bool alone = a->tree.levels == 1 && !c->in[TREE_UP_RE];
    int tables = alone ? 0 : a->form == TREE_FREE ? 4 : 2;
    for (int i = 0; i < TREE_U_RE; i++) {
        if (!c->in[i] != (i >= tables)) {
            graph_fail(g, ST_USAGE, "%s: %d coupling planes expected, up and in the free form down; plane %d is %s",
                       c->op->name, tables, i, c->in[i] ? "one too many" : "missing");
            return;
        }
        if (c->in[i] && !table_fits(g, c, c->in[i], c->in[TREE_UP_RE], u)) return;
    }
    if (!infer_same_shape(g, c, TREE_U_RE, TREE_U_IM)) return;
    if (leaves && (leaves->rank != 1 || leaves->dims[0] != u->dims[0] || leaves->limit > tree_places(&a->tree) + 1)) {
        graph_fail(g, ST_USAGE,
                   "%s: leaves holds %" PRId64 " counts below %d, expected %" PRId64 " of at most %" PRId64,
                   c->op->name, tensor_count(leaves), leaves->limit, u->dims[0], tree_places(&a->tree));
        return;
    }
    graph_output(g, c, DT_REAL, 3, u->dims);
    graph_output(g, c, DT_REAL, 3, u->dims);
}

/* FLOPs: 20 per node, backward 16 more for the couplings' gradient; 16 to factor a row, 20 more if the rows belong to
 * the sample. Bytes: forward u and x; backward g, x, du; couplings once per pass. */
static struct cost tree_solve_cost(const struct call *c, enum pass pass) {
    const struct tree_solve_attr *a = tree_solve_attr(c);
    double values = (double)tensor_count(c->out[0]), rows = 0;
    for (int i = 0; i < TREE_U_RE; i++)
        if (c->in[i]) rows += (double)tensor_count(c->in[i]);
    double factor = 16 * rows / 2, extra = a->form == TREE_FREE ? 2 : 1;
    if (pass == PASS_FORWARD) return (struct cost){20 * values + factor, sizeof(real) * (4 * values + rows)};
    return (struct cost){(20 + 16 * extra) * values + 2 * factor, sizeof(real) * (6 * values + 2 * rows)};
}

/* `length` leaves, or nodes of a chain. Variants: every form, sharing and arity, without and with counts of leaves. */
static bool tree_solve_build(struct graph *g, const struct op_sizes *s) {
    static const struct {
        int64_t arity;
        enum tree_form form;
        enum tree_sharing sharing;
        bool counts;
    } cases[] = {
        {2, TREE_HERMITIAN, SHARED_BY_LEVEL, false}, {1, TREE_FREE, SHARED_BY_ALL, false},
        {3, TREE_SKEW, OWN_OF_SAMPLE, true},         {2, TREE_FREE, OWN_OF_NODE, false},
        {2, TREE_HERMITIAN, SHARED_BY_LEVEL, true},  {3, TREE_FREE, OWN_OF_SAMPLE, false},
        {1, TREE_HERMITIAN, SHARED_BY_LEVEL, true},  {1, TREE_FREE, OWN_OF_SAMPLE, true},
    };
    if (s->variant >= (int64_t)(sizeof cases / sizeof *cases)) return false;
    static const char *const names[] = {"up_re", "up_im", "down_re", "down_im"};
    enum tree_form form = cases[s->variant].form;
    enum tree_sharing sharing = cases[s->variant].sharing;
    struct tree t = tree_for(cases[s->variant].arity, s->length);
    bool alone = t.levels == 1 && sharing == SHARED_BY_LEVEL;
    struct tree_system system = {.tree = t, .form = form, .beta = form == TREE_SKEW ? 0 : 0.9 / (double)(t.arity + 1)};
    struct tensor **tables[] = {&system.up_re, &system.up_im, &system.down_re, &system.down_im};
    struct op_sizes nodes = *s;
    nodes.length = tree_nodes(&t);
    for (int i = 0; i < (alone ? 0 : form == TREE_FREE ? 4 : 2); i++)
        *tables[i] = input_couplings(g, &nodes, &t, sharing, names[i]);
    system.u_re = input_tokens(g, &nodes, "u_re", s->blocks);
    system.u_im = input_tokens(g, &nodes, "u_im", s->blocks);
    if (cases[s->variant].counts) system.leaves = input_lengths(g, s);
    tree_solve(g, &system, NULL);
    return true;
}

static struct heads tree_solve_heads(const struct call *c) {
    return (struct heads){tensor_cols(c->out[0]), {1, 1, 1, 1, 1, 1}, {1, 1}};
}

const struct op op_tree_solve = {
    .name = "tree_solve",
    .maths = "x_v + b_v x_p(v) + sum_c c_c x_c = u_v on a tree, b = beta theta / sqrt(1 + |theta|^2)",
    .source = "Myosotis (Egorov et al.), Eq. 9 to 12 and section 3.5; the bound of b is ours",
    .needs_in = 1u << TREE_UP_RE | 1u << TREE_UP_IM | 1u << TREE_DOWN_RE | 1u << TREE_DOWN_IM | 1u << TREE_LEAVES,
    .needs_out = 3,
    .no_grad_in = 1u << TREE_LEAVES,
    .infer = tree_solve_infer,
    .cost = tree_solve_cost,
    .heads = tree_solve_heads,
    .sizes = "batch length blocks",
    .build = tree_solve_build,
};

/* --- reference: one head of one sequence at a time, in double -------------------------------------------------- */

/* The arrays have one value per node; db and dc have one per row of the tables. */
struct nodes {
    double complex *b, *c, *inverse, *x, *lambda, *db, *dc;
};

static struct nodes take_nodes(const struct call *c, struct scratch *s) {
    double complex *at[7];
    for (int i = 0; i < 7; i++) at[i] = scratch_bytes(s, (size_t)c->out[0]->dims[1] * sizeof(double complex));
    return (struct nodes){at[0], at[1], at[2], at[3], at[4], at[5], at[6]};
}

static size_t tree_solve_ref_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    take_nodes(c, &s);
    return s.used;
}

static struct nodes nodes_of(const struct call *c, enum pass pass) {
    struct scratch s = scratch_of(c, pass);
    return take_nodes(c, &s);
}

/* Returns element i of the complex tensor whose planes are inputs `plane` and plane + 1. */
static double complex input_at(const struct call *c, int plane, int64_t i) {
    return tensor_real(c->in[plane])[i] + I * (double)tensor_real(c->in[plane + 1])[i];
}

static double complex bounded(double beta, double complex theta) {
    return beta > 0 ? beta * theta / sqrt(1 + creal(theta * conj(theta))) : theta;
}

/* Returns 1 / z. It is spelt out, because compilers divide complex numbers in different ways. */
static double complex reciprocal(double complex z) {
    double size = creal(z) * creal(z) + cimag(z) * cimag(z);
    return conj(z) / size;
}

/* Computes couplings and reciprocal pivots of all real nodes of head p of sequence b, whose tree is t. */
static void factor(const struct call *c, const struct tree *t, struct nodes n, int64_t b, int64_t p) {
    const struct tree_solve_attr *a = tree_solve_attr(c);
    int64_t T = c->out[0]->dims[1], P = c->out[0]->dims[2], leaves = t->leaves;
    struct tree_level below = {0}, v = tree_bottom(t, leaves);
    for (int64_t l = 0; l < t->levels; l++, below = v, v = tree_above(t, leaves, v))
        for (int64_t i = 0; i < v.real; i++) {
            double complex pivot = 1;
            for (int64_t j = 0; l && j < tree_children(t, below, i); j++) {
                int64_t child = below.offset + i * t->arity + j;
                pivot -= n.c[child] * n.b[child] * n.inverse[child];
            }
            n.inverse[v.offset + i] = reciprocal(pivot);
            if (l == t->levels - 1 || !c->in[TREE_UP_RE]) continue; /* the root couples to nothing */
            enum tree_sharing sharing = tree_sharing(&a->tree, c->in[TREE_UP_RE]);
            int64_t e = ((sharing == OWN_OF_SAMPLE ? b * T : 0) + tree_row(sharing, v, i)) * P + p;
            double complex up = bounded(a->beta, input_at(c, TREE_UP_RE, e));
            n.b[v.offset + i] = up;
            n.c[v.offset + i] = a->form == TREE_HERMITIAN ? conj(up)
                                : a->form == TREE_SKEW    ? -conj(up)
                                                          : bounded(a->beta, input_at(c, TREE_DOWN_RE, e));
        }
}

/* Solves the system. On entry x has the right-hand side, afterwards the solution. */
static void solve(const struct tree *t, struct nodes n, double complex *x) {
    int64_t leaves = t->leaves;
    struct tree_level below = {0}, v = tree_bottom(t, leaves);
    for (int64_t l = 0; l < t->levels; l++, below = v, v = tree_above(t, leaves, v))
        for (int64_t i = 0; i < v.real; i++) {
            double complex *z = x + v.offset + i;
            for (int64_t j = 0; l && j < tree_children(t, below, i); j++) {
                int64_t child = below.offset + i * t->arity + j;
                *z -= n.c[child] * x[child];
            }
            *z *= n.inverse[v.offset + i];
        }
    struct tree_level above = tree_root(t, leaves);
    for (int64_t l = t->levels - 2; l >= 0; l--, above = v) {
        v = tree_below(t, leaves, above);
        for (int64_t i = 0; i < v.real; i++) {
            int64_t child = v.offset + i;
            x[child] -= n.b[child] * n.inverse[child] * x[above.offset + i / t->arity];
        }
    }
}

/* Turns the factors of T into the factors of T^H. */
static void adjoin(const struct tree *t, struct nodes n) {
    struct tree_level v = tree_bottom(t, t->leaves);
    for (int64_t l = 0; l < t->levels; l++, v = tree_above(t, t->leaves, v))
        for (int64_t i = v.offset; i < v.offset + v.real; i++) {
            n.inverse[i] = conj(n.inverse[i]);
            if (l == t->levels - 1) continue;
            double complex b = n.b[i];
            n.b[i] = conj(n.c[i]);
            n.c[i] = conj(b);
        }
}

/* Sets x to 0, because padding nodes are never written but read as 0. */
static void clear(double complex *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) x[i] = 0;
}

/* Sets x[v] to the element of head p in the planes re and im (NULL: zeros) for real nodes, and to 0 for padding. */
static void gather(const struct tree *t, const real *re, const real *im, int64_t P, int64_t T, double complex *x) {
    clear(x, T);
    struct tree_level v = tree_bottom(t, t->leaves);
    for (int64_t l = 0; l < t->levels; l++, v = tree_above(t, t->leaves, v))
        for (int64_t i = v.offset; i < v.offset + v.real; i++) x[i] = re[i * P] + I * (double)(im ? im[i * P] : 0);
}

static void tree_solve_ref_forward(const struct call *c, const struct exec *e) {
    (void)e;
    int64_t B = c->out[0]->dims[0], T = c->out[0]->dims[1], P = c->out[0]->dims[2];
    struct nodes n = nodes_of(c, PASS_FORWARD);
    for (int64_t b = 0; b < B; b++)
        for (int64_t p = 0; p < P; p++) {
            struct tree t = tree_of_sequence(c, b);
            int64_t first = b * T * P + p;
            factor(c, &t, n, b, p);
            gather(&t, tensor_real(c->in[TREE_U_RE]) + first, tensor_real(c->in[TREE_U_IM]) + first, P, T, n.x);
            solve(&t, n, n.x);
            for (int64_t i = 0; i < T; i++) {
                tensor_real(c->out[0])[first + i * P] = (real)creal(n.x[i]);
                tensor_real(c->out[1])[first + i * P] = (real)cimag(n.x[i]);
            }
        }
}

static void put_complex(const struct call *c, int plane, int64_t i, double complex value) {
    if (c->din[plane]) put(c->din[plane] + i, call_accumulates(c, plane), (real)creal(value));
    if (c->din[plane + 1]) put(c->din[plane + 1] + i, call_accumulates(c, plane + 1), (real)cimag(value));
}

/* Adds the couplings' gradients of one sequence to the rows of db and dc. */
static void couple_gradient(const struct call *c, const struct tree *t, struct nodes n) {
    const struct tree_solve_attr *a = tree_solve_attr(c);
    enum tree_sharing sharing = tree_sharing(&a->tree, c->in[TREE_UP_RE]);
    struct tree_level above, v = tree_bottom(t, t->leaves);
    for (int64_t l = 0; l + 1 < t->levels; l++, v = above) {
        above = tree_above(t, t->leaves, v);
        for (int64_t i = 0; i < v.real; i++) {
            int64_t child = v.offset + i, parent = above.offset + i / t->arity, row = tree_row(sharing, v, i);
            double complex db = -n.lambda[child] * conj(n.x[parent]), dc = -n.lambda[parent] * conj(n.x[child]);
            n.db[row] += a->form == TREE_FREE ? db : a->form == TREE_SKEW ? db - conj(dc) : db + conj(dc);
            n.dc[row] += dc;
        }
    }
}

static double complex unbound(double beta, double complex theta, double complex db) {
    if (beta <= 0) return db;
    double s = 1 / sqrt(1 + creal(theta * conj(theta)));
    return beta * (s * db - s * s * s * theta * creal(conj(theta) * db));
}

/* Writes the gradients of head p of `rows` rows of the tables from row `first` on. */
static void put_tables(const struct call *c, struct nodes n, int64_t first, int64_t rows, int64_t p) {
    const struct tree_solve_attr *a = tree_solve_attr(c);
    int64_t P = c->out[0]->dims[2];
    for (int64_t r = 0; r < rows; r++) {
        int64_t e = (first + r) * P + p;
        put_complex(c, TREE_UP_RE, e, unbound(a->beta, input_at(c, TREE_UP_RE, e), n.db[r]));
        if (a->form == TREE_FREE)
            put_complex(c, TREE_DOWN_RE, e, unbound(a->beta, input_at(c, TREE_DOWN_RE, e), n.dc[r]));
    }
}

static void tree_solve_ref_backward(const struct call *c, const struct exec *e) {
    (void)e;
    const struct tensor *table = c->in[TREE_UP_RE];
    int64_t B = c->out[0]->dims[0], T = c->out[0]->dims[1], P = c->out[0]->dims[2];
    bool sample = table && table->rank == 3;
    struct nodes n = nodes_of(c, PASS_BACKWARD);
    for (int64_t p = 0; p < P; p++) {
        clear(n.db, T);
        clear(n.dc, T);
        for (int64_t b = 0; b < B; b++) {
            struct tree t = tree_of_sequence(c, b);
            int64_t first = b * T * P + p;
            const real *g_im = call_dout(c, 1);
            factor(c, &t, n, b, p);
            adjoin(&t, n);
            gather(&t, call_dout(c, 0) + first, g_im ? g_im + first : NULL, P, T, n.lambda);
            solve(&t, n, n.lambda);
            gather(&t, tensor_real(c->out[0]) + first, tensor_real(c->out[1]) + first, P, T, n.x);
            for (int64_t i = 0; i < T; i++) put_complex(c, TREE_U_RE, first + i * P, n.lambda[i]);
            couple_gradient(c, &t, n);
            if (!sample) continue;
            put_tables(c, n, b * T, T, p);
            clear(n.db, T);
            clear(n.dc, T);
        }
        if (table && !sample) put_tables(c, n, 0, table->dims[0], p);
    }
}

const struct kernel kernel_tree_solve_ref = {
    .name = "tree_solve_ref",
    .op = &op_tree_solve,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = tree_solve_ref_workspace,
    .forward = tree_solve_ref_forward,
    .backward = tree_solve_ref_backward,
};
