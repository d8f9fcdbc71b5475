/* graph_plan.c - choice of kernels and the memory plan.
 *
 * Time runs over the forward walk, 0..n-1, then the backward walk: the gradient of call i runs at 2n-1-i. Every buffer
 * (activation, gradient, workspace) lives over one interval of time; two buffers may share memory if their intervals do
 * not meet. Buffers are placed largest first at the lowest offset that is free over their interval. */
#include "core/graph_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_guard.h"

static bool wants_gradient(const struct call *c, int i) {
    return c->in[i] && c->in[i]->needs_grad && !((c->op->no_grad_in >> i) & 1u);
}

/* --- choice of kernels ------------------------------------------------------------------------------------------ */

static bool applies(const struct kernel *k, const struct call *c, const char **why) {
    return !k->applicable || k->applicable(c, why);
}

const struct kernel *graph_kernel_unasked(const struct graph *g, const struct call *c, const char **why) {
    *why = "no kernel of this op is registered for the device";
    for (const struct kernel *const *k = g->options.kernels; *k; k++) {
        if ((*k)->op != c->op || (*k)->device != graph_device(g) || !applies(*k, c, why)) continue;
        if (!(*k)->preferred || (*k)->preferred(c)) return *k;
    }
    return NULL;
}

/* The kernel of the call's op that --kernel names; NULL: none. */
static const struct kernel *forced_kernel(const struct graph *g, const struct call *c) {
    const char *forced = g->options.kernel;
    for (const struct kernel *const *k = g->options.kernels; *k && forced; k++) {
        if ((*k)->op != c->op || (*k)->device != graph_device(g)) continue;
        if (!strcmp(forced, "reference") ? (*k)->reference : !strcmp(forced, (*k)->name)) return *k;
    }
    return NULL;
}

static enum status choose_kernel(struct graph *g, struct call *c, struct error *e) {
    const struct kernel *forced = forced_kernel(g, c);
    const char *why = "it gives no reason";
    if (forced && !applies(forced, c, &why))
        return fail(e, ST_USAGE, "kernel %s does not apply: %s", forced->name, why);
    c->kernel = forced ? forced : graph_kernel_unasked(g, c, &why);
    return c->kernel ? ST_OK : fail(e, ST_USAGE, "op %s cannot run: %s", c->op->name, why);
}

static enum status choose_kernels(struct graph *g, struct error *e) {
    const char *forced = g->options.kernel;
    if (forced && !strcmp(forced, "reference") && graph_device(g) != DEVICE_CPU)
        return fail(e, ST_USAGE, "--kernel reference: the references run on the CPU alone; use --device cpu");
    for (int i = 0; i < g->n_calls; i++) TRY(choose_kernel(g, &g->calls[i], e));
    return ST_OK;
}

/* --- lifetimes ---------------------------------------------------------------------------------------------------- */

static struct plan_buffer *add_buffer(struct graph *g, size_t bytes, int first, int last) {
    struct plan_buffer *b = &g->buffers[g->n_buffers++];
    *b = (struct plan_buffer){
        .used = bytes, .bytes = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN, .first = first, .last = last};
    return b;
}

/* Which calls have a gradient to compute: those whose outputs the root depends on through tensors that want one. */
static void mark_active(struct graph *g) {
    for (int i = 0; i < g->n_tensors; i++) g->tensors[i]->has_grad = false;
    if (!g->options.training || !g->root) return;
    tensor_base(g->root)->has_grad = true;
    for (int i = g->n_calls - 1; i >= 0; i--) {
        struct call *c = &g->calls[i];
        bool reached = false, wanted = false;
        for (int j = 0; j < c->n_out; j++) reached |= tensor_base(c->out[j])->has_grad;
        for (int j = 0; j < c->n_in; j++) wanted |= wants_gradient(c, j);
        c->active = reached && wanted;
        if (!c->active) continue;
        struct tensor *first = tensor_base(c->out[0]);
        c->zero_dout = !first->has_grad;
        first->has_grad = true;
        for (int j = 0; j < c->n_in; j++)
            if (wants_gradient(c, j)) tensor_base(c->in[j])->has_grad = true;
    }
}

static void extend(struct tensor *t, int time) {
    struct tensor *base = tensor_base(t);
    if (time > base->value_last) base->value_last = time;
}

/* The last moment each value is read. */
static void value_lifetimes(struct graph *g) {
    int end = 2 * g->n_calls;
    for (int i = 0; i < g->n_tensors; i++)
        g->tensors[i]->value_last = g->tensors[i]->keep ? end : g->tensors[i]->producer;
    for (int i = 0; i < g->n_calls; i++) {
        const struct call *c = &g->calls[i];
        for (int j = 0; j < c->n_in; j++) {
            if (!c->in[j]) continue;
            extend(c->in[j], i);
            if (c->active && (c->op->needs_in >> j & 1u)) extend(c->in[j], graph_backward_time(g, i));
        }
        for (int j = 0; j < c->n_out; j++)
            if (c->active && (c->op->needs_out >> j & 1u)) extend(c->out[j], graph_backward_time(g, i));
    }
}

/* The first moment each gradient is written: by its last consumer, which comes first in the backward walk. */
static void gradient_lifetimes(struct graph *g) {
    for (int i = 0; i < g->n_tensors; i++) g->tensors[i]->grad_first = -1;
    for (int i = g->n_calls - 1; i >= 0; i--) {
        const struct call *c = &g->calls[i];
        if (!c->active) continue;
        if (c->zero_dout) tensor_base(c->out[0])->grad_first = graph_backward_time(g, i);
        for (int j = 0; j < c->n_in; j++) {
            if (!wants_gradient(c, j)) continue;
            struct tensor *t = tensor_base(c->in[j]);
            if (t->grad_first < 0) t->grad_first = graph_backward_time(g, i);
        }
    }
}

static void add_tensor_buffers(struct graph *g) {
    int end = 2 * g->n_calls;
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i];
        t->value_buffer = t->grad_buffer = -1;
        if (t->base || t->param || t->data) continue;
        t->value_buffer = g->n_buffers;
        add_buffer(g, tensor_bytes(t), t->producer, t->value_last);
        if (!t->has_grad) continue;
        bool root = g->root && t == tensor_base(g->root);
        int first = root ? -1 : t->grad_first;
        int last = t->producer < 0 || t->keep ? end : graph_backward_time(g, t->producer);
        t->grad_buffer = g->n_buffers;
        add_buffer(g, (size_t)tensor_count(t) * sizeof(real), first, last);
    }
}

static void add_workspaces(struct graph *g) {
    for (int i = 0; i < g->n_calls; i++) {
        struct call *c = &g->calls[i];
        c->workspace_buffer[PASS_FORWARD] = c->workspace_buffer[PASS_BACKWARD] = -1;
        c->guards = g->options.guards;
        if (!c->kernel->workspace) continue;
        for (int pass = PASS_FORWARD; pass <= (c->active ? PASS_BACKWARD : PASS_FORWARD); pass++) {
            size_t bytes = c->kernel->workspace(c, (enum pass)pass);
            if (!bytes) continue;
            int time = pass == PASS_FORWARD ? i : graph_backward_time(g, i);
            c->workspace_buffer[pass] = g->n_buffers;
            add_buffer(g, bytes, time, time);
        }
    }
}

/* A device reads tables in every walk, so they keep their place. */
static void add_tables(struct graph *g) {
    for (int i = 0; i < g->n_calls; i++) {
        struct call *c = &g->calls[i];
        int64_t n = c->op->table && graph_device(g) != DEVICE_CPU ? c->op->table(c, NULL) : 0;
        c->table_buffer = n > 0 ? g->n_buffers : -1;
        if (n > 0) add_buffer(g, (size_t)n * sizeof *c->table, -1, 2 * g->n_calls);
    }
}

/* --- placement ---------------------------------------------------------------------------------------------------- */

static int larger_first(const void *a, const void *b) {
    const struct plan_buffer *x = *(struct plan_buffer *const *)a, *y = *(struct plan_buffer *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : 1; /* a total order: the plan does not depend on the sort */
}

static bool overlap_in_time(const struct plan_buffer *a, const struct plan_buffer *b) {
    return a->first <= b->last && b->first <= a->last;
}

/* Lowest offset where `b` fits among the placed buffers (kept in ascending offset) that live at the same time. */
static size_t lowest_fit(struct plan_buffer *const *placed, int n, const struct plan_buffer *b, size_t guard) {
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (!overlap_in_time(placed[i], b)) continue;
        if (at + b->bytes + guard <= placed[i]->offset) return at;
        size_t end = placed[i]->offset + placed[i]->bytes + guard;
        if (end > at) at = end;
    }
    return at;
}

static enum status lay_out(struct graph *g, struct error *e) {
    size_t guard = g->options.guards ? ARENA_GUARD : 0;
    size_t mark = arena_mark(&g->host), table = (size_t)(g->n_buffers + 1) * sizeof(struct plan_buffer *);
    struct plan_buffer **order = arena_alloc(&g->host, table), **placed = arena_alloc(&g->host, table);
    if (!order || !placed) return fail(e, ST_FAIL, "the graph is too large to plan: %d buffers", g->n_buffers);
    for (int i = 0; i < g->n_buffers; i++) order[i] = &g->buffers[i];
    qsort(order, (size_t)g->n_buffers, sizeof *order, larger_first);
    g->planned_bytes = g->sum_bytes = 0;
    for (int n = 0; n < g->n_buffers; n++) {
        struct plan_buffer *b = order[n];
        b->offset = lowest_fit(placed, n, b, guard);
        int slot = n;
        for (; slot > 0 && placed[slot - 1]->offset > b->offset; slot--) placed[slot] = placed[slot - 1];
        placed[slot] = b;
        if (b->offset + b->bytes + guard > g->planned_bytes) g->planned_bytes = b->offset + b->bytes + guard;
        g->sum_bytes += b->bytes;
    }
    arena_release(&g->host, mark);
    return ST_OK;
}

static enum status make_plan(struct graph *g, struct error *e) {
    if (g->error.status != ST_OK) return fail(e, g->error.status, "%s", g->error.text);
    TRY(choose_kernels(g, e));
    mark_active(g);
    value_lifetimes(g);
    gradient_lifetimes(g);
    size_t most = (size_t)(2 * g->n_tensors + 3 * g->n_calls + 1) * sizeof *g->buffers;
    if (!g->buffers) g->buffers = arena_alloc(&g->host, most);
    if (!g->buffers) return fail(e, ST_FAIL, "the graph is too large to plan: %d tensors", g->n_tensors);
    g->n_buffers = 0;
    add_tensor_buffers(g);
    add_workspaces(g);
    add_tables(g);
    return lay_out(g, e);
}

enum status graph_measure(struct graph *g, size_t *bytes, struct error *e) {
    TRY(make_plan(g, e));
    *bytes = g->planned_bytes;
    return ST_OK;
}

size_t graph_live_bytes(const struct graph *g) {
    size_t most = 0;
    for (int i = 0; i < g->n_buffers; i++) { /* it is reached at a moment at which a buffer begins to live */
        size_t live = 0;
        for (int k = 0; k < g->n_buffers; k++)
            if (g->buffers[k].first <= g->buffers[i].first && g->buffers[i].first <= g->buffers[k].last)
                live += g->buffers[k].bytes;
        if (live > most) most = live;
    }
    return most;
}

/* --- binding ------------------------------------------------------------------------------------------------------ */

static void *address(const struct graph *g, int buffer) {
    return buffer < 0 ? NULL : g->base + g->buffers[buffer].offset;
}

static void bind_tensors(struct graph *g) {
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i];
        if (t->base) continue;
        if (t->param) {
            t->data = g->params->value + t->param->offset;
            t->grad = t->has_grad ? g->params->grad + t->param->offset : NULL;
        } else if (t->value_buffer >= 0) {
            t->data = address(g, t->value_buffer);
            t->grad = address(g, t->grad_buffer);
        }
    }
    for (int i = 0; i < g->n_tensors; i++) { /* views last: bases are bound */
        struct tensor *t = g->tensors[i];
        if (!t->base) continue;
        t->data = t->base->data;
        t->grad = t->base->grad;
    }
}

/* The first writer of a gradient overwrites, the later ones add. */
static void bind_calls(struct graph *g) {
    for (int i = 0; i < g->n_tensors; i++) g->tensors[i]->written = false;
    for (int i = g->n_calls - 1; i >= 0; i--) {
        struct call *c = &g->calls[i];
        c->accumulate = 0;
        for (int j = 0; j < c->n_in; j++) c->din[j] = NULL;
        if (!c->active) continue;
        for (int j = 0; j < c->n_in; j++) {
            if (!wants_gradient(c, j)) continue;
            struct tensor *t = tensor_base(c->in[j]);
            c->din[j] = t->grad;
            if (t->written || t == tensor_base(g->root)) c->accumulate |= 1u << j;
            t->written = true;
        }
    }
    for (int i = 0; i < g->n_calls; i++)
        for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
            struct call *c = &g->calls[i];
            c->scratch[pass] = address(g, c->workspace_buffer[pass]);
            c->scratch_bytes[pass] = c->scratch[pass] ? g->buffers[c->workspace_buffer[pass]].used : 0;
        }
}

static enum status fill_tables(struct graph *g, struct error *e) {
    for (int i = 0; i < g->n_calls; i++) {
        struct call *c = &g->calls[i];
        int32_t *table = address(g, c->table_buffer);
        c->table = table;
        if (!table) continue;
        size_t bytes = g->buffers[c->table_buffer].used, mark = arena_mark(&g->host);
        int32_t *here = arena_alloc(&g->host, bytes);
        if (!here)
            return fail(e, ST_MEMORY, "the graph is too large: a table of op %s has %zu bytes", c->op->name, bytes);
        c->op->table(c, here);
        place_put(g->options.place, table, here, bytes);
        arena_release(&g->host, mark);
    }
    return ST_OK;
}

static enum status reserve(struct graph *g, struct error *e) {
    const struct graph *other = g->options.beside;
    if (other && other->base && g->planned_bytes <= other->planned_bytes) {
        g->base = other->base;
        return ST_OK;
    }
    TRY(place_reserve(g->options.place, &g->memory, g->planned_bytes, e));
    g->base = g->memory.base;
    return ST_OK;
}

void graph_add_gradients(struct graph *g) {
    g->adds = true;
    for (int i = 0; i < g->n_calls; i++)
        for (int j = 0; j < g->calls[i].n_in; j++)
            if (g->calls[i].din[j] && tensor_base(g->calls[i].in[j])->param) g->calls[i].accumulate |= 1u << j;
}

bool graph_keeps_root(const struct graph *g) {
    if (graph_device(g) == DEVICE_CPU || !g->root || tensor_count(g->root) != 1) return false;
    const struct tensor *base = tensor_base(g->root);
    return base->grad_buffer >= 0 && !base->written;
}

enum status graph_plan(struct graph *g, struct error *e) {
    TRY(make_plan(g, e));
    TRY(reserve(g, e));
    bind_tensors(g);
    bind_calls(g);
    if (g->options.guards) guard_before(g, -1);
    if (graph_keeps_root(g)) place_fill(g->options.place, g->root->grad, 1, 1);
    return fill_tables(g, e);
}
