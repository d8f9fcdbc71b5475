/* trainer.c - graphs, data and optimiser of one run; see train.h. */
#include <math.h>
#include <string.h>

#include "harness/train.h"
#include "kernels/kernel.h"

static struct graph_options graph_options_of(const struct setup *s, bool training) {
    return (struct graph_options){
        .training = training, .kernel = s->config.kernel, .kernels = kernel_list()};
}

/* A second net on the same parameters for the strings of another length: the root becomes the sum of both losses. What is
 * recorded as the loss stays that of the main batch. */
static enum status build_extra(struct trainer *t, struct graph *g, struct error *e) {
    const struct setup *s = t->setup;
    struct net_shape net_shape = setup_net_shape(s, SPLIT_TRAIN);
    struct model_choice choice = s->parsed;
    struct tensor *main_root = g->root;
    net_shape.B = setup_extra_batch(s);
    net_shape.T = s->task.shape.T_extra;
    TRY(net_build(&t->extra_net, g, &s->config.net, &choice, &net_shape, e));
    graph_set_root(g, add(g, main_root, t->extra_net.loss));
    return ST_OK;
}

static enum status build_net(struct trainer *t, struct graph *g, struct net *net, bool training, struct error *e) {
    const struct setup *s = t->setup;
    struct graph_options options = graph_options_of(s, training);
    struct net_shape net_shape = setup_net_shape(s, training ? SPLIT_TRAIN : SPLIT_VAL);
    struct model_choice choice = s->parsed;
    TRY(graph_create(g, &options, &t->params, e));
    TRY(net_build(net, g, &s->config.net, &choice, &net_shape, e));
    return training && setup_extra_batch(s) ? build_extra(t, g, e) : ST_OK;
}

/* Runs of neighbouring parameters with the same decay; padding between them is harmless zeros. */
static enum status decay_segments(struct trainer *t, struct adamw_attr *attr, struct error *e) {
    struct adamw_segment *list = arena_alloc(&t->host, (size_t)(t->params.n + 1) * sizeof *list);
    if (!list) return fail(e, ST_FAIL, "no memory for the optimiser's table");
    int n = 0;
    for (int i = 0; i < t->params.n; i++) {
        const struct param *p = &t->params.list[i];
        if (p->spec.group == PARAM_CONST) continue;
        double decay = p->spec.group == PARAM_DECAY ? t->setup->config.decay : 0;
        bool joins = n && list[n - 1].decay == decay && i && t->params.list[i - 1].spec.group != PARAM_CONST;
        if (joins)
            list[n - 1].count = p->offset + p->count - list[n - 1].offset;
        else
            list[n++] = (struct adamw_segment){p->offset, p->count, decay};
    }
    attr->segments = list;
    attr->n_segments = n;
    return ST_OK;
}

/* An input of the update graph that lives in the parameters' block, not in the graph's memory. */
static struct tensor *borrowed(struct graph *g, const char *name, real *data, int64_t n) {
    struct tensor *t = graph_input(g, name, 1, &n, false);
    if (t) t->data = data;
    return t;
}

static enum status build_update(struct trainer *t, struct error *e) {
    struct graph_options options = {.kernels = kernel_list()};
    const struct config *c = &t->setup->config;
    struct graph *g = &t->update;
    struct params *p = &t->params;
    struct adamw_attr attr = {.beta1 = c->beta1, .beta2 = c->beta2, .eps = 1e-8, .clip = c->clip};
    struct schedule schedule = setup_schedule(t->setup);
    TRY(graph_create(g, &options, NULL, e));
    TRY(decay_segments(t, &attr, e));
    struct tensor *grad = borrowed(g, "gradient", p->grad, p->floats);
    step_begin(g, borrowed(g, "loss", tensor_real(t->train_net.loss), 1), grad, &schedule);
    adamw(g, borrowed(g, "values", p->value, p->floats), grad, borrowed(g, "moment1", p->moment1, p->floats),
          borrowed(g, "moment2", p->moment2, p->floats), &attr);
    return graph_plan(g, e);
}

/* What lives beside the graphs: tables of the metrics, lengths of a batch and, for training, the best parameters and room
 * for the optimiser's table. */
static enum status create_tables(struct trainer *t, bool training, struct error *e) {
    const struct task_shape *shape = &t->setup->task.shape;
    int64_t longest = shape->T_eval > shape->T ? shape->T_eval : shape->T;
    size_t best_bytes = training ? (size_t)t->params.floats * sizeof(real) : 0;
    size_t segments = training ? (size_t)(t->params.n + 1) * sizeof(struct adamw_segment) : 0;
    size_t lengths = (size_t)t->setup->config.batch * sizeof *t->lengths;
    TRY(arena_reserve(&t->host, best_bytes + metrics_bytes(shape->vocab_out, longest) + lengths + segments + 4096, e));
    if (training) t->best = arena_alloc(&t->host, best_bytes);
    t->lengths = arena_alloc(&t->host, lengths);
    if ((training && !t->best) || !t->lengths) return fail(e, ST_FAIL, "no memory for the best parameters");
    return metrics_create(&t->metrics, shape->vocab_out, longest, &t->host, e);
}

enum status trainer_create(struct trainer *t, const struct setup *setup, struct error *e) {
    *t = (struct trainer){.setup = setup, .best_step = -1};
    t->state.seed = (uint64_t)setup->config.seed;
    TRY(params_create(&t->params, e));
    TRY(build_net(t, &t->train, &t->train_net, true, e));
    TRY(build_net(t, &t->eval, &t->eval_net, false, e));
    TRY(params_reserve(&t->params, true, e));
    TRY(create_tables(t, true, e));
    TRY(graph_plan(&t->train, e));
    TRY(graph_plan(&t->eval, e));
    TRY(build_update(t, e));
    params_init(&t->params, (uint64_t)setup->config.seed);
    return feeder_start(&t->feeder, setup, e);
}

enum status trainer_create_evaluation(struct trainer *t, const struct setup *setup, struct error *e) {
    *t = (struct trainer){.setup = setup, .best_step = -1};
    t->state.seed = (uint64_t)setup->config.seed;
    TRY(params_create(&t->params, e));
    TRY(build_net(t, &t->eval, &t->eval_net, false, e));
    TRY(params_reserve(&t->params, false, e));
    TRY(create_tables(t, false, e));
    return graph_plan(&t->eval, e);
}

void trainer_free(struct trainer *t) {
    feeder_stop(&t->feeder);
    graph_free(&t->train);
    graph_free(&t->eval);
    graph_free(&t->update);
    params_free(&t->params);
    arena_free(&t->host);
}

/* --- data ------------------------------------------------------------------------------------------------------------- */

/* A batch into the inputs of a net. */
static void put_batch(const struct net *net, const struct batch *b) {
    memcpy(net->tokens->data, b->tokens, (size_t)(b->B * b->T) * sizeof *b->tokens);
    memcpy(net->targets->data, b->targets, (size_t)(b->B * b->labels) * sizeof *b->targets);
    if (net->lengths) memcpy(net->lengths->data, b->lengths, (size_t)b->B * sizeof *b->lengths);
}

static void fill_step(struct trainer *t, int64_t step) {
    const struct step_batches *b = feeder_take(&t->feeder, step);
    put_batch(&t->train_net, &b->main);
    if (b->extra.B) put_batch(&t->extra_net, &b->extra);
}

/* Examples first .. first+B of a split into the evaluation net; returns the rows in use. */
static int64_t fill_evaluation(struct trainer *t, enum split split, int64_t first) {
    const struct task_shape *shape = &t->setup->task.shape;
    struct batch b = {.B = t->setup->config.batch,
                      .T = task_length(shape, split),
                      .labels = task_targets(shape, split),
                      .tokens = tensor_i32(t->eval_net.tokens),
                      .targets = tensor_i32(t->eval_net.targets),
                      .lengths = t->lengths};
    int64_t rows = batch_fill(t->setup, split, first, 0, true, &b);
    if (t->eval_net.lengths) memcpy(t->eval_net.lengths->data, t->lengths, (size_t)b.B * sizeof *t->lengths);
    return rows;
}

void trainer_step(struct trainer *t) {
    double start = time_now_s();
    fill_step(t, t->state.step);
    double filled = time_now_s();
    graph_forward(&t->train, &t->state);
    graph_backward(&t->train, &t->state);
    graph_forward(&t->update, &t->state);
    t->data_s += filled - start;
    t->step_s += time_now_s() - filled;
}

void trainer_evaluate(struct trainer *t, enum split split, struct scores *scores) {
    double start = time_now_s();
    const struct task_shape *shape = &t->setup->task.shape;
    int64_t B = t->setup->config.batch, labels = task_targets(shape, split), n = shape->examples[split];
    metrics_reset(&t->metrics);
    for (int64_t first = 0; first < n; first += B) {
        int64_t rows = fill_evaluation(t, split, first);
        graph_forward(&t->eval, &t->state);
        metrics_add(&t->metrics, tensor_i32(t->eval_net.targets), tensor_i32(t->eval_net.predictions), t->lengths, rows,
                    labels, (double)tensor_real(t->eval_net.loss)[0]);
    }
    *scores = metrics_scores(&t->metrics);
    t->eval_s += time_now_s() - start;
}

double trainer_metric(const struct trainer *t, const struct scores *scores) {
    return strcmp(t->setup->task.shape.metric, "macro_acc") ? scores->acc : scores->macro_acc;
}

/* --- the search for the first bad tensor -------------------------------------------------------------------------------- */

static bool all_finite(const real *x, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

const char *trainer_find_nonfinite(struct trainer *t, int64_t step) {
    for (int i = 0; i < t->params.n; i++) /* running statistics are written before a step freezes: an op is to blame */
        if (t->params.list[i].spec.group != PARAM_CONST &&
            !all_finite(t->params.value + t->params.list[i].offset, t->params.list[i].count))
            return t->params.list[i].name;
    fill_step(t, step);
    struct exec x = {.training = true, .state = &t->state};
    for (int i = 0; i < t->train.n_calls; i++) {
        struct call *c = &t->train.calls[i];
        c->kernel->forward(c, &x);
        for (int j = 0; j < c->n_out; j++)
            if (c->out[j]->dtype == DT_REAL && !all_finite(tensor_real(c->out[j]), tensor_count(c->out[j])))
                return c->out[j]->name;
    }
    graph_backward(&t->train, &t->state);
    for (int i = 0; i < t->params.n; i++)
        if (!all_finite(t->params.grad + t->params.list[i].offset, t->params.list[i].count))
            return t->params.list[i].name;
    return NULL;
}
