/* batches.c - the functions of batches.h and the two ways to make training batches. Sent batches: a thread of the host
 * makes them ahead of the steps and sends them into the inputs of the nets; on the CPU this is a copy, to a device the
 * copy is from pinned memory. Resident data: all training data are made once and stay on a device, where a graph copies
 * the batch of each step out of them. */
#include "harness/run/batches/batches.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_walk.h"
#include "harness/run/signals.h"

#define ROWS_AT_ONCE 4096 /* number of examples of resident data that the host makes before it sends them */

/* --- the interface ------------------------------------------------------------------------------------------------ */

void batches_init(struct batches *b, const struct graph_source *from, const struct step_nets *nets) {
    *b = (struct batches){.way = &way_sent, .from = *from, .nets = nets};
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
    for (int i = 0; i < STAGING_SLOTS; i++) place_mark_free(b->from.place, b->staging.read[i]);
    if (b->staging.memory) place_host_free(b->from.place, b->staging.memory);
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
        step_fill(f->spec, f->shapes, step, &f->slot[step % 2]);
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
    if (step + 1 < f->shapes->steps) ask(f, step + 1);
    pthread_mutex_unlock(&f->lock);
    return &f->slot[step % 2];
}

enum status feeder_start(struct feeder *f, const struct spec *s, const struct shapes *shapes, struct error *e) {
    size_t bytes = 2 * step_bytes(s);
    *f = (struct feeder){.spec = s, .shapes = shapes, .made = {-1, -1}, .wanted = -1};
    char *at = f->memory = malloc(bytes);
    if (!at) return fail(e, ST_MEMORY, "no memory for batches of %zu bytes", bytes);
    for (int i = 0; i < 2; i++) {
        f->slot[i] = step_sizes(s);
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

static enum status start_sending(struct batches *b, struct error *e) {
    struct staging *s = &b->staging;
    const struct place *place = b->from.place;
    *s = (struct staging){.place = place, .bytes = step_bytes(b->from.spec)};
    if (place->device != DEVICE_CPU) {
        s->memory = place_host_alloc(place, STAGING_SLOTS * s->bytes);
        if (!s->memory)
            return fail(e, ST_MEMORY, "no pinned memory for batches: %zu bytes were wanted", STAGING_SLOTS * s->bytes);
        for (int i = 0; i < STAGING_SLOTS; i++) s->read[i] = place_mark_create(place);
        TRY(place_wait(place, e));
    }
    return feeder_start(&b->feeder, b->from.spec, b->from.shapes, e);
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

static void next_sent(struct batches *b, int64_t step) {
    struct staging *s = &b->staging;
    const struct step_batches *made = feeder_take(&b->feeder, step);
    if (s->memory && s->in_use[s->slot]) place_mark_wait(s->place, s->read[s->slot]);
    s->used = 0;
    send_batch(s, &b->nets->main, &made->main);
    if (made->second.B) send_batch(s, &b->nets->second, &made->second);
    if (!s->memory) return;
    place_mark_set(s->place, s->read[s->slot]);
    s->in_use[s->slot] = true;
    s->slot = (s->slot + 1) % STAGING_SLOTS;
}

/* Does nothing, because next_sent has already sent the batch. */
static void take_sent(struct batches *b, struct step_state *live) {
    (void)b, (void)live;
}

const struct way way_sent = {start_sending, next_sent, take_sent};

/* --- resident data ------------------------------------------------------------------------------------------------ */

/* Describes the training data as one batch of all its examples. */
static struct step_batches whole_split(const struct spec *s) {
    struct step_batches whole = step_sizes(s);
    bool second = whole.second.B > 0;
    whole.main.B = s->task.shape.examples[SPLIT_TRAIN];
    if (second) whole.second.B = s->task.shape.second.examples;
    return whole;
}

size_t batches_resident_bytes(const struct spec *s, const struct shapes *shapes) {
    struct step_batches whole = whole_split(s);
    if (!graphs_can_take(s, shapes) || *s->config.curriculum) return 0; /* its examples depend on the step */
    return batch_bytes(&whole.main) + batch_bytes(&whole.second);
}

static void send_rows(const struct place *p, struct tensor *t, int64_t first, int64_t rows, const void *from) {
    size_t bytes = t ? tensor_bytes(t) / (size_t)t->dims[0] : 0;
    if (t) place_put(p, (char *)t->data + (size_t)first * bytes, from, (size_t)rows * bytes);
}

static enum status send_split(const struct spec *s, const struct place *p, const struct batch_tensors *split,
                              struct batch rows, bool second, struct error *e) {
    int64_t n = split->input->dims[0];
    rows.B = n < ROWS_AT_ONCE ? n : ROWS_AT_ONCE;
    char *memory = malloc(batch_bytes(&rows));
    if (!memory) return fail(e, ST_MEMORY, "no memory for %lld examples", (long long)rows.B);
    batch_lay(&rows, memory);
    for (int64_t first = 0; first < n; first += rows.B) {
        if (first && signal_received()) break;
        int64_t count = n - first < rows.B ? n - first : rows.B;
        split_fill(s, second, first, count, &rows);
        send_rows(p, split->input, first, count, batch_row(&rows, 0));
        send_rows(p, split->targets, first, count, rows.targets);
        send_rows(p, split->lengths, first, count, rows.lengths);
        send_rows(p, split->links, first, count, rows.links);
    }
    free(memory);
    TRY(place_wait(p, e));
    if (!signal_received() || n <= rows.B) return ST_OK;
    return fail(e, (enum status)(128 + signal_received()),
                "stopped while the training examples were made, before a step; the same command goes on");
}

/* Builds the graph that copies a batch into the inputs of the nets, which must be planned before, and sends the
 * data. */
static enum status start_resident(struct batches *b, struct error *e) {
    struct step_batches whole = whole_split(b->from.spec);
    struct batch_tensors split[2];
    TRY(graphs_build_take(&b->taken, &b->from, b->nets, split, e));
    TRY(graph_plan(&b->taken, e));
    TRY(send_split(b->from.spec, b->from.place, &split[0], whole.main, false, e));
    return split[1].input ? send_split(b->from.spec, b->from.place, &split[1], whole.second, true, e) : ST_OK;
}

/* Does nothing, because the device reads the number of the step from its state. */
static void next_resident(struct batches *b, int64_t step) {
    (void)b, (void)step;
}

static void take_resident(struct batches *b, struct step_state *live) {
    graph_forward(&b->taken, live);
}

const struct way way_resident = {start_resident, next_resident, take_resident};
