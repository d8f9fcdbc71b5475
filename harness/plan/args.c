/* args.c - see args.h. */
#include "harness/plan/args.h"

#include <stdlib.h>
#include <string.h>

enum status args_note(struct args *a, const char *name, const char *value, bool *done, struct error *e) {
    bool file = !strcmp(name, "c");
    if (!file && !option_find(config_options, name) && !option_find(backbone_options, name)) return ST_OK;
    *done = true;
    if (file) return text_copy(value, a->config_file, sizeof a->config_file, e);
    TRY(config_set(&a->config, name, value, e)); /* a bad value is said at once */
    return label_add(&a->given, name, value, e);
}

static enum status set_flags(struct config *c, const struct label *flags, struct error *e) {
    for (int i = 0; i < flags->n; i++) TRY(config_set(c, label_key(flags, i), label_value(flags, i), e));
    return ST_OK;
}

enum status args_apply(struct args *a, const char *profile_flags, const struct label *more, struct error *e) {
    char task[LABEL_TEXT] = "", model[LABEL_TEXT] = "";
    struct label flags;
    TRY(config_default(&a->config, e));
    TRY(label_parse_pairs(&flags, "the profile", profile_flags, " ", e));
    TRY(set_flags(&a->config, &flags, e));
    if (more) TRY(set_flags(&a->config, more, e));
    if (*a->config_file) TRY(config_read(a->config_file, &a->config, task, model, e));
    TRY(set_flags(&a->config, &a->given, e));
    if (!*a->task) memcpy(a->task, task, sizeof task);
    if (!*a->model) memcpy(a->model, model, sizeof model);
    return ST_OK;
}

struct setup *setup_stored(const char *text, const char *name, int64_t threads, struct error *e) {
    struct config config;
    const char *where = "its configuration";
    char task[LABEL_TEXT] = "", model[LABEL_TEXT] = "";
    struct error why = {ST_OK, ""};
    enum status status = config_default(&config, &why);
    if (status == ST_OK) status = config_read_text(text, where, &config, task, model, &why);
    if (status == ST_OK && (!*task || !*model)) status = fail(&why, ST_DATA, "%s names no task or no model", where);
    config.threads = threads;
    struct setup *s = status == ST_OK ? setup_make(&config, task, model, &why) : NULL;
    if (!s)
        fail(e, why.status == ST_FAIL || why.status == ST_MEMORY ? why.status : ST_DATA, "%.150s: %.850s", name,
             why.text);
    return s;
}

struct setup *setup_make(const struct config *config, const char *task, const char *model, struct error *e) {
    struct setup *s = calloc(1, sizeof *s);
    if (!s) {
        fail(e, ST_MEMORY, "no memory for a run");
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
