/* listops.c - ListOps of the Long Range Arena: the value of a nested prefix expression over digits.
 *
 *   node at depth d (root 1)   with probability 1/4, if d < depth: an operator on 2..arity nodes of depth d + 1
 *                              else a digit; leaves are the common case, although the source calls 1/4 the probability
 *                              of a value
 *   operators                  MAX, MIN, SM (sum mod 10), MED (median; of an even number of arguments the mean of the
 *                              middle two, rounded down)
 *   accepted                   min_length < tokens < max_length, both strict; about 8% of the roots
 *
 *   [MAX 3 [MIN 4 1 ] 0 ] -> 3        every token before the eos is one of the 15 symbols
 *
 * Nangia and Bowman 2018, in the distribution of Tay et al. 2021 (google-research/long-range-arena), which rejects
 * duplicates. Nothing is looked up here: an expression of more than 500 tokens takes over 1600 random bits, so 100 000
 * of them repeat with a probability below 1e-400. Settings with short expressions do repeat, across splits as well.
 * file=DIR reads the released files instead. */
#include <stdio.h>
#include <string.h>

#include "tasks/examples.h"
#include "tasks/language/listops_operation.h"
#include "tasks/language/listops_tsv.h"

#define MAX_DEPTH    32
#define MAX_TOKENS   65536
#define PROBE_HITS   10      /* open must accept this many expressions .. */
#define PROBE_TOKENS 4000000 /* .. within this many tokens: an example takes a few milliseconds at most */

struct listops {
    char file[OPTION_TEXT], content[OPTION_TEXT];
    int64_t depth, arity, min_length, max_length;
    int64_t wanted[SPLIT_COUNT]; /* 0 = auto */

    /* made by open */
    int64_t examples[SPLIT_COUNT];
    struct listops_rows released[SPLIT_COUNT]; /* with file= */
    uint64_t seed;
};

static const struct option options[] = {
    {"file", OPT_TEXT_FIELD, offsetof(struct listops, file), "", 0, 0, NULL,
     "folder of the released basic_train.tsv, basic_val.tsv and basic_test.tsv; none: generated", OPT_HERE},
    {"content", OPT_TEXT_FIELD, offsetof(struct listops, content), "", 0, 0, NULL,
     "XXH3-128 that the three files together have to have; found by itself, and part of what a run is", OPT_FOUND},
    {"min_length", OPT_INT, offsetof(struct listops, min_length), "500", 0, MAX_TOKENS, NULL,
     "generated expressions have more tokens", OPT_AXIS},
    {"max_length", OPT_INT, offsetof(struct listops, max_length), "2000", 2, MAX_TOKENS, NULL,
     "expressions have fewer tokens", OPT_AXIS},
    {"depth", OPT_INT, offsetof(struct listops, depth), "10", 2, MAX_DEPTH, NULL,
     "levels of a generated expression, digits included", OPT_AXIS},
    {"arity", OPT_INT, offsetof(struct listops, arity), "10", 2, 1000, NULL, "most arguments of a generated operator",
     OPT_AXIS},
    {"n_train", OPT_INT, offsetof(struct listops, wanted[SPLIT_TRAIN]), "auto", 1, 1e12, NULL,
     "training expressions; auto = 96000, or all of the file", OPT_AUTO | OPT_AXIS},
    {"n_val", OPT_INT, offsetof(struct listops, wanted[SPLIT_VAL]), "auto", 1, 1e9, NULL,
     "validation expressions; auto = 2000, or all of the file", OPT_AUTO},
    {"n_test", OPT_INT, offsetof(struct listops, wanted[SPLIT_TEST]), "auto", 1, 1e9, NULL,
     "test expressions; auto = 2000, or all of the file", OPT_AUTO},
    {0},
};

/* --- expressions -------------------------------------------------------------------------------------------------- */

/* A tree that is being written, in the order of its tokens. */
struct growth {
    int64_t n;    /* tokens written */
    int64_t owed; /* least number of tokens to follow: a digit for each missing argument, ']' for each open operator */
    int level;    /* open operators */
    struct operation open[MAX_DEPTH];
    int64_t missing[MAX_DEPTH]; /* arguments of them that have not begun */
};

static void open_operator(struct growth *g, const struct listops *w, struct rng *r, int32_t *tokens) {
    int32_t name = LISTOPS_MAX + (int32_t)rng_below(r, 4);
    int64_t arguments = 2 + (int64_t)rng_below(r, (uint64_t)(w->arity - 1));
    tokens[g->n++] = name;
    g->owed += arguments + 1;
    g->missing[g->level] = arguments;
    operation_start(&g->open[g->level++], name);
}

/* Gives a value to the innermost operator and closes the operators that it completes. Returns the value of the last one
 * closed. */
static int32_t hand_up(struct growth *g, int32_t value, int32_t *tokens) {
    while (g->level > 0) {
        struct operation *o = &g->open[g->level - 1];
        operation_add(o, value);
        if (g->missing[g->level - 1] > 0) return value;
        value = operation_value(o);
        tokens[g->n++] = LISTOPS_CLOSE;
        g->owed--;
        g->level--;
    }
    return value;
}

/* Draws one tree. Returns the number of its tokens, below max_length, and its value; or 0 as soon as it must become
 * longer. Nothing is written after tokens[max_length - 2]. *drawn grows by the tokens written. */
static int64_t grow(const struct listops *w, struct rng *r, int32_t *tokens, int32_t *value, int64_t *drawn) {
    struct growth g;
    g.n = 0;
    g.level = 0;
    g.owed = 1;
    do {
        if (g.n + g.owed >= w->max_length) break;
        g.owed--;
        if (g.level > 0) g.missing[g.level - 1]--;
        if (g.level + 1 < w->depth && rng_below(r, 4) == 0) {
            open_operator(&g, w, r, tokens);
            continue;
        }
        int32_t digit = (int32_t)rng_below(r, 10);
        tokens[g.n++] = LISTOPS_DIGIT + digit;
        *value = hand_up(&g, digit, tokens);
    } while (g.level > 0);
    *drawn += g.n;
    return g.owed == 0 ? g.n : 0;
}

/* Draws the trees of one stream, one after the other, until one is accepted. */
static int64_t draw_expression(const struct listops *w, struct rng *r, int32_t *tokens, int32_t *value) {
    int64_t n, drawn = 0;
    do n = grow(w, r, tokens, value, &drawn);
    while (n == 0 || n <= w->min_length);
    return n;
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* Checks that rejection finds expressions of these lengths often enough. */
static enum status check_lengths(const struct listops *w, struct arena *host, struct error *e) {
    if (w->max_length < w->min_length + 2)
        return fail(e, ST_USAGE,
                    "listops: no length is more than min_length=%lld and less than max_length=%lld; expected a "
                    "difference of at least 2",
                    (long long)w->min_length, (long long)w->max_length);
    size_t mark = arena_mark(host);
    int32_t *tokens = arena_alloc(host, (size_t)w->max_length * sizeof *tokens);
    if (!tokens)
        return fail(e, ST_MEMORY, "listops: no room for an expression of max_length=%lld tokens",
                    (long long)w->max_length);
    struct rng r = rng_at(0, STREAM_TABLE, 0);
    int64_t drawn = 0, trees = 0, hits = 0;
    int32_t value;
    while (hits < PROBE_HITS && drawn < PROBE_TOKENS) {
        int64_t n = grow(w, &r, tokens, &value, &drawn);
        trees++;
        hits += n > w->min_length;
    }
    arena_release(host, mark);
    if (hits == PROBE_HITS) return ST_OK;
    return fail(e, ST_USAGE,
                "listops: of %lld random expressions with depth=%lld and arity=%lld only %lld have more than "
                "min_length=%lld and fewer than max_length=%lld tokens; change one of the four",
                (long long)trees, (long long)w->depth, (long long)w->arity, (long long)hits, (long long)w->min_length,
                (long long)w->max_length);
}

static const char *const split_names[SPLIT_COUNT] = {"train", "val", "test"};

static enum status open_generated(struct listops *w, struct arena *host, struct error *e) {
    static const int64_t standard[SPLIT_COUNT] = {96000, 2000, 2000};
    for (int split = 0; split < SPLIT_COUNT; split++)
        w->examples[split] = w->wanted[split] ? w->wanted[split] : standard[split];
    return check_lengths(w, host, e);
}

static enum status open_file(struct listops *w, int split, XXH3_state_t *content, struct arena *host, struct error *e) {
    char path[OPTION_TEXT + 32];
    snprintf(path, sizeof path, "%s/basic_%s.tsv", w->file, split_names[split]);
    struct listops_rows *rows = &w->released[split];
    TRY(listops_tsv_read(rows, path, w->max_length, host, content, e));
    w->examples[split] = w->wanted[split] ? w->wanted[split] : rows->n;
    if (w->examples[split] <= rows->n) return ST_OK;
    return fail(e, ST_USAGE, "listops: n_%s=%lld, but %s holds only %lld expressions", split_names[split],
                (long long)w->wanted[split], path, (long long)rows->n);
}

/* Hashes the files into the run's identity, so their place does not matter. */
static enum status check_content(struct listops *w, XXH3_state_t *content, struct error *e) {
    char hex[33];
    XXH128_hash_t hash = XXH3_128bits_digest(content);
    snprintf(hex, sizeof hex, "%016llx%016llx", (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    if (w->content[0] && strcmp(w->content, hex) != 0)
        return fail(
            e, ST_DATA,
            "listops: the XXH3-128 of the three files in %s is %s, expected content=%.40s: they are other files",
            w->file, hex, w->content);
    memcpy(w->content, hex, sizeof hex);
    return ST_OK;
}

static enum status open_files(struct listops *w, struct arena *host, struct error *e) {
    XXH3_state_t *content = XXH3_createState();
    if (!content) return fail(e, ST_MEMORY, "listops: no memory to read %s", w->file);
    XXH3_128bits_reset(content);
    enum status status = ST_OK;
    for (int split = 0; split < SPLIT_COUNT && status == ST_OK; split++) status = open_file(w, split, content, host, e);
    if (status == ST_OK) status = check_content(w, content, e);
    XXH3_freeState(content);
    return status;
}

/* Refuses options of drawing together with files: they would have no effect, but be part of the run's identity. */
static enum status check_released(const struct listops *w, struct error *e) {
    static const char *const drawn[] = {"min_length", "depth", "arity"};
    for (size_t i = 0; i < sizeof drawn / sizeof *drawn; i++) {
        const struct option *o = option_find(options, drawn[i]);
        char value[OPTION_TEXT + 1];
        option_format_value(o, w, value, sizeof value);
        if (strcmp(value, o->value) != 0)
            return fail(e, ST_USAGE, "listops: %s=%s is of generated expressions; with file= leave it out", drawn[i],
                        value);
    }
    return ST_OK;
}

static enum status listops_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct listops *w = inst;
    w->seed = seed;
    if (w->file[0]) TRY(check_released(w, e));
    if (w->file[0]) return open_files(w, host, e);
    if (w->content[0])
        return fail(e, ST_DATA,
                    "listops: content=%.40s names files, and no folder is given; name the one that holds them with "
                    "file=FOLDER",
                    w->content);
    return open_generated(w, host, e);
}

/* --- the task ----------------------------------------------------------------------------------------------------- */

/* The trivial answer is the commonest label: 0 and 9, which MIN and MAX make, have .17 each at the standard lengths,
 * and at 20 to 100 tokens 9 has .16 (`lrnn data stats`). */
static void listops_shape(const void *inst, struct task_shape *out) {
    const struct listops *w = inst;
    out->T = w->max_length; /* one token fewer, and the eos */
    out->unequal_test = true;
    out->vocab_in = LISTOPS_VOCAB;
    out->vocab_out = 10;
    out->per_sequence = true;
    out->needs_causal = false;
    memcpy(out->examples, w->examples, sizeof out->examples);
    out->chance = 0.1;
    out->floor = 0.17;
    out->solved = 0.99;
    out->metric = METRIC_ACC;
}

static void listops_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct listops *w = inst;
    int64_t n;
    if (w->file[0]) {
        const struct listops_row *row = w->released[split].row[index];
        n = row->length;
        for (int64_t t = 0; t < n; t++) x->tokens[t] = row->tokens[t];
        x->targets[0] = row->label;
    } else {
        struct rng r = example_rng(w->seed, split, index);
        n = draw_expression(w, &r, x->tokens, &x->targets[0]);
    }
    x->tokens[n++] = LISTOPS_EOS;
    x->length = (int32_t)n;
    for (; n < w->max_length; n++) x->tokens[n] = LISTOPS_PAD;
}

_Static_assert(sizeof(struct listops) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_listops = {
    .name = "listops",
    .summary = "value of a nested expression of MAX, MIN, MED and SM over digits (Long Range Arena, Tay et al. 2021)",
    .suite = "lra",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct listops),
    .open = listops_open,
    .shape = listops_shape,
    .fill = listops_fill,
};
