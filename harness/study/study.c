/* study.c - finds the value of each key, reads the command line and config files, and makes setups; see study.h. A key
 * is a flag or an option. An origin is one of the places that set values: profile, plan, config file, command line. */
#include "harness/study/study.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "harness/store/files.h"
#include "harness/store/record_files.h"
#include "harness/study/row_key.h"

/* --- the value of a key ------------------------------------------------------------------------------------------- */

static bool says(const struct study *s, enum origin o, const char *key) {
    return label_get(&s->said[o], key) != NULL;
}

/* Whether an origin limits the length of runs by one of these keys, or by --limit. */
static bool says_length(const struct study *s, enum origin o) {
    static const char *const keys[] = {"steps", "epochs", "stop-after", "budget"};
    for (int i = 0; i < 4; i++)
        if (says(s, o, keys[i])) return true;
    return o == FROM_COMMAND && s->limited;
}

/* Whether the value that origin o gives to `key` has no effect. There are three cases. `key` is steps or epochs, and a
 * stronger origin sets the other of these two. `key` is stop-after or budget, and a stronger origin limits the length
 * of runs. Or the value is a list of epochs, and the same origin sets steps. */
static bool is_void(const struct study *s, enum origin o, const char *key, const char *value) {
    const char *other = config_other_length(key);
    bool ends = !strcmp(key, "stop-after") || !strcmp(key, "budget");
    for (int k = (int)o + 1; k < ORIGINS; k++)
        if ((other && says(s, (enum origin)k, other)) || (ends && says_length(s, (enum origin)k))) return true;
    bool list_beside_steps = !strcmp(key, "epochs") && says(s, o, "steps") && row_key_is_list(key, value);
    return list_beside_steps;
}

const char *study_get(const struct study *s, const char *key, enum origin *from) {
    for (int o = ORIGINS - 1; o > FROM_DEFAULT; o--) {
        const char *value = label_get(&s->said[o], key);
        if (from) *from = (enum origin)o;
        if (value && !is_void(s, (enum origin)o, key, value)) return value;
    }
    if (from) *from = FROM_DEFAULT;
    return NULL;
}

enum status study_add_word(struct study *s, const char *word, enum origin of, struct error *e) {
    char own[LABEL_TEXT];
    const char *flags = strchr(word, '@');
    if (!flags && s->profile && profile_word(s->profile, word, own)) {
        word = own;
        flags = strchr(own, '@');
        of = FROM_PROFILE;
    }
    if (!flags) return ST_OK;
    return label_parse_pairs(&s->said[of + 1], word, flags + 1, ",", e);
}

enum status study_config(const struct study *s, const struct label *chosen, struct config *c, struct error *e) {
    TRY(config_default(c, e));
    for (int o = FROM_PROFILE; o < ORIGINS; o++)
        for (int i = 0; i < s->said[o].n; i++) {
            const char *key = label_key(&s->said[o], i), *one = chosen ? label_get(chosen, key) : NULL;
            enum origin from;
            const char *value = study_get(s, key, &from);
            bool flag = row_key_flag(key) || o == FROM_PROFILE_MODEL || o == FROM_PLAN_MODEL || o == FROM_COMMAND_MODEL;
            if (!value || (int)from != o || !flag) continue;
            bool list = row_key_is_list(key, value);
            if (list && !one) continue;
            char origin[128];
            study_origin_text(s, key, origin, sizeof origin);
            TRY(config_set_from(c, origin, key, list ? one : value, e));
        }
    return ST_OK;
}

void study_origin_text(const struct study *s, const char *key, char *text, size_t size) {
    static const char *const names[ORIGINS] = {"default", "profile",     "profile",      "plan",
                                               "plan",    "config file", "command line", "command line"};
    enum origin from;
    if (!study_get(s, key, &from)) from = FROM_DEFAULT;
    bool profile = from == FROM_PROFILE || from == FROM_PROFILE_MODEL;
    snprintf(text, size, profile ? "%s %s/%s" : "%s", names[from], profile ? s->profile->suite : "",
             profile ? s->profile->name : "");
}

/* --- the command line and the config file ------------------------------------------------------------------------- */

enum status study_note(struct label *said, char config_file[OPTION_TEXT], const char *name, const char *value,
                       bool *done, struct error *e) {
    const struct option *o = row_key_flag(name);
    char canonical[OPTION_TEXT + 1];
    bool file = !strcmp(name, "c");
    if (!file && !o) return ST_OK;
    *done = true;
    if (file) return text_copy(value, config_file, OPTION_TEXT, e);
    TRY(option_canonical(o, "command line", name, value, canonical, sizeof canonical, e));
    if (!said->used) TRY(label_set_name(said, "", e));
    return label_add(said, name, value, e);
}

/* Parses a task or model that config_read returned: "s5:length=8", "s5", or only options, "length=8". */
static enum status read_label(const char *kind, const char *text, struct label *l, struct error *e) {
    const char *equals = strchr(text, '='), *colon = strchr(text, ':');
    if (equals && (!colon || equals < colon)) return label_parse_pairs(l, kind, text, ",", e);
    *l = (struct label){0};
    return *text ? label_parse(l, kind, text, e) : label_set_name(l, "", e);
}

enum status study_file(const char *config_file, struct label *task, struct label *model, struct label *flags,
                       struct error *e) {
    char texts[2][LABEL_TEXT] = {"", ""};
    *flags = (struct label){0};
    TRY(label_set_name(flags, "", e));
    if (*config_file) {
        struct config *ignored = calloc(1, sizeof *ignored);
        enum status status = ignored ? config_default(ignored, e) : fail(e, ST_MEMORY, "no memory");
        if (status == ST_OK) status = config_read(config_file, ignored, texts[0], texts[1], flags, e);
        free(ignored);
        TRY(status);
    }
    TRY(read_label("task", texts[0], task, e));
    return read_label("model", texts[1], model, e);
}

/* Refuses a config file that has options of another task or model than the command line names. */
static enum status check_same(const char *kind, const char *path, const struct label *file, const struct label *own,
                              struct error *e) {
    const char *name = label_name(file);
    if (!file->n || !*name || !strcmp(name, label_name(own)) || task_takes(label_name(own), file)) return ST_OK;
    return fail(e, ST_USAGE,
                "%.300s has options of the %s %.60s, and the command names %.60s; remove these lines, or write the "
                "options on the command line, as in %.60s:%.60s=%.60s",
                path, kind, name, label_name(own), label_name(own), label_key(file, 0), label_value(file, 0));
}

enum status study_note_options(struct label *said, const char *kind, const struct label *l, struct error *e) {
    char key[128];
    if (!said->used) TRY(label_set_name(said, "", e));
    for (int i = 0; i < l->n; i++) {
        snprintf(key, sizeof key, "%s.%.100s", kind, label_key(l, i));
        TRY(label_set(said, key, label_value(l, i), e));
    }
    return ST_OK;
}

enum status study_words(struct study *s, const char *config_file, char task[LABEL_TEXT], char model[LABEL_TEXT],
                        struct error *e) {
    struct label file[2], own;
    char *words[2] = {task, model};
    static const char *const kinds[2] = {"task", "model"};
    TRY(study_file(config_file, &file[0], &file[1], &s->said[FROM_FILE], e));
    for (int i = 0; i < 2; i++) {
        bool named = *words[i];
        if (!named && *label_name(&file[i])) TRY(label_format(&file[i], words[i], LABEL_TEXT, e));
        if (!named || !text_ends(config_file, ".json"))
            TRY(study_note_options(&s->said[FROM_FILE], kinds[i], &file[i], e));
        if (!named) continue;
        TRY(label_parse(&own, kinds[i], words[i], e));
        if (!text_ends(config_file, ".json")) TRY(check_same(kinds[i], config_file, &file[i], &own, e));
        TRY(study_note_options(&s->said[FROM_COMMAND], kinds[i], &own, e));
    }
    return ST_OK;
}

enum status study_complete(const struct study *s, const char *kind, const struct option *table, char word[LABEL_TEXT],
                           struct error *e) {
    struct label l;
    size_t n = strlen(kind) + 1;
    TRY(label_parse(&l, kind, word, e));
    for (int o = ORIGINS - 1; o > FROM_DEFAULT; o--)
        for (int i = 0; i < s->said[o].n; i++) {
            const char *key = label_key(&s->said[o], i), *value = label_value(&s->said[o], i);
            if (strncmp(key, kind, n - 1) != 0 || key[n - 1] != '.' || label_get(&l, key + n)) continue;
            const struct option *option = option_find(table, key + n);
            if (o == FROM_PROFILE && !option) continue;
            if (o == FROM_PROFILE && option->type == OPT_INT && strstr(value, ".."))
                return fail(e, ST_USAGE, "profile %s has %s=%s, and train does one run; write %s:%s=N",
                            s->profile->name, key, value, word, key + n);
            TRY(label_add(&l, key + n, value, e));
        }
    return label_format(&l, word, LABEL_TEXT, e);
}

/* --- config files ------------------------------------------------------------------------------------------------- */

static enum status add_option(struct label *l, const char *key, const char *value, struct error *e) {
    if (label_get(l, key)) return fail(e, ST_USAGE, "'%.60s' is given twice", key);
    return label_add(l, key, value, e);
}

/* Reads the value of a line "task=...", such as "s5" or "s5:length=8". Other lines of the file, before or after this
 * one, may add options. */
static enum status set_name(struct label *l, const char *kind, const char *text, struct error *e) {
    struct label named;
    if (l->used && *label_name(l)) return fail(e, ST_USAGE, "'%s' is given twice", kind);
    TRY(label_parse(&named, kind, text, e));
    TRY(label_set_name(l, label_name(&named), e));
    for (int i = 0; i < named.n; i++) TRY(add_option(l, label_key(&named, i), label_value(&named, i), e));
    return ST_OK;
}

/* The contents of a config file, or of the configuration in a record. */
struct lines {
    struct config *c;                /* receives the values of flags */
    bool typed;                      /* a person wrote the lines, so values are checked; else they are from a record */
    struct label task, model, flags; /* options of the task, options of the model, and flags, all as text */
};

/* Whether a key names the task or the model, or one of their options. */
static bool is_of_label(const char *key) {
    static const char *const of[] = {"task", "model"};
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(of[i]);
        if (!strncmp(key, of[i], n) && (!key[n] || key[n] == '.')) return true;
    }
    return false;
}

static enum status note_line(const char *key, const char *value, struct lines *l, struct error *e) {
    if (!strcmp(key, "task")) return set_name(&l->task, "task", value, e);
    if (!strcmp(key, "model")) return set_name(&l->model, "model", value, e);
    if (!strncmp(key, "task.", 5)) return add_option(&l->task, key + 5, value, e);
    if (!strncmp(key, "model.", 6)) return add_option(&l->model, key + 6, value, e);
    return add_option(&l->flags, key, value, e);
}

static enum status config_line(char *line, const char *path, int number, struct lines *l, struct error *e) {
    struct error why = {ST_OK, ""};
    char origin[256];
    line += strspn(line, " \t");
    line[strcspn(line, "\r\n")] = 0;
    if (!*line || *line == '#') return ST_OK;
    char *equals = strchr(line, '=');
    if (!equals) return fail(e, ST_USAGE, "%s line %d: '%s' is not of the form key=value", path, number, line);
    *equals = 0;
    char *comment = strstr(equals + 1, " # ");
    if (comment && !strchr(equals, '/')) *comment = 0; /* a path may contain " # " */
    text_trim(line);
    text_trim(equals + 1);
    const char *value = equals + 1 + strspn(equals + 1, " \t");
    snprintf(origin, sizeof origin, "%.200s line %d", path, number);
    if (l->typed) TRY(row_key_check(line, value, origin, e));
    if (!is_of_label(line)) TRY(config_set_from(l->c, origin, line, value, e));
    if (note_line(line, value, l, &why) == ST_OK) return ST_OK;
    return fail(e, why.status, "%s line %d: %.900s", path, number, why.text);
}

static enum status read_lines(FILE *file, const char *path, struct lines *l, struct error *e) {
    char line[1024];
    TRY(label_set_name(&l->flags, "", e));
    for (int number = 1; fgets(line, sizeof line, file); number++) {
        if (!strchr(line, '\n') && !feof(file))
            return fail(e, ST_USAGE, "%s line %d is longer than %zu bytes", path, number, sizeof line - 2);
        TRY(config_line(line, path, number, l, e));
    }
    return ferror(file) ? fail(e, ST_DATA, "cannot read config file %s to its end", path) : ST_OK;
}

static enum status read_text(const char *text, const char *name, struct lines *l, struct error *e) {
    char *copy = strdup(text); /* fmemopen needs a writable buffer */
    FILE *file = copy ? fmemopen(copy, strlen(copy) + 1, "r") : NULL;
    enum status status = file ? read_lines(file, name, l, e) : fail(e, ST_MEMORY, "no memory for %s", name);
    if (file) fclose(file);
    free(copy);
    return status;
}

static enum status format_labels(const struct lines *l, char task[LABEL_TEXT], char model[LABEL_TEXT],
                                 struct error *e) {
    if (l->task.used) TRY(label_format(&l->task, task, LABEL_TEXT, e));
    return l->model.used ? label_format(&l->model, model, LABEL_TEXT, e) : ST_OK;
}

/* Some options describe this machine or this command, not the run (OPT_HERE). For them, ignores the record's values and
 * uses the values in `own`. */
static enum status keep_own(struct lines *l, const struct config *own, struct error *e) {
    for (const struct option *o = config_options; o->name; o++) {
        char value[OPTION_TEXT + 1];
        if (!(o->flags & OPT_HERE) || !label_get(&l->flags, o->name)) continue;
        option_format_value(o, own, value, sizeof value);
        TRY(config_set(l->c, o->name, value, e));
        label_remove(&l->flags, o->name);
    }
    return ST_OK;
}

/* Reads the configuration in a run's record. */
static enum status read_record(const char *path, struct lines *l, char task[LABEL_TEXT], char model[LABEL_TEXT],
                               struct error *e) {
    struct config own = *l->c;
    struct open_record *open;
    TRY(record_open(path, &open, e));
    enum status status = read_text(open->record.config, path, l, e);
    if (status == ST_OK) status = keep_own(l, &own, e);
    if (status == ST_OK) status = format_labels(l, task, model, e);
    if (status == ST_OK) status = task_rename(task, open->record.run.task, e);
    record_close(open);
    return status;
}

enum status config_read(const char *path, struct config *c, char task[LABEL_TEXT], char model[LABEL_TEXT],
                        struct label *flags, struct error *e) {
    struct lines l = {.c = c};
    enum status status = ST_OK;
    if (text_ends(path, ".json")) {
        status = read_record(path, &l, task, model, e);
    } else {
        FILE *file = fopen(path, "r");
        if (!file) return fail(e, ST_DATA, "cannot read config file %s: %s", path, strerror(errno));
        l.typed = true;
        status = read_lines(file, path, &l, e);
        fclose(file);
        if (status == ST_OK) status = format_labels(&l, task, model, e);
    }
    *flags = l.flags;
    return status;
}

enum status config_read_text(const char *text, const char *name, struct config *c, char task[LABEL_TEXT],
                             char model[LABEL_TEXT], struct error *e) {
    struct lines l = {.c = c};
    TRY(read_text(text, name, &l, e));
    return format_labels(&l, task, model, e);
}

/* --- setups ------------------------------------------------------------------------------------------------------- */

struct setup *setup_stored(const char *text, const char *name, int64_t threads, struct error *e) {
    struct config config;
    const char *where = "its configuration";
    char task[LABEL_TEXT] = "", model[LABEL_TEXT] = "";
    struct error why = {ST_OK, ""};
    enum status status = config_default(&config, &why);
    if (status == ST_OK) status = config_read_text(text, where, &config, task, model, &why);
    if (status == ST_OK && (!*task || !*model))
        status = fail(&why, ST_DATA, "%s does not name both a task and a model", where);
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
    return NULL;
}
