/* registry.c - the list of tasks, and task names with options turned into an opened task. */
#include "tasks/task.h"

#include <stdio.h>
#include <string.h>

#include "core/label.h"

#define TASK(name) extern const struct task task_##name;
#include "tasks/list.def"
#undef TASK

#define TASK(name) &task_##name,
static const struct task *const tasks[] = {
#include "tasks/list.def"
    NULL};
#undef TASK

const char *const metric_names[METRIC_COUNT + 1] = {"acc", "macro_acc", NULL};

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

const char *task_name_at(int i) {
    for (const struct task *const *t = tasks; *t; t++) {
        if ((*t)->hidden) continue;
        if (i == 0) return (*t)->name;
        if (i <= alias_count(*t)) return (*t)->aliases[i - 1].name;
        i -= 1 + alias_count(*t);
    }
    return NULL;
}

static const char *public_name(const void *unused, int i) {
    (void)unused;
    return task_name_at(i);
}

static enum status unknown_task(const char *name, struct error *e) {
    int count = 0;
    while (task_name_at(count)) count++;
    const char *near = nearest_name(name, count, public_name, NULL);
    if (near)
        return fail(e, ST_USAGE, "unknown task '%.60s'; did you mean '%s'? `lrnn list tasks` shows all", name, near);
    return fail(e, ST_USAGE, "unknown task '%.60s'; `lrnn list tasks` shows all", name);
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
    struct label label;
    memset(inst, 0, TASK_INST_BYTES);
    TRY(options_default(task->options, inst, e));
    if (!alias) return ST_OK;
    TRY(label_parse_pairs(&label, alias->name, alias->options, ",", e));
    return label_apply(&label, task->options, inst, alias->name, e);
}

#define NAMELESS ((unsigned)(OPT_HERE | OPT_FOUND)) /* where files are and what they hold: no part of a task's name */

/* Names the options of the choice that differ from the alias, or from the task itself (alias NULL). */
static enum status changes_of(const struct task_choice *choice, const struct task_alias *alias, struct label *changes,
                              struct error *e) {
    _Alignas(16) unsigned char inst[TASK_INST_BYTES];
    const struct task *task = choice->task;
    struct label own, base;
    TRY(base_options(task, alias, inst, e));
    TRY(label_of(&base, alias ? alias->name : task->name, task->options, inst, NAMELESS, e));
    TRY(label_of(&own, task->name, task->options, choice->inst, NAMELESS, e));
    return label_difference(&own, &base, changes, e);
}

/* An alias whose options are exactly these gives its name, however they were typed; else the typed name and what
 * differs from it. */
static enum status name_choice(struct task_choice *choice, const struct task_alias *typed, struct error *e) {
    struct label changes;
    choice->name = choice->label;
    for (int i = 0; i < alias_count(choice->task); i++) {
        TRY(changes_of(choice, &choice->task->aliases[i], &changes, e));
        if (changes.n == 0) return label_format(&changes, choice->label, sizeof choice->label, e);
    }
    TRY(changes_of(choice, typed, &changes, e));
    return label_format(&changes, choice->label, sizeof choice->label, e);
}

enum status task_parse(struct task_choice *choice, const char *text, struct error *e) {
    const struct task_alias *alias;
    struct label label;
    char owner[160];
    memset(choice, 0, sizeof *choice);
    TRY(text_copy(text, choice->asked, sizeof choice->asked, e));
    TRY(label_parse(&label, "task", text, e));
    choice->task = find_name(label_name(&label), &alias);
    if (!choice->task) return unknown_task(label_name(&label), e);
    TRY(base_options(choice->task, alias, choice->inst, e));
    snprintf(owner, sizeof owner, "task %.100s", label_name(&label));
    TRY(label_apply(&label, choice->task->options, choice->inst, owner, e));
    options_plain(choice->task->options, choice->inst);
    return name_choice(choice, alias, e);
}

bool task_takes(const char *name, const struct label *options) {
    const struct task_alias *alias;
    struct label own;
    const struct task *task = find_name(name, &alias);
    if (!alias || strcmp(task->name, label_name(options)) != 0 ||
        label_parse_pairs(&own, name, alias->options, ",", NULL) != ST_OK)
        return false;
    for (int i = 0; i < own.n; i++) {
        const char *value = label_get(options, label_key(&own, i));
        if (value && strcmp(value, label_value(&own, i)) != 0) return false;
    }
    return true;
}

void task_label_without(const char *task_label, unsigned flags, char *text, size_t size) {
    const struct task_alias *alias;
    struct label label;
    snprintf(text, size, "%s", task_label);
    if (label_parse(&label, "task", task_label, NULL) != ST_OK) return;
    const struct task *known = find_name(label_name(&label), &alias);
    for (const struct option *o = known ? known->options : NULL; o && o->name; o++)
        if (o->flags & flags) label_remove(&label, o->name);
    label_format(&label, text, size, NULL); /* no longer than it was */
}

/* The pairs that a choice has beyond another of the same task; false if one of them is more than files. */
static bool differ_in_files(const struct task_choice *own, const struct task_choice *other, struct label *files) {
    const struct option *options = own->task->options;
    struct label a, b;
    if (own->task != other->task || label_of(&a, own->task->name, options, own->inst, 0, NULL) != ST_OK ||
        label_of(&b, own->task->name, options, other->inst, 0, NULL) != ST_OK ||
        label_difference(&a, &b, files, NULL) != ST_OK)
        return false;
    for (int i = 0; i < files->n; i++)
        if (!(option_find(options, label_key(files, i))->flags & NAMELESS)) return false;
    return true;
}

enum status task_rename(char *label, const char *named, struct error *e) {
    struct task_choice own, other;
    struct label files, renamed;
    if (task_parse(&own, label, NULL) != ST_OK || task_parse(&other, named, NULL) != ST_OK ||
        !differ_in_files(&own, &other, &files))
        return ST_OK;
    TRY(label_parse(&renamed, "task", named, e));
    for (int i = 0; i < files.n; i++) TRY(label_set(&renamed, label_key(&files, i), label_value(&files, i), e));
    return label_format(&renamed, label, LABEL_TEXT, e);
}

enum status task_open(struct task_choice *choice, uint64_t seed, struct arena *host, struct error *e) {
    choice->seed = seed;
    TRY(choice->task->open(choice->inst, seed, host, e));
    memset(&choice->shape, 0, sizeof choice->shape);
    choice->task->shape(choice->inst, &choice->shape);
    return ST_OK;
}
