/* registry.c - the list of tasks, and task names with options turned into an opened task. */
#include "tasks/task.h"

#include <ctype.h>
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

#define NAMELESS ((unsigned)(OPT_HERE | OPT_FOUND)) /* paths and hashes of files, which are not part of a task's name */

/* Names the options of the choice that differ from the alias, or from the task itself if alias is NULL. */
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

/* Names a choice: by the alias with exactly these options, however they were typed; else by the typed name and the
 * options that differ. */
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

/* Rewrites "some/words.jsonl:..." as the task own:name=words,file=some/words.jsonl,... */
static enum status name_own_file(struct label *l, struct error *e) {
    char path[OPTION_TEXT], name[OPTION_TEXT];
    if (!text_ends(label_name(l), ".jsonl") && !text_ends(label_name(l), ".npz")) return ST_OK;
    TRY(text_copy(label_name(l), path, sizeof path, e));
    const char *from = strrchr(path, '/');
    TRY(text_copy(from ? from + 1 : path, name, sizeof name, e));
    *strrchr(name, '.') = 0;
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("-_.", *at)) *at = '-';
    TRY(label_set_name(l, "own", e));
    if (!label_get(l, "name")) TRY(label_add(l, "name", name, e));
    return label_add(l, "file", path, e);
}

enum status task_parse(struct task_choice *choice, const char *text, struct error *e) {
    const struct task_alias *alias;
    struct label label;
    char owner[160];
    memset(choice, 0, sizeof *choice);
    TRY(label_parse(&label, "task", text, e));
    TRY(name_own_file(&label, e));
    TRY(label_format(&label, choice->asked, sizeof choice->asked, e));
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
    label_format(&label, text, size, NULL); /* the text does not grow */
}

/* Lists the options in which two choices of one task differ; false if one of these is not about files. */
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

/* --- opening ------------------------------------------------------------------------------------------------------ */

/* The text of the option test_length; "" where the task has no such option. */
static const char *test_length_text(const struct task_choice *choice) {
    const struct option *o = option_find(choice->task->options, "test_length");
    return o ? (const char *)choice->inst + o->offset : "";
}

/* Opens the task once more, for test examples of that length. */
static enum status open_tested(struct task_choice *choice, int64_t length, struct task_tested *tested,
                               struct arena *host, struct error *e) {
    const struct task *task = choice->task;
    struct task_shape shape = {0};
    char owner[160], value[32];
    void *inst = arena_alloc(host, TASK_INST_BYTES);
    if (!inst) return fail(e, ST_MEMORY, "%s: no memory for test_length=%s", task->name, test_length_text(choice));
    memcpy(inst, choice->inst, TASK_INST_BYTES);
    snprintf(owner, sizeof owner, "task %.60s with test_length=%lld", task->name, (long long)length);
    snprintf(value, sizeof value, "%lld", (long long)length);
    for (const struct option *o = task->options; o->name; o++)
        if (o->flags & OPT_TESTED) TRY(options_set(task->options, inst, owner, o->name, value, e));
    TRY(task->open(inst, choice->seed, host, e));
    task->shape(inst, &shape);
    *tested = (struct task_tested){length, task_length(&shape, SPLIT_TEST), shape.examples[SPLIT_TEST], inst};
    return ST_OK;
}

/* Opens the task for each of its test lengths. The shape then has room for the longest and counts the examples of
 * all. */
static enum status open_test_lengths(struct task_choice *choice, struct arena *host, struct error *e) {
    const char *text = test_length_text(choice);
    struct task_shape *shape = &choice->shape;
    int64_t length, before = 0, T = task_length(shape, SPLIT_VAL);
    if (!*text) return ST_OK;
    struct task_tested *tested = arena_alloc(host, TASK_TEST_LENGTHS * sizeof *tested);
    if (!tested) return fail(e, ST_MEMORY, "%s: no memory for test_length=%s", choice->task->name, text);
    choice->tested = tested;
    shape->examples[SPLIT_TEST] = 0;
    for (const char *at = text; *at || at == text; at += *at == ',') {
        char number[32];
        TRY(text_part(&at, ",", number, sizeof number, e));
        if (!parse_int64(number, &length) || length <= before || choice->n_tested == TASK_TEST_LENGTHS)
            return fail(e, ST_USAGE,
                        "%s: test_length=%.60s is no list of at most %d whole numbers that ascend from 1; write for "
                        "example test_length=64,128",
                        choice->task->name, text, TASK_TEST_LENGTHS);
        struct task_tested *one = &tested[choice->n_tested++];
        TRY(open_tested(choice, length, one, host, e));
        shape->examples[SPLIT_TEST] += one->examples;
        T = one->T > T ? one->T : T;
        before = length;
    }
    if (T != shape->T) shape->T_eval = T;
    shape->unequal_test = choice->n_tested > 1;
    return ST_OK;
}

enum status task_open(struct task_choice *choice, uint64_t seed, struct arena *host, struct error *e) {
    choice->seed = seed;
    choice->n_tested = 0;
    TRY(choice->task->open(choice->inst, seed, host, e));
    memset(&choice->shape, 0, sizeof choice->shape);
    choice->task->shape(choice->inst, &choice->shape);
    choice->T_own = task_length(&choice->shape, SPLIT_VAL);
    return open_test_lengths(choice, host, e);
}

void task_fill(const struct task_choice *choice, enum split split, int64_t index, struct example *x) {
    const struct task_shape *shape = &choice->shape;
    const void *inst = choice->inst;
    int64_t T = split == SPLIT_TRAIN ? shape->T : choice->T_own;
    const struct task_tested *tested = choice->tested;
    if (split == SPLIT_TEST && choice->n_tested) {
        while (index >= tested->examples) index -= tested++->examples;
        inst = tested->inst;
        T = tested->T;
    }
    choice->task->fill(inst, split, index, x);
    for (int64_t t = T; x->tokens && t < task_length(shape, split); t++) x->tokens[t] = 0;
    for (int64_t i = T * shape->channels; x->values && i < task_length(shape, split) * shape->channels; i++)
        x->values[i] = 0;
}
