/* tree_solve_block_cpu.c - linear systems on trees in blocks of d on the CPU: nodes one after the other, heads in lanes.
 *
 * As tree_solve_cpu.c with d x d matrices in place of scalars: a task is a group of sequences times a strip of heads; it
 * makes M = C, H = A^-1 B and I = A^-1 for each row of couplings, of the adjoint system M = B^H, H = A^-H C^H, and then
 *   up: z_v = I_v (u_v - sum_c M_c z_c)      down: x_v = z_v - H_v x_p(v)
 * Where a level shares its couplings its nodes share these, but for the last real one, which may have fewer children.
 * A is inverted by Gauss-Jordan; each lane pivots by itself, exchanging rows where a larger element is met. Gradients of
 * shared couplings are summed in each task, then over tasks in order. */
#include <string.h>

#include "kernels/lib/parallel.h"
#include "kernels/tree/tree.h"
#include "kernels/tree/tree_lanes.h"

#define BLOCK_VECTOR      16        /* strips are multiples of this many heads, but for the last */
#define BLOCK_STRIP_BYTES (1 << 20) /* of solution a strip, so that the way down finds it in L2 */

/* How a call is cut into tasks, and the parts of a task's scratch, in rows of `width` reals. */
struct cut {
    int64_t groups, strips, width;
    int64_t factors; /* rows of M, H, I */
    int64_t tables;  /* shared rows of couplings whose gradients are summed */
    int64_t rows;    /* of scratch a task */
};

/* One task: group of sequences, heads k .. k + width. */
struct task {
    const struct call *c;
    struct tree tree;
    enum tree_sharing sharing;
    bool free, adjoint;
    real sign; /* C = sign B^H */
    int64_t d, T, P, k, width, pitch;
    int64_t leaves;    /* of the sequence at hand */
    real *factor;      /* M, H, I of each row: re and im of d*d elements each */
    struct lanes A, t; /* a matrix and a vector to work on */
    real *lambda, *table;
};

static const struct tree_solve_attr *attr_of(const struct call *c) {
    return c->attr;
}

static enum tree_sharing sharing_of(const struct call *c) {
    return c->in[TREE_UP_RE] ? tree_sharing(&attr_of(c)->tree, c->in[TREE_UP_RE]) : SHARED_BY_ALL;
}

static bool by_level(enum tree_sharing sharing) {
    return sharing == SHARED_BY_ALL || sharing == SHARED_BY_LEVEL;
}

/* --- cutting --------------------------------------------------------------------------------------------------- */

static struct cut cut_of(const struct call *c, enum pass pass) {
    int64_t B = c->out[0]->dims[0], T = c->out[0]->dims[1], d = attr_of(c)->block, P = c->out[0]->dims[2] / d;
    enum tree_sharing sharing = sharing_of(c);
    struct cut cut = {.groups = B < TREE_GROUPS ? B : TREE_GROUPS};
    int64_t parts = (TREE_GROUPS + cut.groups - 1) / cut.groups;
    int64_t most = BLOCK_STRIP_BYTES / (2 * T * d * (int64_t)sizeof(real));
    most = most < 2 * BLOCK_VECTOR ? 2 * BLOCK_VECTOR : most > LANES_MAX ? LANES_MAX : most;
    cut.width = (P + parts - 1) / parts < most ? (P + parts - 1) / parts : most;
    cut.width = (cut.width + BLOCK_VECTOR - 1) / BLOCK_VECTOR * BLOCK_VECTOR;
    cut.strips = (P + cut.width - 1) / cut.width;
    cut.factors = by_level(sharing) ? 2 * attr_of(c)->tree.levels : T;
    cut.tables = !c->in[TREE_UP_RE] ? 0 : sharing == OWN_OF_SAMPLE ? 1 : c->in[TREE_UP_RE]->dims[0];
    cut.rows = 6 * d * d * cut.factors + 2 * d * d + 2 * d;
    if (pass == PASS_BACKWARD) cut.rows += 2 * T * d + 4 * d * d * cut.tables;
    return cut;
}

static size_t tree_solve_block_cpu_workspace(const struct call *c, enum pass pass) {
    struct cut cut = cut_of(c, pass);
    return (size_t)(cut.groups * cut.strips * cut.rows * cut.width) * sizeof(real);
}

static struct task task_at(const struct call *c, struct cut cut, enum pass pass, int64_t index) {
    struct task t = {.c = c,
                     .tree = attr_of(c)->tree,
                     .sharing = sharing_of(c),
                     .adjoint = pass == PASS_BACKWARD,
                     .free = attr_of(c)->form == TREE_FREE,
                     .sign = attr_of(c)->form == TREE_SKEW ? -1 : 1,
                     .d = attr_of(c)->block,
                     .T = c->out[0]->dims[1]};
    int64_t d = t.d, n = cut.width;
    t.P = c->out[0]->dims[2] / d;
    t.k = index % cut.strips * n;
    t.width = t.P - t.k < n ? t.P - t.k : n;
    t.pitch = n;
    t.factor = (real *)c->scratch[pass] + index * cut.rows * n;
    real *rest = t.factor + 6 * d * d * cut.factors * n;
    t.A = (struct lanes){rest, rest + d * d * n, n};
    t.t = (struct lanes){rest + 2 * d * d * n, rest + (2 * d * d + d) * n, n};
    t.lambda = rest + (2 * d * d + 2 * d) * n;
    t.table = t.lambda + 2 * t.T * d * n;
    return t;
}

/* --- M, H, I --------------------------------------------------------------------------------------------------- */

enum { M, H, INVERSE };

/* One of the three matrices that node i of level v uses. */
static struct lanes factor_of(const struct task *t, struct tree_level v, int64_t i, int which) {
    int64_t row = by_level(t->sharing) ? 2 * v.l + (i == v.real - 1) : v.offset + i, n = t->d * t->d * t->pitch;
    real *at = t->factor + (3 * row + which) * 2 * n;
    return (struct lanes){at, at + n, t->pitch};
}

static int64_t table_at(const struct task *t, int64_t b, struct tree_level v, int64_t i) {
    int64_t row = (t->sharing == OWN_OF_SAMPLE ? b * t->T : 0) + tree_row(t->sharing, v, i);
    return row * t->d * t->d * t->P + t->k;
}

/* Theta of one row of a table, element `at` of its planes on. */
static struct const_lanes theta_of(const struct task *t, int plane, int64_t at) {
    return (struct const_lanes){tensor_real(t->c->in[plane]) + at, tensor_real(t->c->in[plane + 1]) + at, t->P, t->P};
}

/* s = (1 + |Theta|_F^2)^-1/2 of each lane. */
static void bound_scale(int64_t d, int64_t width, struct const_lanes theta, real *s) {
    for (int64_t k = 0; k < width; k++) s[k] = 1;
    for (int64_t e = 0; e < d * d; e++) {
        const real *re = theta.re + e * theta.step, *im = theta.im + e * theta.im_step;
#pragma omp simd
        for (int64_t k = 0; k < width; k++) s[k] = real_fma(re[k], re[k], real_fma(im[k], im[k], s[k]));
    }
#pragma omp simd
    for (int64_t k = 0; k < width; k++) s[k] = 1 / real_sqrt(s[k]);
}

/* The bounded matrix, or sign times its conjugate transpose, of a row of a table. */
static void bound(const struct task *t, struct const_lanes theta, bool adjoin, real sign, struct lanes to) {
    real beta = (real)attr_of(t->c)->beta, s[LANES_MAX];
    bool bounded = beta > 0;
    if (bounded) bound_scale(t->d, t->width, theta, s);
    for (int64_t e = 0; e < t->d * t->d; e++) {
        const real *re = theta.re + e * theta.step, *im = theta.im + e * theta.im_step;
        struct lanes x = from(to, adjoin ? e % t->d * t->d + e / t->d : e);
#pragma omp simd
        for (int64_t k = 0; k < t->width; k++) {
            real scale = bounded ? beta * s[k] : 1;
            x.re[k] = sign * (scale * re[k]);
            x.im[k] = (adjoin ? -sign : sign) * (scale * im[k]);
        }
    }
}

/* M and H of the couplings between node i of level v and its parent, I being done. Of the adjoint system C^H = sign B and
 * B^H are what B and C = sign B^H are of this one. */
static void couple(const struct task *t, int64_t b, struct tree_level v, int64_t i, int64_t row) {
    int64_t at = table_at(t, b, v, i), d = t->d;
    struct lanes m = factor_of(t, v, row, M), h = factor_of(t, v, row, H), inverse = factor_of(t, v, row, INVERSE);
    struct const_lanes up = theta_of(t, TREE_UP_RE, at);
    if (t->free) {
        struct const_lanes down = theta_of(t, TREE_DOWN_RE, at);
        bound(t, t->adjoint ? down : up, t->adjoint, 1, t->A);
        bound(t, t->adjoint ? up : down, t->adjoint, 1, m);
    } else {
        bound(t, up, false, t->adjoint ? t->sign : 1, t->A);
        bound(t, up, true, t->adjoint ? 1 : t->sign, m);
    }
    for (int64_t j = 0; j < d; j++) multiply(d, t->width, inverse, in(column(t->A, d, j)), NULL, column(h, d, j));
}

/* `row`: which factors node i gets; -1 the inner nodes' of a level that shares its couplings. */
static void factor_node(const struct task *t, int64_t b, struct tree_level below, struct tree_level v, int64_t row,
                        int64_t children) {
    bool inner = row < 0;
    struct lanes inverse = factor_of(t, v, row, INVERSE);
    int64_t d = t->d;
    set_identity(d, t->width, children ? t->A : inverse);
    for (int64_t j = 0; j < children; j++) {
        int64_t child = inner ? -1 : row * t->tree.arity + j;
        for (int64_t e = 0; e < d; e++) {
            struct lanes to = column(t->A, d, e);
            struct const_lanes sum = in(to);
            multiply(d, t->width, factor_of(t, below, child, M), in(column(factor_of(t, below, child, H), d, e)), &sum,
                     to);
        }
    }
    if (children) invert(d, t->width, t->A, inverse);
    if (v.l < t->tree.levels - 1) couple(t, b, v, inner ? 0 : row, row);
}

/* All rows of M, H, I for sequence b. Where levels share them: one for inner nodes, all of whose children are inner, and
 * one for the last real node. */
static void factor_tree(const struct task *t, int64_t b) {
    struct tree_level below = {0}, v = tree_bottom(&t->tree, t->leaves);
    if (t->leaves < 1) return;
    for (int64_t l = 0; l < t->tree.levels; l++, below = v, v = tree_above(&t->tree, t->leaves, v)) {
        if (by_level(t->sharing)) factor_node(t, b, below, v, -1, l ? t->tree.arity : 0);
        for (int64_t i = by_level(t->sharing) ? v.real - 1 : 0; i < v.real; i++)
            factor_node(t, b, below, v, i, l ? tree_children(&t->tree, below, i) : 0);
    }
}

/* Couplings that sequences share are factored once a task, unless their trees differ. */
static void prepare(struct task *t, int64_t b, bool first) {
    t->leaves = tree_leaves(t->c, b);
    if (first || t->sharing == OWN_OF_SAMPLE || t->c->in[TREE_LEAVES]) factor_tree(t, b);
}

/* --- up and down ----------------------------------------------------------------------------------------------- */

/* Vectors of all nodes: node v from element v*d on. */
static struct const_lanes node_in(const struct task *t, struct const_lanes s, int64_t v) {
    return (struct const_lanes){s.re + v * t->d * s.step, s.im + v * t->d * s.im_step, s.step, s.im_step};
}

static struct lanes node_of(const struct task *t, struct lanes x, int64_t v) {
    return from(x, v * t->d);
}

/* z of all nodes but the leaves, whose z is s. */
static void up(const struct task *t, struct const_lanes s, struct lanes z) {
    struct const_lanes children = s;
    struct tree_level below = tree_bottom(&t->tree, t->leaves);
    for (int64_t l = 1; l < t->tree.levels; l++, children = in(z)) {
        struct tree_level v = tree_above(&t->tree, t->leaves, below);
        for (int64_t i = 0; i < v.real; i++) {
            struct const_lanes sum = node_in(t, s, v.offset + i);
            for (int64_t j = 0; j < tree_children(&t->tree, below, i); j++) {
                int64_t child = i * t->tree.arity + j;
                multiply(t->d, t->width, factor_of(t, below, child, M), node_in(t, children, below.offset + child),
                         &sum, t->t);
                sum = in(t->t);
            }
            multiply(t->d, t->width, factor_of(t, v, i, INVERSE), sum, NULL, node_of(t, z, v.offset + i));
        }
        below = v;
    }
}

static void clear_padding(const struct task *t, struct tree_level v, struct lanes x) {
    for (int64_t e = (v.offset + v.real) * t->d; e < (v.offset + v.count) * t->d; e++) {
        memset(x.re + e * x.step, 0, (size_t)t->width * sizeof(real));
        memset(x.im + e * x.step, 0, (size_t)t->width * sizeof(real));
    }
}

/* Node i of level v on the way down; x of its parent is done. */
static void down_node(const struct task *t, struct const_lanes s, struct lanes x, struct tree_level above,
                      struct tree_level v, int64_t i) {
    struct lanes to = node_of(t, x, v.offset + i);
    struct const_lanes z = v.l ? in(to) : node_in(t, s, v.offset + i);
    struct const_lanes parent = in(node_of(t, x, above.offset + i / t->tree.arity));
    multiply(t->d, t->width, factor_of(t, v, i, H), parent, &z, to);
}

/* x of all nodes; x holds z but for the leaves, whose z is s. */
static void down(const struct task *t, struct const_lanes s, struct lanes x) {
    struct tree_level above = tree_root(&t->tree, t->leaves);
    clear_padding(t, above, x);
    for (int64_t l = t->tree.levels - 2; l >= 0; l--) {
        struct tree_level v = tree_below(&t->tree, t->leaves, above);
        for (int64_t i = 0; i < v.real; i++) down_node(t, s, x, above, v, i);
        clear_padding(t, v, x);
        above = v;
    }
}

/* A tree of one node: x = u. */
static void copy_root(const struct task *t, struct const_lanes s, struct lanes x) {
    if (t->tree.levels > 1 || t->leaves < 1) return;
    for (int64_t i = 0; i < t->d; i++) {
        memcpy(x.re + i * x.step, s.re + i * s.step, (size_t)t->width * sizeof(real));
        memcpy(x.im + i * x.step, s.im + i * s.im_step, (size_t)t->width * sizeof(real));
    }
}

/* --- forward --------------------------------------------------------------------------------------------------- */

static void forward_task(const struct call *c, struct cut cut, int64_t index) {
    struct task t = task_at(c, cut, PASS_FORWARD, index);
    struct range group = part_at(c->out[0]->dims[0], cut.groups, index / cut.strips);
    for (int64_t b = group.begin; b < group.end; b++) {
        int64_t first = b * t.T * t.d * t.P + t.k;
        struct const_lanes u = {tensor_real(c->in[TREE_U_RE]) + first, tensor_real(c->in[TREE_U_IM]) + first, t.P, t.P};
        struct lanes x = {tensor_real(c->out[0]) + first, tensor_real(c->out[1]) + first, t.P};
        prepare(&t, b, b == group.begin);
        copy_root(&t, u, x);
        up(&t, u, x);
        down(&t, u, x);
    }
}

static void tree_solve_block_cpu_forward(const struct call *c, const struct exec *e) {
    (void)e;
    struct cut cut = cut_of(c, PASS_FORWARD);
#pragma omp parallel for schedule(static) if (tensor_count(c->out[0]) > PARALLEL_MIN)
    for (int64_t i = 0; i < cut.groups * cut.strips; i++) forward_task(c, cut, i);
}

/* --- backward -------------------------------------------------------------------------------------------------- */

/* Writes or adds dTheta of one row of a table from dB (B4). */
static void unbound_plane(const struct task *t, int plane, int64_t at, struct lanes dB) {
    const struct call *c = t->c;
    real beta = (real)attr_of(c)->beta, s[LANES_MAX], along[LANES_MAX];
    bool bounded = beta > 0, add_re = call_accumulates(c, plane), add_im = call_accumulates(c, plane + 1);
    struct const_lanes theta = theta_of(t, plane, at);
    int64_t n = t->d * t->d;
    memset(along, 0, sizeof along);
    if (bounded) bound_scale(t->d, t->width, theta, s);
    for (int64_t e = 0; bounded && e < n; e++) {
        const real *re = theta.re + e * t->P, *im = theta.im + e * t->P;
        struct lanes d = from(dB, e);
#pragma omp simd
        for (int64_t k = 0; k < t->width; k++)
            along[k] = real_fma(s[k] * re[k], s[k] * d.re[k], real_fma(s[k] * im[k], s[k] * d.im[k], along[k]));
    }
    for (int64_t e = 0; e < n; e++) {
        const real *re = theta.re + e * t->P, *im = theta.im + e * t->P;
        struct lanes d = from(dB, e);
        for (int64_t k = 0; k < t->width; k++) {
            int64_t to = at + e * t->P + k;
            real scale = bounded ? beta * s[k] : 1;
            if (c->din[plane]) put(c->din[plane] + to, add_re, scale * real_fma(-re[k], along[k], d.re[k]));
            if (c->din[plane + 1]) put(c->din[plane + 1] + to, add_im, scale * real_fma(-im[k], along[k], d.im[k]));
        }
    }
}

/* dB and dC of a row of sums. */
static struct lanes sums_of(const struct task *t, int64_t row, int which) {
    int64_t n = t->d * t->d * t->pitch;
    real *at = t->table + (2 * row + which) * 2 * n;
    return (struct lanes){at, at + n, t->pitch};
}

static void unbound_row(const struct task *t, int64_t at, int64_t row) {
    unbound_plane(t, TREE_UP_RE, at, sums_of(t, row, 0));
    if (t->free) unbound_plane(t, TREE_DOWN_RE, at, sums_of(t, row, 1));
}

/* Gradients of the couplings between node i of level v and its parent; lambda of both is done. */
static void couple_node(const struct task *t, int64_t b, struct tree_level above, struct tree_level v, int64_t i,
                        struct const_lanes x, struct lanes lambda) {
    bool sample = t->sharing == OWN_OF_SAMPLE;
    int64_t row = sample ? 0 : tree_row(t->sharing, v, i), d = t->d;
    int64_t node = v.offset + i, parent = above.offset + i / t->tree.arity;
    struct const_lanes x_v = node_in(t, x, node), x_p = node_in(t, x, parent);
    struct const_lanes l_v = in(node_of(t, lambda, node)), l_p = in(node_of(t, lambda, parent));
    if (sample) memset(t->table, 0, (size_t)(4 * d * d * t->pitch) * sizeof(real));
    subtract_outer(d, t->width, 1, l_v, x_p, sums_of(t, row, 0));
    if (t->free)
        subtract_outer(d, t->width, 1, l_p, x_v, sums_of(t, row, 1));
    else
        subtract_outer(d, t->width, t->sign, x_v, l_p, sums_of(t, row, 0));
    if (sample) unbound_row(t, table_at(t, b, v, i), 0);
}

/* As `down`, for lambda, with the gradients of the couplings on the way. */
static void down_backward(const struct task *t, int64_t b, struct const_lanes g, struct lanes lambda,
                          struct const_lanes x) {
    struct tree_level above = tree_root(&t->tree, t->leaves);
    clear_padding(t, above, lambda);
    for (int64_t l = t->tree.levels - 2; l >= 0; l--) {
        struct tree_level v = tree_below(&t->tree, t->leaves, above);
        for (int64_t i = 0; i < v.real; i++) {
            down_node(t, g, lambda, above, v, i);
            couple_node(t, b, above, v, i, x, lambda);
        }
        clear_padding(t, v, lambda);
        above = v;
    }
}

/* Rows of a table of each sequence's own that belong to no real child: the root's and padding's. */
static void clear_unused_rows(const struct task *t, int64_t b) {
    if (t->sharing != OWN_OF_SAMPLE) return;
    struct tree_level v = tree_bottom(&t->tree, t->leaves);
    for (int64_t l = 0; l < t->tree.levels; l++, v = tree_above(&t->tree, t->leaves, v))
        for (int64_t i = l == t->tree.levels - 1 ? 0 : v.real; i < v.count; i++)
            for (int plane = TREE_UP_RE; plane <= TREE_DOWN_IM; plane++)
                for (int64_t e = 0; e < t->d * t->d; e++)
                    if (t->c->din[plane] && !call_accumulates(t->c, plane))
                        memset(t->c->din[plane] + table_at(t, b, v, i) + e * t->P, 0, (size_t)t->width * sizeof(real));
}

/* du from lambda where lambda does not lie there already. */
static void put_lambda(const struct task *t, int plane, int64_t first, const real *lambda) {
    real *du = t->c->din[plane];
    bool add_du = call_accumulates(t->c, plane);
    for (int64_t i = 0; du && i < t->T * t->d; i++)
        for (int64_t k = 0; k < t->width; k++) put(du + first + i * t->P + k, add_du, lambda[i * t->pitch + k]);
}

static void backward_task(const struct call *c, struct cut cut, int64_t index) {
    struct task t = task_at(c, cut, PASS_BACKWARD, index);
    struct range group = part_at(c->out[0]->dims[0], cut.groups, index / cut.strips);
    bool in_place =
        c->din[TREE_U_RE] && c->din[TREE_U_IM] && !call_accumulates(c, TREE_U_RE) && !call_accumulates(c, TREE_U_IM);
    memset(t.table, 0, (size_t)(4 * t.d * t.d * cut.tables * t.pitch) * sizeof(real));
    for (int64_t b = group.begin; b < group.end; b++) {
        int64_t first = b * t.T * t.d * t.P + t.k;
        struct const_lanes x = {tensor_real(c->out[0]) + first, tensor_real(c->out[1]) + first, t.P, t.P};
        struct const_lanes g = {call_dout(c, 0) + first, lanes_zeros, t.P, 0};
        if (call_dout(c, 1)) g = (struct const_lanes){g.re, call_dout(c, 1) + first, t.P, t.P};
        struct lanes lambda = {t.lambda, t.lambda + t.T * t.d * t.pitch, t.pitch};
        if (in_place) lambda = (struct lanes){c->din[TREE_U_RE] + first, c->din[TREE_U_IM] + first, t.P};
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

/* dTheta of one shared row and one strip of heads: the groups' sums in order, then through the bound. */
static void reduce_row(const struct call *c, struct cut cut, int64_t strip, int64_t row) {
    struct task t = task_at(c, cut, PASS_BACKWARD, strip);
    int64_t n = 4 * t.d * t.d * t.pitch;
    real *sum = t.table + row * n;
    for (int64_t group = 1; group < cut.groups; group++) {
        const real *d = task_at(c, cut, PASS_BACKWARD, group * cut.strips + strip).table + row * n;
#pragma omp simd
        for (int64_t k = 0; k < n; k++) sum[k] += d[k];
    }
    unbound_row(&t, row * t.d * t.d * t.P + t.k, row);
}

static void tree_solve_block_cpu_backward(const struct call *c, const struct exec *e) {
    (void)e;
    struct cut cut = cut_of(c, PASS_BACKWARD);
    bool wide = tensor_count(c->out[0]) > PARALLEL_MIN;
#pragma omp parallel for schedule(static) if (wide)
    for (int64_t i = 0; i < cut.groups * cut.strips; i++) backward_task(c, cut, i);
    if (sharing_of(c) == OWN_OF_SAMPLE) return;
#pragma omp parallel for schedule(static) if (wide)
    for (int64_t i = 0; i < cut.strips * cut.tables; i++) reduce_row(c, cut, i / cut.tables, i % cut.tables);
}

/* The reference works in double. Each of 2 * levels steps sums up to d * arity products here, and A^-1 is a matrix of
 * condition number below 3 where couplings are bounded; skew ones that are not have a larger one, whose inverse errs by
 * as much. */
const struct kernel kernel_tree_solve_block_cpu = {
    .name = "tree_solve_block_cpu",
    .op = &op_tree_solve_block,
    .device = DEVICE_CPU,
    .inexact = true,
    .tolerance = 256,
    .workspace = tree_solve_block_cpu_workspace,
    .forward = tree_solve_block_cpu_forward,
    .backward = tree_solve_block_cpu_backward,
};
