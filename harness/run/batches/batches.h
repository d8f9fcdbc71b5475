/* batches.h - training batches, with one interface for all ways of making them:
 *
 *     batches_next(b, step);     before the graphs of a step run
 *     batches_take(b, state);    first part of the step, which a device captures
 *
 * There are two ways, each in one file; batches_keep_resident chooses the second:
 *
 *     batches.c   a thread of the host makes batches ahead of the steps and sends them into the net's inputs
 *     resident.c  all training data are on the device, and a graph copies the batch of each step out of them
 *
 * A batch depends only on the setup and the step, so both ways give the same bits. Validation and test need no copies:
 * the inputs of the net point at the stored examples (stored.c). */
#ifndef LRNN_HARNESS_RUN_BATCHES_BATCHES_H
#define LRNN_HARNESS_RUN_BATCHES_BATCHES_H

#include <pthread.h>

#include "harness/run/batches/examples.h"
#include "harness/study/graphs.h"

/* --- the interface ------------------------------------------------------------------------------------------------ */

struct batches;

/* A way of making batches. */
struct way {
    /* Prepares the batches. Called after the graph of the step is planned. */
    enum status (*start)(struct batches *b, struct error *e);
    void (*next)(struct batches *b, int64_t step);
    void (*take)(struct batches *b, struct step_state *live);
};
extern const struct way way_sent, way_resident;

/* Initialises batches for a net, and for a second net, which is all zeros if the task has no second batch. The host
 * makes the batches unless batches_keep_resident is called. All arguments must stay valid until batches_free. */
void batches_init(struct batches *b, const struct setup *s, const struct place *place, const struct net *net,
                  const struct net *second);

/* Returns the bytes that all training data need on the device; 0: they cannot be kept there (graphs_can_take). */
size_t batches_resident_bytes(const struct setup *s);

/* Keeps all training data on the device. Call it before batches_start. */
void batches_keep_resident(struct batches *b);

/* Prepares the batches. Call it after the graph of the step is planned. Errors: ST_MEMORY, ST_DEVICE; ST_FAIL: no
 * thread; 130 or 143 as a status if a signal came while examples were made. */
enum status batches_start(struct batches *b, struct error *e);

/* Does the host's part of bringing the batch of a step into the inputs of the nets. */
void batches_next(struct batches *b, int64_t step);

/* Does the device's part: an op reads the number of the step from its state and copies the batch. */
void batches_take(struct batches *b, struct step_state *live);

/* Frees everything. The struct may be in any state, also all zeros. */
void batches_free(struct batches *b);

/* --- for the files of the ways ------------------------------------------------------------------------------------ */

/* Two slots with the batches of two steps. While one is used, a thread fills the other with the next step's. */
struct feeder {
    const struct setup *setup;
    bool runs, stop; /* runs: the thread was started; stop: the thread must end */
    /* made: the steps whose batches are in the slots; wanted: the step that the thread must make. -1: none */
    int64_t made[2], wanted;
    struct step_batches slot[2];
    char *memory;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news; /* signalled when `wanted` or `stop` has changed */
};

/* Starts the thread. Setup and feeder must not move until feeder_stop. ST_MEMORY; ST_FAIL: no thread. */
enum status feeder_start(struct feeder *f, const struct setup *setup, struct error *e);

/* Returns the batches of a step, and lets the thread make those of the next step. Steps may be asked for in any order.
 * The result is valid until the next call. */
const struct step_batches *feeder_take(struct feeder *f, int64_t step);

/* Ends the thread. A feeder of zeros is allowed. */
void feeder_stop(struct feeder *f);

#define STAGING_SLOTS 8 /* how many steps the host may be ahead of the device */

/* A ring of slots in pinned memory, for copies to a device. A slot is free again when the device has read it. */
struct staging {
    const struct place *place;
    char *memory;       /* pinned; NULL on the CPU */
    size_t bytes, used; /* bytes of a slot, and how many of them are used */
    struct place_mark *read[STAGING_SLOTS];
    bool in_use[STAGING_SLOTS];
    int slot;
};

/* A split may use at most 1/SPLIT_STORE_PART of the machine's memory, because nets and other runs need memory too. */
#define SPLIT_STORE_PART 4

/* The examples of a validation or test split. They are made once, in the memory of the net's place. On the CPU, a split
 * that is too large is not stored: the store then has one batch (a window), which is made when it is asked for. */
struct split_store {
    struct batch rows;         /* on the host: all examples, padded with empty rows to whole batches; or one batch */
    int64_t examples;          /* number of examples of the split */
    const struct setup *setup; /* borrowed */
    enum split split;
    bool window;        /* `rows` has only the batch that was selected last */
    char *memory;       /* memory of `rows` */
    struct arena there; /* on a device, a copy of `memory` */
};

/* Returns the bytes of the examples of a split. */
size_t split_store_bytes(const struct setup *s, enum split split);

/* Makes the split with OpenMP's threads and sends it to the device. On the CPU, a split of more than `room` bytes
 * becomes a window, which is empty at first. The setup must stay valid until split_store_free. Errors: ST_MEMORY,
 * ST_DEVICE; 130 or 143 as a status if a signal came. */
enum status split_store_create(struct split_store *store, const struct setup *s, enum split split, size_t room,
                               const struct place *place, struct error *e);

/* Sets *b to the batch on the host that begins with example `first`, a multiple of the batch size, and points the net's
 * inputs at its rows. Returns the number of rows in use. Valid until the next call. */
int64_t split_store_select(struct split_store *store, int64_t first, const struct net *net, struct batch *b);

/* Calls test_split_hash on stored test examples, or test_split_read for a window, with their errors. */
enum status split_store_hash(const struct split_store *store, bool obeys, struct test_split *t, struct error *e);
void split_store_free(struct split_store *store);

struct batches {
    const struct way *way;
    const struct setup *setup;
    const struct place *place;      /* where the nets are; borrowed */
    const struct net *net, *second; /* nets whose inputs are filled; borrowed */
    struct feeder feeder;
    struct staging staging;
    struct graph taken; /* for resident data: owns them and copies batches out of them; else without calls */
};

#endif
