/* tree_solve_block.c - tree_solve with blocks of d > 1 in place of scalars: the op and its reference.
 *
 *   x_v + B_v x_p(v) + sum over children c of C_c x_c = u_v     x, u in C^d;  B, C d x d
 * Up (leaves to root), the pivot A_v and the right-hand side after elimination; down (spec/plstm-myosotis.md B1):
 *   A_v = I - sum_c C_c A_c^-1 B_c     z_v = A_v^-1 (u_v - sum_c C_c z_c)
 *   x_root = z_root,  x_v = z_v - A_v^-1 B_v x_p(v)
 * Adjoint (B7), g the incoming gradient: T^H lambda = g is the same system with B -> C^H, C -> B^H, A -> A^H;
 *   du = lambda;  dB_v = -lambda_v x_p(v)^H;  dC_v = -lambda_p(v) x_v^H;  hermitian and skew: dB += +-dC^H
 * The bound of B4 over the Frobenius norm, which is at least the 2-norm: |B|_2 <= |B|_F < beta, and a block of one is the
 * scalar formula. B = beta s Theta, s = (1 + |Theta|_F^2)^-1/2:
 *   dTheta = beta (s dB - s^3 Theta Re <Theta, dB>),  <X, Y> = sum_ij conj(X_ij) Y_ij
 * Element (i,j) of head p of a coupling is column (i*d + j)*P + p, element i of u and x column i*P + p. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "kernels/tree/tree.h"

/* FLOPs: a complex multiply-add counts 8. A value takes part in three products of d (child's message, pivot, parent's), in
 * backward also in one or two outer products; a row of couplings in three of matrices, about 3 d. */
static struct cost tree_solve_block_cost(const struct call *c, enum pass pass) {
    const struct tree_solve_attr *a = c->attr;
    double d = (double)a->block, values = (double)tensor_count(c->out[0]), rows = 0;
    for (int i = 0; i < TREE_U_RE; i++)
        if (c->in[i]) rows += (double)tensor_count(c->in[i]);
    double solve = 24 * d * values + 12 * d * rows;
    if (pass == PASS_FORWARD) return (struct cost){solve, sizeof(real) * (4 * values + rows)};
    return (struct cost){solve + 16 * d * values, sizeof(real) * (6 * values + 2 * rows)};
}

/* The bound keeps every example well conditioned; skew needs none. */
static bool tree_solve_block_example(struct graph *g, int64_t n, int variant) {
    static const struct {
        int64_t B, P, arity, levels, d; /* 0 = n */
        int64_t padding;
        enum tree_form form;
        enum tree_sharing sharing;
        bool bounded, counts;
    } cases[] = {
        {2, 0, 2, 3, 2, 1, TREE_HERMITIAN, SHARED_BY_LEVEL, true, false},
        {2, 3, 1, 0, 3, 0, TREE_FREE, SHARED_BY_ALL, true, false},
        {1, 3, 0, 2, 2, 0, TREE_SKEW, OWN_OF_SAMPLE, false, true},
        {2, 0, 2, 3, 4, 1, TREE_FREE, OWN_OF_NODE, true, false},
        {0, 2, 2, 3, 2, 0, TREE_SKEW, SHARED_BY_LEVEL, true, true},
        {1, 0, 3, 2, 3, 1, TREE_FREE, OWN_OF_SAMPLE, true, false},
        {2, 0, 2, 2, 6, 0, TREE_HERMITIAN, SHARED_BY_ALL, true, false},
        {2, 0, 2, 1, 2, 0, TREE_HERMITIAN, SHARED_BY_ALL, true, false},
    };
    if (variant >= (int)(sizeof cases / sizeof *cases)) return false;
    int64_t B = cases[variant].B ? cases[variant].B : n, P = cases[variant].P ? cases[variant].P : n;
    int64_t d = cases[variant].d;
    struct tree t = {cases[variant].arity ? cases[variant].arity : n, cases[variant].levels ? cases[variant].levels : n,
                     0};
    int64_t nodes = tree_nodes(&t), leaves = tree_bottom(&t, 0).count;
    t.leaves = leaves - cases[variant].padding;
    enum tree_form form = cases[variant].form;
    struct tree_system s = {.tree = t, .form = form, .block = d};
    if (cases[variant].bounded) s.beta = 0.95 / (double)(t.arity + 1);
    bool sample = cases[variant].sharing == OWN_OF_SAMPLE;
    int64_t rows = cases[variant].sharing == SHARED_BY_ALL || t.levels == 1 ? 1
                   : cases[variant].sharing == SHARED_BY_LEVEL              ? t.levels - 1
                                                                            : nodes - 1;
    int64_t u_dims[] = {B, nodes, d * P}, own[] = {B, nodes, d * d * P}, shared[] = {rows, d * d * P};
    const int64_t *dims = sample ? own : shared;
    int rank = sample ? 3 : 2;
    bool tables = t.levels > 1 || variant == 1;
    if (tables) s.up_re = graph_input(g, "up_re", rank, dims, true);
    if (tables) s.up_im = graph_input(g, "up_im", rank, dims, true);
    if (tables && form == TREE_FREE) s.down_re = graph_input(g, "down_re", rank, dims, true);
    if (tables && form == TREE_FREE) s.down_im = graph_input(g, "down_im", rank, dims, true);
    s.u_re = graph_input(g, "u_re", 3, u_dims, true);
    s.u_im = graph_input(g, "u_im", 3, u_dims, true);
    if (cases[variant].counts) s.leaves = graph_input_ids(g, "leaves", 1, u_dims, (int32_t)leaves + 1, false);
    tree_solve(g, &s, NULL);
    return true;
}

const struct op op_tree_solve_block = {
    .name = "tree_solve_block",
    .maths = "x_v + B_v x_p(v) + sum_c C_c x_c = u_v on a tree in blocks of d, B = beta Theta / sqrt(1 + |Theta|_F^2)",
    .source = "Myosotis Eq. 9-12, spec/plstm-myosotis.md B1-B4",
    .needs_in = 1u << TREE_UP_RE | 1u << TREE_UP_IM | 1u << TREE_DOWN_RE | 1u << TREE_DOWN_IM | 1u << TREE_LEAVES,
    .needs_out = 3,
    .no_grad_in = 1u << TREE_LEAVES,
    .infer = tree_solve_infer,
    .cost = tree_solve_block_cost,
    .example = tree_solve_block_example,
};

/* --- reference: one head of one sequence after the other, in double -------------------------------------------- */

/* Matrices and vectors of one head: B, C, A^-1, x, lambda of each node; dB and dC one a row of the tables; two matrices. */
struct blocks {
    int64_t d;
    double complex *b, *c, *inverse, *x, *lambda, *db, *dc, *work;
};

static size_t tree_solve_block_ref_workspace(const struct call *c, enum pass pass) {
    (void)pass;
    int64_t T = c->out[0]->dims[1], d = ((const struct tree_solve_attr *)c->attr)->block;
    return (size_t)(T * (5 * d * d + 2 * d) + 2 * d * d) * sizeof(double complex);
}

static struct blocks blocks_of(const struct call *c, enum pass pass) {
    int64_t T = c->out[0]->dims[1], d = ((const struct tree_solve_attr *)c->attr)->block, n = T * d * d;
    double complex *s = c->scratch[pass];
    double complex *x = s + 5 * n;
    return (struct blocks){d, s, s + n, s + 2 * n, x, x + T * d, s + 3 * n, s + 4 * n, x + 2 * T * d};
}

/* y -= A x. */
static void subtract_product(int64_t d, const double complex *A, const double complex *x, double complex *y) {
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++) y[i] -= A[i * d + j] * x[j];
}

/* y = A x; y is not x. */
static void product(int64_t d, const double complex *A, const double complex *x, double complex *y) {
    for (int64_t i = 0; i < d; i++) {
        y[i] = 0;
        for (int64_t j = 0; j < d; j++) y[i] += A[i * d + j] * x[j];
    }
}

/* Z = X Y. */
static void matrix_product(int64_t d, const double complex *X, const double complex *Y, double complex *Z) {
    for (int64_t i = 0; i < d; i++)
        for (int64_t j = 0; j < d; j++) {
            Z[i * d + j] = 0;
            for (int64_t l = 0; l < d; l++) Z[i * d + j] += X[i * d + l] * Y[l * d + j];
        }
}

static void identity(int64_t d, double complex *A) {
    for (int64_t i = 0; i < d * d; i++) A[i] = i / d == i % d;
}

static void swap_rows(int64_t d, double complex *A, int64_t i, int64_t k) {
    for (int64_t j = 0; j < d; j++) {
        double complex keep = A[i * d + j];
        A[i * d + j] = A[k * d + j];
        A[k * d + j] = keep;
    }
}

/* Gauss-Jordan with row pivoting; A is overwritten. */
static void invert(int64_t d, double complex *A, double complex *inverse) {
    identity(d, inverse);
    for (int64_t k = 0; k < d; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < d; i++)
            if (cabs(A[i * d + k]) > cabs(A[pivot * d + k])) pivot = i;
        swap_rows(d, A, pivot, k);
        swap_rows(d, inverse, pivot, k);
        double complex scale = 1 / A[k * d + k];
        for (int64_t j = 0; j < d; j++) {
            A[k * d + j] *= scale;
            inverse[k * d + j] *= scale;
        }
        for (int64_t i = 0; i < d; i++) {
            double complex factor = A[i * d + k];
            for (int64_t j = 0; j < d && i != k; j++) {
                A[i * d + j] -= factor * A[k * d + j];
                inverse[i * d + j] -= factor * inverse[k * d + j];
            }
        }
    }
}

/* Element e of head p of row `row` of the complex table whose planes are inputs `plane` and plane + 1. */
static int64_t element(const struct call *c, int64_t row, int64_t e, int64_t p) {
    int64_t d = ((const struct tree_solve_attr *)c->attr)->block, P = c->out[0]->dims[2] / d;
    return (row * d * d + e) * P + p;
}

static double complex theta_at(const struct call *c, int plane, int64_t at) {
    return tensor_real(c->in[plane])[at] + I * (double)tensor_real(c->in[plane + 1])[at];
}

static double squared_norm(const struct call *c, int plane, int64_t d, int64_t row, int64_t p) {
    double sum = 0;
    for (int64_t e = 0; e < d * d; e++) sum += pow(cabs(theta_at(c, plane, element(c, row, e, p))), 2);
    return sum;
}

static void bounded(const struct call *c, int plane, int64_t d, int64_t row, int64_t p, double complex *B) {
    double beta = ((const struct tree_solve_attr *)c->attr)->beta;
    double scale = beta > 0 ? beta / sqrt(1 + squared_norm(c, plane, d, row, p)) : 1;
    for (int64_t e = 0; e < d * d; e++) B[e] = scale * theta_at(c, plane, element(c, row, e, p));
}

/* C of node v from its B, or from the tables. */
static void couple(const struct call *c, int64_t d, int64_t row, int64_t p, double complex *B, double complex *C) {
    enum tree_form form = ((const struct tree_solve_attr *)c->attr)->form;
    bounded(c, TREE_UP_RE, d, row, p, B);
    if (form == TREE_FREE) bounded(c, TREE_DOWN_RE, d, row, p, C);
    for (int64_t e = 0; e < d * d && form != TREE_FREE; e++)
        C[e] = (form == TREE_SKEW ? -1 : 1) * conj(B[e % d * d + e / d]);
}

/* Couplings of all real nodes of head p of sequence b. */
static void couple_all(const struct call *c, struct blocks n, int64_t b, int64_t p) {
    const struct tree *t = &((const struct tree_solve_attr *)c->attr)->tree;
    int64_t T = c->out[0]->dims[1], leaves = tree_leaves(c, b), d = n.d;
    struct tree_level v = tree_bottom(t, leaves);
    for (int64_t l = 0; l + 1 < t->levels; l++, v = tree_above(t, leaves, v)) {
        enum tree_sharing sharing = tree_sharing(t, c->in[TREE_UP_RE]);
        for (int64_t i = 0; i < v.real; i++) {
            int64_t row = (sharing == OWN_OF_SAMPLE ? b * T : 0) + tree_row(sharing, v, i), at = v.offset + i;
            couple(c, d, row, p, n.b + at * d * d, n.c + at * d * d);
        }
    }
}

/* T^H in place of T. */
static void adjoin(struct blocks n, int64_t nodes) {
    int64_t d = n.d;
    for (int64_t v = 0; v < nodes; v++)
        for (int64_t i = 0; i < d; i++)
            for (int64_t j = 0; j < d; j++) {
                double complex *B = n.b + (v * d + i) * d + j, *C = n.c + (v * d + j) * d + i, keep = *B;
                *B = conj(*C);
                *C = conj(keep);
            }
}

/* A^-1 of all real nodes. */
static void factor(const struct tree *t, int64_t leaves, struct blocks n) {
    int64_t d = n.d;
    double complex *A = n.work, *H = n.work + d * d;
    struct tree_level below = {0}, v = tree_bottom(t, leaves);
    for (int64_t l = 0; l < t->levels; l++, below = v, v = tree_above(t, leaves, v))
        for (int64_t i = 0; i < v.real; i++) {
            double complex *inverse = n.inverse + (v.offset + i) * d * d;
            identity(d, A);
            for (int64_t j = 0; l && j < tree_children(t, below, i); j++) {
                int64_t child = (below.offset + i * t->arity + j) * d * d;
                matrix_product(d, n.inverse + child, n.b + child, H);
                matrix_product(d, n.c + child, H, inverse);
                for (int64_t e = 0; e < d * d; e++) A[e] -= inverse[e];
            }
            invert(d, A, inverse);
        }
}

/* x holds the right-hand side and receives the solution. */
static void solve(const struct tree *t, int64_t leaves, struct blocks n, double complex *x) {
    int64_t d = n.d;
    struct tree_level below = {0}, v = tree_bottom(t, leaves);
    for (int64_t l = 0; l < t->levels; l++, below = v, v = tree_above(t, leaves, v))
        for (int64_t i = 0; i < v.real; i++) {
            double complex *z = x + (v.offset + i) * d;
            for (int64_t j = 0; l && j < tree_children(t, below, i); j++) {
                int64_t child = below.offset + i * t->arity + j;
                subtract_product(d, n.c + child * d * d, x + child * d, z);
            }
            memcpy(n.work, z, (size_t)d * sizeof *z);
            product(d, n.inverse + (v.offset + i) * d * d, n.work, z);
        }
    struct tree_level above = tree_root(t, leaves);
    for (int64_t l = t->levels - 2; l >= 0; l--, above = v) {
        v = tree_below(t, leaves, above);
        for (int64_t i = 0; i < v.real; i++) {
            int64_t child = v.offset + i;
            product(d, n.b + child * d * d, x + (above.offset + i / t->arity) * d, n.work);
            subtract_product(d, n.inverse + child * d * d, n.work, x + child * d);
        }
    }
}

/* x[v] = the block of the planes re and im (NULL = 0) of one head, for real nodes; 0 for padding. */
static void gather(const struct tree *t, int64_t leaves, const real *re, const real *im, int64_t P, int64_t T,
                   int64_t d, double complex *x) {
    for (int64_t i = 0; i < T * d; i++) x[i] = 0;
    struct tree_level v = tree_bottom(t, leaves);
    for (int64_t l = 0; l < t->levels; l++, v = tree_above(t, leaves, v))
        for (int64_t i = v.offset * d; i < (v.offset + v.real) * d; i++)
            x[i] = re[i * P] + I * (double)(im ? im[i * P] : 0);
}

static void tree_solve_block_ref_forward(const struct call *c, const struct exec *e) {
    (void)e;
    const struct tree_solve_attr *a = c->attr;
    struct blocks n = blocks_of(c, PASS_FORWARD);
    int64_t B = c->out[0]->dims[0], T = c->out[0]->dims[1], P = c->out[0]->dims[2] / n.d;
    for (int64_t b = 0; b < B; b++)
        for (int64_t p = 0; p < P; p++) {
            int64_t first = b * T * n.d * P + p, leaves = tree_leaves(c, b);
            couple_all(c, n, b, p);
            factor(&a->tree, leaves, n);
            gather(&a->tree, leaves, tensor_real(c->in[TREE_U_RE]) + first, tensor_real(c->in[TREE_U_IM]) + first, P, T,
                   n.d, n.x);
            solve(&a->tree, leaves, n, n.x);
            for (int64_t i = 0; i < T * n.d; i++) {
                tensor_real(c->out[0])[first + i * P] = (real)creal(n.x[i]);
                tensor_real(c->out[1])[first + i * P] = (real)cimag(n.x[i]);
            }
        }
}

static void put_complex(const struct call *c, int plane, int64_t i, double complex value) {
    if (c->din[plane]) put(c->din[plane] + i, call_accumulates(c, plane), (real)creal(value));
    if (c->din[plane + 1]) put(c->din[plane + 1] + i, call_accumulates(c, plane + 1), (real)cimag(value));
}

/* Adds the couplings' gradients of one sequence to the rows of dB and dC. */
static void couple_gradient(const struct call *c, struct blocks n, int64_t leaves) {
    const struct tree_solve_attr *a = c->attr;
    const struct tree *t = &a->tree;
    enum tree_sharing sharing = c->in[TREE_UP_RE] ? tree_sharing(t, c->in[TREE_UP_RE]) : SHARED_BY_ALL;
    struct tree_level above, v = tree_bottom(t, leaves);
    for (int64_t l = 0; l + 1 < t->levels; l++, v = above) {
        above = tree_above(t, leaves, v);
        for (int64_t i = 0; i < v.real; i++) {
            int64_t d = n.d, row = tree_row(sharing, v, i) * d * d, parent = (above.offset + i / t->arity) * d;
            int64_t child = (v.offset + i) * d;
            for (int64_t e = 0; e < d * d; e++) {
                double complex db = -n.lambda[child + e / d] * conj(n.x[parent + e % d]);
                double complex tied = -n.x[child + e / d] * conj(n.lambda[parent + e % d]); /* dC^H */
                n.db[row + e] += a->form == TREE_FREE ? db : a->form == TREE_SKEW ? db - tied : db + tied;
                n.dc[row + e] -= n.lambda[parent + e / d] * conj(n.x[child + e % d]);
            }
        }
    }
}

/* Writes dTheta of head p of row `row` of a table from dB. */
static void put_row(const struct call *c, int plane, int64_t d, int64_t row, int64_t p, const double complex *dB) {
    double beta = ((const struct tree_solve_attr *)c->attr)->beta, s = 1, along = 0;
    if (beta > 0) s = 1 / sqrt(1 + squared_norm(c, plane, d, row, p));
    for (int64_t e = 0; e < d * d && beta > 0; e++)
        along += creal(conj(theta_at(c, plane, element(c, row, e, p))) * dB[e]);
    for (int64_t e = 0; e < d * d; e++) {
        int64_t at = element(c, row, e, p);
        put_complex(c, plane, at, beta > 0 ? beta * (s * dB[e] - s * s * s * theta_at(c, plane, at) * along) : dB[e]);
    }
}

/* Writes the gradients of head p of `rows` rows of the tables from row `first` on. */
static void put_tables(const struct call *c, struct blocks n, int64_t first, int64_t rows, int64_t p) {
    for (int64_t r = 0; r < rows; r++) {
        put_row(c, TREE_UP_RE, n.d, first + r, p, n.db + r * n.d * n.d);
        if (c->in[TREE_DOWN_RE]) put_row(c, TREE_DOWN_RE, n.d, first + r, p, n.dc + r * n.d * n.d);
    }
}

static void clear_tables(struct blocks n, int64_t T) {
    for (int64_t i = 0; i < 2 * T * n.d * n.d; i++) n.db[i] = 0; /* and dc */
}

/* Head p of sequence b: du, and what it adds to the couplings' gradients. */
static void ref_backward_head(const struct call *c, struct blocks n, int64_t b, int64_t p) {
    const struct tree_solve_attr *a = c->attr;
    int64_t T = c->out[0]->dims[1], P = c->out[0]->dims[2] / n.d, first = b * T * n.d * P + p;
    int64_t leaves = tree_leaves(c, b);
    const real *g_im = call_dout(c, 1);
    couple_all(c, n, b, p);
    adjoin(n, T);
    factor(&a->tree, leaves, n);
    gather(&a->tree, leaves, call_dout(c, 0) + first, g_im ? g_im + first : NULL, P, T, n.d, n.lambda);
    solve(&a->tree, leaves, n, n.lambda);
    gather(&a->tree, leaves, tensor_real(c->out[0]) + first, tensor_real(c->out[1]) + first, P, T, n.d, n.x);
    for (int64_t i = 0; i < T * n.d; i++) put_complex(c, TREE_U_RE, first + i * P, n.lambda[i]);
    couple_gradient(c, n, leaves);
}

static void tree_solve_block_ref_backward(const struct call *c, const struct exec *e) {
    (void)e;
    const struct tensor *table = c->in[TREE_UP_RE];
    struct blocks n = blocks_of(c, PASS_BACKWARD);
    int64_t B = c->out[0]->dims[0], T = c->out[0]->dims[1], P = c->out[0]->dims[2] / n.d;
    bool sample = table && table->rank == 3;
    for (int64_t i = 0; i < 2 * T * n.d * n.d; i++) n.b[i] = 0; /* and c: rows of no coupling are adjoined too */
    for (int64_t p = 0; p < P; p++) {
        clear_tables(n, T);
        for (int64_t b = 0; b < B; b++) {
            ref_backward_head(c, n, b, p);
            if (!sample) continue;
            put_tables(c, n, b * T, T, p);
            clear_tables(n, T);
        }
        if (table && !sample) put_tables(c, n, 0, table->dims[0], p);
    }
}

const struct kernel kernel_tree_solve_block_ref = {
    .name = "tree_solve_block_ref",
    .op = &op_tree_solve_block,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = tree_solve_block_ref_workspace,
    .forward = tree_solve_block_ref_forward,
    .backward = tree_solve_block_ref_backward,
};
