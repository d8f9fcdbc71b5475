/* examples.h - examples of a task as rows of a batch: their order, their memory, facts about the test split, and the
 * stored splits of validation and test. */
#ifndef LRNN_HARNESS_RUN_BATCHES_EXAMPLES_H
#define LRNN_HARNESS_RUN_BATCHES_EXAMPLES_H

#include "harness/study/setup.h"
#include "core/place.h"

/* Rows that are borrowed. They have tokens (B,documents,T) or values (B,documents,T,channels), targets (B,labels),
 * lengths (B,documents) and links (B,words). */
struct batch {
    int64_t B, T, channels, labels, documents; /* channels 0: the input is tokens; documents 0: one document */
    int64_t words;                             /* words of links per example; 0: no links */
    int64_t most;    /* under a curriculum, the greatest length of an example; 0: the task's own lengths */
    int32_t *tokens; /* NULL with values */
    real *values;    /* NULL with tokens */
    int32_t *targets, *lengths, *links;
};

static inline int64_t batch_documents(const struct batch *b) {
    return b->documents > 1 ? b->documents : 1;
}

/* These return the bytes of a row's input, and the input itself. */
static inline size_t batch_row_bytes(const struct batch *b) {
    size_t position = b->channels ? (size_t)b->channels * sizeof *b->values : sizeof *b->tokens;
    return (size_t)(batch_documents(b) * b->T) * position;
}
static inline void *batch_row(const struct batch *b, int64_t row) {
    return (b->channels ? (char *)b->values : (char *)b->tokens) + (size_t)row * batch_row_bytes(b);
}

/* Returns the bytes of a batch of that size, in whole cache lines. */
size_t batch_bytes(const struct batch *b);

/* Places the arrays of a batch one after another, from `at` on. Returns the end. */
char *batch_lay(struct batch *b, char *at);

/* Returns a batch of that many examples of a split, without memory. */
struct batch batch_of(const struct task_shape *shape, enum split split, int64_t rows);

/* The two batches of a training step. `second` has no rows (B = 0) if the task has no second batch. */
struct step_batches {
    struct batch main, second;
};

/* step_sizes returns the batches of a step without memory, step_bytes the bytes that both need. */
struct step_batches step_sizes(const struct spec *s);
size_t step_bytes(const struct spec *s);

/* Returns the index of the example at a position of a training epoch. Each epoch has its own order. */
int64_t train_example(const struct spec *s, int64_t epoch, int64_t position);

/* Returns the index of an example of the second batch. Positions count through all epochs, so that no step has a
 * partial batch. */
int64_t second_example(const struct spec *s, int64_t position);

/* Fills the batches of a step. They depend only on the run and the step. The last batch of an epoch may be partial. */
void step_fill(const struct spec *s, const struct shapes *shapes, int64_t step, struct step_batches *b);

/* Fills a batch with examples first .. first+B-1 of a split in their own order. Rows after the end of the split get
 * inputs 0, ignored targets and length 0. Returns the number of rows in use. */
int64_t batch_fill(const struct spec *s, enum split split, int64_t first, struct batch *b);

/* Fills `rows` rows with training examples first .. first+rows-1 in their own order, or with examples of the second
 * batch. Uses OpenMP's threads. */
void split_fill(const struct spec *s, bool second, int64_t first, int64_t rows, struct batch *b);

/* Facts about the test examples of a task, and the score of guessing on them. */
struct test_split {
    char hash[RUN_ID_HEX]; /* XXH3-128 of inputs, targets, links and lengths of all examples, in their order */
    /* the expected share of sequences without an error, if each scored position is right only by chance */
    double seq_chance;
};

/* Makes every test example of an opened task once. Errors: ST_MEMORY; if `obeys`, 130 or 143 as a status if a signal
 * came. */
enum status test_split_read(const struct task_choice *task, bool obeys, struct test_split *t, struct error *e);

/* --- stored splits ------------------------------------------------------------------------------------------------ */

/* A split may use at most 1/SPLIT_STORE_PART of the machine's memory, because nets and other runs need memory too. */
#define SPLIT_STORE_PART 4

/* The examples of a validation or test split. They are made once, in the memory of the net's place. On the CPU, a split
 * that is too large is not stored: the store then has one batch (a window), which is made when it is asked for. */
struct split_store {
    struct batch rows;       /* on the host: all examples, padded with empty rows to whole batches; or one batch */
    int64_t examples;        /* number of examples of the split */
    const struct spec *spec; /* borrowed */
    enum split split;
    bool window;        /* `rows` has only the batch that was selected last */
    char *memory;       /* memory of `rows` */
    struct arena there; /* on a device, a copy of `memory` */
};

/* Returns the bytes of the examples of a split. */
size_t split_store_bytes(const struct spec *s, enum split split);

/* Makes the split with OpenMP's threads and sends it to the device. On the CPU, a split of more than `room` bytes
 * becomes a window, which is empty at first. The spec must stay valid until split_store_free. Errors: ST_MEMORY,
 * ST_DEVICE; 130 or 143 as a status if a signal came. */
enum status split_store_create(struct split_store *store, const struct spec *s, enum split split, size_t room,
                               const struct place *place, struct error *e);

/* Sets *b to the batch on the host that begins with example `first`, a multiple of the batch size, and points the net's
 * inputs at its rows. Returns the number of rows in use. Valid until the next call. */
int64_t split_store_select(struct split_store *store, int64_t first, const struct net *net, struct batch *b);

/* Like test_split_read, for stored test examples: only those of a window are made again. */
enum status split_store_hash(const struct split_store *store, bool obeys, struct test_split *t, struct error *e);
void split_store_free(struct split_store *store);

#endif
