/* profile.c - see profile.h. */
#include "harness/study/profile.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/values.h"
#include "harness/study/plan_file.h"
#include "tasks/task.h"
#include "tasks/variants.h"

/* --- the files ---------------------------------------------------------------------------------------------------- */

#define MOST_PROFILES 256

static struct {
    struct profile *list; /* of MOST_PROFILES */
    int n;
    struct error error; /* set if a file cannot be read; profile_find then returns it */
} all;

/* Adds the profiles of one file. Their names stay in memory until the program ends. */
static enum status load_file(const char *suite, struct error *e) {
    char path[PATH_BYTES], name[PLAN_NAME_BYTES];
    struct plan_file *file = calloc(1, sizeof *file);
    if (!file) return fail(e, ST_MEMORY, "no memory for the profiles of %s", suite);
    enum status status = path_format(path, sizeof path, e, PLAN_PROFILES "%s", suite);
    if (status == ST_OK) status = plan_file_read(file, path, e);
    const char *names = status == ST_OK ? plan_file_get(file, "", "profiles") : "";
    for (const char *at = names ? names : ""; *at && status == ST_OK; at += strspn(at, " ")) {
        struct profile *p = &all.list[all.n];
        status = text_part(&at, " ", name, sizeof name, e);
        if (status != ST_OK || all.n + 1 == MOST_PROFILES) break;
        status = plan_file_settings(file, name, &p->settings, e);
        const char *note = plan_file_get(file, name, "note");
        p->suite = strdup(suite);
        p->name = strdup(name);
        p->note = strdup(note ? note : "");
        if (status == ST_OK && (!p->suite || !p->name || !p->note))
            status = fail(e, ST_MEMORY, "no memory for the profiles of %s", suite);
        if (status == ST_OK) all.n++;
    }
    free(file);
    return status;
}

static void load(void) {
    const char *suite;
    all.list = calloc(MOST_PROFILES, sizeof *all.list);
    if (!all.list) fail(&all.error, ST_MEMORY, "no memory for the profiles");
    for (int i = 0; all.error.status == ST_OK && (suite = plan_file_built_in(PLAN_PROFILES, i)); i++)
        load_file(suite, &all.error);
}

const struct profile *profile_list(void) {
    static const struct profile none = {.suite = NULL};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load);
    return all.list ? all.list : &none;
}

/* --- look-up ------------------------------------------------------------------------------------------------------ */

/* Finds a profile of a task or suite by name; NULL: there is none. */
static const struct profile *find(const char *suite, const char *name) {
    for (const struct profile *p = profile_list(); p->suite; p++)
        if (!strcmp(p->suite, suite) && !strcmp(p->name, name)) return p;
    return NULL;
}

static void add_names(const char *suite, char *names, size_t size) {
    for (const struct profile *p = profile_list(); p->suite; p++) {
        char word[PLAN_NAME_BYTES + 1];
        size_t used = strlen(names);
        snprintf(word, sizeof word, " %s", p->name);
        if (!strcmp(p->suite, suite) && !strstr(names, word)) snprintf(names + used, size - used, "%s", word);
    }
}

void profile_names(const char *task, const char *suite, char *names, size_t size) {
    *names = 0;
    add_names(task, names, size);
    add_names(suite, names, size);
    if (!*names) add_names(PROFILE_DEFAULT, names, size);
}

enum status profile_find(const char *task, const char *suite, const char *name, const struct profile **profile,
                         struct error *e) {
    char own[256] = "", known[256];
    profile_list();
    if (all.error.status != ST_OK)
        return fail(e, all.error.status, "%s", all.error.text); /* an incomplete list would mislead */
    add_names(task, own, sizeof own);
    add_names(suite, own, sizeof own);
    *profile = find(task, name);
    if (!*profile) *profile = find(suite, name);
    if (!*profile && !*own) *profile = find(PROFILE_DEFAULT, name);
    if (*profile) return ST_OK;
    profile_names(task, suite, known, sizeof known);
    return fail(e, ST_USAGE, "unknown profile '%.60s'; of %.60s there are:%s", name, task, known);
}

const char *profile_get(const struct profile *p, const char *key) {
    const char *value = label_get(&p->settings, key);
    return value ? value : "";
}

enum status profile_flags(const struct profile *p, struct label *flags, struct error *e) {
    *flags = (struct label){0};
    TRY(label_set_name(flags, "", e));
    for (int i = 0; i < p->settings.n; i++) {
        const char *key = label_key(&p->settings, i), *value = label_value(&p->settings, i);
        if (row_key_flag(key) && !row_key_is_list(key, value)) TRY(label_add(flags, key, value, e));
    }
    return ST_OK;
}

bool profile_sets_flag(const char *flag) {
    for (const struct profile *p = profile_list(); p->suite; p++)
        if (label_get(&p->settings, flag)) return true;
    return false;
}

bool profile_word(const struct profile *p, const char *model, char word[LABEL_TEXT]) {
    size_t length = strlen(model);
    for (const char *at = profile_get(p, "models"); *at; at += strspn(at, " "))
        if (text_part(&at, " ", word, LABEL_TEXT, NULL) == ST_OK && strncmp(word, model, length) == 0 &&
            word[length] == '@')
            return true;
    return false;
}

/* --- whether a run is a profile's --------------------------------------------------------------------------------- */

#define LEFT_OUT ((unsigned)(OPT_RUNTIME | OPT_HERE | OPT_SEED | OPT_OPEN))

/* Returns the run's value of an option; NULL: the option has no effect on its net. A row's key lacks the rate. */
static const char *value_of(const struct profile_question *q, const struct option *o, char rate[OPTION_TEXT + 1]) {
    const struct config of_run = {.lr = q->lr};
    if (!(o->flags & OPT_RATE)) return label_get(q->key, o->name);
    option_format_value(o, &of_run, rate, OPTION_TEXT + 1);
    return rate;
}

/* Whether every option that counts has its value in the settings, or one of their values if they have a list. */
static bool agrees(const struct label *settings, const struct profile_question *q) {
    const struct option *const tables[] = {backbone_options, config_options};
    struct config c;
    if (config_default(&c, NULL) != ST_OK) return false;
    for (int i = 0; i < settings->n; i++) {
        const char *key = label_key(settings, i), *value = label_value(settings, i);
        if (!row_key_flag(key) || row_key_is_list(key, value)) continue;
        if (config_set(&c, key, value, NULL) != ST_OK) return false;
    }
    config_length(&c, q->n_train);
    for (int t = 0; t < 2; t++)
        for (const struct option *o = tables[t]; o->name; o++) {
            char value[OPTION_TEXT + 1], rate[OPTION_TEXT + 1];
            const char *got = value_of(q, o, rate), *list = label_get(settings, o->name);
            if (o->flags & LEFT_OUT || !got) continue;
            option_format_value(o, &c, value, sizeof value);
            if (!(list && row_key_is_list(o->name, list) ? values_hold(list, got) : strcmp(got, value) == 0))
                return false;
        }
    return true;
}

/* Whether the run's mixer is that of a word such as "bdlru:m=5@stop-after=14000". */
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

/* Whether the task's options have the profile's values. `change` is one of the task's published variants; the options
 * that it sets must have its values instead. */
static bool is_task(const struct profile *p, const struct label *change, const struct profile_question *q) {
    const char *task_name = label_get(q->key, "task");
    const struct task *task = task_name ? task_find(task_name) : NULL;
    for (int i = 0; i < p->settings.n; i++) {
        char canonical[OPTION_TEXT + 1];
        const char *key = label_key(&p->settings, i), *got = label_get(q->key, key);
        if (strncmp(key, "task.", 5) != 0 || !got) continue;
        const char *option = key + 5, *values = label_get(change, option);
        if (!values) values = label_value(&p->settings, i);
        if (task && option_canonical(task->options, "", option, values, canonical, sizeof canonical, NULL) == ST_OK)
            values = canonical; /* the profile's value in canonical form, unless it is a list */
        if (!values_hold(values, got)) return false;
    }
    return true;
}

static bool makes_task(const struct profile *p, const char *name, const struct profile_question *q) {
    struct label change = {0};
    bool variants = !strcmp(profile_get(p, "variants"), "yes");
    if (is_task(p, &change, q)) return true;
    for (const char *const *changes = variants ? task_variants(name) : NULL; changes && *changes; changes++)
        if (label_parse_pairs(&change, name, *changes, ",", NULL) == ST_OK && is_task(p, &change, q)) return true;
    return false;
}

/* Whether the run has the profile's flags, also those that the profile has only for the run's mixer. */
static bool makes(const struct profile *p, const struct profile_question *q) {
    bool plain = false, own = false;
    for (const char *at = profile_get(p, "models"); *at; at += strspn(at, " ")) {
        char word[LABEL_TEXT];
        struct label flags, with = p->settings;
        if (text_part(&at, " ", word, sizeof word, NULL) != ST_OK) return false;
        const char *own_flags = strchr(word, '@');
        if (!is_mixer(word, q)) continue;
        own = own || own_flags;
        plain = plain || !own_flags;
        if (!own_flags || label_parse_pairs(&flags, "the profile", own_flags + 1, ",", NULL) != ST_OK) continue;
        bool set = true;
        for (int i = 0; i < flags.n; i++)
            set = set && label_set(&with, label_key(&flags, i), label_value(&flags, i), NULL) == ST_OK;
        if (set && agrees(&with, q)) return true;
    }
    return (plain || !own) && agrees(&p->settings, q);
}

bool profile_holds(const struct profile_question *q) {
    const struct profile *p;
    struct label task;
    bool known = label_parse(&task, "task", q->task, NULL) == ST_OK &&
                 profile_find(label_name(&task), q->suite, q->name, &p, NULL) == ST_OK;
    if (known) return makes_task(p, label_name(&task), q) && makes(p, q);
    return *q->name && !plan_file_is_profile(q->name);
}
