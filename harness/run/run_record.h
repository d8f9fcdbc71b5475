/* run_record.h - a run in progress, which run.c trains, and the record that is written of it when it ends. */
#ifndef LRNN_HARNESS_RUN_RUN_RECORD_H
#define LRNN_HARNESS_RUN_RUN_RECORD_H

#include "harness/run/checkpoint.h"
#include "harness/run/hooks.h"
#include "harness/run/step_log.h"
#include "harness/run/trainer.h"

#define STEP_SAMPLES 512 /* latest step times kept for the medians */

struct running {
    struct trainer trainer;
    struct run_progress progress;
    const struct train_hooks *hooks;
    double began, last_progress, last_checkpoint;
    double sitting_wall_s; /* wall time of earlier sittings, when this one began */
    float step_ms[STEP_SAMPLES];
    int64_t n_samples, n_steps_here;
    struct step_log log;
    const char *stop_reason;
    enum run_status status;
    char detail[RECORD_TEXT];
    struct scores test;
};

/* Wall time of the run up to now, earlier sittings included, in seconds. */
double running_wall_s(const struct running *r);

/* Of a step: all positions of its batch, of every document of an example, padding included. */
int64_t running_step_tokens(const struct setup *s);

/* What came of writing into OUT, which hooks->unwritten is told of. hooks may be NULL. */
enum status running_written(const struct train_hooks *hooks, enum status status);

/* Writes the run's record and its weights; *row, unless NULL, becomes the record's row. ST_MEMORY; ST_FAIL where
 * nothing can be written; 130 or 143 as a status when a signal asked to stop while the test examples were read, which
 * takes time where they are made anew: nothing has been written then. */
enum status run_record_write(struct running *r, struct run *row, struct error *e);

/* The record of a run that ended without writing one (its process was killed, ran out of memory or of time), and had
 * `threads`. It makes every test example; errors as above. */
enum status record_failure(const struct setup *s, enum run_status status, const char *detail, const char *started,
                           int threads, struct error *e);

#endif
