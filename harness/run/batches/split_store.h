/* split_store.h - the examples of a validation or test split: made once, and lying where the net runs.
 *
 * Evaluation takes them in their own order, so a batch is a part of the store and nothing is copied. On the CPU a split
 * that would take more than its share of the machine's memory is not kept: the store is then the window of one batch,
 * whose examples are made when it is wanted. An example is a function of its index, so that both give the same bits. */
#ifndef LRNN_HARNESS_RUN_BATCHES_SPLIT_STORE_H
#define LRNN_HARNESS_RUN_BATCHES_SPLIT_STORE_H

#include "harness/run/feeder.h"

/* One part of so many of the machine's memory is room for a split: nets take some, and so do runs beside this one. */
#define SPLIT_STORE_PART 4

struct split_store {
    struct batch rows; /* all examples, on the host, and empty rows up to whole batches; or those of one batch */
    int64_t examples;  /* of the split */
    const struct setup *setup; /* borrowed; of a window, whose rows are made with it */
    enum split split;
    bool window;        /* the rows are of one batch, the one that was asked for last */
    char *memory;       /* of rows */
    struct arena there; /* on a device: the same rows in the same places */
};

/* Bytes of the examples of a split. */
size_t split_store_bytes(const struct setup *s, enum split split);

/* Makes the split, on OpenMP's threads, and sends it; a window is empty. `room`: bytes from which on it is one, on the
 * CPU. The setup stays where it is until split_store_free. Errors: ST_MEMORY, ST_DEVICE; 130 or 143 as a status when a
 * signal asked to stop meanwhile. */
enum status split_store_create(struct split_store *store, const struct setup *s, enum split split, size_t room,
                               const struct place *place, struct error *e);

/* *b becomes the batch of the run's size on the host that begins with example `first`, a multiple of that size; returns
 * how many of its rows are in use. They are valid until the next call. */
int64_t split_store_rows(struct split_store *store, int64_t first, struct batch *b);

/* The same, with the inputs of the net pointed at these rows where it runs. */
int64_t split_store_select(struct split_store *store, int64_t first, const struct net *net, struct batch *b);

/* One of zeros is no error. */
void split_store_free(struct split_store *store);

#endif
