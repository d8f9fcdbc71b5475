/* metrics.h - accuracies of a split, accumulated batch by batch. */
#ifndef LRNN_HARNESS_RUN_METRICS_H
#define LRNN_HARNESS_RUN_METRICS_H

#include "core/arena.h"
#include "core/batch.h"

struct scores {
    double loss;      /* mean nats over scored positions */
    double acc;       /* micro: right / scored positions */
    double macro_acc; /* as MAD: mean recall of the classes that occur as truth or as a wrong answer, per batch, batches
                          weighted by their size (torchmetrics' MulticlassAccuracy) */
    double seq_acc;   /* sequences with every scored position right */
    double last_acc;  /* right at the last scored position of a sequence */
    double nonfinite; /* scored positions whose logits are not all finite; they count as wrong */
    int64_t sequences, scored;
};

struct counts {
    int64_t scored, right, undefined, sequences, sequences_right, last_right;
};

struct metrics {
    int64_t vocab, longest;
    int64_t documents;              /* lengths that an example has; the first one counts. 1 unless set otherwise */
    int64_t *truths, *hits, *wrong; /* per class, of the current batch; on the arena */
    struct counts *by_length;       /* [longest + 1]; on the arena */
    struct counts *by_position;     /* [longest]: scored and right alone; on the arena */
    struct counts all;
    double loss_sum, macro_sum;
};

/* Tables for `vocab` classes and sequences of at most `longest` on `arena`: metrics_bytes. ST_MEMORY when it is
 * full. */
size_t metrics_bytes(int64_t vocab, int64_t longest);
enum status metrics_create(struct metrics *m, int64_t vocab, int64_t longest, struct arena *arena, struct error *e);
void metrics_reset(struct metrics *m);

/* Adds a batch: targets and predictions (rows x labels), rows in use first; lengths of the sequences (rows x
 * documents); loss, the mean over its scored positions. */
void metrics_add(struct metrics *m, const int32_t *targets, const int32_t *predictions, const int32_t *lengths,
                 int64_t rows, int64_t labels, double loss);

/* Accuracies of the sequences of one length; loss and macro accuracy are not known by length: NAN. */
struct scores metrics_of_length(const struct metrics *m, int64_t length);

/* Accuracy at the positions from first up to before `end`; `sequences` is the number of scored ones. */
struct scores metrics_of_positions(const struct metrics *m, int64_t first, int64_t end);

struct scores metrics_scores(const struct metrics *m);

#endif
