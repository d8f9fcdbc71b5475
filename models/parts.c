/* parts.c - see parts.h. */
#include "models/parts.h"

#include <inttypes.h>

#include "core/arena.h"
#include "kernels/dense/dense.h"
#include "kernels/move/move.h"

struct tensor *mapped_gates(struct graph *g, struct tensor *x, const struct gate_map *r) {
    if (r->selective == SELECTIVE_POINTWISE) {
        struct tensor *z = scale_by(g, x, 1); /* a copy, since the inputs of join_columns must differ */
        while (z && z->dims[2] < r->rows) z = join_columns(g, z, x);
        z = scale(g, z, vector(g, "gates.scale", r->rows, init_linear(1, r->gain), r->bias));
        return bias(g, z, vector(g, "gates.bias", r->rows, (struct init){.kind = INIT_ZERO}, r->bias));
    }
    if (r->selective == SELECTIVE_NO) {
        struct init small = {.kind = INIT_NORMAL, .b = 0.02};
        return repeat_rows(g, vector(g, "gates.bias", r->rows, small, r->bias), x->dims[0], x->dims[1]);
    }
    struct tensor *w = weight(g, "gates.weight", r->rows, x->dims[2], r->gain, r->weight);
    return linear(g, x, w, vector(g, "gates.bias", r->rows, (struct init){.kind = INIT_ZERO}, r->bias));
}

struct tensor *affine_map(struct graph *g, struct tensor *x, const char *name, int64_t out) {
    if (!x) return NULL;
    int64_t in = x->dims[x->rank - 1];
    graph_scope_push(g, name);
    struct tensor *w = weight(g, "weight", out, in, 1, AS_CONTRACT);
    struct tensor *y = linear(g, x, w, vector(g, "bias", out, init_linear(in, 1), AS_CONTRACT));
    graph_scope_pop(g);
    return y;
}

enum status check_heads(const char *mixer, int64_t heads, const struct dims *d, struct error *e) {
    if (d->D % heads == 0) return ST_OK;
    return fail(e, ST_USAGE, "%s: heads=%" PRId64 " does not divide dim=%" PRId64 "; choose heads that do", mixer,
                heads, d->D);
}

enum status check_gate_start(const char *mixer, enum selective selective, double gate_init, struct error *e) {
    if (selective != SELECTIVE_NO || gate_init == 1) return ST_OK;
    return fail(e, ST_USAGE,
                "%s: gate-init=%g is a factor on the weights of gates that read the input, and selective=no has none; "
                "leave one of them out",
                mixer, gate_init);
}

enum status check_room(const char *asked, const char *what, double floats, const struct dims *d, struct error *e) {
    double bytes = floats * sizeof(real);
    if (bytes <= (double)machine_memory_bytes()) return ST_OK;
    return fail(e, ST_USAGE,
                "%s at batch %" PRId64 " length %" PRId64 " needs %.0f MB for the %s alone but the machine has %zu MB",
                asked, d->B, d->T, bytes / 1048576, what, machine_memory_bytes() >> 20);
}
