/* split_store.h - the examples of a validation or test split: made once, and lying where the net runs.
 *
 * Evaluation takes them in their own order, so a batch is a part of the store and nothing is copied. */
#ifndef LRNN_HARNESS_RUN_BATCHES_SPLIT_STORE_H
#define LRNN_HARNESS_RUN_BATCHES_SPLIT_STORE_H

#include "harness/run/feeder.h"

struct split_store {
    struct batch rows;  /* all examples, on the host, and empty rows up to whole batches */
    int64_t examples;   /* rows in use */
    char *memory;       /* of rows */
    struct arena there; /* on a device: the same rows in the same places */
};

/* Bytes of the examples of a split. */
size_t split_store_bytes(const struct setup *s, enum split split);

/* Makes the split, on OpenMP's threads, and sends it. Errors: ST_MEMORY, ST_DEVICE. */
enum status split_store_create(struct split_store *store, const struct setup *s, enum split split,
                               const struct place *place, struct error *e);

/* *b becomes the B rows on the host that begin with example `first`; returns how many of them are in use. */
int64_t split_store_rows(const struct split_store *store, int64_t first, int64_t B, struct batch *b);

/* The same, with the inputs of the net pointed at these rows where it runs; B is the net's. */
int64_t split_store_select(const struct split_store *store, int64_t first, const struct net *net, struct batch *b);

/* One of zeros is no error. */
void split_store_free(struct split_store *store);

#endif
