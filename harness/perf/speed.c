/* speed.c - training throughput of a plan's cells, each alone on the machine; see speed.h. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/run/signals.h"
#include "harness/run/trainer.h"
#include "harness/perf/sitting.h"
#include "harness/perf/speed.h"
#include "harness/store/clock.h"
#include "harness/store/perf_log.h"
#include "harness/store/machine.h"

#define ROUGH_STEPS   10 /* of a measurement that need not be quiet */
#define ROUGH_SAMPLES 5  /* the last of them; the others warm up */

static void describe_row(const struct setup *s, int threads, struct perf_row *row) {
    struct machine m;
    machine_read(&m);
    sitting_describe(row, &m, threads);
    snprintf(row->dtype, sizeof row->dtype, "%s", precision_name((enum precision)s->config.precision));
    snprintf(row->bench, sizeof row->bench, "train-step");
    snprintf(row->shape, sizeof row->shape, "%.120s B%" PRId64 " T%" PRId64 " D%" PRId64 " L%" PRId64 " V%" PRId64,
             s->model_label, s->config.batch, s->task.shape.T, s->config.net.dim, s->config.net.layers,
             s->task.shape.vocab_out);
    snprintf(row->pass, sizeof row->pass, "step");
    snprintf(row->cell_id, sizeof row->cell_id, "%s", s->cell_id);
}

struct stepping {
    struct trainer trainer;
    int64_t together; /* steps of a sample: on a device those that are queued at once */
};

static enum status take_steps(void *context, struct error *e) {
    struct stepping *s = context;
    for (int64_t i = 0; i < s->together; i++) trainer_step(&s->trainer);
    return trainer_sync(&s->trainer, e);
}

/* The mean of a few steps, for a guess at how long many will take. */
static enum status measure_roughly(struct stepping *s, struct sitting *sitting, struct error *e) {
    double start = 0;
    for (int i = 0; i < ROUGH_STEPS; i++) {
        if (i == ROUGH_STEPS - ROUGH_SAMPLES) start = time_now_s();
        TRY(take_steps(s, e));
    }
    double mean = (time_now_s() - start) / ROUGH_SAMPLES;
    *sitting = (struct sitting){ROUGH_SAMPLES, -1, mean, NAN, NAN, NAN};
    return ST_OK;
}

/* One cell, in this process. */
static enum status measure_step_time(const struct setup *setup, int threads, double seconds, struct perf_row *row,
                                     struct error *e) {
    struct sitting sitting;
    struct stepping *s = calloc(1, sizeof *s);
    if (!s) return fail(e, ST_MEMORY, "no memory for a trainer");
    omp_set_num_threads(threads);
    enum status status = trainer_create(&s->trainer, setup, e);
    if (status == ST_OK) {
        s->together = trainer_sync_every(&s->trainer);
        status = seconds > 0 ? sitting_run_quiet(&sitting, take_steps, s, seconds, e) : measure_roughly(s, &sitting, e);
    }
    if (status == ST_OK) {
        *row = (struct perf_row){0};
        describe_row(setup, threads, row);
        sitting_fill(&sitting, (double)(s->together * setup->config.batch * setup->task.shape.T), row);
        row->time_ns_med /= (double)s->together;
        row->time_ns_mad /= (double)s->together;
        row->time_ns_p95 /= (double)s->together;
    }
    trainer_free(&s->trainer);
    free(s);
    return status;
}

/* What the measuring process says: a row, or why there is none. Smaller than PIPE_BUF, so written whole. */
struct answer {
    struct perf_row row;
    struct error error;
};
_Static_assert(sizeof(struct answer) <= PIPE_BUF, "an answer is one write");

static _Noreturn void answer(const struct setup *s, int threads, double seconds, int fd) {
    struct answer a = {.error = {ST_OK, ""}};
    a.error.status = measure_step_time(s, threads, seconds, &a.row, &a.error);
    ssize_t n = write(fd, &a, sizeof a);
    _exit(n != (ssize_t)sizeof a);
}

/* In a child: the parent of parallel runs must never start threads. */
enum status speed_measure(const struct setup *s, int threads, double seconds, struct perf_row *row, struct error *e) {
    int ends[2];
    struct answer a;
    ssize_t n = -1;
    fflush(NULL);
    if (pipe(ends) != 0) return fail(e, ST_FAIL, "cannot make a pipe to measure speed: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) answer(s, threads, seconds, ends[1]);
    close(ends[1]);
    while (pid > 0 && (n = read(ends[0], &a, sizeof a)) < 0 && errno == EINTR) continue;
    close(ends[0]);
    if (pid < 0) return fail(e, ST_FAIL, "cannot start a process to measure speed: %s", strerror(errno));
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    if (n != (ssize_t)sizeof a) return fail(e, ST_FAIL, "the process that measures %s has died", s->model_label);
    if (a.error.status != ST_OK) return fail(e, a.error.status, "speed of %s: %.900s", s->model_label, a.error.text);
    *row = a.row;
    return ST_OK;
}

/* Whether the folder has the cell's speed already, of this build on this machine. One that was noisy stays: where
 * others always work, another try would be no better. */
static bool is_measured(const struct setup *s, int threads) {
    struct perf_row row, mine = {0};
    struct machine m;
    if (s->config.force || !perf_latest(s->config.out, s->cell_id, &row)) return false;
    machine_read(&m);
    sitting_describe(&mine, &m, threads);
    return perf_is_alike(&row, &mine);
}

/* Of the runs of a cell the first one stands for all. */
static bool is_to_measure(const struct plan *plan, int i, int threads) {
    for (int j = 0; j < i; j++)
        if (!strcmp(plan->setups[j]->cell_id, plan->setups[i]->cell_id)) return false;
    return !is_measured(plan->setups[i], threads);
}

/* What cannot be measured has no speed in the table, and the others have. */
static enum status measure_and_keep(const struct setup *s, int threads, double seconds, struct error *e) {
    struct perf_row row;
    struct error why;
    if (speed_measure(s, threads, seconds, &row, &why) == ST_OK) return perf_append(s->config.out, &row, e);
    fprintf(stderr, "lrnn: %s\n", why.text);
    return ST_OK;
}

enum status bench_measure_speed(const struct plan *plan, int threads, double seconds, bool quiet, struct error *e) {
    for (int i = 0; i < plan->n && !signal_received(); i++) {
        const struct setup *s = plan->setups[i];
        if (!is_to_measure(plan, i, threads)) continue;
        if (!quiet && isatty(STDERR_FILENO)) fprintf(stderr, "\r\033[Kmeasuring the speed of %s", s->model_label);
        TRY(measure_and_keep(s, threads, seconds, e));
    }
    if (!quiet && isatty(STDERR_FILENO)) fputs("\r\033[K", stderr);
    return ST_OK;
}

int speed_expect(const struct plan *plan, int threads, double seconds, double flops_per_s, double *least,
                 double *most) {
    int n = 0;
    *least = *most = 0;
    for (int i = 0; i < plan->n; i++) {
        const struct setup *s = plan->setups[i];
        double low, high;
        if (!is_to_measure(plan, i, threads)) continue;
        sitting_expect(s->flops / (double)s->steps / flops_per_s, seconds, &low, &high);
        *least += low;
        *most += high;
        n++;
    }
    return n;
}
