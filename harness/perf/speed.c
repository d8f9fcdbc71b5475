/* speed.c - training throughput of a plan's cells, each alone on the machine; see speed.h. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <omp.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/paragraph.h"
#include "harness/study/row_key.h"
#include "harness/run/signals.h"
#include "harness/run/trainer.h"
#include "harness/perf/sitting.h"
#include "harness/perf/speed.h"
#include "harness/store/clock.h"
#include "harness/store/perf_log.h"
#include "harness/store/machine.h"

#define LOOK_EVERY_MS 200
#define ROUGH_STEPS   10 /* of a measurement that need not be quiet */
#define ROUGH_SAMPLES 5  /* the last of them; the others warm up */

static void describe_row(const struct setup *s, int threads, struct perf_row *row) {
    struct machine m;
    machine_read(&m);
    sitting_describe(row, &m, threads);
    snprintf(row->dtype, sizeof row->dtype, "%s", precision_name((enum precision)s->spec.config.precision));
    snprintf(row->bench, sizeof row->bench, "train-step");
    snprintf(row->shape, sizeof row->shape, "%.120s B%" PRId64 " T%" PRId64 " D%" PRId64 " L%" PRId64 " V%" PRId64,
             s->id.model_label, s->spec.config.batch, s->spec.task.shape.T, s->spec.config.net.dim,
             s->spec.config.net.layers, s->spec.task.shape.vocab_out);
    snprintf(row->pass, sizeof row->pass, "step");
    snprintf(row->device, sizeof row->device, "%.*s", (int)strcspn(s->spec.config.device, ":"), s->spec.config.device);
    snprintf(row->cell_id, sizeof row->cell_id, "%s", s->id.cell_id);
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
        sitting_fill(&sitting,
                     (double)(s->together * setup->spec.config.batch * task_documents(&setup->spec.task.shape) *
                              setup->spec.task.shape.T),
                     row);
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

/* Waits for the child's answer; a signal to this process ends the child, which has nothing to save. Bytes read. */
static ssize_t hear_answer(pid_t child, int fd, struct answer *a) {
    struct pollfd news = {.fd = fd, .events = POLLIN};
    while (poll(&news, 1, LOOK_EVERY_MS) <= 0)
        if (signal_received()) kill(child, SIGKILL);
    ssize_t n;
    while ((n = read(fd, a, sizeof *a)) < 0 && errno == EINTR) continue;
    return n;
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
    if (pid > 0) n = hear_answer(pid, ends[0], &a);
    close(ends[0]);
    if (pid < 0) return fail(e, ST_FAIL, "cannot start a process to measure speed: %s", strerror(errno));
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue;
    if (n != (ssize_t)sizeof a && signal_received())
        return fail(e, (enum status)(128 + signal_received()), "stopped while the speed of %s was measured",
                    s->id.model_label);
    if (n != (ssize_t)sizeof a) return fail(e, ST_FAIL, "the process that measures %s has died", s->id.model_label);
    if (a.error.status != ST_OK) return fail(e, a.error.status, "speed of %s: %.900s", s->id.model_label, a.error.text);
    *row = a.row;
    return ST_OK;
}

/* The cells of a plan, and what row of a table each is in: those of one row differ in their rate alone, which changes
 * nothing in the work of a step. One of them is measured, and all have its numbers. */
struct speeds {
    const struct plan *plan;
    int threads;
    struct perf_row mine;     /* this build, machine, system and threads */
    char (*rows)[RUN_ID_HEX]; /* NULL, without memory: each cell is measured */
};

static void speeds_begin(struct speeds *s, const struct plan *plan, int threads) {
    struct machine m;
    struct error ignored;
    *s = (struct speeds){.plan = plan, .threads = threads};
    machine_read(&m);
    sitting_describe(&s->mine, &m, threads);
    s->rows = calloc((size_t)plan->n + 1, sizeof *s->rows);
    for (int i = 0; s->rows && i < plan->n; i++) (void)row_key_id(plan->setups[i]->id.text, s->rows[i], &ignored);
}

/* Whether the folder has the cell's speed. One that was noisy counts: where others always work, another try would be no
 * better. */
static bool has_row(const struct speeds *s, int i, struct perf_row *row) {
    const struct setup *setup = s->plan->setups[i];
    return perf_latest_alike(setup->spec.config.out, setup->id.cell_id, &s->mine, row);
}

/* Of the runs of a cell the first one stands for all. */
static bool is_wanted(const struct speeds *s, int i) {
    struct perf_row row;
    for (int k = 0; k < i; k++)
        if (!strcmp(s->plan->setups[k]->id.cell_id, s->plan->setups[i]->id.cell_id)) return false;
    return s->plan->setups[i]->spec.config.force || !has_row(s, i, &row);
}

/* A cell of the same row whose speed is known, or will be when its turn has come, before this one's; -1: none. */
static int alike(const struct speeds *s, int i) {
    struct perf_row row;
    for (int k = 0; k < s->plan->n && s->rows && *s->rows[i]; k++) {
        if (k == i || strcmp(s->rows[k], s->rows[i]) != 0) continue;
        if (k < i || (!s->plan->setups[i]->spec.config.force && has_row(s, k, &row))) return k;
    }
    return -1;
}

/* What cannot be measured has no speed in the table, and the others have. A cell is what it is whether or not its
 * batches are made ahead, and has one speed: that of runs which ask for nothing else. */
static enum status measure_and_keep(const struct setup *s, int threads, double seconds, struct error *e) {
    struct setup usual = *s;
    struct perf_row row;
    struct error why;
    usual.spec.config.ahead = true;
    if (speed_measure(&usual, threads, seconds, &row, &why) == ST_OK) return perf_append(s->spec.config.out, &row, e);
    if (!signal_received()) fprintf(stderr, "lrnn: %s\n", why.text);
    return ST_OK;
}

/* Numbers of a cell stand for another one, too: a row of the same sitting. */
static enum status copy_row(const struct speeds *s, int from, int to, bool *found, struct error *e) {
    struct perf_row row;
    const struct setup *setup = s->plan->setups[to];
    *found = from >= 0 && has_row(s, from, &row);
    if (!*found) return ST_OK;
    snprintf(row.cell_id, sizeof row.cell_id, "%s", setup->id.cell_id);
    return perf_append(setup->spec.config.out, &row, e);
}

static enum status measure_cell(const struct speeds *s, int i, double seconds, bool tell, struct error *e) {
    bool found;
    TRY(copy_row(s, alike(s, i), i, &found, e));
    if (found) return ST_OK;
    if (tell) fprintf(stderr, "\r\033[Kmeasuring the speed of %s", s->plan->setups[i]->id.model_label);
    return measure_and_keep(s->plan->setups[i], s->threads, seconds, e);
}

enum status speed_measure_plan(const struct plan *plan, int threads, double seconds, bool quiet, struct error *e) {
    struct speeds s;
    enum status status = ST_OK;
    bool tell = !quiet && terminal_has_codes(stderr);
    speeds_begin(&s, plan, threads);
    for (int i = 0; i < plan->n && status == ST_OK && !signal_received(); i++)
        if (is_wanted(&s, i)) status = measure_cell(&s, i, seconds, tell, e);
    if (tell) fputs("\r\033[K", stderr);
    free(s.rows);
    return status;
}

int speed_expect(const struct plan *plan, int threads, double seconds, double flops_per_s, double *least,
                 double *most) {
    struct speeds speeds;
    int n = 0;
    *least = *most = 0;
    speeds_begin(&speeds, plan, threads);
    for (int i = 0; i < plan->n; i++) {
        const struct setup *s = plan->setups[i];
        double low, high;
        if (!is_wanted(&speeds, i) || alike(&speeds, i) >= 0) continue;
        sitting_expect(s->estimate.flops / (double)s->shapes.steps / flops_per_s, seconds, &low, &high);
        *least += low;
        *most += high;
        n++;
    }
    free(speeds.rows);
    return n;
}
