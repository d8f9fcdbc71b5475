/* profile_match.c - see profile_match.h. */
#include "harness/study/profiles/profile_match.h"

#include <string.h>

#include "core/values.h"
#include "harness/study/profiles/profile.h"
#include "tasks/task.h"
#include "tasks/variants.h"

#define LEFT_OUT ((unsigned)(OPT_RUNTIME | OPT_HERE | OPT_SEED | OPT_RATE | OPT_OPEN))

static bool has_rate(const struct profile *p, double lr) {
    struct error e;
    for (const char *at = p->rates; *at; at += *at == ',') {
        char number[64];
        double rate;
        if (text_part(&at, ",", number, sizeof number, &e) == ST_OK && parse_double(number, &rate) && rate == lr)
            return true;
    }
    return false;
}

static bool set_flags(struct config *c, const char *flags, const char *separators) {
    struct label l;
    if (label_parse_pairs(&l, "the profile", flags, separators, NULL) != ST_OK) return false;
    for (int i = 0; i < l.n; i++)
        if (config_set(c, label_key(&l, i), label_value(&l, i), NULL) != ST_OK) return false;
    return true;
}

/* Whether every option that counts has the value it would have in a run of `c`, on an axis of the profile's one
 * of its values. What the key has not, its net has no use for. */
static bool agrees(struct config *c, const struct profile_question *q, const struct label *axes) {
    const struct option *const tables[] = {backbone_options, config_options};
    struct run_length length = config_length(c, q->n_train);
    c->steps = length.schedule_steps;
    c->eval_every = length.eval_every;
    if (length.steps == length.schedule_steps) c->stop_after = 0;
    for (int t = 0; t < 2; t++)
        for (const struct option *o = tables[t]; o->name; o++) {
            char value[OPTION_TEXT + 1];
            const char *got = label_get(q->key, o->name), *axis = label_get(axes, o->name);
            if (o->flags & LEFT_OUT || !got) continue;
            option_format_value(o, c, value, sizeof value);
            if (!(axis ? values_hold(axis, got) : strcmp(got, value) == 0)) return false;
        }
    return true;
}

/* Whether the run's mixer is that of a word "bdlru:m=5@stop-after=14000". */
static bool is_mixer(const char *word, const struct profile_question *q) {
    char text[LABEL_TEXT], name[128];
    struct label mixer;
    const char *model = label_get(q->key, "model");
    if (!model || text_part(&word, "@", text, sizeof text, NULL) != ST_OK) return false;
    if (label_parse(&mixer, "model", text, NULL) != ST_OK || strcmp(label_name(&mixer), model) != 0) return false;
    for (int i = 0; i < mixer.n; i++) {
        snprintf(name, sizeof name, "model.%s", label_key(&mixer, i));
        const char *value = label_get(q->key, name);
        if (!value || strcmp(value, label_value(&mixer, i)) != 0) return false;
    }
    return true;
}

/* Whether it has the flags of that word, too: "stop-after=14000". */
static bool agrees_with_flags(const struct profile *p, const char *flags, const struct config *base,
                              const struct profile_question *q, const struct label *axes) {
    struct config c = *base;
    c.lr = -1;
    if (!set_flags(&c, flags, ",")) return false;
    bool rate = c.lr < 0 ? has_rate(p, q->lr) : c.lr == q->lr;
    return rate && agrees(&c, q, axes);
}

/* Whether the task has the values that the profile gives its options, or `change`, one of its changes, in their
 * place. */
static bool is_task(const struct profile *p, const struct label *change, const struct profile_question *q) {
    const char *task_name = label_get(q->key, "task");
    const struct task *task = task_name ? task_find(task_name) : NULL;
    struct label options;
    if (label_parse_pairs(&options, "the profile", p->task_options, ",", NULL) != ST_OK) return false;
    for (int i = 0; i < options.n; i++) {
        char name[128], canonical[OPTION_TEXT + 1];
        const char *option = label_key(&options, i), *values = label_get(change, option);
        if (!values) values = label_value(&options, i);
        snprintf(name, sizeof name, "task.%s", option);
        const char *got = label_get(q->key, name); /* NULL: it has no such option */
        if (task && option_canonical(task->options, "", option, values, canonical, sizeof canonical, NULL) == ST_OK)
            values = canonical; /* no list */
        if (got && !values_hold(values, got)) return false;
    }
    return true;
}

static bool makes_task(const struct profile *p, const char *name, const struct profile_question *q) {
    struct label change = {0};
    if (is_task(p, &change, q)) return true;
    for (const char *const *changes = p->variants ? task_variants(name) : NULL; changes && *changes; changes++)
        if (label_parse_pairs(&change, name, *changes, ",", NULL) == ST_OK && is_task(p, &change, q)) return true;
    return false;
}

/* Where the profile has the run's mixer with flags of its own alone, it makes none with the flags of all. */
static bool makes(const struct profile *p, const struct profile_question *q) {
    struct config c;
    struct label axes;
    bool plain = false, own = false;
    if (config_default(&c, NULL) != ST_OK || !set_flags(&c, p->flags, " ")) return false;
    if (label_parse_pairs(&axes, "the profile", p->axes, " ", NULL) != ST_OK) return false;
    for (const char *at = p->models + strspn(p->models, " "); *at; at += strspn(at, " ")) {
        char word[LABEL_TEXT];
        if (text_part(&at, " ", word, sizeof word, NULL) != ST_OK) return false;
        const char *flags = strchr(word, '@');
        if (!is_mixer(word, q)) continue;
        if (flags && agrees_with_flags(p, flags + 1, &c, q, &axes)) return true;
        own = own || flags;
        plain = plain || !flags;
    }
    return (plain || !own) && has_rate(p, q->lr) && agrees(&c, q, &axes);
}

bool profile_holds(const struct profile_question *q) {
    const struct profile *p;
    struct label task;
    bool known = label_parse(&task, "task", q->task, NULL) == ST_OK &&
                 profile_find(label_name(&task), q->suite, q->name, &p, NULL) == ST_OK;
    if (known) return makes_task(p, label_name(&task), q) && makes(p, q);
    return *q->name && !profile_is_name(q->name);
}
