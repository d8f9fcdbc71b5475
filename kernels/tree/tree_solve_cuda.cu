/* tree_solve_cuda.cu - linear systems on trees on CUDA. A thread block has a sequence and a strip of heads and walks
 * the levels; neighbouring threads have neighbouring heads, and the nodes of a level are distributed over the strips of
 * threads. A chain, which has one node per level, is a scan up and a scan down, with a thread per head of a sequence
 * (scan.cuh). The adjoint system is solved in the same way. A second kernel sums the gradients of shared couplings over
 * sequences and nodes (tree_sums.cuh). The equations are in tree_solve.c. */
#include <math.h>

#include "kernels/lib/scan.cuh"
#include "kernels/lib/scratch.h"
#include "kernels/tree/tree_complex.cuh"
#include "kernels/tree/tree_sums.cuh"

namespace {

struct couplings {
    struct complex_real up, down; /* b, c */
};

/* Systems of T nodes and P heads per sequence. */
struct tree_systems {
    struct tree tree;
    enum tree_form form;
    enum tree_sharing sharing;
    int64_t B, T, P;
    double beta;
    struct planes up, down;
    const int32_t *leaves; /* or NULL */

    __device__ struct tree tree_of(int64_t b) const {
        return tree_with_leaves(tree, leaves ? leaves[b] : tree.leaves);
    }
    __device__ struct complex_real bounded(struct complex_real theta) const {
        if (beta <= 0) return theta;
        real factor = (real)beta / (real)sqrt((double)(1 + theta.re * theta.re + theta.im * theta.im));
        struct complex_real y = {factor * theta.re, factor * theta.im};
        return y;
    }
    /* Values in the tables at element e. */
    __device__ struct couplings stored(int64_t e) const {
        struct couplings k = {up.at(e), {0, 0}};
        if (form == TREE_FREE) k.down = down.at(e);
        return k;
    }
    /* Values in the system of equations; `adjoint`: its conjugate transpose. */
    __device__ struct couplings bound(struct couplings k, bool adjoint) const {
        k.up = bounded(k.up);
        k.down = form == TREE_FREE ? bounded(k.down) : conjugate(k.up);
        if (form == TREE_SKEW) k.down.re = -k.down.re, k.down.im = -k.down.im;
        if (!adjoint) return k;
        struct couplings swapped = {conjugate(k.down), conjugate(k.up)};
        return swapped;
    }
    /* Values of node i of level v in sequence b. */
    __device__ struct couplings of_node(int64_t b, struct tree_level v, int64_t i, int64_t head, bool adjoint) const {
        int64_t row = tree_row(sharing, v, i) + (sharing == OWN_OF_SAMPLE ? b * T : 0);
        return bound(stored(row * P + head), adjoint);
    }
    /* A chain's element of node t in sequence b, which is not its last. */
    __device__ int64_t of_link(int64_t b, int64_t t, int64_t head) const {
        return ((sharing == SHARED_BY_ALL ? 0 : t) + (sharing == OWN_OF_SAMPLE ? b * T : 0)) * P + head;
    }
    /* Nodes of a chain that are not padding. */
    __device__ int64_t chain_nodes(int64_t b) const {
        struct tree t = tree_of(b);
        return t.leaves > 0 ? t.levels : 0;
    }
};

/* `width` neighbouring threads have the block's heads. The block has `slots` such strips, which share the nodes of a
 * level in turn. */
struct tree_block {
    int width, slots, slot;
    int64_t b, head;
    bool in;
};

__device__ struct tree_block tree_block_here(const struct tree_systems &s, int width) {
    int64_t strips = (s.P + width - 1) / width;
    struct tree_block at = {width, CUDA_THREADS / width, (int)threadIdx.x / width, blockIdx.x / strips};
    at.head = blockIdx.x % strips * width + (int)threadIdx.x % width;
    at.in = at.head < s.P;
    return at;
}

/* Computes 1 / pivot and the right-hand side after elimination of node i of level v; its children must be done. */
__device__ void eliminate(const struct tree_systems &s, const struct tree &t, const struct tree_block &at,
                          struct tree_level below, struct tree_level v, int64_t i, bool adjoint,
                          struct complex_real *inverse, struct complex_real *x) {
    struct complex_real pivot = {1, 0}, z = x[(v.offset + i) * s.P], one_by;
    for (int64_t j = 0; v.l > 0 && j < tree_children(&t, below, i); j++) {
        int64_t child = i * t.arity + j, row = (below.offset + child) * s.P;
        struct couplings k = s.of_node(at.b, below, child, at.head, adjoint);
        pivot = pivot - k.down * k.up * inverse[row];
        z = z - k.down * x[row];
    }
    inverse[(v.offset + i) * s.P] = one_by = reciprocal(pivot);
    x[(v.offset + i) * s.P] = z * one_by;
}

/* Solves the system of the block's sequence and head. x has the right-hand side, with zeros as padding, and becomes the
 * solution. */
__device__ void solve(const struct tree_systems &s, const struct tree_block &at, bool adjoint,
                      struct complex_real *inverse, struct complex_real *x) {
    struct tree t = s.tree_of(at.b);
    struct tree_level below = {0, 0, 0, 0, 0}, v = tree_bottom(&t, t.leaves);
    for (int64_t l = 0; l < t.levels; l++, below = v, v = tree_above(&t, t.leaves, v)) {
        for (int64_t i = at.slot; i < v.real && at.in; i += at.slots)
            eliminate(s, t, at, below, v, i, adjoint, inverse, x);
        __syncthreads();
    }
    struct tree_level above = below; /* the root's */
    for (int64_t l = t.levels - 2; l >= 0; l--, above = v) {
        v = tree_below(&t, t.leaves, above);
        for (int64_t i = at.slot; i < v.real && at.in; i += at.slots) {
            int64_t row = (v.offset + i) * s.P, parent = (above.offset + i / t.arity) * s.P;
            struct couplings k = s.of_node(at.b, v, i, at.head, adjoint);
            x[row] = x[row] - k.up * inverse[row] * x[parent];
        }
        __syncthreads();
    }
}

/* True if a node of the whole tree belongs to t, the tree of a sequence. */
__device__ bool is_real(const struct tree_systems &s, const struct tree &t, int64_t node) {
    struct tree_level v = tree_bottom(&s.tree, t.leaves);
    while (node >= v.offset + v.count) v = tree_above(&s.tree, t.leaves, v);
    return node - v.offset < v.real;
}

/* The real and the imaginary parts of the gradients of a node's b and c, summed in double. */
typedef numbers<double, 4> coupling_sums;

/* Gradients of the couplings of a node that is not the root, from lambda and the solution x. */
struct coupling_gradients {
    struct tree_systems s;
    const struct complex_real *lambda;
    struct planes x;

    __device__ coupling_sums operator()(int64_t b, int64_t node, int64_t head) const {
        struct couplings d = {{0, 0}, {0, 0}};
        int64_t above = s.T - 1 - divide_narrow(s.T - 2 - node, s.tree.arity).whole; /* tree_parent() */
        int64_t child = (b * s.T + node) * s.P + head, parent = (b * s.T + above) * s.P + head;
        d.up = d.up - lambda[child] * conjugate(x.at(parent));
        d.down = d.down - lambda[parent] * conjugate(x.at(child));
        if (s.form == TREE_HERMITIAN) d.up.re += d.down.re, d.up.im -= d.down.im;
        if (s.form == TREE_SKEW) d.up.re -= d.down.re, d.up.im += d.down.im;
        return {{(double)d.up.re, (double)d.up.im, (double)d.down.re, (double)d.down.im}};
    }
};

/* The places of the gradients of the tables' four planes; NULL: not wanted. Applies the derivative of the bound. */
struct table_gradients {
    struct tree_systems s;
    real *to[4];
    bool add[4];

    __device__ void write(int plane, struct planes table, int64_t e, double re, double im) const {
        if (!to[plane] && !to[plane + 1]) return;
        struct complex_real theta = table.at(e);
        if (s.beta > 0) {
            double a = (double)theta.re, b = (double)theta.im, scale = 1 / sqrt(1 + (a * a + b * b));
            double along = scale * scale * scale * (a * re + b * im);
            re = s.beta * (scale * re - along * a);
            im = s.beta * (scale * im - along * b);
        }
        if (to[plane]) put(to[plane] + e, add[plane], (real)re);
        if (to[plane + 1]) put(to[plane + 1] + e, add[plane + 1], (real)im);
    }
    __device__ void operator()(int64_t e, const coupling_sums &sums) const {
        write(0, s.up, e, sums.v[0], sums.v[1]);
        if (s.form == TREE_FREE) write(2, s.down, e, sums.v[2], sums.v[3]);
    }
};

/* Gradients of couplings that belong to one node of one sequence; 0 for the root, which has no parent. */
struct own_gradient {
    struct coupling_gradients g;
    struct table_gradients tables;
    __device__ void operator()(int64_t e) const {
        struct quotient row = divide(e, g.s.P), at = divide(row.whole, g.s.T);
        coupling_sums none = {};
        tables(e, at.rest < g.s.T - 1 ? g(at.whole, at.rest, row.rest) : none);
    }
};

struct tree_systems systems_of(const struct call *c) {
    const struct tree_solve_attr *a = tree_solve_attr(c);
    const struct tensor *y = c->out[0];
    struct tree_systems s = {a->tree,    a->form, tree_sharing(&a->tree, c->in[TREE_UP_RE]), y->dims[0], y->dims[1],
                             y->dims[2], a->beta};
    if (a->tree.arity == 1 && s.sharing == SHARED_BY_LEVEL) s.sharing = OWN_OF_NODE; /* a chain has a node per level */
    s.up = planes_of(c->in[TREE_UP_RE], c->in[TREE_UP_IM]);
    s.down = planes_of(c->in[TREE_DOWN_RE], c->in[TREE_DOWN_IM]);
    s.leaves = c->in[TREE_LEAVES] ? tensor_i32(c->in[TREE_LEAVES]) : nullptr;
    return s;
}

int width_of(const struct tree_systems &s) {
    return column_sums_width(s.P);
}

int64_t strips_of(const struct tree_systems &s) {
    return (s.P + width_of(s) - 1) / width_of(s);
}

/* True if sequences share the rows of the tables. */
bool is_table(const struct call *c) {
    return c->in[TREE_UP_RE] && c->in[TREE_UP_RE]->rank == 2;
}

struct table_cut cut_of(const struct call *c) {
    struct tree_systems s = systems_of(c);
    return table_cut_of(&s.tree, s.sharing, c->in[TREE_UP_RE], s.B);
}

/* Reciprocal pivots and the solution of each node, (B,T,P); backward the tables' partial sums. */
struct tree_room {
    struct complex_real *inverse, *x;
    coupling_sums *partial;
};

struct tree_room room_of(const struct call *c, enum pass pass, struct scratch *s) {
    size_t bytes = (size_t)tensor_count(c->out[0]) * sizeof(struct complex_real);
    struct tree_room r = {};
    r.inverse = (struct complex_real *)scratch_bytes(s, bytes);
    r.x = (struct complex_real *)scratch_bytes(s, bytes);
    if (pass == PASS_BACKWARD && is_table(c))
        r.partial = (coupling_sums *)scratch_bytes(s, cuda_table_sums_bytes(cut_of(c), sizeof(coupling_sums)));
    return r;
}

/* --- chains ------------------------------------------------------------------------------------------------------- */

/* The systems, and the place of their solution; NULL: it only stays in the scratch. */
struct solving {
    struct tree_systems s;
    bool adjoint;
    struct planes from;
    struct tree_room room;
    real *to_re, *to_im;
    bool add_re, add_im;
};

/* Both walks of a chain read without `read`, so scan_launch_long cannot run them. */
struct chain_walk {
    static constexpr int ROWS = 1, LANES = WARP, VALUES = 6, STEPS = scan_steps(VALUES, 48);
    using shared = scan_nothing_shared;
    struct state {
        int64_t nodes; /* number of nodes that are not padding */
        struct complex_real inverse, x;
    };
    scan_shape shape;
    struct solving k;

    __device__ __forceinline__ void begin(const scan_lane &lane, state &s, shared &) const {
        s = {k.s.chain_nodes(lane.tokens / k.s.T), {0, 0}, {0, 0}};
    }
    /* Values of node t and its parent, if both exist. */
    __device__ __forceinline__ struct couplings link(const scan_lane &lane, int t) const {
        struct couplings none = {{0, 0}, {0, 0}};
        return t >= 0 && t < k.s.T - 1 ? k.s.stored(k.s.of_link(lane.tokens / k.s.T, t, lane.k)) : none;
    }
    __device__ __forceinline__ void end(const scan_lane &, const state &, shared &) const {}
};

/* Pivots and eliminated right-hand sides. */
struct chain_up : chain_walk {
    static constexpr bool REVERSE = false;
    struct input {
        struct couplings below;
        struct complex_real u, both; /* both: the product of the couplings */
    };

    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read) const {
        return {link(lane, t - 1), k.from.at(lane.at(t)), {}};
    }
    __device__ __forceinline__ void prepare(input *in) const {
#pragma unroll
        for (int i = 0; i < STEPS; i++) {
            in[i].below = k.s.bound(in[i].below, k.adjoint);
            in[i].both = in[i].below.down * in[i].below.up;
        }
    }
    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s, shared &) const {
        struct complex_real one = {1, 0}, none = {0, 0}, z = in.u - in.below.down * s.x;
        s.inverse = t < s.nodes ? reciprocal(one - in.both * s.inverse) : none;
        s.x = t < s.nodes ? z * s.inverse : none;
        if (!lane.stores) return;
        k.room.inverse[lane.at(t)] = s.inverse;
        k.room.x[lane.at(t)] = s.x;
    }
};

/* The solution, from the last node to the first. */
struct chain_down : chain_walk {
    static constexpr bool REVERSE = true;
    struct input {
        struct couplings above;
        struct complex_real inverse, x, before; /* before: the value to which the solution is added */
    };

    template <class Read> __device__ __forceinline__ input load(const scan_lane &lane, int t, Read) const {
        int64_t e = lane.at(t);
        struct complex_real before = {k.add_re ? k.to_re[e] : 0, k.add_im ? k.to_im[e] : 0};
        return {link(lane, t), k.room.inverse[e], k.room.x[e], before};
    }
    __device__ __forceinline__ void prepare(input *in) const {
#pragma unroll
        for (int i = 0; i < STEPS; i++) in[i].inverse = k.s.bound(in[i].above, k.adjoint).up * in[i].inverse;
    }
    __device__ __forceinline__ void step(const scan_lane &lane, int t, const input &in, state &s, shared &) const {
        s.x = t + 1 < s.nodes ? in.x - in.inverse * s.x : in.x;
        if (!lane.stores) return;
        int64_t e = lane.at(t);
        k.room.x[e] = s.x;
        if (k.to_re) k.to_re[e] = k.add_re ? in.before.re + s.x.re : s.x.re;
        if (k.to_im) k.to_im[e] = k.add_im ? in.before.im + s.x.im : s.x.im;
    }
};

} // namespace

static __global__ void __launch_bounds__(CUDA_THREADS) tree_solve_kernel(struct solving k, int width) {
    await_previous();
    const struct tree_systems &s = k.s;
    struct tree_block at = tree_block_here(s, width);
    int64_t first = at.b * s.T * s.P + at.head;
    struct complex_real *x = k.room.x + first, none = {0, 0};
    struct tree t = s.tree_of(at.b);
    for (int64_t node = at.slot; node < s.T && at.in; node += at.slots)
        x[node * s.P] = is_real(s, t, node) ? k.from.at(first + node * s.P) : none;
    __syncthreads();
    solve(s, at, k.adjoint, k.room.inverse + first, x);
    for (int64_t node = at.slot; node < s.T && at.in; node += at.slots) {
        if (k.to_re) put(k.to_re + first + node * s.P, k.add_re, x[node * s.P].re);
        if (k.to_im) put(k.to_im + first + node * s.P, k.add_im, x[node * s.P].im);
    }
}

static void launch_solving(const struct call *c, const struct exec *x, struct solving k) {
    const struct tree_systems &s = k.s;
    if (s.tree.arity == 1) {
        struct chain_walk walk = {scan_whole(s.B, s.T, s.P), k};
        scan_launch(c, x, chain_up{walk});
        scan_launch(c, x, chain_down{walk});
    } else {
        LAUNCH(x, tree_solve_kernel, dim3((unsigned)(s.B * strips_of(s))), dim3(CUDA_THREADS), 0, k, width_of(s));
    }
}

static bool tree_solve_cuda_applicable(const struct call *c, const char **why) {
    return tree_nodes_fit(c->out[0], why);
}

static size_t tree_solve_cuda_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    room_of(c, pass, &s);
    return s.used;
}

static void tree_solve_cuda_forward(const struct call *c, const struct exec *x) {
    struct scratch scratch = scratch_of(c, PASS_FORWARD);
    struct tree_systems s = systems_of(c);
    launch_solving(c, x,
                   {s, false, planes_of(c->in[TREE_U_RE], c->in[TREE_U_IM]), room_of(c, PASS_FORWARD, &scratch),
                    tensor_real(c->out[0]), tensor_real(c->out[1]), false, false});
}

static void tree_solve_cuda_backward(const struct call *c, const struct exec *x) {
    struct scratch scratch = scratch_of(c, PASS_BACKWARD);
    struct tree_systems s = systems_of(c);
    struct tree_room room = room_of(c, PASS_BACKWARD, &scratch);
    struct planes dout = {call_dout(c, 0), call_dout(c, 1)};
    launch_solving(c, x,
                   {s, true, dout, room, c->din[TREE_U_RE], c->din[TREE_U_IM], call_accumulates(c, TREE_U_RE),
                    call_accumulates(c, TREE_U_IM)});
    struct table_gradients tables = {s};
    bool wanted = false;
    for (int i = 0; i < TREE_U_RE; i++) {
        tables.to[i] = c->din[i];
        tables.add[i] = call_accumulates(c, i);
        wanted = wanted || c->din[i];
    }
    if (!wanted) return;
    struct coupling_gradients g = {s, room.x, planes_of(c->out[0], c->out[1])};
    if (is_table(c))
        cuda_table_sums(c, x, cut_of(c), g, tables, room.partial);
    else
        each_value(c, x, tensor_count(c->in[TREE_UP_RE]), own_gradient{g, tables});
}

/* Tolerance: as tree_solve_cpu. */
const struct kernel kernel_tree_solve_cuda = {
    .name = "tree_solve_cuda",
    .op = &op_tree_solve,
    .device = DEVICE_CUDA,
    .inexact = true,
    .tolerance = 128,
    .applicable = tree_solve_cuda_applicable,
    .workspace = tree_solve_cuda_workspace,
    .forward = tree_solve_cuda_forward,
    .backward = tree_solve_cuda_backward,
};
