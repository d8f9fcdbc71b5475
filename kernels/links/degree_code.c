/* degree_code.c - adds to each node a code of its number of neighbours: the op, its reference and its CPU kernel.
 *
 * Node n has the row x_n of D numbers and d_n neighbours:
 *   y_n = x_n + code(d_n), code(d)[2i] = sin(d w_i), code(d)[2i+1] = cos(d w_i), w_i = 10000^(-2i/D);  dx = dy
 * pLSTM uses this on graphs (ml-jku/plstm_experiments, plstm_graph/). */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/lib/parallel.h"
#include "kernels/lib/scratch.h"
#include "kernels/links/links_call.h"

struct tensor *degree_code(struct graph *g, struct tensor *x, const struct links *links) {
    return call_on_links(g, &op_degree_code, x, links, 0);
}

static void degree_code_infer(struct graph *g, struct call *c) {
    const struct links_attr *a = links_attr(c);
    if (!infer_present(g, c, 2)) return;
    const struct tensor *x = c->in[0];
    if (x->rank != 3)
        graph_fail(g, ST_USAGE, "degree_code: x has rank %d, expected 3 (B,T,D)", x->rank);
    else if (infer_links(g, c, 1, a->size, x))
        graph_output(g, c, DT_REAL, 3, x->dims);
}

static struct cost degree_code_cost(const struct call *c, enum pass pass) {
    (void)pass;
    double n = (double)tensor_count(c->in[0]);
    return (struct cost){n, 2 * n * sizeof(real)};
}

static bool degree_code_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant >= LINK_INPUTS) return false;
    struct tensor *x = input_tokens(g, s, "x", s->dim);
    struct links links = input_links(g, x, s, 1);
    degree_code(g, x, &links);
    return true;
}

const struct op op_degree_code = {
    .name = "degree_code",
    .maths = "y_n = x_n + sines and cosines of the number of neighbours of n",
    .source = "pLSTM on graphs; ml-jku/plstm_experiments, plstm_graph/",
    .no_grad_in = 2,
    .infer = degree_code_infer,
    .cost = degree_code_cost,
    .sizes = "batch length dim",
    .build = degree_code_build,
};

static double code_of(int64_t degree, int64_t d, int64_t D) {
    int64_t pair = d / 2;
    double angle = (double)degree * pow(10000, -2.0 * (double)pair / (double)D);
    return d % 2 ? cos(angle) : sin(angle);
}

static void count_neighbours(const struct links_view *l, int32_t *degree) {
    int32_t a, b;
    memset(degree, 0, (size_t)l->T * sizeof *degree);
    for (int64_t e = 0; e < l->size.edges; e++)
        if (links_edge(l, e, &a, &b)) degree[a]++, degree[b]++;
}

/* --- reference ---------------------------------------------------------------------------------------------------- */

static size_t degree_code_ref_workspace(const struct call *c, enum pass pass) {
    return scratch_single(c, pass == PASS_FORWARD ? (size_t)c->in[0]->dims[1] * sizeof(int32_t) : 0);
}

static void degree_code_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    int32_t *degree = c->scratch[PASS_FORWARD];
    for (int64_t b = 0; b < c->in[0]->dims[0]; b++) {
        struct links_view l = links_at(c, b, T);
        count_neighbours(&l, degree);
        for (int64_t i = b * T * D; i < (b + 1) * T * D; i++)
            tensor_real(c->out[0])[i] = tensor_real(c->in[0])[i] + (real)code_of(degree[i / D - b * T], i % D, D);
    }
}

static void degree_code_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    for (int64_t i = 0; c->din[0] && i < tensor_count(c->in[0]); i++)
        put(c->din[0] + i, call_accumulates(c, 0), call_dout(c, 0)[i]);
}

const struct kernel kernel_degree_code_ref = {
    .name = "degree_code_ref",
    .op = &op_degree_code,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = degree_code_ref_workspace,
    .forward = degree_code_ref_forward,
    .backward = degree_code_backward,
};

/* --- CPU: the code of each number that occurs is computed once ---------------------------------------------------- */

/* Each number of neighbours up to `most` has a row of codes; a node with more neighbours computes its own code. */
struct codes {
    int64_t most;
    int32_t *degree; /* (B,T) */
    int32_t *made;   /* [most + 1] */
    real *code;      /* [most + 1][D] */
};

#define CODES_MOST 64

static struct codes codes_of(const struct call *c, struct scratch *s) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    struct codes k = {.most = CODES_MOST};
    k.degree = scratch_i32(s, B * T);
    k.made = scratch_i32(s, k.most + 1);
    k.code = scratch_reals(s, (k.most + 1) * D);
    return k;
}

static size_t degree_code_cpu_workspace(const struct call *c, enum pass pass) {
    struct scratch s = scratch_measure(c);
    if (pass == PASS_FORWARD) codes_of(c, &s);
    return s.used;
}

static void make_codes(const struct call *c, struct codes k) {
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    memset(k.made, 0, (size_t)(k.most + 1) * sizeof *k.made);
    for (int64_t b = 0; b < B; b++) {
        struct links_view l = links_at(c, b, T);
        count_neighbours(&l, k.degree + b * T);
    }
    for (int64_t n = 0; n < B * T; n++) {
        int32_t degree = k.degree[n];
        if (degree > k.most || k.made[degree]) continue;
        for (int64_t d = 0; d < D; d++) k.code[degree * D + d] = (real)code_of(degree, d, D);
        k.made[degree] = 1;
    }
}

static void degree_code_cpu_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t B = c->in[0]->dims[0], T = c->in[0]->dims[1], D = c->in[0]->dims[2];
    struct scratch s = scratch_of(c, PASS_FORWARD);
    struct codes k = codes_of(c, &s);
    make_codes(c, k);
#pragma omp parallel for schedule(static) if (tensor_count(c->in[0]) > PARALLEL_MIN)
    for (int64_t n = 0; n < B * T; n++) {
        const real *x = tensor_real(c->in[0]) + n * D;
        real *y = tensor_real(c->out[0]) + n * D;
        bool made = k.degree[n] <= k.most;
        for (int64_t d = 0; d < D; d++)
            y[d] = x[d] + (made ? k.code[k.degree[n] * D + d] : (real)code_of(k.degree[n], d, D));
    }
}

const struct kernel kernel_degree_code_cpu = {
    .name = "degree_code_cpu",
    .op = &op_degree_code,
    .device = DEVICE_CPU,
    .workspace = degree_code_cpu_workspace,
    .forward = degree_code_cpu_forward,
    .backward = degree_code_backward,
};
