/* runner.c - trains the runs of a plan in parallel processes, and shows the progress; see runner.h.
 *
 *   sweep        one call of `lrnn bench`
 *   claim        a lock file, which tells other sweeps in the same folder that this sweep trains a run
 *   job          a place for one run in progress
 *   population   a child process that trains runs
 *   member       a thread of a population, which trains one run at a time
 *
 * The main loop is run_waiting: it starts jobs, reads their reports, and shows a line. The parent has only one thread
 * (it starts no OpenMP region), so forking is safe.
 *
 * If a population dies, only its unfinished runs are lost. If the population had several members, each lost run is
 * repeated in a new process, which trains nothing else. So only the run that caused the death is recorded as failed.
 *
 * A failed run gets a record too. Another child process writes it, because the record needs facts about the test
 * examples, and making these examples takes time. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/paragraph.h"
#include "harness/run/checkpoint.h"
#include "harness/run/live.h"
#include "harness/run/running.h"
#include "harness/run/signals.h"
#include "harness/pool/population.h"
#include "harness/pool/progress_line.h"
#include "harness/pool/runner.h"
#include "harness/store/claim.h"
#include "harness/store/clock.h"
#include "harness/store/record_files.h"
#include "harness/store/shell.h"

#define PLAIN_EVERY    30.0 /* seconds between progress lines when stderr is not a terminal */
#define LOOK_EVERY     2.0  /* seconds between checks of the runs that other sweeps do */
#define MOST_PROCESSES (2 * RUNNER_MOST_JOBS)

struct job {
    struct setup *setup;   /* the run; NULL: the place is free */
    int index;             /* index of the run in r->waiting */
    struct population *by; /* the process that trains the run, or writes the record if the run has failed */
    int member;            /* the member of `by` that trains the run */
    int threads;
    bool timed_out;
    bool writing;           /* the run has failed, and `by` writes the record */
    struct failure failure; /* what the record of a failed run will say */
    double began, beat;     /* when the run began; when the claim was last renewed */
    struct claim claim;
    char started[32];
    struct live live;
    struct member_report last; /* the newest report; only reports of kind REPORT_PROGRESS change `progress` */
    double work_before;        /* planned FLOPs of the steps of this run that earlier sweeps did */
};

struct runner {
    const struct runner_options *options;
    const struct plan *plan;
    struct job jobs[RUNNER_MOST_JOBS];
    /* The first RUNNER_MOST_JOBS processes train: one per device, or one per job. Process RUNNER_MOST_JOBS + j writes
     * the record if the run of job j has failed. */
    struct population populations[MOST_PROCESSES];
    int members; /* members per population; 1: each run has its own process */
    int devices; /* if above 1: number of devices, each with a population; else runs use their setup's device */
    int n_jobs;
    struct setup **waiting;              /* `total` runs in their order; NULL: the run has begun or is done */
    struct setup **alone;                /* alone[i]: run i of `waiting`, if its population lost the run; else NULL */
    int returned;                        /* number of runs in `alone`; the runner repeats them at the end */
    int stopped;                         /* number of runs whose process received a signal from a user */
    int done, total, next;               /* next: index of the run to try next */
    int elsewhere;                       /* number of runs that could not begin because other sweeps are doing them */
    double looked;                       /* when try_to_start was last called */
    bool told_of_others, told_of_memory; /* true: the message has been printed */
    bool several_tasks;                  /* the plan has several tasks, so lines name the task */
    bool write_failed, stopping, terminal;
    const struct setup *longest; /* a run that ends before any other run starts, and has all cores; NULL: none */
    double last_line;            /* when the progress line was last shown */
    struct time_left left;
    double best;        /* the best validation metric of all runs so far; NAN: none */
    double work_total;  /* planned FLOPs of all runs */
    double work_done;   /* planned FLOPs of the runs that have ended */
    double work_before; /* the part of work_done that earlier sweeps did */
    struct error first_error;
};

/* --- display ------------------------------------------------------------------------------------------------------ */

/* Shows the progress. On a terminal it rewrites one line; elsewhere it prints a line every PLAIN_EVERY seconds. */
static void show_line(struct runner *r) {
    double now = time_now_s(), done = r->work_done, before = r->work_before;
    const struct job *shown = NULL; /* each job is shown for 2 seconds in turn */
    char text[512];
    if (r->options->quiet || (!r->terminal && now - r->last_line < PLAIN_EVERY)) return;
    for (int i = 0; i < r->n_jobs; i++) {
        const struct job *j = &r->jobs[((int)(now / 2) + i) % r->n_jobs];
        const struct progress *p = &j->last.progress;
        if (!j->setup) continue;
        if (p->steps) done += j->setup->estimate.flops * (double)p->step / (double)p->steps;
        before += j->work_before;
        if (!shown) shown = j;
    }
    time_left_update(&r->left, now, r->work_total, done, before);
    if (!shown) return;
    const struct progress *p = &shown->last.progress;
    struct progress_view v = {.done = r->done,
                              .total = r->total,
                              .share = r->work_total > 0 ? done / r->work_total : 0,
                              .best = r->best,
                              .left_s = r->left.left_s,
                              .model = shown->setup->id.model_label,
                              .lr = shown->setup->spec.config.lr,
                              .loss = p->steps ? p->loss : NAN,
                              .acc = p->steps ? p->acc : NAN,
                              .tok_per_s = p->steps ? p->tok_per_s : NAN,
                              .seed = shown->setup->spec.config.seed,
                              .step = p->step,
                              .steps = shown->setup->shapes.steps};
    progress_line(&v, r->terminal ? progress_width() : 200, text, sizeof text);
    fprintf(stderr, "%s%s%s", r->terminal ? "\r\033[K" : "", text, r->terminal ? "" : "\n");
    r->last_line = now;
    fflush(stderr);
}

/* Prints a message, unless the sweep is quiet. */
static void say(const struct runner *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct runner *r, const char *format, ...) {
    if (r->options->quiet) return;
    if (r->terminal) fputs("\r\033[K", stderr);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

/* --- starting ----------------------------------------------------------------------------------------------------- */

/* Returns the population of a job. Starts a new population if there is none, or if the old population takes no more
 * runs. Returns NULL if no process can be started. */
static struct population *population_of(struct runner *r, const struct job *j, const char *device) {
    char numbered[16];
    int number = (int)(j - r->jobs) / r->members;
    struct population *p = &r->populations[number];
    if (p->pid && p->told_to_stop) population_end(p); /* p has no runs: see may_start */
    if (p->pid) return p;
    snprintf(numbered, sizeof numbered, "cuda:%d", number);
    if (r->devices > 1) device = numbered;
    enum status status = population_start(p, r->members, device, r->populations, MOST_PROCESSES, &r->first_error);
    return status == ST_OK ? p : NULL;
}

/* Gives run number `index` to the job's process. The run r->longest gets all cores, because the number of threads does
 * not change results. Returns false if the process cannot be started. */
static bool start_job(struct runner *r, struct job *j, int index, const struct claim *claim) {
    struct setup *setup = r->waiting[index];
    int member = (int)(j - r->jobs) % r->members, cores = omp_get_num_procs();
    int threads = setup->spec.config.threads ? (int)setup->spec.config.threads : 1, all = threads * r->n_jobs;
    if (cores < threads) cores = threads;
    if (setup == r->longest) threads = all < cores ? all : cores;
    struct population *p = population_of(r, j, setup->spec.config.device);
    if (p && !population_give(p, member, setup, NULL, threads)) { /* the process died while it had no run */
        population_end(p);
        p = population_of(r, j, setup->spec.config.device);
        if (p && !population_give(p, member, setup, NULL, threads)) {
            fail(&r->first_error, ST_FAIL, "a child process ended before it received a run");
            return false;
        }
    }
    if (!p) return false;
    double now = time_now_s();
    *j = (struct job){.setup = setup,
                      .index = index,
                      .by = p,
                      .member = member,
                      .threads = threads,
                      .began = now,
                      .beat = now,
                      .claim = *claim};
    time_now_text(j->started, sizeof j->started);
    r->waiting[index] = NULL;
    int64_t saved = setup->spec.config.force ? -1 : checkpoint_step(setup->spec.config.out, setup->id.run_id);
    if (saved > 0)
        say(r, "%s seed %" PRId64 " goes on from step %" PRId64 " of %" PRId64, setup->id.model_label,
            setup->spec.config.seed, saved, setup->shapes.steps);
    return true;
}

/* Returns whether another run may start. None may start if the sweep is ending, if r->longest is in progress on all
 * cores, or if a population that was told to stop still has a run. */
static bool may_start(const struct runner *r) {
    for (int i = 0; i < r->n_jobs; i++) {
        const struct job *j = &r->jobs[i];
        if (!j->setup) continue;
        if (j->setup == r->longest && !j->writing) return false;
        if (r->members > 1 && j->by->told_to_stop) return false;
    }
    return !r->stopping && !r->write_failed;
}

/* Returns whether another sweep has recorded run number i in the meantime. If so, counts the run as done. */
static bool is_done_elsewhere(struct runner *r, int i) {
    struct setup *s = r->waiting[i];
    if (record_check(s->spec.config.out, s->id.run_id) != RECORD_DONE) return false;
    r->waiting[i] = NULL;
    r->work_done += s->estimate.flops;
    r->done++;
    return true;
}

/* Begins run number i of `waiting`, unless another sweep is training it or has trained it. */
static void try_to_start(struct runner *r, struct job *j, int i) {
    struct setup *s = r->waiting[i];
    struct claim claim;
    enum claim_state state;
    char name[RECORD_TEXT];
    if (is_done_elsewhere(r, i)) return;
    claim_words(name, s->spec.task.name, s->id.model_label, s->spec.config.lr, s->spec.config.seed);
    if (claim_take(&claim, s->spec.config.out, s->id.run_id, name, &state, &r->first_error) != ST_OK) {
        r->write_failed = true;
    } else if (state == CLAIM_OTHERS) {
        r->elsewhere++;
    } else if (is_done_elsewhere(r, i)) { /* the run was done between the check and the claim */
        claim_done(&claim, s->spec.config.out, s->id.run_id);
    } else if (!start_job(r, j, i, &claim)) {
        claim_release(&claim);
        r->write_failed = true;
    }
}

static void start_jobs(struct runner *r) {
    for (int i = 0; i < r->n_jobs; i++)
        while (!r->jobs[i].setup && r->next < r->total && may_start(r)) {
            int next = r->next++;
            if (r->waiting[next]) try_to_start(r, &r->jobs[i], next);
            r->looked = time_now_s();
        }
    if (r->elsewhere && r->next == r->total && !r->told_of_others) {
        say(r, "another process is training %d run%s of this plan; `%s status` shows which process", r->elsewhere,
            r->elsewhere == 1 ? "" : "s", shell_program());
        r->told_of_others = true;
    }
}

/* --- the end of a run --------------------------------------------------------------------------------------------- */

/* Sets j->failure, which says how the run failed. `died`: the process of the run has died with `wait_status`. */
static void classify(struct job *j, bool died, int wait_status) {
    struct failure *f = &j->failure;
    const size_t size = sizeof f->detail;
    snprintf(f->started, sizeof f->started, "%s", j->started);
    if (j->timed_out) {
        snprintf(f->detail, size, "longer than the time-out");
        f->status = RUN_TIMEOUT;
    } else if (died && WIFSIGNALED(wait_status)) {
        int number = WTERMSIG(wait_status);
        snprintf(f->detail, size, "the process ended by signal %d", number);
        f->status = number == SIGKILL || number == SIGTERM ? RUN_KILLED : RUN_ERROR;
    } else if (died) {
        snprintf(f->detail, size, "the process ended with exit status %d", WEXITSTATUS(wait_status));
        f->status = RUN_ERROR;
    } else {
        snprintf(f->detail, size, "%.500s", j->last.error.text);
        f->status = j->last.error.status == ST_MEMORY ? RUN_OOM : RUN_ERROR;
    }
}

/* Starts a process that writes the record of the job's failed run. Returns false if no process can be started. */
static bool begin_row(struct runner *r, struct job *j) {
    struct population *p = &r->populations[RUNNER_MOST_JOBS + (j - r->jobs)];
    j->by = p;
    j->member = 0;
    j->writing = true;
    j->last = (struct member_report){.progress = j->last.progress};
    if (population_start(p, 1, j->setup->spec.config.device, r->populations, MOST_PROCESSES, &r->first_error) != ST_OK)
        return false;
    if (population_give(p, 0, j->setup, &j->failure, j->threads)) return true;
    population_end(p);
    fail(&r->first_error, ST_FAIL, "the process that writes the record of run %.8s has died", j->setup->id.run_id);
    return false;
}

/* Prints a line with the result in the run's record. */
static void tell_end(const struct runner *r, const struct job *j) {
    const struct setup *s = j->setup;
    const char *task = r->several_tasks ? s->spec.task.name : "", *gap = r->several_tasks ? " " : "";
    char path[RECORD_TEXT * 2], end[RECORD_TEXT + 64] = "on record";
    struct open_record *open;
    record_path(s->spec.config.out, s->id.run_id, path, sizeof path);
    if (record_open(path, &open, NULL) == ST_OK) {
        const struct run *run = &open->record.run;
        if (run->status == RUN_OK)
            snprintf(end, sizeof end, "done in %.0f s, validation %.4f, run %.8s", time_now_s() - j->began,
                     run->val_metric, s->id.run_id);
        else
            snprintf(end, sizeof end, "%s: %s", run_status_names[run->status], run->status_detail);
        record_close(open);
    }
    say(r, "[%d/%d] %s%s%s lr %g seed %" PRId64 " %s", r->done, r->total, task, gap, s->id.model_label,
        s->spec.config.lr, s->spec.config.seed, end);
}

/* Ends a job whose run is done, was stopped, or failed. After a failure the job first writes the record. */
static void finish_job(struct runner *r, struct job *j, bool died, int wait_status) {
    struct setup *s = j->setup;
    struct error end = j->last.error;
    if (died) fail(&end, ST_OK, "the process that writes the record of run %.8s has died", s->id.run_id);
    int ended = (int)end.status;
    bool done = record_check(s->spec.config.out, s->id.run_id) == RECORD_DONE;
    /* True if a file could not be written. The model did not cause this, so the run gets no record. */
    bool unwritten = j->writing || (ended && j->last.unwritten);
    if (done) {
        r->work_done += s->estimate.flops;
        r->work_before += j->work_before;
        r->done++;
        claim_done(&j->claim, s->spec.config.out, s->id.run_id);
        tell_end(r, j);
    } else if (r->stopping) {
        if (ended == ST_FAIL) say(r, "%s seed %" PRId64 ": %s", s->id.model_label, s->spec.config.seed, end.text);
    } else if (ended >= 128) { /* a user sent a signal to the process of this run, which has saved a checkpoint */
        say(r, "%s seed %" PRId64 " was stopped; the same command goes on with it", s->id.model_label,
            s->spec.config.seed);
        j->by->told_to_stop = true;
        r->stopped++;
    } else {
        if (!unwritten) classify(j, died, wait_status);
        if (!unwritten && begin_row(r, j)) return;
        r->write_failed = true;
        if (r->first_error.status == ST_OK) fail(&r->first_error, ST_FAIL, "%s", end.text);
    }
    if (!done) claim_release(&j->claim);
    j->setup = NULL;
}

/* Puts a lost run into r->alone. */
static void return_job(struct runner *r, struct job *j) {
    claim_release(&j->claim);
    r->alone[j->index] = j->setup;
    j->setup = NULL;
    r->returned++;
}

/* --- news of the jobs --------------------------------------------------------------------------------------------- */

/* Prints and stores the content of a new report of a job. */
static void note_report(struct runner *r, struct job *j, struct member_report *report) {
    if (report->kind == REPORT_WAITS && !r->told_of_memory) {
        say(r, "%s: no memory for another run beside the %d in progress; the next run waits until one of these ends",
            j->setup->spec.config.device, report->beside);
        r->told_of_memory = true;
    }
    const struct progress *p = &report->progress;
    /* In the first report, p->step is this sweep's first step of the run. Earlier sweeps did the steps before it. */
    if (report->kind == REPORT_PROGRESS && j->last.progress.steps == 0 && p->step > 1)
        j->work_before = j->setup->estimate.flops * (double)(p->step - 1) / (double)p->steps;
    if (report->kind == REPORT_PROGRESS) live_tell(&j->live, p, &j->claim);
    if (report->kind != REPORT_PROGRESS) report->progress = j->last.progress;
    j->last = *report;
    double acc = report->progress.acc;
    if (isfinite(acc) && !(acc <= r->best)) r->best = acc;
}

/* Returns whether the run must be repeated in a process of its own, because the old process died, lost the device, or
 * ran out of memory while it trained other runs too. */
static bool is_undone(const struct job *j) {
    return j->last.kind != REPORT_END || j->last.error.status == ST_DEVICE ||
           (j->last.error.status == ST_MEMORY && j->last.beside);
}

/* Ends a population with several members that has died or lost the device. First reads the members' last reports, then
 * puts unfinished runs into r->alone. `why` is the error of the device, or NULL if the process has died. */
static void bury(struct runner *r, struct population *p, const struct error *why) {
    int before = r->returned;
    for (int i = 0; i < r->n_jobs; i++) {
        struct job *j = &r->jobs[i];
        struct member_report report;
        if (!j->setup || j->by != p) continue;
        while (j->last.kind != REPORT_END && population_read(p, j->member, &report)) note_report(r, j, &report);
        bool done = record_check(j->setup->spec.config.out, j->setup->id.run_id) == RECORD_DONE;
        if (r->stopping || done || !is_undone(j))
            finish_job(r, j, false, 0);
        else
            return_job(r, j);
    }
    int status = population_end(p), n = r->returned - before;
    if (n == 0) return;
    if (why)
        say(r, "%s", why->text);
    else
        say(r, "a process that trained several runs ended with %s %d", WIFSIGNALED(status) ? "signal" : "exit status",
            WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    say(r, "%d unfinished run%s of this process %s done again, each alone", n, n > 1 ? "s" : "", n > 1 ? "are" : "is");
}

/* Handles the last report of a run: ends the job, or plans to repeat the run alone. */
static void end_of_run(struct runner *r, struct job *j) {
    if (j->by->n == 1) {
        population_end(j->by);
        finish_job(r, j, false, 0);
    } else if (r->stopping || !is_undone(j)) {
        finish_job(r, j, false, 0);
    } else if (j->last.error.status == ST_DEVICE) {
        struct error why = j->last.error;
        bury(r, j->by, &why);
    } else {
        say(r, "%s seed %" PRId64 " ran out of memory beside %d others and is done again alone: %s",
            j->setup->id.model_label, j->setup->spec.config.seed, j->last.beside, j->last.error.text);
        return_job(r, j);
    }
}

/* Reads the next report of a job. If there is no report, the process has died, and its jobs end. */
static void hear(struct runner *r, struct job *j) {
    struct member_report report;
    if (population_read(j->by, j->member, &report)) {
        note_report(r, j, &report);
        if (report.kind == REPORT_END) end_of_run(r, j);
    } else if (j->by->n > 1) {
        bury(r, j->by, NULL);
    } else {
        finish_job(r, j, true, population_end(j->by));
    }
}

/* Waits at most 0.2 s for reports, and ends runs that have taken longer than the time-out. Returns the number of jobs
 * with a run. */
static int wait_for_news(struct runner *r) {
    struct pollfd fds[RUNNER_MOST_JOBS];
    struct job *of[RUNNER_MOST_JOBS];
    int n = 0;
    for (int i = 0; i < r->n_jobs; i++) {
        struct job *j = &r->jobs[i];
        if (!j->setup) continue;
        if (r->options->timeout_s > 0 && !j->timed_out && !j->writing &&
            time_now_s() - j->began > r->options->timeout_s) {
            j->timed_out = true;
            kill(j->by->pid, SIGKILL);
        }
        if (time_now_s() - j->beat > CLAIM_BEAT_S) {
            claim_beat(&j->claim);
            j->beat = time_now_s();
        }
        fds[n] = (struct pollfd){.fd = j->by->reports[j->member], .events = POLLIN};
        of[n++] = j;
    }
    if (n == 0 && r->elsewhere == 0) return 0;
    int ready = poll(fds, (nfds_t)n, 200);
    for (int i = 0; ready > 0 && i < n; i++)
        if (fds[i].revents && of[i]->setup) hear(r, of[i]); /* bury() may have ended this job in an earlier turn */
    return n;
}

/* --- all runs ----------------------------------------------------------------------------------------------------- */

/* Orders runs by seed, so that a sweep that is stopped early has about the same seeds for all models. For each seed,
 * longer runs come first. */
static int by_seed_and_length(const void *a, const void *b) {
    struct setup *const *x = a, *const *y = b;
    if ((*x)->spec.config.seed != (*y)->spec.config.seed)
        return (*x)->spec.config.seed < (*y)->spec.config.seed ? -1 : 1;
    if ((*x)->estimate.flops != (*y)->estimate.flops) return (*x)->estimate.flops < (*y)->estimate.flops ? 1 : -1;
    return strcmp((*x)->id.run_id, (*y)->id.run_id);
}

void runner_order(struct setup **setups, int n) {
    qsort(setups, (size_t)n, sizeof *setups, by_seed_and_length);
}

/* Fills r->waiting with the setups of the runs to train, in order. Checks the checkpoints of all these runs before it
 * changes any file. Removes checkpoints of runs that are done. ST_USAGE: a checkpoint is from another build. */
static enum status select_waiting(struct runner *r, struct error *e) {
    int other = 0;
    bool retry = r->options->retry_failed;
    for (int i = 0; i < r->plan->n; i++) {
        struct setup *s = r->plan->setups[i];
        const struct config *c = &s->spec.config;
        struct reuse found = reuse_find(c, s->id.run_id, retry);
        other += !found.again && found.other;
        if (!reuse_wanted(&found)) {
            if (!found.failed)
                checkpoint_remove(c->out, s->id.run_id); /* a process was killed after it wrote the record */
            continue;
        }
        if (!found.again || !c->force) TRY(checkpoint_admit(&s->spec, s->id.run_id, e));
        r->waiting[r->total++] = s;
        r->work_total += s->estimate.flops;
    }
    for (int i = 0; i < r->total; i++) {
        const struct setup *s = r->waiting[i];
        struct reuse found = reuse_find(&s->spec.config, s->id.run_id, retry);
        TRY(reuse_release(&found, &s->spec.config, s->id.run_id, e));
    }
    reuse_tell(other, r->plan->n);
    runner_order(r->waiting, r->total);
    return ST_OK;
}

/* Sets the number of runs at a time and r->longest. A population has at most as many members as a device has runs. If
 * on the CPU the longest run would end after all others, it is trained before them, on all cores. A GPU would gain
 * nothing from this. */
static void set_jobs(struct runner *r) {
    int most = r->options->members < POPULATION_MOST ? r->options->members : POPULATION_MOST;
    r->devices = r->options->devices > 1 && most > 1 ? r->options->devices : 1;
    if (r->devices > RUNNER_MOST_JOBS) r->devices = RUNNER_MOST_JOBS;
    int fair = (r->total + r->devices - 1) / r->devices, room = RUNNER_MOST_JOBS / r->devices;
    r->members = most < fair ? most : fair;
    if (r->members > room) r->members = room;
    if (r->members < 1) r->members = 1;
    r->n_jobs = most > 1 ? r->members * r->devices : r->options->jobs;
    if (r->n_jobs > RUNNER_MOST_JOBS) r->n_jobs = RUNNER_MOST_JOBS;
    bool is_long = r->total > 0 && r->waiting[0]->estimate.flops * r->n_jobs > r->work_total;
    r->longest = is_long && r->options->members <= 1 ? r->waiting[0] : NULL;
}

/* Trains the waiting runs. Then repeats the lost runs, one at a time, each in a new process. Runs that other sweeps
 * have claimed are tried again every LOOK_EVERY seconds, because they may be done or abandoned by then. */
static void run_waiting(struct runner *r) {
    for (int busy = 1;;) {
        bool looked_at_all = r->next == r->total;
        if (looked_at_all && !r->elsewhere && !busy && !r->returned) break;
        if ((r->stopping || r->write_failed) && !busy) break;
        if (looked_at_all && r->elsewhere && time_now_s() - r->looked >= LOOK_EVERY) r->next = r->elsewhere = 0;
        if (!busy && r->next == r->total && r->returned) {
            for (int i = 0; i < MOST_PROCESSES; i++) population_end(&r->populations[i]);
            for (int i = 0; i < r->total; i++)
                if (r->alone[i]) r->waiting[i] = r->alone[i];
            r->members = r->devices = r->n_jobs = 1;
            r->returned = r->next = r->elsewhere = 0;
        }
        start_jobs(r);
        busy = wait_for_news(r);
        if ((signal_received() || r->write_failed) && !r->stopping) {
            r->stopping = true;
            say(r, "stopping: running runs save their checkpoints");
            for (int i = 0; i < r->n_jobs; i++)
                if (r->jobs[i].setup) population_stop(r->jobs[i].by);
        }
        show_line(r);
    }
    for (int i = 0; i < MOST_PROCESSES; i++) population_end(&r->populations[i]);
    if (r->terminal && !r->options->quiet) fputs("\r\033[K", stderr);
}

const char *runner_goes_on(bool force, bool retry_failed) {
    if (force) return "trains all runs again; without --force it trains only those that are missing";
    if (retry_failed)
        return "trains the missing and the failed runs; without --retry-failed it trains only the missing ones";
    return "goes on";
}

enum status runner_do(const struct plan *plan, const struct runner_options *options, struct error *e) {
    struct runner *r = calloc(1, sizeof *r);
    struct setup **waiting = calloc(2 * ((size_t)plan->n + 1), sizeof *waiting);
    if (!r || !waiting) {
        free(r);
        free(waiting);
        return fail(e, ST_MEMORY, "no memory for a plan of %d runs", plan->n);
    }
    *r = (struct runner){.options = options,
                         .plan = plan,
                         .waiting = waiting,
                         .alone = waiting + plan->n + 1,
                         .left = {.began = time_now_s(), .left_s = NAN},
                         .best = NAN,
                         .several_tasks = plan_has_several_tasks(plan),
                         .terminal = progress_width() > 0};
    const char *goes_on = options->goes_on ? options->goes_on : runner_goes_on(false, false);
    enum status status = select_waiting(r, e);
    if (status == ST_OK && r->total < plan->n)
        say(r, "%d of %d runs are on record already", plan->n - r->total, plan->n);
    set_jobs(r);
    if (status == ST_OK) run_waiting(r);
    if (status == ST_OK && signal_received())
        status = fail(e, (enum status)(128 + signal_received()), "stopped with %d of %d runs done; the same command %s",
                      r->done, r->total, goes_on);
    else if (status == ST_OK && r->write_failed)
        status = fail(e, ST_FAIL, "%.1000s", r->first_error.text);
    else if (status == ST_OK && r->stopped)
        status =
            fail(e, ST_FAIL, "%d of %d runs were stopped by a signal that was sent to them alone; the same command %s",
                 r->stopped, r->total, goes_on);
    free(waiting);
    free(r);
    return status;
}
