/* announce.c - see announce.h. */
#include "harness/pool/announce.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/perf/speed.h"
#include "harness/study/profile.h"
#include "harness/run/checkpoint.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"
#include "harness/store/shell.h"
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

/* Bytes that a run leaves on disk: its record and its rows in the folder's CSV files, of about so many bytes and as
 * many more a point of its curve; and the weights. */
static double bytes_of(const struct setup *s) {
    enum { RECORD_BYTES = 4300 + 2300, POINT_BYTES = 120 + 170 };
    int64_t evaluations = s->shapes.steps / s->shapes.eval_every + 1;
    double points = 2 * (double)evaluations;
    double weights = (double)s->estimate.params * (double)sizeof(real);
    int kept = s->spec.config.keep_weights == KEEP_NONE ? 0 : s->spec.config.keep_weights == KEEP_ALL ? 2 : 1;
    return RECORD_BYTES + POINT_BYTES * points + kept * weights;
}

/* "3h" as the number in front of its unit. */
static const char *time_unit(double *seconds) {
    const char *unit = *seconds < 90 ? "seconds" : *seconds < 5400 ? "minutes" : *seconds < 129600 ? "hours" : "days";
    *seconds /= *seconds < 90 ? 1 : *seconds < 5400 ? 60 : *seconds < 129600 ? 3600 : 86400;
    return unit;
}

/* Whether training would refuse it for want of memory, of the machine itself; no device is asked. */
static bool is_too_large(const struct setup *s) {
    size_t machine = machine_memory_bytes();
    return !strcmp(s->spec.config.device, "cpu") && machine && s->estimate.memory > machine;
}

/* Runs that are to be done and cannot start. */
static void warn_of_memory(const struct plan *plan, bool retry) {
    const struct setup *first = NULL;
    int n = 0;
    for (int i = 0; i < plan->n; i++) {
        const struct setup *s = plan->setups[i];
        if (!is_too_large(s) || reuse_is_there(s, retry)) continue;
        if (!first) first = s;
        n++;
    }
    if (!first) return;
    fprintf(stderr,
            "%d of them cannot start and will be oom: %s %s needs %zu MB of memory, the machine has %zu MB; lower "
            "batch, length or width\n",
            n, first->spec.task.name, first->id.model_label, first->estimate.memory >> 20,
            machine_memory_bytes() >> 20);
}

/* Estimates the time of a run on one core at so many FLOPs a second, at most its time limit. */
static double seconds_of(const struct announced *a, const struct setup *s, double flops_per_s) {
    double seconds = s->estimate.flops / flops_per_s, limit = limit_seconds(a->plan, s, a->limit_s, a->shares);
    return limit > 0 && limit < seconds ? limit : seconds;
}

/* ", seeds 1 to 3", for --seeds 3 might be read as seed 3; ", seeds from 2 to 9" of a list with gaps. */
static void print_seeds(const struct plan *plan) {
    int64_t first = INT64_MAX, last = 0, n = 0;
    for (int i = 0; i < plan->n; i++) {
        int64_t seed = plan->setups[i]->spec.config.seed;
        int before = 0;
        while (before < i && plan->setups[before]->spec.config.seed != seed) before++;
        n += before == i;
        first = seed < first ? seed : first;
        last = seed > last ? seed : last;
    }
    if (n == 1)
        fprintf(stderr, ", seed %" PRId64, first);
    else
        fprintf(stderr, ", seeds %s%" PRId64 " to %" PRId64, n == last - first + 1 ? "" : "from ", first, last);
}

/* "s3 and others, profile quick: 8 runs (2 of them custom), seeds 1 to 2" */
static void print_what(const struct announced *a) {
    const struct plan *plan = a->plan;
    int other = 0; /* than the profile makes: their records will say custom */
    for (int i = 0; i < plan->n; i++) other += strcmp(plan->setups[i]->spec.config.profile, a->resolved->profile) != 0;
    fprintf(stderr, "%s%s, profile %s: %d run%s", a->name ? a->name : plan->setups[0]->spec.task.name,
            !a->name && plan_has_several_tasks(plan) ? " and others" : "",
            other == plan->n ? PROFILE_CUSTOM : a->resolved->profile, plan->n, plan->n == 1 ? "" : "s");
    if (other && other < plan->n) fprintf(stderr, " (%d of them " PROFILE_CUSTOM ")", other);
    print_seeds(plan);
}

void announce_runs(const struct announced *a) {
    const struct plan *plan = a->plan;
    const double flops_per_s = GEMM_SHARE * gemm_rate() * 1e9;
    double time = 0, bytes = 0;
    int to_do = 0;
    for (int i = 0; i < plan->n; i++) {
        if (reuse_is_there(plan->setups[i], a->retry)) continue;
        time += seconds_of(a, plan->setups[i], flops_per_s);
        bytes += bytes_of(plan->setups[i]);
        to_do++;
    }
    if (a->resolved->defaulted)
        fprintf(stderr, "this task has no profile of its own; taken is: %s\n", a->resolved->note);
    print_what(a);
    if (to_do == 0) {
        fprintf(stderr, ", none left to do\n");
        return;
    }
    if (to_do < plan->n) fprintf(stderr, ", %d left to do", to_do);
    int jobs = a->most_at_a_time < to_do ? a->most_at_a_time : to_do;
    time /= jobs;
    char most[64] = "under a second";
    if (time >= 1) {
        const char *unit = time_unit(&time);
        snprintf(most, sizeof most, "at most about %.1f %s", time, unit);
    }
    fprintf(stderr, ", %d at a time, %s on this machine (less with early stopping) and %.*f MB of disk\n", jobs, most,
            bytes < 1e7, bytes / 1e6);
    warn_of_memory(plan, a->retry);
}

void announce_speeds(const struct plan *plan, const char *name, const char *profile, int threads, double seconds) {
    double least, most, rate = GEMM_SHARE * gemm_rate() * 1e9 * threads;
    int n = speed_expect(plan, threads, seconds, rate, &least, &most);
    fprintf(stderr, "%s, profile %s: the speed of ", name, profile);
    if (n == 0) {
        fprintf(stderr, "every model is in %s/perf.csv\n", plan->setups[0]->spec.config.out);
        return;
    }
    const char *unit = time_unit(&least), *longer = time_unit(&most);
    fprintf(stderr, "%d model%s, one after the other, about %.1f %s, up to %.1f %s beside other work\n", n,
            n == 1 ? "" : "s", least, unit, most, longer);
}

/* --- at the end --------------------------------------------------------------------------------------------------- */

/* Words that make a report of the plan's table: " --paper s5 --profile quick --where 'seeds=3 lr=0.01'". NULL: nothing
 * does, or no memory. The caller's to free. */
static char *paper_words(const struct ended *s) {
    struct printed where = {0}, words = {0};
    struct label call;
    bool whole = !*s->request->config_file && request_call(s->request, s->resolved->profile, &call, NULL) == ST_OK &&
                 printed_begin(&where, "a hint", NULL) == ST_OK;
    for (int i = 0; whole && i < call.n; i++) {
        const char *key = label_key(&call, i), *value = label_value(&call, i);
        if (!strcmp(key, "plan") || !strcmp(key, "tasks") || !strcmp(key, "profile")) continue;
        fprintf(where.f, "%s%s=%s", ftell(where.f) > 0 ? " " : "", key, value);
        whole = !strpbrk(value, " \t");
    }
    if (where.f) printed_end(&where, ST_OK, "a hint", NULL);
    whole = whole && where.text && printed_begin(&words, "a hint", NULL) == ST_OK;
    if (whole) {
        fputs(" --paper ", words.f), shell_quote(words.f, s->request->file_word);
        fputs(" --profile ", words.f), shell_quote(words.f, s->resolved->profile);
        if (*s->request->tasks) fputs(" --task ", words.f), shell_quote(words.f, s->request->tasks);
        if (*where.text) fputs(" --where ", words.f), shell_quote(words.f, where.text);
        printed_end(&words, ST_OK, "a hint", NULL);
    }
    free(where.text);
    return words.text;
}

/* The table that was printed is what a report of the folder prints, unless a plan's flags are more than it takes. */
static void tell_again(const struct ended *s, const char *out) {
    char *paper = s->plan_table ? paper_words(s) : NULL;
    fprintf(stderr, "%s: %s report --out %s%s", paper || !s->plan_table ? "again" : "all tables", shell_program(), out,
            paper ? paper : "");
    if (s->task) fputs(" --task ", stderr), shell_quote(stderr, s->task);
    if (!s->plan_table && s->protocol) fprintf(stderr, " --protocol %s", s->protocol);
    if (!s->plan_table && s->confirm) fprintf(stderr, " --confirm-seeds %" PRId64, s->confirm);
    fputc('\n', stderr);
    free(paper);
}

void announce_end(const struct ended *s) {
    char out[4 * OPTION_TEXT];
    bool speed = s->resolved->speed;
    const char *drawn = speed ? "a plot of them" : "plots of its tasks";
    fflush(stdout);
    shell_word(s->out, out, sizeof out);
    if (speed)
        fprintf(stderr, "\nspeeds in %s/perf.csv; ", s->out);
    else
        fprintf(stderr, "\nrecords in %s/runs, tables in %s/summary.csv%s and runs.csv%s; ", s->out, s->out,
                s->protocol || s->confirm ? " (val-mean of all seeds there)" : "",
                s->plots ? ", plots beside them" : "");
    if (!s->plots && !s->no_plots)
        fprintf(stderr, "%s: %s plot%s --out %s; ", drawn, shell_program(), speed ? " throughput" : "", out);
    tell_again(s, out);
}
