/* plan.c - see plan.h. */
#include "harness/study/plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/values.h"
#include "harness/study/graphs.h"
#include "harness/study/plan_file.h"
#include "harness/study/row_key.h"
#include "tasks/variants.h"

/* --- settings of a task or a model -------------------------------------------------------------------------------- */

static enum status texts_add_label(struct texts *t, const struct label *l, struct error *e) {
    char text[LABEL_TEXT];
    TRY(label_format(l, text, sizeof text, e));
    return texts_add(t, text, e);
}

/* Lists all texts that a label with ranges and lists ("m=1..4", "m=1,2,4") means. The first range varies slowest. Only
 * integer options have ranges, because in a path ".." is a folder. */
static enum status expand_ranges(const struct label *l, const struct option *table, struct texts *out,
                                 struct error *e) {
    for (int i = 0; i < l->n; i++) {
        const struct option *o = option_find(table, label_key(l, i));
        const char *value = label_value(l, i);
        int64_t from, to;
        if (!o || o->type != OPT_INT || (!strchr(value, ',') && !range_parse(value, &from, &to))) continue;
        struct texts values = {0};
        enum status status = values_expand(o->name, value, &values, e);
        for (int v = 0; v < values.n && status == ST_OK; v++) {
            struct label one = *l;
            status = label_set(&one, o->name, values.list[v], e);
            if (status == ST_OK) status = expand_ranges(&one, table, out, e);
        }
        texts_free(&values);
        return status;
    }
    return texts_add_label(out, l, e);
}

/* The lists of values with which a label is expanded. */
struct expansion {
    const struct label *grid;
    const char *prefix; /* "task." or "model.": only pairs of the grid with this prefix are used */
    const struct option *table;
    const struct label *given; /* the profile's settings */
    bool *taken;               /* plan_request.taken */
};

/* Adds the profile's options that the label does not set itself and that the table has. */
static enum status add_defaults(struct label *l, const struct expansion *x, struct error *e) {
    size_t n = strlen(x->prefix);
    for (int i = 0; i < x->given->n; i++) {
        const char *key = label_key(x->given, i);
        if (strncmp(key, x->prefix, n) != 0) continue;
        if (option_find(x->table, key + n) && !label_get(l, key + n))
            TRY(label_add(l, key + n, label_value(x->given, i), e));
    }
    return ST_OK;
}

/* Lists all texts that a label means. Each option that it does not set takes the values of the grid, if there are any,
 * else the profile's value. Then its ranges are expanded. `from`: the next pair of the grid to apply. */
static enum status expand(const struct expansion *x, const struct label *l, int from, struct texts *out,
                          struct error *e) {
    size_t n = strlen(x->prefix);
    for (int i = from; i < x->grid->n; i++) {
        const char *key = label_key(x->grid, i);
        if (strncmp(key, x->prefix, n) != 0 || !option_find(x->table, key + n) || label_get(l, key + n)) continue;
        struct texts values = {0};
        enum status status = values_expand(key, label_value(x->grid, i), &values, e);
        if (x->taken) x->taken[i] = true;
        for (int v = 0; v < values.n && status == ST_OK; v++) {
            struct label one = *l;
            status = label_add(&one, key + n, values.list[v], e);
            if (status == ST_OK) status = expand(x, &one, i + 1, out, e);
        }
        texts_free(&values);
        return status;
    }
    struct label whole = *l;
    TRY(add_defaults(&whole, x, e));
    return expand_ranges(&whole, x->table, out, e);
}

/* Reads a task's text, whose options may be ranges. Gives the table of the task's options. */
static enum status read_task(const char *text, struct label *label, const struct option **table, struct error *e) {
    struct task_choice *choice = calloc(1, sizeof *choice);
    enum status status = choice ? label_parse(label, "task", text, e) : fail(e, ST_MEMORY, "no memory for a plan");
    if (status == ST_OK) status = task_parse(choice, label_name(label), e);
    if (status == ST_OK) *table = choice->task->options;
    free(choice);
    return status;
}

enum status plan_first_task(const char *text, char first[LABEL_TEXT], struct error *e) {
    const struct option *table;
    struct label task;
    struct texts all = {0};
    TRY(read_task(text, &task, &table, e));
    enum status status = expand_ranges(&task, table, &all, e);
    if (status == ST_OK) status = text_copy(all.list[0], first, LABEL_TEXT, e);
    texts_free(&all);
    return status;
}

/* Adds the text of the label `base` with the options of `change` ("vocab=32") set. */
static enum status add_change(const struct label *base, const char *change, struct texts *out, struct error *e) {
    struct label changed = *base, pairs;
    TRY(label_parse_pairs(&pairs, label_name(base), change, ",", e));
    for (int i = 0; i < pairs.n; i++) TRY(label_set(&changed, label_key(&pairs, i), label_value(&pairs, i), e));
    return texts_add_label(out, &changed, e);
}

/* Adds the published name of the task, so that equal settings have equal names. Then adds its variants: published tasks
 * in which one option has another value. */
static enum status add_variants(const char *text, struct texts *out, struct error *e) {
    struct label label;
    struct task_choice *base = calloc(1, sizeof *base);
    enum status status = base ? task_parse(base, text, e) : fail(e, ST_MEMORY, "no memory for a plan");
    if (status == ST_OK) status = texts_add(out, base->name, e);
    if (status == ST_OK) status = label_parse(&label, "task", base->name, e);
    free(base);
    TRY(status);
    const char *const *changes = task_variants(label_name(&label));
    if (!changes) return fail(e, ST_USAGE, "task %s has no list of one-at-a-time changes", label_name(&label));
    for (; *changes; changes++) TRY(add_change(&label, *changes, out, e));
    return ST_OK;
}

static enum status list_tasks(const struct plan_request *r, struct texts *out, struct error *e) {
    const struct option *table;
    struct label task;
    struct texts plain = {0};
    TRY(read_task(r->task, &task, &table, e));
    struct expansion x = {&r->grid, "task.", table, &r->study->said[FROM_PROFILE], r->taken};
    enum status status = expand(&x, &task, 0, &plain, e);
    for (int i = 0; i < plain.n && status == ST_OK; i++)
        status = r->variants ? add_variants(plain.list[i], out, e) : texts_add(out, plain.list[i], e);
    texts_free(&plain);
    return status;
}

/* --- configurations ----------------------------------------------------------------------------------------------- */

static enum status too_many(double runs, struct error *e) {
    return fail(e, ST_USAGE, "the plan has %.0f runs or more, and at most %d are done in one; take fewer values", runs,
                PLAN_MOST_RUNS);
}

/* A flag and its values in the study. The runs have every combination of the values of all axes. */
struct axis {
    const char *flag;
    struct texts values;
};

#define MOST_AXES 128

static void axes_free(struct axis *axes, int n) {
    for (int i = 0; i < n; i++) texts_free(&axes[i].values);
}

/* Lists the flags that have several values, except those of list_row_axes. Flags of stronger origins come first. *n is
 * set after an error too, for axes_free. */
static enum status list_axes(const struct study *s, struct axis axes[MOST_AXES], int *n, struct error *e) {
    for (int o = ORIGINS - 1; o > FROM_DEFAULT; o--)
        for (int i = 0; i < s->said[o].n; i++) {
            enum origin from;
            const char *key = label_key(&s->said[o], i), *value = study_get(s, key, &from);
            if (!value || (int)from != o || !row_key_is_list(key, value)) continue;
            if (row_key_flag(key)->flags & (OPT_RATE | OPT_SEED)) continue;
            if (*n == MOST_AXES) return fail(e, ST_USAGE, "more than %d flags have lists", MOST_AXES);
            axes[*n] = (struct axis){.flag = key};
            TRY(values_expand(key, value, &axes[(*n)++].values, e));
        }
    return ST_OK;
}

#define ROW_AXES 2

/* Lists the axes within a row of a table: rates and seeds, by which the runs of one row differ (harness/rows/rows.h).
 * They change no size, so the graphs are measured once for all their values. */
static enum status list_row_axes(const struct study *s, struct axis axes[ROW_AXES], struct error *e) {
    const char *lr = study_get(s, "lr", NULL);
    const char *seeds = study_get(s, "seeds", NULL);
    char origin[128];
    axes[0].flag = "lr";
    axes[1].flag = "seed";
    study_origin_text(s, "seeds", origin, sizeof origin);
    TRY(seeds_parse(seeds ? seeds : "1", origin, &axes[1].values, e));
    return values_expand("lr", lr ? lr : option_find(config_options, "lr")->value, &axes[0].values, e);
}

/* Returns the number of combinations of the axes' values. */
static double combinations(const struct axis *axes, int n) {
    double product = 1;
    for (int i = 0; i < n; i++) product *= axes[i].values.n;
    return product;
}

/* Gives the values of combination number `number`. The first axis varies slowest. */
static enum status choose(const struct axis *axes, int n, int64_t number, struct label *chosen, struct error *e) {
    *chosen = (struct label){0};
    TRY(label_set_name(chosen, "", e));
    for (int i = n - 1; i >= 0; i--) {
        const struct texts *values = &axes[i].values;
        TRY(label_add(chosen, axes[i].flag, values->list[number % values->n], e));
        number /= values->n;
    }
    return ST_OK;
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

/* Returns the slot of a run, or the empty slot where it belongs. Ids are hashes, so runs spread evenly. */
static struct plan_slot *slot_of(const struct plan *plan, const char *run_id) {
    char digits[9];
    snprintf(digits, sizeof digits, "%.8s", run_id);
    size_t most = (size_t)plan->n_slots - 1, i = strtoul(digits, NULL, 16) & most;
    while (plan->slots[i].run && strcmp(plan->setups[plan->slots[i].run - 1]->id.run_id, run_id) != 0)
        i = (i + 1) & most;
    return &plan->slots[i];
}

static enum status no_memory(const struct plan *plan, struct error *e) {
    return fail(e, ST_MEMORY, "no memory for a plan of %d runs", plan->n + 1);
}

/* Makes room for another run and its use: doubles the lists that are full. */
static enum status make_room(struct plan *plan, struct error *e) {
    bool full = (plan->n & (plan->n - 1)) == 0, used = (plan->n_uses & (plan->n_uses - 1)) == 0;
    if (full) {
        struct setup **longer = realloc(plan->setups, (size_t)(plan->n ? 2 * plan->n : 1) * sizeof(struct setup *));
        if (!longer) return no_memory(plan, e);
        plan->setups = longer;
    }
    if (used) {
        struct plan_use *longer = realloc(plan->uses, (size_t)(plan->n_uses ? 2 * plan->n_uses : 1) * sizeof *longer);
        if (!longer) return no_memory(plan, e);
        plan->uses = longer;
    }
    if (2 * plan->n < plan->n_slots) return ST_OK;
    struct plan_slot *before = plan->slots,
                     *slots = calloc(plan->n_slots ? 2 * (size_t)plan->n_slots : 64, sizeof *slots);
    int n_before = plan->n_slots;
    if (!slots) return no_memory(plan, e);
    plan->slots = slots;
    plan->n_slots = n_before ? 2 * n_before : 64;
    for (int i = 0; i < n_before; i++)
        if (before[i].run) *slot_of(plan, plan->setups[before[i].run - 1]->id.run_id) = before[i];
    free(before);
    return ST_OK;
}

/* Adds the setup to the plan, or frees it if its run is planned already. Task words must come in order. */
static enum status add_setup(struct plan *plan, int word, struct setup *s, struct error *e) {
    enum status status = make_room(plan, e);
    struct plan_slot *slot = status == ST_OK ? slot_of(plan, s->id.run_id) : NULL;
    bool known = slot && slot->run, used = known && slot->word == word;
    if (!slot || known) setup_free(s);
    if (!slot || used) return status;
    if (!known) {
        plan->setups[plan->n++] = s;
        slot->run = plan->n;
    }
    slot->word = word;
    plan->uses[plan->n_uses++] = (struct plan_use){word, slot->run - 1};
    return ST_OK;
}

/* Computes the cost of a run's graphs. If they cannot be built, no error is returned here, because the run's own row
 * will say why. But a forced kernel that computes no op is a mistake on the command line, and is refused at once. */
static enum status find_size(struct setup *s, struct error *e) {
    struct error why = {ST_OK, ""};
    enum status status = graphs_estimate(&s->spec, &s->shapes, &s->estimate, &why);
    /* is the run too large, or was memory only short for a moment? */
    if (status == ST_MEMORY) status = graphs_estimate(&s->spec, &s->shapes, &s->estimate, &why);
    if (status == ST_OK || !*s->spec.config.kernel) return ST_OK;
    return fail(e, why.status, "%s", why.text);
}

/* Makes the first run of a setting, with its size. */
static struct setup *first_run(const struct config *config, const char *task, const char *model, struct error *e) {
    struct setup *s = setup_make(config, task, model, e);
    if (s && find_size(s, e) == ST_OK) return s;
    setup_free(s);
    return NULL;
}

/* Adds a run for each combination of the values of n row axes. The runs are copies of `like`, with the values of
 * `config` and of the axes. */
static enum status add_copies(struct plan *plan, int word, const struct setup *like, struct config config,
                              const struct axis *axes, int n, struct error *e) {
    enum status status = ST_OK;
    for (int i = 0; i < axes->values.n && status == ST_OK; i++) {
        status = config_set(&config, axes->flag, axes->values.list[i], e);
        struct setup *s = status == ST_OK ? setup_again(like, &config, e) : NULL;
        if (!s) return e->status;
        status = n == 1 ? add_setup(plan, word, s, e) : add_copies(plan, word, s, config, axes + 1, n - 1, e);
        if (n > 1) setup_free(s);
    }
    return status;
}

/* Adds the runs of one setting. */
static enum status add_runs(struct plan *plan, const struct plan_request *r, const struct config *base,
                            const struct axis axes[ROW_AXES], const char *task, const char *model, struct error *e) {
    struct config config = *base;
    if (*config.from || *config.from_xxh3)
        return fail(e, ST_USAGE,
                    "bench draws the weights of every seed; `lrnn train --from FILE` starts a run from a file");
    for (int i = 0; i < ROW_AXES; i++) TRY(config_set(&config, axes[i].flag, axes[i].values.list[0], e));
    struct setup *first = first_run(&config, task, model, e);
    enum status status = first ? add_copies(plan, r->word, first, config, axes, ROW_AXES, e) : e->status;
    setup_free(first);
    return status;
}

enum status plan_add_seed(struct plan *plan, const struct setup *s, int64_t seed, struct error *e) {
    struct config config = s->spec.config;
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, seed);
    TRY(config_set_from(&config, "--confirm-seeds", "seed", text, e));
    struct setup *other = setup_again(s, &config, e);
    if (!other) return e->status;
    for (int i = 0; i < plan->n; i++)
        if (!strcmp(plan->setups[i]->id.run_id, other->id.run_id)) {
            setup_free(other);
            return ST_OK;
        }
    enum status status = make_room(plan, e);
    if (status == ST_OK)
        plan->setups[plan->n++] = other;
    else
        setup_free(other);
    return status;
}

/* Refuses flags that apply to a whole bench and not to one model: device, files and output. Also refuses a list, except
 * of rates: all models have the same axes. */
static enum status check_own(const char *word, const char *flag, const char *value, struct error *e) {
    const struct option *o = row_key_flag(flag);
    if (!o) return ST_OK;
    if (!(o->flags & OPT_RATE) && row_key_is_list(flag, value))
        return fail(e, ST_USAGE, "%s: a list after one model's '@'; name the model once for each value of %s", word,
                    flag);
    if (o->flags & OPT_SEED)
        return fail(e, ST_USAGE, "%s: a seed of one model alone; --seeds lists those of all models", word);
    bool start = !strcmp(flag, "from"); /* add_runs says that a sweep cannot have --from */
    if ((o->flags & (OPT_RUNTIME | OPT_HERE) && !start) || !strcmp(flag, "device"))
        return fail(e, ST_USAGE, "%s: '%s' is of all runs and cannot stand after one model's '@'; give --%s instead",
                    word, flag, flag);
    return ST_OK;
}

/* Lists the models that a word such as "bdlru:m=1..5@dim=64" means. */
static enum status list_settings(const struct plan_request *r, const char *word, struct texts *out, struct error *e) {
    struct model_choice choice;
    struct label model;
    char text[LABEL_TEXT];
    TRY(text_part(&word, "@", text, sizeof text, e));
    TRY(label_parse(&model, "model", text, e));
    TRY(model_parse(&choice, label_name(&model), e));
    struct expansion x = {&r->grid, "model.", choice.model->options, &r->study->said[FROM_PROFILE], r->taken};
    return expand(&x, &model, 0, out, e);
}

/* Adds the runs of one word of --models, such as "bdlru:m=5", for one combination of the values of other axes. */
static enum status add_model(struct plan *plan, const struct plan_request *r, const struct label *chosen,
                             const char *task, const char *word, struct error *e) {
    struct texts settings = {0};
    struct axis axes[ROW_AXES] = {{0}};
    struct config config;
    struct study *own = malloc(sizeof *own);
    if (!own) return fail(e, ST_MEMORY, "no memory for a plan");
    *own = *r->study;
    enum status status = study_add_word(own, word, r->models_from, e);
    const struct label *flags = &own->said[r->models_from + 1];
    for (int i = 0; status == ST_OK && strchr(word, '@') && i < flags->n; i++)
        status = check_own(word, label_key(flags, i), label_value(flags, i), e);
    if (status == ST_OK) status = study_config(own, chosen, &config, e);
    if (status == ST_OK) snprintf(config.profile, sizeof config.profile, "%s", own->profile->name);
    if (status == ST_OK) status = list_row_axes(own, axes, e);
    if (status == ST_OK) status = list_settings(r, word, &settings, e);
    double runs = settings.n * combinations(axes, ROW_AXES) + plan->n;
    if (status == ST_OK && runs > PLAN_MOST_RUNS) status = too_many(runs, e);
    for (int i = 0; i < settings.n && status == ST_OK; i++)
        status = add_runs(plan, r, &config, axes, task, settings.list[i], e);
    texts_free(&settings);
    axes_free(axes, ROW_AXES);
    free(own);
    return status;
}

enum status plan_make(struct plan *plan, const struct plan_request *r, struct error *e) {
    struct texts tasks = {0};
    struct axis axes[MOST_AXES], row[ROW_AXES] = {{0}};
    int n_axes = 0;
    enum status status = list_tasks(r, &tasks, e);
    if (status == ST_OK) status = list_axes(r->study, axes, &n_axes, e);
    if (status == ST_OK) status = list_row_axes(r->study, row, e);
    double n = combinations(axes, n_axes), least = n * tasks.n * row[ROW_AXES - 1].values.n; /* models may set rates */
    if (status == ST_OK && least > PLAN_MOST_RUNS) status = too_many(least, e);
    if (status == ST_OK && !r->models[strspn(r->models, " ")])
        status = fail(e, ST_USAGE, "--models names no model; write for example --models 'bdlru:m=5 lstm'");
    for (int t = 0; t < tasks.n && status == ST_OK; t++)
        for (int64_t c = 0; c < (int64_t)n && status == ST_OK; c++) {
            struct label chosen;
            status = choose(axes, n_axes, c, &chosen, e);
            for (const char *at = r->models + strspn(r->models, " "); *at && status == ST_OK; at += strspn(at, " ")) {
                char word[LABEL_TEXT];
                status = text_part(&at, " ", word, sizeof word, e);
                if (status == ST_OK) status = add_model(plan, r, &chosen, tasks.list[t], word, e);
            }
        }
    axes_free(axes, n_axes);
    axes_free(row, ROW_AXES);
    texts_free(&tasks);
    return status;
}

/* A run and its index in the plan. */
struct placed {
    struct setup *setup;
    int place;
};

static int by_seed(const void *a, const void *b) {
    const struct placed *x = a, *y = b;
    int64_t of_x = x->setup->spec.config.seed, of_y = y->setup->spec.config.seed;
    return of_x != of_y ? (of_x < of_y ? -1 : 1) : x->place - y->place;
}

enum status plan_keep_shard(struct plan *plan, int64_t shard, int64_t shards, struct error *e) {
    int kept = 0;
    struct placed *ordered = calloc((size_t)plan->n + 1, sizeof *ordered);
    if (!ordered) return fail(e, ST_MEMORY, "no memory for a plan of %d runs", plan->n);
    for (int i = 0; i < plan->n; i++) ordered[i] = (struct placed){plan->setups[i], i};
    qsort(ordered, (size_t)plan->n, sizeof *ordered, by_seed);
    for (int i = 0; i < plan->n; i++) {
        if (i % shards == shard - 1)
            plan->setups[kept++] = ordered[i].setup;
        else
            setup_free(ordered[i].setup);
    }
    plan->n = kept;
    plan->n_uses = 0; /* a shard is only a part of the runs, so it makes no table */
    free(ordered);
    return ST_OK;
}

/* Whether the runs differ in the value of an option. */
static bool differs(const struct plan *plan, const struct option *o) {
    for (int i = 1; i < plan->n; i++)
        if (!option_same(o, &plan->setups[i]->spec.config, &plan->setups[0]->spec.config)) return true;
    return false;
}

enum status plan_differing_flags(const struct plan *plan, const struct label *asked, struct label *flags,
                                 struct error *e) {
    const struct option *const tables[] = {backbone_options, config_options};
    *flags = (struct label){0};
    TRY(label_set_name(flags, "", e));
    for (int t = 0; t < 2; t++)
        for (const struct option *o = tables[t]; o->name; o++) {
            bool told = o->flags & (OPT_RUNTIME | OPT_HERE | OPT_SEED | OPT_RATE) || !strcmp(o->name, "mlp");
            bool follows = o->flags & OPT_AUTO && !label_get(asked, o->name);
            if (!told && !follows && differs(plan, o)) TRY(label_add(flags, o->name, "", e));
        }
    return ST_OK;
}

bool plan_has_several_tasks(const struct plan *plan) {
    for (int i = 1; i < plan->n; i++)
        if (strcmp(plan->setups[i]->spec.task.name, plan->setups[0]->spec.task.name) != 0) return true;
    return false;
}

void plan_free(struct plan *plan) {
    for (int i = 0; i < plan->n; i++) setup_free(plan->setups[i]);
    free(plan->setups);
    free(plan->uses);
    free(plan->slots);
    *plan = (struct plan){0};
}
