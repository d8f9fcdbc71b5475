/* compare.c - see compare.h. */
#define _GNU_SOURCE /* pipe2 */
#include "harness/gate/compare.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/philox.h"
#include "harness/perf/measure.h"
#include "harness/run/signals.h"
#include "harness/store/clock.h"
#include "harness/store/files.h"

#define PATIENCE_MS 60000 /* for a program that says nothing: a little more than GATE_SECONDS may take */

enum status program_check(const char *program, struct error *e) {
    if (access(program, X_OK) == 0) return ST_OK;
    return fail(e, ST_DATA, "%s is no program that can be started: %s", program, strerror(errno));
}

/* --- a peer: a build as a child process that serves a bench (bench.c) --------------------------------------------- */

struct peer {
    const char *program;
    pid_t pid;
    FILE *to, *from;
    int patience_ms; /* -1: as long as it lives */
    bool late;       /* it said nothing for so long */
    char real[16], compiler[256], flags[1024], commit[64];
};

/* Gives the child a file as its standard input or output. dup2 of a number onto itself would leave the file to be
 * closed by exec; a gate whose own input is closed makes its pipe there. */
static void give(int fd, int as) {
    if (fd == as)
        fcntl(fd, F_SETFD, 0);
    else
        dup2(fd, as);
}

static enum status make_process(struct peer *p, const char *bench, double seconds, double delay, struct error *e) {
    int in[2], out[2];
    char serve[PATH_BYTES + 16], time[64], more[64];
    snprintf(serve, sizeof serve, "--serve=%s", bench);
    snprintf(time, sizeof time, "--seconds=%.17g", seconds);
    snprintf(more, sizeof more, "--delay=%.17g", delay);
    if (pipe2(in, O_CLOEXEC) != 0)
        return fail(e, ST_FAIL, "cannot make a pipe for %s: %s", p->program, strerror(errno));
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return fail(e, ST_FAIL, "cannot make a pipe for %s: %s", p->program, strerror(errno));
    }
    fflush(NULL);
    signal(SIGPIPE, SIG_IGN); /* a peer that has ended is an error to be told */
    p->pid = fork();
    if (p->pid == 0) {
        give(in[0], STDIN_FILENO);
        give(out[1], STDOUT_FILENO);
        signal(SIGPIPE, SIG_DFL);
        execl(p->program, p->program, "gate", serve, time, more, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    p->to = fdopen(in[1], "w");
    p->from = fdopen(out[0], "r");
    if (!p->to) close(in[1]);
    if (!p->from) close(out[0]);
    if (p->pid < 0 || !p->to || !p->from) return fail(e, ST_FAIL, "cannot start %s: %s", p->program, strerror(errno));
    return ST_OK;
}

/* Reads a line without its end; false: none came, since the peer has ended or is late, or a signal came. */
static bool read_line(struct peer *p, char *line, size_t size) {
    struct pollfd ready = {.fd = fileno(p->from), .events = POLLIN};
    int n;
    while ((n = poll(&ready, 1, p->patience_ms)) < 0 && errno == EINTR && !signal_received()) continue;
    p->late = n == 0;
    if (n <= 0 || !fgets(line, (int)size, p->from)) return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

static enum status say_late(const struct peer *p, struct error *e) {
    return fail(e, ST_FAIL, "%s said nothing for %g s, which decides nothing; the machine may be busy", p->program,
                p->patience_ms / 1000.0);
}

/* Starts the program, no shell between, and reads what it is. ST_INCONCLUSIVE: it does not answer as a gate with that
 * bench; ST_DATA: as program_check; ST_FAIL: no process, or it is late. p is to be stopped in any case. */
static enum status peer_start(struct peer *p, const char *program, const struct compare_request *q,
                              const struct gate_bench *bench, double delay, struct error *e) {
    char line[2048];
    const char *word = bench->config ? bench->config : bench->name;
    int patience_ms = bench->config ? -1 : q->patience_ms ? q->patience_ms : PATIENCE_MS;
    *p = (struct peer){.program = program, .patience_ms = patience_ms};
    TRY(program_check(program, e));
    TRY(make_process(p, word, q->seconds, delay, e));
    bool read = read_line(p, line, sizeof line);
    if (p->late) return say_late(p, e);
    if (!read || sscanf(line, GATE_PROTOCOL "\t%15[^\t]\t%255[^\t]\t%1023[^\t]\t%63[^\t]", p->real, p->compiler,
                        p->flags, p->commit) != 4)
        return fail(e, ST_INCONCLUSIVE,
                    "%s does not serve the bench %s as " GATE_PROTOCOL
                    "; the gate compares builds that have `lrnn gate` and the bench",
                    program, word);
    return ST_OK;
}

/* Takes a sitting; *seconds of a call, its median. ST_FAIL: the peer ended, or is late. */
static enum status peer_time(struct peer *p, double *seconds, struct error *e) {
    char line[128];
    bool asked = fputs("sit\n", p->to) != EOF && fflush(p->to) == 0;
    bool read = asked && read_line(p, line, sizeof line);
    if (p->late) return say_late(p, e);
    if (!read || sscanf(line, "%lf", seconds) != 1 || !(*seconds > 0))
        return fail(e, ST_FAIL, "%s ended in the middle of a bench", p->program);
    return ST_OK;
}

static void peer_stop(struct peer *p) {
    if (p->to) fclose(p->to);
    if (p->from) fclose(p->from);
    if (p->pid > 0) {
        kill(p->pid, SIGTERM);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
}

/* --- measuring ---------------------------------------------------------------------------------------------------- */

/* Times of a bench, pair by pair. */
struct times {
    int n;
    double a[GATE_MAX], b[GATE_MAX];
};

static enum status same_build(const struct compare_request *q, const struct peer *a, const struct peer *b,
                              struct error *e) {
    if (strcmp(a->real, b->real) != 0)
        return fail(e, ST_USAGE, "%s computes in %s, %s in %s; the gate compares builds of one precision", a->program,
                    a->real, b->program, b->real);
    if (!q->force && q->commit && strcmp(a->commit, q->commit) != 0)
        return fail(e, ST_USAGE,
                    "%s is of commit %s, the baseline of %s; name the program that wrote the baseline, or write one by "
                    "`%s gate --write FILE`; --force compares them all the same",
                    a->program, a->commit, q->commit, a->program);
    if (!q->force && strcmp(a->compiler, b->compiler) != 0)
        return fail(e, ST_USAGE, "%s is compiled by %s, %s by %s; --force compares them all the same", a->program,
                    a->compiler, b->program, b->compiler);
    if (!q->force && strcmp(a->flags, b->flags) != 0)
        return fail(e, ST_USAGE, "%s is compiled with %s, %s with %s; --force compares them all the same", a->program,
                    a->flags, b->program, b->flags);
    return ST_OK;
}

/* Takes a round of pairs in fresh processes. A build under test that ends without an answer has lost what the
 * baseline's can do: ST_REGRESSED. A late one, or one that a signal of the gate has ended, is no regression. */
static enum status take_round(const struct compare_request *q, const struct gate_bench *bench, int pairs,
                              struct rng *order, struct times *t, struct error *e) {
    struct peer a = {0}, b = {0};
    enum status status = peer_start(&a, q->a, q, bench, 0, e);
    if (status == ST_OK) {
        status = peer_start(&b, q->b, q, bench, q->delay, e);
        if (status == ST_INCONCLUSIVE) status = e->status = ST_REGRESSED;
    }
    if (status == ST_OK) status = same_build(q, &a, &b, e);
    for (int i = 0; i < pairs && status == ST_OK; i++) {
        bool b_first = rng_below(order, 2);
        for (int turn = 0; turn < 2 && status == ST_OK; turn++) {
            bool of_b = b_first == (turn == 0);
            status = peer_time(of_b ? &b : &a, of_b ? &t->b[t->n] : &t->a[t->n], e);
            if (of_b && status == ST_FAIL && !b.late) status = e->status = ST_REGRESSED;
        }
        t->n += status == ST_OK;
    }
    peer_stop(&a);
    peer_stop(&b);
    if (signal_received())
        return fail(e, (enum status)(128 + signal_received()), "stopped while %s was compared", bench->name);
    return status;
}

/* Measures a row; `index` makes its order of pairs its own. */
static enum status measure(const struct compare_request *q, struct compare_row *row, int index, int pairs,
                           struct error *e) {
    struct times *t = calloc(1, sizeof *t);
    struct noise noise;
    struct rng order = rng_at(q->seed, STREAM_TEST, (uint64_t)index);
    double start = time_now_s();
    enum status status = t ? ST_OK : fail(e, ST_MEMORY, "no memory for the times of %s", row->bench->name);
    noise_begin(&noise);
    while (status == ST_OK && t->n < pairs) {
        int round = pairs - t->n < GATE_ROUND ? pairs - t->n : GATE_ROUND;
        status = take_round(q, row->bench, round, &order, t, e);
    }
    row->foreign = noise_end(&noise);
    row->seconds += time_now_s() - start;
    row->measured = status == ST_OK;
    if (status == ST_OK) {
        double log_ratio[GATE_MAX];
        for (int i = 0; i < t->n; i++) log_ratio[i] = log(t->b[i] / t->a[i]);
        row->pairs = pairs_evaluate(log_ratio, t->n);
        row->a = stats_median(t->a, t->n);
        row->b = stats_median(t->b, t->n);
    }
    if (status == ST_INCONCLUSIVE || status == ST_REGRESSED) { /* the baseline's program has no such bench; b lost it */
        snprintf(row->detail, sizeof row->detail, "%.250s", e->text);
        row->verdict = status == ST_REGRESSED ? VERDICT_REGRESSED : VERDICT_SAME;
        status = ST_OK;
    }
    free(t);
    return status;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

static void describe(struct compare_row *row, double load) {
    if (row->foreign > load)
        snprintf(row->detail, sizeof row->detail,
                 "the machine was busy: other processes used %.0f %% of the cores, more than %.0f %%",
                 100 * row->foreign, 100 * load);
    else if (row->verdict == VERDICT_INCONCLUSIVE && isnan(row->foreign))
        snprintf(row->detail, sizeof row->detail, "after %d pairs", row->pairs.n);
    else if (row->verdict == VERDICT_INCONCLUSIVE)
        snprintf(row->detail, sizeof row->detail, "after %d pairs; other processes used %.0f %% of the cores",
                 row->pairs.n, 100 * row->foreign);
    else
        snprintf(row->detail, sizeof row->detail, "%s", "");
}

void compare_judge(struct compare_row *rows, int n, double load) {
    double p[GATE_BENCHES] = {0};
    bool rejected[GATE_BENCHES];
    for (int i = 0; i < n; i++) p[i] = rows[i].measured ? rows[i].pairs.p : 1;
    holm_reject(p, n, 1 - GATE_LEVEL, rejected);
    for (int i = 0; i < n; i++) {
        struct compare_row *row = &rows[i];
        if (!row->measured) continue;
        row->verdict = row->foreign > load ? VERDICT_INCONCLUSIVE : pairs_verdict(&row->pairs, row->floor, rejected[i]);
        describe(row, load);
    }
}

enum status compare_builds(const struct compare_request *q, struct compare_row *rows, int n, struct error *e) {
    if (n < 1 || n > GATE_BENCHES || q->pairs < 1 || 2 * q->pairs > GATE_MAX)
        return fail(e, ST_USAGE, "%d benches of %d pairs; expected 1 to %d and 1 to %d", n, q->pairs, GATE_BENCHES,
                    GATE_MAX / 2);
    enum status status = ST_OK;
    for (int i = 0; i < n && status == ST_OK; i++) status = measure(q, &rows[i], i, q->pairs, e);
    compare_judge(rows, n, q->load);
    for (int i = 0; i < n && status == ST_OK; i++) {
        bool doubted = rows[i].verdict == VERDICT_INCONCLUSIVE || rows[i].verdict == VERDICT_REGRESSED;
        if (rows[i].measured && doubted) status = measure(q, &rows[i], i, 2 * q->pairs, e);
    }
    compare_judge(rows, n, q->load);
    return status;
}
