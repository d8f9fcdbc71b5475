/* graphs.c - see graphs.h. */
#include "harness/study/graphs.h"

#include <string.h>

#include "core/graph_plan.h"
#include "kernels/dense/dense.h"
#include "kernels/kernel.h"

static struct graph_options options_of(const struct graph_source *from, bool training) {
    return (struct graph_options){.precision = (enum precision)from->spec->config.precision,
                                  .training = training,
                                  .place = from->place,
                                  .kernel = from->spec->config.kernel,
                                  .kernels = kernel_list()};
}

/* --- nets --------------------------------------------------------------------------------------------------------- */

enum status graphs_build_training(struct graph *g, const struct graph_source *from, struct params *params,
                                  struct step_nets *nets, struct error *e) {
    const struct spec *s = from->spec;
    struct graph_options options = options_of(from, true);
    struct net_shape shape = setup_net_shape(s, SPLIT_TRAIN);
    nets->second = (struct net){0};
    TRY(graph_create(g, &options, params, e));
    TRY(net_build(&nets->main, g, &s->config.net, &from->shapes->model, &shape, e));
    shape.B = setup_second_rows(s);
    shape.T = s->task.shape.second.T;
    if (!shape.B) return ST_OK;
    struct tensor *main_root = g->root;
    TRY(net_build(&nets->second, g, &s->config.net, &from->shapes->second_model, &shape, e));
    graph_set_root(g, add(g, main_root, nets->second.loss));
    return ST_OK;
}

double graphs_step_flops(const struct graph *train) {
    return graph_cost(train, PASS_FORWARD).flops + graph_cost(train, PASS_BACKWARD).flops;
}

enum status graphs_build_evaluation(struct graph *g, const struct graph_source *from, struct params *params,
                                    struct net *net, struct error *e) {
    struct graph_options options = options_of(from, false);
    struct net_shape shape = setup_net_shape(from->spec, SPLIT_VAL);
    TRY(graph_create(g, &options, params, e));
    return net_build(net, g, &from->spec->config.net, &from->shapes->eval_model, &shape, e);
}

/* --- the update --------------------------------------------------------------------------------------------------- */

bool graphs_decays(const struct config *c, const struct model *m, const struct param *p) {
    bool exempt = c->decay_all == DECAY_AS_MIXER && model_exempts(m, p);
    return c->decay_all == DECAY_ALL || (backbone_param_rule(&c->net, p->spec.group).decays && !exempt);
}

/* Makes an input whose data are outside the graph's memory. */
static struct tensor *borrowed(struct graph *g, const char *name, real *data, int64_t n) {
    struct tensor *t = graph_input(g, name, 1, &n, false);
    if (t) t->data = data;
    return t;
}

enum status graphs_build_update(struct graph *g, const struct graph_source *from, const struct params *p, real *loss,
                                struct error *e) {
    struct graph_options options = options_of(from, false);
    const struct config *c = &from->spec->config;
    struct adamw_attr attr = {.beta1 = c->beta1, .beta2 = c->beta2, .eps = 1e-8, .clip = c->clip};
    struct step_attr begin = {.schedule = setup_schedule(c, from->shapes), .clip = c->clip};
    TRY(graph_create(g, &options, NULL, e));

    /* Segments of neighbouring parameters that have the same decay and rate. The padding between them is zeros, and an
     * update leaves zeros zero. */
    struct adamw_segment *list = graph_alloc(g, (size_t)(p->n + 1) * sizeof *list);
    int n = 0;
    if (!list) return graph_status(g, e);
    for (int i = 0; i < p->n; i++) {
        const struct param *q = &p->list[i];
        if (q->spec.group == PARAM_CONST) continue;
        struct param_rule rule = backbone_param_rule(&c->net, q->spec.group);
        double decay = graphs_decays(c, from->spec->model.model, q) ? c->decay : 0;
        bool alike = n && list[n - 1].decay == decay && list[n - 1].rate == rule.rate;
        if (alike && p->list[i - 1].spec.group != PARAM_CONST)
            list[n - 1].count = q->offset + q->count - list[n - 1].offset;
        else
            list[n++] = (struct adamw_segment){q->offset, q->count, decay, rule.rate};
    }
    attr.segments = list;
    attr.n_segments = n;

    struct tensor *grad = borrowed(g, "gradient", p->grad, p->floats);
    step_begin(g, borrowed(g, "loss", loss, 1), grad, &begin);
    adamw(g, borrowed(g, "values", p->value, p->floats), grad, borrowed(g, "moment1", p->moment1, p->floats),
          borrowed(g, "moment2", p->moment2, p->floats), &attr);
    return ST_OK;
}

/* --- the batch of a step ------------------------------------------------------------------------------------------ */

/* Makes a tensor like `t`, an input of a net of B examples, but for `rows` examples. Returns NULL for NULL. */
static struct tensor *table(struct graph *g, const struct tensor *t, int64_t B, int64_t rows) {
    if (!t) return NULL;
    int64_t dims[] = {rows, tensor_count(t) / B};
    if (t->dtype == DT_REAL) return graph_input(g, t->name, 2, dims, false);
    return graph_input_ids(g, t->name, 2, dims, t->limit, t->ignorable);
}

/* Makes a tensor that has the data of `t`, an input of the net, so that the graph writes there. */
static struct tensor *target(struct graph *g, const struct tensor *t, int64_t B) {
    struct tensor *y = table(g, t, B, B);
    if (y) y->data = t->data;
    return y;
}

static struct batch_tensors take(struct graph *g, const struct net *net, int64_t n, uint64_t seed, int64_t period) {
    int64_t B = net->targets->dims[0];
    struct batch_tensors split = {table(g, net->input, B, n), table(g, net->targets, B, n),
                                  table(g, net->lengths, B, n), table(g, net->links, B, n)};
    struct batch_tensors batch = {target(g, net->input, B), target(g, net->targets, B), target(g, net->lengths, B),
                                  target(g, net->links, B)};
    take_batch(g, &split, &batch, &(struct take_batch_attr){.seed = seed, .period = period});
    return split;
}

/* The second batch is checked because a task may offer up to 2^63 examples for it, more than fit into any memory. */
bool graphs_can_take(const struct spec *s, const struct shapes *shapes) {
    return shapes->steps >= shapes->steps_per_epoch && s->task.shape.second.examples <= INT32_MAX;
}

/* Examples come in the feeder's order: each epoch of the main batch has whole batches; the second batch goes through
 * its examples without a gap between epochs. */
enum status graphs_build_take(struct graph *g, const struct graph_source *from, const struct step_nets *nets,
                              struct batch_tensors split[2], struct error *e) {
    const struct spec *s = from->spec;
    struct graph_options options = options_of(from, false);
    int64_t n = s->task.shape.examples[SPLIT_TRAIN], n_second = s->task.shape.second.examples;
    TRY(graph_create(g, &options, NULL, e));
    split[0] = take(g, &nets->main, n, s->task.seed, from->shapes->steps_per_epoch * s->config.batch);
    split[1] = (struct batch_tensors){0};
    if (nets->second.input) split[1] = take(g, &nets->second, n_second, ~s->task.seed, n_second);
    return ST_OK;
}

/* --- which kernels they take -------------------------------------------------------------------------------------- */

/* Returns call number i, counted over all graphs; NULL after the last call. */
static const struct call *call_at(const struct graph_list *graphs, int i) {
    for (int g = 0; g < graphs->n; g++) {
        if (i < graphs->list[g]->n_calls) return &graphs->list[g]->calls[i];
        i -= graphs->list[g]->n_calls;
    }
    return NULL;
}

/* Tells whether an earlier call has the same kernel; with `by_op`, the same op. */
static bool is_repeated(const struct graph_list *graphs, int i, bool by_op) {
    const struct call *c = call_at(graphs, i);
    for (int j = 0; j < i; j++) {
        const struct call *before = call_at(graphs, j);
        if (by_op ? before->op == c->op : before->kernel == c->kernel) return true;
    }
    return false;
}

static enum status list_names(const struct graph_list *graphs, bool ops, const char *separator, char *text, size_t size,
                              struct error *e) {
    size_t used = 0;
    const struct call *c;
    text[0] = 0;
    for (int i = 0; (c = call_at(graphs, i)); i++) {
        if (is_repeated(graphs, i, ops)) continue;
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? separator : "",
                                 ops ? c->op->name : c->kernel->name);
        if (used >= size) return fail(e, ST_FAIL, "the kernels of the run have names of over %zu characters", size - 1);
    }
    return ST_OK;
}

enum status graphs_kernels(const struct graph_list *graphs, char *text, size_t size, struct error *e) {
    return list_names(graphs, false, " ", text, size, e);
}

static const char *kernel_name(const void *list, int i) {
    return ((const struct kernel *const *)list)[i]->name;
}

enum status graphs_check_forced(const struct graph_list *graphs, const struct spec *s, struct error *e) {
    const char *forced = s->config.kernel;
    const struct kernel *k = kernel_find(forced);
    const struct call *c;
    char ops[512];
    bool has_op = false;
    if (!*forced || !strcmp(forced, "reference")) return ST_OK;
    if (!k) {
        const struct kernel *const *all = kernel_list();
        int n = 0;
        while (all[n]) n++;
        return name_choose("kernel", forced, n, kernel_name, all, &(int){0}, e);
    }
    for (int i = 0; (c = call_at(graphs, i)); i++) {
        if (c->kernel == k) return ST_OK;
        has_op |= c->op == k->op;
    }
    if (has_op)
        return fail(e, ST_USAGE,
                    "--kernel %s computes op %s on a %s and the run is on --device %s; `lrnn info %s` lists "
                    "the op's kernels",
                    forced, k->op->name, k->device == DEVICE_CPU ? "CPU" : "GPU", s->config.device, k->op->name);
    TRY(list_names(graphs, true, ", ", ops, sizeof ops, e));
    return fail(e, ST_USAGE,
                "--kernel %s computes op %s, which a run of task %s and model %s does not have; take "
                "'reference', or a kernel of one of its ops: %s",
                forced, k->op->name, s->task.name, s->model.model->name, ops);
}

/* --- how large a run is ------------------------------------------------------------------------------------------- */

/* The graphs of a run, measured without allocating memory. */
struct measured {
    struct params params;
    struct graph train, eval, update, take;
    struct step_nets nets;
    struct net eval_net;
    size_t largest; /* bytes of the largest of the graphs */
};

/* Makes the inputs of evaluation point outside its graph, as in a run (split_store_select). The address is never read,
 * because the graph is only measured. */
static void leave_inputs_out(const struct net *net) {
    struct tensor *const inputs[] = {net->input, net->targets, net->lengths, net->links};
    for (int i = 0; i < 4; i++)
        if (inputs[i]) inputs[i]->data = inputs[i];
}

static enum status measure(struct measured *m, const struct graph_source *from, struct graph_list *graphs,
                           struct error *e) {
    struct graph *all[] = {&m->train, &m->eval, &m->update, &m->take};
    struct batch_tensors split[2];
    size_t bytes;
    bool takes = from->place->device != DEVICE_CPU && graphs_can_take(from->spec, from->shapes);
    graphs->n = 0;
    m->largest = 0;
    TRY(params_create(&m->params, e));
    TRY(graphs_build_training(&m->train, from, &m->params, &m->nets, e));
    TRY(graphs_build_evaluation(&m->eval, from, &m->params, &m->eval_net, e));
    leave_inputs_out(&m->eval_net);
    TRY(graphs_build_update(&m->update, from, &m->params, NULL, e));
    if (takes) TRY(graphs_build_take(&m->take, from, &m->nets, split, e));
    for (int i = 0; i < (takes ? 4 : 3); i++) {
        TRY(graph_measure(all[i], &bytes, e));
        if (bytes > m->largest) m->largest = bytes;
        graphs->list[graphs->n++] = all[i];
    }
    return ST_OK;
}

enum status graphs_estimate(const struct spec *s, const struct shapes *shapes, struct estimate *size, struct error *e) {
    struct place place = {0};
    struct graph_list graphs;
    struct measured m = {0};
    *size = (struct estimate){0, 0, 0};
    enum status status = place_parse(s->config.device, &place.device, &place.index, e);
    if (status == ST_OK) status = measure(&m, &(struct graph_source){s, shapes, &place}, &graphs, e);
    if (status == ST_OK) status = graphs_check_forced(&graphs, s, e);
    if (status == ST_OK)
        *size = (struct estimate){.flops = graphs_step_flops(&m.train) * (double)shapes->steps,
                                  .params = params_trained(&m.params),
                                  .memory = m.largest};
    graph_free(&m.train);
    graph_free(&m.eval);
    graph_free(&m.update);
    graph_free(&m.take);
    params_free(&m.params);
    return status;
}
