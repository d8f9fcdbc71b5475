/* trainer.c - the parts of a trainer that train.c uses: its place, memory, evaluation and first weights, the queue of
 * steps of a device, and the search for a value that is not finite. */
#include "harness/run/trainer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/graph_plan.h"
#include "core/graph_walk.h"
#include "harness/run/products.h"
#include "harness/run/weights.h"
#include "harness/store/clock.h"

#define SYNC_EVERY   50 /* largest number of steps that are queued before their loss is read */
#define MEMORY_SPARE 64 /* 1/64 of a device's memory stays free for libraries and captured graphs */

#define FINITE_AT_ONCE 16384 /* number of values that are fetched together to be checked */

static size_t evaluation_bytes(const struct spec *s) {
    return split_store_bytes(s, SPLIT_VAL) + split_store_bytes(s, SPLIT_TEST);
}

enum status trainer_open_place(struct trainer *t, const struct setup *setup, const char *device, struct error *e) {
    *t = (struct trainer){.setup = setup, .best_step = -1};
    t->state.seed = (uint64_t)setup->spec.config.seed;
    t->live = &t->state;
    TRY(place_open(&t->place, device, e));
    products_begin(&t->place);
    TRY(params_create(&t->params, e));
    if (t->place.device == DEVICE_CPU) return ST_OK;
    t->params.place = &t->place;
    TRY(place_reserve(&t->place, &t->there, sizeof *t->live, e));
    t->live = (struct step_state *)(void *)t->there.base;
    trainer_set_state(t);
    return ST_OK;
}

enum status trainer_check_memory(struct trainer *t, struct error *e) {
    struct place_info info;
    size_t train, eval, data = batches_resident_bytes(&t->setup->spec, &t->setup->shapes),
                        params = 4 * (size_t)t->params.floats * sizeof(real);
    if (t->place.device == DEVICE_CPU) return ST_OK;
    TRY(graph_measure(&t->train, &train, e));
    TRY(graph_measure(&t->eval, &eval, e));
    TRY(place_describe(&t->place, &info, e));
    size_t room = info.free > info.memory / MEMORY_SPARE ? info.free - info.memory / MEMORY_SPARE : 0;
    eval += evaluation_bytes(&t->setup->spec);
    t->device_bytes = train + eval + params;
    if (data && t->device_bytes + data <= room) {
        batches_keep_resident(&t->batches);
        t->device_bytes += data;
    }
    if (t->device_bytes <= room) return ST_OK;
    return fail(
        e, ST_MEMORY,
        "the run needs %zu MB of device memory (activations %zu MB, evaluation %zu MB, parameters %zu MB) but cuda:%d "
        "has %zu MB to give; lower batch, length or width",
        t->device_bytes >> 20, train >> 20, eval >> 20, params >> 20, t->place.index, room >> 20);
}

enum status trainer_start_evaluation(struct trainer *t, bool training, struct error *e) {
    const struct task_shape *shape = &t->setup->spec.task.shape;
    int64_t longest = shape->T_eval > shape->T ? shape->T_eval : shape->T, B = t->setup->spec.config.batch;
    size_t best_bytes = training ? (size_t)t->params.floats * sizeof(real) : 0;
    size_t ids = (size_t)(B * longest) * sizeof(int32_t) + ARENA_ALIGN;
    TRY(arena_reserve(&t->host, best_bytes + metrics_bytes(shape->vocab_out, longest) + ids + 4096, e));
    if (training) t->best = arena_alloc(&t->host, best_bytes);
    t->predictions = arena_alloc(&t->host, ids);
    if ((training && !t->best) || !t->predictions) return fail(e, ST_MEMORY, "no memory for the best parameters");
    TRY(metrics_create(&t->metrics, shape->vocab_out, longest, &t->host, e));
    t->metrics.documents = task_documents(shape);

    /* If the run uses a device, the device and the host both store all these examples. */
    size_t bytes = evaluation_bytes(&t->setup->spec), machine = machine_memory_bytes();
    size_t room = machine ? machine / SPLIT_STORE_PART : SIZE_MAX;
    if (machine && bytes > machine && t->place.device != DEVICE_CPU)
        return fail(
            e, ST_MEMORY,
            "%lld examples to validate on and %lld to test on take %zu MB but the machine has %zu MB; lower n_val, "
            "n_test or batch",
            (long long)shape->examples[SPLIT_VAL], (long long)shape->examples[SPLIT_TEST], bytes >> 20, machine >> 20);
    TRY(split_store_create(&t->val, &t->setup->spec, SPLIT_VAL, room, &t->place, e));
    TRY(split_store_create(&t->test, &t->setup->spec, SPLIT_TEST, room, &t->place, e));
    struct batch first;
    split_store_select(&t->val, 0, &t->eval_net, &first);
    if (t->place.device == DEVICE_CPU) t->eval.options.beside = &t->train;
    return graph_plan(&t->eval, e);
}

enum status trainer_first_weights(struct trainer *t, struct error *e) {
    const struct config *c = &t->setup->spec.config;
    if (*c->from_xxh3) return weights_start(&t->params, c->from, c->from_xxh3, e);
    params_init(&t->params, (uint64_t)c->seed);
    return ST_OK;
}

enum status trainer_create_evaluation(struct trainer *t, const struct setup *setup, struct error *e) {
    TRY(trainer_open_place(t, setup, "cpu", e));
    const struct graph_source from = {&setup->spec, &setup->shapes, &t->place};
    TRY(graphs_build_evaluation(&t->eval, &from, &t->params, &t->eval_net, e));
    TRY(params_reserve(&t->params, false, e));
    return trainer_start_evaluation(t, false, e);
}

enum status trainer_create_initial(struct trainer *t, const struct setup *setup, struct error *e) {
    TRY(trainer_open_place(t, setup, "cpu", e));
    const struct graph_source from = {&setup->spec, &setup->shapes, &t->place};
    TRY(graphs_build_evaluation(&t->eval, &from, &t->params, &t->eval_net, e));
    TRY(params_reserve(&t->params, false, e));
    return trainer_first_weights(t, e);
}

/* Waits first, because queued steps may still use the memory that is freed. */
void trainer_free(struct trainer *t) {
    place_wait(&t->place, NULL);
    batches_free(&t->batches);
    split_store_free(&t->val);
    split_store_free(&t->test);
    place_capture_free(&t->place, t->capture);
    graph_free(&t->train);
    graph_free(&t->eval);
    graph_free(&t->update);
    params_free(&t->params);
    arena_free(&t->there);
    arena_free(&t->host);
    place_close(&t->place);
}

struct trainer *trainer_open(enum status (*create)(struct trainer *t, const struct setup *s, struct error *e),
                             const struct setup *setup, struct error *e) {
    struct trainer *t = calloc(1, sizeof *t);
    if (!t) fail(e, ST_MEMORY, "no memory for a trainer");
    if (!t || create(t, setup, e) == ST_OK) return t;
    trainer_close(t);
    return NULL;
}

void trainer_close(struct trainer *t) {
    if (t) trainer_free(t);
    free(t);
}

struct graph_list trainer_graphs(const struct trainer *t) {
    struct graph_list graphs = {{&t->train, &t->eval, &t->update}, 3};
    if (t->batches.taken.n_calls) graphs.list[graphs.n++] = &t->batches.taken;
    return graphs;
}

struct cost trainer_step_cost(const struct trainer *t) {
    const struct cost parts[] = {graph_cost(&t->train, PASS_FORWARD), graph_cost(&t->train, PASS_BACKWARD),
                                 graph_cost(&t->update, PASS_FORWARD), graph_cost(&t->batches.taken, PASS_FORWARD)};
    struct cost sum = {0, 0};
    for (int i = 0; i < 4; i++) {
        sum.flops += parts[i].flops;
        sum.bytes += parts[i].bytes;
    }
    return sum;
}

/* --- steps of a device -------------------------------------------------------------------------------------------- */

/* Captures the kernel launches of a step on a device, so that later steps can replay them. If a step cannot be
 * captured, every step launches its kernels again, which is slower but gives the same bits. */
static void capture_step(struct trainer *t, void (*walk)(struct trainer *t)) {
    while (!t->capture && place_capture_begin(&t->place)) {
        walk(t);
        t->capture = place_capture_end(&t->place);
    }
    if (*place_capture_failure(&t->place))
        fprintf(stderr, "%s: the step cannot be captured%s: %s\n", t->setup->spec.config.device,
                t->capture ? " with overlapping launches and is captured without them, which is slower"
                           : ", so every step launches its kernels again, which is slower",
                place_capture_failure(&t->place));
}

/* The device increases its own copy of state.step, so the host increases this one here. */
void trainer_queue(struct trainer *t, void (*walk)(struct trainer *t)) {
    if (t->steps_queued == 1) capture_step(t, walk);
    bool first = t->steps_queued == 0; /* loads the kernels and times products */
    if (first) place_load_begin(&t->place);
    if (t->capture)
        place_replay(&t->place, t->capture);
    else
        walk(t);
    if (first) place_load_end(&t->place);
    if (first) products_save(&t->place);
    t->steps_queued++;
    t->state.step++;
}

enum status trainer_sync(struct trainer *t, struct error *e) {
    if (t->live == &t->state) return ST_OK;
    double start = time_now_s();
    place_get(&t->place, &t->state, t->live, sizeof t->state);
    t->step_s += time_now_s() - start;
    return place_wait(&t->place, e);
}

void trainer_set_state(struct trainer *t) {
    if (t->live != &t->state) place_put(&t->place, t->live, &t->state, sizeof t->state);
}

int64_t trainer_sync_every(const struct trainer *t) {
    return t->place.device == DEVICE_CPU ? 1 : SYNC_EVERY;
}

/* --- values that are not finite ----------------------------------------------------------------------------------- */

static bool all_finite(const struct trainer *t, const real *x, int64_t n) {
    real part[FINITE_AT_ONCE];
    for (int64_t at = 0; at < n; at += FINITE_AT_ONCE) {
        int64_t count = n - at < FINITE_AT_ONCE ? n - at : FINITE_AT_ONCE;
        place_get(&t->place, part, x + at, (size_t)count * sizeof *part);
        for (int64_t i = 0; i < count; i++)
            if (!isfinite(part[i])) return false;
    }
    return true;
}

/* Names the first trained parameter whose part of an array is not finite. Running statistics are not checked: they are
 * written by an op before the step stops, and then this op is named. */
static const char *bad_param(const struct trainer *t, const real *array) {
    for (int i = 0; i < t->params.n; i++) {
        const struct param *p = &t->params.list[i];
        if (p->spec.group != PARAM_CONST && !all_finite(t, array + p->offset, p->count)) return p->name;
    }
    return NULL;
}

/* Names the input of a net if it is real-valued and not finite; else NULL. */
static const char *bad_input(const struct trainer *t, const struct net *net) {
    const struct tensor *x = net->input;
    bool values = x && x->dtype == DT_REAL;
    return values && !all_finite(t, tensor_real(x), tensor_count(x)) ? x->name : NULL;
}

/* Names the first tensor of the current step that is not finite. It checks the inputs, then each op's output, then each
 * gradient. */
static const char *bad_in_step(struct trainer *t) {
    struct exec x = {.place = &t->place, .training = true, .state = t->live};
    batches_next(&t->batches, t->state.step);
    batches_take(&t->batches, t->live);
    const char *bad = bad_input(t, &t->nets.main);
    if (!bad) bad = bad_input(t, &t->nets.second);
    if (bad) return bad;
    for (struct call *c = t->train.calls; c < t->train.calls + t->train.n_calls; c++) {
        c->kernel->forward(c, &x);
        for (int j = 0; j < c->n_out; j++)
            if (c->out[j]->dtype == DT_REAL && !all_finite(t, tensor_real(c->out[j]), tensor_count(c->out[j])))
                return c->out[j]->name;
    }
    graph_backward(&t->train, t->live);
    return bad_param(t, t->params.grad);
}

const char *trainer_find_nonfinite(struct trainer *t, int64_t step) {
    int64_t reached = t->state.step;
    const char *bad = bad_param(t, t->params.value);
    if (bad) return bad;
    t->state.step = step; /* dropout's masks depend on the step, and so does the batch on a device */
    trainer_set_state(t);
    bad = bad_in_step(t);
    t->state.step = reached;
    trainer_set_state(t);
    return bad;
}
