/* graph.c - building a graph: tensors, parameters, calls. See builder.h and graph.h. */
#include "core/graph.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A training graph may contain two nets. The largest net (most layers, two mixers each) needs half of these numbers. */
#define MAX_CALLS   81920
#define MAX_TENSORS 131072
/* address space for them, names and attributes; it is committed as it is used */
#define HOST_BYTES ((size_t)192 << 20)

enum status graph_create(struct graph *g, const struct graph_options *options, struct params *params, struct error *e) {
    *g = (struct graph){.options = *options, .params = params};
    TRY(arena_reserve(&g->host, HOST_BYTES, e));
    g->calls = arena_alloc(&g->host, MAX_CALLS * sizeof *g->calls);
    g->tensors = arena_alloc(&g->host, MAX_TENSORS * sizeof *g->tensors);
    g->shown = params ? arena_alloc(&g->host, (size_t)params->capacity * sizeof *g->shown) : NULL;
    g->calls_capacity = MAX_CALLS;
    g->tensors_capacity = MAX_TENSORS;
    return ST_OK;
}

void graph_free(struct graph *g) {
    arena_free(&g->memory);
    arena_free(&g->host);
    *g = (struct graph){0};
}

void graph_fail(struct graph *g, enum status status, const char *format, ...) {
    if (g->error.status != ST_OK) return;
    va_list args;
    va_start(args, format);
    g->error.status = status;
    vsnprintf(g->error.text, sizeof g->error.text, format, args);
    va_end(args);
}

/* Fails with the limit that the net exceeds, and advises to use fewer layers. */
static void too_large(struct graph *g, size_t most, const char *of) {
    graph_fail(g, ST_USAGE, "a net has at most %zu %s, and layer %d of this one has more; lower --layers", most, of,
               g->building.layer + 1);
}

void *graph_alloc(struct graph *g, size_t bytes) {
    if (g->error.status != ST_OK) return NULL;
    void *memory = arena_alloc(&g->host, bytes);
    if (!memory) too_large(g, HOST_BYTES >> 20, "MB of calls and tensors");
    return memory;
}

enum status graph_status(const struct graph *g, struct error *e) {
    return g->error.status == ST_OK ? ST_OK : fail(e, g->error.status, "%s", g->error.text);
}

struct graph_builder *graph_builder(struct graph *g) {
    return &g->building;
}

static struct tensor *new_tensor(struct graph *g, const char *name, enum dtype dtype, int rank, const int64_t *dims) {
    if (g->n_tensors == g->tensors_capacity) too_large(g, (size_t)g->tensors_capacity, "tensors");
    struct tensor *t = graph_alloc(g, sizeof *t);
    char *own_name = graph_alloc(g, strlen(name) + 1);
    if (!own_name) return NULL;
    strcpy(own_name, name);
    *t = (struct tensor){.name = own_name, .dtype = dtype, .rank = rank, .producer = -1, .id = g->n_tensors};
    int64_t count = 1;
    for (int i = 0; i < rank; i++) {
        t->dims[i] = dims[i];
        if (dims[i] < 1 || count > INT64_MAX / 16 / dims[i]) {
            graph_fail(g, ST_USAGE, "tensor %s: size %" PRId64 " of axis %d is impossible", name, dims[i], i);
            return NULL;
        }
        count *= dims[i];
    }
    g->tensors[g->n_tensors++] = t;
    return t;
}

struct tensor *graph_input(struct graph *g, const char *name, int rank, const int64_t *dims, bool needs_grad) {
    struct tensor *t = new_tensor(g, name, DT_REAL, rank, dims);
    if (!t) return NULL;
    t->needs_grad = needs_grad;
    t->keep = true;
    return t;
}

struct tensor *graph_input_ids(struct graph *g, const char *name, int rank, const int64_t *dims, int32_t limit,
                               bool ignorable) {
    struct tensor *t = new_tensor(g, name, DT_I32, rank, dims);
    if (!t) return NULL;
    t->keep = true;
    t->limit = limit;
    t->ignorable = ignorable;
    return t;
}

struct tensor *graph_param(struct graph *g, const struct param_spec *spec) {
    if (g->error.status != ST_OK) return NULL;
    char name[256];
    snprintf(name, sizeof name, "%s%s", g->building.scope, spec->name);
    struct param *param = params_declare(g->params, name, spec, &g->error);
    if (!param) return NULL;
    struct tensor **shown = &g->shown[param - g->params->list];
    if (*shown) return *shown;
    struct tensor *t = new_tensor(g, name, DT_REAL, spec->rank, spec->dims);
    if (!t) return NULL;
    *shown = t;
    t->param = param;
    t->keep = true;
    t->needs_grad = spec->group != PARAM_CONST;
    return t;
}

void graph_scope_push(struct graph *g, const char *name) {
    struct graph_builder *b = &g->building;
    size_t n = strlen(b->scope);
    if (b->scope_depth == (int)(sizeof b->scope_ends / sizeof *b->scope_ends) ||
        n + strlen(name) + 2 > sizeof b->scope) {
        graph_fail(g, ST_FAIL, "parameter names nest too deep or are too long at %s%s", b->scope, name);
        return;
    }
    b->scope_ends[b->scope_depth++] = n;
    snprintf(b->scope + n, sizeof b->scope - n, "%s.", name);
}

void graph_scope_pop(struct graph *g) {
    struct graph_builder *b = &g->building;
    if (b->scope_depth) b->scope[b->scope_ends[--b->scope_depth]] = 0;
}

/* Gradients are written for each input, so two inputs of a call must not share one. */
static bool inputs_distinct(struct graph *g, const struct op *op, struct tensor *const *in, int n_in) {
    for (int i = 0; i < n_in; i++)
        for (int j = 0; j < i; j++)
            if (in[i] && in[j] && in[i]->needs_grad && tensor_base(in[i]) == tensor_base(in[j])) {
                graph_fail(g, ST_FAIL, "%s: inputs %d and %d are the same tensor %s; take a copy", op->name, j, i,
                           in[i]->name);
                return false;
            }
    return true;
}

struct call *graph_call(struct graph *g, const struct op *op, const void *attr, size_t attr_bytes,
                        struct tensor *const *in, int n_in) {
    if (g->error.status != ST_OK || !inputs_distinct(g, op, in, n_in)) return NULL;
    if (g->n_calls == g->calls_capacity) too_large(g, (size_t)g->calls_capacity, "calls of ops");
    void *own_attr = attr ? graph_alloc(g, attr_bytes) : NULL;
    if (g->error.status != ST_OK) return NULL;
    if (attr) memcpy(own_attr, attr, attr_bytes);
    struct call *c = &g->calls[g->n_calls];
    *c = (struct call){
        .op = op, .attr = own_attr, .attr_bytes = attr ? attr_bytes : 0, .n_in = n_in, .index = g->n_calls};
    if (g->n_calls > 0) c->stream = c[-1].stream + 1 + c[-1].op->fuses;
    c->place = g->options.place;
    c->precision = g->options.precision;
    for (int i = 0; i < n_in; i++) c->in[i] = in[i];
    g->n_calls++;
    op->infer(g, c);
    return g->error.status == ST_OK ? c : NULL;
}

struct tensor *graph_output(struct graph *g, struct call *c, enum dtype dtype, int rank, const int64_t *dims) {
    char name[64];
    snprintf(name, sizeof name, "%s.%d.%d", c->op->name, c->index, c->n_out);
    struct tensor *t = new_tensor(g, name, dtype, rank, dims);
    if (!t) return NULL;
    t->producer = c->index;
    for (int i = 0; i < c->n_in; i++)
        if (dtype == DT_REAL && c->in[i] && c->in[i]->needs_grad && !((c->op->no_grad_in >> i) & 1u))
            t->needs_grad = true;
    c->out[c->n_out++] = t;
    return t;
}

struct tensor *graph_reshape(struct graph *g, struct tensor *t, int rank, const int64_t *dims) {
    if (!t) return NULL;
    struct tensor *view = new_tensor(g, t->name, t->dtype, rank, dims);
    if (!view) return NULL;
    if (tensor_count(view) != tensor_count(t)) {
        graph_fail(g, ST_FAIL, "reshape of %s: %" PRId64 " elements cannot become %" PRId64, t->name, tensor_count(t),
                   tensor_count(view));
        return NULL;
    }
    view->base = tensor_base(t);
    view->needs_grad = t->needs_grad;
    view->producer = t->producer;
    return view;
}

void graph_keep_term(struct graph *g, const struct graph_term *term) {
    if (!g->options.training) return;
    struct graph_term *kept = graph_alloc(g, sizeof *kept), **end = &g->building.terms;
    if (!kept) return;
    *kept = *term;
    kept->next = NULL;
    while (*end) end = &(*end)->next;
    *end = kept;
}

void graph_set_root(struct graph *g, struct tensor *t) {
    g->root = t;
    tensor_keep(t);
}

struct cost call_cost(const struct call *c, enum pass pass) {
    struct cost cost = c->op->cost(c, pass);
    double bytes = (double)precision_bytes(c->precision), fewer = sizeof(real) - bytes;
    for (int j = 0; j < c->n_out && pass == PASS_FORWARD; j++) {
        const struct tensor *y = c->out[j];
        cost.bytes += (double)tensor_count(y) * (y->rounded ? -fewer : y->copied ? bytes : 0);
    }
    for (int i = 0; i < c->n_in && pass == PASS_BACKWARD; i++) {
        const struct tensor *x = c->din[i] ? c->in[i] : NULL;
        if (x) cost.bytes += (double)tensor_count(x) * (x->grad_rounded ? -fewer : x->grad_copied ? bytes : 0);
    }
    if (pass == PASS_FORWARD) cost.bytes += (double)c->rounds.n * (sizeof(real) + bytes);
    return cost;
}

struct cost graph_cost(const struct graph *g, enum pass pass) {
    struct cost total = {0, 0};
    for (int i = 0; i < g->n_calls; i++) {
        const struct call *c = &g->calls[i];
        if (pass == PASS_BACKWARD && !c->plan.active) continue;
        struct cost cost = call_cost(c, pass);
        total.flops += cost.flops;
        total.bytes += cost.bytes;
    }
    return total;
}
