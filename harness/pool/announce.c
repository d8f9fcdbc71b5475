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

/* "s3 and others, profile quick: 8 runs (2 of them custom)" */
static void print_what(const struct announced *a) {
    const struct plan *plan = a->plan;
    int other = 0; /* than the profile makes: their records will say custom */
    for (int i = 0; i < plan->n; i++) other += strcmp(plan->setups[i]->spec.config.profile, a->resolved->profile) != 0;
    fprintf(stderr, "%s%s, profile %s: %d run%s", a->name ? a->name : plan->setups[0]->spec.task.name,
            !a->name && plan_has_several_tasks(plan) ? " and others" : "",
            other == plan->n ? PROFILE_CUSTOM : a->resolved->profile, plan->n, plan->n == 1 ? "" : "s");
    if (other && other < plan->n) fprintf(stderr, " (%d of them " PROFILE_CUSTOM ")", other);
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

/* A pair for --where, which has blanks between them; false: the value has one itself. */
static bool put_pair(FILE *f, const char *key, const char *value) {
    fprintf(f, "%s%s=%s", ftell(f) > 0 ? " " : "", key, value);
    return !strpbrk(value, " \t");
}

/* The flags that the plan's runs had, as --where takes them: "" for none. False: it cannot say all of them. */
static bool put_flags(FILE *f, const struct request *r) {
    bool whole = !*r->config_file;
    for (int i = 0; i < r->said.n; i++) {
        const char *key = label_key(&r->said, i);
        const struct option *o = option_find(config_options, key);
        bool of_call = o && (o->flags & OPT_HERE) && strcmp(key, "from") != 0; /* --out, --force */
        bool grid = !strncmp(key, "task.", 5) || !strncmp(key, "model.", 6);
        if (!of_call) whole = !grid && put_pair(f, key, label_value(&r->said, i)) && whole;
    }
    return whole;
}

/* Words that make a report of the plan's table: " --paper s5 --profile quick --where 'seeds=3 lr=0.01'". NULL: nothing
 * does, or no memory. The caller's to free. */
static char *paper_words(const struct ended *s) {
    char *where = NULL, *words = NULL;
    size_t size, length;
    FILE *f = open_memstream(&where, &size);
    if (!f) return NULL;
    bool whole = put_flags(f, s->request);
    whole = fclose(f) == 0 && whole;
    f = whole ? open_memstream(&words, &length) : NULL;
    if (f) {
        fputs(" --paper ", f);
        shell_quote(f, s->request->file_word);
        fputs(" --profile ", f);
        shell_quote(f, s->resolved->profile);
        if (*s->request->tasks) fputs(" --task ", f), shell_quote(f, s->request->tasks);
        if (*where) fputs(" --where ", f), shell_quote(f, where);
        if (fclose(f) != 0) free(words), words = NULL;
    }
    free(where);
    return words;
}

/* The table that was printed is what a report of the folder prints, unless a plan's flags are more than it takes. */
static void tell_again(const struct ended *s, const char *out) {
    char *paper = s->plan_table ? paper_words(s) : NULL;
    fprintf(stderr, "%s: lrnn report --out %s%s", paper || !s->plan_table ? "again" : "all tables", out,
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
    const char *drawn = speed ? "a plot of them: lrnn plot throughput" : "plots of its tasks: lrnn plot";
    fflush(stdout);
    shell_word(s->out, out, sizeof out);
    if (speed)
        fprintf(stderr, "\nspeeds in %s/perf.csv; ", s->out);
    else
        fprintf(stderr, "\nrecords in %s/runs, tables in %s/summary.csv%s and runs.csv%s; ", s->out, s->out,
                s->protocol || s->confirm ? " (val-mean of all seeds there)" : "",
                s->plots ? ", plots beside them" : "");
    if (!s->plots && !s->no_plots) fprintf(stderr, "%s --out %s; ", drawn, out);
    tell_again(s, out);
}
