/* tree_block_cpu.c - linear systems of blocks on trees (tree_block.c) on the CPU.
 *
 * A row has one number per head, and vector lanes compute many heads at once. Per node the code stores only the inverse
 * pivot I = A^-1, m^2 rows; couplings are read from the inputs, or from scratch if they are bounded (tree_bound.h). So
 *   up     z_v = I_v (s_v - sum_j C_j z_j)        down     x_v = z_v - I_v (B_v x_p(v))
 * A leaf has I = 1. Backward solves the adjoint system by the same two passes: its B is C^H, its C is B^H.
 *
 * If all nodes of a level have the same couplings, nodes with all children have the same pivot; only the last node
 * before the padding may have fewer children. So a level has two pivots (as in tree_solve_cpu.c). In a chain each level
 * is one node.
 *
 * The work is cut into parts: a range of sequences (group) and a range of heads (strip). After all parts the gradients
 * of the couplings are summed, row by row of their table. A row that sequences share is summed in chunks of sequences,
 * which are added in order. */
#include <string.h>

#include "core/real_math.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/tree/tree_bound.h"
#include "kernels/tree/tree_walk.h"

#define M     TREE_BLOCK_MAX
#define WIDTH 32 /* heads of a strip: a node's work rows then fit into L1 */

/* The planes of rows of one strip: element (i,j) is row i * i_step + j * j_step. The complex number is (sign_re re,
 * sign_im im), so that conjugates need no copy. */
struct rows {
    const real *re, *im;
    int64_t i_step, j_step;
    real sign_re, sign_im;
};

/* m rows of one strip, on the stack. */
struct column {
    real re[M][WIDTH], im[M][WIDTH];
};

/* A call, with the planes of its couplings after the bound. */
struct system {
    const struct call *c;
    struct tree_block_sizes s;
    enum tree_sharing sharing;
    struct tree_planes b, down; /* down: C of the free form */
    bool adjoint;
};

/* One part. Its strip has the heads from k to k + width - 1. */
struct part {
    const struct system *y;
    struct tree tree;  /* of the current sequence */
    int64_t b, leaves; /* current sequence, and its leaves without padding */
    int64_t k, width;
    real *inverse; /* (pivots, re and im, m^2, WIDTH) */
};

/* Planes of x, lambda or their right-hand sides (B,T,m,r,P); im NULL: imaginary parts are 0. */
struct values {
    real *re, *im;
};

static enum tree_sharing sharing_of(const struct call *c) {
    const struct tree *t = &tree_solve_attr(c)->tree;
    enum tree_sharing sharing = tree_sharing(t, c->in[TREE_UP_RE]);
    return sharing == SHARED_BY_LEVEL && t->arity == 1 ? OWN_OF_NODE : sharing;
}

static bool by_level(enum tree_sharing sharing) {
    return sharing == SHARED_BY_ALL || sharing == SHARED_BY_LEVEL;
}

/* --- scratch ------------------------------------------------------------------------------------------------------ */

struct cut {
    int64_t strips, groups, pivots; /* pivots of a part */
    int64_t chunks;                 /* of sequences, for the gradient of a row of the table */
};

static struct cut cut_of(const struct call *c) {
    struct tree_block_sizes s = tree_block_sizes(c);
    enum tree_sharing sharing = sharing_of(c);
    struct cut cut = {.strips = (s.P + WIDTH - 1) / WIDTH};
    int64_t groups = (TREE_GROUPS + cut.strips - 1) / cut.strips;
    cut.groups = groups < s.B ? groups : s.B;
    cut.pivots = by_level(sharing) ? 2 * tree_solve_attr(c)->tree.levels : s.T;
    cut.chunks = !by_level(sharing) ? 1 : s.B < TREE_GROUPS ? s.B : TREE_GROUPS;
    return cut;
}

/* Planes of all tables: bounded couplings, and backward their gradients, for each chunk; lambda. Then a part's
 * pivots. */
struct room {
    real *bounded[4], *gradient[4], *lambda_re, *lambda_im;
    int64_t stride; /* between chunks of `gradient` */
};

static int planes_of(const struct call *c) {
    return !c->in[TREE_UP_RE] ? 0 : tree_solve_attr(c)->form == TREE_FREE ? 4 : 2;
}

static struct room take_room(const struct call *c, enum pass pass, struct scratch *s) {
    struct room r = {0};
    int64_t n = planes_of(c) ? tensor_count(c->in[TREE_UP_RE]) : 0, values = tensor_count(c->out[0]);
    for (int i = 0; i < planes_of(c) && tree_solve_attr(c)->beta > 0; i++) r.bounded[i] = scratch_reals(s, n);
    if (pass == PASS_FORWARD) return r;
    for (int i = 0; i < planes_of(c); i++) {
        struct scratch_rows rows = scratch_rows(s, cut_of(c).chunks, n);
        r.gradient[i] = rows.at;
        r.stride = rows.stride;
    }
    r.lambda_re = scratch_reals(s, values);
    r.lambda_im = scratch_reals(s, values);
    return r;
}

static int64_t pivot_reals(const struct call *c) {
    int64_t m = tree_block_sizes(c).m;
    return cut_of(c).pivots * 2 * m * m * WIDTH;
}

static size_t tree_block_cpu_workspace(const struct call *c, enum pass pass) {
    struct cut cut = cut_of(c);
    struct scratch s = scratch_measure(c);
    take_room(c, pass, &s);
    for (int64_t i = 0; i < cut.groups * cut.strips; i++) scratch_reals(&s, pivot_reals(c));
    return s.used;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* y -= a x. Every argument is one row. */
LRNN_INLINE void subtract_row(int64_t width, struct rows a, int64_t at, const real *x_re, const real *x_im, real *y_re,
                              real *y_im) {
    const real *re = a.re + at, *im = a.im + at;
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real p = a.sign_re * re[k], q = a.sign_im * im[k];
        y_re[k] = real_fma(-p, x_re[k], real_fma(q, x_im[k], y_re[k]));
        y_im[k] = real_fma(-p, x_im[k], real_fma(-q, x_re[k], y_im[k]));
    }
}

/* y -= A x, for a column x whose rows are `step` apart. */
static void subtract_product(int64_t width, int64_t m, struct rows a, const real *x_re, const real *x_im, int64_t step,
                             struct column *y) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < m; j++)
            subtract_row(width, a, i * a.i_step + j * a.j_step, x_re + j * step, x_im + j * step, y->re[i], y->im[i]);
}

static void clear(int64_t m, struct column *y) {
    memset(y->re, 0, (size_t)m * sizeof *y->re);
    memset(y->im, 0, (size_t)m * sizeof *y->im);
}

static struct rows adjoint(struct rows a, real sign) {
    return (struct rows){a.re, a.im, a.j_step, a.i_step, sign * a.sign_re, -sign * a.sign_im};
}

/* --- couplings and pivots
 * ------------------------------------------------------------------------------------------ */

static struct rows table_rows(const struct part *t, struct tree_planes table, struct tree_level v, int64_t i) {
    const struct tree_block_sizes *s = &t->y->s;
    int64_t row = (t->y->sharing == OWN_OF_SAMPLE ? t->b * s->T : 0) + tree_row(t->y->sharing, v, i);
    int64_t at = row * s->m * s->m * s->P + t->k;
    return (struct rows){table.re + at, table.im + at, s->m * s->P, s->P, 1, 1};
}

/* B (up) or C (down) between node i of level v and its parent, in the system or its adjoint. */
static struct rows coupling(const struct part *t, bool up, struct tree_level v, int64_t i) {
    enum tree_form form = tree_solve_attr(t->y->c)->form;
    bool adjoined = t->y->adjoint, takes_b = up != adjoined;
    if (form == TREE_FREE) {
        struct rows own = table_rows(t, takes_b ? t->y->b : t->y->down, v, i);
        return adjoined ? adjoint(own, 1) : own;
    }
    struct rows b = table_rows(t, t->y->b, v, i);
    real sign = form == TREE_SKEW ? -1 : 1;
    if (!up) b = adjoint(b, sign);
    if (!adjoined) return b;
    if (form == TREE_SKEW) b.sign_re = -b.sign_re, b.sign_im = -b.sign_im; /* C^H = -B */
    return b;
}

static int64_t pivot_index(const struct part *t, struct tree_level v, int64_t i) {
    return by_level(t->y->sharing) ? 2 * v.l + (i == v.real - 1) : v.offset + i;
}

/* The inverse pivot of node i of level v; node -1 has all children. */
static struct rows pivot_rows(const struct part *t, struct tree_level v, int64_t i) {
    int64_t m = t->y->s.m;
    real *at = t->inverse + pivot_index(t, v, i) * 2 * m * m * WIDTH;
    return (struct rows){at, at + m * m * WIDTH, m * WIDTH, WIDTH, 1, 1};
}

/* Replaces the matrix by its inverse: Gauss and Jordan in the given order (tree_block.c says why this is stable). */
static void invert(int64_t width, int64_t m, real *re, real *im) {
    for (int64_t p = 0; p < m; p++) {
        real by_re[WIDTH], by_im[WIDTH], f_re[WIDTH], f_im[WIDTH];
        real *d_re = re + (p * m + p) * WIDTH, *d_im = im + (p * m + p) * WIDTH;
        for (int64_t k = 0; k < width; k++) {
            real size = real_fma(d_re[k], d_re[k], d_im[k] * d_im[k]);
            by_re[k] = d_re[k] / size, by_im[k] = -d_im[k] / size;
            d_re[k] = 1, d_im[k] = 0;
        }
        for (int64_t j = 0; j < m; j++) {
            real *x_re = re + (p * m + j) * WIDTH, *x_im = im + (p * m + j) * WIDTH;
#pragma omp simd
            for (int64_t k = 0; k < width; k++) {
                real x = x_re[k];
                x_re[k] = real_fma(x, by_re[k], -x_im[k] * by_im[k]);
                x_im[k] = real_fma(x, by_im[k], x_im[k] * by_re[k]);
            }
        }
        for (int64_t i = 0; i < m; i++) {
            if (i == p) continue;
            real *e_re = re + (i * m + p) * WIDTH, *e_im = im + (i * m + p) * WIDTH;
            /* not one loop: gcc 12 makes such a loop into these calls, the memsets first */
            memcpy(f_re, e_re, (size_t)width * sizeof *f_re);
            memcpy(f_im, e_im, (size_t)width * sizeof *f_im);
            memset(e_re, 0, (size_t)width * sizeof *e_re);
            memset(e_im, 0, (size_t)width * sizeof *e_im);
            struct rows f = {f_re, f_im, 0, 0, 1, 1};
            for (int64_t j = 0; j < m; j++) {
                int64_t x = (p * m + j) * WIDTH, y = (i * m + j) * WIDTH;
                subtract_row(width, f, 0, re + x, im + x, re + y, im + y);
            }
        }
    }
}

/* Subtracts C I B of child j of level `below` from the pivot, column by column. */
static void subtract_child(const struct part *t, struct tree_level below, int64_t j, real *re, real *im) {
    int64_t m = t->y->s.m, node = j < 0 ? 0 : j;
    struct rows b = coupling(t, true, below, node), c = coupling(t, false, below, node);
    struct rows inverse = pivot_rows(t, below, j);
    for (int64_t q = 0; q < m; q++) {
        struct column b_q, product, pivot;
        for (int64_t i = 0; i < m; i++)
            for (int64_t k = 0; k < t->width; k++) {
                int64_t at = i * b.i_step + q * b.j_step + k, to = (i * m + q) * WIDTH + k;
                b_q.re[i][k] = -b.sign_re * b.re[at], b_q.im[i][k] = -b.sign_im * b.im[at];
                pivot.re[i][k] = re[to], pivot.im[i][k] = im[to];
            }
        clear(m, &product);
        subtract_product(t->width, m, inverse, *b_q.re, *b_q.im, WIDTH, &product);
        subtract_product(t->width, m, c, *product.re, *product.im, WIDTH, &pivot);
        for (int64_t i = 0; i < m; i++) {
            memcpy(re + (i * m + q) * WIDTH, pivot.re[i], (size_t)t->width * sizeof *re);
            memcpy(im + (i * m + q) * WIDTH, pivot.im[i], (size_t)t->width * sizeof *im);
        }
    }
}

/* Computes the inverse pivot of node i of level v; node -1 stands for those with all children. */
static void factor_node(const struct part *t, struct tree_level below, struct tree_level v, int64_t i,
                        int64_t children) {
    int64_t m = t->y->s.m;
    bool inner = by_level(t->y->sharing) && i != v.real - 1;
    real *re = t->inverse + pivot_index(t, v, i) * 2 * m * m * WIDTH, *im = re + m * m * WIDTH;
    for (int64_t e = 0; e < m * m; e++)
        for (int64_t k = 0; k < t->width; k++) re[e * WIDTH + k] = e / m == e % m, im[e * WIDTH + k] = 0;
    for (int64_t j = 0; j < children; j++) subtract_child(t, below, inner ? -1 : i * t->tree.arity + j, re, im);
    if (children) invert(t->width, m, re, im);
}

static void factor_tree(const struct part *t) {
    struct tree_level below = {0}, v = tree_bottom(&t->tree, t->leaves);
    if (t->leaves < 1) return;
    for (int64_t l = 0; l < t->tree.levels; l++, below = v, v = tree_above(&t->tree, t->leaves, v)) {
        if (by_level(t->y->sharing)) factor_node(t, below, v, -1, l ? t->tree.arity : 0);
        for (int64_t i = by_level(t->y->sharing) && v.real ? v.real - 1 : 0; i < v.real; i++)
            factor_node(t, below, v, i, l ? tree_children(&t->tree, below, i) : 0);
    }
}

/* --- solving
 * ------------------------------------------------------------------------------------------------------- */

/* Offset of row (0,q) of a node; rows (i,q) and (i+1,q) are r P apart. */
static int64_t value_at(const struct part *t, int64_t node, int64_t q) {
    const struct tree_block_sizes *s = &t->y->s;
    return ((t->b * s->T + node) * s->m * s->r + q) * s->P + t->k;
}

static void put_column(const struct part *t, const struct column *from, struct values to, int64_t at) {
    for (int64_t i = 0; i < t->y->s.m; i++, at += t->y->s.r * t->y->s.P) {
        memcpy(to.re + at, from->re[i], (size_t)t->width * sizeof(real));
        memcpy(to.im + at, from->im[i], (size_t)t->width * sizeof(real));
    }
}

/* y = x of the rows at `at` */
static void get_column(const struct part *t, const real *re, const real *im, int64_t at, struct column *y) {
    for (int64_t i = 0; i < t->y->s.m; i++, at += t->y->s.r * t->y->s.P) {
        memcpy(y->re[i], re + at, (size_t)t->width * sizeof(real));
        if (im) memcpy(y->im[i], im + at, (size_t)t->width * sizeof(real));
        if (!im) memset(y->im[i], 0, (size_t)t->width * sizeof(real));
    }
}

static void up(const struct part *t, struct tree_planes side, struct values z) {
    int64_t m = t->y->s.m, step = t->y->s.r * t->y->s.P;
    struct tree_level below = {0}, v = tree_bottom(&t->tree, t->leaves);
    for (int64_t l = 0; l < t->tree.levels; l++, below = v, v = tree_above(&t->tree, t->leaves, v))
        for (int64_t i = 0; i < v.real; i++)
            for (int64_t q = 0; q < t->y->s.r; q++) {
                struct column y, product;
                int64_t at = value_at(t, v.offset + i, q);
                get_column(t, side.re, side.im, at, &y);
                for (int64_t j = 0; l && j < tree_children(&t->tree, below, i); j++) {
                    int64_t child = i * t->tree.arity + j, x = value_at(t, below.offset + child, q);
                    subtract_product(t->width, m, coupling(t, false, below, child), z.re + x, z.im + x, step, &y);
                }
                struct rows inverse = pivot_rows(t, v, i);
                inverse.sign_re = inverse.sign_im = -1;
                clear(m, &product);
                if (l) subtract_product(t->width, m, inverse, *y.re, *y.im, WIDTH, &product);
                put_column(t, l ? &product : &y, z, at);
            }
}

static void down(const struct part *t, struct values x) {
    int64_t m = t->y->s.m, step = t->y->s.r * t->y->s.P;
    struct tree_level above = tree_root(&t->tree, t->leaves);
    for (int64_t l = t->tree.levels - 2; l >= 0; l--) {
        struct tree_level v = tree_below(&t->tree, t->leaves, above);
        for (int64_t i = 0; i < v.real; i++)
            for (int64_t q = 0; q < t->y->s.r; q++) {
                struct column y, z;
                int64_t at = value_at(t, v.offset + i, q), parent = value_at(t, above.offset + i / t->tree.arity, q);
                get_column(t, x.re, x.im, at, &z);
                struct rows b = coupling(t, true, v, i), inverse = pivot_rows(t, v, i);
                clear(m, &y);
                subtract_product(t->width, m, b, x.re + parent, x.im + parent, step, l ? &y : &z);
                inverse.sign_re = inverse.sign_im = -1; /* y holds -B x */
                if (l) subtract_product(t->width, m, inverse, *y.re, *y.im, WIDTH, &z);
                put_column(t, &z, x, at);
            }
        above = v;
    }
}

/* Sets x to 0 at padding, and in rows past the end of a chain. */
static void clear_padding(const struct part *t, struct values x) {
    const struct tree_block_sizes *s = &t->y->s;
    struct column none;
    struct tree_level v = tree_bottom(&t->tree, t->leaves);
    clear(s->m, &none);
    for (int64_t l = 0; l < t->tree.levels; l++, v = tree_above(&t->tree, t->leaves, v))
        for (int64_t i = v.real; i < v.count; i++)
            for (int64_t q = 0; q < s->r; q++) put_column(t, &none, x, value_at(t, v.offset + i, q));
    for (int64_t node = tree_nodes(&t->tree); node < s->T; node++)
        for (int64_t q = 0; q < s->r; q++) put_column(t, &none, x, value_at(t, node, q));
}

/* Solves the systems of one part. */
static void solve_part(const struct system *y, struct cut cut, struct scratch all, int64_t index,
                       struct tree_planes side, struct values x) {
    struct scratch own = scratch_part(&all, index, cut.groups * cut.strips);
    struct part t = {.y = y, .k = index % cut.strips * WIDTH, .inverse = scratch_reals(&own, pivot_reals(y->c))};
    struct range group = part_at(y->s.B, cut.groups, index / cut.strips);
    t.width = y->s.P - t.k < WIDTH ? y->s.P - t.k : WIDTH;
    for (t.b = group.begin; t.b < group.end; t.b++) {
        t.tree = tree_of_sequence(y->c, t.b);
        t.leaves = t.tree.leaves;
        bool same = t.b > group.begin && y->sharing != OWN_OF_SAMPLE && !y->c->in[TREE_LEAVES];
        if (!same) factor_tree(&t);
        clear_padding(&t, x);
        up(&t, side, x);
        down(&t, x);
    }
}

static struct tree_matrices matrices_of(const struct call *c) {
    struct tree_block_sizes s = tree_block_sizes(c);
    return (struct tree_matrices){tensor_rows(c->in[TREE_UP_RE]), s.m, s.P, tree_solve_attr(c)->beta};
}

static struct tree_planes input_planes(const struct call *c, int plane) {
    return (struct tree_planes){tensor_real(c->in[plane]), tensor_real(c->in[plane + 1])};
}

/* Bounds the couplings. */
static struct system system_of(const struct call *c, enum pass pass, struct room r) {
    struct system y = {.c = c, .s = tree_block_sizes(c), .sharing = sharing_of(c), .adjoint = pass == PASS_BACKWARD};
    struct tree_planes *to[] = {&y.b, &y.down};
    for (int i = 0; i < planes_of(c); i += 2) {
        *to[i / 2] = input_planes(c, i);
        if (tree_solve_attr(c)->beta <= 0) continue;
        struct tree_matrices m = matrices_of(c);
        tree_bound_rows(&m, *to[i / 2], r.bounded[i], r.bounded[i + 1]);
        *to[i / 2] = (struct tree_planes){r.bounded[i], r.bounded[i + 1]};
    }
    return y;
}

static void tree_block_cpu_forward(const struct call *c, const struct exec *e) {
    (void)e;
    struct cut cut = cut_of(c);
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct system y = system_of(c, PASS_FORWARD, take_room(c, PASS_FORWARD, &s));
    struct values x = {tensor_real(c->out[0]), tensor_real(c->out[1])};
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < cut.groups * cut.strips; i++) solve_part(&y, cut, s, i, input_planes(c, TREE_U_RE), x);
}

/* --- gradients of the couplings
 * ------------------------------------------------------------------------------------ */

/* y -= sign a conj(x), or its conjugate. Every argument is one row. */
LRNN_INLINE void subtract_outer(int64_t width, real sign, bool conjugate, const real *a_re, const real *a_im,
                                const real *x_re, const real *x_im, real *y_re, real *y_im) {
    real turn = conjugate ? -sign : sign;
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        y_re[k] -= sign * real_fma(a_re[k], x_re[k], a_im[k] * x_im[k]);
        y_im[k] -= turn * real_fma(a_im[k], x_re[k], -a_re[k] * x_im[k]);
    }
}

/* Adds the gradients of the couplings of one node, which is not the root, to the rows d of the planes. */
static void couple_node(const struct part *t, const struct room *r, int64_t node, int64_t parent, real *const d[4]) {
    const struct tree_block_sizes *s = &t->y->s;
    enum tree_form form = tree_solve_attr(t->y->c)->form;
    const real *x_re = tensor_real(t->y->c->out[0]), *x_im = tensor_real(t->y->c->out[1]);
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->m; j++)
            for (int64_t q = 0; q < s->r; q++) {
                int64_t step = s->r * s->P, to = (i * s->m + j) * s->P, turned = (j * s->m + i) * s->P;
                int64_t v = value_at(t, node, q), p = value_at(t, parent, q);
                subtract_outer(t->width, 1, false, r->lambda_re + v + i * step, r->lambda_im + v + i * step,
                               x_re + p + j * step, x_im + p + j * step, d[0] + to, d[1] + to);
                bool own = form == TREE_FREE; /* else dC_ij belongs to dB_ji */
                subtract_outer(t->width, form == TREE_SKEW ? -1 : 1, !own, r->lambda_re + p + i * step,
                               r->lambda_im + p + i * step, x_re + v + j * step, x_im + v + j * step,
                               own ? d[2] + to : d[0] + turned, own ? d[3] + to : d[1] + turned);
            }
}

/* The level of a node. */
static struct tree_level level_of(const struct tree *t, int64_t node) {
    if (t->arity == 1) return (struct tree_level){node, node, 1, 1, t->leaves};
    struct tree_level v = tree_bottom(t, t->leaves);
    while (node >= v.offset + v.count) v = tree_above(t, t->leaves, v);
    return v;
}

/* Computes the gradients of a row of the table, over the sequences of one chunk, in the strip from head k on. */
static void couple_row(const struct system *y, const struct room *r, struct cut cut, int64_t row, int64_t chunk,
                       int64_t k) {
    struct part t = {.y = y, .k = k, .width = y->s.P - k < WIDTH ? y->s.P - k : WIDTH};
    struct range sequences = part_at(y->s.B, cut.chunks, chunk);
    int64_t first, end, square = y->s.m * y->s.m, at = chunk * r->stride + row * square * y->s.P + k;
    real *d[4] = {0};
    for (int plane = 0; plane < planes_of(y->c); plane++) {
        d[plane] = r->gradient[plane] + at;
        for (int64_t e = 0; e < square; e++) memset(d[plane] + e * y->s.P, 0, (size_t)t.width * sizeof(real));
    }
    if (y->sharing == OWN_OF_SAMPLE) {
        sequences = (struct range){row / y->s.T, row / y->s.T + 1};
        row %= y->s.T;
    }
    tree_row_nodes(&tree_solve_attr(y->c)->tree, y->sharing, row, &first, &end);
    for (t.b = sequences.begin; t.b < sequences.end; t.b++) {
        t.tree = tree_of_sequence(y->c, t.b);
        int64_t last = tree_nodes(&t.tree) - 1; /* the root */
        for (int64_t node = first; node < end && node < last;) {
            struct tree_level v = level_of(&t.tree, node), above = tree_above(&t.tree, t.tree.leaves, v);
            for (; node < end && node < v.offset + v.real; node++)
                couple_node(&t, r, node, above.offset + (node - v.offset) / t.tree.arity, d);
            if (node < v.offset + v.count) node = v.offset + v.count; /* past the padding */
        }
    }
}

/* Adds the chunks of the gradients in order, and takes them through the bound. */
static void finish_tables(const struct call *c, const struct room *r, struct cut cut) {
    for (int plane = 0; plane < planes_of(c); plane += 2) {
        int64_t n = tensor_count(c->in[plane]);
        real *const to[2] = {c->din[plane], c->din[plane + 1]};
        const bool add[2] = {call_accumulates(c, plane), call_accumulates(c, plane + 1)};
        struct tree_planes g = {r->gradient[plane], r->gradient[plane + 1]};
        struct tree_matrices s = matrices_of(c);
        for (int i = 0; i < 2 && cut.chunks > 1; i++) {
            real *sum = r->gradient[plane + i];
            for (int64_t chunk = 1; chunk < cut.chunks; chunk++)
                for (int64_t e = 0; e < n; e++) sum[e] += sum[chunk * r->stride + e];
        }
        if (tree_solve_attr(c)->beta > 0) {
            tree_unbound_rows(&s, input_planes(c, plane), g, to, add);
            continue;
        }
        for (int64_t e = 0; to[0] && e < n; e++) put(to[0] + e, add[0], g.re[e]);
        for (int64_t e = 0; to[1] && e < n; e++) put(to[1] + e, add[1], g.im[e]);
    }
}

static void put_lambda(const struct call *c, int plane, const real *lambda) {
    bool add = call_accumulates(c, plane);
    for (int64_t i = 0; c->din[plane] && i < tensor_count(c->out[0]); i++) put(c->din[plane] + i, add, lambda[i]);
}

static void tree_block_cpu_backward(const struct call *c, const struct exec *e) {
    (void)e;
    struct cut cut = cut_of(c);
    struct scratch s = scratch_of(c, PASS_BACKWARD);
    struct room r = take_room(c, PASS_BACKWARD, &s);
    struct system y = system_of(c, PASS_BACKWARD, r);
    struct tree_planes g = {call_dout(c, 0), call_dout(c, 1)};
    struct values lambda = {r.lambda_re, r.lambda_im};
    int64_t rows = planes_of(c) ? matrices_of(c).rows : 0;
    bool wide = tensor_count(c->out[0]) > PARALLEL_MIN;
#pragma omp parallel for schedule(static) if (wide)
    for (int64_t i = 0; i < cut.groups * cut.strips; i++) solve_part(&y, cut, s, i, g, lambda);
    put_lambda(c, TREE_U_RE, r.lambda_re);
    put_lambda(c, TREE_U_IM, r.lambda_im);
#pragma omp parallel for schedule(dynamic) if (wide)
    for (int64_t i = 0; i < rows * cut.chunks * cut.strips; i++)
        couple_row(&y, &r, cut, i / cut.strips / cut.chunks, i / cut.strips % cut.chunks, i % cut.strips * WIDTH);
    finish_tables(c, &r, cut);
}

/* Tolerance: four times that of tree_solve_cpu, since a step is a sum of m terms and a pivot's inverse takes m steps
 * more. The reference computes in double. This kernel rounds at each of the 2 * levels steps. Inverse pivots of bounded
 * systems are below 2, so errors do not grow. The gradient of a shared coupling is a sum of B * nodes terms, whose
 * error grows like sqrt(B * nodes). */
const struct kernel kernel_tree_block_cpu = {
    .name = "tree_block_cpu",
    .op = &op_tree_block,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 512,
    .workspace = tree_block_cpu_workspace,
    .forward = tree_block_cpu_forward,
    .backward = tree_block_cpu_backward,
};
