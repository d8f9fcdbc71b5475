/* embedding.c - y[r] = table[ids[r]]: the op and its reference.
 *
 * Gradient: dtable[v] = sum of dy[r] over the rows r with ids[r] = v. The ids have no gradient. */
#include <inttypes.h>
#include <string.h>

#include "kernels/dense/dense.h"
#include "kernels/lib/infer.h"
#include "kernels/lib/sizes.h"
#include "kernels/lib/scratch.h"

struct tensor *embedding(struct graph *g, struct tensor *ids, struct tensor *table) {
    return call1(g, &op_embedding, NULL, 0, (struct tensor *[]){ids, table}, 2);
}

static void embedding_infer(struct graph *g, struct call *c) {
    if (!infer_present(g, c, 2)) return;
    const struct tensor *ids = c->in[0], *table = c->in[1];
    if (ids->dtype != DT_I32 || table->rank != 2 || ids->rank == TENSOR_MAX_RANK) {
        graph_fail(g, ST_FAIL,
                   "embedding: expected int32 ids of rank 1 to %d and a table of rank 2, got ranks %d and %d",
                   TENSOR_MAX_RANK - 1, ids->rank, table->rank);
    } else if (ids->limit > table->dims[0]) {
        graph_fail(g, ST_USAGE, "embedding: ids go up to %" PRId32 " but the table has %" PRId64 " rows",
                   ids->limit - 1, table->dims[0]);
    } else {
        int64_t dims[TENSOR_MAX_RANK];
        for (int i = 0; i < ids->rank; i++) dims[i] = ids->dims[i];
        dims[ids->rank] = table->dims[1];
        graph_output(g, c, DT_REAL, ids->rank + 1, dims);
    }
}

/* Counts the bytes of every row of y, of the ids, and of each table row at most once. */
static struct cost embedding_cost(const struct call *c, enum pass pass) {
    double y = (double)tensor_count(c->out[0]), rows = (double)tensor_count(c->in[0]);
    double table = (double)tensor_count(c->in[1]), touched = table < y || pass == PASS_BACKWARD ? table : y;
    return (struct cost){pass == PASS_FORWARD ? 0 : y, sizeof(real) * (y + touched) + sizeof(int32_t) * rows};
}

static bool embedding_build(struct graph *g, const struct op_sizes *s) {
    if (s->variant > 0) return false;
    embedding(g, input_ids(g, s, "ids"), input_matrix(g, "table", s->vocab, s->dim));
    return true;
}

const struct op op_embedding = {
    .name = "embedding",
    .maths = "y[r] = table[ids[r]]",
    .source = "",
    .needs_in = 1,
    .no_grad_in = 1,
    .infer = embedding_infer,
    .cost = embedding_cost,
    .sizes = "batch length dim vocab",
    .build = embedding_build,
};

static void embedding_ref_forward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_count(c->in[0]), D = c->in[1]->dims[1];
    const int32_t *ids = tensor_i32(c->in[0]);
    const real *table = tensor_real(c->in[1]);
    real *y = tensor_real(c->out[0]);
    for (int64_t r = 0; r < rows; r++) memcpy(y + r * D, table + ids[r] * D, (size_t)D * sizeof *y);
}

static size_t embedding_ref_workspace(const struct call *c, enum pass pass) {
    return scratch_single(c, pass == PASS_FORWARD ? 0 : (size_t)tensor_count(c->in[1]) * sizeof(double));
}

static void embedding_ref_backward(const struct call *c, const struct exec *exec) {
    (void)exec;
    int64_t rows = tensor_count(c->in[0]), V = c->in[1]->dims[0], D = c->in[1]->dims[1];
    const int32_t *ids = tensor_i32(c->in[0]);
    const real *dy = call_dout(c, 0);
    double *sum = c->scratch[PASS_BACKWARD];
    if (!c->din[1]) return;
    for (int64_t i = 0; i < V * D; i++) sum[i] = 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < D; i++) sum[ids[r] * D + i] += dy[r * D + i];
    for (int64_t i = 0; i < V * D; i++) put(&c->din[1][i], call_accumulates(c, 1), (real)sum[i]);
}

const struct kernel kernel_embedding_ref = {
    .name = "embedding_ref",
    .op = &op_embedding,
    .device = DEVICE_CPU,
    .reference = true,
    .workspace = embedding_ref_workspace,
    .forward = embedding_ref_forward,
    .backward = embedding_ref_backward,
};
