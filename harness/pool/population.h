/* population.h - a process that trains runs: each of its members, a thread, one run after the other.
 *
 * A population of one is how runs are trained on the CPU. On a device several members fill what one small model leaves
 * idle: each has its own place (stream, handle of cuBLAS, memory) and its own captured step, and the device runs their
 * steps side by side. A member shares nothing with the others but the process, so its run has the bits and the record
 * that it has alone. It begins when the device's memory has room for it beside those that are at work; until then it
 * waits, and so do those that would begin after it. */
#ifndef LRNN_HARNESS_POOL_POPULATION_H
#define LRNN_HARNESS_POOL_POPULATION_H

#include <sys/types.h>

#include "harness/run/train.h"
#include "harness/store/record.h"

#define POPULATION_MOST 64 /* members */
#define POPULATION_AUTO 16 /* members by default, if there are as many runs */

/* All zeros: there is no process. */
struct population {
    pid_t pid;
    int n;                                                 /* members */
    int orders[POPULATION_MOST], reports[POPULATION_MOST]; /* ends of pipes: runs to a member, reports from it */
    bool told_to_stop;                                     /* it saves what it has and takes no further run */
};

enum report_kind { REPORT_PROGRESS, REPORT_WAITS, REPORT_END };

/* Report of a member; smaller than PIPE_BUF, so writes are whole. A run's progress is left out while nobody reads. */
struct member_report {
    enum report_kind kind;
    struct progress progress;
    int beside;         /* members that held memory at a time of this one's run, or of its attempt to begin */
    struct error error; /* of the end */
    bool unwritten;     /* the error was of the output, not of the run */
};

/* Starts a process of n members, whose runs are trained on this device, of the kind that their setups name. The setups
 * exist already, and nobody in this process changes them before the new one has ended: it has copies. all[0 .. count):
 * other processes of the caller, whose pipes the new one closes. ST_FAIL. */
enum status population_start(struct population *p, int n, const char *device, const struct population *all, int count,
                             struct error *e);

/* End of a run that has no record. */
struct failure {
    enum run_status status;
    char detail[RECORD_TEXT], started[32];
};

/* Gives an idle member a run to train on so many threads; with `failure`, its row to write instead. Setup and failure
 * are as they lay here when the process was started. False: the process has ended. */
bool population_give(const struct population *p, int member, struct setup *setup, const struct failure *failure,
                     int threads);

/* Waits for the next report of a member. False: the process has ended. */
bool population_read(const struct population *p, int member, struct member_report *report);

/* Tells it to stop as SIGTERM does: runs save checkpoints. */
void population_stop(struct population *p);

/* Ends it; members that are at work are lost. Returns its wait status. */
int population_end(struct population *p);

#endif
