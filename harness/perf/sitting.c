/* sitting.c - see sitting.h. */
#include "harness/perf/sitting.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/perf/rates.h"
#include "harness/store/clock.h"
#include "harness/store/machine_log.h"
#include "harness/store/perf_log.h"
#include "harness/store/version.h"

#define MIN_SAMPLES 30 /* but at least 5 where as many take more than 5 times the time */
#define FEW_SAMPLES 5
#define WARM_UP     5.0  /* at most, in units of the time for samples */
#define WINDOW      0.02 /* at least, in the same: shorter ones are noise of the clock and the scheduler */

static enum status time_one(enum status (*one)(void *context, struct error *e), void *context, double *seconds,
                            struct error *e) {
    double start = time_now_s();
    TRY(one(context, e));
    *seconds = time_now_s() - start;
    return ST_OK;
}

/* Mean seconds of a sample over a window: ten samples and WINDOW, or fewer that take all of `seconds`. */
static enum status time_window(enum status (*one)(void *context, struct error *e), void *context, double seconds,
                               double *mean, struct error *e) {
    double sum = 0, spent;
    int n = 0;
    for (; n == 0 || ((n < SITTING_WINDOW || sum < WINDOW * seconds) && sum < seconds); n++) {
        TRY(time_one(one, context, &spent, e));
        sum += spent;
    }
    *mean = sum / n;
    return ST_OK;
}

static bool agree(const double last[3]) {
    double low = fmin(fmin(last[0], last[1]), last[2]), high = fmax(fmax(last[0], last[1]), last[2]);
    return high <= (1 + SITTING_AGREE) * low;
}

static enum status warm_up(struct sitting *s, enum status (*one)(void *context, struct error *e), void *context,
                           double seconds, struct error *e) {
    double last[3] = {0}, begin = time_now_s();
    s->warm_up = -1;
    for (int n = 1; s->warm_up < 0 && (n <= 3 || time_now_s() - begin < WARM_UP * seconds); n++) {
        TRY(time_window(one, context, seconds, &last[n % 3], e));
        if (n >= 3 && agree(last)) s->warm_up = n;
    }
    return ST_OK;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* What samples say, of which there is at least one: their number, median, mad and p95. */
static void sitting_summarise(struct sitting *s, const struct samples *all) {
    struct samples sorted = *all;
    qsort(sorted.seconds, (size_t)all->n, sizeof *sorted.seconds, compare_doubles);
    s->samples = all->n;
    s->mad = samples_mad(all);
    s->median = samples_median(all);
    s->p95 = sorted.seconds[(int)(0.95 * (all->n - 1) + 0.5)];
}

static bool is_enough(int n, double spent) {
    return n >= MIN_SAMPLES ? spent >= 1 : n >= FEW_SAMPLES && spent >= FEW_SAMPLES;
}

enum status sitting_run(struct sitting *s, enum status (*one)(void *context, struct error *e), void *context,
                        double seconds, struct error *e) {
    struct samples *all = calloc(1, sizeof *all);
    struct noise noise;
    double spent = 0, latest = 0;
    if (!all) return fail(e, ST_MEMORY, "no memory for the samples");
    enum status status = warm_up(s, one, context, seconds, e);
    noise_begin(&noise);
    while (status == ST_OK && all->n < PERF_SAMPLES && !is_enough(all->n, spent / seconds)) {
        status = time_one(one, context, &latest, e);
        if (status == ST_OK) samples_add(all, latest);
        spent += latest;
    }
    s->foreign = noise_end(&noise);
    if (status == ST_OK) sitting_summarise(s, all);
    free(all);
    return status;
}

bool sitting_is_quiet(const struct sitting *s) {
    return s->warm_up > 0 && s->foreign <= SITTING_FOREIGN && s->p95 <= SITTING_SPREAD * s->median;
}

bool sitting_is_better(const struct sitting *s, const struct sitting *other) {
    if (sitting_is_quiet(s) != sitting_is_quiet(other)) return sitting_is_quiet(s);
    return !(s->foreign > other->foreign); /* unknown: the later one */
}

enum status sitting_run_quiet(struct sitting *s, enum status (*one)(void *context, struct error *e), void *context,
                              double seconds, struct error *e) {
    struct sitting second;
    TRY(sitting_run(s, one, context, seconds, e));
    if (sitting_is_quiet(s)) return ST_OK;
    TRY(sitting_run(&second, one, context, seconds, e));
    if (sitting_is_better(&second, s)) *s = second;
    return ST_OK;
}

void sitting_expect(double one, double seconds, double *least, double *most) {
    double window = fmax(one, fmin(seconds, fmax(SITTING_WINDOW * one, WINDOW * seconds)));
    double samples = fmin(fmax(MIN_SAMPLES * one, seconds), FEW_SAMPLES * fmax(one, seconds));
    *least = 3 * window + samples;
    *most = 2 * (fmax(3 * window, WARM_UP * seconds) + samples);
}

void sitting_fill(const struct sitting *s, double tokens, struct perf_row *row) {
    row->samples = s->samples;
    row->time_ns_med = s->median * 1e9;
    row->time_ns_mad = s->mad * 1e9;
    row->time_ns_p95 = s->p95 * 1e9;
    row->tok_per_s = tokens / s->median;
    row->foreign = s->foreign;
    row->warm_up = s->warm_up;
    row->quiet = sitting_is_quiet(s);
}

void sitting_describe(struct perf_row *row, const struct machine *m, int threads) {
    const struct build_info *b = build_info();
    row->threads = threads;
    time_now_text(row->started, sizeof row->started);
    snprintf(row->sitting, sizeof row->sitting, "%s", row->started);
    snprintf(row->dtype, sizeof row->dtype, "%s", REAL_NAME);
    snprintf(row->commit, sizeof row->commit, "%s", b->commit);
    snprintf(row->build_id, sizeof row->build_id, "%s", b->flags);
    snprintf(row->source_id, sizeof row->source_id, "%s", b->sources);
    snprintf(row->compiler, sizeof row->compiler, "%s", b->compiler);
    snprintf(row->machine_id, sizeof row->machine_id, "%s", m->id);
    snprintf(row->env_epoch, sizeof row->env_epoch, "%s", m->env_epoch);
    snprintf(row->device, sizeof row->device, "cpu");
}

enum status sitting_keep(struct perf_row *row, const struct samples *all, double foreign, double tokens,
                         const char *out, struct error *e) {
    struct sitting s = {.warm_up = 1, .foreign = foreign};
    struct machine m;
    machine_read(&m);
    sitting_describe(row, &m, 1);
    row->dtype[0] = '\0'; /* nothing is multiplied */
    sitting_summarise(&s, all);
    sitting_fill(&s, tokens, row);
    TRY(machines_export(out, &m, e));
    return perf_append(out, row, e);
}
