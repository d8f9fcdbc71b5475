/* announce.c - see announce.h. */
#include "harness/sweep/announce.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/perf/speed.h"
#include "harness/run/reuse.h"
#include "harness/store/clock.h"
#include "kernels/lib/gemm.h"

#define GEMM_SHARE 0.6 /* of the rate of a GEMM a training step reaches about so much */

/* GFLOP/s of one core, from a short GEMM: enough to say minutes, hours or days. */
static double gemm_rate(void) {
    enum { N = 512 };
    real *m = calloc(3 * N * N, sizeof *m);
    if (!m) return 50;
    double best = 1e9;
    for (int i = 0; i < 6; i++) {
        double start = time_now_s();
        real_gemm(false, false, N, N, N, 1, m, N, m + N * N, N, false, m + 2 * N * N, N);
        double spent = time_now_s() - start;
        if (spent < best) best = spent;
    }
    free(m);
    return 2e-9 * N * N * N / best;
}

/* What the runs leave on disk: the record of each and its rows in the folder's CSV files, of about so many bytes, and
 * as many more a point of its curve; and the weights. */
static double bytes_of(const struct setup *s) {
    enum { RECORD_BYTES = 4300 + 2300, POINT_BYTES = 120 + 170 };
    int64_t evaluations = s->steps / s->eval_every + 1;
    double points = 2 * (double)evaluations;
    double weights = (double)s->params * (double)sizeof(real);
    int kept = s->config.keep_weights == KEEP_NONE ? 0 : s->config.keep_weights == KEEP_ALL ? 2 : 1;
    return RECORD_BYTES + POINT_BYTES * points + kept * weights;
}

/* "3h" as the number in front of its unit. */
static const char *time_unit(double *seconds) {
    const char *unit = *seconds < 90 ? "seconds" : *seconds < 5400 ? "minutes" : *seconds < 129600 ? "hours" : "days";
    *seconds /= *seconds < 90 ? 1 : *seconds < 5400 ? 60 : *seconds < 129600 ? 3600 : 86400;
    return unit;
}

void announce_runs(const struct plan *plan, const struct resolved *resolved, int most_at_a_time) {
    double flops = 0, bytes = 0;
    int to_do = 0;
    for (int i = 0; i < plan->n; i++) {
        if (reuse_is_there(plan->setups[i])) continue;
        flops += plan->setups[i]->flops;
        bytes += bytes_of(plan->setups[i]);
        to_do++;
    }
    if (resolved->defaulted) fprintf(stderr, "this task has no profile of its own; taken is: %s\n", resolved->note);
    fprintf(stderr, "%s%s, profile %s: %d run%s", plan->setups[0]->task.name,
            plan_has_several_tasks(plan) ? " and others" : "", resolved->profile, plan->n, plan->n == 1 ? "" : "s");
    if (to_do == 0) {
        fprintf(stderr, ", none left to do\n");
        return;
    }
    if (to_do < plan->n) fprintf(stderr, ", %d left to do", to_do);
    int jobs = most_at_a_time < to_do ? most_at_a_time : to_do;
    double time = flops / (GEMM_SHARE * gemm_rate() * 1e9) / jobs;
    char most[64] = "under a second";
    if (time >= 1) {
        const char *unit = time_unit(&time);
        snprintf(most, sizeof most, "at most about %.1f %s", time, unit);
    }
    fprintf(stderr, ", %d at a time, %s on this machine (less with early stopping) and %.*f MB of disk\n", jobs, most,
            bytes < 1e7, bytes / 1e6);
}

void announce_speeds(const struct plan *plan, const char *name, const char *profile, int threads, double seconds) {
    double least, most, rate = GEMM_SHARE * gemm_rate() * 1e9 * threads;
    int n = speed_expect(plan, threads, seconds, rate, &least, &most);
    fprintf(stderr, "%s, profile %s: the speed of ", name, profile);
    if (n == 0) {
        fprintf(stderr, "every model is in %s/perf.csv\n", plan->setups[0]->config.out);
        return;
    }
    const char *unit = time_unit(&least), *longer = time_unit(&most);
    fprintf(stderr, "%d model%s, one after the other, about %.1f %s, up to %.1f %s beside other work\n", n,
            n == 1 ? "" : "s", least, unit, most, longer);
}
