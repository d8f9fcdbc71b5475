/* peer.c - see peer.h. */
#define _GNU_SOURCE /* pipe2 */
#include "harness/gate/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/gate/bench.h"

#define PATIENCE_MS 60000 /* some more than GATE_SECONDS may take */

/* dup2 of a number onto itself would leave it to be closed by exec: a gate whose own input is closed makes its pipe
 * there. */
static void give(int fd, int as) {
    if (fd == as)
        fcntl(fd, F_SETFD, 0);
    else
        dup2(fd, as);
}

static _Noreturn void become(const struct peer *p, const char *bench, double seconds, double delay, const int in[2],
                             const int out[2]) {
    char serve[80], time[64], more[64];
    snprintf(serve, sizeof serve, "--serve=%s", bench);
    snprintf(time, sizeof time, "--seconds=%.17g", seconds);
    snprintf(more, sizeof more, "--delay=%.17g", delay);
    give(in[0], STDIN_FILENO);
    give(out[1], STDOUT_FILENO);
    signal(SIGPIPE, SIG_DFL);
    execl(p->program, p->program, "gate", serve, time, more, (char *)NULL);
    _exit(127);
}

/* A line, without its end; false: none came. */
static bool read_line(struct peer *p, char *line, size_t size) {
    struct pollfd ready = {.fd = fileno(p->from), .events = POLLIN};
    int n;
    while ((n = poll(&ready, 1, PATIENCE_MS)) < 0 && errno == EINTR) continue;
    if (n <= 0 || !fgets(line, (int)size, p->from)) return false;
    line[strcspn(line, "\n")] = 0;
    return true;
}

static enum status make_process(struct peer *p, const char *bench, double seconds, double delay, struct error *e) {
    int in[2], out[2];
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
    if (p->pid == 0) become(p, bench, seconds, delay, in, out);
    close(in[0]);
    close(out[1]);
    p->to = fdopen(in[1], "w");
    p->from = fdopen(out[0], "r");
    if (!p->to) close(in[1]);
    if (!p->from) close(out[0]);
    if (p->pid < 0 || !p->to || !p->from) return fail(e, ST_FAIL, "cannot start %s: %s", p->program, strerror(errno));
    return ST_OK;
}

enum status peer_check(const char *program, struct error *e) {
    if (access(program, X_OK) == 0) return ST_OK;
    return fail(e, ST_DATA, "%s is no program that can be started: %s", program, strerror(errno));
}

enum status peer_start(struct peer *p, const char *program, const char *bench, double seconds, double delay,
                       struct error *e) {
    char line[2048];
    *p = (struct peer){.program = program};
    TRY(peer_check(program, e));
    TRY(make_process(p, bench, seconds, delay, e));
    if (!read_line(p, line, sizeof line) ||
        sscanf(line, GATE_PROTOCOL "\t%15[^\t]\t%255[^\t]\t%1023[^\t]", p->real, p->compiler, p->flags) != 3)
        return fail(e, ST_INCONCLUSIVE,
                    "%s does not serve the bench %s as " GATE_PROTOCOL
                    "; the gate compares builds that have `lrnn gate` and the bench",
                    program, bench);
    return ST_OK;
}

enum status peer_time(struct peer *p, double *seconds, struct error *e) {
    char line[128];
    bool asked = fputs("sit\n", p->to) != EOF && fflush(p->to) == 0;
    if (!asked || !read_line(p, line, sizeof line) || sscanf(line, "%lf", seconds) != 1 || !(*seconds > 0))
        return fail(e, ST_FAIL, "%s ended, or said nothing for a minute, in the middle of a bench", p->program);
    return ST_OK;
}

void peer_stop(struct peer *p) {
    if (p->to) fclose(p->to);
    if (p->from) fclose(p->from);
    if (p->pid > 0) {
        kill(p->pid, SIGTERM);
        while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR) continue;
    }
    *p = (struct peer){0};
}
