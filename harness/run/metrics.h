/* metrics.h - accuracies of a split, accumulated batch by batch. */
#ifndef LRNN_HARNESS_RUN_METRICS_H
#define LRNN_HARNESS_RUN_METRICS_H

#include "core/arena.h"
#include "core/batch.h"

struct scores {
    double loss; /* mean over scored positions, in nats */
    double acc;  /* micro accuracy: right / scored positions */
    /* as in MAD: for each batch, the mean recall of the classes that occur as truth or as a wrong answer; then the mean
     * over batches, weighted by their size (torchmetrics' MulticlassAccuracy) */
    double macro_acc;
    double seq_acc;   /* share of sequences with every scored position right */
    double last_acc;  /* share of sequences right at their last scored position */
    double nonfinite; /* scored positions whose logits are not all finite; they count as wrong */
    int64_t sequences, scored;
};

struct counts {
    int64_t scored, right, undefined, sequences, sequences_right, last_right;
};

struct metrics {
    int64_t vocab, longest;
    int64_t documents; /* number of lengths per example, but only the first is used; 1 unless set otherwise */
    int64_t *truths, *hits, *wrong; /* per class, of the current batch; on the arena */
    struct counts *by_length;       /* [longest + 1]; on the arena */
    struct counts *by_position;     /* [longest]: only scored and right are set; on the arena */
    struct counts all;
    double loss_sum, macro_sum;
};

/* metrics_create makes tables for `vocab` classes and sequences of at most `longest` on `arena`, which needs
 * metrics_bytes. ST_MEMORY: the arena is full. */
size_t metrics_bytes(int64_t vocab, int64_t longest);
enum status metrics_create(struct metrics *m, int64_t vocab, int64_t longest, struct arena *arena, struct error *e);
void metrics_reset(struct metrics *m);

/* Adds a batch. targets and predictions: (rows x labels), where the rows in use come first. lengths: of the sequences
 * (rows x documents). loss: the mean over the batch's scored positions. */
void metrics_add(struct metrics *m, const int32_t *targets, const int32_t *predictions, const int32_t *lengths,
                 int64_t rows, int64_t labels, double loss);

/* Gives the accuracies of the sequences of one length. Loss and macro accuracy are not known per length, and are
 * NAN. */
struct scores metrics_of_length(const struct metrics *m, int64_t length);

/* Gives the accuracy at positions first .. end - 1; `sequences` is the number of scored positions. */
struct scores metrics_of_positions(const struct metrics *m, int64_t first, int64_t end);

struct scores metrics_scores(const struct metrics *m);

#endif
