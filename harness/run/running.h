/* running.h - a run in progress: how far it has come, what it tells of itself, and the record that is written of it.
 *
 * The log of steps (--log-steps) is a CSV file with the header "step,loss,grad_norm,lr" and a line per step, in
 * shortest numbers that read back the same. step: steps done, so the first line is step 1; loss: the task's, of the
 * batch of that step, before the update; grad_norm: before clipping; lr: of that update. Each line is handed to the
 * system when its step is done. A run with a log computes the bits of a run without. */
#ifndef LRNN_HARNESS_RUN_RUNNING_H
#define LRNN_HARNESS_RUN_RUNNING_H

#include <stdio.h>

#include "harness/run/trainer.h"

#define STEP_SAMPLES 512 /* latest step times kept for the medians */

struct progress {
    int64_t step, steps;
    double loss, acc; /* latest training loss; latest validation metric (NAN before the first) */
    double tok_per_s, wall_s;
};

/* Callbacks of who looks on at a run, or does a part of it instead. */
struct train_hooks {
    void (*progress)(void *context, const struct progress *p); /* about five times per second; or NULL */
    /* Called instead of trainer_create, where runs share a process; or NULL. */
    enum status (*create)(void *context, struct trainer *t, const struct setup *s, struct error *e);
    void *context;
    const char *log_steps; /* file for a line per step; or NULL */
    bool *unwritten;       /* set if the run fails because its output cannot be written; or NULL */
};

/* Progress of a run, which a checkpoint keeps beside the trainer. */
struct run_progress {
    struct curve_point *curve;
    int64_t n_curve, curve_capacity;
    double wall_s;        /* of earlier sittings */
    int64_t resumed;      /* times */
    int64_t mixed_builds; /* 1: one of those times from a checkpoint of another build or of other products */
    int64_t solved_step;  /* first validation at or above the task's solved threshold; -1 */
    int64_t stale;        /* validations in a row without a gain */
    double gained;        /* metric at the latest gain; -1 before the first */
    double train_loss;    /* mean over the last validation interval */
    char started[32];
};

/* All zeros: no log; step_log_add and step_log_close then do nothing. */
struct step_log {
    FILE *file;
    const char *path;
    char buffer[BUFSIZ]; /* of the file: a step allocates nothing */
};

struct running {
    struct trainer trainer;
    struct run_progress progress;
    const struct train_hooks *hooks;
    double began, last_progress, last_checkpoint;
    double sitting_wall_s; /* wall time of earlier sittings, when this one began */
    float step_ms[STEP_SAMPLES];
    int64_t n_samples, n_steps_here;
    struct step_log log;
    bool validated; /* the state of the current step has been validated */
    double metric;  /* found by that validation */
    const char *stop_reason;
    enum run_status status;
    char detail[RECORD_TEXT];
    struct scores test;
};

/* Wall time of the run up to now, earlier sittings included, in seconds. */
double running_wall_s(const struct running *r);

/* Returns the status of writing into OUT, and tells hooks->unwritten of a failure. hooks may be NULL. */
enum status running_written(const struct train_hooks *hooks, enum status status);

/* Adds a point to the curve: a split's scores at the current step, at an event ("eval", "nan"). */
void running_add_point(struct running *r, enum split split, const struct scores *s, const char *event);

/* Tells the hook how far the run is, if `now` or if it has not been told for a fifth of a second. */
void running_report(struct running *r, bool now);

/* Begins the log of a run that has done `done` steps. Lines up to there, from an earlier sitting, are kept, and later
 * ones are cut off, because a run that goes on from a checkpoint does those steps again. With done = 0 the file is made
 * anew. ST_DATA: lines up to there are missing; ST_FAIL: it cannot be written. */
enum status step_log_open(struct step_log *log, const char *path, int64_t done, struct error *e);

/* Writes the line of the step that led to this state. ST_FAIL: it cannot be written. */
enum status step_log_add(struct step_log *log, const struct step_state *state, struct error *e);
enum status step_log_close(struct step_log *log, struct error *e);

/* Lists the scores of the test split, which was evaluated last, and, if its sequences differ in length, of each length
 * (EVAL_BY_LENGTH); and where a sequence has several scored positions, the accuracy by position (EVAL_BY_POSITION): of
 * up to 64 positions each is a point, and neighbours of more share one. The caller frees the list; NULL: no memory. */
struct eval_point *trainer_list_evaluations(const struct trainer *t, const struct scores *test, int64_t *n);

/* Writes the record of the run and its weights; *row, unless NULL, becomes the row of the record. ST_MEMORY; ST_FAIL:
 * nothing can be written; 130 or 143 as a status if a signal asked to stop while test examples were made anew: nothing
 * has been written then. */
enum status run_record_write(struct running *r, struct run *row, struct error *e);

/* Writes the record of a run that ended without writing one (its process was killed, ran out of memory or of time), and
 * had `threads`. It makes every test example. Errors as run_record_write. */
enum status record_failure(const struct setup *s, enum run_status status, const char *detail, const char *started,
                           int threads, struct error *e);

#endif
