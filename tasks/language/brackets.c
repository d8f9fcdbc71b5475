/* brackets.c - are the brackets of a long text balanced? A stand-in of our own for the Long Range Arena's text
 * classification, never reported as it.
 *
 *   balanced     a word of brackets of four kinds, uniform among the words with at most `depth` open brackets (up to
 *                that bound: P(open | o open, r to come) = (o + 2) (r - o) / (2 r (o + 1))), kinds uniform
 *   unbalanced   a balanced word with one bracket replaced by another one of the eight (error=one: counts of each kind
 *                give it away), or with two neighbouring closing brackets of different kinds exchanged (error=swap:
 *                only their order gives it away, because balanced texts without two such brackets are left out too)
 *   text         length uniform in min_length..max_length, a share of its characters brackets at random places, the
 *                others letters, uniform; then an end mark
 *
 * The floor is the accuracy of an answer from neighbouring brackets only: a text is called unbalanced if an opening
 * bracket is closed at once by another kind, if the text begins with a closing bracket, or if it ends with an opening
 * bracket.
 *
 * Label 1: balanced, by a fair coin. Ids: 0 padding, 1 end, then ( ) [ ] { } < >, then 26 letters. */
#include <string.h>

#include "tasks/examples.h"

#define MAX_LENGTH 65536
#define MAX_DEPTH  256

enum { PAD, END, FIRST_BRACKET, FIRST_LETTER = FIRST_BRACKET + 8, VOCAB = FIRST_LETTER + 26 };
enum { ERROR_ONE, ERROR_SWAP };

struct brackets {
    int64_t min_length, max_length, depth;
    double share;
    int error;
    int64_t examples[SPLIT_COUNT];
    uint64_t seed;
    double floor;
};

static const struct option options[] = {
    {"min_length", OPT_INT, offsetof(struct brackets, min_length), "1000", 8, MAX_LENGTH, NULL,
     "characters of a text at least", OPT_AXIS},
    {"max_length", OPT_INT, offsetof(struct brackets, max_length), "4000", 8, MAX_LENGTH, NULL,
     "characters of a text at most", OPT_AXIS},
    {"depth", OPT_INT, offsetof(struct brackets, depth), "16", 2, MAX_DEPTH, NULL, "brackets that are open at most",
     OPT_AXIS},
    {"share", OPT_REAL, offsetof(struct brackets, share), "0.2", 0.05, 1, NULL, "of the characters that are brackets",
     OPT_AXIS},
    {"error", OPT_CHOICE, offsetof(struct brackets, error), "one", 0, 0, "one swap",
     "what makes a text unbalanced: one other bracket, two exchanged", OPT_AXIS},
    EXAMPLES_OPTIONS(struct brackets, examples, "25000", "2500", "25000", "texts"),
    {0},
};

/* --- texts -------------------------------------------------------------------------------------------------------- */

static int32_t bracket_id(int kind, bool closing) {
    return FIRST_BRACKET + 2 * kind + closing;
}

/* Draws a bracket that opens, or closes the innermost open one, with `left` to come, including this one. */
static int32_t next_bracket(const struct brackets *w, struct rng *r, uint8_t *open, int64_t *n, int64_t left) {
    double up = (double)(*n + 2) * (double)(left - *n) / (2 * (double)left * (double)(*n + 1));
    bool opens = *n < w->depth && rng_uniform(r) < up;
    if (!opens && *n > 0) return bracket_id(open[--*n], true); /* if none is open, `up` is 1 */
    open[*n] = (uint8_t)rng_below(r, 4);
    return bracket_id(open[(*n)++], false);
}

/* Number of brackets in a text of that length, even and at least four. */
static int64_t brackets_of(const struct brackets *w, int64_t length) {
    int64_t pairs = (int64_t)(w->share * (double)length / 2 + 0.5);
    if (pairs < 2) pairs = 2;
    return 2 * pairs < length ? 2 * pairs : length / 2 * 2;
}

/* Writes the text and returns its number of brackets. A place becomes a bracket with probability (brackets left /
 * places left), so all choices of places are equally likely. */
static int64_t write_balanced(const struct brackets *w, struct rng *r, int64_t length, int32_t *tokens) {
    uint8_t open[MAX_DEPTH];
    int64_t total = brackets_of(w, length), left = total, n = 0;
    for (int64_t t = 0; t < length; t++)
        if (rng_below(r, (uint64_t)(length - t)) < (uint64_t)left)
            tokens[t] = next_bracket(w, r, open, &n, left--);
        else
            tokens[t] = FIRST_LETTER + (int32_t)rng_below(r, 26);
    return total;
}

static bool is_bracket(int32_t id) {
    return id >= FIRST_BRACKET && id < FIRST_LETTER;
}

static void replace_one(struct rng *r, int64_t brackets, int64_t length, int32_t *tokens) {
    int64_t which = (int64_t)rng_below(r, (uint64_t)brackets);
    int32_t other = 1 + (int32_t)rng_below(r, 7);
    for (int64_t t = 0; t < length; t++)
        if (is_bracket(tokens[t]) && which-- == 0) {
            tokens[t] = FIRST_BRACKET + (tokens[t] - FIRST_BRACKET + other) % 8;
            return;
        }
}

/* Finds the places of two closing brackets of different kinds with no bracket between them: pair number *which, while
 * *which counts down. */
static bool find_swap(const int32_t *tokens, int64_t length, int64_t *which, int64_t at[2]) {
    int64_t before = -1;
    for (int64_t t = 0; t < length; t++) {
        if (!is_bracket(tokens[t])) continue;
        bool both = before >= 0 && (tokens[before] - FIRST_BRACKET) % 2 && (tokens[t] - FIRST_BRACKET) % 2;
        if (both && tokens[before] != tokens[t] && (*which)-- == 0) {
            at[0] = before, at[1] = t;
            return true;
        }
        before = t;
    }
    return false;
}

/* Number of such pairs. */
static int64_t count_swaps(const int32_t *tokens, int64_t length) {
    int64_t at[2], all = MAX_LENGTH;
    find_swap(tokens, length, &all, at);
    return MAX_LENGTH - all;
}

static void swap_two(struct rng *r, int64_t pairs, int64_t length, int32_t *tokens) {
    int64_t at[2] = {0, 0}, which = (int64_t)rng_below(r, (uint64_t)pairs);
    find_swap(tokens, length, &which, at);
    int32_t kept = tokens[at[0]];
    tokens[at[0]] = tokens[at[1]];
    tokens[at[1]] = kept;
}

/* --- what two neighbours tell ------------------------------------------------------------------------------------- */

#define FLOOR_TEXTS    400
#define FLOOR_BRACKETS ((int64_t)1 << 16) /* long texts need fewer */

static bool closes(int32_t id) {
    return (id - FIRST_BRACKET) % 2;
}

/* Whether no balanced text has these two brackets in a row (0 is the end of the text). */
static bool is_wrong(int32_t first, int32_t second) {
    if (!first) return closes(second);
    if (!second) return !closes(first);
    return !closes(first) && closes(second) && second != first + 1;
}

/* Counts the brackets, out of the seven that may replace the middle one, that a neighbour gives away. */
static int wrong_ones(const int32_t at[3]) {
    int wrong = 0;
    for (int32_t id = FIRST_BRACKET; id < FIRST_LETTER; id++)
        wrong += id != at[1] && (is_wrong(at[0], id) || is_wrong(id, at[2]));
    return wrong;
}

/* Adds a text, and the share of its possible errors that two neighbours give away. Exchanged closing brackets are given
 * away if they follow an opening bracket. Returns its number of brackets. */
static int64_t count_ways(const struct brackets *w, struct rng *r, double *texts, double *seen) {
    int64_t total = brackets_of(w, draw_length(r, w->min_length, w->max_length)), left = total, n = 0;
    int64_t pairs = 0, wrong = 0;
    uint8_t open[MAX_DEPTH];
    int32_t at[3] = {0, 0, next_bracket(w, r, open, &n, left--)};
    for (int64_t i = 0; i < total; i++) {
        at[0] = at[1], at[1] = at[2];
        at[2] = left ? next_bracket(w, r, open, &n, left--) : 0;
        bool pair = at[2] && closes(at[1]) && closes(at[2]) && at[1] != at[2];
        pairs += w->error == ERROR_SWAP ? pair : 7;
        wrong += w->error == ERROR_SWAP ? pair && at[0] && !closes(at[0]) : wrong_ones(at);
    }
    *texts += pairs > 0;
    if (pairs) *seen += (double)wrong / (double)pairs;
    return total;
}

/* The floor: a balanced text is never called unbalanced, so only errors that neighbours give away count. */
static double floor_of(const struct brackets *w) {
    double texts = 0, seen = 0;
    for (int64_t i = 0, drawn = 0; i < FLOOR_TEXTS && drawn < FLOOR_BRACKETS; i++) {
        struct rng r = rng_at(0, STREAM_TABLE, (uint64_t)i);
        drawn += count_ways(w, &r, &texts, &seen);
    }
    return texts > 0 ? 0.5 + 0.5 * seen / texts : 0.5;
}

/* --- the task ----------------------------------------------------------------------------------------------------- */

static enum status brackets_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct brackets *w = inst;
    (void)host;
    w->seed = seed;
    TRY(check_length_range("brackets", w->min_length, w->max_length, e));
    w->floor = floor_of(w);
    return ST_OK;
}

static void brackets_shape(const void *inst, struct task_shape *out) {
    const struct brackets *w = inst;
    shape_of_labels(out, w->max_length + 1, 2); /* the end mark */
    out->floor = w->floor;
    out->unequal_test = w->min_length < w->max_length;
    out->vocab_in = VOCAB;
    if (w->error == ERROR_SWAP) out->version = 2; /* 1: a text without two brackets to exchange counted as balanced */
    memcpy(out->examples, w->examples, sizeof out->examples);
}

static void brackets_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct brackets *w = inst;
    struct rng r = example_rng(w->seed, split, index);
    int64_t length = draw_length(&r, w->min_length, w->max_length);
    int32_t label = (int32_t)rng_below(&r, 2);
    int64_t brackets = write_balanced(w, &r, length, x->tokens), pairs = 0;
    while (w->error == ERROR_SWAP && (pairs = count_swaps(x->tokens, length)) == 0)
        write_balanced(w, &r, length, x->tokens);
    if (!label && w->error == ERROR_ONE) replace_one(&r, brackets, length, x->tokens);
    if (!label && w->error == ERROR_SWAP) swap_two(&r, pairs, length, x->tokens);
    x->targets[0] = label;
    x->tokens[length] = END;
    x->length = (int32_t)length + 1;
    for (int64_t t = length + 1; t <= w->max_length; t++) x->tokens[t] = PAD;
}

_Static_assert(sizeof(struct brackets) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_brackets = {
    .name = "brackets",
    .summary = "are the brackets of a long text balanced? (this project)",
    .suite = "text",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct brackets),
    .open = brackets_open,
    .shape = brackets_shape,
    .fill = brackets_fill,
};
