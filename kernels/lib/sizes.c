/* sizes.c - see sizes.h. */
#include "kernels/lib/sizes.h"

#include <inttypes.h>

struct tensor *input_tokens(struct graph *g, const struct op_sizes *s, const char *name, int64_t width) {
    return graph_input(g, name, 3, (int64_t[]){s->batch, s->length, width}, true);
}

struct tensor *input_heads(struct graph *g, const struct op_sizes *s, const char *name, int64_t width) {
    return graph_input(g, name, 4, (int64_t[]){s->batch, s->length, s->heads, width}, true);
}

struct tensor *input_matrix(struct graph *g, const char *name, int64_t rows, int64_t columns) {
    return graph_input(g, name, 2, (int64_t[]){rows, columns}, true);
}

struct tensor *input_vector(struct graph *g, const char *name, int64_t n) {
    return graph_input(g, name, 1, &n, true);
}

struct tensor *input_ids(struct graph *g, const struct op_sizes *s, const char *name) {
    return graph_input_ids(g, name, 2, (int64_t[]){s->batch, s->length}, (int32_t)s->vocab, false);
}

struct tensor *input_lengths(struct graph *g, const struct op_sizes *s) {
    return graph_input_ids(g, "lengths", 1, &s->batch, (int32_t)s->length + 1, false);
}

struct tensor *input_constant(struct tensor *t) {
    if (t) t->needs_grad = false;
    return t;
}

int32_t *input_table(struct graph *g, int64_t n) {
    return graph_alloc(g, (size_t)n * sizeof(int32_t));
}
