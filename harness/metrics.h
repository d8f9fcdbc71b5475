/* metrics.h - accuracies of a split, accumulated batch by batch. */
#ifndef LRNN_HARNESS_METRICS_H
#define LRNN_HARNESS_METRICS_H

#include "core/arena.h"
#include "core/batch.h"

struct scores {
    double loss;      /* mean nats over scored positions */
    double acc;       /* micro: right / scored positions */
    double macro_acc; /* as MAD: mean recall of the classes that occur as truth or as a wrong answer, per batch, batches
                          weighted by their size (spec/tasks.md 1.2) */
    double seq_acc;   /* sequences with every scored position right */
    double last_acc;  /* right at the last scored position of a sequence */
    int64_t sequences, scored;
};

struct metrics {
    int64_t vocab;
    int64_t *truths, *hits, *wrong; /* per class, of the current batch; on the arena */
    double loss_sum, macro_sum;
    int64_t scored, right, sequences, sequences_right, last_right;
};

/* Tables for `vocab` classes on `arena`. ST_FAIL when it is full. */
enum status metrics_create(struct metrics *m, int64_t vocab, struct arena *arena, struct error *e);
void metrics_reset(struct metrics *m);

/* One batch: targets and predictions (rows x T), rows in use first; loss is the mean over its scored positions. */
void metrics_add(struct metrics *m, const int32_t *targets, const int32_t *predictions, int64_t rows, int64_t T,
                 double loss);

struct scores metrics_scores(const struct metrics *m);

#endif
