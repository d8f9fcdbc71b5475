/* batches.h - training batches, with one interface for all ways of making them:
 *
 *     batches_next(b, step);     before the graphs of a step run
 *     batches_take(b, state);    first part of the step, which a device captures
 *
 * There are two ways; batches_keep_resident chooses the second:
 *
 *     sent      a thread of the host makes batches ahead of the steps and sends them into the net's inputs
 *     resident  all training data are on the device, and a graph copies the batch of each step out of them
 *
 * A batch depends only on the run and the step, so both ways give the same bits. */
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

/* Initialises batches for the nets of a step. The host makes the batches unless batches_keep_resident is called. The
 * run, the place and the nets must stay valid until batches_free. */
void batches_init(struct batches *b, const struct graph_source *from, const struct step_nets *nets);

/* Returns the bytes that all training data need on the device; 0: they cannot be kept there (graphs_can_take). */
size_t batches_resident_bytes(const struct spec *s, const struct shapes *shapes);

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

/* --- for the ways ------------------------------------------------------------------------------------------------- */

/* Two slots with the batches of two steps. While one is used, a thread fills the other with the next step's. */
struct feeder {
    const struct spec *spec;     /* borrowed */
    const struct shapes *shapes; /* borrowed */
    bool runs, stop;             /* runs: the thread was started; stop: the thread must end */
    /* made: the steps whose batches are in the slots; wanted: the step that the thread must make. -1: none */
    int64_t made[2], wanted;
    struct step_batches slot[2];
    char *memory;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news; /* signalled when `wanted` or `stop` has changed */
};

/* Starts the thread. No argument may move until feeder_stop. ST_MEMORY; ST_FAIL: no thread. */
enum status feeder_start(struct feeder *f, const struct spec *s, const struct shapes *shapes, struct error *e);

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

struct batches {
    const struct way *way;
    struct graph_source from;     /* the run, and where the nets are */
    const struct step_nets *nets; /* borrowed; their inputs are filled */
    struct feeder feeder;
    struct staging staging;
    struct graph taken; /* for resident data: owns them and copies batches out of them; else without calls */
};

#endif
