/* graph_plan.c - chooses kernels, decides what is stored rounded for products, and plans the memory.
 *
 * Time counts the calls of the forward walk, 0..n-1, and then those of the backward walk: the gradient of call i is
 * computed at 2n-1-i. Every buffer (activation, gradient, workspace) is live in one interval of time. Two buffers may
 * share memory if their intervals do not overlap. Buffers are placed from the largest to the smallest, each at the
 * lowest offset that is free in its interval. */
#include "core/graph_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Returns the kernel that --kernel names, if it is for the call's op; else NULL. */
static const struct kernel *forced_kernel(const struct graph *g, const struct call *c) {
    const char *forced = g->options.kernel;
    for (const struct kernel *const *k = g->options.kernels; *k && forced; k++) {
        if ((*k)->op != c->op || (*k)->device != graph_device(g)) continue;
        if (!strcmp(forced, "reference") ? (*k)->reference : !strcmp(forced, (*k)->name)) return *k;
    }
    return NULL;
}

static enum status choose_kernels(struct graph *g, struct error *e) {
    const char *asked = g->options.kernel;
    if (asked && !strcmp(asked, "reference") && graph_device(g) != DEVICE_CPU)
        return fail(e, ST_USAGE, "--kernel reference: the references run on the CPU alone; use --device cpu");
    for (struct call *c = g->calls; c < g->calls + g->n_calls; c++) {
        const struct kernel *forced = forced_kernel(g, c);
        const char *why = "it gives no reason";
        if (forced && !applies(forced, c, &why))
            return fail(e, ST_USAGE, "kernel %s does not apply: %s", forced->name, why);
        c->kernel = forced ? forced : graph_kernel_unasked(g, c, &why);
        if (!c->kernel) return fail(e, ST_USAGE, "op %s cannot run: %s", c->op->name, why);
    }
    return ST_OK;
}

/* --- lifetimes ---------------------------------------------------------------------------------------------------- */

static struct plan_buffer *add_buffer(struct graph *g, size_t bytes, int first, int last) {
    struct plan_buffer *b = &g->plan->buffers[g->plan->n_buffers++];
    *b = (struct plan_buffer){
        .used = bytes, .bytes = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN, .first = first, .last = last};
    return b;
}

/* Marks the calls whose gradient is needed: the root depends on their outputs through tensors that need a gradient. */
static void mark_active(struct graph *g) {
    for (int i = 0; i < g->n_tensors; i++) g->tensors[i]->plan.has_grad = false, g->tensors[i]->plan.grad_writers = 0;
    if (!g->options.training || !g->root) return;
    tensor_base(g->root)->plan.has_grad = true;
    for (int i = g->n_calls - 1; i >= 0; i--) {
        struct call *c = &g->calls[i];
        bool reached = false, wanted = false;
        for (int j = 0; j < c->n_out; j++) reached |= tensor_base(c->out[j])->plan.has_grad;
        for (int j = 0; j < c->n_in; j++) wanted |= wants_gradient(c, j);
        c->plan.active = reached && wanted;
        if (!c->plan.active) continue;
        struct tensor *first = tensor_base(c->out[0]);
        c->plan.zero_dout = !first->plan.has_grad;
        first->plan.has_grad = true;
        for (int j = 0; j < c->n_in; j++) {
            if (!wants_gradient(c, j)) continue;
            struct tensor *t = tensor_base(c->in[j]);
            t->plan.has_grad = true;
            t->plan.grad_writers++;
        }
    }
}

/* Whether the gradients of the call's parameters may wait until the walk ends, because no other call adds to them. A
 * graph input counts as a parameter here. */
static bool may_defer(const struct call *c) {
    if (!c->plan.active || !c->kernel->defers || !c->kernel->defers(c)) return false;
    for (int j = 0; j < c->n_in; j++) {
        const struct tensor *t = wants_gradient(c, j) ? tensor_base(c->in[j]) : NULL;
        if (t && t->producer < 0 && t->plan.grad_writers > 1) return false;
    }
    return true;
}

/* Finds the calls that leave gradients to kernel->finish. All are of the first kernel that does so. */
static void mark_deferred(struct graph *g) {
    struct deferred *d = &g->plan->deferred;
    d->n = 0;
    for (struct call *c = g->calls; c < g->calls + g->n_calls; c++) {
        c->deferred = may_defer(c) && (d->n == 0 || d->calls[0]->kernel == c->kernel);
        if (c->deferred) d->calls[d->n++] = c;
    }
}

/* Returns which output of its producer the tensor is; -1: it is none. */
static int output_index(const struct graph *g, const struct tensor *t) {
    const struct call *c = t->producer >= 0 ? &g->calls[t->producer] : NULL;
    for (int j = 0; c && j < c->n_out; j++)
        if (c->out[j] == t) return j;
    return -1;
}

/* Whether the tensor's producer can store it rounded, and neither the caller nor the producer's gradient reads it. */
static bool can_be_rounded(const struct graph *g, const struct tensor *t) {
    int j = output_index(g, t);
    if (j < 0 || t->dtype != DT_REAL || t->base || t->keep || (g->root && t == tensor_base(g->root))) return false;
    const struct call *c = &g->calls[t->producer];
    return c->kernel->rounds_out >> j & 1u && !(c->plan.active && c->op->needs_out >> j & 1u);
}

static bool is_factor(const struct call *c, int i) {
    return c->kernel->is_factor && c->kernel->is_factor(c, i);
}

/* Marks what is stored rounded: values that only products read, and gradients of a product's output that only one call
 * writes. Then no product needs a launch of its own to round them. Parameters that a product reads are rounded too, all
 * at once, in a copy. */
static void mark_rounded(struct graph *g) {
    bool reduced = g->options.precision != PRECISION_FULL;
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i];
        const struct call *c = t->producer >= 0 ? &g->calls[t->producer] : NULL;
        t->rounded = reduced && can_be_rounded(g, t);
        t->grad_rounded = reduced && c && !t->base && !t->keep && t->plan.has_grad && !c->plan.zero_dout &&
                          t != tensor_base(g->root) && is_factor(c, -1);
    }
    for (struct call *c = g->calls; c < g->calls + g->n_calls; c++)
        for (int i = 0; i < c->n_in; i++) {
            if (!c->in[i]) continue;
            struct tensor *t = tensor_base(c->in[i]);
            if (t->param)
                t->rounded |= reduced && is_factor(c, i);
            else
                t->rounded &= is_factor(c, i);
            if (!c->plan.active || !wants_gradient(c, i)) continue;
            t->grad_rounded &= c->kernel->rounds_din >> i & 1u && t->plan.grad_writers == 1;
        }
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i], *base = tensor_base(t);
        t->rounded = base->rounded;
        t->grad_rounded = base->grad_rounded;
    }
}

/* Marks the values and gradients that get a rounded copy, because products read them and other calls do too. */
static void mark_copied(struct graph *g) {
    bool reduced = g->options.precision != PRECISION_FULL;
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i];
        int j = output_index(g, t);
        const struct call *c = j >= 0 ? &g->calls[t->producer] : NULL;
        t->plan.factor_last = -1;
        t->copied = reduced && c && !t->rounded && c->kernel->copies_out >> j & 1u;
        t->grad_copied = reduced && c && j == 0 && c->plan.active && c->kernel->copies_dout &&
                         c->kernel->copies_dout(c) && !t->grad_rounded && t->plan.grad_writers == 1;
    }
    for (struct call *c = g->calls; c < g->calls + g->n_calls; c++)
        for (int i = 0; i < c->n_in; i++) {
            if (!c->in[i]) continue;
            struct tensor *t = tensor_base(c->in[i]);
            int last = c->deferred ? 2 * g->n_calls : c->plan.active ? graph_backward_time(g, c->index) : c->index;
            if (is_factor(c, i) && last > t->plan.factor_last) t->plan.factor_last = last;
            if (c->plan.active && wants_gradient(c, i)) t->grad_copied &= c->kernel->copies_din >> i & 1u;
        }
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i], *base = tensor_base(t);
        if (t == base) t->copied &= t->plan.factor_last >= 0;
        t->grad_copied = base->grad_copied;
    }
    for (int i = 0; i < g->n_tensors; i++) g->tensors[i]->copied = tensor_base(g->tensors[i])->copied;
}

/* Returns the call whose output is input i, if that can be one of two whose rows alternate: nothing else reads it, and
 * its memory is only the graph's. */
static struct call *producer_for_pair(const struct graph *g, const struct call *c, int i) {
    const struct tensor *t = c->n_in > i ? c->in[i] : NULL;
    struct call *from = t && t->producer >= 0 && !t->base ? &g->calls[t->producer] : NULL;
    bool alone = from && t->plan.readers == 1 && !t->keep && !(g->root && t == tensor_base(g->root));
    return alone && from->n_out == 1 && !from->joined && !from->plan.zero_dout ? from : NULL;
}

/* Whether products can read the gradient of t as it is, or nothing writes it. */
static bool needs_no_rounding(const struct graph *g, const struct tensor *t) {
    return g->options.precision == PRECISION_FULL || t->grad_rounded || !t->plan.has_grad;
}

/* Joins pairs of products of one input that the same call reads: one large product takes less time than two. */
static void mark_joined(struct graph *g) {
    for (int i = 0; i < g->n_tensors; i++) g->tensors[i]->pitch = g->tensors[i]->plan.readers = 0;
    for (struct call *c = g->calls; c < g->calls + g->n_calls; c++) {
        c->joined = NULL;
        for (int i = 0; i < c->n_in; i++)
            if (c->in[i]) tensor_base(c->in[i])->plan.readers++;
    }
    for (struct call *c = g->calls; c < g->calls + g->n_calls; c++) {
        if (!c->kernel->takes_joined) continue;
        struct call *a = producer_for_pair(g, c, 0), *b = producer_for_pair(g, c, 1);
        if (!a || !b || a >= b || a->kernel != b->kernel || !a->kernel->joins || !a->kernel->joins(a, b)) continue;
        struct tensor *y = a->out[0], *z = b->out[0];
        if (y->plan.has_grad != z->plan.has_grad || !needs_no_rounding(g, y) || !needs_no_rounding(g, z)) continue;
        a->joined = b;
        b->joined = a;
        y->pitch = z->pitch = tensor_cols(y) + tensor_cols(z);
    }
}

/* Returns the tensor whose rows alternate with those of t; NULL: none. */
static struct tensor *beside(const struct graph *g, const struct tensor *t) {
    return t->pitch ? g->calls[t->producer].joined->out[0] : NULL;
}

static void extend(struct tensor *t, int time) {
    struct tensor *base = tensor_base(t);
    if (time > base->plan.value_last) base->plan.value_last = time;
}

/* Finds the last moment at which each value is read. */
static void value_lifetimes(struct graph *g) {
    int end = 2 * g->n_calls;
    for (int i = 0; i < g->n_tensors; i++)
        g->tensors[i]->plan.value_last = g->tensors[i]->keep ? end : g->tensors[i]->producer;
    for (int i = 0; i < g->n_calls; i++) {
        const struct call *c = &g->calls[i];
        for (int j = 0; j < c->n_in; j++) {
            if (!c->in[j]) continue;
            extend(c->in[j], i);
            if (c->plan.active && (c->op->needs_in >> j & 1u)) extend(c->in[j], graph_backward_time(g, i));
            if (c->deferred && !c->in[j]->copied) extend(c->in[j], end);
        }
        for (int j = 0; j < c->n_out; j++)
            if (c->plan.active && (c->op->needs_out >> j & 1u)) extend(c->out[j], graph_backward_time(g, i));
    }
}

/* Finds the first moment at which each gradient is written: by its last consumer, which comes first in the backward
 * walk. */
static void gradient_lifetimes(struct graph *g) {
    for (int i = 0; i < g->n_tensors; i++) g->tensors[i]->plan.grad_first = -1;
    for (int i = g->n_calls - 1; i >= 0; i--) {
        const struct call *c = &g->calls[i];
        if (!c->plan.active) continue;
        if (c->plan.zero_dout) tensor_base(c->out[0])->plan.grad_first = graph_backward_time(g, i);
        for (int j = 0; j < c->n_in; j++) {
            if (!wants_gradient(c, j)) continue;
            struct tensor *t = tensor_base(c->in[j]);
            if (t->plan.grad_first < 0) t->plan.grad_first = graph_backward_time(g, i);
        }
    }
}

/* Returns the bytes of a tensor's value, gradient or copy. */
static size_t stored_bytes(const struct graph *g, const struct tensor *t, bool rounded) {
    return rounded ? (size_t)tensor_count(t) * precision_bytes(g->options.precision) : tensor_bytes(t);
}

/* Returns the last moment at which a gradient is read. */
static int gradient_last(const struct graph *g, const struct tensor *t) {
    bool kept = t->producer < 0 || t->keep || g->calls[t->producer].deferred;
    return kept ? 2 * g->n_calls : graph_backward_time(g, t->producer);
}

/* Adds the buffers of all tensors. Of two whose rows alternate, the first gets buffers for both. */
static void add_tensor_buffers(struct graph *g) {
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i];
        t->plan.value_buffer = t->plan.grad_buffer = t->plan.factor_buffer = t->plan.grad_factor_buffer = -1;
        const struct tensor *other = beside(g, t);
        if (t->base || t->param || t->data || (other && other->producer < t->producer)) continue;
        int value_last = t->plan.value_last, grad_last = gradient_last(g, t);
        if (other && other->plan.value_last > value_last) value_last = other->plan.value_last;
        if (other && gradient_last(g, other) > grad_last) grad_last = gradient_last(g, other);
        t->plan.value_buffer = g->plan->n_buffers;
        add_buffer(g, stored_bytes(g, t, t->rounded) + (other ? tensor_bytes(other) : 0), t->producer, value_last);
        if (t->copied) t->plan.factor_buffer = g->plan->n_buffers;
        if (t->copied) add_buffer(g, stored_bytes(g, t, true), t->producer, t->plan.factor_last);
        if (!t->plan.has_grad) continue;
        bool root = g->root && t == tensor_base(g->root);
        int first = root ? -1 : t->plan.grad_first;
        t->plan.grad_buffer = g->plan->n_buffers;
        size_t more = other ? stored_bytes(g, other, other->grad_rounded) : 0;
        add_buffer(g, stored_bytes(g, t, t->grad_rounded) + more, first, grad_last);
        if (t->grad_copied) t->plan.grad_factor_buffer = g->plan->n_buffers;
        if (t->grad_copied) add_buffer(g, stored_bytes(g, t, true), first, graph_backward_time(g, t->producer));
    }
}

static void add_workspaces(struct graph *g) {
    for (int i = 0; i < g->n_calls; i++) {
        struct call *c = &g->calls[i];
        c->plan.workspace_buffer[PASS_FORWARD] = c->plan.workspace_buffer[PASS_BACKWARD] = -1;
        c->guards = g->options.guards;
        if (!c->kernel->workspace) continue;
        for (int pass = PASS_FORWARD; pass <= (c->plan.active ? PASS_BACKWARD : PASS_FORWARD); pass++) {
            size_t bytes = c->kernel->workspace(c, (enum pass)pass);
            if (!bytes) continue;
            int time = pass == PASS_FORWARD ? i : graph_backward_time(g, i);
            c->plan.workspace_buffer[pass] = g->plan->n_buffers;
            add_buffer(g, bytes, time, time);
        }
    }
}

static void add_finish(struct graph *g) {
    const struct deferred *d = &g->plan->deferred;
    size_t bytes = d->n > 0 ? d->calls[0]->kernel->finish_workspace(d) : 0;
    g->plan->finish_buffer = bytes ? g->plan->n_buffers : -1;
    if (bytes) add_buffer(g, bytes, 2 * g->n_calls, 2 * g->n_calls);
}

/* The buffer of a table is live in both walks, because a device reads tables in every walk. */
static void add_tables(struct graph *g) {
    for (int i = 0; i < g->n_calls; i++) {
        struct call *c = &g->calls[i];
        int64_t n = c->op->table && graph_device(g) != DEVICE_CPU ? c->op->table(c, NULL) : 0;
        c->plan.table_buffer = n > 0 ? g->plan->n_buffers : -1;
        if (n > 0) add_buffer(g, (size_t)n * sizeof *c->table, -1, 2 * g->n_calls);
    }
}

/* Finds the range of the flat array that contains all parameters which products read. */
static void rounded_range(const struct graph *g, int64_t *begin, int64_t *end) {
    *begin = *end = 0;
    for (int i = 0; i < g->n_tensors; i++) {
        const struct tensor *t = g->tensors[i];
        if (!t->param || !t->rounded) continue;
        if (*end == 0 || t->param->offset < *begin) *begin = t->param->offset;
        if (t->param->offset + t->param->count > *end) *end = t->param->offset + t->param->count;
    }
}

static void add_rounded_params(struct graph *g) {
    int64_t begin, end;
    rounded_range(g, &begin, &end);
    g->plan->rounded_params = end > begin ? g->plan->n_buffers : -1;
    size_t bytes = (size_t)(end - begin) * precision_bytes(g->options.precision);
    if (end > begin) add_buffer(g, bytes, -1, 2 * g->n_calls);
}

/* --- placement ---------------------------------------------------------------------------------------------------- */

static int larger_first(const void *a, const void *b) {
    const struct plan_buffer *x = *(struct plan_buffer *const *)a, *y = *(struct plan_buffer *const *)b;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
    return x < y ? -1 : 1; /* the order is total, so the plan does not depend on the sort */
}

/* Returns the lowest offset at which `b` fits between the placed buffers that are live at the same time. `placed` is
 * sorted by offset. */
static size_t lowest_fit(struct plan_buffer *const *placed, int n, const struct plan_buffer *b, size_t guard) {
    size_t at = 0;
    for (int i = 0; i < n; i++) {
        if (placed[i]->first > b->last || b->first > placed[i]->last) continue;
        if (at + b->bytes + guard <= placed[i]->offset) return at;
        size_t end = placed[i]->offset + placed[i]->bytes + guard;
        if (end > at) at = end;
    }
    return at;
}

static enum status lay_out(struct graph *g, struct error *e) {
    size_t guard = g->options.guards ? ARENA_GUARD : 0;
    size_t mark = arena_mark(&g->host), table = (size_t)(g->plan->n_buffers + 1) * sizeof(struct plan_buffer *);
    struct plan_buffer **order = arena_alloc(&g->host, table), **placed = arena_alloc(&g->host, table);
    if (!order || !placed) return fail(e, ST_FAIL, "the graph is too large to plan: %d buffers", g->plan->n_buffers);
    for (int i = 0; i < g->plan->n_buffers; i++) order[i] = &g->plan->buffers[i];
    qsort(order, (size_t)g->plan->n_buffers, sizeof *order, larger_first);
    g->plan->bytes = g->plan->sum_bytes = 0;
    for (int n = 0; n < g->plan->n_buffers; n++) {
        struct plan_buffer *b = order[n];
        b->offset = lowest_fit(placed, n, b, guard);
        int slot = n;
        for (; slot > 0 && placed[slot - 1]->offset > b->offset; slot--) placed[slot] = placed[slot - 1];
        placed[slot] = b;
        if (b->offset + b->bytes + guard > g->plan->bytes) g->plan->bytes = b->offset + b->bytes + guard;
        g->plan->sum_bytes += b->bytes;
    }
    arena_release(&g->host, mark);
    return ST_OK;
}

static enum status make_plan(struct graph *g, struct error *e) {
    if (g->error.status != ST_OK) return fail(e, g->error.status, "%s", g->error.text);
    TRY(choose_kernels(g, e));
    if (!g->plan) {
        struct graph_plan *plan = arena_alloc(&g->host, sizeof *plan);
        size_t most = (size_t)(4 * g->n_tensors + 3 * g->n_calls + 3) * sizeof *plan->buffers;
        struct plan_buffer *buffers = arena_alloc(&g->host, most);
        const struct call **calls = arena_alloc(&g->host, (size_t)(g->n_calls + 1) * sizeof *calls);
        if (!plan || !buffers || !calls)
            return fail(e, ST_FAIL, "the graph is too large to plan: %d tensors", g->n_tensors);
        *plan = (struct graph_plan){.buffers = buffers, .deferred = {.calls = calls}, .first_guard_failure = -1};
        g->plan = plan;
    }
    mark_active(g);
    mark_deferred(g);
    mark_rounded(g);
    mark_copied(g);
    mark_joined(g);
    value_lifetimes(g);
    gradient_lifetimes(g);
    g->plan->n_buffers = 0;
    add_tensor_buffers(g);
    add_workspaces(g);
    add_finish(g);
    add_tables(g);
    add_rounded_params(g);
    return lay_out(g, e);
}

enum status graph_measure(struct graph *g, size_t *bytes, struct error *e) {
    TRY(make_plan(g, e));
    *bytes = g->plan->bytes;
    return ST_OK;
}

size_t graph_live_bytes(const struct graph *g) {
    size_t most = 0;
    /* the maximum is at a moment at which some buffer begins to live */
    for (int i = 0; i < g->plan->n_buffers; i++) {
        size_t live = 0;
        for (int k = 0; k < g->plan->n_buffers; k++)
            if (g->plan->buffers[k].first <= g->plan->buffers[i].first &&
                g->plan->buffers[i].first <= g->plan->buffers[k].last)
                live += g->plan->buffers[k].bytes;
        if (live > most) most = live;
    }
    return most;
}

/* --- binding ------------------------------------------------------------------------------------------------------ */

static void *address(const struct graph *g, int buffer) {
    return buffer < 0 ? NULL : g->plan->base + g->plan->buffers[buffer].offset;
}

static void bind_tensors(struct graph *g) {
    for (int i = 0; i < g->n_tensors; i++) {
        struct tensor *t = g->tensors[i];
        if (t->base) continue;
        if (t->param) {
            t->data = g->params->value + t->param->offset;
            t->grad = t->plan.has_grad ? g->params->grad + t->param->offset : NULL;
        } else if (t->plan.value_buffer >= 0) {
            t->data = address(g, t->plan.value_buffer);
            t->grad = address(g, t->plan.grad_buffer);
            t->factor = address(g, t->plan.factor_buffer);
            t->grad_factor = address(g, t->plan.grad_factor_buffer);
        } else if (t->pitch) {
            const struct tensor *first = beside(g, t);
            t->data = tensor_real(first) + tensor_cols(first);
            size_t each = first->grad_rounded ? precision_bytes(g->options.precision) : sizeof(real);
            t->grad = first->grad ? (real *)((char *)first->grad + (size_t)tensor_cols(first) * each) : NULL;
        }
    }
    for (int i = 0; i < g->n_tensors; i++) { /* views come last, because they need the pointers of their bases */
        struct tensor *t = g->tensors[i];
        if (!t->base) continue;
        t->data = t->base->data;
        t->grad = t->base->grad;
        t->factor = t->base->factor;
        t->grad_factor = t->base->grad_factor;
    }
}

/* The first writer of a gradient overwrites it, later writers add to it. */
static void bind_calls(struct graph *g) {
    for (int i = 0; i < g->n_tensors; i++) g->tensors[i]->plan.written = false;
    for (int i = g->n_calls - 1; i >= 0; i--) {
        struct call *c = &g->calls[i];
        c->accumulate = 0;
        for (int j = 0; j < c->n_in; j++) c->din[j] = NULL;
        if (!c->plan.active) continue;
        for (int j = 0; j < c->n_in; j++) {
            if (!wants_gradient(c, j)) continue;
            struct tensor *t = tensor_base(c->in[j]);
            c->din[j] = t->grad;
            if (t->plan.written || t == tensor_base(g->root)) c->accumulate |= 1u << j;
            t->plan.written = true;
        }
    }
    for (int i = 0; i < g->n_calls; i++)
        for (int pass = PASS_FORWARD; pass <= PASS_BACKWARD; pass++) {
            struct call *c = &g->calls[i];
            c->scratch[pass] = address(g, c->plan.workspace_buffer[pass]);
            c->scratch_bytes[pass] = c->scratch[pass] ? g->plan->buffers[c->plan.workspace_buffer[pass]].used : 0;
        }
    g->plan->deferred.scratch = address(g, g->plan->finish_buffer);
}

/* The first call that reads such a parameter rounds all of them. */
static void bind_rounded_params(struct graph *g) {
    int64_t begin, end;
    char *to = address(g, g->plan->rounded_params);
    int64_t each = (int64_t)precision_bytes(g->options.precision);
    rounded_range(g, &begin, &end);
    for (int i = 0; i < g->n_tensors; i++) {
        const struct param *param = tensor_base(g->tensors[i])->param;
        if (param) g->tensors[i]->factor = to && g->tensors[i]->rounded ? to + (param->offset - begin) * each : NULL;
    }
    for (int i = 0; i < g->n_calls; i++) g->calls[i].rounds = (struct rounded_params){NULL, NULL, 0};
    for (int i = 0; i < g->n_calls && to; i++)
        for (int j = 0; j < g->calls[i].n_in; j++)
            if (g->calls[i].in[j] && tensor_base(g->calls[i].in[j])->param && g->calls[i].in[j]->factor) {
                g->calls[i].rounds = (struct rounded_params){g->params->value + begin, to, end - begin};
                return;
            }
}

static enum status fill_tables(struct graph *g, struct error *e) {
    for (int i = 0; i < g->n_calls; i++) {
        struct call *c = &g->calls[i];
        int32_t *table = address(g, c->plan.table_buffer);
        c->table = table;
        if (!table) continue;
        size_t bytes = g->plan->buffers[c->plan.table_buffer].used, mark = arena_mark(&g->host);
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
    if (other && other->plan && other->plan->base && g->plan->bytes <= other->plan->bytes) {
        g->plan->base = other->plan->base;
        return ST_OK;
    }
    TRY(place_reserve(g->options.place, &g->memory, g->plan->bytes, e));
    g->plan->base = g->memory.base;
    return ST_OK;
}

bool graph_keeps_root(const struct graph *g) {
    if (graph_device(g) == DEVICE_CPU || !g->root || tensor_count(g->root) != 1) return false;
    const struct tensor *base = tensor_base(g->root);
    return base->plan.grad_buffer >= 0 && !base->plan.written;
}

/* --- all of it ---------------------------------------------------------------------------------------------------- */

enum status graph_plan(struct graph *g, struct error *e) {
    TRY(make_plan(g, e));
    TRY(reserve(g, e));
    bind_tensors(g);
    bind_calls(g);
    bind_rounded_params(g);
    if (g->options.guards) guard_before(g, -1);
    if (graph_keeps_root(g)) place_fill(g->options.place, g->root->grad, 1, 1);
    return fill_tables(g, e);
}
