/* feeder.c - see feeder.h. */
#include "harness/run/feeder.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* --- rows --------------------------------------------------------------------------------------------------------- */

static struct example clean_row(const struct batch *b, int64_t row) {
    struct example x = {.targets = b->targets + row * b->labels};
    if (b->channels)
        x.values = batch_row(b, row);
    else
        x.tokens = batch_row(b, row);
    if (b->words) x.links = b->links + row * b->words;
    for (int64_t i = 0; i < b->labels; i++) x.targets[i] = IGNORED;
    for (int64_t i = 0; i < b->words; i++) x.links[i] = IGNORED;
    return x;
}

int64_t train_example(const struct setup *s, int64_t epoch, int64_t position) {
    uint64_t n = (uint64_t)s->spec.task.shape.examples[SPLIT_TRAIN];
    return (int64_t)permute_index(s->spec.task.seed, STREAM_SHUFFLE, (uint64_t)epoch, (uint64_t)position, n);
}

int64_t second_example(const struct setup *s, int64_t position) {
    uint64_t n = (uint64_t)s->spec.task.shape.second.examples, at = (uint64_t)position;
    return (int64_t)permute_index(~s->spec.task.seed, STREAM_SHUFFLE, at / n, at % n, n);
}

/* Positions in use, of each document. */
static void set_lengths(struct batch *b, int64_t row, const struct example *x) {
    int64_t n = batch_documents(b);
    b->lengths[row * n] = x->length;
    if (n > 1) b->lengths[row * n + 1] = x->second;
}

static void fill_row(const struct setup *s, enum split split, int64_t index, int64_t epoch, struct batch *b,
                     int64_t row) {
    struct example x = clean_row(b, row);
    int64_t n = s->spec.task.shape.examples[split];
    if (index >= n)
        memset(batch_row(b, row), 0, batch_row_bytes(b));
    else {
        if (split == SPLIT_TRAIN) index = train_example(s, epoch, index);
        s->spec.task.task->fill(s->spec.task.inst, split, index, &x);
    }
    set_lengths(b, row, &x);
}

int64_t batch_fill(const struct setup *s, enum split split, int64_t first, int64_t epoch, bool parallel,
                   struct batch *b) {
    int64_t left = s->spec.task.shape.examples[split] - first;
    if (parallel && b->B * b->T > 16384) {
#pragma omp parallel for schedule(static)
        for (int64_t row = 0; row < b->B; row++) fill_row(s, split, first + row, epoch, b, row);
    } else
        for (int64_t row = 0; row < b->B; row++) fill_row(s, split, first + row, epoch, b, row);
    return left < b->B ? left : b->B;
}

void split_fill(const struct setup *s, bool second, int64_t first, int64_t rows, struct batch *b) {
    const struct task_choice *task = &s->spec.task;
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        struct example x = clean_row(b, row);
        if (second)
            task->shape.second.fill(task->inst, first + row, &x);
        else
            task->task->fill(task->inst, SPLIT_TRAIN, first + row, &x);
        set_lengths(b, row, &x);
    }
}

static void fill_second(const struct setup *s, int64_t step, struct batch *b) {
    for (int64_t row = 0; row < b->B; row++) {
        struct example x = clean_row(b, row);
        s->spec.task.shape.second.fill(s->spec.task.inst, second_example(s, step * b->B + row), &x);
        set_lengths(b, row, &x);
    }
}

/* The batch of a step: epoch by epoch, each in its own order, the last partial batch kept. */
static void fill_step(const struct setup *s, int64_t step, bool parallel, struct step_batches *b) {
    int64_t epoch = step / s->shapes.steps_per_epoch, within = step % s->shapes.steps_per_epoch;
    batch_fill(s, SPLIT_TRAIN, within * s->spec.config.batch, epoch, parallel, &b->main);
    if (b->second.B) fill_second(s, step, &b->second);
}

/* --- the thread --------------------------------------------------------------------------------------------------- */

/* The lock is held except while a slot is filled: the other side touches that slot only when nothing is wanted. */
static void *work(void *context) {
    struct feeder *f = context;
    pthread_mutex_lock(&f->lock);
    while (!f->stop) {
        if (f->wanted < 0) {
            pthread_cond_wait(&f->news, &f->lock);
            continue;
        }
        int64_t step = f->wanted;
        pthread_mutex_unlock(&f->lock);
        fill_step(f->setup, step, false, &f->slot[step % 2]);
        pthread_mutex_lock(&f->lock);
        f->made[step % 2] = step;
        f->wanted = -1;
        pthread_cond_broadcast(&f->news);
    }
    pthread_mutex_unlock(&f->lock);
    return NULL;
}

static void ask(struct feeder *f, int64_t step) {
    f->wanted = step;
    pthread_cond_broadcast(&f->news);
}

static void wait_until_idle(struct feeder *f) {
    while (f->wanted >= 0) pthread_cond_wait(&f->news, &f->lock);
}

const struct step_batches *feeder_take(struct feeder *f, int64_t step) {
    if (!f->ahead) {
        fill_step(f->setup, step, true, &f->slot[0]);
        return &f->slot[0];
    }
    pthread_mutex_lock(&f->lock);
    wait_until_idle(f);
    if (f->made[step % 2] != step) {
        ask(f, step);
        wait_until_idle(f);
    }
    if (step + 1 < f->setup->shapes.steps) ask(f, step + 1);
    pthread_mutex_unlock(&f->lock);
    return &f->slot[step % 2];
}

/* --- beginning and end -------------------------------------------------------------------------------------------- */

size_t batch_bytes(const struct batch *b) {
    size_t bytes =
        (size_t)b->B * (batch_row_bytes(b) + (size_t)(b->labels + batch_documents(b) + b->words) * sizeof(int32_t));
    return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* The input comes first: it alone may hold numbers of 8 bytes. */
char *batch_lay(struct batch *b, char *at) {
    b->tokens = b->channels ? NULL : (int32_t *)(void *)at;
    b->values = b->channels ? (real *)(void *)at : NULL;
    b->targets = (int32_t *)(void *)(at + (size_t)b->B * batch_row_bytes(b));
    b->lengths = b->targets + b->B * b->labels;
    b->links = b->lengths + b->B * batch_documents(b);
    return at + batch_bytes(b);
}

static enum status start_thread(struct feeder *f, struct error *e) {
    sigset_t all, before; /* signals are for the thread that trains */
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->news, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&f->thread, NULL, work, f);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return fail(e, ST_FAIL, "cannot start the thread that makes batches: %s; --ahead no does without",
                    strerror(error));
    f->ahead = true;
    return ST_OK;
}

struct step_batches step_sizes(const struct setup *s) {
    const struct task_shape *shape = &s->spec.task.shape;
    return (struct step_batches){
        .main = {.B = s->spec.config.batch,
                 .T = shape->T,
                 .channels = shape->channels,
                 .labels = task_targets(shape, SPLIT_TRAIN),
                 .words = links_words(shape->links),
                 .documents = shape->reading.documents},
        .second = {
            .B = setup_second_rows(s), .T = shape->second.T, .channels = shape->channels, .labels = shape->second.T}};
}

size_t feeder_bytes(const struct setup *setup) {
    struct step_batches sizes = step_sizes(setup);
    return batch_bytes(&sizes.main) + batch_bytes(&sizes.second);
}

enum status feeder_start(struct feeder *f, const struct setup *setup, struct error *e) {
    size_t bytes = 2 * feeder_bytes(setup);
    *f = (struct feeder){.setup = setup, .made = {-1, -1}, .wanted = -1};
    char *at = f->memory = malloc(bytes);
    if (!at) return fail(e, ST_MEMORY, "no memory for batches of %zu bytes", bytes);
    for (int i = 0; i < 2; i++) {
        f->slot[i] = step_sizes(setup);
        at = batch_lay(&f->slot[i].second, batch_lay(&f->slot[i].main, at));
    }
    return setup->spec.config.ahead ? start_thread(f, e) : ST_OK;
}

void feeder_stop(struct feeder *f) {
    if (f->ahead) {
        pthread_mutex_lock(&f->lock);
        f->stop = true;
        pthread_cond_broadcast(&f->news);
        pthread_mutex_unlock(&f->lock);
        pthread_join(f->thread, NULL);
        pthread_mutex_destroy(&f->lock);
        pthread_cond_destroy(&f->news);
    }
    free(f->memory);
    *f = (struct feeder){0};
}
