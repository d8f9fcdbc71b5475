/* batches.c - the functions of batches.h, and the usual way to make training batches: a thread of the host makes them
 * ahead of the steps and sends them into the inputs of the nets. On the CPU, sending is a copy. To a device, batches
 * are copied from pinned memory. */
#include "harness/run/batches/batches.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* --- the interface ------------------------------------------------------------------------------------------------ */

void batches_init(struct batches *b, const struct setup *s, const struct place *place, const struct net *net,
                  const struct net *second) {
    *b = (struct batches){.way = &way_sent, .setup = s, .place = place, .net = net, .second = second};
}

void batches_keep_resident(struct batches *b) {
    b->way = &way_resident;
}

enum status batches_start(struct batches *b, struct error *e) {
    return b->way->start(b, e);
}

void batches_next(struct batches *b, int64_t step) {
    b->way->next(b, step);
}

void batches_take(struct batches *b, struct step_state *live) {
    b->way->take(b, live);
}

void batches_free(struct batches *b) {
    feeder_stop(&b->feeder);
    for (int i = 0; i < STAGING_SLOTS; i++) place_mark_free(b->place, b->staging.read[i]);
    if (b->staging.memory) place_host_free(b->place, b->staging.memory);
    graph_free(&b->taken);
    *b = (struct batches){0};
}

/* --- the thread --------------------------------------------------------------------------------------------------- */

/* The thread's function: makes the batches that are asked for. The lock is released only while a slot is filled. The
 * consumer does not use that slot meanwhile. */
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
        step_fill(f->setup, step, false, &f->slot[step % 2]);
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

enum status feeder_start(struct feeder *f, const struct setup *setup, struct error *e) {
    size_t bytes = 2 * step_bytes(setup);
    *f = (struct feeder){.setup = setup, .made = {-1, -1}, .wanted = -1};
    char *at = f->memory = malloc(bytes);
    if (!at) return fail(e, ST_MEMORY, "no memory for batches of %zu bytes", bytes);
    for (int i = 0; i < 2; i++) {
        f->slot[i] = step_sizes(setup);
        at = batch_lay(&f->slot[i].second, batch_lay(&f->slot[i].main, at));
    }
    sigset_t all, before; /* signals go to the thread that trains, not to this one */
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->news, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&f->thread, NULL, work, f);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error)
        return fail(e, ST_FAIL,
                    "cannot start the thread that makes batches: %s; end other processes, or raise the limit "
                    "of threads (ulimit -u)",
                    strerror(error));
    f->runs = true;
    return ST_OK;
}

void feeder_stop(struct feeder *f) {
    if (f->runs) {
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

/* --- sent batches ------------------------------------------------------------------------------------------------- */

static enum status start(struct batches *b, struct error *e) {
    struct staging *s = &b->staging;
    const struct place *place = b->place;
    *s = (struct staging){.place = place, .bytes = step_bytes(b->setup)};
    if (place->device != DEVICE_CPU) {
        s->memory = place_host_alloc(place, STAGING_SLOTS * s->bytes);
        if (!s->memory)
            return fail(e, ST_MEMORY, "no pinned memory for batches: %zu bytes were wanted", STAGING_SLOTS * s->bytes);
        for (int i = 0; i < STAGING_SLOTS; i++) s->read[i] = place_mark_create(place);
        TRY(place_wait(place, e));
    }
    return feeder_start(&b->feeder, b->setup, e);
}

/* Copies host memory to the place of the nets. `from` may be overwritten as soon as it returns. */
static void send(struct staging *s, void *to, const void *from, size_t bytes) {
    if (!s->memory) {
        memcpy(to, from, bytes);
        return;
    }
    char *pinned = s->memory + (size_t)s->slot * s->bytes + s->used;
    memcpy(pinned, from, bytes);
    place_send(s->place, to, pinned, bytes);
    s->used += bytes;
}

static void send_batch(struct staging *s, const struct net *net, const struct batch *b) {
    send(s, net->input->data, batch_row(b, 0), (size_t)b->B * batch_row_bytes(b));
    send(s, net->targets->data, b->targets, (size_t)(b->B * b->labels) * sizeof *b->targets);
    send(s, net->lengths->data, b->lengths, (size_t)(b->B * batch_documents(b)) * sizeof *b->lengths);
    if (net->links) send(s, net->links->data, b->links, (size_t)(b->B * b->words) * sizeof *b->links);
}

static void next(struct batches *b, int64_t step) {
    struct staging *s = &b->staging;
    const struct step_batches *made = feeder_take(&b->feeder, step);
    if (s->memory && s->in_use[s->slot]) place_mark_wait(s->place, s->read[s->slot]);
    s->used = 0;
    send_batch(s, b->net, &made->main);
    if (made->second.B) send_batch(s, b->second, &made->second);
    if (!s->memory) return;
    place_mark_set(s->place, s->read[s->slot]);
    s->in_use[s->slot] = true;
    s->slot = (s->slot + 1) % STAGING_SLOTS;
}

/* Does nothing, because next() has already sent the batch. */
static void take(struct batches *b, struct step_state *live) {
    (void)b, (void)live;
}

const struct way way_sent = {start, next, take};
