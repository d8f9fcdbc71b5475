/* examples.h - examples of a task as rows of a batch: their order, their memory, and facts about the test split. */
#ifndef LRNN_HARNESS_RUN_BATCHES_EXAMPLES_H
#define LRNN_HARNESS_RUN_BATCHES_EXAMPLES_H

#include "harness/study/setup.h"

/* Borrowed rows: tokens (B,documents,T) or values (B,documents,T,channels), targets (B,labels), lengths (B,documents),
 * links (B,words). */
struct batch {
    int64_t B, T, channels, labels, documents; /* channels 0: tokens; documents 0: one */
    int64_t words;                             /* words of links per example; 0: no links */
    int64_t most;                              /* longest length of an example under a curriculum; 0: the task's own */
    int32_t *tokens;                           /* NULL with values */
    real *values;                              /* NULL with tokens */
    int32_t *targets, *lengths, *links;
};

static inline int64_t batch_documents(const struct batch *b) {
    return b->documents > 1 ? b->documents : 1;
}

/* Return the bytes of the input of a row, and the input itself. */
static inline size_t batch_row_bytes(const struct batch *b) {
    size_t position = b->channels ? (size_t)b->channels * sizeof *b->values : sizeof *b->tokens;
    return (size_t)(batch_documents(b) * b->T) * position;
}
static inline void *batch_row(const struct batch *b, int64_t row) {
    return (b->channels ? (char *)b->values : (char *)b->tokens) + (size_t)row * batch_row_bytes(b);
}

/* Bytes of a batch of that size, in whole cache lines. */
size_t batch_bytes(const struct batch *b);

/* Places the arrays of a batch one after another, from `at` on. Returns the end. */
char *batch_lay(struct batch *b, char *at);

/* Returns a batch of that many examples of a split, without memory. */
struct batch batch_of(const struct task_shape *shape, enum split split, int64_t rows);

/* The two batches of a training step. `second` has no rows (B = 0) if the task has no second batch. */
struct step_batches {
    struct batch main, second;
};

/* Return the batches of a step without memory, and the bytes that both need. */
struct step_batches step_sizes(const struct setup *s);
size_t step_bytes(const struct setup *s);

/* Index of the example at a position of a training epoch. Each epoch has its own order. */
int64_t train_example(const struct setup *s, int64_t epoch, int64_t position);

/* Index of an example of the second batch. Positions count through all epochs, so no step has a partial batch. */
int64_t second_example(const struct setup *s, int64_t position);

/* Fills the batches of a step, which depend only on the setup and the step. The last batch of an epoch may be partial.
 * `parallel`: on OpenMP's threads if that is faster. */
void step_fill(const struct setup *s, int64_t step, bool parallel, struct step_batches *b);

/* Fills a batch with examples first .. first+B of a split; training examples are in the order of the epoch. Rows past
 * the end of the split get inputs 0, ignored targets and length 0. Returns the rows in use. */
int64_t batch_fill(const struct setup *s, enum split split, int64_t first, int64_t epoch, bool parallel,
                   struct batch *b);

/* Fills `rows` rows with training examples first .. first+rows in their own order, or with examples of the second
 * batch, on OpenMP's threads. */
void split_fill(const struct setup *s, bool second, int64_t first, int64_t rows, struct batch *b);

/* Facts about the test examples of a task, and the score of guessing on them. */
struct test_split {
    char hash[RUN_ID_HEX]; /* XXH3-128 of inputs, targets, links and lengths of all examples, in their order */
    double seq_chance;     /* share of sequences without an error, if each scored position is right by chance */
};

/* Makes every test example of an opened task once. Errors: ST_MEMORY; where `obeys`, 130 or 143 as a status if a signal
 * asked to stop meanwhile. */
enum status test_split_read(const struct task_choice *task, bool obeys, struct test_split *t, struct error *e);

/* Like test_split_read, for examples that lie in a batch: the first `examples` rows. ST_MEMORY. */
enum status test_split_hash(const struct task_choice *task, const struct batch *rows, int64_t examples,
                            struct test_split *t, struct error *e);

#endif
