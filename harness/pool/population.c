/* population.c - see population.h. */
#include "harness/pool/population.h"

#include <errno.h>
#include <limits.h>
#include <omp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/run/running.h"
#include "harness/run/signals.h"

/* An order for a member. Setup and failure have the same address in parent and child, because the child is a fork. */
struct order {
    struct setup *setup;
    const struct failure *failure; /* NULL: train the run; else write the row of this failure */
    int threads;
};

/* --- the process: its members ------------------------------------------------------------------------------------- */

/* Data that the members of a process share. */
struct crowd {
    pthread_mutex_t beginning; /* locked while a trainer is made, because making it measures the free memory */
    pthread_mutex_t lock;      /* protects the other fields */
    pthread_cond_t change;
    /* number of members that use device memory; number of runs that have ended and freed theirs */
    int at_work, ended;
};

struct member {
    struct crowd *crowd; /* NULL if the process has only one member */
    int orders, reports; /* the member's ends of its pipes */
    const char *device;  /* the device on which it trains its runs */
    bool at_work;
    int ended; /* value of crowd->ended when this run began */
};

_Static_assert(sizeof(struct member_report) <= PIPE_BUF && sizeof(struct order) <= PIPE_BUF, "written whole or not");

/* Sends a report. If the pipe is full, waits. */
static void tell(const struct member *m, const struct member_report *report) {
    ssize_t n;
    while ((n = write(m->reports, report, sizeof *report)) < 0 && errno == EINTR) continue; /* retry after a signal */
    if (n < 0 && errno == EPIPE) signals_raise_stop();                                      /* the parent has ended */
}

/* Sends progress if the pipe has room, so that training never waits for the display. */
static void tell_progress(void *context, const struct progress *p) {
    const struct member *m = context;
    struct pollfd reports = {.fd = m->reports, .events = POLLOUT};
    if (poll(&reports, 1, 0) > 0) tell(m, &(struct member_report){.kind = REPORT_PROGRESS, .progress = *p});
}

static void note_ended(struct member *m) {
    pthread_mutex_lock(&m->crowd->lock);
    m->ended = m->crowd->ended;
    pthread_mutex_unlock(&m->crowd->lock);
}

/* Counts the other members that used memory at any time since note_ended: those at work, and those that have ended
 * since then. The caller must have locked `lock`. */
static int others_beside(const struct member *m) {
    const struct crowd *c = m->crowd;
    return c->at_work - m->at_work + c->ended - m->ended;
}

/* The hook of train_run. */
static int count_beside(void *context) {
    const struct member *m = context;
    pthread_mutex_lock(&m->crowd->lock);
    int beside = others_beside(m);
    pthread_mutex_unlock(&m->crowd->lock);
    return beside;
}

/* After a failure for lack of memory, waits until another run frees its memory. False: no other run used memory. */
static bool wait_for_room(struct member *m) {
    struct crowd *c = m->crowd;
    pthread_mutex_lock(&c->lock);
    int beside = others_beside(m);
    if (beside) tell(m, &(struct member_report){.kind = REPORT_WAITS, .beside = beside});
    while (beside && c->ended == m->ended) pthread_cond_wait(&c->change, &c->lock);
    pthread_mutex_unlock(&c->lock);
    return beside > 0;
}

/* Makes trainers one at a time, so that the free memory that one has measured is not taken by another. */
static enum status create_beside_others(void *context, struct trainer *t, const struct setup *s, struct error *e) {
    struct member *m = context;
    enum status status = ST_MEMORY;
    pthread_mutex_lock(&m->crowd->beginning);
    note_ended(m);
    while (!signal_received() && (status = trainer_create(t, s, e)) == ST_MEMORY && wait_for_room(m)) {
        trainer_free(t);
        note_ended(m);
    }
    pthread_mutex_lock(&m->crowd->lock);
    m->at_work = true; /* even a trainer that failed keeps memory until its run has ended */
    m->crowd->at_work++;
    pthread_mutex_unlock(&m->crowd->lock);
    pthread_mutex_unlock(&m->crowd->beginning);
    if (status == ST_OK || !signal_received()) return status;
    return fail(e, (enum status)(128 + signal_received()), "stopped before its first step");
}

/* Notes that the run has freed its memory. Returns how many other runs used memory while it was in progress. */
static int leave(struct member *m) {
    struct crowd *c = m->crowd;
    pthread_mutex_lock(&c->lock);
    int beside = others_beside(m);
    c->at_work -= m->at_work;
    c->ended += m->at_work;
    m->at_work = false;
    pthread_cond_broadcast(&c->change);
    pthread_mutex_unlock(&c->lock);
    return beside;
}

/* Writes the row of a failed run. The process that does this has only one member, because the test examples of each row
 * are made in memory. */
static void do_row(struct member *m, const struct order *order) {
    struct member_report end = {.kind = REPORT_END};
    const struct failure *f = order->failure;
    end.error.status = setup_open(order->setup, &end.error);
    if (end.error.status == ST_OK)
        end.error.status = record_failure(order->setup, f->status, f->detail, f->started, order->threads, &end.error);
    tell(m, &end);
}

static void do_run(struct member *m, const struct order *order) {
    struct member_report end = {.kind = REPORT_END};
    struct train_hooks hooks = {.progress = tell_progress,
                                .create = m->crowd ? create_beside_others : NULL,
                                .beside = m->crowd ? count_beside : NULL,
                                .context = m,
                                .unwritten = &end.unwritten};
    struct config *c = &order->setup->spec.config;
    c->threads = order->threads;
    snprintf(c->device, sizeof c->device, "%s", m->device);
    omp_set_num_threads(order->threads);
    if (m->crowd) note_ended(m);
    end.error.status = setup_open(order->setup, &end.error);
    if (end.error.status == ST_OK) end.error.status = train_run(order->setup, &hooks, NULL, &end.error);
    setup_close(order->setup);
    if (m->crowd) end.beside = leave(m);
    tell(m, &end);
    /* the failure has destroyed the process's context on the device */
    if (m->crowd && end.error.status == ST_DEVICE) _exit(status_exit_code(ST_DEVICE));
}

/* Does the runs that the parent orders, until the parent closes the pipe. */
static void *member_main(void *context) {
    struct member *m = context;
    struct order order = {0};
    for (;;) {
        ssize_t n = read(m->orders, &order, sizeof order);
        if (n == (ssize_t)sizeof order)
            (order.failure ? do_row : do_run)(m, &order);
        else if (n >= 0 || errno != EINTR)
            return NULL;
    }
}

/* Opens the device once before the threads start, because the first opening initialises the process. Streams run in
 * parallel only if each has a hardware queue. */
static void prepare_device(const char *device) {
    struct place place;
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    /* with overlapping launches, waiting blocks would occupy multiprocessors that other members need */
    setenv("LRNN_CUDA_OVERLAP", "0", 0);
    /* parallel branches are not needed, because other members fill the device */
    setenv("LRNN_CUDA_BRANCHES", "0", 0);
    if (place_open(&place, device, NULL) == ST_OK) place_close(&place);
}

/* Runs the child process. `before` are the signals that were blocked before the parent blocked all. */
static _Noreturn void population_main(struct member *members, int n, const char *device, const sigset_t *before) {
    struct crowd crowd = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    pthread_t threads[POPULATION_MOST];
    char own[sizeof((struct config *)0)->device];
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* if the parent dies, the child saves its checkpoints and stops */
    signal(SIGPIPE, SIG_IGN);
    signals_be_patient();
    /* a terminal sends SIGINT to all processes, but the parent sends SIGTERM to its children */
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    sigprocmask(SIG_SETMASK, before, NULL);
    snprintf(own, sizeof own, "%s", device); /* `device` may point into a run's setup */
    for (int i = 0; i < n; i++) members[i].device = own;
    if (n == 1) {
        member_main(&members[0]);
        _exit(ST_OK);
    }
    prepare_device(device);
    for (int i = 0; i < n; i++) {
        members[i].crowd = &crowd;
        if (pthread_create(&threads[i], NULL, member_main, &members[i]) != 0) _exit(ST_FAIL);
    }
    for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
    _exit(ST_OK);
}

/* --- the parent --------------------------------------------------------------------------------------------------- */

static void close_pipes(const struct population *p) {
    for (int i = 0; i < p->n; i++) {
        close(p->orders[i]);
        close(p->reports[i]);
    }
}

/* Opens two pipes, one in each direction. *p gets the parent's ends, *m the member's ends. */
static bool open_pipes(struct population *p, struct member *m) {
    int orders[2], reports[2];
    if (pipe(orders) != 0) return false;
    if (pipe(reports) != 0) {
        int reason = errno;
        close(orders[0]);
        close(orders[1]);
        errno = reason;
        return false;
    }
    p->orders[p->n] = orders[1];
    p->reports[p->n++] = reports[0];
    *m = (struct member){.orders = orders[0], .reports = reports[1]};
    return true;
}

/* Signals stay blocked until the child has installed its own handlers. With the parent's handler, the child could take
 * a first signal for the second one, which ends a process without saving. */
enum status population_start(struct population *p, int n, const char *device, const struct population *all, int count,
                             struct error *e) {
    struct member members[POPULATION_MOST] = {{0}};
    *p = (struct population){.pid = -1};
    bool open = true;
    while (open && p->n < n) open = open_pipes(p, &members[p->n]);
    fflush(NULL);
    sigset_t every, before;
    sigfillset(&every);
    sigprocmask(SIG_SETMASK, &every, &before);
    if (open) p->pid = fork();
    if (p->pid == 0) {
        close_pipes(p);
        for (int i = 0; i < count; i++)
            if (&all[i] != p && all[i].pid) close_pipes(&all[i]);
        population_main(members, n, device, &before);
    }
    int reason = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    for (int i = 0; i < p->n; i++) {
        close(members[i].orders);
        close(members[i].reports);
    }
    if (p->pid > 0) return ST_OK;
    close_pipes(p);
    *p = (struct population){0};
    return fail(e, ST_FAIL, "cannot start a process for %s: %s", n > 1 ? "runs" : "a run", strerror(reason));
}

bool population_give(const struct population *p, int member, struct setup *setup, const struct failure *failure,
                     int threads) {
    struct order order;
    memset(&order, 0, sizeof order); /* the padding bytes are written too */
    order.setup = setup;
    order.failure = failure;
    order.threads = threads;
    void (*before)(int) = signal(SIGPIPE, SIG_IGN);
    bool given = write(p->orders[member], &order, sizeof order) == (ssize_t)sizeof order;
    signal(SIGPIPE, before);
    return given;
}

bool population_read(const struct population *p, int member, struct member_report *report) {
    ssize_t n;
    while ((n = read(p->reports[member], report, sizeof *report)) < 0 && errno == EINTR) continue;
    return n == (ssize_t)sizeof *report;
}

void population_stop(struct population *p) {
    if (p->pid && !p->told_to_stop) kill(p->pid, SIGTERM);
    p->told_to_stop = true;
}

int population_end(struct population *p) {
    int status = 0;
    if (!p->pid) return 0;
    close_pipes(p);
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) continue;
    *p = (struct population){0};
    return status;
}
