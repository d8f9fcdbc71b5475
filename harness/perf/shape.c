/* shape.c - single ops at sizes that matter; see perf.h. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "harness/perf/perf.h"
#include "kernels/dense/dense.h"
#include "kernels/gated/gated.h"
#include "kernels/matrix/matrix.h"
#include "kernels/norm/norm.h"
#include "kernels/plstm/plstm.h"
#include "kernels/train/train.h"
#include "kernels/tree/tree.h"

#define AT(field) offsetof(struct perf_shape, field)

const struct option perf_shape_options[] = {
    {"batch", OPT_INT, AT(batch), "128", 1, 1 << 24, NULL, "sequences B", 0},
    {"length", OPT_INT, AT(length), "16", 1, 1e9, NULL, "tokens of a sequence T", 0},
    {"blocks", OPT_INT, AT(blocks), "64", 1, 1 << 24, NULL, "blocks or channels N of a scan", 0},
    {"m", OPT_INT, AT(m), "5", 1, 64, NULL, "block size or order of a scan", 0},
    {"gate", OPT_CHOICE, AT(gate), "softmax", 0, 0, "softmax sigmoid relu none", "gate normaliser of a scan", 0},
    {"layout", OPT_CHOICE, AT(layout), "companion", 0, 0, "companion observer", "of scan_companion", 0},
    {"dim", OPT_INT, AT(dim), "128", 1, 1 << 20, NULL, "width D, or the hidden size of scan_lstm", 0},
    {"out", OPT_INT, AT(out), "auto", 1, 1 << 20, NULL, "output width of linear; auto = dim", OPT_AUTO},
    {"vocab", OPT_INT, AT(vocab), "120", 1, 1 << 24, NULL, "token ids", 0},
    {"heads", OPT_INT, AT(heads), "4", 1, 1 << 16, NULL, "heads of a matrix-state recurrence", 0},
    {"dk", OPT_INT, AT(dk), "32", 1, 1 << 14, NULL, "length of a head's keys, rows of its state", 0},
    {"dv", OPT_INT, AT(dv), "32", 1, 1 << 14, NULL, "length of a head's values, columns of its state", 0},
    {"substeps", OPT_INT, AT(substeps), "1", 1, 64, NULL, "updates a token of scan_delta", 0},
    {"variant", OPT_INT, AT(variant), "0", 0, 1000, NULL, "number of the op's own example, for ops without sizes", 0},
    {NULL, OPT_INT, 0, NULL, 0, 0, NULL, NULL, 0},
};

/* --- inputs ------------------------------------------------------------------------------------------------------- */

static struct tensor *tokens(struct graph *g, const struct perf_shape *s, const char *name, int64_t width) {
    return graph_input(g, name, 3, (int64_t[]){s->batch, s->length, width}, true);
}

static struct tensor *matrix(struct graph *g, const char *name, int64_t rows, int64_t columns) {
    return graph_input(g, name, 2, (int64_t[]){rows, columns}, true);
}

static struct tensor *vector(struct graph *g, const char *name, int64_t n) {
    return graph_input(g, name, 1, &n, true);
}

static struct tensor *ids(struct graph *g, const struct perf_shape *s, const char *name) {
    return graph_input_ids(g, name, 2, (int64_t[]){s->batch, s->length}, (int32_t)s->vocab, false);
}

/* --- ops ---------------------------------------------------------------------------------------------------------- */

static void record_linear(struct graph *g, const struct perf_shape *s) {
    int64_t out = s->out ? s->out : s->dim;
    linear(g, tokens(g, s, "x", s->dim), matrix(g, "w", out, s->dim), vector(g, "b", out));
}

static void record_bias(struct graph *g, const struct perf_shape *s) {
    bias(g, tokens(g, s, "x", s->dim), vector(g, "b", s->dim));
}

static void record_scale(struct graph *g, const struct perf_shape *s) {
    scale(g, tokens(g, s, "x", s->dim), vector(g, "s", s->dim));
}

static void record_repeat_rows(struct graph *g, const struct perf_shape *s) {
    repeat_rows(g, vector(g, "p", s->dim), s->batch, s->length);
}

static void record_add(struct graph *g, const struct perf_shape *s) {
    add(g, tokens(g, s, "a", s->dim), tokens(g, s, "b", s->dim));
}

static void record_sub(struct graph *g, const struct perf_shape *s) {
    sub(g, tokens(g, s, "a", s->dim), tokens(g, s, "b", s->dim));
}

static void record_mul(struct graph *g, const struct perf_shape *s) {
    mul(g, tokens(g, s, "a", s->dim), tokens(g, s, "b", s->dim));
}

static void record_silu_mul(struct graph *g, const struct perf_shape *s) {
    silu_mul(g, tokens(g, s, "a", s->dim), tokens(g, s, "b", s->dim));
}

static void record_activate(struct graph *g, const struct perf_shape *s) {
    activate(g, tokens(g, s, "x", s->dim), ACT_SILU);
}

static void record_rmsnorm(struct graph *g, const struct perf_shape *s) {
    rmsnorm(g, tokens(g, s, "x", s->dim), vector(g, "w", s->dim), 1e-5);
}

static void record_layernorm(struct graph *g, const struct perf_shape *s) {
    layernorm(g, tokens(g, s, "x", s->dim), vector(g, "w", s->dim), vector(g, "b", s->dim), 1e-5);
}

static void record_embedding(struct graph *g, const struct perf_shape *s) {
    embedding(g, ids(g, s, "ids"), matrix(g, "table", s->vocab, s->dim));
}

static void record_dropout(struct graph *g, const struct perf_shape *s) {
    dropout(g, tokens(g, s, "x", s->dim), 0.1);
}

static void record_cross_entropy(struct graph *g, const struct perf_shape *s) {
    cross_entropy(g, tokens(g, s, "logits", s->vocab), ids(g, s, "targets"), NULL);
}

static void record_scan_block(struct graph *g, const struct perf_shape *s) {
    int64_t N = s->blocks, m = s->m;
    scan_block(g, tokens(g, s, "z", m * (m + 1) * N), tokens(g, s, "v", m * N), N, m, (enum gate)s->gate);
}

static void record_scan_companion(struct graph *g, const struct perf_shape *s) {
    int64_t N = s->blocks, m = s->m;
    scan_companion(g, tokens(g, s, "z", (m + 1) * N), tokens(g, s, "v", N), N, m, (enum gate)s->gate,
                   (enum companion_layout)s->layout);
}

static void record_scan_diag(struct graph *g, const struct perf_shape *s) {
    scan_diag(g, tokens(g, s, "a", s->blocks), tokens(g, s, "x", s->blocks));
}

static void record_scan_diag_complex(struct graph *g, const struct perf_shape *s) {
    struct tensor *h_im;
    scan_diag_complex(g, tokens(g, s, "a_re", s->blocks), tokens(g, s, "a_im", s->blocks),
                      tokens(g, s, "x_re", s->blocks), tokens(g, s, "x_im", s->blocks), &h_im);
}

static void record_scan_lstm(struct graph *g, const struct perf_shape *s) {
    int64_t H = s->dim;
    scan_lstm(g, tokens(g, s, "u", 4 * H), matrix(g, "wh", 4 * H, H), vector(g, "bh", 4 * H));
}

static struct tensor *heads(struct graph *g, const struct perf_shape *s, const char *name, int64_t width) {
    return graph_input(g, name, 4, (int64_t[]){s->batch, s->length, s->substeps * s->heads, width}, true);
}

/* All gates, a group of q and k for each head: pLSTM. */
static void record_scan_outer(struct graph *g, const struct perf_shape *s) {
    struct perf_shape once = *s;
    once.substeps = 1;
    struct outer_gates gates = {heads(g, &once, "decay", 1), heads(g, &once, "source", 1), heads(g, &once, "mark", 1),
                                heads(g, &once, "direct", 1)};
    scan_outer(g, heads(g, &once, "q", s->dk), heads(g, &once, "k", s->dk), heads(g, &once, "v", s->dv), &gates,
               s->heads, s->heads, 1 / sqrt((double)s->dk));
}

/* Keys in [-0.7,0.7) are about sqrt(dk / 6) long: the rate keeps I - rate beta k k^T from growing the state. */
static void record_scan_delta(struct graph *g, const struct perf_shape *s) {
    struct perf_shape once = *s;
    once.substeps = 1;
    struct delta_attr attr = {s->heads, s->substeps, 1 / sqrt((double)s->dk), 1 / (double)s->dk};
    scan_delta(g, heads(g, &once, "q", s->dk), heads(g, s, "k", s->dk), heads(g, s, "v", s->dv), heads(g, s, "beta", 1),
               heads(g, &once, "decay", 1), &attr);
}

/* A grid of `length` nodes, as nearly square as its divisors allow. */
static void record_grid_scan(struct graph *g, const struct perf_shape *s) {
    int64_t H = s->heads, X = (int64_t)sqrt((double)s->length);
    while (s->length % X != 0) X--;
    grid_scan(g, tokens(g, s, "q", H * s->dk), tokens(g, s, "k", H * s->dk), tokens(g, s, "v", H * s->dv),
              tokens(g, s, "gates", 32 * H), tokens(g, s, "direct", H), X, s->length / X, H, 1 / sqrt((double)s->dk));
}

/* `length` nodes, each with edges to the next two and all pairs of edges that meet. */
static void record_dag_scan(struct graph *g, const struct perf_shape *s) {
    int64_t H = s->heads, N = s->length;
    struct dag *d = arena_alloc(&g->host, sizeof *d);
    int32_t *table = arena_alloc(&g->host, (size_t)(12 * N) * sizeof *table);
    if (!d || !table) {
        graph_fail(g, ST_FAIL, "the graph is too large to record: %" PRId64 " nodes", N);
        return;
    }
    int32_t *tail = table, *head = tail + 2 * N, *from = head + 2 * N, *to = from + 4 * N;
    *d = (struct dag){.nodes = N, .tail = tail, .head = head, .from = from, .to = to};
    for (int64_t n = 0; n < N; n++)
        for (int64_t m = n + 1; m <= n + 2 && m < N; m++) {
            for (int64_t e = d->edges > 4 ? d->edges - 4 : 0; e < d->edges; e++) {
                if (head[e] != n) continue;
                from[d->pairs] = (int32_t)e;
                to[d->pairs++] = (int32_t)d->edges;
            }
            tail[d->edges] = (int32_t)n;
            head[d->edges++] = (int32_t)m;
        }
    struct perf_shape edges = *s, pairs = *s;
    edges.length = d->edges;
    pairs.length = d->pairs;
    struct tensor *source = d->edges ? tokens(g, &edges, "source", H) : NULL;
    struct tensor *mark = d->edges ? tokens(g, &edges, "mark", H) : NULL;
    struct tensor *transition = d->pairs ? tokens(g, &pairs, "transition", H) : NULL;
    dag_scan(g, tokens(g, s, "q", H * s->dk), tokens(g, s, "k", H * s->dk), tokens(g, s, "v", H * s->dv), source, mark,
             transition, tokens(g, s, "direct", H), d, H, 1);
}

/* m states a head. */
static void record_scan_plstm(struct graph *g, const struct perf_shape *s) {
    int64_t H = s->heads, J = s->m;
    scan_plstm(g, tokens(g, s, "q", H * s->dk), tokens(g, s, "k", H * s->dk), tokens(g, s, "v", H * s->dv),
               tokens(g, s, "source", H * J), tokens(g, s, "transition", H * J * J), tokens(g, s, "mark", H * J),
               tokens(g, s, "direct", H), H, J, 1 / sqrt((double)s->dk));
}

/* Binary, one row of couplings a level, `length` leaves or more, `blocks` heads. */
static void record_tree_solve(struct graph *g, const struct perf_shape *s) {
    struct tree tree = {.arity = 2, .levels = 1, .leaves = s->length};
    for (int64_t leaves = 1; leaves < s->length; leaves *= 2) tree.levels++;
    int64_t nodes = tree_nodes(&tree), rows = tree.levels - 1;
    struct perf_shape all = *s;
    all.length = nodes;
    struct tree_system system = {.tree = tree, .form = TREE_HERMITIAN, .beta = 0.3};
    if (rows > 0) {
        system.up_re = matrix(g, "up_re", rows, s->blocks);
        system.up_im = matrix(g, "up_im", rows, s->blocks);
    }
    system.u_re = tokens(g, &all, "u_re", s->blocks);
    system.u_im = tokens(g, &all, "u_im", s->blocks);
    struct tensor *x_im;
    tree_solve(g, &system, &x_im);
}

static const struct {
    const struct op *op;
    void (*record)(struct graph *g, const struct perf_shape *s);
    const char *sizes; /* the options it reads */
} ops[] = {
    {&op_linear, record_linear, "batch length dim out"},
    {&op_bias, record_bias, "batch length dim"},
    {&op_scale, record_scale, "batch length dim"},
    {&op_repeat_rows, record_repeat_rows, "batch length dim"},
    {&op_add, record_add, "batch length dim"},
    {&op_sub, record_sub, "batch length dim"},
    {&op_mul, record_mul, "batch length dim"},
    {&op_activate, record_activate, "batch length dim"},
    {&op_silu_mul, record_silu_mul, "batch length dim"},
    {&op_rmsnorm, record_rmsnorm, "batch length dim"},
    {&op_layernorm, record_layernorm, "batch length dim"},
    {&op_embedding, record_embedding, "batch length dim vocab"},
    {&op_dropout, record_dropout, "batch length dim"},
    {&op_cross_entropy, record_cross_entropy, "batch length vocab"},
    {&op_scan_block, record_scan_block, "batch length blocks m gate"},
    {&op_scan_companion, record_scan_companion, "batch length blocks m gate layout"},
    {&op_scan_diag, record_scan_diag, "batch length blocks"},
    {&op_scan_diag_complex, record_scan_diag_complex, "batch length blocks"},
    {&op_scan_lstm, record_scan_lstm, "batch length dim"},
    {&op_scan_outer, record_scan_outer, "batch length heads dk dv"},
    {&op_scan_delta, record_scan_delta, "batch length heads dk dv substeps"},
    {&op_grid_scan, record_grid_scan, "batch length heads dk dv"},
    {&op_dag_scan, record_dag_scan, "batch length heads dk dv"},
    {&op_scan_plstm, record_scan_plstm, "batch length heads dk dv m"},
    {&op_tree_solve, record_tree_solve, "batch length blocks"},
};

/* "batch=128 length=16" for the named options. */
static void describe(const char *sizes, const struct perf_shape *shape, char *text, size_t size) {
    char name[32], value[64];
    size_t used = 0;
    text[0] = 0;
    for (const char *at = sizes; *at;) {
        size_t n = strcspn(at, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, at);
        at += n + strspn(at + n, " ");
        option_format_value(option_find(perf_shape_options, name), shape, value, sizeof value);
        if (used < size) used += (size_t)snprintf(text + used, size - used, "%s%s=%s", used ? " " : "", name, value);
    }
}

enum status perf_record(struct graph *g, const struct op *op, const struct perf_shape *shape, char *text, size_t size,
                        struct error *e) {
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        if (ops[i].op != op) continue;
        describe(ops[i].sizes, shape, text, size);
        ops[i].record(g, shape);
        return g->error.status == ST_OK ? ST_OK : fail(e, g->error.status, "%s", g->error.text);
    }
    describe("length variant", shape, text, size);
    if (!op->example(g, shape->length, (int)shape->variant))
        return fail(e, ST_USAGE, "%s has no example variant %" PRId64, op->name, shape->variant);
    return g->error.status == ST_OK ? ST_OK : fail(e, g->error.status, "%s", g->error.text);
}
