/* compare.c - see compare.h. */
#include "harness/gate/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/philox.h"
#include "harness/gate/peer.h"
#include "harness/perf/measure.h"
#include "harness/store/clock.h"

enum status own_program(char *path, size_t size, struct error *e) {
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    if (n < 0) return fail(e, ST_FAIL, "/proc/self/exe, the path of this program, cannot be read");
    path[n] = 0;
    return ST_OK;
}

/* --- measuring ---------------------------------------------------------------------------------------------------- */

/* The times of a bench, pair by pair. */
struct times {
    int n;
    double a[GATE_MAX], b[GATE_MAX];
};

static enum status same_build(const struct compare_request *q, const struct peer *a, const struct peer *b,
                              struct error *e) {
    if (strcmp(a->real, b->real) != 0)
        return fail(e, ST_USAGE, "%s computes in %s, %s in %s; the gate compares builds of one precision", a->program,
                    a->real, b->program, b->real);
    if (!q->force && strcmp(a->compiler, b->compiler) != 0)
        return fail(e, ST_USAGE, "%s is compiled by %s, %s by %s; --force compares them all the same", a->program,
                    a->compiler, b->program, b->compiler);
    if (!q->force && strcmp(a->flags, b->flags) != 0)
        return fail(e, ST_USAGE, "%s is compiled with %s, %s with %s; --force compares them all the same", a->program,
                    a->flags, b->program, b->flags);
    return ST_OK;
}

/* What becomes of b, the build under test: one that does not answer (`silent`) has lost what the baseline's can do. */
static enum status of_b(enum status status, enum status silent, struct error *e) {
    if (status == silent) e->status = ST_REGRESSED;
    return status == silent ? ST_REGRESSED : status;
}

static enum status take_pair(struct peer *a, struct peer *b, bool b_first, double *time_a, double *time_b,
                             struct error *e) {
    if (b_first) TRY(of_b(peer_time(b, time_b, e), ST_FAIL, e));
    TRY(peer_time(a, time_a, e));
    return b_first ? ST_OK : of_b(peer_time(b, time_b, e), ST_FAIL, e);
}

/* A round of pairs, in fresh processes. */
static enum status take_round(const struct compare_request *q, const struct gate_bench *bench, int pairs,
                              struct rng *order, struct times *t, struct error *e) {
    struct peer a = {0}, b = {0};
    enum status status = peer_start(&a, q->a, bench->name, q->seconds, 0, e);
    if (status == ST_OK) status = of_b(peer_start(&b, q->b, bench->name, q->seconds, q->delay, e), ST_INCONCLUSIVE, e);
    if (status == ST_OK) status = same_build(q, &a, &b, e);
    for (int i = 0; i < pairs && status == ST_OK; i++) {
        status = take_pair(&a, &b, rng_below(order, 2), &t->a[t->n], &t->b[t->n], e);
        t->n += status == ST_OK;
    }
    peer_stop(&a);
    peer_stop(&b);
    return status;
}

static void evaluate(struct compare_row *row, const struct times *t) {
    double log_ratio[GATE_MAX];
    for (int i = 0; i < t->n; i++) log_ratio[i] = log(t->b[i] / t->a[i]);
    row->pairs = pairs_evaluate(log_ratio, t->n);
    row->a = stats_median(t->a, t->n);
    row->b = stats_median(t->b, t->n);
}

static enum status measure(const struct compare_request *q, struct compare_row *row, int pairs, struct error *e) {
    struct times *t = calloc(1, sizeof *t);
    struct noise noise;
    struct rng order = rng_at(q->seed, STREAM_TEST, (uint64_t)(row->bench - gate_benches()));
    double start = time_now_s();
    enum status status = t ? ST_OK : fail(e, ST_MEMORY, "no memory for the times of %s", row->bench->name);
    noise_begin(&noise);
    while (status == ST_OK && t->n < pairs) {
        int round = pairs - t->n < GATE_ROUND ? pairs - t->n : GATE_ROUND;
        status = take_round(q, row->bench, round, &order, t, e);
    }
    row->foreign = noise_end(&noise);
    row->seconds += time_now_s() - start;
    row->measured = status == ST_OK;
    if (status == ST_OK) evaluate(row, t);
    if (status == ST_INCONCLUSIVE || status == ST_REGRESSED) { /* the baseline's program has no such bench; b lost it */
        snprintf(row->detail, sizeof row->detail, "%.250s", e->text);
        row->verdict = status == ST_REGRESSED ? VERDICT_REGRESSED : VERDICT_SAME;
        status = ST_OK;
    }
    free(t);
    return status;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

static void describe(struct compare_row *row, double load) {
    if (row->foreign > load)
        snprintf(row->detail, sizeof row->detail,
                 "the machine was busy: other processes used %.0f %% of the cores, more than %.0f %%",
                 100 * row->foreign, 100 * load);
    else if (row->verdict == VERDICT_INCONCLUSIVE && isnan(row->foreign))
        snprintf(row->detail, sizeof row->detail, "after %d pairs", row->pairs.n);
    else if (row->verdict == VERDICT_INCONCLUSIVE)
        snprintf(row->detail, sizeof row->detail, "after %d pairs; other processes used %.0f %% of the cores",
                 row->pairs.n, 100 * row->foreign);
    else
        snprintf(row->detail, sizeof row->detail, "%s", "");
}

void compare_judge(struct compare_row *rows, int n, double load) {
    double p[GATE_BENCHES] = {0};
    bool rejected[GATE_BENCHES];
    for (int i = 0; i < n; i++) p[i] = rows[i].measured ? rows[i].pairs.p : 1;
    holm_reject(p, n, 1 - GATE_LEVEL, rejected);
    for (int i = 0; i < n; i++) {
        struct compare_row *row = &rows[i];
        if (!row->measured) continue;
        row->verdict = row->foreign > load ? VERDICT_INCONCLUSIVE : pairs_verdict(&row->pairs, row->floor, rejected[i]);
        describe(row, load);
    }
}

enum status compare_builds(const struct compare_request *q, struct compare_row *rows, int n, struct error *e) {
    if (n < 1 || n > GATE_BENCHES || q->pairs < 1 || 2 * q->pairs > GATE_MAX)
        return fail(e, ST_USAGE, "%d benches of %d pairs; expected 1 to %d and 1 to %d", n, q->pairs, GATE_BENCHES,
                    GATE_MAX / 2);
    enum status status = ST_OK;
    for (int i = 0; i < n && status == ST_OK; i++) status = measure(q, &rows[i], q->pairs, e);
    compare_judge(rows, n, q->load);
    for (int i = 0; i < n && status == ST_OK; i++) {
        bool doubted = rows[i].verdict == VERDICT_INCONCLUSIVE || rows[i].verdict == VERDICT_REGRESSED;
        if (rows[i].measured && doubted) status = measure(q, &rows[i], 2 * q->pairs, e);
    }
    compare_judge(rows, n, q->load);
    return status;
}
