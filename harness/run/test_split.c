/* test_split.c - see test_split.h. */
#include "harness/run/test_split.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* The memory of one example. */
struct one {
    struct example x;
    int64_t inputs, targets, words; /* words: of its links */
    size_t input_bytes;
    void *memory;
};

static bool one_make(struct one *o, const struct task_shape *s) {
    *o = (struct one){
        .inputs = task_inputs(s, SPLIT_TEST), .targets = task_targets(s, SPLIT_TEST), .words = links_words(s->links)};
    o->input_bytes = (size_t)o->inputs * (s->vocab_in ? sizeof *o->x.tokens : sizeof *o->x.values);
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

/* Fills example i; returns how many of its positions are scored. */
static int64_t one_fill(struct one *o, const struct task_choice *task, int64_t i) {
    int64_t scored = 0;
    memset(o->memory, 0, o->input_bytes);
    for (int64_t t = 0; t < o->targets + o->words; t++) o->x.targets[t] = IGNORED; /* the links lie behind them */
    task->task->fill(task->inst, SPLIT_TEST, i, &o->x);
    for (int64_t t = 0; t < o->targets; t++) scored += o->x.targets[t] != IGNORED;
    return scored;
}

static void add(XXH3_state_t *state, const struct one *o) {
    XXH3_128bits_update(state, &o->x.length, sizeof o->x.length);
    if (o->x.second) XXH3_128bits_update(state, &o->x.second, sizeof o->x.second);
    XXH3_128bits_update(state, o->memory, o->input_bytes);
    XXH3_128bits_update(state, o->x.targets, (size_t)(o->targets + o->words) * sizeof *o->x.targets);
}

enum status test_split_read(const struct task_choice *task, struct test_split *t, struct error *e) {
    const struct task_shape *s = &task->shape;
    int64_t n = s->examples[SPLIT_TEST];
    struct one o = {.memory = NULL};
    XXH3_state_t *state = XXH3_createState();
    enum status status =
        state && one_make(&o, s) ? ST_OK : fail(e, ST_MEMORY, "no memory for an example of %s", task->name);
    double sum = 0;
    if (status == ST_OK) XXH3_128bits_reset(state);
    for (int64_t i = 0; i < n && status == ST_OK; i++) {
        int64_t scored = one_fill(&o, task, i);
        if (scored) sum += pow(s->chance, (double)scored); /* without a scored position no sequence is right */
        add(state, &o);
    }
    if (status == ST_OK) {
        XXH128_hash_t hash = XXH3_128bits_digest(state);
        snprintf(t->hash, sizeof t->hash, "%016" PRIx64 "%016" PRIx64, (uint64_t)hash.high64, (uint64_t)hash.low64);
        t->seq_chance = n ? sum / (double)n : 0;
    }
    XXH3_freeState(state);
    free(o.memory);
    return status;
}
