/* regbench.c - in-context language learning: strings of a random automaton of the example's own; what must come next?
 *
 * After Akyurek et al. 2024, "In-context language learning: architectures and algorithms"; `about` says how the
 * automata of their code (berlino/seq_icl) differ. Each example has its own automaton with min_states..max_states
 * states and as many symbols, drawn out of all. A state has 1..max_edges edges (at most one for each symbol) to any
 * states; if it has only one, this leads to another state, so no word gets stuck. A word is a walk of 1..max_word
 * symbols from state 0, along edges that are equally likely; a separator follows. The string has as many words as fill
 * the length, the last one cut.
 *
 * Training learns to predict every next id. The source scores whether a prediction is allowed, which one target a
 * position cannot express. Scored here are the positions where only one id is allowed and the string has shown it: the
 * state has a single edge and has been left before. An automaton whose string has no such place is drawn again. */
#include <string.h>

#include "tasks/examples.h"

#define MAX_STATES  32
#define MAX_SYMBOLS 256

struct regbench {
    int64_t symbols, min_states, max_states, max_edges, max_word, length, examples[SPLIT_COUNT];
    char test_length[OPTION_TEXT];
    uint64_t seed; /* set by open */
};

struct automaton {
    int32_t states, edges[MAX_STATES];                                  /* out of each state */
    int32_t symbol[MAX_STATES][MAX_STATES], to[MAX_STATES][MAX_STATES]; /* of edge e out of state s, [s][e] */
};

static const struct option options[] = {
    {"symbols", OPT_INT, offsetof(struct regbench, symbols), "18", 2, MAX_SYMBOLS, NULL,
     "symbols, out of which an automaton's alphabet is drawn", OPT_AXIS},
    {"min_states", OPT_INT, offsetof(struct regbench, min_states), "4", 2, MAX_STATES, NULL, "states of the smallest",
     OPT_AXIS},
    {"max_states", OPT_INT, offsetof(struct regbench, max_states), "12", 2, MAX_STATES, NULL,
     "states of the largest automaton", OPT_AXIS},
    {"max_edges", OPT_INT, offsetof(struct regbench, max_edges), "4", 1, MAX_STATES, NULL,
     "edges out of a state, at most", OPT_AXIS},
    {"max_word", OPT_INT, offsetof(struct regbench, max_word), "50", 1, 4096, NULL, "symbols of a word, at most",
     OPT_AXIS},
    {"length", OPT_INT, offsetof(struct regbench, length), "512", 8, 16384, NULL, "ids of a string",
     OPT_AXIS | OPT_LENGTH | OPT_TESTED},
    EXAMPLES_OPTIONS(struct regbench, examples, "5000", "500", "500", "automata"),
    TEST_LENGTH_OPTION(struct regbench, test_length),
    {0},
};

static enum status regbench_open(void *inst, uint64_t seed, struct arena *host, struct error *e) {
    struct regbench *b = inst;
    (void)host;
    b->seed = seed;
    if (b->max_states < b->min_states)
        return fail(e, ST_USAGE, "regbench: min_states=%lld is more than max_states=%lld", (long long)b->min_states,
                    (long long)b->max_states);
    if (b->max_states <= b->symbols) return ST_OK;
    return fail(e, ST_USAGE, "regbench: symbols=%lld are too few for the alphabet of max_states=%lld states",
                (long long)b->symbols, (long long)b->max_states);
}

/* Chance is one of the symbols. A better trivial answer looks up what followed the newest id the last time; a count
 * over 20 000 test strings gives this floor. */
static void regbench_shape(const void *inst, struct task_shape *out) {
    const struct regbench *b = inst;
    out->T = b->length - 1;
    out->vocab_in = out->vocab_out = b->symbols + 1;
    out->needs_causal = true;
    memcpy(out->examples, b->examples, sizeof out->examples);
    out->chance = 1.0 / (double)b->symbols;
    out->floor = 0.65;
    out->solved = 0.99;
    out->metric = METRIC_ACC;
}

/* Puts the first `count` of a random order of items[0..n) to the front. */
static void shuffle(struct rng *r, int32_t *items, int32_t n, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        int32_t j = i + (int32_t)rng_below(r, (uint64_t)(n - i)), swapped = items[i];
        items[i] = items[j];
        items[j] = swapped;
    }
}

static void draw_automaton(const struct regbench *b, struct rng *r, struct automaton *a) {
    int32_t all[MAX_SYMBOLS];
    int32_t n = a->states = (int32_t)draw_length(r, b->min_states, b->max_states);
    int32_t most = n < b->max_edges ? n : (int32_t)b->max_edges;
    for (int32_t i = 0; i < b->symbols; i++) all[i] = i;
    shuffle(r, all, (int32_t)b->symbols, n); /* from here on the alphabet is all[0..n) */
    for (int32_t s = 0; s < n; s++) {
        a->edges[s] = 1 + (int32_t)rng_below(r, (uint64_t)most);
        shuffle(r, all, n, a->edges[s]);
        for (int32_t e = 0; e < a->edges[s]; e++) {
            a->symbol[s][e] = all[e];
            a->to[s][e] = (int32_t)rng_below(r, (uint64_t)n);
            if (a->edges[s] == 1) a->to[s][e] = (s + 1 + (int32_t)rng_below(r, (uint64_t)n - 1)) % n;
        }
    }
}

/* Writes words until the string is full. Returns the number of positions whose answer is known from the string. */
static int64_t write_words(const struct regbench *b, struct rng *r, const struct automaton *a, bool training,
                           struct example *x) {
    bool left[MAX_STATES] = {false};
    int32_t state = 0, separator = (int32_t)b->symbols;
    int64_t end = draw_length(r, 1, b->max_word), scored = 0;
    for (int64_t t = 0; t < b->length; t++) {
        bool word = t < end;
        int32_t edge = word ? (int32_t)rng_below(r, (uint64_t)a->edges[state]) : 0;
        int32_t id = word ? a->symbol[state][edge] : separator;
        bool known = word && a->edges[state] == 1 && left[state];
        if (t < b->length - 1) x->tokens[t] = id;
        if (t > 0) x->targets[t - 1] = known || training ? id : IGNORED;
        scored += known;
        if (word) {
            left[state] = true;
            state = a->to[state][edge];
        } else {
            state = 0;
            end = t + 1 + draw_length(r, 1, b->max_word);
        }
    }
    return scored;
}

static void regbench_fill(const void *inst, enum split split, int64_t index, struct example *x) {
    const struct regbench *b = inst;
    struct rng r = example_rng(b->seed, split, index);
    struct automaton a;
    do draw_automaton(b, &r, &a);
    while (write_words(b, &r, &a, split == SPLIT_TRAIN, x) == 0);
    x->length = (int32_t)(b->length - 1);
}

_Static_assert(sizeof(struct regbench) <= TASK_INST_BYTES, "the instance must fit its slot");

const struct task task_regbench = {
    .name = "regbench",
    .summary = "words of a random automaton: what must come next? in-context learning (Akyurek et al. 2024)",
    .suite = "regbench",
    .about =
        "Each string has words of an automaton of its own with 4 to 12 states; 5000 automata to train on.\n"
        "Scored is the one symbol that may follow where a state has one edge and has been left before; a net that\n"
        "copies what followed the newest symbol when it was last seen is right on 0.65 of them. Chance is one in\n"
        "the symbols.\n"
        "Akyurek et al. 2024 (arXiv 2401.12973) find transformers well above recurrent and convolutional nets, by\n"
        "heads that look n-grams up. They count predictions that the automaton allows, so none of their numbers\n"
        "is quoted. Their code (berlino/seq_icl) draws 10 to 19 words, 1 to 3 edges to different states other\n"
        "than a state's own, and an alphabet of 4 to 18 symbols.",
    .version = 1,
    .options = options,
    .inst_bytes = sizeof(struct regbench),
    .open = regbench_open,
    .shape = regbench_shape,
    .fill = regbench_fill,
};
