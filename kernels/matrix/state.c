/* state.c - parts that the declarations of the matrix-state recurrences share. See state.h. */
#include "kernels/matrix/state.h"

#include <inttypes.h>

#include "core/graph.h"

bool infer_token_width(struct graph *g, const struct call *c, int i, int64_t width, const char *means) {
    const struct tensor *t = c->in[i], *first = c->in[0];
    if (!t) return true;
    if (t->rank < 3 || first->rank < 3)
        graph_fail(g, ST_USAGE, "%s: %s has rank %d, expected at least 3 (B,T,width)", c->op->name,
                   t->rank < 3 ? t->name : first->name, t->rank < 3 ? t->rank : first->rank);
    else if (t->dims[0] != first->dims[0] || t->dims[1] != first->dims[1])
        graph_fail(g, ST_USAGE,
                   "%s: q is (%" PRId64 ",%" PRId64 ") and input %d (%" PRId64 ",%" PRId64
                   ") in batch and length; they must agree",
                   c->op->name, first->dims[0], first->dims[1], i, t->dims[0], t->dims[1]);
    else if (token_width(t) != width)
        graph_fail(g, ST_USAGE, "%s: input %d is %" PRId64 " wide, expected %s = %" PRId64, c->op->name, i,
                   token_width(t), means, width);
    else
        return true;
    return false;
}

void infer_state_outputs(struct graph *g, struct call *c, const struct state_shape *s) {
    graph_output(g, c, DT_REAL, 3, (int64_t[]){s->B, s->T, s->heads * s->dv});
    struct tensor *kept = graph_output(g, c, DT_REAL, 5, (int64_t[]){s->B, s->chunks, s->heads, s->dk, s->dv});
    if (kept) kept->needs_grad = false;
}
