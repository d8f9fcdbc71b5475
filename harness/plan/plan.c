/* plan.c - see plan.h. */
#include "harness/plan/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/kernel.h"
#include "tasks/variants.h"

#define MAX_TEXTS 1000 /* settings of a task, values of an axis */

/* --- lists of texts ----------------------------------------------------------------------------------------------------- */

struct texts {
    char **list;
    int n;
};

static void texts_free(struct texts *t) {
    for (int i = 0; i < t->n; i++) free(t->list[i]);
    free(t->list);
    *t = (struct texts){0};
}

static enum status texts_add(struct texts *t, const char *text, struct error *e) {
    if (t->n == MAX_TEXTS) return fail(e, ST_USAGE, "'%.200s' and others are more than %d values", text, MAX_TEXTS);
    char **longer = realloc(t->list, (size_t)(t->n + 1) * sizeof *longer);
    if (longer) t->list = longer;
    char *copy = longer ? strdup(text) : NULL;
    if (!copy) return fail(e, ST_FAIL, "no memory for a plan");
    t->list[t->n++] = copy;
    return ST_OK;
}

/* "3..20" */
static bool parse_range(const char *text, int64_t *from, int64_t *to) {
    char low[64];
    const char *dots = strstr(text, "..");
    if (!dots || (size_t)(dots - text) >= sizeof low) return false;
    snprintf(low, sizeof low, "%.*s", (int)(dots - text), text);
    return parse_int64(low, from) && parse_int64(dots + 2, to);
}

static enum status check_range(const char *what, int64_t from, int64_t to, struct error *e) {
    if (from <= to && to - from < MAX_TEXTS) return ST_OK;
    return fail(e, ST_USAGE, "%s: the range %" PRId64 "..%" PRId64 " has %s", what, from, to,
                from > to ? "no value; the smaller number stands first" : "too many values");
}

/* The values of a flag: "1..4", "0,0.1", "2". */
static enum status expand_values(const struct plan_axis *axis, struct texts *values, struct error *e) {
    const char *at = axis->values;
    do {
        char item[OPTION_TEXT], number[32];
        int64_t from, to;
        size_t n = strcspn(at, ",");
        snprintf(item, sizeof item, "%.*s", (int)n, at);
        at += n + (at[n] == ',');
        if (!parse_range(item, &from, &to)) {
            TRY(texts_add(values, item, e));
            continue;
        }
        TRY(check_range(axis->name, from, to, e));
        for (int64_t v = from; v <= to; v++) {
            snprintf(number, sizeof number, "%" PRId64, v);
            TRY(texts_add(values, number, e));
        }
    } while (*at);
    return ST_OK;
}

bool plan_is_list(const char *name, const char *value) {
    const struct option *o = option_find(backbone_options, name);
    if (!o) o = option_find(config_options, name);
    bool numeric = o && (o->type == OPT_INT || o->type == OPT_REAL) && !(o->flags & OPT_RUNTIME);
    return numeric && (strchr(value, ',') || strstr(value, ".."));
}

/* --- settings of a task ----------------------------------------------------------------------------------------------------- */

/* All texts that one with ranges stands for, the first range slowest. Only integer options are looked at: ".." is also a
 * folder. */
static enum status expand_task(const char *text, const struct option *table, struct texts *out, struct error *e) {
    for (const char *at = strchr(text, ':'); at && *at; at = strchr(at + 1, ',')) {
        char name[OPTION_TEXT], value[OPTION_TEXT], one[CONFIG_TEXT];
        int64_t from, to;
        if (sscanf(at + 1, "%255[^=,]=%255[^,]", name, value) != 2) continue;
        const struct option *o = option_find(table, name);
        if (!o || o->type != OPT_INT || !parse_range(value, &from, &to)) continue;
        TRY(check_range(name, from, to, e));
        const char *rest = at + 1 + strlen(name) + 1 + strlen(value);
        for (int64_t v = from; v <= to; v++) {
            snprintf(one, sizeof one, "%.*s%s=%" PRId64 "%s", (int)(at + 1 - text), text, name, v, rest);
            TRY(expand_task(one, table, out, e));
        }
        return ST_OK;
    }
    return texts_add(out, text, e);
}

/* The table of options of the task or alias that a text names. */
static enum status options_of(const char *text, const struct option **table, struct error *e) {
    char name[OPTION_TEXT];
    struct task_choice *choice = calloc(1, sizeof *choice);
    snprintf(name, sizeof name, "%.*s", (int)strcspn(text, ":"), text);
    enum status status = choice ? task_parse(choice, name, e) : fail(e, ST_FAIL, "no memory for a plan");
    if (status == ST_OK) *table = choice->task->options;
    free(choice);
    return status;
}

enum status plan_first_task(const char *text, char first[CONFIG_TEXT], struct error *e) {
    const struct option *table;
    struct texts all = {0};
    TRY(options_of(text, &table, e));
    enum status status = expand_task(text, table, &all, e);
    if (status == ST_OK) snprintf(first, CONFIG_TEXT, "%s", all.list[0]);
    texts_free(&all);
    return status;
}

/* NAME:options with the defaults of the profile added where the text does not set them itself, as far as the table has
 * such an option. */
static void with_defaults(const char *text, const char *defaults, const struct option *table, char *out, size_t size) {
    size_t used = (size_t)snprintf(out, size, "%s", text);
    bool any = strchr(text, ':') != NULL;
    for (const char *at = defaults; *at && used < size;) {
        size_t n = strcspn(at, ","), name = strcspn(at, "=");
        char key[OPTION_TEXT], needle[2][OPTION_TEXT + 8];
        snprintf(key, sizeof key, "%.*s", (int)name, at);
        snprintf(needle[0], sizeof needle[0], ":%s=", key);
        snprintf(needle[1], sizeof needle[1], ",%s=", key);
        if (option_find(table, key) && !strstr(text, needle[0]) && !strstr(text, needle[1])) {
            used += (size_t)snprintf(out + used, size - used, "%s%.*s", any ? "," : ":", (int)n, at);
            any = true;
        }
        at += n + (at[n] == ',');
    }
}

/* text with one option set to another value: "vocab=32". */
static void with_change(const char *text, const char *change, char *out, size_t size) {
    size_t name = strcspn(change, "=") + 1, used = strcspn(text, ":");
    snprintf(out, size, "%.*s:%s", (int)used, text, change);
    for (const char *at = strchr(text, ':'); at && *at; at = strchr(at + 1, ',')) {
        used = strlen(out);
        if (strncmp(at + 1, change, name) != 0)
            snprintf(out + used, size - used, ",%.*s", (int)strcspn(at + 1, ","), at + 1);
    }
}

/* A text by its published name, so that the settings of a base are named alike; and its changes. */
static enum status add_variants(const char *text, struct texts *out, struct error *e) {
    char name[OPTION_TEXT], change[OPTION_TEXT], changed[CONFIG_TEXT];
    struct task_choice *base = calloc(1, sizeof *base);
    enum status status = base ? task_parse(base, text, e) : fail(e, ST_FAIL, "no memory for a plan");
    if (status == ST_OK) status = texts_add(out, base->name, e);
    if (status == ST_OK) snprintf(name, sizeof name, "%.*s", (int)strcspn(base->name, ":"), base->name);
    const char *at = status == ST_OK ? task_variants(name) : NULL;
    if (status == ST_OK && !at) status = fail(e, ST_USAGE, "task %s has no list of one-at-a-time changes", name);
    for (; status == ST_OK && *at; at += strspn(at, " ")) {
        size_t n = strcspn(at, " ");
        snprintf(change, sizeof change, "%.*s", (int)n, at);
        with_change(base->name, change, changed, sizeof changed);
        status = texts_add(out, changed, e);
        at += n;
    }
    free(base);
    return status;
}

static enum status list_tasks(const struct plan_request *r, struct texts *out, struct error *e) {
    char text[CONFIG_TEXT];
    const struct option *table;
    struct texts plain = {0};
    TRY(options_of(r->task, &table, e));
    with_defaults(r->task, r->profile->task_options, table, text, sizeof text);
    enum status status = expand_task(text, table, &plain, e);
    for (int i = 0; i < plain.n && status == ST_OK; i++)
        status = r->variants ? add_variants(plain.list[i], out, e) : texts_add(out, plain.list[i], e);
    texts_free(&plain);
    return status;
}

/* --- configurations ------------------------------------------------------------------------------------------------------- */

static bool given(const struct plan_request *r, const char *name) {
    for (int i = 0; i < r->args->n_given; i++)
        if (!strcmp(r->args->given_name[i], name)) return true;
    return false;
}

/* The request's axes and those of the profile that the command line does not set: "layers=1..4 decay=0,0.1". */
static enum status list_axes(const struct plan_request *r, struct plan_axis *axes, int *n, struct error *e) {
    *n = r->n_axes;
    memcpy(axes, r->axes, (size_t)r->n_axes * sizeof *axes);
    const char *at = r->profile->axes ? r->profile->axes : "";
    for (; *at; at += strspn(at, " ")) {
        struct plan_axis axis;
        bool taken = false;
        size_t length = strcspn(at, " "), name = strcspn(at, "=");
        snprintf(axis.name, sizeof axis.name, "%.*s", (int)name, at);
        snprintf(axis.values, sizeof axis.values, "%.*s", (int)(length - name - 1), at + name + 1);
        at += length;
        for (int i = 0; i < r->n_axes; i++) taken = taken || !strcmp(r->axes[i].name, axis.name);
        if (taken || given(r, axis.name)) continue;
        if (*n == PLAN_MAX_AXES)
            return fail(e, ST_USAGE, "the profile and the command line together list values of more than %d flags",
                        PLAN_MAX_AXES);
        axes[(*n)++] = axis;
    }
    return ST_OK;
}

/* Every combination of the axes' values, the first axis slowest. */
static enum status list_configs(const struct plan_request *r, struct config **configs, int *n, struct error *e) {
    struct plan_axis axes[PLAN_MAX_AXES];
    int n_axes = 0;
    TRY(list_axes(r, axes, &n_axes, e));
    *configs = malloc(sizeof **configs);
    if (!*configs) return fail(e, ST_FAIL, "no memory for a plan");
    **configs = r->args->config;
    *n = 1;
    for (int a = 0; a < n_axes; a++) {
        struct texts values = {0};
        enum status status = expand_values(&axes[a], &values, e);
        struct config *more = values.n ? calloc((size_t)*n * (size_t)values.n, sizeof *more) : NULL;
        if (status == ST_OK && !more) status = fail(e, ST_FAIL, "no memory for a plan");
        for (int i = 0; i < *n * values.n && status == ST_OK; i++) {
            more[i] = (*configs)[i / values.n];
            status = config_set(&more[i], axes[a].name, values.list[i % values.n], e);
        }
        if (more) {
            free(*configs);
            *configs = more;
            *n *= values.n;
        }
        texts_free(&values);
        TRY(status);
    }
    return ST_OK;
}

/* --- runs ------------------------------------------------------------------------------------------------------------------- */

/* FLOPs of a whole run, from a recorded graph. */
static double run_flops(const struct setup *s) {
    struct params params;
    struct graph graph;
    struct net net;
    struct model_choice choice = s->parsed;
    struct error e;
    struct graph_options options = {.training = true, .kernels = kernel_list()};
    struct net_shape shape = setup_net_shape(s, SPLIT_TRAIN);
    double flops = 0;
    size_t bytes;
    if (params_create(&params, &e) != ST_OK) return 0;
    if (graph_create(&graph, &options, &params, &e) == ST_OK &&
        net_build(&net, &graph, &s->config.net, &choice, &shape, &e) == ST_OK &&
        graph_measure(&graph, &bytes, &e) == ST_OK)
        flops = graph_cost(&graph, PASS_FORWARD).flops + graph_cost(&graph, PASS_BACKWARD).flops;
    graph_free(&graph);
    params_free(&params);
    return flops * (double)s->steps;
}

static bool is_planned(const struct plan *plan, const struct setup *s) {
    for (int i = 0; i < plan->n; i++)
        if (!strcmp(plan->setups[i]->run_id, s->run_id)) return true;
    return false;
}

/* Takes the setup over; the same run is planned once. */
static enum status add_setup(struct plan *plan, struct setup *s, struct error *e) {
    struct setup **longer = realloc(plan->setups, (size_t)(plan->n + 1) * sizeof(struct setup *));
    if (longer) plan->setups = longer;
    if (!longer || is_planned(plan, s)) {
        setup_free(s);
        free(s);
        return longer ? ST_OK : fail(e, ST_FAIL, "no memory for a plan of %d runs", plan->n + 1);
    }
    s->flops = run_flops(s);
    plan->setups[plan->n++] = s;
    return ST_OK;
}

/* The limit of the whole bench is a budget of each run, and thereby part of what the run is: a record that the limit ended
 * does not pass for one of a bench without it. */
static enum status add_runs(struct plan *plan, const struct plan_request *r, const struct config *base,
                            const char *task, const char *model, struct error *e) {
    struct config config = *base;
    if (*config.from || *config.from_xxh3)
        return fail(e, ST_USAGE,
                    "bench draws the weights of every seed; `lrnn train --from FILE` starts a run from a file");
    if (r->limit > 0 && (config.budget == 0 || config.budget > r->limit)) config.budget = r->limit;
    for (int rate = 0; rate < r->n_rates; rate++)
        for (config.seed = 1; config.seed <= r->seeds; config.seed++) {
            config.lr = r->rates[rate];
            struct setup *s = setup_make(&config, task, model, e);
            if (!s) return e->status;
            TRY(add_setup(plan, s, e));
        }
    return ST_OK;
}

/* "dim=1024,layers=2" behind a model's '@'; where the models are the profile's, the command line stands over it. */
static enum status own_flags(const struct plan_request *r, const char *flags, struct config *config, struct error *e) {
    while (*flags) {
        char name[OPTION_TEXT], value[OPTION_TEXT];
        size_t n = strcspn(flags, ",");
        if (sscanf(flags, "%255[^=,]=%255[^,]", name, value) != 2)
            return fail(e, ST_USAGE, "'@%s' behind a model is not of the form flag=value,flag=value", flags);
        if (r->models != r->profile->models || !given(r, name)) TRY(config_set(config, name, value, e));
        flags += n + (flags[n] == ',');
    }
    return ST_OK;
}

static enum status add_model(struct plan *plan, const struct plan_request *r, const struct config *base,
                             const char *task, char *word, struct error *e) {
    struct model_choice choice;
    struct config config = *base;
    char text[CONFIG_TEXT], *at = strchr(word, '@');
    if (at) {
        *at = 0;
        TRY(own_flags(r, at + 1, &config, e));
    }
    TRY(model_parse(&choice, word, e));
    with_defaults(word, r->profile->model_options, choice.model->options, text, sizeof text);
    return add_runs(plan, r, &config, task, text, e);
}

static enum status add_models(struct plan *plan, const struct plan_request *r, const struct config *config,
                              const char *task, struct error *e) {
    const char *at = r->models + strspn(r->models, " ");
    if (!*at) return fail(e, ST_USAGE, "--models names no model; write for example --models 'bdlru:m=5 lstm'");
    for (; *at; at += strspn(at, " ")) {
        char word[OPTION_TEXT * 2];
        size_t n = strcspn(at, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        at += n;
        TRY(add_model(plan, r, config, task, word, e));
    }
    return ST_OK;
}

enum status plan_make(struct plan *plan, const struct plan_request *r, struct error *e) {
    struct texts tasks = {0};
    struct config *configs = NULL;
    int n_configs = 0;
    enum status status = list_tasks(r, &tasks, e);
    if (status == ST_OK) status = list_configs(r, &configs, &n_configs, e);
    for (int t = 0; t < tasks.n && status == ST_OK; t++)
        for (int c = 0; c < n_configs && status == ST_OK; c++)
            status = add_models(plan, r, &configs[c], tasks.list[t], e);
    free(configs);
    texts_free(&tasks);
    return status;
}

void plan_free(struct plan *plan) {
    for (int i = 0; i < plan->n; i++) {
        setup_free(plan->setups[i]);
        free(plan->setups[i]);
    }
    free(plan->setups);
    *plan = (struct plan){0};
}
