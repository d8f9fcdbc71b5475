/* trainer.c - graphs, data and optimiser of one run; see trainer.h. */
#include <stdio.h>
#include <math.h>
#include <string.h>

#include "core/graph_plan.h"
#include "core/graph_walk.h"
#include "harness/run/signals.h"
#include "harness/run/trainer.h"
#include "harness/run/weights.h"
#include "harness/store/clock.h"

#define SYNC_EVERY     50    /* steps queued on a device before the host looks at their losses */
#define FINITE_AT_ONCE 16384 /* values fetched together in the search for one that is not finite */
#define MEMORY_SPARE   64    /* of a device's memory, this part is left to the libraries and to captures */

/* What lives beside the graphs: tables of the metrics, predictions of a batch and, for training, the best
 * parameters. */
static enum status create_tables(struct trainer *t, bool training, struct error *e) {
    const struct task_shape *shape = &t->setup->spec.task.shape;
    int64_t longest = shape->T_eval > shape->T ? shape->T_eval : shape->T, B = t->setup->spec.config.batch;
    size_t best_bytes = training ? (size_t)t->params.floats * sizeof(real) : 0;
    size_t ids = (size_t)(B * longest) * sizeof(int32_t) + ARENA_ALIGN;
    size_t bytes = best_bytes + metrics_bytes(shape->vocab_out, longest) + ids + 4096;
    TRY(arena_reserve(&t->host, bytes, e));
    if (training) t->best = arena_alloc(&t->host, best_bytes);
    t->predictions = arena_alloc(&t->host, ids);
    if ((training && !t->best) || !t->predictions) return fail(e, ST_MEMORY, "no memory for the best parameters");
    TRY(metrics_create(&t->metrics, shape->vocab_out, longest, &t->host, e));
    t->metrics.documents = task_documents(shape);
    return ST_OK;
}

static enum status open_place(struct trainer *t, const char *device, struct error *e) {
    *t = (struct trainer){.setup = t->setup, .best_step = -1};
    t->state.seed = (uint64_t)t->setup->spec.config.seed;
    t->live = &t->state;
    TRY(place_open(&t->place, device, e));
    if (t->place.device == DEVICE_CPU) return ST_OK;
    TRY(place_reserve(&t->place, &t->there, sizeof *t->live, e));
    t->live = (struct step_state *)(void *)t->there.base;
    trainer_set_state(t);
    return ST_OK;
}

static size_t evaluation_bytes(const struct setup *s) {
    return split_store_bytes(s, SPLIT_VAL) + split_store_bytes(s, SPLIT_TEST);
}

/* How much of a device's memory the run takes, before it takes it; more than there is ends the run here. The training
 * data lies there whole if there is room. */
static enum status estimate_memory(struct trainer *t, struct error *e) {
    struct place_info info;
    size_t train, eval, params = 4 * (size_t)t->params.floats * sizeof(real);
    if (t->place.device == DEVICE_CPU) return ST_OK;
    TRY(graph_measure(&t->train, &train, e));
    TRY(graph_measure(&t->eval, &eval, e));
    TRY(place_describe(&t->place, &info, e));
    size_t room = info.free > info.memory / MEMORY_SPARE ? info.free - info.memory / MEMORY_SPARE : 0;
    eval += evaluation_bytes(t->setup);
    t->device_bytes = train + eval + params;
    if (t->device_bytes + resident_bytes(t->setup) <= room) t->resident = resident_bytes(t->setup);
    t->device_bytes += t->resident;
    if (t->device_bytes <= room) return ST_OK;
    return fail(
        e, ST_MEMORY,
        "the run needs %zu MB of device memory (activations %zu MB, evaluation %zu MB, parameters %zu MB) but cuda:%d "
        "has %zu MB to give; lower batch, length or width",
        t->device_bytes >> 20, train >> 20, eval >> 20, params >> 20, t->place.index, room >> 20);
}

/* The splits that are evaluated on. A device has them whole, and the host as well, from where they are sent. */
static enum status create_stores(struct trainer *t, struct error *e) {
    const int64_t *n = t->setup->spec.task.shape.examples;
    size_t bytes = evaluation_bytes(t->setup), machine = machine_memory_bytes();
    size_t room = machine ? machine / SPLIT_STORE_PART : SIZE_MAX;
    if (machine && bytes > machine && t->place.device != DEVICE_CPU)
        return fail(
            e, ST_MEMORY,
            "%lld examples to validate on and %lld to test on take %zu MB but the machine has %zu MB; lower n_val, "
            "n_test or batch",
            (long long)n[SPLIT_VAL], (long long)n[SPLIT_TEST], bytes >> 20, machine >> 20);
    TRY(split_store_create(&t->val, t->setup, SPLIT_VAL, room, &t->place, e));
    return split_store_create(&t->test, t->setup, SPLIT_TEST, room, &t->place, e);
}

/* The plan of the evaluation graph leaves its inputs out: they lie in the stores, but for those of buckets. On the CPU
 * the rest lies in the memory of the training graph, which fills its inputs anew for every step; on a device a walk may
 * still be under way there. */
static enum status plan_evaluation(struct trainer *t, struct error *e) {
    struct batch first;
    TRY(create_stores(t, e));
    if (!t->parts.n) split_store_select(&t->val, 0, &t->eval_net, &first);
    if (t->place.device == DEVICE_CPU) t->eval.options.beside = &t->train;
    TRY(graph_plan(&t->eval, e));
    return buckets_plan(&t->parts, &t->params, e);
}

/* Before the first step: drawn from the seed, or those of a file. */
static enum status first_weights(struct trainer *t, struct error *e) {
    const struct config *c = &t->setup->spec.config;
    if (*c->from_xxh3) return weights_start(&t->params, c->from, c->from_xxh3, e);
    params_init(&t->params, (uint64_t)c->seed);
    return ST_OK;
}

struct graph_list trainer_graphs(const struct trainer *t) {
    struct graph_list graphs = {{&t->train, &t->eval, &t->update, &t->data.take}, t->resident ? 4 : 3};
    for (int i = 0; i < t->buckets.n - 1; i++) graphs.list[graphs.n++] = &t->buckets.graph[i];
    for (int i = 0; i < t->parts.n - 1; i++) graphs.list[graphs.n++] = &t->parts.graph[i];
    return graphs;
}

static void add_cost(struct cost *cost, const struct graph *g, enum pass pass) {
    struct cost more = graph_cost(g, pass);
    cost->flops += more.flops;
    cost->bytes += more.bytes;
}

struct cost trainer_step_cost(const struct trainer *t) {
    struct cost cost = {0, 0};
    add_cost(&cost, &t->train, PASS_FORWARD);
    add_cost(&cost, &t->train, PASS_BACKWARD);
    add_cost(&cost, &t->update, PASS_FORWARD);
    if (t->resident) add_cost(&cost, &t->data.take, PASS_FORWARD);
    return cost;
}

static enum status build_evaluation(struct trainer *t, struct error *e) {
    TRY(graphs_build_evaluation(&t->eval, t->setup, &t->place, &t->params, &t->eval_net, e));
    return buckets_create(&t->parts, t->setup, SPLIT_VAL, &t->params, &t->eval, &t->eval_net, e);
}

enum status trainer_create(struct trainer *t, const struct setup *setup, struct error *e) {
    t->setup = setup;
    TRY(open_place(t, setup->spec.config.device, e));
    TRY(params_create(&t->params, e));
    t->params.place = &t->place;
    TRY(graphs_build_training(&t->train, setup, &t->place, &t->params, &t->train_net, &t->second_net, e));
    TRY(buckets_create(&t->buckets, setup, SPLIT_TRAIN, &t->params, &t->train, &t->train_net, e));
    TRY(build_evaluation(t, e));
    TRY(estimate_memory(t, e));
    TRY(params_reserve(&t->params, true, e));
    TRY(create_tables(t, true, e));
    TRY(graph_plan(&t->train, e));
    TRY(buckets_plan(&t->buckets, &t->params, e));
    TRY(plan_evaluation(t, e));
    real *loss = t->buckets.n ? &t->buckets.loss : tensor_real(t->train_net.loss);
    TRY(graphs_build_update(&t->update, setup, &t->place, &t->params, loss, e));
    TRY(graph_plan(&t->update, e));
    TRY(first_weights(t, e));
    if (t->resident) TRY(resident_create(&t->data, setup, &t->place, &t->train_net, &t->second_net, e));
    struct graph_list graphs = trainer_graphs(t);
    TRY(graphs_check_forced(&graphs, setup, e));
    if (t->resident) return ST_OK;
    TRY(staging_start(&t->staging, &t->place, feeder_bytes(setup), e));
    return feeder_start(&t->feeder, setup, e);
}

enum status trainer_create_evaluation(struct trainer *t, const struct setup *setup, struct error *e) {
    t->setup = setup;
    TRY(open_place(t, "cpu", e));
    TRY(params_create(&t->params, e));
    TRY(build_evaluation(t, e));
    TRY(params_reserve(&t->params, false, e));
    TRY(create_tables(t, false, e));
    return plan_evaluation(t, e);
}

enum status trainer_create_initial(struct trainer *t, const struct setup *setup, struct error *e) {
    t->setup = setup;
    TRY(open_place(t, "cpu", e));
    TRY(params_create(&t->params, e));
    TRY(graphs_build_evaluation(&t->eval, setup, &t->place, &t->params, &t->eval_net, e));
    TRY(params_reserve(&t->params, false, e));
    return first_weights(t, e);
}

/* What is still queued, of a trainer that was not made to its end, uses what is given back here. */
void trainer_free(struct trainer *t) {
    place_wait(&t->place, NULL);
    feeder_stop(&t->feeder);
    staging_stop(&t->staging);
    resident_free(&t->data);
    split_store_free(&t->val);
    split_store_free(&t->test);
    place_capture_free(&t->place, t->capture);
    buckets_free(&t->buckets);
    buckets_free(&t->parts);
    graph_free(&t->train);
    graph_free(&t->eval);
    graph_free(&t->update);
    params_free(&t->params);
    arena_free(&t->there);
    arena_free(&t->host);
    place_close(&t->place);
}

/* --- data --------------------------------------------------------------------------------------------------------- */

/* A batch into the inputs of a net. */
static void put_batch(struct trainer *t, const struct net *net, const struct batch *b) {
    staging_send(&t->staging, net->input->data, batch_row(b, 0), (size_t)b->B * batch_row_bytes(b));
    staging_send(&t->staging, net->targets->data, b->targets, (size_t)(b->B * b->labels) * sizeof *b->targets);
    staging_send(&t->staging, net->lengths->data, b->lengths, (size_t)(b->B * batch_documents(b)) * sizeof *b->lengths);
    if (net->links) staging_send(&t->staging, net->links->data, b->links, (size_t)(b->B * b->words) * sizeof *b->links);
}

/* Sends the batch of a step, unless the step takes it itself. */
static void fill_step(struct trainer *t, int64_t step) {
    if (t->resident) return;
    const struct step_batches *b = feeder_take(&t->feeder, step);
    if (t->buckets.n) {
        buckets_sort(&t->buckets, &b->main);
        return;
    }
    staging_begin(&t->staging);
    put_batch(t, &t->train_net, &b->main);
    if (b->second.B) put_batch(t, &t->second_net, &b->second);
    staging_end(&t->staging);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static void walk_step(struct trainer *t) {
    if (t->resident) graph_forward(&t->data.take, t->live);
    if (t->buckets.n) {
        buckets_walk(&t->buckets, t->live);
    } else {
        graph_forward(&t->train, t->live);
        graph_backward(&t->train, t->live);
    }
    graph_forward(&t->update, t->live);
}

/* A step that cannot be captured is walked each time: the same bits, more launches. */
static void capture_step(struct trainer *t) {
    while (!t->capture && place_capture_begin(&t->place)) {
        walk_step(t);
        t->capture = place_capture_end(&t->place);
    }
    if (*place_capture_failure(&t->place))
        fprintf(stderr, "%s: the step cannot be captured%s, which is slower: %s\n", t->setup->spec.config.device,
                t->capture ? " with launches that overlap or branch, it is without" : ", every step is walked",
                place_capture_failure(&t->place));
}

/* The first step on a device loads its kernels; the second is captured, and from then on replayed. */
static void queue_step(struct trainer *t) {
    if (t->steps_queued == 1) capture_step(t);
    if (t->capture)
        place_replay(&t->place, t->capture);
    else
        walk_step(t);
    t->steps_queued++;
    t->state.step++;
}

void trainer_step(struct trainer *t) {
    double start = time_now_s();
    fill_step(t, t->state.step);
    double filled = time_now_s();
    if (t->place.device == DEVICE_CPU)
        walk_step(t);
    else
        queue_step(t);
    t->data_s += filled - start;
    t->step_s += time_now_s() - filled;
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

/* --- evaluation --------------------------------------------------------------------------------------------------- */

/* Forward through the batch of a store that begins with example `first`: predictions and loss. *b is the batch; returns
 * how many of its rows are in use. */
static int64_t walk_batch(struct trainer *t, struct split_store *store, int64_t first, struct batch *b, real *loss) {
    if (!t->parts.n) {
        int64_t rows = split_store_select(store, first, &t->eval_net, b);
        graph_forward(&t->eval, t->live);
        graph_get(&t->eval, t->eval_net.predictions, t->predictions);
        graph_get(&t->eval, t->eval_net.loss, loss);
        return rows;
    }
    int64_t rows = split_store_rows(store, first, b);
    buckets_sort(&t->parts, b);
    buckets_predict(&t->parts, t->live, t->predictions);
    *loss = t->parts.loss;
    return rows;
}

bool trainer_evaluate(struct trainer *t, enum split split, struct scores *scores) {
    double start = time_now_s();
    const struct task_shape *shape = &t->setup->spec.task.shape;
    struct split_store *store = split == SPLIT_TEST ? &t->test : &t->val;
    int64_t B = t->setup->spec.config.batch, n = shape->examples[split];
    metrics_reset(&t->metrics);
    bool whole = true;
    for (int64_t first = 0; first < n && whole; first += B) {
        real loss = (real)NAN;
        struct batch b;
        int64_t rows = walk_batch(t, store, first, &b, &loss);
        metrics_add(&t->metrics, b.targets, t->predictions, b.lengths, rows, b.labels, (double)loss);
        whole = first + B >= n || !signal_received();
    }
    if (whole) *scores = metrics_scores(&t->metrics);
    t->eval_s += time_now_s() - start;
    return whole;
}

double trainer_metric(const struct trainer *t, const struct scores *scores) {
    return t->setup->spec.task.shape.metric == METRIC_MACRO_ACC ? scores->macro_acc : scores->acc;
}

/* --- the search for the first bad tensor -------------------------------------------------------------------------- */

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

/* The first trained parameter whose part of an array is not finite. Running statistics are written before a step
 * freezes: an op is to blame. */
static const char *bad_param(const struct trainer *t, const real *array) {
    for (int i = 0; i < t->params.n; i++) {
        const struct param *p = &t->params.list[i];
        if (p->spec.group != PARAM_CONST && !all_finite(t, array + p->offset, p->count)) return p->name;
    }
    return NULL;
}

/* The input of a net where it is of values, and they are not finite. */
static const char *bad_input(const struct trainer *t, const struct net *net) {
    const struct tensor *x = net->input;
    bool values = x && x->dtype == DT_REAL;
    return values && !all_finite(t, tensor_real(x), tensor_count(x)) ? x->name : NULL;
}

/* Walks a graph forward op by op. */
static const char *bad_in_walk(const struct trainer *t, const struct graph *g, struct step_state *state) {
    struct exec x = {.place = &t->place, .training = true, .state = state};
    for (int i = 0; i < g->n_calls; i++) {
        struct call *c = &g->calls[i];
        c->kernel->forward(c, &x);
        for (int j = 0; j < c->n_out; j++)
            if (c->out[j]->dtype == DT_REAL && !all_finite(t, tensor_real(c->out[j]), tensor_count(c->out[j])))
                return c->out[j]->name;
    }
    return NULL;
}

/* The parts of the step of the state one by one; the gradient is looked at behind the last. */
static const char *bad_in_buckets(struct trainer *t) {
    struct bucket part;
    for (int64_t i = 0; i < t->buckets.parts; i++) {
        if (!buckets_begin(&t->buckets, i, t->live, &part)) continue;
        const char *bad = bad_input(t, part.net);
        if (!bad) bad = bad_in_walk(t, part.graph, &part.state);
        if (bad) return bad;
    }
    buckets_walk(&t->buckets, t->live);
    return bad_param(t, t->params.grad);
}

/* Walks the step of the state. */
static const char *bad_in_step(struct trainer *t) {
    fill_step(t, t->state.step);
    if (t->buckets.n) return bad_in_buckets(t);
    if (t->resident) graph_forward(&t->data.take, t->live);
    const char *bad = bad_input(t, &t->train_net);
    if (!bad) bad = bad_input(t, &t->second_net);
    if (!bad) bad = bad_in_walk(t, &t->train, t->live);
    if (bad) return bad;
    graph_backward(&t->train, t->live);
    return bad_param(t, t->params.grad);
}

const char *trainer_find_nonfinite(struct trainer *t, int64_t step) {
    int64_t reached = t->state.step;
    const char *bad = bad_param(t, t->params.value);
    if (bad) return bad;
    t->state.step = step; /* dropout's masks and, on a device, the batch depend on it */
    trainer_set_state(t);
    bad = bad_in_step(t);
    t->state.step = reached;
    trainer_set_state(t);
    return bad;
}
