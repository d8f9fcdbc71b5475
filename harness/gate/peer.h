/* peer.h - a build of the program as a child process that serves a bench (bench.h). */
#ifndef LRNN_HARNESS_GATE_PEER_H
#define LRNN_HARNESS_GATE_PEER_H

#include <stdio.h>
#include <sys/types.h>

#include "core/status.h"

struct peer {
    const char *program;
    pid_t pid;
    FILE *to, *from;
    char real[16], compiler[256], flags[1024];
};

/* ST_DATA: there is no such program, or it may not be started. */
enum status peer_check(const char *program, struct error *e);

/* Starts it, no shell between, and reads what it is. ST_INCONCLUSIVE: it does not answer as a gate with that bench;
 * ST_DATA: as peer_check; ST_FAIL: no process. `seconds`: at most GATE_SECONDS. p is to be stopped in any case. */
enum status peer_start(struct peer *p, const char *program, const char *bench, double seconds, double delay,
                       struct error *e);

/* Seconds of a call, the median of a sitting. ST_FAIL: it ended, or said nothing for a minute. */
enum status peer_time(struct peer *p, double *seconds, struct error *e);

/* Ends and reaps it. */
void peer_stop(struct peer *p);

#endif
