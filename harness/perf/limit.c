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
#include "harness/store/logs.h"

double limit_seconds(const struct plan *plan, const struct setup *s, double limit_s, int jobs) {
    double share = jobs < plan->n ? limit_s * jobs / plan->n : limit_s, own = s->spec.config.budget;
    if (share <= 0) return own;
    return own > 0 && own < share ? own : share;
}

/* Times a few steps of the run and sets how many it takes in `seconds`. */
static enum status measure(const struct setup *s, double seconds, int threads, struct limit_row *row, struct error *e) {
    struct perf_row speed;
    *row = (struct limit_row){.seconds = seconds, .threads = threads};
    TRY(speed_measure(s, threads, 0, &speed, e));
    double steps = seconds / (1e-9 * speed.time_ns);
    if (steps < 1)
        return fail(e, ST_USAGE, "%s: a step takes %.3g s, so %.3g s are over before the first; give it more time",
                    s->id.model_label, 1e-9 * speed.time_ns, seconds);
    row->steps = steps < (double)s->shapes.steps ? (int64_t)steps : s->shapes.steps;
    row->time_ns = speed.time_ns;
    snprintf(row->commit, sizeof row->commit, "%s", speed.commit);
    snprintf(row->machine_id, sizeof row->machine_id, "%s", speed.machine_id);
    snprintf(row->started, sizeof row->started, "%s", speed.started);
    return ST_OK;
}

/* Decision for the first run of a row of a table. It holds for the whole row: seeds and rates go equally far. */
struct decided {
    char row[RUN_ID_HEX]; /* hash of its key */
    struct limit_row limit;
};

/* Sets how far the run goes: as limits.csv says, else as its row goes, else as a measurement says; the answer is then
 * written for it. The first *n of `rows` are decided; one more has room. */
static enum status decide(struct decided *rows, int *n, const struct setup *s, double seconds, int threads,
                          struct limit_row *limit, struct error *e) {
    const char *out = s->spec.config.out, *run_id = s->id.run_id;
    int at = 0;
    TRY(row_key_id(s->id.text, rows[*n].row, e));
    while (strcmp(rows[at].row, rows[*n].row) != 0) at++;
    if (!limit_find(out, run_id, seconds, limit)) {
        if (at < *n)
            *limit = rows[at].limit;
        else
            TRY(measure(s, seconds, threads, limit, e));
        snprintf(limit->run_id, sizeof limit->run_id, "%s", run_id);
        TRY(limit_append(out, limit, e));
        if (!limit_find(out, run_id, seconds, limit))
            return fail(e, ST_FAIL, "%s/limits.csv lacks the row that was just written", out);
    }
    if (at == *n) rows[(*n)++].limit = *limit;
    return ST_OK;
}

enum status limits_apply(struct plan *plan, double limit_s, int jobs, int threads, bool quiet, struct error *e) {
    bool tell = !quiet && terminal_has_codes(stderr);
    struct decided *rows = calloc((size_t)plan->n + 1, sizeof *rows);
    enum status status = rows ? ST_OK : fail(e, ST_MEMORY, "no memory for the times of %d runs", plan->n);
    int n = 0;
    for (int i = 0; i < plan->n && status == ST_OK; i++) {
        struct setup *s = plan->setups[i];
        struct limit_row limit;
        double seconds = limit_seconds(plan, s, limit_s, jobs);
        if (seconds <= 0) continue;
        if (signal_received()) {
            status = fail(e, (enum status)(128 + signal_received()),
                          "stopped before all runs were timed; the same command goes on");
            break;
        }
        if (tell) fprintf(stderr, "\r\033[Ktiming a few steps of %s", s->id.model_label);
        status = decide(rows, &n, s, seconds, threads, &limit, e);
        if (status != ST_OK) break;
        s->estimate.flops *= (double)limit.steps / (double)s->shapes.steps;
        status = setup_stop_after(s, limit.steps, e);
    }
    if (tell) fputs("\r\033[K", stderr);
    free(rows);
    return status;
}
