/* speed.c - training throughput of a plan's cells, measured one at a time; see speed.h. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/paragraph.h"
#include "harness/run/signals.h"
#include "harness/run/trainer.h"
#include "harness/perf/measure.h"
#include "harness/perf/speed.h"
#include "harness/store/clock.h"
#include "harness/store/logs.h"
#include "kernels/lib/parallel.h"

#define LOOK_EVERY_MS 200
#define ROUGH_STEPS   10 /* steps of a rough measurement */
#define ROUGH_SAMPLES 5  /* the last steps, which are timed; the others warm up */

struct stepping {
    struct trainer *trainer;
    int64_t together; /* steps per sample: on a device, as many as are queued at once */
};

static enum status take_steps(void *context, struct error *e) {
    struct stepping *s = context;
    for (int64_t i = 0; i < s->together; i++) trainer_step(s->trainer);
    return trainer_sync(s->trainer, e);
}

/* Takes the mean of a few steps, to estimate how long many will take. */
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

/* Measures one cell in this process and describes it. */
static enum status measure_here(struct setup *setup, int threads, double seconds, struct perf_row *row,
                                struct error *e) {
    const struct config *c = &setup->spec.config;
    const struct task_shape *task = &setup->spec.task.shape;
    struct sitting sitting;
    struct machine m;
    TRY(parallel_start(threads, NULL, e));
    TRY(setup_open(setup, e));
    struct stepping s = {.trainer = trainer_open(trainer_create, setup, e)};
    if (!s.trainer) return e->status;
    s.together = trainer_sync_every(s.trainer);
    enum status status =
        seconds > 0 ? sitting_run_quiet(&sitting, take_steps, &s, seconds, e) : measure_roughly(&s, &sitting, e);
    trainer_close(s.trainer);
    TRY(status);
    *row = (struct perf_row){.bench = "train-step", .pass = "step"};
    machine_read(&m);
    sitting_describe(row, &m, threads);
    snprintf(row->dtype, sizeof row->dtype, "%s", precision_name((enum precision)c->precision));
    snprintf(row->shape, sizeof row->shape, "%.120s B%" PRId64 " T%" PRId64 " D%" PRId64 " L%" PRId64 " V%" PRId64,
             setup->id.model_label, c->batch, task->T, c->net.dim, c->net.layers, task->vocab_out);
    snprintf(row->device, sizeof row->device, "%.*s", (int)strcspn(c->device, ":"), c->device);
    snprintf(row->cell_id, sizeof row->cell_id, "%s", setup->id.cell_id);
    double steps = (double)s.together;
    sitting_fill(&sitting, steps * (double)(c->batch * task_documents(task) * task->T), row);
    row->time_ns /= steps;
    row->time_ns_mad /= steps;
    row->time_ns_p95 /= steps;
    return ST_OK;
}

/* Answer of the measuring process: a row or an error. Smaller than PIPE_BUF, so that it is written atomically. */
struct answer {
    struct perf_row row;
    struct error error;
};
_Static_assert(sizeof(struct answer) <= PIPE_BUF, "an answer is one write");

/* Measures in a child process, because the parent of parallel runs must never start threads. A signal to the parent
 * ends the child, which has nothing to save. */
enum status speed_measure(struct setup *s, int threads, double seconds, struct perf_row *row, struct error *e) {
    int ends[2];
    struct answer a = {.error = {ST_OK, ""}};
    ssize_t n = -1;
    fflush(NULL);
    if (pipe(ends) != 0) return fail(e, ST_FAIL, "cannot make a pipe to measure speed: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        a.error.status = measure_here(s, threads, seconds, &a.row, &a.error);
        _exit(write(ends[1], &a, sizeof a) != (ssize_t)sizeof a);
    }
    close(ends[1]);
    struct pollfd news = {.fd = ends[0], .events = POLLIN};
    while (pid > 0 && poll(&news, 1, LOOK_EVERY_MS) <= 0)
        if (signal_received()) kill(pid, SIGKILL);
    while (pid > 0 && (n = read(ends[0], &a, sizeof a)) < 0 && errno == EINTR) continue;
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

/* --- the cells of a plan ------------------------------------------------------------------------------------------ */

/* The cells of a plan (a cell is all runs that differ only in the seed). Cells of one row of a table differ only in the
 * learning rate, which does not change the work of a step, so one of them is measured for all. */
struct speeds {
    const struct plan *plan;
    int threads;
    struct perf_row mine; /* describes this build, machine, system and threads */
};

static void speeds_begin(struct speeds *s, const struct plan *plan, int threads) {
    struct machine m;
    *s = (struct speeds){.plan = plan, .threads = threads};
    machine_read(&m);
    sitting_describe(&s->mine, &m, threads);
}

/* True if the folder has the cell's speed. A disturbed measurement counts too, because on a busy machine another try
 * would be no better. */
static bool has_row(const struct speeds *s, int i, struct perf_row *row) {
    const struct setup *setup = s->plan->setups[i];
    return perf_latest(setup->spec.config.out, setup->id.cell_id, &s->mine, row);
}

/* True if run i is the first of its cell, and the cell is to be measured. */
static bool is_wanted(const struct speeds *s, int i) {
    struct perf_row row;
    for (int k = 0; k < i; k++)
        if (!strcmp(s->plan->setups[k]->id.cell_id, s->plan->setups[i]->id.cell_id)) return false;
    return s->plan->setups[i]->spec.config.force || !has_row(s, i, &row);
}

/* Finds a run of another cell in the same row whose speed is known, or will be measured before this cell's turn; -1:
 * none. */
static int alike(const struct speeds *s, int i) {
    struct perf_row row;
    for (int k = 0; k < s->plan->n; k++) {
        if (k == i || strcmp(s->plan->setups[k]->id.row_id, s->plan->setups[i]->id.row_id) != 0) continue;
        if (k < i || (!s->plan->setups[i]->spec.config.force && has_row(s, k, &row))) return k;
    }
    return -1;
}

/* Appends the speed of run i's cell: a copy from a cell of the same row, else a new measurement. If it cannot be
 * measured, the table has no speed. */
static enum status measure_cell(const struct speeds *s, int i, double seconds, bool tell, struct error *e) {
    struct setup *setup = s->plan->setups[i];
    const char *out = setup->spec.config.out;
    struct perf_row row;
    struct error why;
    int from = alike(s, i);
    if (from >= 0 && has_row(s, from, &row)) {
        snprintf(row.cell_id, sizeof row.cell_id, "%s", setup->id.cell_id);
        return perf_append(out, &row, e);
    }
    if (tell) fprintf(stderr, "\r\033[Kmeasuring the speed of %s", setup->id.model_label);
    if (speed_measure(setup, s->threads, seconds, &row, &why) == ST_OK) return perf_append(out, &row, e);
    if (!signal_received()) fprintf(stderr, "lrnn: %s\n", why.text);
    return ST_OK;
}

enum status speed_measure_plan(const struct plan *plan, int threads, double seconds, bool quiet, struct error *e) {
    struct speeds s;
    enum status status = ST_OK;
    bool tell = !quiet && terminal_has_codes(stderr);
    speeds_begin(&s, plan, threads);
    for (int i = 0; i < plan->n && status == ST_OK && !signal_received(); i++)
        if (is_wanted(&s, i)) status = measure_cell(&s, i, seconds, tell, e);
    if (tell) fputs("\r\033[K", stderr);
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
    return n;
}

/* --- a time limit as a number of steps ---------------------------------------------------------------------------- */

double limit_seconds(const struct plan *plan, const struct spec *s, double limit_s, int jobs) {
    double share = jobs < plan->n ? limit_s * jobs / plan->n : limit_s, own = s->config.budget;
    if (share <= 0) return own;
    return own > 0 && own < share ? own : share;
}

/* Times a few steps of the run, and computes how many steps fit into `seconds`. */
static enum status steps_in(struct setup *s, double seconds, int threads, struct limit_row *row, struct error *e) {
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

/* Decision for the first run of a row of a table. It applies to the whole row, so that all seeds and rates get the same
 * number of steps. */
struct decided {
    char row[RUN_ID_HEX];
    struct limit_row limit;
};

/* Decides the number of steps of a run: from limits.csv, else as decided for its row, else by a measurement. A new
 * decision is written to limits.csv. rows: *n decisions so far, with room for one more. */
static enum status decide(struct decided *rows, int *n, struct setup *s, double seconds, int threads,
                          struct limit_row *limit, struct error *e) {
    const char *out = s->spec.config.out, *run_id = s->id.run_id;
    int at = 0;
    memcpy(rows[*n].row, s->id.row_id, sizeof rows[*n].row);
    while (strcmp(rows[at].row, rows[*n].row) != 0) at++;
    if (!limit_find(out, run_id, seconds, limit)) {
        if (at < *n)
            *limit = rows[at].limit;
        else
            TRY(steps_in(s, seconds, threads, limit, e));
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
        double seconds = limit_seconds(plan, &s->spec, limit_s, jobs);
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
