/* registry.c - the list of tasks, and task names with options turned into an opened task. */
#include "tasks/task.h"

#include <string.h>

#define TASK(name) extern const struct task task_##name;
#include "tasks/list.def"
#undef TASK

#define TASK(name) &task_##name,
static const struct task *const tasks[] = {
#include "tasks/list.def"
    NULL};
#undef TASK

const struct task *const *task_list(void) {
    return tasks;
}

const struct task *task_find(const char *name) {
    for (const struct task *const *t = tasks; *t; t++)
        if (strcmp((*t)->name, name) == 0) return *t;
    return NULL;
}

static int alias_count(const struct task *task) {
    int n = 0;
    while (task->aliases && task->aliases[n].name) n++;
    return n;
}

/* The i-th of all names a user may type, aliases behind their task, hidden tasks left out; NULL past the end. */
static const char *public_name(const void *unused, int i) {
    (void)unused;
    for (const struct task *const *t = tasks; *t; t++) {
        if ((*t)->hidden) continue;
        if (i == 0) return (*t)->name;
        if (i <= alias_count(*t)) return (*t)->aliases[i - 1].name;
        i -= 1 + alias_count(*t);
    }
    return NULL;
}

static enum status unknown_task(const char *name, struct error *e) {
    int count = 0;
    while (public_name(NULL, count)) count++;
    const char *near = nearest_name(name, count, public_name, NULL);
    if (near) return fail(e, ST_USAGE, "unknown task '%s'; did you mean '%s'? `lrnn list tasks` shows all", name, near);
    return fail(e, ST_USAGE, "unknown task '%s'; `lrnn list tasks` shows all", name);
}

/* The task of that name, or the alias (*alias, else NULL) and its task; NULL if there is none. */
static const struct task *find_name(const char *name, const struct task_alias **alias) {
    *alias = NULL;
    const struct task *task = task_find(name);
    if (task) return task;
    for (const struct task *const *t = tasks; *t; t++)
        for (int i = 0; i < alias_count(*t); i++)
            if (strcmp((*t)->aliases[i].name, name) == 0) {
                *alias = &(*t)->aliases[i];
                return *t;
            }
    return NULL;
}

/* Defaults of the task overridden by the alias's options (alias may be NULL). */
static enum status base_options(const struct task *task, const struct task_alias *alias, void *inst, struct error *e) {
    memset(inst, 0, TASK_INST_BYTES);
    TRY(options_default(task->options, inst, e));
    if (alias) TRY(options_parse(task->options, inst, alias->name, alias->options, ",", e));
    return ST_OK;
}

static bool same_value(const struct option *option, const void *a, const void *b, char value[OPTION_TEXT + 1]) {
    char other[OPTION_TEXT + 1];
    option_format_value(option, a, value, OPTION_TEXT + 1);
    option_format_value(option, b, other, sizeof other);
    return strcmp(value, other) == 0;
}

static bool same_options(const struct task *task, const void *a, const void *b) {
    char value[OPTION_TEXT + 1];
    for (const struct option *o = task->options; o->name; o++)
        if (!same_value(o, a, b, value)) return false;
    return true;
}

/* Appends "SEPARATOR name=value" for each option that differs from those of `base`, in table order. */
static enum status append_changes(struct task_choice *choice, const void *base, struct error *e) {
    char value[OPTION_TEXT + 1];
    size_t used = strlen(choice->label);
    char separator = ':';
    for (const struct option *o = choice->task->options; o->name; o++) {
        if (same_value(o, choice->inst, base, value)) continue;
        size_t room = sizeof choice->label - used, wanted = strlen(o->name) + strlen(value) + 2;
        if (wanted >= room)
            return fail(e, ST_USAGE, "task %s: the options make a name longer than %zu characters; shorten them",
                        choice->task->name, sizeof choice->label - 1);
        used += (size_t)snprintf(choice->label + used, room, "%c%s=%s", separator, o->name, value);
        separator = ',';
    }
    return ST_OK;
}

/* An alias whose options are exactly these gives its name, however they were typed; else the typed name and what
 * differs from it. */
static enum status name_choice(struct task_choice *choice, const struct task_alias *typed, struct error *e) {
    const struct task *task = choice->task;
    _Alignas(16) unsigned char base[TASK_INST_BYTES];
    choice->name = choice->label;
    for (int i = 0; i < alias_count(task); i++) {
        TRY(base_options(task, &task->aliases[i], base, e));
        if (!same_options(task, choice->inst, base)) continue;
        snprintf(choice->label, sizeof choice->label, "%s", task->aliases[i].name);
        return ST_OK;
    }
    TRY(base_options(task, typed, base, e));
    snprintf(choice->label, sizeof choice->label, "%s", typed ? typed->name : task->name);
    return append_changes(choice, base, e);
}

enum status task_parse(struct task_choice *choice, const char *text, struct error *e) {
    char name[128], owner[160];
    size_t length = strcspn(text, ":");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), text);
    const struct task_alias *alias;
    memset(choice, 0, sizeof *choice);
    choice->task = find_name(name, &alias);
    if (!choice->task) return unknown_task(name, e);
    TRY(base_options(choice->task, alias, choice->inst, e));
    snprintf(owner, sizeof owner, "task %s", name);
    TRY(options_parse(choice->task->options, choice->inst, owner, text[length] ? text + length + 1 : NULL, ",", e));
    return name_choice(choice, alias, e);
}

enum status task_open(struct task_choice *choice, uint64_t seed, struct arena *host, struct error *e) {
    choice->seed = seed;
    TRY(choice->task->open(choice->inst, seed, host, e));
    memset(&choice->shape, 0, sizeof choice->shape);
    choice->task->shape(choice->inst, &choice->shape);
    return ST_OK;
}
