/* request.c - see request.h. */
#include "harness/study/request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/values.h"
#include "harness/study/row_key.h"

/* --- the command line --------------------------------------------------------------------------------------------- */

enum status request_say(struct request *r, const char *key, const char *value, struct error *e) {
    if (!r->said.used) TRY(label_set_name(&r->said, "", e));
    return label_set(&r->said, key, value, e);
}

/* Reads --grid. It refuses a pair without a value, which would give no runs or be ignored silently. */
static enum status read_grid(struct request *r, const char *text, struct error *e) {
    struct label grid;
    TRY(label_parse_pairs(&grid, "--grid", text, " ", e));
    for (int i = 0; i < grid.n; i++) {
        const char *key = label_key(&grid, i), *value = label_value(&grid, i);
        if (!*value) return fail(e, ST_USAGE, "--grid: %s has no value; write for example --grid 'model.m=1,2'", key);
        if (strncmp(key, "task.", 5) != 0 && strncmp(key, "model.", 6) != 0)
            return fail(e, ST_USAGE,
                        "grid: '%.60s' is neither task.OPTION nor model.OPTION; a flag takes its list itself, as in "
                        "--layers 1..4",
                        key);
        TRY(row_key_check(key, value, "command line", e));
        TRY(request_say(r, key, value, e));
    }
    return ST_OK;
}

enum status request_flag(struct request *r, const char *name, const char *value, bool *done, struct error *e) {
    *done = true;
    if (!strcmp(name, "seed"))
        return fail(e, ST_USAGE,
                    "a sweep has seeds 1..n: use --seeds n, or a list as 3,7; `lrnn train --seed 3` does one run");
    if (!strcmp(name, "models") && !value[strspn(value, " ")])
        return fail(e, ST_USAGE, "--models names no model; write for example --models 'bdlru:m=5 lstm'");
    if (!strcmp(name, "variants") && strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return fail(e, ST_USAGE, "variants=%.60s (command line): expected yes or no, got '%.60s'", value, value);
    TRY(row_key_check(name, value, "command line", e));
    if (!strcmp(name, "seeds") && !strcmp(value, "auto")) return ST_OK;
    if (!strcmp(name, "profile")) return text_copy(value, r->profile, sizeof r->profile, e);
    if (!strcmp(name, "grid")) return read_grid(r, value, e);
    bool word = !strcmp(name, "models") || !strcmp(name, "lr") || !strcmp(name, "seeds") || !strcmp(name, "variants");
    if (word || row_key_is_list(name, value)) return request_say(r, name, value, e);
    *done = false;
    return study_note(&r->said, r->config_file, name, value, done, e);
}

static bool is_task(const char *word) {
    struct label label;
    struct task_choice *choice = calloc(1, sizeof *choice);
    bool known = choice && label_parse(&label, "task", word, NULL) == ST_OK &&
                 task_parse(choice, label_name(&label), NULL) == ST_OK;
    free(choice);
    return known;
}

static bool is_path(const char *word) {
    return strchr(word, '/') || text_ends(word, ".plan");
}

/* Returns name number i of all tasks, then of all plans of papers. `list` points to the number of tasks. */
static const char *known_name(const void *list, int i) {
    int n_tasks = *(const int *)list;
    return i < n_tasks ? task_name_at(i) : plan_file_built_in(PLAN_PAPERS, i - n_tasks);
}

/* Makes the error for a word that is neither a task nor a plan. It says whether the name or its options are wrong. */
static enum status neither(const char *word, struct error *e) {
    struct label label;
    char name[PLAN_NAME_BYTES];
    int n_tasks = 0, n_plans = 0;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, ":"), word);
    if (strchr(word, ':') && is_task(name)) return label_parse(&label, "task", word, e);
    while (task_name_at(n_tasks)) n_tasks++;
    while (plan_file_built_in(PLAN_PAPERS, n_plans)) n_plans++;
    const char *near = nearest_name(name, n_tasks + n_plans, known_name, &n_tasks);
    return fail(e, ST_USAGE,
                "there is neither a task nor a plan '%s'%s%.60s%s `lrnn list tasks` and `lrnn list papers` name them",
                name, near ? "; did you mean '" : ";", near ? near : "", near ? "'?" : "");
}

enum status request_words(struct request *r, const char *const *words, int n, struct error *e) {
    int first = 0;
    if (n && !is_task(words[0])) {
        struct error why;
        enum status status = plan_file_read(&r->file, words[0], &why);
        if (status == ST_DATA && !is_path(words[0])) return neither(words[0], e);
        if (status != ST_OK) return fail(e, status, "%s", why.text);
        snprintf(r->name, sizeof r->name, "%s", r->file.name);
        r->file_word = words[0];
        first = 1;
    }
    for (int i = first; i < n; i++) {
        size_t used = strlen(r->tasks);
        int more = snprintf(r->tasks + used, sizeof r->tasks - used, "%s%s", used ? " " : "", words[i]);
        if (more < 0 || used + (size_t)more >= sizeof r->tasks)
            return fail(e, ST_USAGE, "the tasks' names are longer than %zu characters together", sizeof r->tasks - 1);
    }
    if (first == 0 && n) snprintf(r->name, sizeof r->name, "%s", words[0]);
    return ST_OK;
}

/* --- noted for later ---------------------------------------------------------------------------------------------- */

enum status request_call(const struct request *r, const char *profile, struct label *call, struct error *e) {
    const char *const words[][2] = {
        {"plan", r->name}, {"tasks", r->tasks}, {"profile", profile}, {"c", r->config_file}};
    *call = (struct label){0};
    TRY(label_set_name(call, "", e));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (*words[i][1]) TRY(label_set(call, words[i][0], words[i][1], e));
    for (int i = 0; i < r->said.n; i++) {
        const char *key = label_key(&r->said, i);
        const struct option *o = option_find(config_options, key);
        bool of_call = o && (o->flags & OPT_HERE) && strcmp(key, "from") != 0; /* --out, --force */
        if (!of_call) TRY(label_set(call, key, label_value(&r->said, i), e));
    }
    return ST_OK;
}

enum status request_recall(struct request *r, const struct label *call, struct error *e) {
    for (int i = 0; i < call->n; i++) {
        const char *key = label_key(call, i), *value = label_value(call, i);
        if (!strcmp(key, "plan")) continue;
        if (!strcmp(key, "tasks"))
            TRY(text_copy(value, r->tasks, sizeof r->tasks, e));
        else if (!strcmp(key, "profile"))
            TRY(text_copy(value, r->profile, sizeof r->profile, e));
        else if (!strcmp(key, "c"))
            TRY(text_copy(value, r->config_file, sizeof r->config_file, e));
        else
            TRY(request_say(r, key, value, e));
    }
    return ST_OK;
}

/* --- the plan ----------------------------------------------------------------------------------------------------- */

/* The study of a request. Its tasks may have different profiles; everything else is the same for all. */
struct making {
    struct request *r;
    struct study study;
    enum origin task_from; /* the origin of the options in the first task's word */
    struct label grid;     /* task.OPTION and model.OPTION from the command line, the config file and the plan */
    const char *profile, *tasks;
    bool speed;
    /* for each pair of the grid: some task or model uses it; a pair has at least 8 bytes */
    bool taken[LABEL_TEXT / 8];
};

/* Takes the flags and the lines task.KEY and model.KEY of a config file. Its task and model have no effect: the tasks
 * of a sweep come from the command line, its models from --models. */
static enum status take_config_file(struct making *m, struct error *e) {
    static const char *const kinds[] = {"task", "model"};
    struct label labels[2], *said = &m->study.said[FROM_FILE];
    const char *path = m->r->config_file;
    TRY(study_file(path, &labels[0], &labels[1], said, e));
    for (int k = 0; k < 2 && !text_ends(path, ".json"); k++) {
        if (*label_name(&labels[k]))
            return fail(e, ST_USAGE,
                        "%.300s has a line %s=%.60s; a sweep takes its tasks from its words and its models from "
                        "--models, so take the line out (lines %s.KEY hold for each that has KEY)",
                        path, kinds[k], label_name(&labels[k]), kinds[k]);
        TRY(study_note_options(said, kinds[k], &labels[k], e));
    }
    return ST_OK;
}

static enum status collect_grid(struct making *m, struct error *e) {
    static const enum origin origins[] = {FROM_COMMAND, FROM_FILE, FROM_PLAN};
    TRY(label_set_name(&m->grid, "", e));
    for (int o = 0; o < 3; o++) {
        const struct label *said = &m->study.said[origins[o]];
        for (int i = 0; i < said->n; i++) {
            const char *key = label_key(said, i);
            bool option = !strncmp(key, "task.", 5) || !strncmp(key, "model.", 6);
            if (option && !label_get(&m->grid, key)) TRY(label_add(&m->grid, key, label_value(said, i), e));
        }
    }
    return ST_OK;
}

/* Whether one of the tasks, which are separated by blanks, has this name of n characters. */
static bool has_task(const char *tasks, const char *name, size_t n) {
    for (const char *at = tasks + strspn(tasks, " "); *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " :") == n && !strncmp(at, name, n)) return true;
    return false;
}

/* Restricts the plan's tasks to the words after the plan's name. A task that the plan lacks is refused, since the table
 * has no column for it. A word without options means all of the plan's tasks of that name. */
static enum status choose_tasks(struct request *r, const char *own, struct error *e) {
    struct printed chosen;
    if (!own) return ST_OK;
    TRY(printed_begin(&chosen, "the tasks", e));
    enum status status = ST_OK;
    for (const char *at = r->tasks + strspn(r->tasks, " "); *at && status == ST_OK;
         at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t n = strcspn(at, " :");
        if (!has_task(own, at, n))
            status = fail(e, ST_USAGE, "the plan %s has no task '%.*s'; its tasks are %.300s", r->file.name, (int)n, at,
                          own);
        if (at[n] == ':') fprintf(chosen.f, "%.*s ", (int)strcspn(at, " "), at);
        for (const char *of = own; at[n] != ':' && *of; of += strcspn(of, " "), of += strspn(of, " "))
            if (strcspn(of, " :") == n && !strncmp(of, at, n)) fprintf(chosen.f, "%.*s ", (int)strcspn(of, " "), of);
    }
    TRY(printed_end(&chosen, status, "the tasks", e));
    text_trim(chosen.text);
    status = text_copy(chosen.text, r->tasks, sizeof r->tasks, e);
    free(chosen.text);
    return status;
}

static enum status make(struct making *m, struct request *r, struct error *e) {
    *m = (struct making){.r = r};
    const struct label *plan = &m->study.said[FROM_PLAN];
    const char *own = plan_file_get(&r->file, "", "profile");
    m->profile = *r->profile ? r->profile : own ? own : "quick";
    m->study.said[FROM_COMMAND] = r->said;
    m->study.limited = r->limited;
    TRY(plan_file_settings(&r->file, m->profile, &m->study.said[FROM_PLAN], e));
    const char *first = r->tasks + strspn(r->tasks, " ");
    bool of_plan = !*first || (label_get(plan, "tasks") && first[strcspn(first, " :")] != ':');
    m->task_from = of_plan ? FROM_PLAN : FROM_COMMAND;
    TRY(choose_tasks(r, label_get(plan, "tasks"), e));
    m->tasks = *r->tasks ? r->tasks : label_get(plan, "tasks");
    const char *measure = label_get(plan, "measure");
    m->speed = measure && !strcmp(measure, "speed");
    if (!m->tasks) return fail(e, ST_USAGE, "the plan %s names no tasks; add a line tasks=s3 s5", r->file.name);
    TRY(take_config_file(m, e));
    return collect_grid(m, e);
}

/* Finds the profile of a task. If the task's text means several settings, the first decides. */
static enum status find_profile(const struct making *m, const char *task, const struct profile **profile,
                                struct error *e) {
    char first[LABEL_TEXT];
    struct label label;
    TRY(plan_first_task(task, first, e));
    TRY(label_parse(&label, "task", first, e));
    struct task_choice *choice = calloc(1, sizeof *choice);
    enum status status = choice ? task_parse(choice, first, e) : fail(e, ST_MEMORY, "no memory for a plan");
    if (status == ST_OK) status = profile_find(label_name(&label), choice->task->suite, m->profile, profile, e);
    free(choice);
    return status;
}

/* Makes the study of the first run: the study of its task, with what the words of its task and model say. */
static enum status study_first(const struct making *m, const struct plan_request *p, struct study *first,
                               struct error *e) {
    char task[LABEL_TEXT], word[LABEL_TEXT], mixer[LABEL_TEXT];
    const char *models = p->models + strspn(p->models, " "), *at = word;
    struct label label;
    *first = m->study;
    TRY(plan_first_task(p->task, task, e));
    TRY(label_parse(&label, "task", task, e));
    TRY(study_note_options(&first->said[m->task_from], "task", &label, e));
    TRY(text_part(&models, " ", word, sizeof word, e));
    TRY(study_add_word(first, word, p->models_from, e));
    TRY(text_part(&at, "@", mixer, sizeof mixer, e));
    TRY(label_parse(&label, "model", mixer, e));
    return study_note_options(&first->said[p->models_from], "model", &label, e);
}

static enum status add_task(struct making *m, int word, const char *task, struct plan *plan, struct resolved *resolved,
                            struct error *e) {
    struct study *s = &m->study;
    struct config config;
    struct plan_request p = {.study = s, .word = word, .task = task, .grid = m->grid, .taken = m->taken};
    TRY(find_profile(m, task, &s->profile, e));
    s->said[FROM_PROFILE] = s->profile->settings;
    TRY(study_config(s, NULL, &config, e));
    const char *variants = study_get(s, "variants", NULL);
    p.variants = variants && !strcmp(variants, "yes");
    p.models = study_get(s, "models", &p.models_from);
    if (!p.models) p.models = "";
    if (plan->n == 0) {
        resolved->note = s->profile->note;
        resolved->defaulted = !strcmp(s->profile->suite, PROFILE_DEFAULT);
        resolved->config = config;
    }
    resolved->variants = resolved->variants || p.variants;
    bool first = plan->n == 0;
    TRY(plan_make(plan, &p, e));
    return first ? study_first(m, &p, &resolved->study, e) : ST_OK;
}

/* Whether the task or model of a planned run has the option that a key of the grid names. */
static bool is_met(const struct plan *plan, const char *key) {
    bool task = !strncmp(key, "task.", 5);
    const char *option = key + (task ? 5 : 6);
    for (int i = 0; i < plan->n; i++) {
        const struct setup *s = plan->setups[i];
        if (option_find(task ? s->spec.task.task->options : s->shapes.model.model->options, option)) return true;
    }
    return false;
}

/* Refuses option values that no run uses. A value from --grid must be used. A value from a plan or a config file may be
 * unused, because the command line may name other models, but some task or model must have its option. */
static enum status check_taken(const struct making *m, const struct plan *plan, struct error *e) {
    for (int i = 0; i < m->grid.n; i++) {
        const char *key = label_key(&m->grid, i);
        bool task = !strncmp(key, "task.", 5);
        if (m->taken[i] || (!label_get(&m->r->said, key) && row_key_option(key))) continue;
        if (!is_met(plan, key))
            return fail(e, ST_USAGE, "%.60s: no %s here has an option of that name; `lrnn info NAME` lists them", key,
                        task ? "task" : "model");
        return fail(e, ST_USAGE,
                    "--grid %.60s=%.60s: every %s here that has the option sets it itself; name the %s "
                    "without it",
                    key, label_value(&m->grid, i), task ? "task" : "model", task ? "tasks" : "models");
    }
    return ST_OK;
}

enum status request_plan(struct request *r, struct plan *plan, struct resolved *resolved, struct error *e) {
    struct making *m = calloc(1, sizeof *m);
    int n = 0;
    *resolved = (struct resolved){.note = NULL};
    enum status status = m ? make(m, r, e) : fail(e, ST_MEMORY, "no memory for a plan");
    if (status == ST_OK) {
        resolved->speed = m->speed;
        snprintf(resolved->profile, sizeof resolved->profile, "%s", m->profile);
        snprintf(resolved->tasks, sizeof resolved->tasks, "%s", m->tasks);
    }
    for (const char *at = status == ST_OK ? m->tasks + strspn(m->tasks, " ") : ""; status == ST_OK && *at;
         at += strspn(at, " ")) {
        char task[LABEL_TEXT];
        status = text_part(&at, " ", task, sizeof task, e);
        if (status == ST_OK && ++n > REQUEST_MOST_TASKS)
            status = fail(e, ST_USAGE, "more than %d tasks are named", REQUEST_MOST_TASKS);
        if (status == ST_OK) status = add_task(m, n - 1, task, plan, resolved, e);
    }
    if (status == ST_OK && plan->n == 0) status = fail(e, ST_USAGE, "no task is named");
    if (status == ST_OK) status = check_taken(m, plan, e);
    struct label asked = m ? m->study.said[FROM_FILE] : (struct label){0};
    for (int i = 0; status == ST_OK && i < r->said.n; i++)
        status = label_set(&asked, label_key(&r->said, i), label_value(&r->said, i), e);
    if (status == ST_OK) status = setup_check_asked(plan->setups, plan->n, &asked, e);
    free(m);
    return status;
}
