/* check_recall.c - examples of in-context, noisy and fuzzy recall and of MQAR, and how often what occurs in them
 * (athms/mad-lab, mad/data/instances.py; HazyResearch/zoology, zoology/data/multiquery_ar.py). */
#include <math.h>
#include <string.h>

#include "tests/tasks/mad/mad_view.h"

/* --- counts ------------------------------------------------------------------------------------------------------- */

struct moments {
    double sum, squares;
    int64_t n;
};

static void add_moment(struct moments *m, double value) {
    m->sum += value;
    m->squares += value * value;
    m->n++;
}

static void check_mean(const char *what, const struct moments *m, double expected, double rounding) {
    double mean = m->sum / (double)m->n, variance = m->squares / (double)m->n - mean * mean;
    double sigma = sqrt(variance / (double)m->n);
    ck_assert_msg(fabs(mean - expected) <= 3 * sigma + rounding, "%s: mean %g, expected %g, sigma %g", what, mean,
                  expected, sigma);
}

/* --- in-context recall -------------------------------------------------------------------------------------------- */

struct recall_case {
    const char *text;
    int keys, values, noise;
    double share;
    bool single;
};

struct recall_counts {
    int64_t key[64], value[64], noise[64],
        final[64];                               /* final: when the final key was first shown, of complete strings */
    int64_t pairs, first_pairs, noisy, complete; /* complete: strings that show all keys */
    struct moments scored;
};

/* One string: slots of two ids, then the final key, whose value is a target only. Returns the scored positions. */
static int check_recall_string(const struct view *v, const struct recall_case *c, bool training,
                               struct recall_counts *n) {
    const int32_t *x = v->x.tokens, *y = v->x.targets;
    int32_t value_of[64] = {0}, rank[64] = {0}, M = c->keys + c->values;
    int64_t last = v->s->T - 1, slots_end = c->single ? last - 1 : last;
    int scored = 0, shown = 0;
    for (int64_t t = 0; t < slots_end; t += 2) {
        if (x[t] >= M) {
            require(v, x[t] < M + c->noise && M <= x[t + 1] && x[t + 1] < M + c->noise, "noise is not two noise ids");
            require(v, training || (y[t] == IGNORED && y[t + 1] == IGNORED), "noise is scored");
            n->noise[x[t] - M]++;
            n->noise[x[t + 1] - M]++;
            n->noisy++;
            continue;
        }
        require(v, x[t] < c->keys && c->keys <= x[t + 1] && x[t + 1] < M, "no pair of key and value");
        require(v, !value_of[x[t]] || value_of[x[t]] == x[t + 1], "a key has two values");
        bool asked = value_of[x[t]] && !c->single;
        require(v, training || y[t] == (asked ? x[t + 1] : IGNORED), "a key shown before is not what is scored");
        require(v, training || y[t + 1] == IGNORED, "a value predicts something");
        n->key[x[t]]++;
        n->pairs++;
        scored += asked;
        if (!value_of[x[t]]) {
            n->value[x[t + 1] - c->keys]++;
            n->first_pairs++;
            rank[x[t]] = shown++;
        }
        value_of[x[t]] = x[t + 1];
    }
    require(v, !c->single || (x[last - 1] == v->s->vocab_in - 1 && (training || y[last - 1] == IGNORED)), "the marker");
    require(v, x[last] < c->keys && value_of[x[last]] && y[last] == value_of[x[last]], "the final key is not answered");
    for (int64_t t = 0; training && t < last; t++) require(v, y[t] == x[t + 1], "a target is not the next token");
    if (shown == c->keys) {
        n->final[rank[x[last]]]++;
        n->complete++;
    }
    return scored + 1;
}

/* Mean scored positions of a string of P slots with k keys and noise f: those that hold a pair, less one for each key
 * that is shown, plus the final one. One of the P slots, the unused last one included, is protected from noise. */
static double expected_scored(int P, int k, double f) {
    double noisy_slot = 1 - (1 - f) / k, sure_slot = 1 - 1.0 / k, protected = (P - 1.0) / P;
    double missing = pow(noisy_slot, P - 2) * (protected * sure_slot + (1 - protected) * noisy_slot);
    double pairs = (P - 2) * (1 - f) + protected + (1 - protected) * (1 - f);
    return pairs - k * (1 - missing) + 1;
}

static void check_strings(const struct recall_case *c, enum split split, int64_t n, double table) {
    struct view v;
    struct recall_counts counts = {.pairs = 0};
    view_open(&v, c->text, 4);
    int P = (int)(v.s->T + 1) / 2;
    ck_assert_int_eq(v.s->vocab_in, c->keys + c->values + c->noise + c->single);
    for (int64_t i = 0; i < n; i++) {
        view_fill(&v, split, i);
        add_moment(&counts.scored, check_recall_string(&v, c, split == SPLIT_TRAIN, &counts));
    }
    check_uniform("keys", counts.key, c->keys, counts.pairs);
    check_uniform("values", counts.value, c->values, counts.first_pairs);
    if (counts.complete > 1000) check_uniform("final keys", counts.final, c->keys, counts.complete);
    if (c->noise) check_uniform("noise", counts.noise, c->noise, 2 * counts.noisy);
    /* (P-1)/P of the P - 1 slots are protected on average. */
    if (c->noise) check_share(c->text, counts.noisy, n * (P - 1), c->share * (1 - 1.0 / P), 0);
    if (!c->single) check_mean(c->text, &counts.scored, expected_scored(P, c->keys, c->share), 0);
    if (table > 0) check_mean(c->text, &counts.scored, table, 0.05);
    view_close(&v);
}

START_TEST(recall_asks_for_values_of_keys_shown_before) {
    static const struct recall_case base = {"in-context-recall:n_test=5000", 8, 8, 0, 0, false};
    static const struct recall_case hlru = {"hlru-recall:n_test=5000", 8, 8, 0, 0, false};
    static const struct recall_case v32 = {"hlru-recall:vocab=32,n_test=5000", 16, 16, 0, 0, false};
    static const struct recall_case v64 = {"in-context-recall:vocab=64,n_test=5000", 32, 32, 0, 0, false};
    static const struct recall_case noisy = {"noisy-recall:n_test=5000", 8, 8, 16, 0.2, false};
    static const struct recall_case loud = {"noisy-recall:noise=0.8,n_test=5000", 8, 8, 16, 0.8, false};
    static const struct recall_case single = {"in-context-recall:query=single", 7, 8, 0, 0, true};
    static const struct recall_case both = {"noisy-recall:query=single,vocab=48", 15, 16, 16, 0.2, true};
    check_strings(&base, SPLIT_TEST, 5000, 56.0);
    check_strings(&hlru, SPLIT_TEST, 5000, 24.1);
    check_strings(&v32, SPLIT_TEST, 5000, 18.2);
    check_strings(&v64, SPLIT_TEST, 5000, 36.3);
    check_strings(&noisy, SPLIT_TEST, 5000, 43.6);
    check_strings(&loud, SPLIT_TEST, 5000, 0);
    check_strings(&base, SPLIT_TRAIN, 5000, 0);
    check_strings(&noisy, SPLIT_TRAIN, 5000, 0);
    check_strings(&base, SPLIT_VAL, 1280, 0);
    check_strings(&single, SPLIT_TEST, 1280, 1);
    check_strings(&single, SPLIT_TRAIN, 1280, 0);
    check_strings(&both, SPLIT_VAL, 1280, 1);
    check_strings(&both, SPLIT_TRAIN, 1280, 0);
}
END_TEST

/* However much noise, and whichever slot is protected from it, the final key was shown. */
START_TEST(noise_leaves_a_pair_to_ask_for) {
    static const struct recall_case cases[] = {
        {"in-context-recall:length=4,vocab=6,noise_vocab=2,noise=0.95", 2, 2, 2, 0.95, false},
        {"in-context-recall:length=8,vocab=7,noise_vocab=2,noise=0.95,query=single", 2, 2, 2, 0.95, true}};
    for (int i = 0; i < 2; i++)
        for (int split = 0; split < SPLIT_COUNT; split++) {
            struct view v;
            struct recall_counts counts = {.pairs = 0};
            view_open(&v, cases[i].text, 4);
            for (int64_t k = 0; k < 1000; k++) {
                view_fill(&v, (enum split)split, k);
                check_recall_string(&v, &cases[i], split == SPLIT_TRAIN, &counts);
            }
            view_close(&v);
        }
}
END_TEST

/* --- fuzzy recall ------------------------------------------------------------------------------------------------- */

struct fuzzy_case {
    const char *text;
    int keys, values, noise, key_motif, value_motif;
    bool single;
};

/* A key and its value in the string x. */
struct fuzzy_pair {
    int at, key_size, value_size;
};

static bool distinct(const int32_t *ids, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            if (ids[i] == ids[j]) return false;
    return true;
}

/* Reads the string after its pads and checks it; `string` has room for T + 1. Returns the number of pairs, with the
 * final one, and whether that one was shown before. */
static int read_fuzzy(const struct view *v, const struct fuzzy_case *c, bool training, int32_t *string,
                      struct fuzzy_pair *pair, bool *shown_before) {
    int T = (int)v->s->T, M = c->keys + c->values, n = 0, t = 0;
    int32_t V = (int32_t)v->s->vocab_in, marker = c->single ? V - 1 : V, pad = c->single ? V - 2 : V - 1;
    static const struct fuzzy_pair none = {0, 0, 0};
    memcpy(string, v->x.tokens, (size_t)T * sizeof *string);
    string[T] = v->x.targets[T - 1];
    while (string[t] == pad) t++;
    require(v, t > 0 && t <= T, "no pad before the string");
    for (int i = 0; training && i < T; i++)
        require(v, v->x.targets[i] == string[i + 1], "a target is not the next token");
    while (t <= T) {
        struct fuzzy_pair p = none;
        if (string[t] == marker) {
            require(v, c->single && t + 2 <= T, "a marker where none belongs");
            t++;
        }
        if (M <= string[t] && string[t] < M + c->noise) {
            require(v, training || v->x.targets[t - 1] == IGNORED, "noise is scored");
            t++;
            continue;
        }
        p.at = t;
        while (t <= T && string[t] < c->keys) t++, p.key_size++;
        while (t <= T && c->keys <= string[t] && string[t] < M) t++, p.value_size++;
        require(v, training ? 1 <= p.key_size && p.key_size <= c->key_motif : p.key_size == c->key_motif, "key size");
        require(v, 1 <= p.value_size && p.value_size <= c->value_motif, "value size");
        require(v, distinct(string + p.at, p.key_size) && distinct(string + p.at + p.key_size, p.value_size),
                "a motif repeats an id");
        bool known = false, final = t > T;
        for (int i = 0; i < n && !known; i++) {
            known = pair[i].key_size == p.key_size &&
                    memcmp(string + pair[i].at, string + p.at, (size_t)p.key_size * sizeof *string) == 0;
            require(v,
                    !known || (pair[i].value_size == p.value_size &&
                               memcmp(string + pair[i].at + p.key_size, string + p.at + p.key_size,
                                      (size_t)p.value_size * sizeof *string) == 0),
                    "a key has two values");
        }
        bool asked = final || (known && !c->single);
        for (int i = p.at; i < t && !training; i++)
            require(v, v->x.targets[i - 1] == (asked && i >= p.at + p.key_size ? string[i] : IGNORED),
                    "values of keys shown before are not what is scored");
        *shown_before = known;
        pair[n++] = p;
    }
    require(v, !c->single || string[pair[n - 1].at - 1] == marker, "no marker before the final pair");
    for (int i = 0; !training && i < pair[0].at - 1; i++) require(v, v->x.targets[i] == IGNORED, "a pad is scored");
    return n;
}

/* Number of the tuple of `size` ids, each one of `count`. */
static int tuple_bin(const int32_t *ids, int size, int first, int count) {
    int bin = 0;
    for (int i = 0; i < size; i++) bin = bin * count + (ids[i] - first);
    return bin;
}

/* Moves the counts of triples of distinct ids to the front; returns their number. */
static int keep_tuples(int64_t *count, int base) {
    int n = 0;
    for (int a = 0; a < base; a++)
        for (int b = 0; b < base; b++)
            for (int c = 0; c < base; c++)
                if (a != b && a != c && b != c) count[n++] = count[(a * base + b) * base + c];
    return n;
}

static void check_fuzzy(const struct fuzzy_case *c, enum split split, int64_t n, double absent) {
    static int32_t string[MAX_T + 1];
    static struct fuzzy_pair pair[MAX_T];
    struct view v;
    bool shown_before = false;
    int64_t missing = 0;
    view_open(&v, c->text, 4);
    for (int64_t i = 0; i < n; i++) {
        view_fill(&v, split, i);
        read_fuzzy(&v, c, split == SPLIT_TRAIN, string, pair, &shown_before);
        missing += !shown_before;
    }
    if (absent > 0) check_share(c->text, missing, n, absent, 5e-4);
    view_close(&v);
}

START_TEST(fuzzy_recall_asks_for_values_of_keys_shown_before) {
    static const struct fuzzy_case base = {"fuzzy-recall:n_test=20k", 7, 8, 0, 3, 3, false};
    static const struct fuzzy_case l256 = {"fuzzy-recall:length=256,n_test=20k", 7, 8, 0, 3, 3, false};
    static const struct fuzzy_case v128 = {"fuzzy-recall:vocab=128,length=1024", 63, 64, 0, 3, 3, false};
    static const struct fuzzy_case single = {"fuzzy-recall:query=single", 7, 7, 0, 3, 3, true};
    static const struct fuzzy_case noisy = {"fuzzy-recall:vocab=26,noise_vocab=10,noise=0.4", 7, 8, 10, 3, 3, false};
    static const struct fuzzy_case both = {
        "fuzzy-recall:vocab=27,noise_vocab=10,noise=0.4,query=single", 7, 8, 10, 3, 3, true};
    static const struct fuzzy_case uneven = {"fuzzy-recall:key_motif=1,value_motif=5", 7, 8, 0, 1, 5, false};
    static const struct fuzzy_case tight = {"fuzzy-recall:length=13,query=single", 7, 7, 0, 3, 3, true};
    check_fuzzy(&base, SPLIT_TEST, 20000, 0.026);
    check_fuzzy(&l256, SPLIT_TEST, 20000, 0.013);
    check_fuzzy(&base, SPLIT_TRAIN, 12800, 0);
    check_fuzzy(&base, SPLIT_VAL, 1280, 0);
    check_fuzzy(&v128, SPLIT_TEST, 300, 0);
    check_fuzzy(&single, SPLIT_TEST, 1280, 0);
    check_fuzzy(&single, SPLIT_TRAIN, 1280, 0);
    check_fuzzy(&noisy, SPLIT_TEST, 1280, 0);
    check_fuzzy(&noisy, SPLIT_TRAIN, 1280, 0);
    check_fuzzy(&both, SPLIT_TEST, 1280, 0);
    check_fuzzy(&uneven, SPLIT_TEST, 1280, 0);
    check_fuzzy(&uneven, SPLIT_TRAIN, 1280, 0);
    check_fuzzy(&tight, SPLIT_TEST, 1280, 0);
    check_fuzzy(&tight, SPLIT_TRAIN, 1280, 0);
}
END_TEST

/* The map of a long string against a search of all pairs before; keys short and often the same, or long and rare. */
START_TEST(long_fuzzy_strings_have_one_map) {
    static const struct fuzzy_case rare = {"fuzzy-recall:length=16384,vocab=128", 63, 64, 0, 3, 3, false};
    static const struct fuzzy_case often = {
        "fuzzy-recall:length=16384,vocab=1025,key_motif=1,value_motif=1", 512, 512, 0, 1, 1, false};
    check_fuzzy(&rare, SPLIT_TEST, 3, 0);
    check_fuzzy(&rare, SPLIT_TRAIN, 3, 0);
    check_fuzzy(&often, SPLIT_TEST, 3, 0);
    check_fuzzy(&often, SPLIT_TRAIN, 3, 0);
}
END_TEST

/* First pairs: motifs are uniform tuples, sizes uniform. */
START_TEST(fuzzy_motifs_are_uniform) {
    static const struct fuzzy_case c = {"fuzzy-recall:n_test=60k,n_train=60k", 7, 8, 0, 3, 3, false};
    int32_t string[129];
    struct fuzzy_pair pair[129];
    struct view v;
    bool shown_before;
    view_open(&v, c.text, 4);
    int64_t key[7 * 7 * 7] = {0}, value[8 * 8 * 8] = {0}, key_size[3] = {0}, value_size[3] = {0}, threes = 0;
    for (int64_t i = 0; i < 60000; i++) {
        view_fill(&v, SPLIT_TEST, i);
        read_fuzzy(&v, &c, false, string, pair, &shown_before);
        key[tuple_bin(string + pair[0].at, 3, 0, 7)]++;
        value_size[pair[0].value_size - 1]++;
        if (pair[0].value_size == 3) {
            value[tuple_bin(string + pair[0].at + 3, 3, 7, 8)]++;
            threes++;
        }
        view_fill(&v, SPLIT_TRAIN, i);
        read_fuzzy(&v, &c, true, string, pair, &shown_before);
        key_size[pair[0].key_size - 1]++;
    }
    check_uniform("keys", key, keep_tuples(key, 7), 60000);
    check_uniform("values", value, keep_tuples(value, 8), threes);
    check_uniform("value sizes", value_size, 3, 60000);
    check_uniform("key sizes in training", key_size, 3, 60000);
    view_close(&v);
}
END_TEST

/* The first thing in a string is noise unless the probe is placed at 0, one of L - 2s places; s is 4, 5 or 6. */
START_TEST(fuzzy_noise_has_its_share) {
    struct view v;
    int64_t noisy = 0, id[10] = {0};
    view_open(&v, "fuzzy-recall:vocab=26,noise_vocab=10,noise=0.4,n_test=40k", 4);
    for (int64_t i = 0; i < 40000; i++) {
        int t = 0;
        view_fill(&v, SPLIT_TEST, i);
        while (v.x.tokens[t] == 25) t++;
        if (v.x.tokens[t] < 15) continue;
        noisy++;
        id[v.x.tokens[t] - 15]++;
    }
    double probe = (1. / 120 + 1. / 118 + 1. / 116) / 3;
    check_share("noise", noisy, 40000, 0.4 * (1 - probe), 0);
    check_uniform("noise ids", id, 10, noisy);
    view_close(&v);
}
END_TEST

/* Two keys and two values of one id, seven places: two pairs and the final one, whose key is `probe` here. The place is
 * 0, 1 or 2. At 0 the first pair is the probe; else it is drawn, and the second is the probe unless the first was:
 * P(first) = 1/3 + 2/3 * 1/2 and P(second) = 1/3 * 1/2 + 2/3 * (1/2 + 1/2 * 1/2). */
START_TEST(the_final_pair_is_put_in_before_once) {
    struct view v;
    int64_t first = 0, second = 0, n = 20000;
    view_open(&v, "fuzzy-recall:length=7,vocab=5,key_motif=1,value_motif=1,n_test=20k", 4);
    for (int64_t i = 0; i < n; i++) {
        view_fill(&v, SPLIT_TEST, i);
        require(&v, v.x.tokens[0] == 4 && v.x.tokens[1] == 4 && v.x.tokens[2] < 2, "not two pads and three pairs");
        first += v.x.tokens[2] == v.x.tokens[6];
        second += v.x.tokens[4] == v.x.tokens[6];
    }
    check_share("first pair", first, n, 2. / 3, 0);
    check_share("second pair", second, n, 2. / 3, 0);
    view_close(&v);
}
END_TEST

/* In training a key may begin like the final one and is another key: one of three values, by chance the same. */
START_TEST(a_key_is_not_the_beginning_of_another) {
    static const struct fuzzy_case c = {
        "fuzzy-recall:length=24,vocab=6,key_motif=2,value_motif=1,n_train=20k", 2, 3, 0, 2, 1, false};
    int32_t string[25] = {0};
    struct fuzzy_pair pair[25] = {{0, 0, 0}};
    struct view v;
    bool shown_before;
    int64_t found = 0, same = 0;
    view_open(&v, c.text, 4);
    for (int64_t i = 0; i < 20000; i++) {
        view_fill(&v, SPLIT_TRAIN, i);
        int last = read_fuzzy(&v, &c, true, string, pair, &shown_before) - 1, p = 0;
        while (p < last && (pair[p].key_size != 1 || string[pair[p].at] != string[pair[last].at])) p++;
        if (p == last || pair[last].key_size != 2) continue;
        found++;
        same += string[pair[p].at + 1] == string[pair[last].at + 2];
    }
    ck_assert_int_gt(found, 5000);
    check_share("same value", same, found, 1. / 3, 0);
    view_close(&v);
}
END_TEST

/* --- MQAR --------------------------------------------------------------------------------------------------------- */

struct mqar_case {
    const char *text;
    int K;
    bool zero;
};

static void check_mqar(const struct mqar_case *c, enum split split, int64_t n) {
    struct view v;
    view_open(&v, c->text, 4);
    int32_t V = (int32_t)v.s->vocab_in;
    for (int64_t i = 0; i < n; i++) {
        int scored = 0;
        view_fill(&v, split, i);
        const int32_t *x = v.x.tokens;
        for (int a = 0; a < c->K; a++) {
            int32_t key = x[2 * a], value = x[2 * a + 1];
            require(&v, 1 <= key && key < V / 2 && V / 2 <= value && value < V, "a pair out of range");
            for (int b = 0; b < a; b++) require(&v, x[2 * b] != key && x[2 * b + 1] != value, "a pair is not distinct");
        }
        for (int64_t t = 0; t < v.s->T; t++) {
            if (v.x.targets[t] == IGNORED) {
                require(&v, t < 2 * c->K || !c->zero || x[t] == 0, "filler is not 0");
                continue;
            }
            int a = 0;
            while (a < c->K && x[2 * a] != x[t]) a++;
            require(&v, t >= 2 * c->K && t % 2 == 0 && a < c->K, "a scored position that holds no key");
            require(&v, v.x.targets[t] == x[2 * a + 1], "the label is not the key's value");
            scored++;
        }
        require(&v, scored == c->K, "not every key is asked for once");
    }
    view_close(&v);
}

START_TEST(mqar_asks_for_each_key_once) {
    static const struct mqar_case rows[] = {{"mqar", 4, false},
                                            {"mqar-64", 4, true},
                                            {"mqar-256", 16, true},
                                            {"mqar-512", 64, true},
                                            {"mqar:length=64,pairs=16,vocab=65", 16, false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int split = 0; split < SPLIT_COUNT; split++) check_mqar(&rows[i], (enum split)split, 500);
}
END_TEST

/* Counts the training strings of each number of slots of `width` ids, and of each number of pairs. */
static void count_lengths(const char *text, int width, int64_t by_slots[33], int64_t by_pairs[17]) {
    struct view v;
    view_open(&v, text, 4);
    memset(by_slots, 0, 33 * sizeof *by_slots);
    memset(by_pairs, 0, 17 * sizeof *by_pairs);
    for (int64_t i = 0; i < 10000; i++) {
        int asked = 0;
        view_fill(&v, SPLIT_TRAIN, i);
        for (int64_t t = 0; t < v.s->T; t++) asked += v.x.targets[t] != IGNORED;
        require(&v, v.x.length == v.s->T || v.x.length % width == 0, "a length that is no whole slots");
        by_slots[v.x.length / width]++;
        by_pairs[asked]++;
    }
    for (int split = SPLIT_VAL; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < 100; i++) {
            view_fill(&v, (enum split)split, i);
            require(&v, v.x.length == v.s->T, "a shorter string that is not for training");
        }
    view_close(&v);
}

START_TEST(mqar_trains_on_mixed_lengths) {
    int64_t slots[33], pairs[17];
    count_lengths("mqar:vocab=128,length=64,pairs=16,min_length=15", 2, slots, pairs);
    for (int n = 0; n < 8; n++) ck_assert_int_eq(slots[n], 0);
    check_uniform("lengths of mqar", slots + 8, 25, 10000); /* 16 to 64 */
    check_share("strings with all pairs", pairs[16], 10000, 1. / 25, 0);
    for (int n = 4; n < 16; n++) check_share("strings with n pairs", pairs[n], 10000, 2. / 25, 0); /* of 4 n, 4 n + 2 */
    count_lengths("mqar:vocab=128,length=64,keys=pairs,min_length=44", 3, slots, pairs);
    check_uniform("lengths of pairs of ids", slots + 15, 7, 10000); /* 45 to 60, then 64 */
    check_share("strings with all four pairs", pairs[4], 10000, 1. / 7, 0);
    ck_assert_int_eq(pairs[1] + pairs[4], 10000);
}
END_TEST

/* Like chi_square_z, for bins of probability p. */
static double weighted_z(const int64_t *count, const double *p, int bins, int64_t draws) {
    double sum = 0, unit = 2.0 / (9.0 * (bins - 1));
    for (int i = 0; i < bins; i++) {
        double expected = p[i] * (double)draws;
        sum += ((double)count[i] - expected) * ((double)count[i] - expected) / expected;
    }
    return (cbrt(sum / (bins - 1)) - (1 - unit)) / sqrt(unit);
}

/* No split has the pairs of another, also for seed 0, which the held-out ones have. */
START_TEST(mqar_splits_do_not_share_pairs) {
    struct view v, other;
    view_open(&v, "mqar", 0);
    view_open(&other, "mqar", 0);
    for (int split = 0; split < SPLIT_COUNT; split++)
        for (int64_t i = 0; i < 200; i++) {
            view_fill(&v, (enum split)split, i);
            view_fill(&other, (enum split)((split + 1) % SPLIT_COUNT), i);
            require(&v, memcmp(v.x.tokens, other.x.tokens, 8 * sizeof *v.x.tokens) != 0, "the same pairs elsewhere");
        }
    view_close(&v);
    view_close(&other);
}
END_TEST

/* 28 slots of weights (g+1)^(a-1). The first key's slot follows the weights; the second's what they leave:
 * P(h) = sum over g != h of w_g w_h / (1 - w_g). */
static void check_slots(double power) {
    char text[64];
    double first[28], second[28] = {0}, sum = 0;
    int64_t count[2][28] = {{0}}, n = 50000;
    struct view v;
    snprintf(text, sizeof text, "mqar-64:power=%g", power);
    view_open(&v, text, 4);
    for (int g = 0; g < 28; g++) sum += first[g] = pow(g + 1, power - 1);
    for (int g = 0; g < 28; g++) first[g] /= sum;
    for (int h = 0; h < 28; h++)
        for (int g = 0; g < 28; g++)
            if (g != h) second[h] += first[g] * first[h] / (1 - first[g]);
    for (int64_t i = 0; i < n; i++) {
        view_fill(&v, SPLIT_TRAIN, i);
        for (int g = 0; g < 28; g++)
            for (int k = 0; k < 2; k++) count[k][g] += v.x.tokens[8 + 2 * g] == v.x.tokens[2 * k];
    }
    double z = weighted_z(count[0], first, 28, n), z2 = weighted_z(count[1], second, 28, n);
    ck_assert_msg(fabs(z) < 3 && fabs(z2) < 3, "power %g: slots %.1f and %.1f sigma from their weights", power, z, z2);
    view_close(&v);
}

START_TEST(mqar_slots_follow_their_weights) {
    check_slots(0.01);
    check_slots(0.5);
    check_slots(1);
}
END_TEST

START_TEST(mqar_keys_values_and_fillers_are_uniform) {
    enum { KEYS = 32, VALUES = 33, V = 66 };
    static int64_t keys[KEYS * KEYS], pairs[KEYS * VALUES], filler[V];
    struct view v;
    int64_t n = 100000, fillers = 0;
    view_open(&v, "mqar:vocab=66,length=16,pairs=2", 4);
    for (int64_t i = 0; i < n; i++) {
        view_fill(&v, SPLIT_TRAIN, i);
        const int32_t *x = v.x.tokens;
        keys[(x[0] - 1) * KEYS + x[2] - 1]++;
        pairs[(x[0] - 1) * VALUES + x[1] - KEYS - 1]++;
        for (int t = 4; t < 16; t++)
            if (v.x.targets[t] == IGNORED) filler[x[t]]++, fillers++;
    }
    int distinct_keys = 0;
    for (int a = 0; a < KEYS; a++)
        for (int b = 0; b < KEYS; b++)
            if (a != b) keys[distinct_keys++] = keys[a * KEYS + b];
    check_uniform("two keys", keys, distinct_keys, n);
    check_uniform("key and value", pairs, KEYS * VALUES, n);
    check_uniform("filler", filler, V, fillers);
    view_close(&v);
}
END_TEST

Suite *check_recall(void) {
    Suite *suite = suite_create("recall");
    TCase *tests = tcase_create("recall");
    tcase_add_checked_fixture(tests, reserve_task_host, free_task_host);
    tcase_add_test(tests, recall_asks_for_values_of_keys_shown_before);
    tcase_add_test(tests, noise_leaves_a_pair_to_ask_for);
    tcase_add_test(tests, fuzzy_recall_asks_for_values_of_keys_shown_before);
    tcase_add_test(tests, long_fuzzy_strings_have_one_map);
    tcase_add_test(tests, fuzzy_motifs_are_uniform);
    tcase_add_test(tests, fuzzy_noise_has_its_share);
    tcase_add_test(tests, the_final_pair_is_put_in_before_once);
    tcase_add_test(tests, a_key_is_not_the_beginning_of_another);
    tcase_add_test(tests, mqar_splits_do_not_share_pairs);
    tcase_add_test(tests, mqar_asks_for_each_key_once);
    tcase_add_test(tests, mqar_trains_on_mixed_lengths);
    tcase_add_test(tests, mqar_slots_follow_their_weights);
    tcase_add_test(tests, mqar_keys_values_and_fillers_are_uniform);
    suite_add_tcase(suite, tests);
    return suite;
}
