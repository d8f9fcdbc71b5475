/* announce.c - see announce.h. */
#include "harness/pool/announce.h"

#include <inttypes.h>
#include <math.h>
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

#define GEMM_SHARE 0.6 /* the share of a matrix product's rate that a training step usually reaches */

/* Measures the GFLOP/s of one core by a short matrix product. This suffices to tell minutes, hours and days apart. */
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

/* Estimates how many bytes a run leaves on disk: its record and CSV rows, which have a fixed part and a part for each
 * point of the curve, and its weights. */
static double bytes_of(const struct setup *s) {
    enum { RECORD_BYTES = 4300 + 2300, POINT_BYTES = 120 + 170 };
    int64_t evaluations = s->shapes.steps / s->shapes.eval_every + 1;
    double points = 2 * (double)evaluations;
    double weights = (double)s->estimate.params * (double)sizeof(real);
    int kept = s->spec.config.keep_weights == KEEP_NONE ? 0 : s->spec.config.keep_weights == KEEP_ALL ? 2 : 1;
    return RECORD_BYTES + POINT_BYTES * points + kept * weights;
}

/* Chooses a unit for a time, and divides *seconds by it. */
static const char *time_unit(double *seconds) {
    const char *unit = *seconds < 90 ? "seconds" : *seconds < 5400 ? "minutes" : *seconds < 129600 ? "hours" : "days";
    *seconds /= *seconds < 90 ? 1 : *seconds < 5400 ? 60 : *seconds < 129600 ? 3600 : 86400;
    return unit;
}

/* Whether the run needs more memory than this machine has. The memory of devices is not checked. */
static bool is_too_large(const struct setup *s) {
    size_t machine = machine_memory_bytes();
    return !strcmp(s->spec.config.device, "cpu") && machine && s->estimate.memory > machine;
}

/* Warns of planned runs that do not fit into memory. */
static void warn_of_memory(const struct plan *plan, bool retry) {
    const struct setup *first = NULL;
    int n = 0;
    for (int i = 0; i < plan->n; i++) {
        const struct setup *s = plan->setups[i];
        if (!is_too_large(s) || reuse_is_there(&s->spec.config, s->id.run_id, retry)) continue;
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

/* --- how long it takes -------------------------------------------------------------------------------------------- */

/* Steps are timed only if the rate of matrix products predicts more than this many seconds for all runs. */
#define WORTH_TIMING_S 20.0
#define TIMING_S       2.0 /* limit for all timings together */
#define START_S        0.1 /* cost of starting a run: process and trainer */
#define TIMED_STEPS    10
#define LAUNCHES_S     1e-3 /* launch time of a small net's step on a device */
#define USUAL_SLOWNESS 2.5  /* how much slower than predicted a step usually is, if it was not timed */

static bool is_on_device(const struct spec *s) {
    return strcmp(s->config.device, "cpu") != 0;
}

/* Predicts the seconds of a step from the rate of matrix products; on a device, at least the time of its launches. */
static double guess_step(const struct setup *s, double flops_per_s) {
    double products = s->estimate.flops / (double)s->shapes.steps / flops_per_s;
    return is_on_device(&s->spec) ? fmax(products, LAUNCHES_S) : products;
}

/* Returns the work of validation and test relative to training. A forward pass counts as a third of a step. */
static double share_of_evaluation(const struct setup *s) {
    const struct task_shape *t = &s->spec.task.shape;
    double looks = floor((double)s->shapes.steps / (double)s->shapes.eval_every) + 1;
    double val = (double)t->examples[SPLIT_VAL], test = (double)t->examples[SPLIT_TEST];
    double examples = looks * (val + (s->spec.config.test_each ? test : 0)) + test;
    return examples / 3 / ((double)s->shapes.steps * (double)s->spec.config.batch);
}

/* A row (runs that differ only in rate and seed), and how many times slower its steps are than guess_step predicts. */
struct timed {
    char row[RUN_ID_HEX];
    double slowness;
};

/* Times steps of one run in each row, until TIMING_S have passed. *usual becomes the mean slowness. Returns the number
 * of timed rows, which is at most n. */
static int time_steps(struct setup *const *to_do, int n, double flops_per_s, struct timed *timed, double *usual) {
    double began = time_now_s(), sum = 0;
    int n_timed = 0;
    for (int i = 0; i < n; i++) {
        struct setup *s = to_do[i];
        struct timed *t = &timed[n_timed];
        struct perf_row speed;
        struct error ignored;
        double guess = guess_step(s, flops_per_s), left = TIMING_S - (time_now_s() - began);
        int k = 0;
        if (left < START_S + TIMED_STEPS * USUAL_SLOWNESS * guess && n_timed) continue;
        if (left < START_S) break;
        while (k < n_timed && strcmp(timed[k].row, s->id.row_id) != 0) k++;
        if (k < n_timed || TIMED_STEPS * guess > TIMING_S) continue;
        int threads = s->spec.config.threads ? (int)s->spec.config.threads : 1;
        if (is_too_large(s) || speed_measure(s, threads, 0, &speed, &ignored) != ST_OK) continue;
        memcpy(t->row, s->id.row_id, sizeof t->row);
        t->slowness = speed.time_ns * 1e-9 / guess;
        sum += t->slowness;
        n_timed++;
    }
    if (n_timed) *usual = sum / n_timed;
    return n_timed;
}

/* Estimates the time of all runs one after another; no run takes longer than its time limit. *measured: steps of at
 * least one run were timed. */
static double total_seconds(const struct announced *a, struct setup **to_do, int n, bool *measured) {
    const double flops_per_s = GEMM_SHARE * gemm_rate() * 1e9;
    struct timed *timed = calloc((size_t)n + 1, sizeof *timed);
    double total = 0, usual = USUAL_SLOWNESS, rough = 0;
    int n_timed = 0;
    for (int i = 0; i < n; i++) rough += guess_step(to_do[i], flops_per_s) * (double)to_do[i]->shapes.steps;
    if (timed && rough > WORTH_TIMING_S) n_timed = time_steps(to_do, n, flops_per_s, timed, &usual);
    for (int i = 0; i < n; i++) {
        const struct setup *s = to_do[i];
        double slowness = usual, limit = limit_seconds(a->plan, &s->spec, a->limit_s, a->shares);
        for (int k = 0; k < n_timed; k++)
            if (!strcmp(timed[k].row, s->id.row_id)) slowness = timed[k].slowness;
        double seconds = guess_step(s, flops_per_s) * (double)s->shapes.steps * slowness * (1 + share_of_evaluation(s));
        total += limit > 0 && limit < seconds ? limit : seconds;
    }
    free(timed);
    *measured = n_timed > 0;
    return total;
}

/* Prints such as "about 12.3 minutes by steps timed here, less with early stopping". */
static void print_time(const struct announced *a, struct setup **to_do, int n) {
    struct error why;
    bool measured, limited = a->limit_s > 0 || a->resolved->config.budget > 0;
    bool device = strcmp(a->resolved->config.device, "cpu") != 0;
    if (device && place_probe(a->resolved->config.device, &why) != ST_OK) {
        fprintf(stderr, "how long is not known without the device (%s)", why.text);
        return;
    }
    double seconds = total_seconds(a, to_do, n, &measured);
    /* for a population, it is not known how much its members slow each other down */
    int jobs = a->most_at_a_time < n ? a->most_at_a_time : n;
    seconds /= device && a->shares < n ? a->shares : jobs;
    const char *of = measured ? "steps timed here" : "the rate of a product here";
    if (seconds < 1) {
        fputs("under a second", stderr);
        return;
    }
    const char *unit = time_unit(&seconds);
    fprintf(stderr, "%sabout %.1f %s (an estimate by %s; less with early stopping)",
            limited || device ? "at most " : "", seconds, unit, of);
}

static int by_seed(const void *a, const void *b) {
    int64_t x = (*(struct setup *const *)a)->spec.config.seed, y = (*(struct setup *const *)b)->spec.config.seed;
    return (x > y) - (x < y);
}

/* Prints ", seeds 1 to 3", because --seeds 3 could be read as seed 3. For a list with gaps it prints ", seeds from 2 to
 * 9". */
static void print_seeds(const struct plan *plan) {
    struct setup **sorted = calloc((size_t)plan->n, sizeof(struct setup *));
    int64_t n = 1;
    if (!sorted) return;
    memcpy(sorted, plan->setups, (size_t)plan->n * sizeof(struct setup *));
    qsort(sorted, (size_t)plan->n, sizeof *sorted, by_seed);
    for (int i = 1; i < plan->n; i++) n += by_seed(&sorted[i - 1], &sorted[i]) != 0;
    int64_t first = sorted[0]->spec.config.seed, last = sorted[plan->n - 1]->spec.config.seed;
    free(sorted);
    if (n == 1)
        fprintf(stderr, ", seed %" PRId64, first);
    else
        fprintf(stderr, ", seeds %s%" PRId64 " to %" PRId64, n == last - first + 1 ? "" : "from ", first, last);
}

/* Prints such as "s3 and others, profile quick: 8 runs (2 of them custom)". */
static void print_what(const struct announced *a) {
    const struct plan *plan = a->plan;
    int other = 0; /* number of runs that the profile does not have; their records say custom */
    for (int i = 0; i < plan->n; i++) other += strcmp(plan->setups[i]->spec.config.profile, a->resolved->profile) != 0;
    fprintf(stderr, "%s%s, profile %s: %d run%s", a->name ? a->name : plan->setups[0]->spec.task.name,
            !a->name && plan_has_several_tasks(plan) ? " and others" : "",
            other == plan->n ? PROFILE_CUSTOM : a->resolved->profile, plan->n, plan->n == 1 ? "" : "s");
    if (other && other < plan->n) fprintf(stderr, " (%d of them " PROFILE_CUSTOM ")", other);
}

void announce_runs(const struct announced *a) {
    const struct plan *plan = a->plan;
    struct setup **to_do = calloc((size_t)plan->n + 1, sizeof(struct setup *));
    double bytes = 0;
    int n = 0;
    for (int i = 0; i < plan->n; i++) {
        if (!to_do) return; /* without memory for the list, nothing is announced */
        struct setup *s = plan->setups[i];
        if (reuse_is_there(&s->spec.config, s->id.run_id, a->retry)) continue;
        bytes += bytes_of(s);
        to_do[n++] = s;
    }
    if (a->resolved->defaulted)
        fprintf(stderr, "this task has no profile of its own; taken is: %s\n", a->resolved->note);
    print_what(a);
    if (n && n < plan->n) fprintf(stderr, ", %d left to do", n);
    if (n) {
        print_seeds(plan);
        fprintf(stderr, ", %d at a time, ", a->most_at_a_time < n ? a->most_at_a_time : n);
        print_time(a, to_do, n);
        fprintf(stderr, " and %.*f MB of disk\n", bytes < 1e7, bytes / 1e6);
        warn_of_memory(plan, a->retry);
        announce_warmup(plan);
    } else {
        fprintf(stderr, ", none left to do\n");
    }
    free(to_do);
}

void announce_warmup(const struct plan *plan) {
    const struct setup *first = NULL;
    int n = 0;
    for (int i = 0; i < plan->n; i++) {
        const struct setup *s = plan->setups[i];
        if (!s->spec.config.warmup || s->spec.config.warmup < s->shapes.steps) continue;
        if (!first) first = s;
        n++;
    }
    if (!first) return;
    fprintf(stderr,
            "--warmup %" PRId64 ": %d of %d run%s end%s within it (after %" PRId64 " steps), so that the rate never "
            "reaches its peak, --lr\n",
            first->spec.config.warmup, n, plan->n, plan->n == 1 ? "" : "s", n == 1 ? "s" : "", first->shapes.steps);
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

/* Returns the words with which `lrnn report` prints the plan's table, such as " --paper s5 --profile quick --where
 * 'seeds=3 lr=0.01'". NULL: no words do, or there is no memory. The caller frees the text. */
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

/* Says which command prints the table again. If `lrnn report` cannot repeat all flags of the plan, it is the command
 * for all tables. */
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
