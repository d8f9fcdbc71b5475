/* feeder.h - batches on the host: filled from a task, and for training made ahead by a thread of their own.
 *
 * What a step trains on is a function of the setup and the step alone, so it does not matter who makes it, or when. */
#ifndef LRNN_HARNESS_RUN_FEEDER_H
#define LRNN_HARNESS_RUN_FEEDER_H

#include <pthread.h>

#include "harness/study/setup.h"

/* Borrowed rows: tokens (B,documents,T) or values (B,documents,T,channels), targets (B, labels of a sequence), lengths
 * (B,documents). */
struct batch {
    int64_t B, T, channels, labels, documents; /* channels 0: tokens; documents 0: one */
    int64_t words;                             /* of an example's links; 0: there are none */
    int32_t *tokens;                           /* NULL with values */
    real *values;                              /* NULL with tokens */
    int32_t *targets, *lengths;
    int32_t *links; /* (B, words) */
};

static inline int64_t batch_documents(const struct batch *b) {
    return b->documents > 1 ? b->documents : 1;
}

/* The input of a row, and its bytes. */
static inline size_t batch_row_bytes(const struct batch *b) {
    size_t position = b->channels ? (size_t)b->channels * sizeof *b->values : sizeof *b->tokens;
    return (size_t)(batch_documents(b) * b->T) * position;
}
static inline void *batch_row(const struct batch *b, int64_t row) {
    return (b->channels ? (char *)b->values : (char *)b->tokens) + (size_t)row * batch_row_bytes(b);
}

/* Index of the example at a position of a training epoch. Each epoch has an order of its own. */
int64_t train_example(const struct setup *s, int64_t epoch, int64_t position);

/* The same of the strings of another length; positions are counted through all epochs, which are cut into steps without
 * a partial batch. */
int64_t second_example(const struct setup *s, int64_t position);

/* Examples order(first .. first+B) of a split; rows past its end get inputs 0, ignored targets and length 0. Training
 * examples are in the order of their epoch. `parallel`: on OpenMP's threads where that is worth while. Returns the rows
 * in use. */
int64_t batch_fill(const struct setup *s, enum split split, int64_t first, int64_t epoch, bool parallel,
                   struct batch *b);

/* What a step trains on; `second` has no rows (B = 0) where the task has no strings of another length. */
struct step_batches {
    struct batch main, second;
};

/* Their sizes, without memory. */
struct step_batches step_sizes(const struct setup *s);

/* Bytes of a batch of that size, whole cache lines; its arrays one behind the other from `at` on: returns the end. */
size_t batch_bytes(const struct batch *b);
char *batch_lay(struct batch *b, char *at);

/* Training examples first .. first+rows in their own order, of the main strings or those of another length, on OpenMP's
 * threads. */
void split_fill(const struct setup *s, bool second, int64_t first, int64_t rows, struct batch *b);

/* Two steps' batches in turn: while one is trained on, the next is made. */
struct feeder {
    const struct setup *setup;
    bool ahead, stop;
    int64_t made[2], wanted; /* steps: in the slots, -1 = none; what the thread is to make, -1 = nothing */
    struct step_batches slot[2];
    char *memory;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news; /* either side has changed `wanted` or `stop` */
};

/* Bytes of the batches of a step. */
size_t feeder_bytes(const struct setup *setup);

/* Starts the thread if the setup asks for it. The setup and the feeder stay where they are until feeder_stop.
 * ST_MEMORY; ST_FAIL: no thread. */
enum status feeder_start(struct feeder *f, const struct setup *setup, struct error *e);

/* The batches of a step, in any order of steps; valid until the next call. Those of the next step are then begun. */
const struct step_batches *feeder_take(struct feeder *f, int64_t step);

/* Ends the thread; a feeder of zeros, or one that did not start, is no error. */
void feeder_stop(struct feeder *f);

#endif
