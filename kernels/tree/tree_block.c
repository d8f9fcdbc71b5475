/* tree_block.c - linear systems of m x m blocks on perfect trees, solved exactly by one pass up and one pass down: the
 * op and its reference.
 *
 *   x_v + B_v x_p(v) + sum over children c of C_c x_c = u_v      x_v, u_v: m x r
 * Up (leaves to root), the pivot A_v and the right-hand side after elimination; down (Myosotis, appendix A.1 to A.3):
 *   A_v = I - sum_c C_c A_c^-1 B_c      z_v = A_v^-1 (u_v - sum_c C_c z_c)
 *   x_root = z_root,  x_v = z_v - A_v^-1 B_v x_p(v)
 * Adjoint, G the incoming gradient: T^H lambda = G is the same system with B -> C^H, C -> B^H, A -> A^H;
 *   du = lambda;  dB_v = -lambda_v x_p(v)^H;  dC_v = -lambda_p(v) x_v^H;  hermitian and skew: dB += +-dC^H
 *
 * No pivot is sought, neither among blocks nor within one. If the system is diagonally dominant by blocks, which is
 * ||B_v|| + sum_c ||C_c|| < 1 (spectral norms), every pivot is I - E with ||E|| <= 1/2: by induction, for k children
 * with couplings below beta <= 1/(k+1), ||E|| <= k beta^2 / (1 - 1/2) <= 2 k / (k+1)^2 <= 1/2. In the skew form A_v is
 * Hermitian and at least I, since it only gains terms B^H A^-1 B. In both cases the Hermitian part of A_v is positive
 * definite, its Schur complements inherit that, and elimination in the given order is stable (Golub and Van Loan,
 * Matrix Computations, section 4.3). */
#include <complex.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/lib/scratch.h"
#include "kernels/lib/sizes.h"
#include "kernels/tree/tree_walk.h"

#define M TREE_BLOCK_MAX

/* FLOPs: 8 per complex multiply-add. A node's four products of m x m and m x r; backward 16 m^2 r more for the
 * couplings' gradient; 24 m^3 to factor a row. Bytes as tree_solve. */
static struct cost tree_block_cost(const struct call *c, enum pass pass) {
    const struct tree_solve_attr *a = tree_solve_attr(c);
    double values = (double)tensor_count(c->out[0]), rows = 0, m = (double)a->block;
    for (int i = 0; i < TREE_U_RE; i++)
        if (c->in[i]) rows += (double)tensor_count(c->in[i]);
    double factor = 24 * m * rows / 2;
    if (pass == PASS_FORWARD) return (struct cost){32 * m * values + factor, sizeof(real) * (4 * values + rows)};
    return (struct cost){48 * m * values + factor, sizeof(real) * (6 * values + 2 * rows)};
}

/* `length` leaves, or nodes of a chain; m above TREE_BLOCK_MAX counts as that. */
static bool tree_block_build(struct graph *g, const struct op_sizes *s) {
    static const struct {
        int64_t arity, r;
        enum tree_form form;
        enum tree_sharing sharing;
        bool counts;
    } cases[] = {
        {2, 1, TREE_HERMITIAN, SHARED_BY_LEVEL, false}, {1, 2, TREE_FREE, SHARED_BY_ALL, false},
        {3, 1, TREE_SKEW, OWN_OF_SAMPLE, true},         {2, 3, TREE_FREE, OWN_OF_NODE, false},
        {2, 2, TREE_HERMITIAN, SHARED_BY_LEVEL, true},  {3, 1, TREE_FREE, OWN_OF_SAMPLE, false},
        {1, 1, TREE_HERMITIAN, SHARED_BY_LEVEL, true},  {1, 1, TREE_FREE, OWN_OF_SAMPLE, true},
    };
    if (s->variant >= (int64_t)(sizeof cases / sizeof *cases)) return false;
    static const char *const names[] = {"up_re", "up_im", "down_re", "down_im"};
    enum tree_form form = cases[s->variant].form;
    enum tree_sharing sharing = cases[s->variant].sharing;
    int64_t m = s->m < M ? s->m : M;
    struct tree t = tree_for(cases[s->variant].arity, s->length);
    bool alone = t.levels == 1 && sharing == SHARED_BY_LEVEL;
    struct tree_system system = {
        .tree = t, .form = form, .block = m, .beta = form == TREE_SKEW ? 0 : 0.9 / (double)(t.arity + 1)};
    struct tensor **tables[] = {&system.up_re, &system.up_im, &system.down_re, &system.down_im};
    struct op_sizes nodes = *s;
    nodes.length = tree_nodes(&t);
    nodes.blocks = m * m * s->blocks;
    for (int i = 0; i < (alone ? 0 : form == TREE_FREE ? 4 : 2); i++)
        *tables[i] = input_couplings(g, &nodes, &t, sharing, names[i]);
    system.u_re = input_tokens(g, &nodes, "u_re", m * cases[s->variant].r * s->blocks);
    system.u_im = input_tokens(g, &nodes, "u_im", m * cases[s->variant].r * s->blocks);
    if (cases[s->variant].counts) system.leaves = input_lengths(g, s);
    tree_solve(g, &system, NULL);
    return true;
}

static struct heads tree_block_heads(const struct call *c) {
    return (struct heads){tree_block_sizes(c).P, {1, 1, 1, 1, 1, 1}, {1, 1}};
}

const struct op op_tree_block = {
    .name = "tree_block",
    .maths =
        "x_v + B_v x_p(v) + sum_c C_c x_c = u_v on a tree, x_v m x r, B = beta Theta L^-H, L L^H = I + Theta^H Theta",
    .source = "Myosotis (Egorov et al.), appendix A.1 to A.3; the bound of B is ours",
    .needs_in = 1u << TREE_UP_RE | 1u << TREE_UP_IM | 1u << TREE_DOWN_RE | 1u << TREE_DOWN_IM | 1u << TREE_LEAVES,
    .needs_out = 3,
    .no_grad_in = 1u << TREE_LEAVES,
    .infer = tree_solve_infer,
    .cost = tree_block_cost,
    .heads = tree_block_heads,
    .sizes = "batch length blocks m",
    .build = tree_block_build,
};

/* --- reference: one head of one sequence after the other, in double ---------------------------------------------- */

typedef double complex number;

/* Matrices of m x m and m x r, row by row: b, c, inverse and x, lambda per node, db and dc per row of the tables. */
struct nodes {
    struct tree_block_sizes s;
    number *b, *c, *inverse, *x, *lambda, *db, *dc;
};

static struct nodes take_nodes(const struct call *c, struct scratch *s) {
    struct nodes n = {.s = tree_block_sizes(c)};
    number **square[] = {&n.b, &n.c, &n.inverse, &n.db, &n.dc}, **of_x[] = {&n.x, &n.lambda};
    for (int i = 0; i < 5; i++) *square[i] = scratch_bytes(s, (size_t)(n.s.T * n.s.m * n.s.m) * sizeof(number));
    for (int i = 0; i < 2; i++) *of_x[i] = scratch_bytes(s, (size_t)(n.s.T * n.s.m * n.s.r) * sizeof(number));
    return n;
}

static size_t tree_block_ref_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    struct scratch s = scratch_measure(c);
    take_nodes(c, &s);
    return s.used;
}

static struct nodes nodes_of(const struct call *c, enum pass pass) {
    struct scratch s = scratch_of(c, pass);
    return take_nodes(c, &s);
}

/* y += sign a x, for a m x m and x, y m x n. */
static void add_product(int64_t m, int64_t n, double sign, const number *a, const number *x, number *y) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t q = 0; q < n; q++)
            for (int64_t j = 0; j < m; j++) y[i * n + q] += sign * a[i * m + j] * x[j * n + q];
}

/* y -= a x^H, for a and x m x n. */
static void subtract_outer(int64_t m, int64_t n, const number *a, const number *x, number *y) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            for (int64_t q = 0; q < n; q++) y[i * m + j] -= a[i * n + q] * conj(x[j * n + q]);
}

/* to = sign a^H */
static void adjoint(int64_t m, double sign, const number *a, number *to) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++) to[i * m + j] = sign * conj(a[j * m + i]);
}

/* Replaces a by its inverse (Gauss and Jordan, in the given order). */
static void invert(int64_t m, number *a) {
    for (int64_t k = 0; k < m; k++) {
        number pivot = a[k * m + k], by = conj(pivot) / (creal(pivot) * creal(pivot) + cimag(pivot) * cimag(pivot));
        a[k * m + k] = 1;
        for (int64_t j = 0; j < m; j++) a[k * m + j] *= by;
        for (int64_t i = 0; i < m; i++) {
            number factor = a[i * m + k];
            if (i == k) continue;
            a[i * m + k] = 0;
            for (int64_t j = 0; j < m; j++) a[i * m + j] -= factor * a[k * m + j];
        }
    }
}

/* Reads a matrix of head p of a row of the table whose planes are inputs `plane` and plane + 1. */
static void read_matrix(const struct call *c, const struct nodes *n, int plane, int64_t row, int64_t p, number *to) {
    for (int64_t e = 0; e < n->s.m * n->s.m; e++) {
        int64_t at = (row * n->s.m * n->s.m + e) * n->s.P + p;
        to[e] = tensor_real(c->in[plane])[at] + I * (double)tensor_real(c->in[plane + 1])[at];
    }
}

/* Makes the columns of [theta; I] orthonormal (modified Gram-Schmidt): q becomes B / beta, `bottom` becomes L^-H
 * (tree_bound.h). */
static void orthonormalise(int64_t m, const number *theta, number *q, number *bottom) {
    for (int64_t e = 0; e < m * m; e++) q[e] = theta[e], bottom[e] = e / m == e % m;
    for (int64_t j = 0; j < m; j++) {
        double size = 0;
        for (int64_t k = 0; k < j; k++) {
            number along = 0;
            for (int64_t i = 0; i < m * m; i += m)
                along += conj(q[i + k]) * q[i + j] + conj(bottom[i + k]) * bottom[i + j];
            for (int64_t i = 0; i < m * m; i += m) q[i + j] -= along * q[i + k], bottom[i + j] -= along * bottom[i + k];
        }
        for (int64_t i = 0; i < m * m; i += m)
            size += creal(q[i + j] * conj(q[i + j])) + creal(bottom[i + j] * conj(bottom[i + j]));
        for (int64_t i = 0; i < m * m; i += m) q[i + j] /= sqrt(size), bottom[i + j] /= sqrt(size);
    }
}

/* Computes B of tree_bound.h; beta 0: B = theta. */
static void bound(int64_t m, double beta, const number *theta, number *b) {
    number q[M * M], bottom[M * M];
    if (beta > 0) orthonormalise(m, theta, q, bottom);
    for (int64_t e = 0; e < m * m; e++) b[e] = beta > 0 ? beta * q[e] : theta[e];
}

/* Replaces g, the gradient of B, by that of theta: beta (G - Q Y) L^-1 with Q = B / beta. */
static void unbound(int64_t m, double beta, const number *theta, number *g) {
    number q[M * M], bottom[M * M], y[M * M], w[M * M];
    if (beta <= 0) return;
    orthonormalise(m, theta, q, bottom);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j <= i; j++) {
            number sum = 0;
            for (int64_t k = 0; k < m; k++) sum += conj(g[k * m + i]) * q[k * m + j];
            y[i * m + j] = i == j ? creal(sum) : sum;
            y[j * m + i] = conj(y[i * m + j]);
        }
    memcpy(w, g, (size_t)(m * m) * sizeof *w);
    add_product(m, m, -1, q, y, w);
    adjoint(m, beta, bottom, y); /* beta L^-1 */
    for (int64_t e = 0; e < m * m; e++) g[e] = 0;
    add_product(m, m, 1, w, y, g);
}

/* Computes couplings and inverse pivots of all real nodes of head p of sequence b, whose tree is t. */
static void factor(const struct call *c, const struct tree *t, struct nodes n, int64_t b, int64_t p) {
    const struct tree_solve_attr *a = tree_solve_attr(c);
    int64_t m = n.s.m, square = m * m;
    number theta[M * M], product[M * M];
    struct tree_level below = {0}, v = tree_bottom(t, t->leaves);
    for (int64_t l = 0; l < t->levels; l++, below = v, v = tree_above(t, t->leaves, v))
        for (int64_t i = 0; i < v.real; i++) {
            int64_t node = v.offset + i;
            number *pivot = n.inverse + node * square;
            for (int64_t e = 0; e < square; e++) pivot[e] = e / m == e % m;
            for (int64_t j = 0; l && j < tree_children(t, below, i); j++) {
                int64_t child = (below.offset + i * t->arity + j) * square;
                for (int64_t e = 0; e < square; e++) product[e] = 0;
                add_product(m, m, 1, n.inverse + child, n.b + child, product);
                add_product(m, m, -1, n.c + child, product, pivot);
            }
            invert(m, pivot);
            if (l == t->levels - 1 || !c->in[TREE_UP_RE]) continue; /* the root couples to nothing */
            enum tree_sharing sharing = tree_sharing(&a->tree, c->in[TREE_UP_RE]);
            int64_t row = (sharing == OWN_OF_SAMPLE ? b * n.s.T : 0) + tree_row(sharing, v, i);
            read_matrix(c, &n, TREE_UP_RE, row, p, theta);
            bound(m, a->beta, theta, n.b + node * square);
            if (a->form == TREE_FREE) {
                read_matrix(c, &n, TREE_DOWN_RE, row, p, theta);
                bound(m, a->beta, theta, n.c + node * square);
            } else {
                adjoint(m, a->form == TREE_SKEW ? -1 : 1, n.b + node * square, n.c + node * square);
            }
        }
}

/* x is the right-hand side and becomes the solution. */
static void solve(const struct tree *t, struct nodes n, number *x) {
    int64_t m = n.s.m, r = n.s.r;
    number side[M];
    struct tree_level below = {0}, v = tree_bottom(t, t->leaves);
    for (int64_t l = 0; l < t->levels; l++, below = v, v = tree_above(t, t->leaves, v))
        for (int64_t i = 0; i < v.real; i++) {
            number *z = x + (v.offset + i) * m * r;
            for (int64_t j = 0; l && j < tree_children(t, below, i); j++) {
                int64_t child = below.offset + i * t->arity + j;
                add_product(m, r, -1, n.c + child * m * m, x + child * m * r, z);
            }
            for (int64_t q = 0; q < r; q++) {
                for (int64_t j = 0; j < m; j++) side[j] = z[j * r + q], z[j * r + q] = 0;
                for (int64_t j = 0; j < m * m; j++)
                    z[j / m * r + q] += n.inverse[(v.offset + i) * m * m + j] * side[j % m];
            }
        }
    struct tree_level above = tree_root(t, t->leaves);
    for (int64_t l = t->levels - 2; l >= 0; l--, above = v) {
        v = tree_below(t, t->leaves, above);
        for (int64_t child = v.offset; child < v.offset + v.real; child++) {
            number product[M * M] = {0};
            add_product(m, m, 1, n.inverse + child * m * m, n.b + child * m * m, product);
            add_product(m, r, -1, product, x + (above.offset + (child - v.offset) / t->arity) * m * r,
                        x + child * m * r);
        }
    }
}

/* Turns the factors of T into the factors of T^H. */
static void adjoin(const struct tree *t, struct nodes n) {
    int64_t square = n.s.m * n.s.m;
    number b[M * M], inverse[M * M];
    struct tree_level v = tree_bottom(t, t->leaves);
    for (int64_t l = 0; l < t->levels; l++, v = tree_above(t, t->leaves, v))
        for (int64_t i = v.offset * square; i < (v.offset + v.real) * square; i += square) {
            memcpy(inverse, n.inverse + i, (size_t)square * sizeof *inverse);
            adjoint(n.s.m, 1, inverse, n.inverse + i);
            if (l == t->levels - 1) continue;
            memcpy(b, n.b + i, (size_t)square * sizeof *b);
            adjoint(n.s.m, 1, n.c + i, n.b + i);
            adjoint(n.s.m, 1, b, n.c + i);
        }
}

/* x = the planes re and im (NULL = 0) of head p of sequence b, for real nodes; 0 for padding. */
static void gather(const struct tree *t, const struct nodes *n, const real *re, const real *im, int64_t b, int64_t p,
                   number *x) {
    int64_t each = n->s.m * n->s.r;
    for (int64_t i = 0; i < n->s.T * each; i++) x[i] = 0;
    struct tree_level v = tree_bottom(t, t->leaves);
    for (int64_t l = 0; l < t->levels; l++, v = tree_above(t, t->leaves, v))
        for (int64_t i = v.offset * each; i < (v.offset + v.real) * each; i++) {
            int64_t at = (b * n->s.T * each + i) * n->s.P + p;
            x[i] = re[at] + I * (double)(im ? im[at] : 0);
        }
}

static void tree_block_ref_forward(const struct call *c, const struct exec *e) {
    (void)e;
    struct nodes n = nodes_of(c, PASS_FORWARD);
    for (int64_t b = 0; b < c->out[0]->dims[0]; b++)
        for (int64_t p = 0; p < n.s.P; p++) {
            struct tree t = tree_of_sequence(c, b);
            int64_t each = n.s.T * n.s.m * n.s.r;
            factor(c, &t, n, b, p);
            gather(&t, &n, tensor_real(c->in[TREE_U_RE]), tensor_real(c->in[TREE_U_IM]), b, p, n.x);
            solve(&t, n, n.x);
            for (int64_t i = 0; i < each; i++) {
                tensor_real(c->out[0])[(b * each + i) * n.s.P + p] = (real)creal(n.x[i]);
                tensor_real(c->out[1])[(b * each + i) * n.s.P + p] = (real)cimag(n.x[i]);
            }
        }
}

static void put_complex(const struct call *c, int plane, int64_t i, number value) {
    if (c->din[plane]) put(c->din[plane] + i, call_accumulates(c, plane), (real)creal(value));
    if (c->din[plane + 1]) put(c->din[plane + 1] + i, call_accumulates(c, plane + 1), (real)cimag(value));
}

/* Adds the couplings' gradients of one sequence to the rows of db and dc. */
static void couple_gradient(const struct call *c, const struct tree *t, struct nodes n) {
    const struct tree_solve_attr *a = tree_solve_attr(c);
    enum tree_sharing sharing = tree_sharing(&a->tree, c->in[TREE_UP_RE]);
    int64_t square = n.s.m * n.s.m, each = n.s.m * n.s.r;
    struct tree_level above, v = tree_bottom(t, t->leaves);
    for (int64_t l = 0; l + 1 < t->levels; l++, v = above) {
        above = tree_above(t, t->leaves, v);
        for (int64_t i = 0; i < v.real; i++) {
            int64_t child = (v.offset + i) * each, parent = (above.offset + i / t->arity) * each;
            int64_t row = tree_row(sharing, v, i) * square;
            number dc[M * M] = {0}, tied[M * M];
            subtract_outer(n.s.m, n.s.r, n.lambda + child, n.x + parent, n.db + row);
            subtract_outer(n.s.m, n.s.r, n.lambda + parent, n.x + child, dc);
            adjoint(n.s.m, a->form == TREE_SKEW ? -1 : 1, dc, tied);
            for (int64_t j = 0; j < square; j++) n.dc[row + j] += dc[j];
            for (int64_t j = 0; a->form != TREE_FREE && j < square; j++) n.db[row + j] += tied[j];
        }
    }
}

/* Writes the gradients of head p of `rows` rows of the tables from row `first` on. */
static void put_tables(const struct call *c, struct nodes n, int64_t first, int64_t rows, int64_t p) {
    const struct tree_solve_attr *a = tree_solve_attr(c);
    int64_t square = n.s.m * n.s.m;
    number theta[M * M];
    for (int64_t row = 0; row < rows; row++)
        for (int plane = TREE_UP_RE; plane <= (a->form == TREE_FREE ? TREE_DOWN_RE : TREE_UP_RE); plane += 2) {
            number *d = (plane == TREE_UP_RE ? n.db : n.dc) + row * square;
            read_matrix(c, &n, plane, first + row, p, theta);
            unbound(n.s.m, a->beta, theta, d);
            for (int64_t j = 0; j < square; j++) put_complex(c, plane, ((first + row) * square + j) * n.s.P + p, d[j]);
        }
}

static void tree_block_ref_backward(const struct call *c, const struct exec *e) {
    (void)e;
    const struct tensor *table = c->in[TREE_UP_RE];
    struct nodes n = nodes_of(c, PASS_BACKWARD);
    bool sample = table && table->rank == 3;
    size_t bytes = (size_t)(n.s.T * n.s.m * n.s.m) * sizeof(number);
    for (int64_t p = 0; p < n.s.P; p++) {
        memset(n.db, 0, bytes);
        memset(n.dc, 0, bytes);
        for (int64_t b = 0; b < c->out[0]->dims[0]; b++) {
            struct tree t = tree_of_sequence(c, b);
            int64_t each = n.s.T * n.s.m * n.s.r;
            factor(c, &t, n, b, p);
            adjoin(&t, n);
            gather(&t, &n, call_dout(c, 0), call_dout(c, 1), b, p, n.lambda);
            solve(&t, n, n.lambda);
            gather(&t, &n, tensor_real(c->out[0]), tensor_real(c->out[1]), b, p, n.x);
            for (int64_t i = 0; i < each; i++) put_complex(c, TREE_U_RE, (b * each + i) * n.s.P + p, n.lambda[i]);
            couple_gradient(c, &t, n);
            if (!sample) continue;
            put_tables(c, n, b * n.s.T, n.s.T, p);
            memset(n.db, 0, bytes);
            memset(n.dc, 0, bytes);
        }
        if (table && !sample) put_tables(c, n, 0, table->dims[0], p);
    }
}

const struct kernel kernel_tree_block_ref = {
    .name = "tree_block_ref",
    .op = &op_tree_block,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = tree_block_ref_workspace,
    .forward = tree_block_ref_forward,
    .backward = tree_block_ref_backward,
};
