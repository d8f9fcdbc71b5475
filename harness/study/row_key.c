/* row_key.c - see row_key.h. */
#include "harness/study/row_key.h"

#include <string.h>

#include "core/values.h"
#include "tasks/task.h"

#define LEFT_OUT ((unsigned)(OPT_RUNTIME | OPT_HERE | OPT_SEED | OPT_RATE))

const struct option *row_key_flag(const char *name) {
    const struct option *o = option_find(backbone_options, name);
    return o ? o : option_find(config_options, name);
}

bool row_key_is_list(const char *name, const char *value) {
    const struct option *o = row_key_flag(name);
    if (!o || (o->flags & OPT_RUNTIME)) return false;
    bool numeric = o->type == OPT_INT || o->type == OPT_REAL;
    return (numeric || o->type == OPT_CHOICE) && (strchr(value, ',') || (numeric && strstr(value, "..")));
}

/* Returns the k-th option with that name over all tasks or models; NULL after the last. */
static const struct option *option_number(const char *name, int k) {
    const struct option *o;
    for (const struct task *const *t = task_list(); !strncmp(name, "task.", 5) && *t; t++)
        if ((o = option_find((*t)->options, name + 5)) && k-- == 0) return o;
    for (const struct model *const *m = model_list(); !strncmp(name, "model.", 6) && *m; m++)
        if ((o = option_find((*m)->options, name + 6)) && k-- == 0) return o;
    return k == 0 ? row_key_flag(name) : NULL;
}

const struct option *row_key_option(const char *name) {
    return option_number(name, 0);
}

enum status row_key_canonical(const char *name, const char *owner, const char *value, char *buffer, size_t size,
                              struct error *e) {
    const struct option *o = option_number(name, 0);
    enum status status =
        o ? option_canonical(o, owner, o->name, value, buffer, size, e) : text_copy(value, buffer, size, e);
    for (int k = 1; status == ST_USAGE && (o = option_number(name, k)); k++)
        if (option_canonical(o, owner, o->name, value, buffer, size, NULL) == ST_OK) return ST_OK;
    return status;
}

enum status row_key_check_option(const struct option *o, const char *value, const char *origin, struct error *e) {
    struct texts values = {0};
    char canonical[OPTION_TEXT + 1];
    bool several = o->type == OPT_INT || o->type == OPT_REAL || o->type == OPT_CHOICE;
    TRY(option_filled(o, origin, value, e));
    enum status status = several ? values_expand(o->name, value, &values, e) : texts_add(&values, value, e);
    for (int i = 0; i < values.n && status == ST_OK; i++)
        status = option_canonical(o, origin, o->name, values.list[i], canonical, sizeof canonical, e);
    texts_free(&values);
    return status;
}

enum status row_key_check(const char *name, const char *value, const char *origin, struct error *e) {
    const struct option *o = option_number(name, 0);
    enum status status = o ? row_key_check_option(o, value, origin, e) : ST_OK;
    for (int k = 1; status == ST_USAGE && (o = option_number(name, k)); k++)
        if (row_key_check_option(o, value, origin, NULL) == ST_OK) return ST_OK;
    return status;
}

/* Adds a value in its canonical form. If the option no longer accepts the value, it is added unchanged. */
static enum status put(struct label *key, const char *name, const struct option *o, const char *value,
                       struct error *e) {
    char canonical[OPTION_TEXT + 1];
    if (option_canonical(o, "a record", o->name, value, canonical, sizeof canonical, NULL) == ST_OK) value = canonical;
    return label_add(key, name, value, e);
}

/* Adds the options of a table, except those with a flag in `skip`. Their names get `prefix` in front. */
static enum status put_table(struct label *key, const struct label *read, const char *prefix,
                             const struct option *table, unsigned skip, struct error *e) {
    for (const struct option *o = table; o->name; o++) {
        char name[128];
        if (o->flags & skip) continue;
        snprintf(name, sizeof name, "%s%s", prefix, o->name);
        const char *value = label_get(read, name);
        TRY(put(key, name, o, value ? value : o->value, e));
    }
    return ST_OK;
}

/* Adds "task=NAME" or "model=NAME", then its options. */
static enum status put_choice(struct label *key, const struct label *read, const char *kind, const struct option *table,
                              struct error *e) {
    const char *name = label_get(read, kind);
    char prefix[16];
    snprintf(prefix, sizeof prefix, "%s.", kind);
    if (name) TRY(label_add(key, kind, name, e));
    return table ? put_table(key, read, prefix, table, 0, e) : ST_OK;
}

static const struct option *task_table(const char *name) {
    const struct task *task = name ? task_find(name) : NULL;
    return task ? task->options : NULL;
}

static const struct option *model_table(const char *name) {
    const struct model *model = name ? model_find(name) : NULL;
    return model ? model->options : NULL;
}

/* Leaves out the flags for parts of a layer (mlp, norm) if the net has its own parts and does not use the flags. */
static enum status leave_out_parts(struct label *key, struct error *e) {
    struct backbone net;
    const char *kind = label_get(key, "backbone"), *name = label_get(key, "model");
    const struct model *model = name ? model_find(name) : NULL;
    TRY(options_default(backbone_options, &net, e));
    if (!model || !kind || options_set(backbone_options, &net, "a record", "backbone", kind, NULL) != ST_OK)
        return ST_OK;
    net = backbone_resolved(&net, model);
    if (backbone_takes_parts(&net)) return ST_OK;
    label_remove(key, "mlp");
    label_remove(key, "norm");
    return ST_OK;
}

enum status row_key(const char *text, struct label *key, struct error *e) {
    struct label read;
    TRY(label_parse_pairs(&read, "the identity of a run", text, "\n", e));
    TRY(label_parse_pairs(key, "the identity of a run", NULL, "", e));
    TRY(put_choice(key, &read, "task", task_table(label_get(&read, "task")), e));
    TRY(put_choice(key, &read, "model", model_table(label_get(&read, "model")), e));
    TRY(put_table(key, &read, "", backbone_options, LEFT_OUT, e));
    TRY(leave_out_parts(key, e));
    TRY(put_table(key, &read, "", config_options, LEFT_OUT, e));
    for (int i = 0; i < read.n; i++) {
        const char *name = label_key(&read, i);
        if (!label_get(key, name) && !row_key_flag(name)) TRY(label_add(key, name, label_value(&read, i), e));
    }
    return ST_OK;
}

const char *row_key_value(const struct label *key, const char *name) {
    const char *value = label_get(key, name);
    const struct option *of_net = option_find(backbone_options, name);
    return value ? value : of_net ? of_net->value : "";
}
