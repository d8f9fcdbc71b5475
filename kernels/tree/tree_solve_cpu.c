/* tree_solve_cpu.c - linear systems on trees on the CPU. It treats one node after the other, and many heads at once in
 * vector lanes. Each head has a system of its own.
 *
 * The equation of node v with parent p(v) (tree_solve.c):
 *   x_v + b_v x_p(v) + sum over children j of c_j x_j = u_v      b_v, c_v: the couplings of v and its parent
 * Elimination of the children turns the factor 1 of x_v into the pivot a_v = 1 - sum_j c_j b_j / a_j. For each node the
 * code first computes these rows, which have one number per head:
 *   M = c,   H = b / a,   I = 1 / a
 * and then solves
 *   up, from the leaves to the root     z_v = I_v (u_v - sum_j M_j z_j)
 *   down, from the root to the leaves   x_v = z_v - H_v x_p(v),   x_root = z_root
 * Backward solves the adjoint system for lambda, with M = conj(b), H = conj(c) / conj(a) and I = 1 / conj(a).
 *
 * If all nodes of a level have the same couplings, they also have the same M, H and I, except the last node that is not
 * padding, which may have fewer children. So M, H and I need only two rows per level, which stay in L1. Leaves have I =
 * 1, so their z is u and is not copied. The work is cut into parts: a part is a group of sequences and a strip, which
 * is a range of heads. Gradients of shared couplings are summed in each part, then over the parts in order. */
#include <string.h>

#include "core/real_math.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/tree/tree_walk.h"

#define TREE_VECTOR 16   /* the width of each strip but the last is a multiple of this many heads */
#define TREE_WIDTH  1024 /* most heads of a strip */
/* Least heads of a strip, if the call has so many: a strip of 16 heads takes as long as one of 32. */
#define TREE_LEAST 32
/* Most bytes of the solution of one sequence in one strip. The pass down then finds in L2 what the pass up wrote. */
#define TREE_STRIP_BYTES (1 << 20)

static const real zeros[TREE_WIDTH];

/* How a call is cut into parts, and how many rows of `width` reals each part has in scratch memory. */
struct cut {
    int64_t groups, strips, width;
    int64_t factors; /* rows of M, H, I */
    int64_t tables;  /* rows in which a part sums the gradients of couplings */
};

/* One part: a group of sequences, and the heads from k to k + width - 1. */
struct part {
    const struct call *c;
    struct tree tree;
    enum tree_sharing sharing;
    bool free, adjoint;                           /* free: b and c are independent; adjoint: backward */
    int64_t T, P, k, width, pitch;                /* T nodes, P heads; pitch: reals between rows of scratch */
    int64_t leaves;                               /* number of leaves of the current sequence that are not padding */
    real *factor, *lambda_re, *lambda_im, *table; /* rows in scratch; only backward has lambda and table */
};

/* Rows of complex numbers: one array has the real parts, another the imaginary parts. */
struct planes {
    real *re, *im;
    int64_t stride;
};

struct const_planes {
    const real *re, *im;
    int64_t stride, im_stride; /* im_stride 0: all rows share the row at im */
};

enum { M_RE, M_IM, H_RE, H_IM, I_RE, I_IM, FACTOR_PLANES };

static enum tree_sharing sharing_of(const struct call *c) {
    return tree_sharing(&tree_solve_attr(c)->tree, c->in[TREE_UP_RE]);
}

static bool by_level(enum tree_sharing sharing) {
    return sharing == SHARED_BY_ALL || sharing == SHARED_BY_LEVEL;
}

/* --- cutting --------------------------------------------------------------------------------------------------- */

static struct cut cut_of(const struct call *c) {
    int64_t B = c->out[0]->dims[0], T = c->out[0]->dims[1], P = c->out[0]->dims[2];
    enum tree_sharing sharing = sharing_of(c);
    struct cut cut = {.groups = B < TREE_GROUPS ? B : TREE_GROUPS};
    int64_t parts = (TREE_GROUPS + cut.groups - 1) / cut.groups;
    int64_t most = TREE_STRIP_BYTES / (2 * T * (int64_t)sizeof(real));
    most = most < 4 * TREE_VECTOR ? 4 * TREE_VECTOR : most > TREE_WIDTH ? TREE_WIDTH : most;
    int64_t share = (P + parts - 1) / parts, least = P < TREE_LEAST ? P : TREE_LEAST;
    cut.width = share < least ? least : share < most ? share : most;
    cut.width = (cut.width + TREE_VECTOR - 1) / TREE_VECTOR * TREE_VECTOR;
    cut.strips = (P + cut.width - 1) / cut.width;
    cut.factors = by_level(sharing) ? 2 * tree_solve_attr(c)->tree.levels : T;
    cut.tables = !c->in[TREE_UP_RE] ? 0 : sharing == OWN_OF_SAMPLE ? 1 : c->in[TREE_UP_RE]->dims[0];
    return cut;
}

static void take_rows(const struct call *c, struct cut cut, enum pass pass, struct scratch *s, struct part *t) {
    struct scratch_rows factor = scratch_rows(s, FACTOR_PLANES * cut.factors, cut.width);
    int64_t T = c->out[0]->dims[1];
    t->factor = factor.at;
    t->pitch = factor.stride;
    if (pass == PASS_FORWARD) return;
    t->lambda_re = scratch_rows(s, T, cut.width).at;
    t->lambda_im = scratch_rows(s, T, cut.width).at;
    t->table = scratch_rows(s, 4 * cut.tables, cut.width).at;
}

static size_t tree_solve_cpu_workspace(const struct call *c, enum pass pass) {
    struct cut cut = cut_of(c);
    struct scratch s = scratch_measure(c);
    struct part none;
    for (int64_t i = 0; i < cut.groups * cut.strips; i++) take_rows(c, cut, pass, &s, &none);
    return s.used;
}

static struct part tree_part(const struct call *c, struct cut cut, enum pass pass, int64_t index) {
    struct part t = {.c = c,
                     .tree = tree_solve_attr(c)->tree,
                     .sharing = sharing_of(c),
                     .adjoint = pass == PASS_BACKWARD,
                     .free = tree_solve_attr(c)->form == TREE_FREE,
                     .T = c->out[0]->dims[1],
                     .P = c->out[0]->dims[2]};
    t.k = index % cut.strips * cut.width;
    t.width = t.P - t.k < cut.width ? t.P - t.k : cut.width;
    struct scratch all = scratch_of(c, pass), own = scratch_part(&all, index, cut.groups * cut.strips);
    take_rows(c, cut, pass, &own, &t);
    return t;
}

/* --- M, H, I --------------------------------------------------------------------------------------------------- */

/* Returns the six rows that node i of level v uses: the real and imaginary parts of M, H and I. */
static real *factor_of(const struct part *t, struct tree_level v, int64_t i) {
    int64_t row = by_level(t->sharing) ? 2 * v.l + (i == v.real - 1) : v.offset + i;
    return t->factor + row * FACTOR_PLANES * t->pitch;
}

/* Subtracts M H of one child from the pivot of its parent. The pivot is in the rows of I until invert_pivot. */
static void subtract_child(const struct part *t, real *f, const real *child) {
    const real *m_re = child + M_RE * t->pitch, *m_im = child + M_IM * t->pitch;
    const real *h_re = child + H_RE * t->pitch, *h_im = child + H_IM * t->pitch;
    real *a_re = f + I_RE * t->pitch, *a_im = f + I_IM * t->pitch;
#pragma omp simd
    for (int64_t k = 0; k < t->width; k++) a_re[k] = real_fma(-m_re[k], h_re[k], real_fma(m_im[k], h_im[k], a_re[k]));
    if (!t->free) return; /* M H is real */
#pragma omp simd
    for (int64_t k = 0; k < t->width; k++) a_im[k] = real_fma(-m_re[k], h_im[k], real_fma(-m_im[k], h_re[k], a_im[k]));
}

/* Replaces the pivot by I = 1 / pivot. */
static void invert_pivot(const struct part *t, real *f) {
    real *a_re = f + I_RE * t->pitch, *a_im = f + I_IM * t->pitch;
#pragma omp simd
    for (int64_t k = 0; k < t->width; k++) {
        real d = real_fma(a_re[k], a_re[k], a_im[k] * a_im[k]);
        a_re[k] = t->free ? a_re[k] / d : 1 / a_re[k];
        a_im[k] = t->free ? -a_im[k] / d : 0;
    }
}

/* Computes one row of couplings (b or c) from theta, the op's input for them: to = s theta with the bound s = beta /
 * sqrt(1 + |theta|^2), or s = 1 if beta is 0. */
static void bound_row(const struct part *t, const real *re, const real *im, real *to_re, real *to_im) {
    real beta = (real)tree_solve_attr(t->c)->beta;
    bool bounded = beta > 0;
#pragma omp simd
    for (int64_t k = 0; k < t->width; k++) {
        real s = bounded ? beta / real_sqrt(real_fma(re[k], re[k], real_fma(im[k], im[k], 1))) : 1;
        to_re[k] = s * re[k];
        to_im[k] = s * im[k];
    }
}

/* Returns where the input has theta of node i of level v, sequence b. */
static int64_t table_at(const struct part *t, int64_t b, struct tree_level v, int64_t i) {
    return ((t->sharing == OWN_OF_SAMPLE ? b * t->T : 0) + tree_row(t->sharing, v, i)) * t->P + t->k;
}

/* Computes M and H of node i of level v, from its couplings and from I, which must be computed already. The rows of H
 * and M first hold b and c. */
static void couple(const struct part *t, int64_t b, struct tree_level v, int64_t i, real *f) {
    const struct call *c = t->c;
    int64_t at = table_at(t, b, v, i);
    real *m_re = f + M_RE * t->pitch, *m_im = f + M_IM * t->pitch, *h_re = f + H_RE * t->pitch,
         *h_im = f + H_IM * t->pitch;
    const real *i_re = f + I_RE * t->pitch, *i_im = f + I_IM * t->pitch;
    bound_row(t, tensor_real(c->in[TREE_UP_RE]) + at, tensor_real(c->in[TREE_UP_IM]) + at, h_re, h_im);
    if (t->free) {
        bound_row(t, tensor_real(c->in[TREE_DOWN_RE]) + at, tensor_real(c->in[TREE_DOWN_IM]) + at, m_re, m_im);
    } else {
        real sign = tree_solve_attr(c)->form == TREE_SKEW ? -1 : 1;
#pragma omp simd
        for (int64_t k = 0; k < t->width; k++) {
            m_re[k] = sign * h_re[k];
            m_im[k] = -sign * h_im[k];
        }
    }
    bool adjoint = t->adjoint;
#pragma omp simd
    for (int64_t k = 0; k < t->width; k++) {
        real b_re = adjoint ? m_re[k] : h_re[k], b_im = adjoint ? -m_im[k] : h_im[k];
        m_re[k] = adjoint ? h_re[k] : m_re[k];
        m_im[k] = adjoint ? -h_im[k] : m_im[k];
        h_re[k] = real_fma(b_re, i_re[k], -b_im * i_im[k]);
        h_im[k] = real_fma(b_im, i_re[k], b_re * i_im[k]);
    }
}

/* Computes M, H, I of node i of level v in the rows f. `below`: the level of its children. */
static void factor_node(const struct part *t, int64_t b, struct tree_level below, struct tree_level v, int64_t i,
                        int64_t children, real *f) {
    bool inner = by_level(t->sharing) && i != v.real - 1;
    for (int64_t k = 0; k < t->width; k++) {
        f[I_RE * t->pitch + k] = 1;
        f[I_IM * t->pitch + k] = 0;
    }
    for (int64_t j = 0; j < children; j++)
        subtract_child(t, f, factor_of(t, below, inner ? -1 : i * t->tree.arity + j));
    if (children) invert_pivot(t, f);
    if (v.l < t->tree.levels - 1) couple(t, b, v, inner ? 0 : i, f);
}

/* Computes all rows of M, H, I for sequence b. If the nodes of a level share their couplings, the level has one row for
 * nodes with all children (i = -1), and one for the last node that is not padding. */
static void factor_tree(const struct part *t, int64_t b) {
    struct tree_level below = {0}, v = tree_bottom(&t->tree, t->leaves);
    if (t->leaves < 1) return;
    for (int64_t l = 0; l < t->tree.levels; l++, below = v, v = tree_above(&t->tree, t->leaves, v)) {
        if (by_level(t->sharing)) factor_node(t, b, below, v, -1, l ? t->tree.arity : 0, factor_of(t, v, -1));
        for (int64_t i = by_level(t->sharing) && v.real ? v.real - 1 : 0; i < v.real; i++)
            factor_node(t, b, below, v, i, l ? tree_children(&t->tree, below, i) : 0, factor_of(t, v, i));
    }
}

/* Sets the tree of sequence b, and computes its M, H, I. If the sequences share their couplings and have equal trees,
 * this is done for the part's first sequence only. */
static void prepare(struct part *t, int64_t b, bool first) {
    t->tree = tree_of_sequence(t->c, b);
    t->leaves = t->tree.leaves;
    if (first || t->sharing == OWN_OF_SAMPLE || t->c->in[TREE_LEAVES]) factor_tree(t, b);
}

/* --- up -------------------------------------------------------------------------------------------------------- */

/* One or two children of a node. */
struct messages {
    const real *f0, *f1;               /* their M, H and I */
    const real *re0, *im0, *re1, *im1; /* their z */
};

/* Computes z = s - M0 z0, or s - M0 z0 - M1 z1 for two children. If these are the last children of the node, z is then
 * multiplied by I. */
LRNN_INLINE void up_pass(bool two, bool last, bool complex_pivot, int64_t width, int64_t pitch, struct messages m,
                         const real *f, const real *s_re, const real *s_im, real *z_re, real *z_im) {
    const real *a_re = m.f0 + M_RE * pitch, *a_im = m.f0 + M_IM * pitch, *b_re = m.f1 + M_RE * pitch,
               *b_im = m.f1 + M_IM * pitch;
    const real *i_re = f + I_RE * pitch, *i_im = f + I_IM * pitch;
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real re = s_re[k], im = s_im[k], x = m.re0[k], y = m.im0[k];
        re = real_fma(-a_re[k], x, real_fma(a_im[k], y, re));
        im = real_fma(-a_re[k], y, real_fma(-a_im[k], x, im));
        if (two) {
            x = m.re1[k];
            y = m.im1[k];
            re = real_fma(-b_re[k], x, real_fma(b_im[k], y, re));
            im = real_fma(-b_re[k], y, real_fma(-b_im[k], x, im));
        }
        z_re[k] = !last ? re : complex_pivot ? real_fma(i_re[k], re, -i_im[k] * im) : i_re[k] * re;
        z_im[k] = !last ? im : complex_pivot ? real_fma(i_re[k], im, i_im[k] * re) : i_re[k] * im;
    }
}

/* Computes z of node i of level v. `from`: z of the level below; s: the right-hand side of the node. */
static void up_node(const struct part *t, struct tree_level below, struct tree_level v, int64_t i,
                    struct const_planes from, const real *s_re, const real *s_im, real *z_re, real *z_im) {
    int64_t children = tree_children(&t->tree, below, i);
    const real *f = factor_of(t, v, i);
    for (int64_t j = 0; j < children; j += 2) {
        int64_t child = i * t->tree.arity + j, at = below.offset + child;
        bool two = j + 1 < children, last = j + 2 >= children;
        int64_t second = two ? 1 : 0;
        struct messages m = {factor_of(t, below, child),
                             factor_of(t, below, child + second),
                             from.re + at * from.stride,
                             from.im + at * from.im_stride,
                             from.re + (at + second) * from.stride,
                             from.im + (at + second) * from.im_stride};
        const real *re = j ? z_re : s_re, *im = j ? z_im : s_im;
        if (two && last && !t->free)
            up_pass(true, true, false, t->width, t->pitch, m, f, re, im, z_re, z_im);
        else if (two && last)
            up_pass(true, true, true, t->width, t->pitch, m, f, re, im, z_re, z_im);
        else if (two)
            up_pass(true, false, false, t->width, t->pitch, m, f, re, im, z_re, z_im);
        else
            up_pass(false, true, t->free, t->width, t->pitch, m, f, re, im, z_re, z_im);
    }
}

/* Computes z of all nodes except the leaves. s: the right-hand side, which is u or, in backward, the gradient of x. */
static void up(const struct part *t, struct const_planes s, struct planes z) {
    struct const_planes from = s;
    struct const_planes above = {z.re, z.im, z.stride, z.stride};
    struct tree_level below = tree_bottom(&t->tree, t->leaves);
    for (int64_t l = 1; l < t->tree.levels; l++) {
        struct tree_level v = tree_above(&t->tree, t->leaves, below);
        for (int64_t i = 0; i < v.real; i++) {
            int64_t node = v.offset + i;
            up_node(t, below, v, i, from, s.re + node * s.stride, s.im + node * s.im_stride, z.re + node * z.stride,
                    z.im + node * z.stride);
        }
        from = above;
        below = v;
    }
}

/* --- forward --------------------------------------------------------------------------------------------------- */

/* Computes x = s - H p. */
static void down_row(int64_t width, const real *h_re, const real *h_im, const real *p_re, const real *p_im,
                     const real *s_re, const real *s_im, real *x_re, real *x_im) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real re = p_re[k], im = p_im[k];
        x_re[k] = real_fma(-h_re[k], re, real_fma(h_im[k], im, s_re[k]));
        x_im[k] = real_fma(-h_re[k], im, real_fma(-h_im[k], re, s_im[k]));
    }
}

/* Sets x of a level's padding to 0. */
static void clear_padding(const struct part *t, struct tree_level v, struct planes x) {
    for (int64_t i = v.offset + v.real; i < v.offset + v.count; i++) {
        memset(x.re + i * x.stride, 0, (size_t)t->width * sizeof(real));
        memset(x.im + i * x.stride, 0, (size_t)t->width * sizeof(real));
    }
}

/* Sets x of the nodes after the end of a chain to 0. */
static void clear_behind(const struct part *t, struct planes x) {
    for (int64_t i = tree_nodes(&t->tree); i < t->T; i++) {
        memset(x.re + i * x.stride, 0, (size_t)t->width * sizeof(real));
        memset(x.im + i * x.stride, 0, (size_t)t->width * sizeof(real));
    }
}

/* Computes the solution of all nodes in the array x. On entry this array has z of all nodes except the leaves; z of a
 * leaf is its s. */
static void down(const struct part *t, struct const_planes s, struct planes x) {
    struct tree_level above = tree_root(&t->tree, t->leaves);
    clear_behind(t, x);
    clear_padding(t, above, x);
    for (int64_t l = t->tree.levels - 2; l >= 0; l--) {
        struct tree_level v = tree_below(&t->tree, t->leaves, above);
        struct const_planes z = {x.re, x.im, x.stride, x.stride};
        if (l == 0) z = s;
        for (int64_t i = 0; i < v.real; i++) {
            const real *f = factor_of(t, v, i);
            int64_t node = v.offset + i, parent = (above.offset + i / t->tree.arity) * x.stride;
            down_row(t->width, f + H_RE * t->pitch, f + H_IM * t->pitch, x.re + parent, x.im + parent,
                     z.re + node * z.stride, z.im + node * z.im_stride, x.re + node * x.stride, x.im + node * x.stride);
        }
        clear_padding(t, v, x);
        above = v;
    }
}

/* Sets x = s if the tree has only one node. */
static void copy_root(const struct part *t, struct const_planes s, struct planes x) {
    if (t->tree.levels > 1 || t->leaves < 1) return;
    memcpy(x.re, s.re, (size_t)t->width * sizeof(real));
    memcpy(x.im, s.im, (size_t)t->width * sizeof(real));
}

static void forward_part(const struct call *c, struct cut cut, int64_t index) {
    struct part t = tree_part(c, cut, PASS_FORWARD, index);
    struct range group = part_at(c->out[0]->dims[0], cut.groups, index / cut.strips);
    for (int64_t b = group.begin; b < group.end; b++) {
        int64_t first = b * t.T * t.P + t.k;
        struct const_planes u = {tensor_real(c->in[TREE_U_RE]) + first, tensor_real(c->in[TREE_U_IM]) + first, t.P,
                                 t.P};
        struct planes x = {tensor_real(c->out[0]) + first, tensor_real(c->out[1]) + first, t.P};
        prepare(&t, b, b == group.begin);
        copy_root(&t, u, x);
        up(&t, u, x);
        down(&t, u, x);
    }
}

static void tree_solve_cpu_forward(const struct call *c, const struct exec *e) {
    (void)e;
    struct cut cut = cut_of(c);
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < cut.groups * cut.strips; i++) forward_part(c, cut, i);
}

/* --- backward -------------------------------------------------------------------------------------------------- */

/* Rows of the solution of a node (x) and of its parent (xp), rows of lambda of both (l, lp), and rows of the gradients
 * of the node's couplings b and c. */
struct pair {
    const real *x_re, *x_im, *xp_re, *xp_im, *l_re, *l_im, *lp_re, *lp_im;
    real *db_re, *db_im, *dc_re, *dc_im;
};

/* Adds -lambda_v conj(x_p) to db, and dc = -lambda_p conj(x_v) to the row of dc. If c is `tied` to b (c = sign
 * conj(b)), there is no such row; then db also gets sign conj(dc). */
LRNN_INLINE void couple_gradient(bool tied, real sign, int64_t width, struct pair p) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real c_re = real_fma(p.lp_re[k], p.x_re[k], p.lp_im[k] * p.x_im[k]);
        real c_im = real_fma(p.lp_im[k], p.x_re[k], -p.lp_re[k] * p.x_im[k]);
        real b_re = real_fma(p.l_re[k], p.xp_re[k], p.l_im[k] * p.xp_im[k]);
        real b_im = real_fma(p.l_im[k], p.xp_re[k], -p.l_re[k] * p.xp_im[k]);
        p.db_re[k] -= tied ? real_fma(sign, c_re, b_re) : b_re;
        p.db_im[k] -= tied ? real_fma(-sign, c_im, b_im) : b_im;
        if (tied) continue;
        p.dc_re[k] -= c_re;
        p.dc_im[k] -= c_im;
    }
}

/* Computes dtheta from db: multiplies by the derivative of the bound (tree_solve.c). Writes or adds it at `at` of the
 * gradient of input `plane`, which has the real parts of theta, and of the next input, which has the imaginary
 * parts. */
static void unbound_plane(const struct call *c, int plane, int64_t at, int64_t width, const real *db_re,
                          const real *db_im) {
    const real *re = tensor_real(c->in[plane]) + at, *im = tensor_real(c->in[plane + 1]) + at;
    real *d_re = c->din[plane] ? c->din[plane] + at : NULL, *d_im = c->din[plane + 1] ? c->din[plane + 1] + at : NULL;
    bool add_re = call_accumulates(c, plane), add_im = call_accumulates(c, plane + 1);
    real beta = (real)tree_solve_attr(c)->beta;
    bool bounded = beta > 0;
    real out_re[TREE_WIDTH], out_im[TREE_WIDTH];
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real s = 1 / real_sqrt(real_fma(re[k], re[k], real_fma(im[k], im[k], 1)));
        real along = s * s * real_fma(re[k], db_re[k], im[k] * db_im[k]);
        real scale = bounded ? beta * s : 1;
        along = bounded ? along : 0;
        out_re[k] = scale * real_fma(-re[k], along, db_re[k]);
        out_im[k] = scale * real_fma(-im[k], along, db_im[k]);
    }
    for (int64_t k = 0; d_re && k < width; k++) put(d_re + k, add_re, out_re[k]);
    for (int64_t k = 0; d_im && k < width; k++) put(d_im + k, add_im, out_im[k]);
}

/* Computes dtheta of the row at `at` from its four rows of gradients d: db, and in the free form dc. */
static void unbound_row(const struct call *c, int64_t at, int64_t width, int64_t pitch, const real *d) {
    unbound_plane(c, TREE_UP_RE, at, width, d, d + pitch);
    if (tree_solve_attr(c)->form == TREE_FREE) unbound_plane(c, TREE_DOWN_RE, at, width, d + 2 * pitch, d + 3 * pitch);
}

/* Sets n rows to 0. */
static void clear_rows(const struct part *t, int64_t n, real *rows) {
    for (int64_t i = 0; i < n; i++) memset(rows + i * t->pitch, 0, (size_t)t->width * sizeof *rows);
}

/* Adds the gradients of the couplings of node i of level v. Lambda of the node and of its parent must be known. */
static void couple_node(const struct part *t, int64_t b, struct tree_level v, int64_t i, struct pair p) {
    bool sample = t->sharing == OWN_OF_SAMPLE;
    real *d = t->table + (sample ? 0 : tree_row(t->sharing, v, i)) * 4 * t->pitch;
    if (sample) clear_rows(t, 4, d);
    p.db_re = d;
    p.db_im = d + t->pitch;
    p.dc_re = d + 2 * t->pitch;
    p.dc_im = d + 3 * t->pitch;
    if (t->free)
        couple_gradient(false, 0, t->width, p);
    else
        couple_gradient(true, tree_solve_attr(t->c)->form == TREE_SKEW ? -1 : 1, t->width, p);
    if (sample) unbound_row(t->c, table_at(t, b, v, i), t->width, t->pitch, d);
}

/* Computes lambda like `down`, and also the gradients of the couplings. */
static void down_backward(const struct part *t, int64_t b, struct const_planes s, struct planes lambda,
                          struct const_planes x) {
    struct tree_level above = tree_root(&t->tree, t->leaves);
    clear_behind(t, lambda);
    clear_padding(t, above, lambda);
    for (int64_t l = t->tree.levels - 2; l >= 0; l--) {
        struct tree_level v = tree_below(&t->tree, t->leaves, above);
        struct const_planes z = {lambda.re, lambda.im, lambda.stride, lambda.stride};
        if (l == 0) z = s;
        for (int64_t i = 0; i < v.real; i++) {
            const real *f = factor_of(t, v, i);
            int64_t node = v.offset + i, parent = above.offset + i / t->tree.arity;
            struct pair p = {x.re + node * x.stride,
                             x.im + node * x.stride,
                             x.re + parent * x.stride,
                             x.im + parent * x.stride,
                             NULL,
                             NULL,
                             lambda.re + parent * lambda.stride,
                             lambda.im + parent * lambda.stride,
                             NULL,
                             NULL,
                             NULL,
                             NULL};
            real *re = lambda.re + node * lambda.stride, *im = lambda.im + node * lambda.stride;
            down_row(t->width, f + H_RE * t->pitch, f + H_IM * t->pitch, p.lp_re, p.lp_im, z.re + node * z.stride,
                     z.im + node * z.im_stride, re, im);
            p.l_re = re;
            p.l_im = im;
            couple_node(t, b, v, i, p);
        }
        clear_padding(t, v, lambda);
        above = v;
    }
}

/* Sets the gradients of theta of one node of sequence b to 0, for inputs with a row per node and sequence. */
static void clear_row(const struct part *t, int64_t b, int64_t node) {
    int64_t at = (b * t->T + node) * t->P + t->k;
    for (int plane = TREE_UP_RE; plane <= TREE_DOWN_IM; plane++)
        if (t->c->din[plane] && !call_accumulates(t->c, plane))
            memset(t->c->din[plane] + at, 0, (size_t)t->width * sizeof(real));
}

/* If theta has a row per node and sequence, sets the gradients of unused rows to 0: the root's row, rows of padding,
 * and rows after the end of a chain. */
static void clear_unused_rows(const struct part *t, int64_t b) {
    if (t->sharing != OWN_OF_SAMPLE) return;
    struct tree_level v = tree_bottom(&t->tree, t->leaves);
    for (int64_t l = 0; l < t->tree.levels; l++, v = tree_above(&t->tree, t->leaves, v))
        for (int64_t i = l == t->tree.levels - 1 ? 0 : v.real; i < v.count; i++) clear_row(t, b, v.offset + i);
    for (int64_t node = tree_nodes(&t->tree); node < t->T; node++) clear_row(t, b, node);
}

/* Writes lambda to du, or adds it, for calls where lambda was not computed in place. */
static void put_lambda(const struct part *t, int plane, int64_t first, const real *lambda) {
    real *du = t->c->din[plane];
    bool add_du = call_accumulates(t->c, plane);
    for (int64_t i = 0; du && i < t->T; i++)
        for (int64_t k = 0; k < t->width; k++) put(du + first + i * t->P + k, add_du, lambda[i * t->pitch + k]);
}

static void backward_part(const struct call *c, struct cut cut, int64_t index) {
    struct part t = tree_part(c, cut, PASS_BACKWARD, index);
    struct range group = part_at(c->out[0]->dims[0], cut.groups, index / cut.strips);
    bool in_place =
        c->din[TREE_U_RE] && c->din[TREE_U_IM] && !call_accumulates(c, TREE_U_RE) && !call_accumulates(c, TREE_U_IM);
    clear_rows(&t, 4 * cut.tables, t.table);
    for (int64_t b = group.begin; b < group.end; b++) {
        int64_t first = b * t.T * t.P + t.k;
        struct const_planes x = {tensor_real(c->out[0]) + first, tensor_real(c->out[1]) + first, t.P, t.P};
        struct const_planes g = {call_dout(c, 0) + first, zeros, t.P, 0};
        if (call_dout(c, 1)) g = (struct const_planes){g.re, call_dout(c, 1) + first, t.P, t.P};
        struct planes lambda = {t.lambda_re, t.lambda_im, t.pitch};
        if (in_place) lambda = (struct planes){c->din[TREE_U_RE] + first, c->din[TREE_U_IM] + first, t.P};
        prepare(&t, b, b == group.begin);
        copy_root(&t, g, lambda);
        up(&t, g, lambda);
        down_backward(&t, b, g, lambda, x);
        clear_unused_rows(&t, b);
        if (in_place) continue;
        put_lambda(&t, TREE_U_RE, first, lambda.re);
        put_lambda(&t, TREE_U_IM, first, lambda.im);
    }
}

/* Computes dtheta of one shared row for one strip: adds the sums of the groups in order, then applies the derivative of
 * the bound. */
static void reduce_row(const struct call *c, struct cut cut, int64_t strip, int64_t row) {
    real sum[4 * TREE_WIDTH];
    struct part t = tree_part(c, cut, PASS_BACKWARD, strip);
    for (int plane = 0; plane < 4; plane++) memset(sum + plane * TREE_WIDTH, 0, (size_t)t.width * sizeof *sum);
    for (int64_t group = 0; group < cut.groups; group++) {
        const real *table = tree_part(c, cut, PASS_BACKWARD, group * cut.strips + strip).table;
        for (int plane = 0; plane < 4; plane++) {
            const real *d = table + (4 * row + plane) * t.pitch;
            real *to = sum + plane * TREE_WIDTH;
#pragma omp simd
            for (int64_t k = 0; k < t.width; k++) to[k] += d[k];
        }
    }
    unbound_row(c, row * t.P + t.k, t.width, TREE_WIDTH, sum);
}

static void tree_solve_cpu_backward(const struct call *c, const struct exec *e) {
    (void)e;
    struct cut cut = cut_of(c);
    bool wide = tensor_count(c->out[0]) > PARALLEL_MIN;
#pragma omp parallel for schedule(static) if (wide)
    for (int64_t i = 0; i < cut.groups * cut.strips; i++) backward_part(c, cut, i);
    if (sharing_of(c) == OWN_OF_SAMPLE) return;
#pragma omp parallel for schedule(static) if (wide)
    for (int64_t i = 0; i < cut.strips * cut.tables; i++) reduce_row(c, cut, i / cut.tables, i % cut.tables);
}

/* Tolerance: the reference computes in double. Here each of the 2 * levels steps rounds. Pivots of bounded systems are
 * above 1/2, so errors do not grow. A shared coupling's gradient sums B * nodes terms, whose error grows like the
 * square root of their number. */
const struct kernel kernel_tree_solve_cpu = {
    .name = "tree_solve_cpu",
    .op = &op_tree_solve,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 128,
    .workspace = tree_solve_cpu_workspace,
    .forward = tree_solve_cpu_forward,
    .backward = tree_solve_cpu_backward,
};
