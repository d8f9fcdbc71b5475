/* args.c - see args.h. */
#include "harness/plan/args.h"

#include <stdlib.h>
#include <string.h>

enum status args_note(struct args *a, const char *name, const char *value, bool *done, struct error *e) {
    if (!strcmp(name, "c")) {
        if (strlen(value) >= sizeof a->config_file) return fail(e, ST_USAGE, "the name of the config file is too long");
        snprintf(a->config_file, sizeof a->config_file, "%s", value);
        *done = true;
        return ST_OK;
    }
    if (!option_find(config_options, name) && !option_find(backbone_options, name)) return ST_OK;
    if (a->n_given == ARGS_MAX_GIVEN || strlen(value) >= OPTION_TEXT)
        return fail(e, ST_USAGE, "flag --%s: too many flags or too long a value", name);
    TRY(config_set(&a->config, name, value, e)); /* a bad value is said at once */
    snprintf(a->given_name[a->n_given], sizeof a->given_name[0], "%s", name);
    snprintf(a->given_value[a->n_given++], sizeof a->given_value[0], "%s", value);
    *done = true;
    return ST_OK;
}

static enum status apply_pairs(struct config *c, const char *pairs, struct error *e) {
    for (const char *at = pairs; *at;) {
        char pair[OPTION_TEXT];
        size_t n = strcspn(at, " ");
        snprintf(pair, sizeof pair, "%.*s", (int)n, at);
        char *equals = strchr(pair, '=');
        if (!equals) return fail(e, ST_FAIL, "profile flag '%s' is not of the form key=value", pair);
        *equals = 0;
        TRY(config_set(c, pair, equals + 1, e));
        at += n;
        at += strspn(at, " ");
    }
    return ST_OK;
}

enum status args_apply(struct args *a, const char *profile_flags, struct error *e) {
    char task[CONFIG_TEXT] = "", model[CONFIG_TEXT] = "";
    TRY(config_default(&a->config, e));
    if (profile_flags) TRY(apply_pairs(&a->config, profile_flags, e));
    if (*a->config_file) TRY(config_read(a->config_file, &a->config, task, model, e));
    for (int i = 0; i < a->n_given; i++) TRY(config_set(&a->config, a->given_name[i], a->given_value[i], e));
    if (!*a->task) memcpy(a->task, task, sizeof task);
    if (!*a->model) memcpy(a->model, model, sizeof model);
    return ST_OK;
}

struct setup *setup_stored(const char *text, const char *name, int64_t threads, struct error *e) {
    struct config config;
    const char *where = "its configuration";
    char task[CONFIG_TEXT] = "", model[CONFIG_TEXT] = "";
    struct error why = {ST_OK, ""};
    enum status status = config_default(&config, &why);
    if (status == ST_OK) status = config_read_text(text, where, &config, task, model, &why);
    if (status == ST_OK && (!*task || !*model)) status = fail(&why, ST_DATA, "%s names no task or no model", where);
    config.threads = threads;
    struct setup *s = status == ST_OK ? setup_make(&config, task, model, &why) : NULL;
    if (!s) fail(e, why.status == ST_FAIL ? ST_FAIL : ST_DATA, "%.150s: %.850s", name, why.text);
    return s;
}

struct setup *setup_make(const struct config *config, const char *task, const char *model, struct error *e) {
    struct setup *s = calloc(1, sizeof *s);
    if (!s) {
        fail(e, ST_FAIL, "no memory for a run");
        return NULL;
    }
    s->config = *config;
    enum status status = task_parse(&s->task, task, e);
    if (status == ST_OK) status = model_parse(&s->model, model, e);
    if (status == ST_OK) status = setup_resolve(s, e);
    if (status == ST_OK) return s;
    setup_free(s);
    free(s);
    return NULL;
}
