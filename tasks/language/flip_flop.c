/* flip_flop.c - flip-flop language: one bit is written, ignored or read, and read again after any number of others.
 *
 *   w b  stores b;  i b  has a random b that changes nothing;  r b  has the stored b, which is the target at r
 *
 * Liu et al. 2023, "Exposing attention glitches with flip-flop language modeling". FFL(p) has T ids in pairs, an
 * instruction and a bit. The first pair writes and the last one reads; the others ignore with probability p and else
 * write or read, equally often. Training has p = 0.8; long gaps (p = 0.98, sparse) or many changes (p = 0.1, dense)
 * show whether the bit is held. Ids: 0 w, 1 r, 2 i, 3 the bit 0, 4 the bit 1. Inputs are all ids but the last, targets
 * the next ids. */
#include <string.h>

#include "tasks/examples.h"

enum { WRITE, READ, IGNORE, BIT };
enum loss { LOSS_READS, LOSS_ALL };

struct flip_flop {
    int64_t length, examples[SPLIT_COUNT];
    double ignore, test_ignore;
    int loss;
    char test_length[OPTION_TEXT];
    uint64_t seed; /* set by open */
};

static const struct option options[] = {
    {"length", OPT_INT, offsetof(struct flip_flop, length), "512", 8, 16384, NULL, "ids of a string, an even number",
     OPT_AXIS | OPT_LENGTH | OPT_TESTED},
    {"ignore", OPT_REAL, offsetof(struct flip_flop, ignore), "0.8", 0.01, 0.999, NULL,
     "probability of ignoring in training and validation", OPT_AXIS},
    {"test_ignore", OPT_REAL, offsetof(struct flip_flop, test_ignore), "0.8", 0.01, 0.999, NULL, "the same in the test",
     OPT_AXIS},
    {"loss", OPT_CHOICE, offsetof(struct flip_flop, loss), "reads", 0, 0, "reads all",
     "training learns to predict the bits that are read, or every id", 0},
    EXAMPLES_OPTIONS(struct flip_flop, examples, "1600000", "1000", "4000", "strings"),
    TEST_LENGTH_OPTION(struct flip_flop, test_length),
    {0},
};

static const struct task_alias aliases[] = {
    {"flip-flop-sparse", "test_ignore=0.98", "few bits are written or read in the test"},
    {"flip-flop-dense", "test_ignore=0.1", "most bits are written or read in the test"},
    {NULL, NULL, NULL},
};

static enum status flip_flop_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct flip_flop *f = inst;
    (void)host;
    f->seed = seed;
    if (f->length % 2 == 0) return ST_OK;
    return fail(e, ST_USAGE, "flip-flop: length=%lld is no number of pairs; it must be even", (long long)f->length);
}

/* The trivial answer is the last bit seen, which is the stored one unless it was ignored: half of those are right. The
 * pair before the second one always writes, and the last pair always reads. */
static void flip_flop_shape(const void *inst, struct task_shape *out) {
    const struct flip_flop *f = inst;
    double between = (double)f->length / 2 - 2, read = (1 - f->test_ignore) / 2, right = 1 - f->test_ignore / 2;
    out->T = f->length - 1;
    out->vocab_in = out->vocab_out = 5;
    out->needs_causal = true;
    memcpy(out->examples, f->examples, sizeof out->examples);
    out->chance = 0.5;
    out->floor = (read + (between - 1) * read * right + right) / (between * read + 1);
    out->solved = 0.9999;
    out->metric = METRIC_ACC;
}

static void flip_flop_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct flip_flop *f = inst;
    struct rng r = example_rng(f->seed, split, index);
    double ignore = split == SPLIT_TEST ? f->test_ignore : f->ignore;
    int64_t last = f->length - 2;
    int32_t stored = 0;
    for (int64_t t = 0; t <= last; t += 2) {
        int32_t what = rng_uniform(&r) < ignore ? IGNORE : (int32_t)rng_below(&r, 2);
        int32_t bit = (int32_t)rng_below(&r, 2);
        if (t == 0) what = WRITE;
        if (t == last) what = READ;
        if (what == WRITE) stored = bit;
        if (what == READ) bit = stored;
        bool all = split == SPLIT_TRAIN && f->loss == LOSS_ALL;
        if (all && t > 0) x->targets[t - 1] = what;
        if (all || what == READ) x->targets[t] = BIT + bit;
        x->tokens[t] = what;
        if (t < last) x->tokens[t + 1] = BIT + bit;
    }
    x->length = (int32_t)(f->length - 1);
}

_Static_assert(sizeof(struct flip_flop) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_flip_flop = {
    .name = "flip-flop",
    .summary = "the bit that was written last, after others that are to be ignored (Liu et al. 2023)",
    .suite = "flip-flop",
    .about = "Trained on FFL(0.8): 256 pairs of an instruction and a bit, 80 % ignore, 10 % write, 10 % read. Tested "
             "on the\n"
             "same, on few writes and reads (flip-flop-sparse, 98 % ignored) and on many (flip-flop-dense, 10 %); the "
             "authors'\n"
             "sets (synthseq/flipflop) have 1.6M, 16k, 160k and 4k strings. The bit after each read is scored: chance "
             "0.5; the\n"
             "trivial answer is the newest bit, right on 0.60, 0.51 and 0.95 of reads.\n"
             "Liu et al. 2023 (arXiv 2306.00946): a small LSTM is right on every read of all three; transformers make "
             "sporadic\n"
             "errors, above all on the sparse and the dense set; regularisation makes them rarer.",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct flip_flop),
    .aliases = aliases,
    .open = flip_flop_open,
    .shape = flip_flop_shape,
    .fill = flip_flop_fill,
};
