/* data_check.c - `lrnn data check FILE`: describes a file of examples before training: sizes, shares of labels, inputs
 * common to training and test, and the accuracy of trivial guesses. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/cli/data/data_sets.h"
#include "harness/run/batches/examples.h"
#include "tasks/task.h"

#define LABELS_SHOWN 20
#define TABLE_MOST   (INT64_C(1) << 26) /* most counts of labels by input; if more are needed, that guess is left out */

struct split_facts {
    int64_t shortest, longest, scored, in_training; /* in_training: examples whose input also occurs in training */
    uint64_t *hash;                                 /* of each input */
};

struct check {
    struct task_choice task;
    struct arena host;
    struct batch row; /* one example */
    struct example x;
    struct split_facts facts[SPLIT_COUNT];
    int64_t keys, *count, *by_key; /* (labels) and (keys, labels): scored targets of training */
    int64_t right, right_by_key;   /* test targets equal to the commonest label: overall; for its key */
};

/* Returns the key for the second guess: the token at the position (for a target per sequence, at the last position);
 * for values, the position. */
static int64_t key_of(const struct check *c, int64_t t) {
    int64_t at = c->task.shape.per_sequence ? c->x.length - 1 : t;
    return c->x.tokens ? c->x.tokens[at] : at;
}

static int64_t commonest(const int64_t *count, int64_t labels) {
    int64_t top = 0;
    for (int64_t i = 1; i < labels; i++)
        if (count[i] > count[top]) top = i;
    return top;
}

static void look_at(struct check *c, enum split split, int64_t i) {
    const struct task_shape *s = &c->task.shape;
    struct split_facts *f = &c->facts[split];
    memset(c->row.tokens ? (void *)c->row.tokens : (void *)c->row.values, 0, batch_row_bytes(&c->row));
    for (int64_t t = 0; t < c->row.labels; t++) c->x.targets[t] = IGNORED;
    task_fill(&c->task, split, i, &c->x);
    f->hash[i] = XXH3_64bits_withSeed(batch_row(&c->row, 0), batch_row_bytes(&c->row), (uint64_t)c->x.length);
    f->shortest = i && f->shortest < c->x.length ? f->shortest : c->x.length;
    f->longest = f->longest > c->x.length ? f->longest : c->x.length;
    for (int64_t t = 0; t < (s->per_sequence ? 1 : c->x.length); t++) {
        int32_t label = c->x.targets[t];
        if (label == IGNORED) continue;
        f->scored++;
        int64_t *of_key = c->by_key ? c->by_key + key_of(c, t) * s->vocab_out : c->count;
        if (split == SPLIT_TRAIN) {
            c->count[label]++;
            if (c->by_key) of_key[label]++;
        } else if (split == SPLIT_TEST) {
            c->right += label == commonest(c->count, s->vocab_out);
            c->right_by_key += label == commonest(of_key, s->vocab_out);
        }
    }
}

static int by_value(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static enum status look(struct check *c, struct error *e) {
    const struct task_shape *s = &c->task.shape;
    int64_t longest = s->T > s->T_eval ? s->T : s->T_eval, train = s->examples[SPLIT_TRAIN];
    c->row = batch_of(s, s->T >= s->T_eval ? SPLIT_TRAIN : SPLIT_TEST, 1);
    c->keys = s->vocab_in ? s->vocab_in : longest;
    char *room = arena_alloc(&c->host, batch_bytes(&c->row));
    c->count = calloc((size_t)s->vocab_out, sizeof *c->count);
    if (c->keys <= TABLE_MOST / s->vocab_out) c->by_key = calloc((size_t)(c->keys * s->vocab_out), sizeof *c->by_key);
    bool whole = room && c->count;
    for (int i = 0; i < SPLIT_COUNT; i++) {
        c->facts[i].hash = malloc((size_t)s->examples[i] * sizeof *c->facts[i].hash);
        whole = whole && c->facts[i].hash;
    }
    if (!whole) return fail(e, ST_MEMORY, "data check: no memory for what %" PRId64 " examples hold", train);
    batch_lay(&c->row, room);
    c->x = (struct example){.tokens = c->row.tokens, .values = c->row.values, .targets = c->row.targets};
    for (int split = 0; split < SPLIT_COUNT; split++) {
        for (int64_t i = 0; i < s->examples[split]; i++) look_at(c, (enum split)split, i);
        uint64_t *known = c->facts[SPLIT_TRAIN].hash;
        if (split == SPLIT_TRAIN) qsort(known, (size_t)train, sizeof *known, by_value);
        for (int64_t i = 0; i < s->examples[split]; i++) {
            const uint64_t *at = &c->facts[split].hash[i];
            bool twice = split == SPLIT_TRAIN ? i && at[0] == at[-1]
                                              : bsearch(at, known, (size_t)train, sizeof *known, by_value) != NULL;
            c->facts[split].in_training += twice;
        }
    }
    return ST_OK;
}

static void print(const struct check *c) {
    static const char *const names[] = {"train", "val", "test"};
    const struct task_shape *s = &c->task.shape;
    double scored = (double)c->facts[SPLIT_TEST].scored, trained = (double)c->facts[SPLIT_TRAIN].scored;
    if (s->vocab_in)
        printf("%s: tokens 0 to %" PRId64, c->task.name, s->vocab_in - 1);
    else
        printf("%s: values, %" PRId64 " per position", c->task.name, s->channels);
    printf(", %s out of %" PRId64 " labels\n", s->per_sequence ? "one label per sequence" : "a target a position",
           s->vocab_out);
    for (int i = 0; i < SPLIT_COUNT; i++) {
        const struct split_facts *f = &c->facts[i];
        printf("  %-9s  %" PRId64 " examples of length %" PRId64 " to %" PRId64 ", %" PRId64 " targets scored, %" PRId64
               " %s\n",
               names[i], s->examples[i], f->shortest, f->longest, f->scored, f->in_training,
               i ? "inputs that training has as well" : "inputs twice");
    }
    printf("  labels     of training:");
    for (int64_t i = 0; i < s->vocab_out && i < LABELS_SHOWN; i++)
        printf(" %" PRId64 ": %.3f", i, (double)c->count[i] / trained);
    printf("%s\n  chance     %.4f  a uniform guess\n", s->vocab_out > LABELS_SHOWN ? " ..." : "", s->chance);
    printf("  majority   %.4f  of test targets are label %" PRId64 ", the commonest in training\n",
           (double)c->right / scored, commonest(c->count, s->vocab_out));
    if (c->by_key)
        printf("  by %-6s  %.4f  are the label that is commonest in training %s\n", s->vocab_in ? "token" : "place",
               (double)c->right_by_key / scored,
               s->vocab_in       ? s->per_sequence ? "after the same last token" : "at the same token"
               : s->per_sequence ? "at the same length"
                                 : "at the same position");
}

enum status data_check(int argc, char **argv, struct error *e) {
    const char *text = NULL;
    struct cli cli = {.command = &data_commands[DATA_CHECK], .positional = &text, .max_positional = 1};
    struct check *c = calloc(1, sizeof *c);
    if (!c) return fail(e, ST_MEMORY, "data check: no memory");
    enum status status = cli_parse(&cli, argc, argv, e);
    if (status == ST_OK && !text)
        status =
            fail(e, ST_USAGE, "data check: say which file, as words.jsonl or words.jsonl:val=V.jsonl,test=T.jsonl");
    if (status == ST_OK) status = task_parse(&c->task, text, e);
    if (status == ST_OK) status = arena_reserve(&c->host, TASK_TABLE_BYTES, e);
    if (status == ST_OK) status = task_open(&c->task, 1, &c->host, e);
    if (status == ST_OK && (task_documents(&c->task.shape) > 1 || c->task.shape.links.edges))
        status = fail(e, ST_USAGE, "data check: %s has pairs of documents, or graphs; `lrnn data stats` looks at them",
                      c->task.name);
    if (status == ST_OK) status = look(c, e);
    if (status == ST_OK) print(c);
    for (int i = 0; i < SPLIT_COUNT; i++) free(c->facts[i].hash);
    free(c->count);
    free(c->by_key);
    arena_free(&c->host);
    free(c);
    return status;
}
