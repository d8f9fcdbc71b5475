/* batches.h - the batches that a run walks, taken in one way wherever they come from:
 *
 *     batches_next(b, step);
 *     while (batches_walk(b, state, &w)) graph_forward(w.graph, w.state);   ... and backward
 *
 * Where they come from is decided once, by batches_build and batches_keep_resident. A way is one file:
 *
 *     batches.c   made on the host, by a thread ahead of the steps, and copied or sent into the inputs of the net
 *     resident.c  the training data lies on a device whole, and a graph there takes the batch of each step out of it
 *     stored.c    validation and test: the inputs of the net point at the examples, where they lie
 *     cut.c       sorted by length and cut into parts, each in the smallest graph that has room for it (--buckets)
 *
 * A batch depends on the setup and the step alone, so all ways train to the same bits, but for the order of sums in
 * parts. */
#ifndef LRNN_HARNESS_RUN_BATCHES_BATCHES_H
#define LRNN_HARNESS_RUN_BATCHES_BATCHES_H

#include <pthread.h>

#include "harness/run/batches/examples.h"
#include "harness/study/graphs.h"

/* --- the interface ------------------------------------------------------------------------------------------------ */

/* A graph to walk, with its inputs filled. */
struct walk {
    struct graph *graph;
    const struct net *net; /* of the batch; NULL: the graph brings the inputs of the next one, and goes forward only */
    const struct net *second; /* of the second batch, in the same graph; zeros or NULL: none */
    struct step_state *state; /* for its ops */
    double weight;            /* of its loss in the batch's: 1 unless the batch is cut */
    struct step_state own;    /* where `state` points if a part of a batch has its own seed */
};

struct batches;

/* A way of batches. */
struct way {
    /* After the graphs are planned: makes what the batches need. */
    enum status (*start)(struct batches *b, const struct params *params, struct error *e);
    void (*next)(struct batches *b, int64_t n);
    /* The walk number b->at of the batch, counted from 0; false: there are no more. */
    bool (*walk)(struct batches *b, struct step_state *live, struct walk *w);
};
extern const struct way way_sent, way_resident, way_stored, way_cut;

/* Chooses the way and builds the graphs that it needs beside `graph`, which is built and not planned, and is for
 * whole batches of a training step or of an evaluation. Graph and nets stay where they are. For evaluation the caller
 * then sets `predictions` and `store`. Errors: as graphs_build_bucket; ST_MEMORY. */
enum status batches_build(struct batches *b, const struct setup *s, enum split split, struct params *params,
                          struct graph *graph, const struct net *net, const struct net *second, struct error *e);

/* Bytes of a device that the training data takes if it lies there whole; 0: it is sent (graphs_can_take). */
size_t batches_resident_bytes(const struct setup *s);

/* Makes training data lie on the device whole. Between batches_build and batches_start. */
void batches_keep_resident(struct batches *b);

/* After the graph is planned and the parameters are reserved. Errors: ST_MEMORY, ST_DEVICE; ST_FAIL: no thread; 130 or
 * 143 as a status if a signal asked to stop while examples were made. */
enum status batches_start(struct batches *b, const struct params *params, struct error *e);

/* Brings batch number n: of training step n, or examples n * B and on of the store. */
void batches_next(struct batches *b, int64_t n);

/* Gives the next graph to walk of that batch; false: the batch is walked. `loss`, and in evaluation `predictions`, are
 * the batch's then. `live` is the state of the step. */
bool batches_walk(struct batches *b, struct step_state *live, struct walk *w);

/* The loss of the batch that was walked last, [1], where the run computes. */
real *batches_loss(struct batches *b);

/* Adds the graphs that were built here to a list. */
void batches_list_graphs(const struct batches *b, struct graph_list *list);

/* Gives back all of it, at any moment after zeros. */
void batches_free(struct batches *b);

/* --- for the ways ------------------------------------------------------------------------------------------------- */

/* Two steps' batches in turn: while one is trained on, a thread makes the next. */
struct feeder {
    const struct setup *setup;
    bool ahead, stop;
    int64_t made[2], wanted; /* steps: in the slots, -1 = none; to be made by the thread, -1 = nothing */
    struct step_batches slot[2];
    char *memory;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news; /* either side has changed `wanted` or `stop` */
};

/* Starts the thread if the setup asks for it. The setup and the feeder stay where they are until feeder_stop.
 * ST_MEMORY; ST_FAIL: no thread. */
enum status feeder_start(struct feeder *f, const struct setup *setup, struct error *e);

/* The batches of a step, in any order of steps; valid until the next call. The next step's are then begun. */
const struct step_batches *feeder_take(struct feeder *f, int64_t step);

/* Ends the thread. A feeder of zeros is no error. */
void feeder_stop(struct feeder *f);

#define STAGING_SLOTS 8 /* steps that the host may be ahead of the device */

/* A ring of pinned slots on the way to a device, each free again once the device has read it. */
struct staging {
    const struct place *place;
    char *memory;       /* pinned; NULL on the CPU */
    size_t bytes, used; /* of a slot */
    struct place_mark *read[STAGING_SLOTS];
    bool in_use[STAGING_SLOTS];
    int slot;
};

/* One part of so many of the machine's memory is room for a split: nets take some, and so do runs beside this one. */
#define SPLIT_STORE_PART 4

/* The examples of a validation or test split, made once, where the net runs. On the CPU a split that would take more
 * than its room is not kept: the store is then a window of one batch, made when it is wanted. */
struct split_store {
    struct batch rows;         /* all examples, on the host, and empty rows up to whole batches; or one batch */
    int64_t examples;          /* of the split */
    const struct setup *setup; /* borrowed */
    enum split split;
    bool window;        /* the rows are the batch that was asked for last */
    char *memory;       /* of rows */
    struct arena there; /* on a device: the same rows in the same places */
};

/* Bytes of the examples of a split. */
size_t split_store_bytes(const struct setup *s, enum split split);

/* Makes the split, on OpenMP's threads, and sends it; a window is empty. `room`: bytes above which it is a window, on
 * the CPU. The setup stays where it is until split_store_free. Errors: ST_MEMORY, ST_DEVICE; 130 or 143 as a status if
 * a signal asked to stop meanwhile. */
enum status split_store_create(struct split_store *store, const struct setup *s, enum split split, size_t room,
                               const struct place *place, struct error *e);

/* *b becomes the batch on the host that begins with example `first`, a multiple of the batch; returns how many of its
 * rows are in use. They are valid until the next call. */
int64_t split_store_rows(struct split_store *store, int64_t first, struct batch *b);

/* Like split_store_rows, with the inputs of the net pointed at these rows where it runs. */
int64_t split_store_select(struct split_store *store, int64_t first, const struct net *net, struct batch *b);

/* test_split_hash of a store of test examples, or test_split_read if it is a window. Errors as those. */
enum status split_store_hash(const struct split_store *store, bool obeys, struct test_split *t, struct error *e);
void split_store_free(struct split_store *store);

/* Graphs of several sizes for the parts of a batch. */
struct cut {
    int n;               /* sizes, ascending; 0: batches are walked whole */
    int64_t rows, parts; /* of a part; of a batch */
    struct bucket_size size[BUCKET_SIZES];
    struct graph graph[BUCKET_SIZES]; /* all but the last, which is the whole one */
    struct net net[BUCKET_SIZES];
    real *grad; /* of all parameters, n_grad of them; borrowed */
    int64_t n_grad;
    const struct batch *batch; /* that is walked */
    int32_t *fit, *order;      /* of its rows: index of the size that each needs; rows by that, smallest first */
    int64_t labels;            /* that it scores */
    const struct net *walked;  /* of the part that was given last */
    double weight, loss;       /* of that part; of the parts so far */
};

struct batches {
    const struct way *way;
    const struct setup *setup;
    enum split split;               /* SPLIT_TRAIN, or one of the others for evaluation */
    struct graph *graph;            /* of whole batches; borrowed */
    const struct net *net, *second; /* its nets; borrowed */
    int64_t at;                     /* number of the next walk */

    /* Training. */
    struct feeder feeder;
    struct staging staging;
    struct graph take; /* owns resident data; no calls in other ways */

    /* Evaluation. */
    struct split_store *store; /* of the split that is evaluated on; borrowed */
    struct batch batch;        /* on the host */
    int64_t in_use;            /* rows of it */
    int32_t *predictions;      /* (B, labels), on the host; borrowed */

    struct cut cut;
    real loss; /* of the batch, where it is computed on the host */
};

/* Gives the whole batch as one walk. */
void walk_whole(const struct batches *b, struct step_state *live, struct walk *w);

/* Graphs for parts of a batch, built and planned; the next walks are of the batch that cut_take got, which
 * stays where it is. */
enum status cut_build(struct batches *b, struct params *params, struct error *e);
void cut_take(struct batches *b, const struct batch *batch);

#endif
