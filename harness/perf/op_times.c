/* op_times.c - time by op; see op_times.h.
 *
 * Of each call the best time of all steps is kept, so that what another process took is in none of them. */
#include "harness/perf/op_times.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/perf/samples.h"
#include "kernels/dense/dense.h"

struct op_time {
    const struct op *op;
    int calls;
    double seconds[2], floor, by_bytes; /* by_bytes: the part of the floor that bytes make */
};

/* --- looking on --------------------------------------------------------------------------------------------------- */

static void keep(struct op_times *p, double seconds) {
    struct call_time *t = p->calls;
    while (t->call && t->call != p->current) t++;
    if (!t->call) *t = (struct call_time){p->current, {INFINITY, INFINITY}};
    if (seconds < t->best[p->pass]) t->best[p->pass] = seconds;
}

static void look(void *watcher, const struct call *c, enum pass pass) {
    struct op_times *p = watcher;
    if (p->current) keep(p, perf_time_s() - p->since);
    p->current = c;
    p->pass = pass;
    p->since = perf_time_s();
}

enum status op_times_begin(struct op_times *p, struct graph *train, struct graph *update, struct error *e) {
    p->room = train->n_calls + update->n_calls;
    p->calls = calloc((size_t)p->room + 1, sizeof *p->calls); /* the last one stays empty */
    p->ops = calloc((size_t)p->room + 1, sizeof *p->ops);
    if (!p->calls || !p->ops) return fail(e, ST_MEMORY, "no memory for the times of %d calls", p->room);
    train->plan->watch = update->plan->watch = look;
    train->plan->watcher = update->plan->watcher = p;
    return ST_OK;
}

void op_times_free(struct op_times *p) {
    free(p->calls);
    free(p->ops);
    *p = (struct op_times){0};
}

/* --- by op -------------------------------------------------------------------------------------------------------- */

static double lost(const struct op_time *t) {
    return t->seconds[PASS_FORWARD] + t->seconds[PASS_BACKWARD] - t->floor;
}

static int by_loss(const void *a, const void *b) {
    double x = lost(a), y = lost(b);
    return (x < y) - (x > y);
}

static void add_pass(struct op_time *t, const struct call_time *c, enum pass pass, const struct floor_rates *rates) {
    if (!isfinite(c->best[pass])) return;
    struct cost cost = c->call->op->cost(c->call, pass);
    double flops = cost.flops / (c->call->op == &op_linear ? rates->products : rates->flops);
    double bytes = cost.bytes / rates->bytes;
    t->seconds[pass] += c->best[pass];
    t->floor += bytes > flops ? bytes : flops;
    if (bytes > flops) t->by_bytes += bytes;
}

/* table has room for all calls; returns how many ops there are, the most lost first. */
static int gather(const struct op_times *p, const struct floor_rates *rates, struct op_time *table) {
    int n = 0;
    for (const struct call_time *c = p->calls; c->call; c++) {
        int i = 0;
        while (i < n && table[i].op != c->call->op) i++;
        if (i == n) table[n++] = (struct op_time){.op = c->call->op};
        table[i].calls++;
        add_pass(&table[i], c, PASS_FORWARD, rates);
        add_pass(&table[i], c, PASS_BACKWARD, rates);
    }
    qsort(table, (size_t)n, sizeof *table, by_loss);
    return n;
}

static void print_text(const struct op_time *table, int n, const struct floor_rates *rates, double step) {
    double all = 0;
    printf("  profile     best time of each call, summed by op, ms; floors: linear %.1f GFLOP/s, others %.1f,\n"
           "              copies %.1f GB/s (read and written both counted)\n",
           rates->products / 1e9, rates->flops / 1e9, rates->bytes / 1e9);
    printf("  %-22s %5s %9s %9s %9s %-5s %9s %6s\n", "op", "calls", "forward", "backward", "floor", "by", "lost",
           "step");
    for (const struct op_time *t = table; t < table + n; t++) {
        double seconds = t->seconds[PASS_FORWARD] + t->seconds[PASS_BACKWARD];
        all += seconds;
        printf("  %-22s %5d %9.4f %9.4f %9.4f %-5s %9.4f %4.1f %%\n", t->op->name, t->calls,
               t->seconds[PASS_FORWARD] * 1e3, t->seconds[PASS_BACKWARD] * 1e3, t->floor * 1e3,
               2 * t->by_bytes > t->floor ? "bytes" : "flops", lost(t) * 1e3, 100 * seconds / step);
    }
    printf("  between the calls, or slower than the best of each: %.4f ms, %.1f %%\n", (step - all) * 1e3,
           100 * (step - all) / step);
}

static void print_json(const struct op_time *table, int n) {
    printf(",\"profile\":[");
    for (const struct op_time *t = table; t < table + n; t++)
        printf("%s{\"op\":\"%s\",\"calls\":%d,\"forward_ms\":%.6g,\"backward_ms\":%.6g,\"floor_ms\":%.6g,"
               "\"bound\":\"%s\",\"lost_ms\":%.6g}",
               t == table ? "" : ",", t->op->name, t->calls, t->seconds[PASS_FORWARD] * 1e3,
               t->seconds[PASS_BACKWARD] * 1e3, t->floor * 1e3, 2 * t->by_bytes > t->floor ? "bytes" : "flops",
               lost(t) * 1e3);
    printf("]");
}

void op_times_print(const struct op_times *p, const struct floor_rates *rates, double step, bool json) {
    int n = gather(p, rates, p->ops);
    if (json)
        print_json(p->ops, n);
    else
        print_text(p->ops, n, rates, step);
}
