/* checkpoint.h - a run that was interrupted, to be gone on with: OUT/checkpoints/<run_id>.ckpt. */
#ifndef LRNN_HARNESS_RUN_CHECKPOINT_H
#define LRNN_HARNESS_RUN_CHECKPOINT_H

#include "harness/run/trainer.h"

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

enum status checkpoint_write(const struct trainer *t, const struct run_progress *p, struct error *e);

/* *found = false when there is none. A corrupt one is renamed to .corrupt, or .corrupt.2, .3 (never deleted), named on
 * stderr, and counts as none. ST_FAIL: it cannot be read, or not renamed; ST_USAGE: it was written by another
 * build, or under other kernels of matrix products, and the run has no --force-resume. */
enum status checkpoint_read(struct trainer *t, struct run_progress *p, bool *found, struct error *e);

/* That refusal alone, before a run starts; nothing is read but the file's header. */
enum status checkpoint_admit(const struct setup *setup, struct error *e);

/* The step up to which the run of that id in OUT has been saved; -1: it has no checkpoint that can be read. */
int64_t checkpoint_step(const char *out, const char *run_id);
void checkpoint_remove(const struct setup *setup);

#endif
