/* cmd_info.c - `lrnn info`: describes one model, task, op, kernel, profile, plan or paper. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/graph_plan.h"
#include "harness/cli/cli.h"
#include "harness/study/study.h"
#include "harness/study/graphs.h"
#include "harness/study/plan_file.h"
#include "harness/study/profile.h"
#include "harness/study/setup.h"
#include "harness/store/csv.h"
#include "harness/store/files.h"
#include "harness/store/shell.h"
#include "kernels/kernel.h"
#include "models/model.h"
#include "tasks/task.h"

/* Sizes for which a model is described: a run's flags, and length and vocabulary or a task. */
struct info_flags {
    struct config config;
    int64_t length, vocab;
    char task[OPTION_TEXT];
    bool json;
};

#define LENGTH 16 /* without a task */
#define VOCAB  120

#define AT(field) offsetof(struct info_flags, field)

static const struct option flags[] = {
    {"batch", OPT_INT, AT(config.batch), "128", 1, 1 << 24, NULL, "sequences per step", 0},
    {"length", OPT_INT, AT(length), "auto", 1, 1e9, NULL, "tokens per sequence; auto = the task's, or 16", OPT_AUTO},
    {"vocab", OPT_INT, AT(vocab), "auto", 1, 1e9, NULL, "token and label ids; auto = the task's, or 120", OPT_AUTO},
    {"task", OPT_TEXT_FIELD, AT(task), "", 0, 0, NULL, "describe the model's net for this task, with its read-out", 0},
    {"decay-all", OPT_CHOICE, AT(config.decay_all), "auto", 0, 0, "auto yes no",
     "show which parameters --decay acts on with this --decay-all", 0},
    {"json", OPT_BOOL, AT(json), "no", 0, 0, NULL, "print the model's parameters as one JSON object", 0},
    {0},
};

/* Prints a title and the text, each line indented. */
static void print_block(const char *title, const char *text) {
    printf("%s\n", title);
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        printf("  %.*s\n", (int)n, text);
    }
}

/* Prints the option table, and the values in `object` that differ from the defaults. */
static void print_options(const char *name, const struct option *table, const void *object) {
    if (!table->name) return;
    printf("options (%s:name=value,...)\n", name);
    options_print_help(table, "", stdout);
    const char *separator = "here: ";
    for (const struct option *o = table; o->name; o++) {
        char value[OPTION_TEXT + 1];
        option_format_value(o, object, value, sizeof value);
        if (strcmp(value, o->value) == 0) continue;
        printf("%s%s=%s", separator, o->name, value);
        separator = ",";
    }
    if (separator[0] == ',') printf("\n");
}

/* --- models ------------------------------------------------------------------------------------------------------- */

/* Costs of a training step of a net at these sizes. The net's memory is not allocated. */
struct measure {
    struct setup *setup;        /* a run of the task; NULL: only sizes are given */
    struct model_choice choice; /* fitted to the sizes */
    struct net_shape shape;
    struct params params;
    struct graph graph;
    struct step_nets nets;
    struct cost forward, backward;
    size_t planned, live; /* bytes; live: the largest amount in use at a moment of the step */
};

/* Builds the net of the given sizes, or with --task the nets that a run of the task trains in a step, that of the
 * second batch too. */
static enum status measure_net(struct measure *m, const char *text, const struct info_flags *f, struct error *e) {
    static const struct place cpu = {.device = DEVICE_CPU};
    struct graph_options options = {.training = true, .kernels = kernel_list()};
    int64_t vocab = f->vocab ? f->vocab : VOCAB;
    TRY(params_create(&m->params, e));
    if (*f->task) {
        if (f->length || f->vocab) return fail(e, ST_USAGE, "info: --task has a length and a vocabulary of its own");
        m->setup = setup_make(&f->config, f->task, text, e);
        if (!m->setup) return e->status;
        m->shape = setup_net_shape(&m->setup->spec, SPLIT_TRAIN);
        m->choice = m->setup->shapes.model;
        const struct graph_source from = {&m->setup->spec, &m->setup->shapes, &cpu};
        TRY(graphs_build_training(&m->graph, &from, &m->params, &m->nets, e));
    } else {
        m->shape = (struct net_shape){.B = f->config.batch,
                                      .T = f->length ? f->length : LENGTH,
                                      .vocab_in = vocab,
                                      .vocab_out = vocab,
                                      .readout = READOUT_POSITIONS};
        TRY(model_parse(&m->choice, text, e));
        TRY(model_fit(&m->choice, &(struct dims){.B = m->shape.B, .T = m->shape.T, .D = f->config.net.dim}, e));
        TRY(graph_create(&m->graph, &options, &m->params, e));
        TRY(net_build(&m->nets.main, &m->graph, &f->config.net, &m->choice, &m->shape, e));
    }
    TRY(graph_measure(&m->graph, &m->planned, e));
    m->live = graph_live_bytes(&m->graph);
    m->forward = graph_cost(&m->graph, PASS_FORWARD);
    m->backward = graph_cost(&m->graph, PASS_BACKWARD);
    return ST_OK;
}

static void print_measure(const struct info_flags *f, const struct measure *m) {
    static const char *const names[] = {"lr", "decay", "schedule", "epochs"};
    const struct net_shape *shape = &m->shape;
    const struct tensor *input = m->nets.main.input, *extra = m->nets.second.input;
    const struct param *table = params_find(&m->params, "embedding");
    double tokens = (double)(input->dims[0] * input->dims[1] + (extra ? extra->dims[0] * extra->dims[1] : 0));
    int64_t trained = params_trained(&m->params);
    char text[512];
    options_format(backbone_options, &f->config, " ", 0, text, sizeof text);
    printf("at %s batch=%" PRId64 " length=%" PRId64 " vocab=%" PRId64, text, shape->B, shape->T, shape->vocab_out);
    if (shape->documents > 1) printf(", %" PRId64 " documents of that length an example", shape->documents);
    if (extra) printf(", a step also takes %" PRId64 " of length %" PRId64, extra->dims[0], extra->dims[1]);
    printf("\ntrained by default with");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct option *o = option_find(config_options, names[i]);
        if (!o) continue;
        option_format_value(o, &f->config, text, sizeof text);
        printf(" %s=%s", o->name, text);
    }
    printf("\n  parameters        %" PRId64 ", of them %" PRId64 " without the embedding\n", trained,
           trained - (table ? table->count : 0));
    printf("  state             %" PRId64 " floats per sequence\n", net_state_floats(&f->config.net, &m->choice));
    printf("  FLOPs per token   forward %.0f, backward %.0f\n", m->forward.flops / tokens, m->backward.flops / tokens);
    printf("  a training step   %.2f GFLOP, at least %.1f MB of memory traffic\n",
           (m->forward.flops + m->backward.flops) / 1e9, (m->forward.bytes + m->backward.bytes) / 1e6);
    printf(
        "  planned memory    %.1f MB for activations and gradients of a training step, of which %.1f MB are live at\n"
        "                    its fullest moment; %.1f MB for parameters, their gradients and moments\n",
        (double)m->planned / 1e6, (double)m->live / 1e6, (double)m->params.floats * sizeof(real) * 4 / 1e6);
}

static void print_params(const struct measure *m, const struct config *c) {
    const struct params *params = &m->params;
    int width = 0;
    for (int i = 0; i < params->n; i++)
        if ((int)strlen(params->list[i].name) > width) width = (int)strlen(params->list[i].name);
    printf(
        "parameters: group, whether --decay decays it, its rate as a part of --lr, name as in `lrnn export`, shape\n");
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->list[i];
        bool decays = graphs_decays(c, m->choice.model, p);
        double rate = backbone_param_rule(&c->net, p->spec.group).rate;
        if (p->spec.group == PARAM_CONST)
            printf("  %-9s  never trained  ", param_group_names[p->spec.group]);
        else
            printf("  %-9s  %-3s  %-8.4g  ", param_group_names[p->spec.group], decays ? "yes" : "no", rate);
        printf("%-*s  ", width, p->name);
        for (int a = 0; a < p->spec.rank; a++) printf("[%" PRId64 "]", p->spec.dims[a]);
        printf("\n");
    }
}

static void print_model_json(const struct measure *m, const struct config *c) {
    const struct params *params = &m->params;
    printf("{\"model\":\"%s\",\"trained\":%" PRId64 ",\"params\":[", m->choice.model->name, params_trained(params));
    for (int i = 0; i < params->n; i++) {
        const struct param *p = &params->list[i];
        bool decays = graphs_decays(c, m->choice.model, p);
        char rate[32];
        format_double(backbone_param_rule(&c->net, p->spec.group).rate, rate, sizeof rate);
        printf("%s{\"name\":\"%s\",\"group\":\"%s\",", i ? "," : "", p->name, param_group_names[p->spec.group]);
        if (p->spec.group != PARAM_CONST) printf("\"decay\":%s,\"rate\":%s,", decays ? "true" : "false", rate);
        printf("\"shape\":[");
        for (int a = 0; a < p->spec.rank; a++) printf("%s%" PRId64, a ? "," : "", p->spec.dims[a]);
        printf("]}");
    }
    printf("]}\n");
}

static enum status info_model(const char *text, const struct info_flags *f, struct error *e) {
    struct measure m = {0};
    enum status status = measure_net(&m, text, f, e);
    if (status == ST_OK && f->json) {
        print_model_json(&m, &f->config);
    } else if (status == ST_OK) {
        const struct model *model = m.choice.model;
        printf("%s: %s\n", model->name, model->summary);
        print_block("equation", model->equation);
        printf("causal: %s\n", model->causal ? "yes" : "no");
        print_options(model->name, model->options, m.choice.inst);
        print_params(&m, &f->config);
        print_measure(f, &m);
    }
    graph_free(&m.graph);
    params_free(&m.params);
    setup_free(m.setup);
    return status;
}

/* --- tasks, ops, kernels ------------------------------------------------------------------------------------------ */

static void print_shape(const struct task_shape *s) {
    printf("shape\n");
    if (s->vocab_in)
        printf("  input      %" PRId64 " tokens out of %" PRId64 "\n", s->T, s->vocab_in);
    else
        printf("  input      %" PRId64 " x %" PRId64 " values\n", s->T, s->channels);
    if (task_length(s, SPLIT_TEST) != s->T)
        printf("  tested     at up to %" PRId64 " positions\n", task_length(s, SPLIT_TEST));
    if (task_documents(s) > 1)
        printf("  documents  %" PRId64 " per example, each of that length\n", s->reading.documents);
    if (s->height)
        printf("  image      %" PRId64 " x %" PRId64 " %s, visited %s\n", s->height, s->width,
               s->reading.patch > 1 ? "patches" : "pixels",
               s->reading.visit ? "in another order than row by row" : "row by row");
    printf("  target     one of %" PRId64 " labels %s\n", s->vocab_out, s->per_sequence ? "a sequence" : "a position");
    printf("  examples   %" PRId64 " train, %" PRId64 " val, %" PRId64 " test\n", s->examples[SPLIT_TRAIN],
           s->examples[SPLIT_VAL], s->examples[SPLIT_TEST]);
    printf("  causal     %s\n", s->needs_causal ? "a target must not depend on later inputs" : "not needed");
    printf("  metric     %s: chance %.4f, best trivial answer %.4f, solved at %.4f\n", metric_names[s->metric],
           s->chance, s->floor, s->solved);
}

/* Prints a task. If its data is missing, says how to get the data in place of the shape. */
static enum status info_task(const char *text, const struct info_flags *f, struct error *e) {
    (void)f;
    struct task_choice choice;
    struct arena host = {0};
    TRY(task_parse(&choice, text, e));
    const struct task *task = choice.task;
    TRY(arena_reserve(&host, TASK_TABLE_BYTES, e));
    struct error why = {ST_OK, ""};
    enum status status = task_open(&choice, 1, &host, &why);
    printf("%s: %s\n", choice.name, task->summary);
    printf("suite %s, version %d\n", task->suite, task_version(&choice));
    if (task->about) print_block("protocol and published numbers", task->about);
    if (task->data) printf("data %s (docs/data.md, lrnn data list)\n", task->data);
    print_options(task->name, task->options, choice.inst);
    if (status == ST_OK) print_shape(&choice.shape);
    if (status == ST_DATA) {
        fputs("shape\n  not known without the data: ", stdout);
        shell_hint(stdout, why.text);
        putchar('\n');
    }
    int width = 0;
    for (const struct task_alias *a = task->aliases; a && a->name; a++)
        if ((int)strlen(a->name) > width) width = (int)strlen(a->name);
    for (const struct task_alias *a = task->aliases; a && a->name; a++)
        printf("%s  %-*s %s (%s)\n", a == task->aliases ? "short names\n" : "", width, a->name, a->summary, a->options);
    arena_free(&host);
    return status == ST_OK || status == ST_DATA ? ST_OK : fail(e, status, "%s", why.text);
}

static void print_kernel(const struct kernel *k) {
    printf("  %-26s %s, %s", k->name, k->device == DEVICE_CPU ? "CPU" : "GPU", k->reference ? "reference" : "tuned");
    if (!k->reference && k->inexact) printf(", within %g epsilon of the reference", k->tolerance);
    if (!k->reference && !k->inexact) printf(", equal to the reference bit for bit");
    printf("\n");
}

static enum status info_op(const char *text, const struct info_flags *f, struct error *e) {
    (void)f, (void)e;
    const struct op *op = op_find(text);
    printf("%s: an op\n", op->name);
    print_block("maths", op->maths);
    if (op->source[0]) printf("source: %s\n", op->source);
    printf("kernels, the first that applies is taken\n");
    for (const struct kernel *const *k = kernel_list(); *k; k++)
        if ((*k)->op == op) print_kernel(*k);
    return ST_OK;
}

static enum status info_kernel(const char *text, const struct info_flags *f, struct error *e) {
    (void)f, (void)e;
    const struct kernel *k = kernel_find(text);
    printf("%s: a kernel of %s\n", k->name, k->op->name);
    print_block("maths", k->op->maths);
    print_kernel(k);
    printf("%s\n", k->applicable ? "applies to some sizes only" : "applies to every size");
    return ST_OK;
}

/* ST_USAGE: --json, --task or --decay-all was given, but the name is no model. */
static enum status refuse_of_net(const char *name, const struct info_flags *f, struct error *e) {
    if (!f->json && !*f->task && f->config.decay_all == DECAY_AS_NET) return ST_OK;
    return fail(e, ST_USAGE, "info: --task, --json and --decay-all are for models, and '%s' is none", name);
}

static void print_pairs(const struct label *l) {
    int width = 0;
    for (int i = 0; i < l->n; i++)
        if ((int)strlen(label_key(l, i)) > width) width = (int)strlen(label_key(l, i));
    for (int i = 0; i < l->n; i++) {
        const char *key = label_key(l, i);
        if (strcmp(key, "title") != 0 && strcmp(key, "link") != 0)
            printf("  %-*s  %s\n", width, key, label_value(l, i));
    }
}

/* Prints the lines of a task's profile, "s5/quick". ST_DATA: the word names no task. */
static enum status info_profile(const char *name, struct error *e) {
    char word[LABEL_TEXT];
    const char *profile = name;
    const struct profile *p;
    struct label task;
    TRY(text_part(&profile, "/", word, sizeof word, e));
    if (!*profile || label_parse(&task, "task", word, NULL) != ST_OK) return ST_DATA;
    struct task_choice *choice = calloc(1, sizeof *choice);
    if (!choice) return fail(e, ST_MEMORY, "no memory for a task");
    enum status status = task_parse(choice, label_name(&task), NULL) == ST_OK
                             ? profile_find(label_name(&task), choice->task->suite, profile + 1, &p, e)
                             : ST_DATA;
    free(choice);
    TRY(status);
    printf("%s/%s: profiles/%s.plan\n%s\n", word, p->name, p->suite, p->note);
    print_pairs(&p->settings);
    printf("`%s bench %s --profile %s --dry-run` counts its runs; docs/papers.md says what the keys mean\n",
           shell_program(), word, p->name);
    return ST_OK;
}

/* Prints the plan of a paper's table. ST_DATA: there is no plan of that name. */
static enum status info_plan(const char *name, const struct info_flags *f, struct error *e) {
    struct plan_file *plan = calloc(1, sizeof *plan);
    if (!plan) return fail(e, ST_MEMORY, "no memory for a plan");
    enum status status = plan_file_read(plan, name, e);
    if (status == ST_OK) status = refuse_of_net(name, f, e);
    if (status == ST_OK) {
        const char *title = label_get(&plan->lines, "title"), *link = label_get(&plan->lines, "link");
        printf("%s: %s\n", plan->name, title ? title : "a plan");
        if (link) printf("%s\n", link);
        print_pairs(&plan->lines);
        printf("`%s sweep %s --dry-run` counts its runs; docs/papers.md says what the keys mean\n", shell_program(),
               name);
    }
    free(plan);
    return status;
}

/* Prints the plans for the tables and figures of a paper. */
static enum status print_plans_of(const char *arxiv, struct error *e) {
    const char *name;
    struct plan_file *plan = calloc(1, sizeof *plan);
    if (!plan) return fail(e, ST_MEMORY, "no memory for a plan");
    enum status status = ST_OK;
    for (int i = 0; status == ST_OK && (name = plan_file_built_in(PLAN_PAPERS, i)); i++) {
        status = plan_file_read(plan, name, e);
        const char *paper = status == ST_OK ? label_get(&plan->lines, "paper") : NULL;
        const char *title = paper && !strcmp(paper, arxiv) ? label_get(&plan->lines, "title") : NULL;
        if (title) printf("  %-21s %s\n", plan->name, title);
    }
    free(plan);
    return status;
}

/* Prints a paper with published numbers, by its arXiv number. ST_DATA: there is no paper of that number. */
static enum status info_paper(const char *arxiv, const struct info_flags *f, struct error *e) {
    char path[PATH_BYTES], title[512] = "";
    struct csv_table t;
    TRY(shipped_file_find("results/published.csv", path, sizeof path, e));
    TRY(csv_read_edited(&t, path, e));
    for (int row = 0; row < t.rows && !*title; row++)
        if (!strcmp(csv_text_plain(csv_cell(&t, row, "arxiv")), arxiv))
            csv_cell_text(&t, row, "paper", title, sizeof title);
    csv_free(&t);
    if (!*title) return fail(e, ST_DATA, "there is no paper %.100s", arxiv);
    TRY(refuse_of_net(arxiv, f, e));
    printf("%s: %s\nhttps://arxiv.org/abs/%s\n", arxiv, title, arxiv);
    return print_plans_of(arxiv, e);
}

/* --- the name ----------------------------------------------------------------------------------------------------- */

/* The i-th of all named things (models, tasks with their short names, ops, kernels) and the function that describes it.
 * name NULL: i is past the end. */
struct named {
    const char *name;
    enum status (*describe)(const char *text, const struct info_flags *f, struct error *e);
};

static struct named thing_at(int i) {
    for (const struct model *const *m = model_list(); *m; m++)
        if (i-- == 0) return (struct named){(*m)->name, info_model};
    for (const struct task *const *t = task_list(); *t; t++) {
        if (i-- == 0) return (struct named){(*t)->name, info_task};
        for (const struct task_alias *a = (*t)->aliases; a && a->name; a++)
            if (i-- == 0) return (struct named){a->name, info_task};
    }
    for (const struct op *const *o = op_list(); *o; o++)
        if (i-- == 0) return (struct named){(*o)->name, info_op};
    for (const struct kernel *const *k = kernel_list(); *k; k++)
        if (i-- == 0) return (struct named){(*k)->name, info_kernel};
    return (struct named){NULL, NULL};
}

static const char *thing_name(const void *list, int i) {
    (void)list;
    return thing_at(i).name;
}

static enum status run(int argc, char **argv, struct error *e) {
    struct info_flags f;
    const char *name[1];
    struct flag_set sets[] = {{backbone_options, &f.config.net}, {flags, &f}};
    struct cli cli = {.command = &command_info, .sets = sets, .n_sets = 2, .positional = name, .max_positional = 1};
    TRY(config_default(&f.config, e));
    TRY(options_default(flags, &f, e));
    TRY(cli_parse(&cli, argc, argv, e));
    if (cli.n_positional == 0) return fail(e, ST_USAGE, "info: say what; `lrnn list` names what there is");
    int n = 0, index;
    bool known = false;
    char plain[LABEL_TEXT];
    const char *options = name[0];
    struct error why;
    TRY(text_part(&options, ":", plain, sizeof plain, e));
    for (; thing_at(n).name; n++) known = known || !strcmp(thing_at(n).name, plain);
    enum status other = known ? ST_DATA : info_profile(name[0], &why);
    if (other == ST_DATA && !known) other = info_plan(name[0], &f, &why);
    if (other == ST_DATA && !known) other = info_paper(name[0], &f, &why);
    if (other != ST_DATA) return other == ST_OK ? ST_OK : fail(e, other, "%s", why.text);
    TRY(name_choose("name", plain, n, thing_name, NULL, &index, e));
    struct named thing = thing_at(index);
    if (*options && thing.describe != info_model && thing.describe != info_task)
        return fail(e, ST_USAGE, "info: '%s' has no options; leave out the text after its name", thing.name);
    if (thing.describe != info_model) TRY(refuse_of_net(thing.name, &f, e));
    if (thing.describe) TRY(thing.describe(name[0], &f, e));
    for (int i = index + 1; i < n && !*options; i++) { /* S5 is a mixer, and a task */
        struct named other_thing = thing_at(i);
        if (strcmp(other_thing.name, thing.name) != 0 || !other_thing.describe) continue;
        putchar('\n');
        TRY(other_thing.describe(name[0], &f, e));
    }
    return ST_OK;
}

const struct command command_info = {
    .name = "info",
    .usage = "info NAME[:name=value,...] [flags]",
    .summary = "explain a model (equation, options, parameters, cost, memory), task, op, kernel, plan, profile "
               "(s5/quick) or paper",
    .run = run,
};
