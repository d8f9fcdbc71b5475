/* batches.h - the batches that a run trains on, taken in one way wherever they come from:
 *
 *     batches_next(b, step);     before the walk of the step
 *     batches_take(b, state);    first part of the walk, which a device captures
 *
 * batches_keep_resident decides once where they come from. A way is one file:
 *
 *     batches.c   made on the host, by a thread ahead of the steps, and copied or sent into the inputs of the net
 *     resident.c  the training data lies on a device whole, and a graph there takes the batch of each step out of it
 *
 * A batch depends on the setup and the step alone, so both ways train to the same bits. Validation and test have no
 * batches of their own: the inputs of the net point at the examples, where they lie (stored.c). */
#ifndef LRNN_HARNESS_RUN_BATCHES_BATCHES_H
#define LRNN_HARNESS_RUN_BATCHES_BATCHES_H

#include <pthread.h>

#include "harness/run/batches/examples.h"
#include "harness/study/graphs.h"

/* --- the interface ------------------------------------------------------------------------------------------------ */

struct batches;

/* A way of batches. */
struct way {
    /* After the graph of the step is planned: makes what the batches need. */
    enum status (*start)(struct batches *b, struct error *e);
    void (*next)(struct batches *b, int64_t step);
    void (*take)(struct batches *b, struct step_state *live);
};
extern const struct way way_sent, way_resident;

/* Batches for a net and, if the task has a second batch in each step, for the net of that; else it is one of zeros.
 * They are made on the host unless they are kept resident. All stay where they are until batches_free. */
void batches_init(struct batches *b, const struct setup *s, const struct place *place, const struct net *net,
                  const struct net *second);

/* Bytes of a device that the training data takes if it lies there whole; 0: it is sent (graphs_can_take). */
size_t batches_resident_bytes(const struct setup *s);

/* Makes training data lie on the device whole. Before batches_start. */
void batches_keep_resident(struct batches *b);

/* After the graph of the step is planned. Errors: ST_MEMORY, ST_DEVICE; ST_FAIL: no thread; 130 or 143 as a status if a
 * signal asked to stop while examples were made. */
enum status batches_start(struct batches *b, struct error *e);

/* Brings the batch of a training step as far as the host does it. */
void batches_next(struct batches *b, int64_t step);

/* Brings it into the inputs of the nets as far as the device does it: an op that reads the number of the step from its
 * state. */
void batches_take(struct batches *b, struct step_state *live);

/* Gives back all of it, at any moment after zeros. */
void batches_free(struct batches *b);

/* --- for the ways ------------------------------------------------------------------------------------------------- */

/* Two steps' batches in turn: while one is trained on, a thread makes the next. */
struct feeder {
    const struct setup *setup;
    bool runs, stop;         /* the thread: it was started; it is to end */
    int64_t made[2], wanted; /* steps: in the slots, -1 = none; to be made by the thread, -1 = nothing */
    struct step_batches slot[2];
    char *memory;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news; /* either side has changed `wanted` or `stop` */
};

/* Starts the thread. The setup and the feeder stay where they are until feeder_stop. ST_MEMORY; ST_FAIL: no thread. */
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

/* *b becomes the batch on the host that begins with example `first`, a multiple of the batch, and the inputs of the net
 * point at its rows where they lie. Returns how many are in use. They are valid until the next call. */
int64_t split_store_select(struct split_store *store, int64_t first, const struct net *net, struct batch *b);

/* test_split_hash of a store of test examples, or test_split_read if it is a window. Errors as those. */
enum status split_store_hash(const struct split_store *store, bool obeys, struct test_split *t, struct error *e);
void split_store_free(struct split_store *store);

struct batches {
    const struct way *way;
    const struct setup *setup;
    const struct place *place;      /* where the nets are; borrowed */
    const struct net *net, *second; /* whose inputs are filled; borrowed */
    struct feeder feeder;
    struct staging staging;
    struct graph taken; /* owns resident data and takes batches out of it; no calls in the other way */
};

#endif
