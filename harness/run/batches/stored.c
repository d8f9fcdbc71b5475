/* stored.c - the examples of validation and test, which are made once, in their own order, in the memory of the net's
 * place. A batch is a part of them: the inputs of the net point there, and nothing is copied. */
#include <stdlib.h>

#include "core/graph_walk.h"
#include "harness/run/batches/batches.h"
#include "harness/run/signals.h"

/* number of examples between two checks for signals; the slowest tasks take about a second for them */
#define ROWS_AT_ONCE 1024

static struct batch whole_batches(const struct spec *s, enum split split) {
    const struct task_shape *shape = &s->task.shape;
    int64_t n = shape->examples[split], B = s->config.batch;
    return batch_of(shape, split, (n + B - 1) / B * B);
}

size_t split_store_bytes(const struct setup *s, enum split split) {
    struct batch rows = whole_batches(&s->spec, split);
    return batch_bytes(&rows);
}

/* Returns rows first .. first+n-1 of a batch as a batch. */
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

enum status split_store_create(struct split_store *store, const struct setup *s, enum split split, size_t room,
                               const struct place *place, struct error *e) {
    size_t bytes = split_store_bytes(s, split);
    bool window = place->device == DEVICE_CPU && bytes > room;
    *store = (struct split_store){.setup = s,
                                  .split = split,
                                  .window = window,
                                  .examples = s->spec.task.shape.examples[split],
                                  .rows = window ? batch_of(&s->spec.task.shape, split, s->spec.config.batch)
                                                 : whole_batches(&s->spec, split)};
    bytes = batch_bytes(&store->rows);
    store->memory = calloc(1, bytes); /* zeros, because test_split_hash reads the padding too */
    if (!store->memory) return fail(e, ST_MEMORY, "no memory for examples to evaluate on: %zu MB", bytes >> 20);
    batch_lay(&store->rows, store->memory);
    if (window) return ST_OK;
    for (int64_t first = 0; first < store->rows.B; first += ROWS_AT_ONCE) {
        int64_t left = store->rows.B - first;
        if (first && signal_received())
            return fail(e, (enum status)(128 + signal_received()),
                        "stopped while the examples to evaluate on were made, before a step; the same command goes on");
        struct batch part = rows_of(&store->rows, first, left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE);
        batch_fill(s, split, first, 0, true, &part);
    }
    if (place->device == DEVICE_CPU) return ST_OK;
    TRY(place_reserve(place, &store->there, bytes, e));
    place_put(place, store->there.base, store->memory, bytes);
    return ST_OK;
}

/* Points an input at rows on the host, or at the same rows on the device. */
static void point(const struct split_store *store, struct tensor *input, void *rows) {
    if (!input) return;
    input->data = store->there.base ? store->there.base + ((char *)rows - store->memory) : rows;
}

int64_t split_store_select(struct split_store *store, int64_t first, const struct net *net, struct batch *b) {
    int64_t left = store->examples - first, B = store->setup->spec.config.batch;
    *b = rows_of(&store->rows, store->window ? 0 : first, B);
    if (store->window) batch_fill(store->setup, store->split, first, 0, true, b);
    point(store, net->input, batch_row(b, 0));
    point(store, net->targets, b->targets);
    point(store, net->lengths, b->lengths);
    point(store, net->links, b->links);
    return left < B ? left : B;
}

enum status split_store_hash(const struct split_store *store, bool obeys, struct test_split *t, struct error *e) {
    const struct task_choice *task = &store->setup->spec.task;
    /* the padding of a window has values of earlier batches, so the examples are made again */
    if (store->window) return test_split_read(task, obeys, t, e);
    return test_split_hash(task, &store->rows, store->examples, t, e);
}

void split_store_free(struct split_store *store) {
    arena_free(&store->there);
    free(store->memory);
    *store = (struct split_store){0};
}
