/* trainer.c - builds and frees a trainer: graphs, memory, batches and first weights. train.c uses it. */
#include "harness/run/trainer.h"

#include <stdlib.h>

#include "core/graph_plan.h"
#include "harness/run/weights.h"

#define MEMORY_SPARE 64 /* 1/64 of a device's memory stays free for libraries and captured graphs */

static size_t evaluation_bytes(const struct setup *s) {
    return split_store_bytes(s, SPLIT_VAL) + split_store_bytes(s, SPLIT_TEST);
}

static enum status open_place(struct trainer *t, const struct setup *setup, const char *device, struct error *e) {
    *t = (struct trainer){.setup = setup, .best_step = -1};
    t->state.seed = (uint64_t)setup->spec.config.seed;
    t->live = &t->state;
    TRY(place_open(&t->place, device, e));
    TRY(params_create(&t->params, e));
    if (t->place.device == DEVICE_CPU) return ST_OK;
    t->params.place = &t->place;
    TRY(place_reserve(&t->place, &t->there, sizeof *t->live, e));
    t->live = (struct step_state *)(void *)t->there.base;
    trainer_set_state(t);
    return ST_OK;
}

/* Computes how much device memory the run needs, before anything is allocated. Fails if the device has less. If the
 * device also has room for the training data, they are kept there. */
static enum status check_memory(struct trainer *t, struct error *e) {
    struct place_info info;
    size_t train, eval, data = batches_resident_bytes(t->setup), params = 4 * (size_t)t->params.floats * sizeof(real);
    if (t->place.device == DEVICE_CPU) return ST_OK;
    TRY(graph_measure(&t->train, &train, e));
    TRY(graph_measure(&t->eval, &eval, e));
    TRY(place_describe(&t->place, &info, e));
    size_t room = info.free > info.memory / MEMORY_SPARE ? info.free - info.memory / MEMORY_SPARE : 0;
    eval += evaluation_bytes(t->setup);
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

/* Makes the validation and test examples, and plans the memory of the evaluation graph. The examples come first: inputs
 * of the graph point at stored examples, so they need no memory. On the CPU, the evaluation graph uses the memory of
 * the training graph, whose inputs are filled anew at every step. On a device the evaluation graph has its own memory,
 * because a training step may still be in progress. */
static enum status start_evaluation(struct trainer *t, bool training, struct error *e) {
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
    size_t bytes = evaluation_bytes(t->setup), machine = machine_memory_bytes();
    size_t room = machine ? machine / SPLIT_STORE_PART : SIZE_MAX;
    if (machine && bytes > machine && t->place.device != DEVICE_CPU)
        return fail(
            e, ST_MEMORY,
            "%lld examples to validate on and %lld to test on take %zu MB but the machine has %zu MB; lower n_val, "
            "n_test or batch",
            (long long)shape->examples[SPLIT_VAL], (long long)shape->examples[SPLIT_TEST], bytes >> 20, machine >> 20);
    TRY(split_store_create(&t->val, t->setup, SPLIT_VAL, room, &t->place, e));
    TRY(split_store_create(&t->test, t->setup, SPLIT_TEST, room, &t->place, e));
    struct batch first;
    split_store_select(&t->val, 0, &t->eval_net, &first);
    if (t->place.device == DEVICE_CPU) t->eval.options.beside = &t->train;
    return graph_plan(&t->eval, e);
}

/* Gives the parameters their values before the first step: drawn from the seed, or read from a file. */
static enum status first_weights(struct trainer *t, struct error *e) {
    const struct config *c = &t->setup->spec.config;
    if (*c->from_xxh3) return weights_start(&t->params, c->from, c->from_xxh3, e);
    params_init(&t->params, (uint64_t)c->seed);
    return ST_OK;
}

enum status trainer_create(struct trainer *t, const struct setup *setup, struct error *e) {
    TRY(open_place(t, setup, setup->spec.config.device, e));
    const struct place *place = &t->place;
    TRY(graphs_build_training(&t->train, setup, place, &t->params, &t->train_net, &t->second_net, e));
    TRY(graphs_build_evaluation(&t->eval, setup, place, &t->params, &t->eval_net, e));
    batches_init(&t->batches, setup, place, &t->train_net, &t->second_net);
    TRY(check_memory(t, e));
    TRY(params_reserve(&t->params, true, e));
    TRY(graph_plan(&t->train, e));
    TRY(batches_start(&t->batches, e));
    TRY(start_evaluation(t, true, e));
    TRY(graphs_build_update(&t->update, setup, place, &t->params, tensor_real(t->train_net.loss), e));
    TRY(graph_plan(&t->update, e));
    TRY(first_weights(t, e));
    struct graph_list graphs = trainer_graphs(t);
    return graphs_check_forced(&graphs, setup, e);
}

enum status trainer_create_evaluation(struct trainer *t, const struct setup *setup, struct error *e) {
    TRY(open_place(t, setup, "cpu", e));
    TRY(graphs_build_evaluation(&t->eval, setup, &t->place, &t->params, &t->eval_net, e));
    TRY(params_reserve(&t->params, false, e));
    return start_evaluation(t, false, e);
}

enum status trainer_create_initial(struct trainer *t, const struct setup *setup, struct error *e) {
    TRY(open_place(t, setup, "cpu", e));
    TRY(graphs_build_evaluation(&t->eval, setup, &t->place, &t->params, &t->eval_net, e));
    TRY(params_reserve(&t->params, false, e));
    return first_weights(t, e);
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
