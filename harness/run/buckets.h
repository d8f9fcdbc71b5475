/* buckets.h - the walk of a batch in buckets (harness/study/buckets.h).
 *
 * The examples of a batch are sorted by the size they need and cut into parts of as many; each part is walked in the
 * smallest planned graph that has room for its largest example. The parts' losses have the weights of their share of
 * the batch's labels, and their gradients are summed in order: what a step descends is what it is without buckets, up
 * to the order of sums. The terms of the mixers, which are of parameters alone, have those weights too. The graphs lie
 * in one memory, that of the largest. Dropout has other masks than in a whole batch, and others in each part, as under
 * another seed. A batch of validation or test goes forward alone; its rows have the predictions that they have in a
 * whole batch, up to the order of sums. */
#ifndef LRNN_HARNESS_RUN_BUCKETS_H
#define LRNN_HARNESS_RUN_BUCKETS_H

#include "harness/study/graphs.h"
#include "harness/run/feeder.h"

struct buckets {
    int n; /* sizes, ascending; 0: a batch is walked whole */
    int64_t rows, parts;
    struct bucket_size size[BUCKET_SIZES];
    struct graph graph[BUCKET_SIZES]; /* but the last, which is the trainer's */
    struct net net[BUCKET_SIZES];
    struct graph *largest;
    real *grad; /* of all parameters, n_grad of them; borrowed */
    int64_t n_grad;
    const struct batch *batch; /* that is walked */
    int32_t *fit, *order;      /* of its rows: index of the size that each needs; rows by that, smallest first */
    int64_t labels;            /* that it scores */
    real loss;                 /* of the batch that was walked last */
};

/* Builds the graphs of a setup with --buckets, for training or evaluation; of one without, nothing. The largest graph
 * is built, not planned, and stays where it is. Errors: as graphs_build_bucket. */
enum status buckets_create(struct buckets *b, const struct setup *s, enum split split, struct params *params,
                           struct graph *largest, const struct net *net, struct error *e);

/* Plans them beside the largest one, which is planned. */
enum status buckets_plan(struct buckets *b, const struct params *params, struct error *e);
void buckets_free(struct buckets *b);

/* The batch of the next walk, which stays where it is until then. */
void buckets_sort(struct buckets *b, const struct batch *batch);

/* A part of the sorted batch, its examples in the inputs of the graph that it is walked in. */
struct bucket {
    struct graph *graph;
    const struct net *net;
    double weight;           /* of its loss in the batch's */
    struct step_state state; /* for its walks */
};

/* False, with nothing done: part i scores no label. */
bool buckets_begin(struct buckets *b, int64_t i, const struct step_state *now, struct bucket *part);

/* Forward and backward of all parts: loss, and gradients of the parameters. */
void buckets_walk(struct buckets *b, const struct step_state *now);

/* Forward of all parts: loss, and the predictions at the labels of each row, rows x labels, 0 where there is none. */
void buckets_predict(struct buckets *b, const struct step_state *now, int32_t *predictions);

#endif
