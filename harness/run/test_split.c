/* test_split.c - see test_split.h. */
#include "harness/run/test_split.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/run/signals.h"

/* One example, and the memory of its input. */
struct one {
    struct example x;
    int64_t targets, words; /* words: of its links */
    size_t input_bytes;
    void *memory;
};

static bool one_make(struct one *o, const struct task_shape *s) {
    int64_t inputs = task_inputs(s, SPLIT_TEST);
    *o = (struct one){.targets = task_targets(s, SPLIT_TEST), .words = links_words(s->links)};
    o->input_bytes = (size_t)inputs * (s->vocab_in ? sizeof *o->x.tokens : sizeof *o->x.values);
    size_t aligned = (o->input_bytes + 15) / 16 * 16;
    o->memory = calloc(1, aligned + (size_t)(o->targets + o->words) * sizeof *o->x.targets + 1);
    if (!o->memory) return false;
    if (s->vocab_in)
        o->x.tokens = o->memory;
    else
        o->x.values = o->memory;
    o->x.targets = (int32_t *)(void *)((char *)o->memory + aligned);
    if (o->words) o->x.links = o->x.targets + o->targets;
    return true;
}

/* Fills example i. */
static void one_fill(struct one *o, const struct task_choice *task, int64_t i) {
    memset(o->memory, 0, o->input_bytes);
    for (int64_t t = 0; t < o->targets + o->words; t++) o->x.targets[t] = IGNORED; /* the links lie behind them */
    task->task->fill(task->inst, SPLIT_TEST, i, &o->x);
}

/* Example `row` of a batch, where it lies. */
static void one_view(struct one *o, const struct batch *b, int64_t row) {
    int64_t documents = batch_documents(b);
    *o = (struct one){.targets = b->labels, .words = b->words, .input_bytes = batch_row_bytes(b)};
    o->memory = batch_row(b, row);
    o->x.targets = b->targets + row * b->labels;
    if (b->words) o->x.links = b->links + row * b->words;
    o->x.length = b->lengths[row * documents];
    if (documents > 1) o->x.second = b->lengths[row * documents + 1];
}

/* What has been read so far. */
struct digest {
    XXH3_state_t *state;
    double chance, sum; /* of a scored position; of sequences */
    int64_t n;
};

static enum status begin(struct digest *r, double chance, struct error *e) {
    *r = (struct digest){.state = XXH3_createState(), .chance = chance};
    if (!r->state) return fail(e, ST_MEMORY, "no memory to read the test examples");
    XXH3_128bits_reset(r->state);
    return ST_OK;
}

static void add(struct digest *r, const struct one *o) {
    int64_t scored = 0;
    for (int64_t t = 0; t < o->targets; t++) scored += o->x.targets[t] != IGNORED;
    if (scored) r->sum += pow(r->chance, (double)scored); /* without a scored position no sequence is right */
    r->n++;
    XXH3_128bits_update(r->state, &o->x.length, sizeof o->x.length);
    if (o->x.second) XXH3_128bits_update(r->state, &o->x.second, sizeof o->x.second);
    XXH3_128bits_update(r->state, o->memory, o->input_bytes);
    XXH3_128bits_update(r->state, o->x.targets, (size_t)o->targets * sizeof *o->x.targets);
    if (o->words) XXH3_128bits_update(r->state, o->x.links, (size_t)o->words * sizeof *o->x.links);
}

static void end(struct digest *r, struct test_split *t) {
    XXH128_hash_t hash = XXH3_128bits_digest(r->state);
    snprintf(t->hash, sizeof t->hash, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64, (uint64_t)hash.low64);
    t->seq_chance = r->n ? r->sum / (double)r->n : 0;
}

/* Whether somebody has asked to stop. */
static enum status look(bool obeys, struct error *e) {
    if (!obeys || !signal_received()) return ST_OK;
    return fail(e, (enum status)(128 + signal_received()), "stopped while the test examples were read");
}

enum status test_split_read(const struct task_choice *task, bool obeys, struct test_split *t, struct error *e) {
    const struct task_shape *s = &task->shape;
    struct one o = {.memory = NULL};
    struct digest r;
    enum status status = begin(&r, s->chance, e);
    if (status == ST_OK && !one_make(&o, s)) status = fail(e, ST_MEMORY, "no memory for an example of %s", task->name);
    for (int64_t i = 0; i < s->examples[SPLIT_TEST] && status == ST_OK; i++) {
        one_fill(&o, task, i);
        add(&r, &o);
        if (i + 1 < s->examples[SPLIT_TEST]) status = look(obeys, e);
    }
    if (status == ST_OK) end(&r, t);
    XXH3_freeState(r.state);
    free(o.memory);
    return status;
}

enum status test_split_stored(const struct split_store *store, bool obeys, struct test_split *t, struct error *e) {
    const struct setup *s = store->setup;
    struct digest r;
    if (store->window) return test_split_read(&s->spec.task, obeys, t, e); /* its rows hold earlier ones' rests */
    enum status status = begin(&r, s->spec.task.shape.chance, e);
    for (int64_t row = 0; row < store->examples && status == ST_OK; row++) {
        struct one o;
        one_view(&o, &store->rows, row);
        add(&r, &o);
    }
    if (status == ST_OK) end(&r, t);
    XXH3_freeState(r.state);
    return status;
}
