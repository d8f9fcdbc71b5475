/* split_store.c - see split_store.h. */
#include "harness/run/batches/split_store.h"

#include <stdlib.h>

#include "harness/run/signals.h"

#define ROWS_AT_ONCE 1024 /* examples made between two looks at signals; the slowest tasks' take about a second */

/* Room for so many batches. */
static struct batch batches_of(const struct setup *s, enum split split, int64_t batches) {
    const struct task_shape *shape = &s->spec.task.shape;
    return (struct batch){.B = batches * s->spec.config.batch,
                          .T = task_length(shape, split),
                          .channels = shape->channels,
                          .labels = task_targets(shape, split),
                          .words = links_words(shape->links),
                          .documents = shape->reading.documents};
}

static struct batch whole_batches(const struct setup *s, enum split split) {
    int64_t n = s->spec.task.shape.examples[split], B = s->spec.config.batch;
    return batches_of(s, split, (n + B - 1) / B);
}

size_t split_store_bytes(const struct setup *s, enum split split) {
    struct batch rows = whole_batches(s, split);
    return batch_bytes(&rows);
}

/* Rows first .. first+n of the store, as a batch. */
static struct batch rows_of(const struct batch *all, int64_t first, int64_t n) {
    struct batch b = *all;
    b.B = n;
    if (b.channels)
        b.values = batch_row(all, first);
    else
        b.tokens = batch_row(all, first);
    b.targets += first * all->labels;
    b.lengths += first * batch_documents(all);
    b.links += first * all->words;
    return b;
}

/* Part after part, so that a signal is obeyed where there are many: an example is a function of its index, whatever is
 * made beside it. */
static enum status make_rows(const struct setup *s, enum split split, struct batch *rows, struct error *e) {
    for (int64_t first = 0; first < rows->B; first += ROWS_AT_ONCE) {
        int64_t left = rows->B - first;
        if (first && signal_received())
            return fail(e, (enum status)(128 + signal_received()),
                        "stopped while the examples to evaluate on were made, before a step; the same command goes on");
        struct batch part = rows_of(rows, first, left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE);
        batch_fill(s, split, first, 0, true, &part);
    }
    return ST_OK;
}

enum status split_store_create(struct split_store *store, const struct setup *s, enum split split, size_t room,
                               const struct place *place, struct error *e) {
    size_t bytes = split_store_bytes(s, split);
    bool window = place->device == DEVICE_CPU && bytes > room;
    *store = (struct split_store){.setup = s,
                                  .split = split,
                                  .window = window,
                                  .examples = s->spec.task.shape.examples[split],
                                  .rows = window ? batches_of(s, split, 1) : whole_batches(s, split)};
    bytes = batch_bytes(&store->rows);
    store->memory = calloc(1, bytes); /* what an example leaves is the same each time: test_split.c hashes all of it */
    if (!store->memory) return fail(e, ST_MEMORY, "no memory for examples to evaluate on: %zu MB", bytes >> 20);
    batch_lay(&store->rows, store->memory);
    if (window) return ST_OK;
    TRY(make_rows(s, split, &store->rows, e));
    if (place->device == DEVICE_CPU) return ST_OK;
    TRY(place_reserve(place, &store->there, bytes, e));
    place_put(place, store->there.base, store->memory, bytes);
    return ST_OK;
}

/* Rows of the host as they lie where the net runs. */
static void point(const struct split_store *store, struct tensor *input, void *rows) {
    if (!input) return;
    input->data = store->there.base ? store->there.base + ((char *)rows - store->memory) : rows;
}

int64_t split_store_rows(struct split_store *store, int64_t first, struct batch *b) {
    int64_t left = store->examples - first, B = store->setup->spec.config.batch;
    *b = rows_of(&store->rows, store->window ? 0 : first, B);
    if (store->window) return batch_fill(store->setup, store->split, first, 0, true, b);
    return left < B ? left : B;
}

int64_t split_store_select(struct split_store *store, int64_t first, const struct net *net, struct batch *b) {
    int64_t in_use = split_store_rows(store, first, b);
    point(store, net->input, batch_row(b, 0));
    point(store, net->targets, b->targets);
    point(store, net->lengths, b->lengths);
    point(store, net->links, b->links);
    return in_use;
}

void split_store_free(struct split_store *store) {
    arena_free(&store->there);
    free(store->memory);
    *store = (struct split_store){0};
}
