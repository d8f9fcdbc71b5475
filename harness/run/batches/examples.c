/* examples.c - see examples.h. A validation or test split is made once, in the memory of the net's place. A batch is a
 * part of it: the inputs of the net point there, and nothing is copied. */
#include "harness/run/batches/examples.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "core/graph_walk.h"
#include "harness/run/signals.h"
#include "tasks/curriculum.h"

#define PARALLEL_FROM 16384 /* threads are used for batches of at least so many positions */

/* number of examples between two checks for signals; the slowest tasks take about a second for them */
#define ROWS_AT_ONCE 1024

/* --- memory ------------------------------------------------------------------------------------------------------- */

size_t batch_bytes(const struct batch *b) {
    size_t words = (size_t)(b->labels + batch_documents(b) + b->words);
    size_t bytes = (size_t)b->B * (batch_row_bytes(b) + words * sizeof(int32_t));
    return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* The input comes first: only its numbers may have 8 bytes, which need the larger alignment. */
char *batch_lay(struct batch *b, char *at) {
    b->tokens = b->channels ? NULL : (int32_t *)(void *)at;
    b->values = b->channels ? (real *)(void *)at : NULL;
    b->targets = (int32_t *)(void *)(at + (size_t)b->B * batch_row_bytes(b));
    b->lengths = b->targets + b->B * b->labels;
    b->links = b->lengths + b->B * batch_documents(b);
    return at + batch_bytes(b);
}

struct batch batch_of(const struct task_shape *shape, enum split split, int64_t rows) {
    return (struct batch){.B = rows,
                          .T = task_length(shape, split),
                          .channels = shape->channels,
                          .labels = task_targets(shape, split),
                          .words = links_words(shape->links),
                          .documents = shape->reading.documents};
}

struct step_batches step_sizes(const struct spec *s) {
    const struct task_shape *shape = &s->task.shape;
    int64_t T = shape->second.T;
    return (struct step_batches){
        .main = batch_of(shape, SPLIT_TRAIN, s->config.batch),
        .second = {.B = setup_second_rows(s), .T = T, .channels = shape->channels, .labels = T}};
}

size_t step_bytes(const struct spec *s) {
    struct step_batches sizes = step_sizes(s);
    return batch_bytes(&sizes.main) + batch_bytes(&sizes.second);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

int64_t train_example(const struct spec *s, int64_t epoch, int64_t position) {
    uint64_t n = (uint64_t)s->task.shape.examples[SPLIT_TRAIN];
    return (int64_t)permute_index(s->task.seed, STREAM_SHUFFLE, (uint64_t)epoch, (uint64_t)position, n);
}

int64_t second_example(const struct spec *s, int64_t position) {
    uint64_t n = (uint64_t)s->task.shape.second.examples, at = (uint64_t)position;
    return (int64_t)permute_index(~s->task.seed, STREAM_SHUFFLE, at / n, at % n, n);
}

/* Fills a row with an example of a split or of the second batch. index -1: the row becomes an empty example. */
static void fill_row(const struct task_choice *task, enum split split, bool second, int64_t index, struct batch *b,
                     int64_t row) {
    struct example x = {.targets = b->targets + row * b->labels, .most = (int32_t)b->most};
    int64_t documents = batch_documents(b);
    if (b->channels)
        x.values = batch_row(b, row);
    else
        x.tokens = batch_row(b, row);
    if (b->words) x.links = b->links + row * b->words;
    for (int64_t i = 0; i < b->labels; i++) x.targets[i] = IGNORED;
    for (int64_t i = 0; i < b->words; i++) x.links[i] = IGNORED;
    if (index < 0)
        memset(batch_row(b, row), 0, batch_row_bytes(b));
    else if (second)
        task->shape.second.fill(task->inst, index, &x);
    else
        task_fill(task, split, index, &x);
    b->lengths[row * documents] = x.length;
    if (documents > 1) b->lengths[row * documents + 1] = x.second;
}

int64_t batch_fill(const struct spec *s, enum split split, int64_t first, struct batch *b) {
    int64_t left = s->task.shape.examples[split] - first;
#pragma omp parallel for schedule(static) if (b->B * b->T > PARALLEL_FROM)
    for (int64_t row = 0; row < b->B; row++) fill_row(&s->task, split, false, row < left ? first + row : -1, b, row);
    return left < b->B ? left : b->B;
}

void split_fill(const struct spec *s, bool second, int64_t first, int64_t rows, struct batch *b) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) fill_row(&s->task, SPLIT_TRAIN, second, first + row, b, row);
}

void step_fill(const struct spec *s, const struct shapes *shapes, int64_t step, struct step_batches *b) {
    int64_t epoch = step / shapes->steps_per_epoch, first = step % shapes->steps_per_epoch * s->config.batch;
    int64_t left = s->task.shape.examples[SPLIT_TRAIN] - first;
    b->main.most = curriculum_longest(s->config.curriculum, step, shapes->schedule_steps);
    for (int64_t row = 0; row < b->main.B; row++) {
        int64_t index = row < left ? train_example(s, epoch, first + row) : -1;
        fill_row(&s->task, SPLIT_TRAIN, false, index, &b->main, row);
    }
    for (int64_t row = 0; row < b->second.B; row++) {
        int64_t index = second_example(s, step * b->second.B + row);
        fill_row(&s->task, SPLIT_TRAIN, true, index, &b->second, row);
    }
}

/* --- the test split ----------------------------------------------------------------------------------------------- */

/* Sums over the examples that have been read. */
struct digest {
    XXH3_state_t *state;
    /* chance: of being right at one scored position; sum: over sequences, of being right at all of them */
    double chance, sum;
    int64_t n;
};

static enum status digest_begin(struct digest *d, double chance, struct error *e) {
    *d = (struct digest){.state = XXH3_createState(), .chance = chance};
    if (!d->state) return fail(e, ST_MEMORY, "no memory to read the test examples");
    XXH3_128bits_reset(d->state);
    return ST_OK;
}

static void digest_row(struct digest *d, const struct batch *b, int64_t row) {
    int64_t documents = batch_documents(b), scored = 0;
    const int32_t *targets = b->targets + row * b->labels, *lengths = b->lengths + row * documents;
    for (int64_t t = 0; t < b->labels; t++) scored += targets[t] != IGNORED;
    /* a sequence without a scored position counts as never right */
    if (scored) d->sum += pow(d->chance, (double)scored);
    d->n++;
    XXH3_128bits_update(d->state, lengths, sizeof *lengths);
    if (documents > 1 && lengths[1]) XXH3_128bits_update(d->state, lengths + 1, sizeof *lengths);
    XXH3_128bits_update(d->state, batch_row(b, row), batch_row_bytes(b));
    XXH3_128bits_update(d->state, targets, (size_t)b->labels * sizeof *targets);
    if (b->words) XXH3_128bits_update(d->state, b->links + row * b->words, (size_t)b->words * sizeof *b->links);
}

static void digest_end(struct digest *d, struct test_split *t) {
    XXH128_hash_t hash = XXH3_128bits_digest(d->state);
    snprintf(t->hash, sizeof t->hash, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64, (uint64_t)hash.low64);
    t->seq_chance = d->n ? d->sum / (double)d->n : 0;
    XXH3_freeState(d->state);
}

enum status test_split_read(const struct task_choice *task, bool obeys, struct test_split *t, struct error *e) {
    struct batch one = batch_of(&task->shape, SPLIT_TEST, 1);
    struct digest d;
    char *memory = malloc(batch_bytes(&one));
    if (!memory) return fail(e, ST_MEMORY, "no memory for an example of %s", task->name);
    enum status status = digest_begin(&d, task->shape.chance, e);
    if (status == ST_OK) {
        int64_t n = task->shape.examples[SPLIT_TEST];
        batch_lay(&one, memory);
        for (int64_t i = 0; i < n && status == ST_OK; i++) {
            memset(batch_row(&one, 0), 0, batch_row_bytes(&one));
            fill_row(task, SPLIT_TEST, false, i, &one, 0);
            digest_row(&d, &one, 0);
            if (obeys && i + 1 < n && signal_received())
                status = fail(e, (enum status)(128 + signal_received()), "stopped while the test examples were read");
        }
        digest_end(&d, t);
    }
    free(memory);
    return status;
}

/* --- stored splits ------------------------------------------------------------------------------------------------ */

static struct batch whole_batches(const struct spec *s, enum split split) {
    const struct task_shape *shape = &s->task.shape;
    int64_t n = shape->examples[split], B = s->config.batch;
    return batch_of(shape, split, (n + B - 1) / B * B);
}

size_t split_store_bytes(const struct spec *s, enum split split) {
    struct batch rows = whole_batches(s, split);
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

enum status split_store_create(struct split_store *store, const struct spec *s, enum split split, size_t room,
                               const struct place *place, struct error *e) {
    size_t bytes = split_store_bytes(s, split);
    bool window = place->device == DEVICE_CPU && bytes > room;
    *store = (struct split_store){.spec = s,
                                  .split = split,
                                  .window = window,
                                  .examples = s->task.shape.examples[split],
                                  .rows = window ? batch_of(&s->task.shape, split, s->config.batch)
                                                 : whole_batches(s, split)};
    bytes = batch_bytes(&store->rows);
    store->memory = calloc(1, bytes); /* zeros, because split_store_hash reads the padding too */
    if (!store->memory) return fail(e, ST_MEMORY, "no memory for examples to evaluate on: %zu MB", bytes >> 20);
    batch_lay(&store->rows, store->memory);
    if (window) return ST_OK;
    for (int64_t first = 0; first < store->rows.B; first += ROWS_AT_ONCE) {
        int64_t left = store->rows.B - first;
        if (first && signal_received())
            return fail(e, (enum status)(128 + signal_received()),
                        "stopped while the examples to evaluate on were made, before a step; the same command goes on");
        struct batch part = rows_of(&store->rows, first, left < ROWS_AT_ONCE ? left : ROWS_AT_ONCE);
        batch_fill(s, split, first, &part);
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
    int64_t left = store->examples - first, B = store->spec->config.batch;
    *b = rows_of(&store->rows, store->window ? 0 : first, B);
    if (store->window) batch_fill(store->spec, store->split, first, b);
    point(store, net->input, batch_row(b, 0));
    point(store, net->targets, b->targets);
    point(store, net->lengths, b->lengths);
    point(store, net->links, b->links);
    return left < B ? left : B;
}

enum status split_store_hash(const struct split_store *store, bool obeys, struct test_split *t, struct error *e) {
    struct digest d;
    /* the padding of a window has values of earlier batches, so the examples are made again */
    if (store->window) return test_split_read(&store->spec->task, obeys, t, e);
    TRY(digest_begin(&d, store->spec->task.shape.chance, e));
    for (int64_t row = 0; row < store->examples; row++) digest_row(&d, &store->rows, row);
    digest_end(&d, t);
    return ST_OK;
}

void split_store_free(struct split_store *store) {
    arena_free(&store->there);
    free(store->memory);
    *store = (struct split_store){0};
}
