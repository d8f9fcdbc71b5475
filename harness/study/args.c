/* args.c - see args.h. */
#include "harness/study/args.h"

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

bool args_void_steps(const struct label *flags) {
    return label_get(flags, "epochs") && !label_get(flags, "steps");
}

enum status args_set(const struct label *flags, struct config *c, struct error *e) {
    for (int i = 0; i < flags->n; i++) TRY(config_set(c, label_key(flags, i), label_value(flags, i), e));
    if (args_void_steps(flags)) c->steps = 0;
    return ST_OK;
}

enum status args_apply(struct args *a, const struct label *profile_flags, const struct label *more, struct error *e) {
    char task[LABEL_TEXT] = "", model[LABEL_TEXT] = "";
    struct label flags;
    TRY(config_default(&a->config, e));
    if (profile_flags) TRY(args_set(profile_flags, &a->config, e));
    if (more) TRY(args_set(more, &a->config, e));
    if (*a->config_file) {
        TRY(config_read(a->config_file, &a->config, task, model, &flags, e));
        TRY(args_set(&flags, &a->config, e));
    }
    TRY(args_set(&a->given, &a->config, e));
    if (!*a->task) memcpy(a->task, task, sizeof task);
    if (!*a->model) memcpy(a->model, model, sizeof model);
    return ST_OK;
}

/* "s5:length=8", "s5", or of options alone "length=8", as config_read gives it. */
static enum status read_label(const char *kind, const char *text, struct label *l, struct error *e) {
    const char *equals = strchr(text, '='), *colon = strchr(text, ':');
    if (equals && (!colon || equals < colon)) return label_parse_pairs(l, kind, text, ",", e);
    *l = (struct label){0};
    return *text ? label_parse(l, kind, text, e) : label_set_name(l, "", e);
}

enum status args_file(const struct args *a, struct label *task, struct label *model, struct label *flags,
                      struct error *e) {
    char texts[2][LABEL_TEXT] = {"", ""};
    *flags = (struct label){0};
    TRY(label_set_name(flags, "", e));
    if (*a->config_file) {
        struct config *ignored = calloc(1, sizeof *ignored);
        enum status status = ignored ? config_default(ignored, e) : fail(e, ST_MEMORY, "no memory");
        if (status == ST_OK) status = config_read(a->config_file, ignored, texts[0], texts[1], flags, e);
        free(ignored);
        TRY(status);
    }
    if (text_ends(a->config_file, ".json")) texts[0][0] = texts[1][0] = 0;
    TRY(read_label("task", texts[0], task, e));
    return read_label("model", texts[1], model, e);
}

/* Adds the file's options to a label of the words, which may be empty. */
static enum status merge(const char *kind, const char *path, const struct label *file, char asked[LABEL_TEXT],
                         struct error *e) {
    struct label own;
    if (!*asked || file->n == 0) return ST_OK;
    TRY(label_parse(&own, kind, asked, e));
    if (*label_name(file) && strcmp(label_name(file), label_name(&own)) != 0 && !task_takes(label_name(&own), file))
        return fail(e, ST_USAGE,
                    "%.300s has options of the %s %.60s, and the command names %.60s; take the lines out, or write the "
                    "options behind the name, as in %.60s:%.60s=%.60s",
                    path, kind, label_name(file), label_name(&own), label_name(&own), label_key(file, 0),
                    label_value(file, 0));
    for (int i = 0; i < file->n; i++)
        if (!label_get(&own, label_key(file, i))) TRY(label_add(&own, label_key(file, i), label_value(file, i), e));
    return label_format(&own, asked, LABEL_TEXT, e);
}

enum status args_merge(struct args *a, struct error *e) {
    struct label task, model, flags;
    TRY(args_file(a, &task, &model, &flags, e));
    TRY(merge("task", a->config_file, &task, a->task, e));
    return merge("model", a->config_file, &model, a->model, e);
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
    s->spec.config = *config;
    enum status status = task_parse(&s->spec.task, task, e);
    if (status == ST_OK) status = model_parse(&s->spec.model, model, e);
    if (status == ST_OK) status = setup_resolve(s, e);
    if (status == ST_OK) return s;
    setup_free(s);
    free(s);
    return NULL;
}
