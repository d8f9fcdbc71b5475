/* tree_block_cuda.cu - linear systems of blocks on trees on CUDA. A thread block has a sequence and a strip of heads
 * and walks the levels; neighbouring threads have neighbouring heads, and the nodes of a level are distributed over the
 * strips of threads. A thread holds one block in an array of its own. Couplings are bounded before, one matrix per
 * thread, and their gradients pass through the bound after they have been summed (tree_sums.cuh). The equations are in
 * tree_block.c and tree_bound.h. Pivots, the pass up and the pass down have a kernel each, and inner loops are not
 * unrolled: in one kernel registers would be spilled. */
#include "kernels/lib/scratch.h"
#include "kernels/tree/tree_complex.cuh"
#include "kernels/tree/tree_sums.cuh"

namespace {

const int M = TREE_BLOCK_MAX;

__device__ __forceinline__ struct complex_real operator+(struct complex_real a, struct complex_real b) {
    struct complex_real y = {a.re + b.re, a.im + b.im};
    return y;
}

__device__ __forceinline__ struct complex_real scaled(real by, struct complex_real a) {
    struct complex_real y = {by * a.re, by * a.im};
    return y;
}

/* --- the bound ---------------------------------------------------------------------------------------------------- */

/* The m x m matrices of P heads in rows; matrix r * P + p is that of head p of row r. */
struct matrices {
    int64_t m, P;
    real beta; /* 0: no bound */

    __device__ int64_t at(int64_t matrix, int64_t i, int64_t j) const {
        struct quotient row = divide(matrix, P);
        return ((row.whole * m + i) * m + j) * P + row.rest;
    }
    /* Makes the columns of [Theta; I] orthonormal: q becomes B / beta, and `bottom` L^-H (tree_bound.c). */
    __device__ void orthonormalise(int64_t matrix, struct planes theta, struct complex_real *q,
                                   struct complex_real *bottom) const {
        for (int64_t j = 0; j < m; j++) {
            struct complex_real one = {1, 0}, none = {0, 0};
            real size = 0;
            for (int64_t i = 0; i < m; i++) q[i * m + j] = theta.at(at(matrix, i, j));
            for (int64_t i = 0; i <= j; i++) bottom[i * m + j] = i == j ? one : none;
            for (int64_t k = 0; k < j; k++) {
                struct complex_real along = none;
                for (int64_t i = 0; i < m; i++) along = along + conjugate(q[i * m + k]) * q[i * m + j];
                for (int64_t i = 0; i <= k; i++) along = along + conjugate(bottom[i * m + k]) * bottom[i * m + j];
                for (int64_t i = 0; i < m; i++) q[i * m + j] = q[i * m + j] - q[i * m + k] * along;
                for (int64_t i = 0; i <= k; i++) bottom[i * m + j] = bottom[i * m + j] - bottom[i * m + k] * along;
            }
            for (int64_t i = 0; i < m; i++) size += (q[i * m + j] * conjugate(q[i * m + j])).re;
            for (int64_t i = 0; i <= j; i++) size += (bottom[i * m + j] * conjugate(bottom[i * m + j])).re;
            size = 1 / (real)sqrt((double)size);
            for (int64_t i = 0; i < m; i++) q[i * m + j] = scaled(size, q[i * m + j]);
            for (int64_t i = 0; i <= j; i++) bottom[i * m + j] = scaled(size, bottom[i * m + j]);
        }
    }
};

/* Computes B of a matrix. */
struct bound_matrix {
    struct matrices s;
    struct planes theta;
    struct complex_real *b;
    __device__ void operator()(int64_t matrix) const {
        struct complex_real q[M * M], bottom[M * M];
        if (s.beta > 0) s.orthonormalise(matrix, theta, q, bottom);
        for (int64_t i = 0; i < s.m; i++)
            for (int64_t j = 0; j < s.m; j++) {
                int64_t e = s.at(matrix, i, j);
                b[e] = s.beta > 0 ? scaled(s.beta, q[i * s.m + j]) : theta.at(e);
            }
    }
};

/* Computes dTheta = beta (G - Q Y) L^-1 of a matrix, Q = B / beta. */
struct unbound_matrix {
    struct matrices s;
    struct planes theta;
    const struct complex_real *g;
    real *to_re, *to_im;
    bool add_re, add_im;

    __device__ void store(int64_t e, struct complex_real value) const {
        if (to_re) put(to_re + e, add_re, value.re);
        if (to_im) put(to_im + e, add_im, value.im);
    }
    __device__ void operator()(int64_t matrix) const {
        struct complex_real q[M * M], bottom[M * M], y[M * M], w[M];
        if (s.beta <= 0) {
            for (int64_t e = 0; e < s.m * s.m; e++) store(s.at(matrix, 0, e), g[s.at(matrix, 0, e)]);
            return;
        }
        s.orthonormalise(matrix, theta, q, bottom);
        for (int64_t i = 0; i < s.m; i++)
            for (int64_t j = 0; j <= i; j++) {
                struct complex_real sum = {0, 0};
                for (int64_t k = 0; k < s.m; k++) sum = sum + conjugate(g[s.at(matrix, k, i)]) * q[k * s.m + j];
                if (i == j) sum.im = 0;
                y[i * s.m + j] = sum;
                y[j * s.m + i] = conjugate(sum);
            }
        for (int64_t i = 0; i < s.m; i++) {
            for (int64_t j = 0; j < s.m; j++) {
                w[j] = g[s.at(matrix, i, j)];
                for (int64_t k = 0; k < s.m; k++) w[j] = w[j] - q[i * s.m + k] * y[k * s.m + j];
            }
            for (int64_t j = 0; j < s.m; j++) {
                struct complex_real sum = {0, 0};
                for (int64_t k = j; k < s.m; k++) sum = sum + w[k] * conjugate(bottom[j * s.m + k]);
                store(s.at(matrix, i, j), scaled(s.beta, sum));
            }
        }
    }
};

/* --- solving ------------------------------------------------------------------------------------------------------ */

/* The systems of a call, or their adjoint. b, down: couplings after the bound. */
struct block_systems {
    struct tree tree;
    enum tree_form form;
    enum tree_sharing sharing;
    bool adjoint;
    struct tree_block_sizes n;
    const struct complex_real *b, *down;
    const int32_t *leaves; /* or NULL */

    __device__ struct tree tree_of(int64_t sequence) const {
        return tree_with_leaves(tree, leaves ? leaves[sequence] : tree.leaves);
    }
    /* First element of the couplings of node i of level v. */
    __device__ int64_t table_at(int64_t sequence, struct tree_level v, int64_t i, int64_t head) const {
        int64_t row = tree_row(sharing, v, i) + (sharing == OWN_OF_SAMPLE ? sequence * n.T : 0);
        return row * n.m * n.m * n.P + head;
    }
    /* Element (i,j) of B (up) or C. In the adjoint system B is C^H and C is B^H. */
    __device__ struct complex_real coupling(bool up, int64_t at, int64_t i, int64_t j) const {
        bool free = form == TREE_FREE, turned = free ? adjoint : !up;
        int64_t e = at + (turned ? j * n.m + i : i * n.m + j) * n.P;
        struct complex_real y = free && up == adjoint ? down[e] : b[e];
        if (turned) y = conjugate(y);
        if (form == TREE_SKEW && up == adjoint) y.re = -y.re, y.im = -y.im;
        return y;
    }
    __device__ int64_t pivot_at(int64_t sequence, int64_t node, int64_t head) const {
        return (sequence * n.T + node) * n.m * n.m * n.P + head;
    }
    __device__ int64_t value_at(int64_t sequence, int64_t node, int64_t q, int64_t head) const {
        return ((sequence * n.T + node) * n.m * n.r + q) * n.P + head;
    }
};

/* Replaces an m x m matrix by its inverse: Gauss and Jordan in the given order (tree_block.c says why this is
 * stable). */
__device__ void invert(int64_t m, struct complex_real *a) {
    for (int64_t p = 0; p < m; p++) {
        struct complex_real by = reciprocal(a[p * m + p]), one = {1, 0}, none = {0, 0};
        a[p * m + p] = one;
        for (int64_t j = 0; j < m; j++) a[p * m + j] = a[p * m + j] * by;
        for (int64_t i = 0; i < m; i++) {
            struct complex_real f = a[i * m + p];
            if (i == p) continue;
            a[i * m + p] = none;
            for (int64_t j = 0; j < m; j++) a[i * m + j] = a[i * m + j] - f * a[p * m + j];
        }
    }
}

/* Scratch of a call: couplings after the bound, inverse pivots of all nodes (B,T,m,m,P) and the solution (B,T,m,r,P);
 * backward the couplings' gradients and their partial sums. */
struct block_room {
    struct complex_real *b, *down, *inverse, *x, *g_b, *g_down;
    numbers<double, 4> *partial;
};

/* Work of one thread of a thread block: node `slot` and every slots-th after it, of one head. */
struct block_thread {
    int slots, slot;
    int64_t b, head;
    bool in;
};

__device__ struct block_thread block_thread_here(const struct block_systems &s, int width) {
    int64_t strips = (s.n.P + width - 1) / width;
    struct block_thread at = {CUDA_THREADS / width, (int)threadIdx.x / width, (int64_t)blockIdx.x / strips};
    at.head = blockIdx.x % strips * width + (int)threadIdx.x % width;
    at.in = at.head < s.n.P;
    return at;
}

/* Computes the inverse pivot of node i of level v, which is no leaf; its children must be done. */
__device__ void factor_node(const struct block_systems &s, const struct tree &t, const struct block_thread &at,
                            struct tree_level below, struct tree_level v, int64_t i, struct complex_real *inverse) {
    struct complex_real pivot[M * M], column[M], one = {1, 0}, none = {0, 0};
    int64_t m = s.n.m;
    for (int64_t e = 0; e < m * m; e++) pivot[e] = e / m == e % m ? one : none;
    for (int64_t j = 0; j < tree_children(&t, below, i); j++) {
        int64_t child = i * t.arity + j, table = s.table_at(at.b, below, child, at.head);
        const struct complex_real *of_child = inverse + s.pivot_at(at.b, below.offset + child, at.head);
        for (int64_t q = 0; q < m; q++) {
            for (int64_t k = 0; k < m; k++) {
                column[k] = below.l > 0 ? none : s.coupling(true, table, k, q);
#pragma unroll 1
                for (int64_t h = 0; below.l > 0 && h < m; h++)
                    column[k] = column[k] + of_child[(k * m + h) * s.n.P] * s.coupling(true, table, h, q);
            }
            for (int64_t k = 0; k < m; k++)
#pragma unroll 1
                for (int64_t h = 0; h < m; h++)
                    pivot[k * m + q] = pivot[k * m + q] - s.coupling(false, table, k, h) * column[h];
        }
    }
    invert(m, pivot);
    for (int64_t e = 0; e < m * m; e++) inverse[s.pivot_at(at.b, v.offset + i, at.head) + e * s.n.P] = pivot[e];
}

/* Computes z of node i of level v, which is no leaf, in place of its right-hand side. */
__device__ void eliminate(const struct block_systems &s, const struct tree &t, const struct block_thread &at,
                          struct tree_level below, struct tree_level v, int64_t i, const struct complex_real *inverse,
                          struct complex_real *x) {
    struct complex_real side[M], none = {0, 0};
    int64_t m = s.n.m, step = s.n.r * s.n.P;
    inverse += s.pivot_at(at.b, v.offset + i, at.head);
#pragma unroll 1
    for (int64_t q = 0; q < s.n.r; q++) {
        struct complex_real *z = x + s.value_at(at.b, v.offset + i, q, at.head);
#pragma unroll 1
        for (int64_t k = 0; k < m; k++) side[k] = z[k * step];
#pragma unroll 1
        for (int64_t j = 0; j < tree_children(&t, below, i); j++) {
            int64_t child = i * t.arity + j, table = s.table_at(at.b, below, child, at.head);
            const struct complex_real *of_child = x + s.value_at(at.b, below.offset + child, q, at.head);
#pragma unroll 1
            for (int64_t k = 0; k < m; k++)
#pragma unroll 1
                for (int64_t h = 0; h < m; h++) side[k] = side[k] - s.coupling(false, table, k, h) * of_child[h * step];
        }
#pragma unroll 1
        for (int64_t k = 0; k < m; k++) {
            struct complex_real sum = none;
#pragma unroll 1
            for (int64_t h = 0; h < m; h++) sum = sum + inverse[(k * m + h) * s.n.P] * side[h];
            z[k * step] = sum;
        }
    }
}

/* Computes x of node i of level v from its parent's. */
__device__ void descend(const struct block_systems &s, const struct tree &t, const struct block_thread &at,
                        struct tree_level above, struct tree_level v, int64_t i, const struct complex_real *inverse,
                        struct complex_real *x) {
    struct complex_real side[M], none = {0, 0};
    int64_t m = s.n.m, step = s.n.r * s.n.P, table = s.table_at(at.b, v, i, at.head);
    inverse += s.pivot_at(at.b, v.offset + i, at.head);
    for (int64_t q = 0; q < s.n.r; q++) {
        struct complex_real *own = x + s.value_at(at.b, v.offset + i, q, at.head);
        const struct complex_real *parent = x + s.value_at(at.b, above.offset + i / t.arity, q, at.head);
        for (int64_t k = 0; k < m; k++) {
            side[k] = none;
#pragma unroll 1
            for (int64_t h = 0; h < m; h++) side[k] = side[k] + s.coupling(true, table, k, h) * parent[h * step];
        }
        for (int64_t k = 0; k < m; k++) {
            struct complex_real sum = v.l > 0 ? none : side[k];
#pragma unroll 1
            for (int64_t h = 0; v.l > 0 && h < m; h++) sum = sum + inverse[(k * m + h) * s.n.P] * side[h];
            own[k * step] = own[k * step] - sum;
        }
    }
}

/* Computes the inverse pivots of the block's sequence and head. */
__device__ void factor(const struct block_systems &s, const struct block_thread &at, struct complex_real *inverse) {
    struct tree t = s.tree_of(at.b);
    struct tree_level below = tree_bottom(&t, t.leaves), v = below;
    for (int64_t l = 1; l < t.levels; l++, below = v) {
        v = tree_above(&t, t.leaves, below);
        for (int64_t i = at.slot; i < v.real && at.in; i += at.slots) factor_node(s, t, at, below, v, i, inverse);
        __syncthreads();
    }
}

/* Computes z, in place of the right-hand side, which is zero at padding. */
__device__ void solve_up(const struct block_systems &s, const struct block_thread &at,
                         const struct complex_real *inverse, struct complex_real *x) {
    struct tree t = s.tree_of(at.b);
    struct tree_level below = tree_bottom(&t, t.leaves), v = below;
    for (int64_t l = 1; l < t.levels; l++, below = v) {
        v = tree_above(&t, t.leaves, below);
        for (int64_t i = at.slot; i < v.real && at.in; i += at.slots) eliminate(s, t, at, below, v, i, inverse, x);
        __syncthreads();
    }
}

/* Computes the solution in place of z. */
__device__ void solve_down(const struct block_systems &s, const struct block_thread &at,
                           const struct complex_real *inverse, struct complex_real *x) {
    struct tree t = s.tree_of(at.b);
    struct tree_level v, above = tree_root(&t, t.leaves);
    for (int64_t l = t.levels - 2; l >= 0; l--, above = v) {
        v = tree_below(&t, t.leaves, above);
        for (int64_t i = at.slot; i < v.real && at.in; i += at.slots) descend(s, t, at, above, v, i, inverse, x);
        __syncthreads();
    }
}

/* True if a node of the whole tree belongs to t, the tree of a sequence. */
__device__ bool is_real(const struct tree &whole, const struct tree &t, int64_t node) {
    struct tree_level v = tree_bottom(&whole, t.leaves);
    if (whole.arity == 1) return t.leaves > 0 && node < t.levels;
    while (node >= v.offset + v.count) v = tree_above(&whole, t.leaves, v);
    return node - v.offset < v.real;
}

/* A solve: where the right-hand sides are, and the place of the solution, of which each plane may be NULL. */
struct block_solving {
    struct block_systems s;
    struct planes from;
    struct block_room room;
    real *to_re, *to_im;
    bool add_re, add_im;
};

/* Reads a number of the right-hand sides; padding is 0. */
struct read_side {
    struct block_solving k;
    __device__ void operator()(int64_t e) const {
        struct quotient node = divide(divide(e, k.s.n.m * k.s.n.r * k.s.n.P).whole, k.s.n.T);
        struct complex_real none = {0, 0};
        struct tree t = k.s.tree_of(node.whole);
        k.room.x[e] = is_real(k.s.tree, t, node.rest) ? k.from.at(e) : none;
    }
};

/* --- gradients of the couplings ----------------------------------------------------------------------------------- */

/* The gradients of element (i,j) of a node's B and C; `column` is (i,j,head). If C is tied to B, all in the first. */
struct block_gradients {
    struct block_systems s;
    const struct complex_real *lambda;
    struct planes x;

    __device__ struct complex_real product(int64_t b, int64_t left, int64_t i, int64_t right, int64_t j,
                                           int64_t head) const {
        struct complex_real sum = {0, 0};
        int64_t step = s.n.r * s.n.P;
        for (int64_t q = 0; q < s.n.r; q++)
            sum = sum - lambda[s.value_at(b, left, q, head) + i * step] *
                            conjugate(x.at(s.value_at(b, right, q, head) + j * step));
        return sum;
    }
    __device__ numbers<double, 4> operator()(int64_t b, int64_t node, int64_t column) const {
        struct quotient element = divide(column, s.n.P), at = divide(element.whole, s.n.m);
        int64_t above = s.n.T - 1 - divide_narrow(s.n.T - 2 - node, s.tree.arity).whole; /* tree_parent() */
        bool tied = s.form != TREE_FREE;
        struct complex_real up = product(b, node, at.whole, above, at.rest, element.rest);
        struct complex_real down =
            product(b, above, tied ? at.rest : at.whole, node, tied ? at.whole : at.rest, element.rest);
        if (tied) up = s.form == TREE_SKEW ? up - conjugate(down) : up + conjugate(down);
        return {{(double)up.re, (double)up.im, (double)down.re, (double)down.im}};
    }
};

/* Keeps the sums of an element of the tables for unbound_matrix. */
struct keep_gradients {
    struct complex_real *g_b, *g_down; /* g_down: NULL unless the form is free */
    __device__ void operator()(int64_t e, const numbers<double, 4> &sums) const {
        struct complex_real b = {(real)sums.v[0], (real)sums.v[1]}, down = {(real)sums.v[2], (real)sums.v[3]};
        g_b[e] = b;
        if (g_down) g_down[e] = down;
    }
};

/* Gradients of couplings that belong to one node of one sequence; 0 for the root, which has no parent. */
struct own_gradients {
    struct block_gradients g;
    struct keep_gradients keep;
    __device__ void operator()(int64_t e) const {
        struct quotient row = divide(e, g.s.n.m * g.s.n.m * g.s.n.P), at = divide(row.whole, g.s.n.T);
        numbers<double, 4> none = {};
        keep(e, at.rest < g.s.n.T - 1 ? g(at.whole, at.rest, row.rest) : none);
    }
};

/* --- calls -------------------------------------------------------------------------------------------------------- */

struct block_systems systems_of(const struct call *c, enum pass pass, struct block_room r) {
    const struct tree_solve_attr *a = tree_solve_attr(c);
    struct block_systems s = {a->tree, a->form, tree_sharing(&a->tree, c->in[TREE_UP_RE]), pass == PASS_BACKWARD,
                              tree_block_sizes(c)};
    if (a->tree.arity == 1 && s.sharing == SHARED_BY_LEVEL) s.sharing = OWN_OF_NODE; /* a chain has a node per level */
    s.b = r.b;
    s.down = r.down;
    s.leaves = c->in[TREE_LEAVES] ? tensor_i32(c->in[TREE_LEAVES]) : nullptr;
    return s;
}

struct table_cut cut_of(const struct call *c) {
    struct block_systems s = systems_of(c, PASS_BACKWARD, {});
    return table_cut_of(&s.tree, s.sharing, c->in[TREE_UP_RE], s.n.B);
}

/* True if sequences share the rows of the tables. */
bool is_table(const struct call *c) {
    return c->in[TREE_UP_RE] && c->in[TREE_UP_RE]->rank == 2;
}

struct complex_real *take_complex(struct scratch *s, int64_t n) {
    return (struct complex_real *)scratch_bytes(s, (size_t)n * sizeof(struct complex_real));
}

struct block_room room_of(const struct call *c, enum pass pass, struct scratch *s) {
    struct tree_block_sizes n = tree_block_sizes(c);
    struct block_room r = {};
    int64_t couplings = c->in[TREE_UP_RE] ? tensor_count(c->in[TREE_UP_RE]) : 0;
    bool free = couplings && tree_solve_attr(c)->form == TREE_FREE;
    r.inverse = take_complex(s, n.B * n.T * n.m * n.m * n.P);
    r.x = take_complex(s, tensor_count(c->out[0]));
    if (couplings) r.b = take_complex(s, couplings);
    if (free) r.down = take_complex(s, couplings);
    if (pass == PASS_FORWARD || !couplings) return r;
    r.g_b = take_complex(s, couplings);
    if (free) r.g_down = take_complex(s, couplings);
    if (is_table(c))
        r.partial = (numbers<double, 4> *)scratch_bytes(s, cuda_table_sums_bytes(cut_of(c), sizeof *r.partial));
    return r;
}

struct matrices matrices_of(const struct call *c) {
    struct tree_block_sizes n = tree_block_sizes(c);
    return {n.m, n.P, (real)tree_solve_attr(c)->beta};
}

/* Number of matrices of a table. */
int64_t matrices_in(const struct call *c) {
    int64_t m = tree_solve_attr(c)->block;
    return c->in[TREE_UP_RE] ? tensor_count(c->in[TREE_UP_RE]) / (m * m) : 0;
}

} // namespace

static __global__ void __launch_bounds__(CUDA_THREADS) tree_factor_kernel(struct block_solving k, int width) {
    await_previous();
    factor(k.s, block_thread_here(k.s, width), k.room.inverse);
}

static __global__ void __launch_bounds__(CUDA_THREADS) tree_up_kernel(struct block_solving k, int width) {
    await_previous();
    solve_up(k.s, block_thread_here(k.s, width), k.room.inverse, k.room.x);
}

/* Two blocks run on a multiprocessor. Without this bound nvcc gives the kernel 64 registers on compute capability 9.0,
 * and it spills. */
static __global__ void __launch_bounds__(CUDA_THREADS, 2) tree_down_kernel(struct block_solving k, int width) {
    await_previous();
    struct block_thread at = block_thread_here(k.s, width);
    int64_t values = k.s.n.T * k.s.n.m * k.s.n.r, first = at.b * values * k.s.n.P + at.head;
    solve_down(k.s, at, k.room.inverse, k.room.x);
    for (int64_t i = at.slot; i < values && at.in; i += at.slots) {
        int64_t e = first + i * k.s.n.P;
        if (k.to_re) put(k.to_re + e, k.add_re, k.room.x[e].re);
        if (k.to_im) put(k.to_im + e, k.add_im, k.room.x[e].im);
    }
}

/* Bounds the couplings, then computes the pivots, then solves. */
static void launch_solving(const struct call *c, const struct exec *x, struct block_solving k) {
    int width = column_sums_width(k.s.n.P);
    int64_t strips = (k.s.n.P + width - 1) / width;
    struct complex_real *to[] = {k.room.b, k.room.down};
    for (int i = 0; i < 2; i++)
        if (to[i])
            each_value(c, x, matrices_in(c),
                       bound_matrix{matrices_of(c), planes_of(c->in[2 * i], c->in[2 * i + 1]), to[i]});
    each_value(c, x, tensor_count(c->out[0]), read_side{k});
    LAUNCH(x, tree_factor_kernel, dim3((unsigned)(k.s.n.B * strips)), dim3(CUDA_THREADS), 0, k, width);
    LAUNCH(x, tree_up_kernel, dim3((unsigned)(k.s.n.B * strips)), dim3(CUDA_THREADS), 0, k, width);
    LAUNCH(x, tree_down_kernel, dim3((unsigned)(k.s.n.B * strips)), dim3(CUDA_THREADS), 0, k, width);
}

static bool tree_block_cuda_applicable(const struct call *c, const char **why) {
    return tree_nodes_fit(c->out[0], why);
}

static size_t tree_block_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    room_of(c, pass, &s);
    return s.used;
}

static void tree_block_cuda_forward(const struct call *c, const struct exec *x) {
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct block_room room = room_of(c, PASS_FORWARD, &scratch);
    launch_solving(c, x,
                   {systems_of(c, PASS_FORWARD, room), planes_of(c->in[TREE_U_RE], c->in[TREE_U_IM]), room,
                    tensor_real(c->out[0]), tensor_real(c->out[1]), false, false});
}

static void tree_block_cuda_backward(const struct call *c, const struct exec *x) {
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct block_room room = room_of(c, PASS_BACKWARD, &scratch);
    struct block_systems s = systems_of(c, PASS_BACKWARD, room);
    struct planes dout = {call_dout(c, 0), call_dout(c, 1)};
    launch_solving(c, x,
                   {s, dout, room, c->din[TREE_U_RE], c->din[TREE_U_IM], call_accumulates(c, TREE_U_RE),
                    call_accumulates(c, TREE_U_IM)});
    if (!c->in[TREE_UP_RE]) return;
    struct block_gradients g = {s, room.x, planes_of(c->out[0], c->out[1])};
    struct keep_gradients keep = {room.g_b, room.g_down};
    if (is_table(c))
        cuda_table_sums(c, x, cut_of(c), g, keep, room.partial);
    else
        each_value(c, x, tensor_count(c->in[TREE_UP_RE]), own_gradients{g, keep});
    const struct complex_real *sums[] = {room.g_b, room.g_down};
    for (int i = 0; i < 4; i += 2) {
        if (!c->in[i] || !(c->din[i] || c->din[i + 1])) continue;
        each_value(c, x, matrices_in(c),
                   unbound_matrix{matrices_of(c), planes_of(c->in[i], c->in[i + 1]), sums[i / 2], c->din[i],
                                  c->din[i + 1], call_accumulates(c, i), call_accumulates(c, i + 1)});
    }
}

/* Tolerance: as tree_block_cpu. */
const struct kernel kernel_tree_block_cuda = {
    .name = "tree_block_cuda",
    .op = &op_tree_block,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 512,
    .applicable = tree_block_cuda_applicable,
    .workspace = tree_block_cuda_workspace,
    .forward = tree_block_cuda_forward,
    .backward = tree_block_cuda_backward,
};
