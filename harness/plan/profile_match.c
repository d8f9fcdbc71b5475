/* profile_match.c - see profile_match.h. */
#include "harness/plan/profile_match.h"

#include <string.h>

#include "core/values.h"
#include "harness/plan/profile.h"

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
 * of its values. */
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
            if (o->flags & LEFT_OUT) continue;
            option_format_value(o, c, value, sizeof value);
            if (!got || !(axis ? values_hold(axis, got) : strcmp(got, value) == 0)) return false;
        }
    return true;
}

/* Whether the run is of the mixer of a word "bdlru:m=5@stop-after=14000", and it, too, with the flags of that word. */
static bool agrees_with_word(const struct profile *p, const char *word, const struct config *base,
                             const struct profile_question *q, const struct label *axes) {
    char text[LABEL_TEXT], name[128];
    struct label mixer;
    struct config c = *base;
    const char *flags = strchr(word, '@'), *model = label_get(q->key, "model"), *at = word;
    if (!flags || !model || text_part(&at, "@", text, sizeof text, NULL) != ST_OK) return false;
    if (label_parse(&mixer, "model", text, NULL) != ST_OK || strcmp(label_name(&mixer), model) != 0) return false;
    for (int i = 0; i < mixer.n; i++) {
        snprintf(name, sizeof name, "model.%s", label_key(&mixer, i));
        const char *value = label_get(q->key, name);
        if (!value || strcmp(value, label_value(&mixer, i)) != 0) return false;
    }
    c.lr = -1;
    if (!set_flags(&c, flags + 1, ",")) return false;
    bool rate = c.lr < 0 ? has_rate(p, q->lr) : c.lr == q->lr;
    return rate && agrees(&c, q, axes);
}

static bool makes(const struct profile *p, const struct profile_question *q) {
    struct config c;
    struct label axes;
    if (config_default(&c, NULL) != ST_OK || !set_flags(&c, p->flags, " ")) return false;
    if (label_parse_pairs(&axes, "the profile", p->axes, " ", NULL) != ST_OK) return false;
    for (const char *at = p->models + strspn(p->models, " "); *at; at += strspn(at, " ")) {
        char word[LABEL_TEXT];
        if (text_part(&at, " ", word, sizeof word, NULL) != ST_OK) return false;
        if (agrees_with_word(p, word, &c, q, &axes)) return true;
    }
    return has_rate(p, q->lr) && agrees(&c, q, &axes);
}

bool profile_holds(const struct profile_question *q) {
    const struct profile *p;
    struct label task;
    bool known = label_parse(&task, "task", q->task, NULL) == ST_OK &&
                 profile_find(label_name(&task), q->suite, q->name, &p, NULL) == ST_OK;
    return known ? makes(p, q) : *q->name && !profile_is_name(q->name);
}
