/* graph_guards.c - for tests: finds what a kernel writes outside of its buffers; see graph_plan.h. */
#include "core/graph_plan.h"

/* A buffer is filled with POISON_BYTE when its life begins, so the zones between the arrays of a scratch also contain
 * NaN. A zone of GUARD_BYTE follows each buffer. Both kinds of zones are checked after each call. */
#define GUARD_BYTE  0xA5
#define POISON_BYTE 0xFF /* all ones: a NaN in both float types */

/* Returns the guard zone of a buffer. It begins directly after the bytes that were asked for. */
static char *guard_zone(const struct graph *g, const struct plan_buffer *b, size_t *bytes) {
    *bytes = b->bytes - b->used + ARENA_GUARD;
    return g->plan->base + b->offset + b->used;
}

static bool holds(const struct graph *g, const char *zone, size_t bytes, unsigned char pattern) {
    unsigned char copy[ARENA_ALIGN + ARENA_GUARD];
    for (size_t n; bytes > 0; zone += n, bytes -= n) {
        n = bytes < sizeof copy ? bytes : sizeof copy;
        place_get(g->options.place, copy, zone, n);
        for (size_t i = 0; i < n; i++)
            if (copy[i] != pattern) return false;
    }
    return true;
}

/* Checks the zones between the arrays of one call's scratch. */
struct scratch_check {
    struct zone_visitor visitor; /* must be first: kernels get a pointer to it, and check_zone casts it back */
    const struct graph *g;
    const char *scratch;
    bool broken;
};

static void check_zone(struct zone_visitor *v, size_t begin, size_t end) {
    struct scratch_check *check = (struct scratch_check *)v;
    if (!holds(check->g, check->scratch + begin, end - begin, POISON_BYTE)) check->broken = true;
}

/* Whether all zones of the scratch that is in use at `time` are unchanged. The kernel's workspace function says where
 * they are. */
static bool scratch_is_intact(struct graph *g, int time) {
    enum pass pass = time < g->n_calls ? PASS_FORWARD : PASS_BACKWARD;
    if (time < 0 || time >= 2 * g->n_calls) return true;
    struct call *c = &g->calls[pass == PASS_FORWARD ? time : graph_backward_time(g, time)];
    struct scratch_check check = {{check_zone}, g, c->scratch[pass], false};
    if (!check.scratch) return true;
    c->zones = &check.visitor;
    c->kernel->workspace(c, pass);
    c->zones = NULL;
    return !check.broken;
}

void guard_before(struct graph *g, int time) {
    for (int i = 0; i < g->plan->n_buffers; i++) {
        struct plan_buffer *b = &g->plan->buffers[i];
        size_t bytes;
        char *guard = guard_zone(g, b, &bytes);
        if (b->first == time) {
            place_set(g->options.place, g->plan->base + b->offset, POISON_BYTE, b->used);
            place_set(g->options.place, guard, GUARD_BYTE, bytes);
        }
    }
}

void guard_after(struct graph *g, int time, int index) {
    bool intact = scratch_is_intact(g, time);
    for (int i = 0; i < g->plan->n_buffers; i++) {
        const struct plan_buffer *b = &g->plan->buffers[i];
        if (time < b->first || time > b->last) continue;
        size_t bytes;
        const char *zone = guard_zone(g, b, &bytes);
        if (!holds(g, zone, bytes, GUARD_BYTE)) intact = false;
    }
    if (!intact && g->plan->first_guard_failure < 0) g->plan->first_guard_failure = index;
}
