/* tree_solve_cpu.c - linear systems on trees (tree_solve.c) on the CPU.
 *
 * Each head of each sequence has its own system. Node v with parent p(v) has the equation
 *   x_v + b_v x_p(v) + sum over children j of c_j x_j = s_v
 *
 *   s_v       right-hand side: the input u_v
 *   b_v, c_v  couplings of v and its parent, from the inputs theta
 *   x_v       solution
 *   a_v       pivot: coefficient of x_v after the children are eliminated, a_v = 1 - sum_j c_j b_j / a_j
 *   z_v       right-hand side after this elimination, divided by a_v
 *   M, H, I   factors: M_v = c_v, H_v = b_v / a_v, I_v = 1 / a_v
 *
 * The code computes the factors of all nodes. Then it solves the system in two passes:
 *   up, from the leaves to the root     z_v = I_v (s_v - sum_j M_j z_j)
 *   down, from the root to the leaves   x_root = z_root,   x_v = z_v - H_v x_p(v)
 *
 * Backward solves the adjoint system by the same two passes. The solution is lambda, and s is the gradient of x. The
 * factors are M = conj(b), H = conj(c) / conj(a), I = 1 / conj(a).
 *
 * A row of real or imaginary parts has one number per head. Vector lanes compute many heads at once. A leaf has I = 1
 * and z = s, so the passes read s there.
 *
 * If all nodes of a level have the same couplings, nodes with all children have the same factors. Only the last node
 * before the padding may have fewer children. So the code stores two rows of factors per level; these rows stay in L1.
 *
 * The work is cut into parts. A strip is a range of heads, a group is a range of sequences, and a part is one strip of
 * one group. Each part sums its gradients of shared couplings; reduce_row adds the sums of all groups in order. */
#include <string.h>

#include "core/real_math.h"
#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/tree/tree_walk.h"

/* Heads per strip: a multiple of TREE_VECTOR, from TREE_WIDTH_MIN to TREE_WIDTH_MAX. The last strip may be narrower. */
#define TREE_VECTOR    16
#define TREE_WIDTH_MIN 32 /* because 16 heads take as long as 32 */
#define TREE_WIDTH_MAX 1024
/* Limit for the solution of one sequence in one strip. Below this limit the solution stays in L2 between the passes. */
#define TREE_STRIP_BYTES (1 << 20)

static const real zeros[TREE_WIDTH_MAX];

/* The cut of a call into parts. Each part has its own scratch memory, in rows of `width` reals. */
struct cut {
    int64_t groups, strips, width; /* width: heads per strip */
    int64_t factors;               /* number of nodes, or of kinds of nodes, with their own factors */
    int64_t tables;                /* number of rows of theta whose gradients a part sums */
};

/* One part. Its strip has the heads from k to k + width - 1. */
struct part {
    const struct call *c;
    struct tree tree;
    enum tree_sharing sharing;
    bool free, adjoint;                           /* free: c is an input, else c = +-conj(b); adjoint: backward */
    int64_t T, P, k, width, pitch;                /* T nodes, P heads; pitch: reals between rows of scratch */
    int64_t leaves;                               /* leaves of the current sequence, without padding */
    real *factor, *lambda_re, *lambda_im, *table; /* rows of scratch; table: sums of gradients of couplings */
};

/* An array of rows for the real parts, and an array of rows for the imaginary parts. */
struct planes {
    real *re, *im;
    int64_t stride;
};

struct const_planes {
    const real *re, *im;
    int64_t stride, im_stride; /* im_stride 0: `im` is one row, which stands for all rows */
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
    int64_t most = TREE_STRIP_BYTES / (2 * T * (int64_t)sizeof(real)); /* heads whose solutions fit */
    most = most < 4 * TREE_VECTOR ? 4 * TREE_VECTOR : most > TREE_WIDTH_MAX ? TREE_WIDTH_MAX : most;
    int64_t share = (P + parts - 1) / parts, least = P < TREE_WIDTH_MIN ? P : TREE_WIDTH_MIN;
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

/* Returns the six rows of factors of node i of level v: real and imaginary parts of M, H and I. */
static real *factor_of(const struct part *t, struct tree_level v, int64_t i) {
    int64_t row = by_level(t->sharing) ? 2 * v.l + (i == v.real - 1) : v.offset + i;
    return t->factor + row * FACTOR_PLANES * t->pitch;
}

/* Subtracts M H of one child from the pivot of the parent. The rows I of the parent hold the pivot until invert_pivot
 * replaces it. */
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

/* Computes one row of couplings (b or c) from theta. The bound is b = beta theta / sqrt(1 + |theta|^2), so |b| < beta.
 * If beta is 0, there is no bound: b = theta. */
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

/* Returns the offset of theta of node i of level v, sequence b, in the input. */
static int64_t table_at(const struct part *t, int64_t b, struct tree_level v, int64_t i) {
    return ((t->sharing == OWN_OF_SAMPLE ? b * t->T : 0) + tree_row(t->sharing, v, i)) * t->P + t->k;
}

/* Computes M and H of node i of level v. The rows of I must be ready. The rows of H and M hold b and c in between. */
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

/* Computes M, H and I of node i of level v in the rows f. The children are in the level `below`. Node -1 stands for all
 * nodes of the level that have all children. */
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

/* Computes the factors of all nodes of sequence b. In a level with shared couplings there are two kinds of nodes: nodes
 * with all children (node -1), and the last node before the padding. */
static void factor_tree(const struct part *t, int64_t b) {
    struct tree_level below = {0}, v = tree_bottom(&t->tree, t->leaves);
    if (t->leaves < 1) return;
    for (int64_t l = 0; l < t->tree.levels; l++, below = v, v = tree_above(&t->tree, t->leaves, v)) {
        if (by_level(t->sharing)) factor_node(t, b, below, v, -1, l ? t->tree.arity : 0, factor_of(t, v, -1));
        for (int64_t i = by_level(t->sharing) && v.real ? v.real - 1 : 0; i < v.real; i++)
            factor_node(t, b, below, v, i, l ? tree_children(&t->tree, below, i) : 0, factor_of(t, v, i));
    }
}

/* Sets the tree of sequence b, and computes the factors. If all sequences have the same couplings and the same tree,
 * only the first sequence of the part computes the factors. */
static void prepare(struct part *t, int64_t b, bool first) {
    t->tree = tree_of_sequence(t->c, b);
    t->leaves = t->tree.leaves;
    if (first || t->sharing == OWN_OF_SAMPLE || t->c->in[TREE_LEAVES]) factor_tree(t, b);
}

/* --- up -------------------------------------------------------------------------------------------------------- */

/* One or two children of a node. */
struct messages {
    const real *f0, *f1;               /* factors of child 0 and child 1 */
    const real *re0, *im0, *re1, *im1; /* z of child 0 and child 1 */
};

/* Computes z = s - M0 z0, and for two children z = s - M0 z0 - M1 z1. `last`: the node has no more children, so z is
 * multiplied by I. complex_pivot: I has an imaginary part. */
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

/* Computes z of node i of level v. `from` has z of the level `below`; s_re and s_im are the node's right-hand side. */
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

/* Computes z of all nodes except the leaves. s: the right-hand sides. */
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

/* Computes x = z - H p, where p is x of the parent. */
static void down_row(int64_t width, const real *h_re, const real *h_im, const real *p_re, const real *p_im,
                     const real *z_re, const real *z_im, real *x_re, real *x_im) {
#pragma omp simd
    for (int64_t k = 0; k < width; k++) {
        real re = p_re[k], im = p_im[k];
        x_re[k] = real_fma(-h_re[k], re, real_fma(h_im[k], im, z_re[k]));
        x_im[k] = real_fma(-h_re[k], im, real_fma(-h_im[k], re, z_im[k]));
    }
}

/* Sets x to 0 at the padding of level v. */
static void clear_padding(const struct part *t, struct tree_level v, struct planes x) {
    for (int64_t i = v.offset + v.real; i < v.offset + v.count; i++) {
        memset(x.re + i * x.stride, 0, (size_t)t->width * sizeof(real));
        memset(x.im + i * x.stride, 0, (size_t)t->width * sizeof(real));
    }
}

/* Sets x to 0 in rows without a node. Only chains (arity 1) leave such rows: a short sequence has a shorter chain. */
static void clear_rest(const struct part *t, struct planes x) {
    for (int64_t i = tree_nodes(&t->tree); i < t->T; i++) {
        memset(x.re + i * x.stride, 0, (size_t)t->width * sizeof(real));
        memset(x.im + i * x.stride, 0, (size_t)t->width * sizeof(real));
    }
}

/* Replaces z by x in the array x. On entry the rows of leaves hold nothing; a leaf has z = s. */
static void down(const struct part *t, struct const_planes s, struct planes x) {
    struct tree_level above = tree_root(&t->tree, t->leaves);
    clear_rest(t, x);
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

/* Sets x = s in a tree with one node. There up and down do nothing. */
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

/* Rows of node v and its parent p: x_v (x), x_p (xp), lambda_v (l), lambda_p (lp), and the gradients of b_v and c_v. */
struct edge {
    const real *x_re, *x_im, *xp_re, *xp_im, *l_re, *l_im, *lp_re, *lp_im;
    real *db_re, *db_im, *dc_re, *dc_im;
};

/* Adds g_b = -lambda_v conj(x_p) to db, and g_c = -lambda_p conj(x_v) to dc. If c is `tied` to b (c = sign conj(b)), c
 * is no input, so g_b + sign conj(g_c) is added to db. */
LRNN_INLINE void couple_gradient(bool tied, real sign, int64_t width, struct edge p) {
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

/* Computes the gradient of theta from db (the gradient of b, or of c) and the derivative of the bound (tree_solve.c).
 * Input `plane` has the real parts of theta, input plane + 1 the imaginary parts. The result goes to offset `at` of
 * their gradients. */
static void unbound_plane(const struct call *c, int plane, int64_t at, int64_t width, const real *db_re,
                          const real *db_im) {
    const real *re = tensor_real(c->in[plane]) + at, *im = tensor_real(c->in[plane + 1]) + at;
    real *d_re = c->din[plane] ? c->din[plane] + at : NULL, *d_im = c->din[plane + 1] ? c->din[plane + 1] + at : NULL;
    bool add_re = call_accumulates(c, plane), add_im = call_accumulates(c, plane + 1);
    real beta = (real)tree_solve_attr(c)->beta;
    bool bounded = beta > 0;
    real out_re[TREE_WIDTH_MAX], out_im[TREE_WIDTH_MAX];
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

/* Computes the gradients of theta at offset `at`. The four rows d are the real and imaginary parts of db, then of dc.
 * Only the free form has an input for c. */
static void unbound_row(const struct call *c, int64_t at, int64_t width, int64_t pitch, const real *d) {
    unbound_plane(c, TREE_UP_RE, at, width, d, d + pitch);
    if (tree_solve_attr(c)->form == TREE_FREE) unbound_plane(c, TREE_DOWN_RE, at, width, d + 2 * pitch, d + 3 * pitch);
}

/* Sets n rows to 0. */
static void clear_rows(const struct part *t, int64_t n, real *rows) {
    for (int64_t i = 0; i < n; i++) memset(rows + i * t->pitch, 0, (size_t)t->width * sizeof *rows);
}

/* Adds the gradients of the couplings of node i of level v. p has x and lambda. */
static void couple_node(const struct part *t, int64_t b, struct tree_level v, int64_t i, struct edge p) {
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
    clear_rest(t, lambda);
    clear_padding(t, above, lambda);
    for (int64_t l = t->tree.levels - 2; l >= 0; l--) {
        struct tree_level v = tree_below(&t->tree, t->leaves, above);
        struct const_planes z = {lambda.re, lambda.im, lambda.stride, lambda.stride};
        if (l == 0) z = s;
        for (int64_t i = 0; i < v.real; i++) {
            const real *f = factor_of(t, v, i);
            int64_t node = v.offset + i, parent = above.offset + i / t->tree.arity;
            struct edge p = {.x_re = x.re + node * x.stride,
                             .x_im = x.im + node * x.stride,
                             .xp_re = x.re + parent * x.stride,
                             .xp_im = x.im + parent * x.stride,
                             .lp_re = lambda.re + parent * lambda.stride,
                             .lp_im = lambda.im + parent * lambda.stride};
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

/* Sets the gradients of theta of one node of sequence b to 0. Theta must have a row per node and sequence. */
static void clear_row(const struct part *t, int64_t b, int64_t node) {
    int64_t at = (b * t->T + node) * t->P + t->k;
    for (int plane = TREE_UP_RE; plane <= TREE_DOWN_IM; plane++)
        if (t->c->din[plane] && !call_accumulates(t->c, plane))
            memset(t->c->din[plane] + at, 0, (size_t)t->width * sizeof(real));
}

/* Sets the gradients of unused rows of theta to 0, if theta has a row per node and sequence. The root, padding and rows
 * without a node (clear_rest) use no theta. */
static void clear_unused_rows(const struct part *t, int64_t b) {
    if (t->sharing != OWN_OF_SAMPLE) return;
    struct tree_level v = tree_bottom(&t->tree, t->leaves);
    for (int64_t l = 0; l < t->tree.levels; l++, v = tree_above(&t->tree, t->leaves, v))
        for (int64_t i = l == t->tree.levels - 1 ? 0 : v.real; i < v.count; i++) clear_row(t, b, v.offset + i);
    for (int64_t node = tree_nodes(&t->tree); node < t->T; node++) clear_row(t, b, node);
}

/* Writes lambda to du, or adds lambda to du. Needed if lambda was not computed in place. */
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

/* Computes the gradient of one shared row of theta in one strip, from the sums of all groups. */
static void reduce_row(const struct call *c, struct cut cut, int64_t strip, int64_t row) {
    real sum[4 * TREE_WIDTH_MAX];
    struct part t = tree_part(c, cut, PASS_BACKWARD, strip);
    for (int plane = 0; plane < 4; plane++) memset(sum + plane * TREE_WIDTH_MAX, 0, (size_t)t.width * sizeof *sum);
    for (int64_t group = 0; group < cut.groups; group++) {
        const real *table = tree_part(c, cut, PASS_BACKWARD, group * cut.strips + strip).table;
        for (int plane = 0; plane < 4; plane++) {
            const real *d = table + (4 * row + plane) * t.pitch;
            real *to = sum + plane * TREE_WIDTH_MAX;
#pragma omp simd
            for (int64_t k = 0; k < t.width; k++) to[k] += d[k];
        }
    }
    unbound_row(c, row * t.P + t.k, t.width, TREE_WIDTH_MAX, sum);
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

/* Tolerance: the reference computes in double. This kernel rounds at each of the 2 * levels steps. Pivots of bounded
 * systems are above 1/2, so errors do not grow. The gradient of a shared coupling is a sum of B * nodes terms, whose
 * error grows like sqrt(B * nodes). */
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
