/* limit.c - see limit.h. */
#include "harness/perf/limit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/paragraph.h"
#include "harness/perf/speed.h"
#include "harness/study/row_key.h"
#include "harness/run/signals.h"
#include "harness/store/limit_log.h"

double limit_seconds(const struct plan *plan, const struct setup *s, double limit_s, int jobs) {
    double share = jobs < plan->n ? limit_s * jobs / plan->n : limit_s, own = s->spec.config.budget;
    if (share <= 0) return own;
    return own > 0 && own < share ? own : share;
}

/* Times a few steps of the run and says what they come to. */
static enum status measure(const struct setup *s, double seconds, int threads, struct limit_row *row, struct error *e) {
    struct perf_row speed;
    *row = (struct limit_row){.seconds = seconds, .threads = threads};
    TRY(speed_measure(s, threads, 0, &speed, e));
    double steps = seconds / (1e-9 * speed.time_ns_med);
    if (steps < 1)
        return fail(e, ST_USAGE, "%s: a step takes %.3g s, so %.3g s are over before the first; give it more time",
                    s->id.model_label, 1e-9 * speed.time_ns_med, seconds);
    row->steps = steps < (double)s->shapes.steps ? (int64_t)steps : s->shapes.steps;
    row->time_ns = speed.time_ns_med;
    snprintf(row->commit, sizeof row->commit, "%s", speed.commit);
    snprintf(row->machine_id, sizeof row->machine_id, "%s", speed.machine_id);
    snprintf(row->started, sizeof row->started, "%s", speed.started);
    return ST_OK;
}

/* What was decided for the first run of a row: its seeds and rates go equally far, or they were no row. */
struct decided {
    char row[RUN_ID_HEX]; /* hash of its key */
    struct limit_row limit;
};

/* The row of the run among the first n; n is a new one. */
static enum status find_row(struct decided *rows, int n, const struct setup *s, int *at, struct error *e) {
    TRY(row_key_id(s->id.text, rows[n].row, e));
    for (*at = 0; strcmp(rows[*at].row, rows[n].row) != 0; ++*at) continue;
    return ST_OK;
}

/* What limits.csv has for the run, else what its row has, which is written down for it. */
static enum status decide(struct decided *rows, int *n, const struct setup *s, double seconds, int threads,
                          struct limit_row *limit, struct error *e) {
    int at;
    TRY(find_row(rows, *n, s, &at, e));
    if (!limit_find(s->spec.config.out, s->id.run_id, seconds, limit)) {
        if (at < *n)
            *limit = rows[at].limit;
        else
            TRY(measure(s, seconds, threads, limit, e));
        snprintf(limit->run_id, sizeof limit->run_id, "%s", s->id.run_id);
        TRY(limit_append(s->spec.config.out, limit, e));
        if (!limit_find(s->spec.config.out, s->id.run_id, seconds, limit))
            return fail(e, ST_FAIL, "%s/limits.csv has not the row that was written", s->spec.config.out);
    }
    if (at == *n) rows[(*n)++].limit = *limit;
    return ST_OK;
}

static enum status apply(struct plan *plan, struct decided *rows, double limit_s, int jobs, int threads, bool tell,
                         struct error *e) {
    int n = 0;
    for (int i = 0; i < plan->n; i++) {
        struct setup *s = plan->setups[i];
        struct limit_row limit;
        double seconds = limit_seconds(plan, s, limit_s, jobs);
        if (seconds <= 0) continue;
        if (signal_received())
            return fail(e, (enum status)(128 + signal_received()),
                        "stopped before all runs were timed; the same command goes on");
        if (tell) fprintf(stderr, "\r\033[Ktiming a few steps of %s", s->id.model_label);
        TRY(decide(rows, &n, s, seconds, threads, &limit, e));
        s->estimate.flops *= (double)limit.steps / (double)s->shapes.steps;
        TRY(setup_stop_after(s, limit.steps, e));
    }
    return ST_OK;
}

enum status limits_apply(struct plan *plan, double limit_s, int jobs, int threads, bool quiet, struct error *e) {
    bool tell = !quiet && terminal_has_codes(stderr);
    struct decided *rows = calloc((size_t)plan->n + 1, sizeof *rows);
    if (!rows) return fail(e, ST_MEMORY, "no memory for the times of %d runs", plan->n);
    enum status status = apply(plan, rows, limit_s, jobs, threads, tell, e);
    if (tell) fputs("\r\033[K", stderr);
    free(rows);
    return status;
}
