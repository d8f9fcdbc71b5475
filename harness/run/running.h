/* running.h - a run while it trains: its progress, its outputs during training, and its record at the end.
 *
 * The log of steps (--log-steps) is a CSV file with the header "step,loss,grad_norm,lr" and one line per step. step is
 * the number of steps done, so the first line is step 1; loss is the loss of the step's batch before the update;
 * grad_norm is the norm before clipping; lr is the rate of that update. Numbers have the fewest digits that read back
 * to the same value. Each line is written as soon as its step is done. The log does not change the run's bits. */
#ifndef LRNN_HARNESS_RUN_RUNNING_H
#define LRNN_HARNESS_RUN_RUNNING_H

#include <stdio.h>

#include "harness/run/trainer.h"

#define STEP_SAMPLES 512 /* number of latest step times from which medians are computed */

struct progress {
    int64_t step, steps;
    double loss, acc; /* latest training loss; latest validation metric (NAN before the first) */
    double tok_per_s, wall_s;
};

/* Callbacks of the caller, which watch a run or replace a part of it. */
struct train_hooks {
    void (*progress)(void *context, const struct progress *p); /* called about five times per second; or NULL */
    /* Called instead of trainer_create if runs share a process; or NULL. */
    enum status (*create)(void *context, struct trainer *t, const struct setup *s, struct error *e);
    /* Returns how many other runs of the process have been on the device since create began; NULL: no other can be. */
    int (*beside)(void *context);
    void *context;
    const char *log_steps; /* path of the log of steps; or NULL */
    bool *unwritten;       /* set if the run fails because its output cannot be written; or NULL */
};

/* Progress of a run, which a checkpoint stores with the trainer. */
struct run_progress {
    struct curve_point *curve;
    int64_t n_curve, curve_capacity;
    double wall_s;   /* wall time of earlier processes */
    int64_t resumed; /* how many times the run was resumed */
    /* 1: it was once resumed from a checkpoint of another build, or of other kernels of matrix products */
    int64_t mixed_builds;
    char products[256];  /* products_name of the process that wrote the checkpoint; "": none did */
    int64_t solved_step; /* step of the first validation at or above the task's solved threshold; -1: none yet */
    int64_t stale;       /* validations in a row without a gain */
    double gained;       /* metric at the latest gain; -1 before the first */
    double train_loss;   /* mean over the last validation interval */
    char started[32];
};

/* The open log of steps. All zeros: no log; step_log_add and step_log_close then do nothing. */
struct step_log {
    FILE *file;
    const char *path;
    char buffer[BUFSIZ]; /* the file's buffer, so that a step allocates nothing */
};

struct running {
    struct trainer trainer;
    struct run_progress progress;
    const struct train_hooks *hooks;
    double began, last_progress, last_checkpoint;
    double sitting_wall_s; /* wall time of the run before this process */
    float step_ms[STEP_SAMPLES];
    int64_t n_samples, n_steps_here;
    struct step_log log;
    bool validated; /* the state of the current step has been validated */
    double metric;  /* result of that validation */
    const char *stop_reason;
    enum run_status status;
    char detail[RECORD_TEXT];
    struct scores test;
};

/* Returns the wall time of the run up to now in seconds, including the time before it was resumed. */
double running_wall_s(const struct running *r);

/* Returns `status`, the result of writing into OUT, and sets hooks->unwritten if that failed. hooks may be NULL. */
enum status running_written(const struct train_hooks *hooks, enum status status);

/* Adds a point to the curve: the scores of a split at the current step, and what happened ("eval" or "nan"). length: of
 * the test examples that were scored, 0 for any. */
void running_add_point(struct running *r, enum split split, int64_t length, const struct scores *s, const char *event);

/* Adds the test scores to the curve: a point per length if there are 2 to TASK_TEST_LENGTHS lengths, else one point
 * with the scores `all`. The last evaluation must have been on the test set. */
void running_add_test(struct running *r, const struct scores *all);

/* Calls the progress hook if `now`, or if its last call was over a fifth of a second ago. */
void running_report(struct running *r, bool now);

/* Opens the log of a run that has done `done` steps. Lines of these steps, which an earlier process wrote, stay. Later
 * lines are removed, because the run does those steps again from its checkpoint. With done = 0 the file is made anew.
 * ST_DATA: lines of done steps are missing; ST_FAIL: it cannot be written. */
enum status step_log_open(struct step_log *log, const char *path, int64_t done, struct error *e);

/* Writes the line of the step that led to this state. ST_FAIL: it cannot be written. */
enum status step_log_add(struct step_log *log, const struct step_state *state, struct error *e);
enum status step_log_close(struct step_log *log, struct error *e);

/* Lists the scores of the test split, which must be the split that was evaluated last. The first point has the scores
 * of all sequences. If sequences differ in length, one point per length follows (EVAL_BY_LENGTH). If sequences have
 * several scored positions, points by position follow (EVAL_BY_POSITION): at most 64, so neighbouring positions may
 * share one. The caller frees the list; NULL: no memory. */
struct eval_point *trainer_list_evaluations(const struct trainer *t, const struct scores *test, int64_t *n);

/* Writes the record of the run and its weights. *row, unless NULL, becomes the row of the record. ST_MEMORY; ST_FAIL:
 * it cannot be written; 130 or 143 as a status: a signal came while test examples were made again, and nothing has been
 * written. */
enum status run_record_write(struct running *r, struct run *row, struct error *e);

/* Writes the record of a run that ended without writing one: its process was killed, or ran out of memory or time. The
 * run used `threads` threads. Every test example is made again, which takes time. Errors as run_record_write. */
enum status record_failure(const struct setup *s, enum run_status status, const char *detail, const char *started,
                           int threads, struct error *e);

#endif
