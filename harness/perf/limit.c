/* limit.c - see limit.h. */
#include "harness/perf/limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/perf/speed.h"
#include "harness/store/limit_log.h"

/* Seconds of training that a run of the plan has; 0 = no limit. */
static double seconds_of(const struct plan *plan, const struct setup *s, double limit_s, int jobs) {
    double share = jobs < plan->n ? limit_s * jobs / plan->n : limit_s, own = s->config.budget;
    if (share <= 0) return own;
    return own > 0 && own < share ? own : share;
}

/* Times the run and writes down what it comes to. */
static enum status measure(const struct setup *s, double seconds, int threads, struct error *e) {
    struct perf_row speed;
    struct limit_row row = {.seconds = seconds, .threads = threads};
    TRY(speed_measure(s, threads, false, &speed, e));
    double steps = seconds / (1e-9 * speed.time_ns_med);
    if (steps < 1)
        return fail(e, ST_USAGE, "%s: a step takes %.3g s, so %.3g s are over before the first; give it more time",
                    s->model_label, 1e-9 * speed.time_ns_med, seconds);
    row.steps = steps < (double)s->steps ? (int64_t)steps : s->steps;
    row.time_ns = speed.time_ns_med;
    snprintf(row.run_id, sizeof row.run_id, "%s", s->run_id);
    snprintf(row.commit, sizeof row.commit, "%s", speed.commit);
    snprintf(row.machine_id, sizeof row.machine_id, "%s", speed.machine_id);
    snprintf(row.started, sizeof row.started, "%s", speed.started);
    return limit_append(s->config.out, &row, e);
}

enum status limits_apply(struct plan *plan, double limit_s, int jobs, int threads, bool quiet, struct error *e) {
    for (int i = 0; i < plan->n; i++) {
        struct setup *s = plan->setups[i];
        struct limit_row row;
        double seconds = seconds_of(plan, s, limit_s, jobs);
        if (seconds <= 0) continue;
        if (!quiet && isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[Ktiming a few steps of %s", s->model_label);
        if (!limit_find(s->config.out, s->run_id, seconds, &row)) {
            TRY(measure(s, seconds, threads, e));
            if (!limit_find(s->config.out, s->run_id, seconds, &row))
                return fail(e, ST_FAIL, "%s/limits.csv has not the row that was written", s->config.out);
        }
        s->flops *= (double)row.steps / (double)s->steps;
        TRY(setup_stop_after(s, row.steps, e));
    }
    if (!quiet && isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
    return ST_OK;
}
