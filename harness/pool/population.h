/* population.h - a population is a child process that trains runs. It has members; each is a thread that trains one run
 * after another.
 *
 * On the CPU each run has its own population with one member. On a device, one small model leaves much idle. So several
 * members train at the same time: each has its own place (stream, cuBLAS handle, memory) and its own captured step, and
 * the device runs their steps in parallel. Members share only the process, so the bits and the record of a run do not
 * depend on other runs. A run begins when the device has enough memory for it beside the runs in progress; until then
 * it waits, and so do all later runs. */
#ifndef LRNN_HARNESS_POOL_POPULATION_H
#define LRNN_HARNESS_POOL_POPULATION_H

#include <sys/types.h>

#include "harness/run/train.h"
#include "harness/store/record.h"

#define POPULATION_MOST 64 /* members */
#define POPULATION_AUTO 16 /* members by default, if there are as many runs */

/* A handle of the parent. All zeros: there is no process. */
struct population {
    pid_t pid;
    int n;                                                 /* members */
    int orders[POPULATION_MOST], reports[POPULATION_MOST]; /* ends of pipes: runs to a member, reports from it */
    bool told_to_stop;                                     /* the process saves checkpoints and takes no further runs */
};

enum report_kind { REPORT_PROGRESS, REPORT_WAITS, REPORT_END };

/* Report of a member; smaller than PIPE_BUF, so writes are atomic. Progress is dropped while the parent does not
 * read. */
struct member_report {
    enum report_kind kind;
    struct progress progress;
    int beside;         /* number of other members that used device memory during this run or its attempt to begin */
    struct error error; /* result of the run, in its last report */
    bool unwritten;     /* the error was in writing the output, not in the run */
};

/* Starts a process with n members that train on this device, which must be of the kind that setups name. The setups
 * must exist already and stay unchanged until the process ends, because it works on forked copies. all[0 .. count):
 * other populations of the caller, whose pipes the new process closes. ST_FAIL. */
enum status population_start(struct population *p, int n, const char *device, const struct population *all, int count,
                             struct error *e);

/* Failure of a run that wrote no record. */
struct failure {
    enum run_status status;
    char detail[RECORD_TEXT], started[32];
};

/* Gives an idle member a run to train on that number of threads, or with `failure` only the row to write. The process
 * sees setup and failure as they were when it was started. False: the process has ended. */
bool population_give(const struct population *p, int member, struct setup *setup, const struct failure *failure,
                     int threads);

/* Waits for the next report of a member. False: the process has ended. */
bool population_read(const struct population *p, int member, struct member_report *report);

/* Sends the process SIGTERM: runs save checkpoints and stop. */
void population_stop(struct population *p);

/* Ends the process; unfinished runs are lost. Returns its wait status. */
int population_end(struct population *p);

#endif
