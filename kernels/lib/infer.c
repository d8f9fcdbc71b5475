/* infer.c - parts that the declarations of ops share. See infer.h. */
#include "kernels/lib/infer.h"

#include <inttypes.h>
#include <stdio.h>

bool infer_present(struct graph *g, const struct call *c, int n_required) {
    for (int i = 0; i < n_required; i++) {
        if (c->in[i]) continue;
        graph_fail(g, ST_FAIL, "%s: input %d is missing", c->op->name, i);
        return false;
    }
    return true;
}

static const char *shape_text(const struct tensor *t, char *buffer, size_t size) {
    size_t n = 0;
    for (int i = 0; i < t->rank && n < size; i++)
        n += (size_t)snprintf(buffer + n, size - n, "%s%" PRId64, i ? "," : "(", t->dims[i]);
    if (n < size) snprintf(buffer + n, size - n, ")");
    return buffer;
}

bool infer_same_shape(struct graph *g, const struct call *c, int i, int j) {
    const struct tensor *a = c->in[i], *b = c->in[j];
    bool same = a->rank == b->rank;
    for (int k = 0; same && k < a->rank; k++) same = a->dims[k] == b->dims[k];
    if (same) return true;
    char a_text[128], b_text[128];
    graph_fail(g, ST_USAGE, "%s: %s has shape %s but %s has %s; they must agree", c->op->name, a->name,
               shape_text(a, a_text, sizeof a_text), b->name, shape_text(b, b_text, sizeof b_text));
    return false;
}

bool infer_vector(struct graph *g, const struct call *c, const struct tensor *x, const struct tensor *v,
                  const char *vector_name) {
    if (v->rank == 1 && v->dims[0] == tensor_cols(x)) return true;
    char text[128];
    graph_fail(g, ST_USAGE, "%s: x has %" PRId64 " columns but %s has shape %s; expected (%" PRId64 ")", c->op->name,
               tensor_cols(x), vector_name, shape_text(v, text, sizeof text), tensor_cols(x));
    return false;
}

struct tensor *call1(struct graph *g, const struct op *op, const void *attr, size_t attr_bytes,
                     struct tensor *const *in, int n_in) {
    struct call *c = graph_call(g, op, attr, attr_bytes, in, n_in);
    return c ? c->out[0] : NULL;
}
