/* plan_file.c - see plan_file.h. */
#include "harness/study/plan_file.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file/name.h"
#include "core/values.h"
#include "harness/study/row_key.h"
#include "models/model.h"
#include "tasks/task.h"

#define ENDING     ".plan"
#define MOST_BASES 8
#define MOST_SEEDS 100000
#define DIFFERS    "differs" /* for all rows; DIFFERS.MODEL is only for one model's rows */

/* --- plans that are built in -------------------------------------------------------------------------------------- */

/* The text of all built-in files. A line "@papers/NAME.plan" stands before each file. The Makefile joins them. */
__asm__(".pushsection .rodata\n"
        "plan_texts: .incbin \"" PLAN_TEXTS "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char plan_texts[] __attribute__((visibility("hidden")));

#define MOST_BUILT_IN 128

static struct built_in {
    char name[PLAN_NAME_BYTES]; /* "papers/hlru-table2" */
    const char *text;
    size_t size;
} built_in[MOST_BUILT_IN];
static int n_built_in;

static void find_built_in(void) {
    for (const char *at = plan_texts; *at == '@' && n_built_in < MOST_BUILT_IN;) {
        struct built_in *b = &built_in[n_built_in++];
        size_t n = strcspn(at, "\n");
        snprintf(b->name, sizeof b->name, "%.*s", (int)(n - 1 - strlen(ENDING)), at + 1);
        b->text = at + n + 1;
        const char *end = strstr(b->text, "\n@");
        at = end ? end + 1 : b->text + strlen(b->text);
        b->size = (size_t)(at - b->text);
    }
}

/* Finds a built-in plan by its name with its folder; NULL: there is none. */
static const struct built_in *built_in_named(const char *name) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_built_in);
    for (int i = 0; i < n_built_in; i++)
        if (!strcmp(built_in[i].name, name)) return &built_in[i];
    return NULL;
}

const char *plan_file_built_in(const char *folder, int i) {
    size_t n = strlen(folder);
    built_in_named("");
    for (int k = 0; k < n_built_in; k++)
        if (!strncmp(built_in[k].name, folder, n) && i-- == 0) return built_in[k].name + n;
    return NULL;
}

/* Searches the text of the files for lines such as "profiles=smoke quick". The files cannot be parsed here, because
 * parsing a key needs the names of profiles. */
bool plan_file_is_profile(const char *name) {
    static const char key[] = "\nprofiles=";
    size_t n = strlen(name), length = strlen(key);
    for (const char *at = plan_texts; n && (at = strchr(at, '\n')); at++) {
        if (strncmp(at, key, length) != 0) continue;
        for (const char *word = at + length, *end = word + strcspn(word, "\n"); word < end;
             word += strcspn(word, " \n") + 1)
            if (strcspn(word, " \n") == n && !strncmp(word, name, n)) return true;
    }
    return false;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

/* Kinds of keys. A flag of a run counts as SETTING. */
enum about {
    PEOPLE,  /* text for people; a plan does not take it over from its base */
    PAPER,   /* the paper to compare with, and the profile that follows the paper */
    SETTING, /* decides the runs or the layout of their table */
    PROFILE, /* only in profiles/: the names of profiles, and which of them follow a paper */
};

static const struct {
    const char *name;
    enum about about;
} keys[] = {
    {"title", PEOPLE},     {"paper", PAPER},      {"source", PAPER},    {"link", PEOPLE},      {"base", PEOPLE},
    {"profile", PAPER},    {"tasks", SETTING},    {"models", SETTING},  {"lr", SETTING},       {"seeds", SETTING},
    {"variants", SETTING}, {"rows", SETTING},     {"columns", SETTING}, {"protocol", SETTING}, {"overall", SETTING},
    {"measure", SETTING},  {"lengths", SETTING},  {"note", PEOPLE},     {DIFFERS, PAPER},      {"table", PAPER},
    {"least", SETTING},    {"profiles", PROFILE},
};
#define N_KEYS ((int)(sizeof keys / sizeof *keys))

static int find_key(const char *key) {
    for (int i = 0; i < N_KEYS; i++)
        if (!strcmp(keys[i].name, key)) return i;
    return -1;
}

/* Whether a plan may set the flag. The flag must change results; seeds are set by the key "seeds" instead. */
static bool is_flag(const struct option *o) {
    return o && !(o->flags & (OPT_RUNTIME | OPT_HERE | OPT_SEED | OPT_FOUND));
}

/* Returns the key without a leading "PROFILE.". */
static const char *without_profile(const char *key) {
    char word[PLAN_NAME_BYTES];
    const char *dot = strchr(key, '.');
    if (!dot || (size_t)(dot - key) >= sizeof word) return key;
    snprintf(word, sizeof word, "%.*s", (int)(dot - key), key);
    return plan_file_is_profile(word) ? dot + 1 : key;
}

/* Returns MODEL of a key "differs.MODEL"; NULL for other keys. */
static const char *model_of_key(const char *key) {
    size_t n = strlen(DIFFERS);
    return strncmp(key, DIFFERS, n) == 0 && key[n] == '.' ? key + n + 1 : NULL;
}

static bool is_key(const char *key) {
    if (!strncmp(key, "task.", 5)) return key[5] != 0;
    if (!strncmp(key, "model.", 6)) return key[6] != 0;
    return find_key(key) >= 0 || is_flag(row_key_flag(key));
}

/* Returns key number i of the keys with fixed names, to suggest the nearest one; NULL after the last. */
static const char *key_at(int i) {
    const struct option *const tables[] = {backbone_options, config_options};
    if (i < N_KEYS) return keys[i].name;
    i -= N_KEYS;
    for (int t = 0; t < 2; t++)
        for (const struct option *o = tables[t]; o->name; o++)
            if (is_flag(o) && i-- == 0) return o->name;
    return NULL;
}

static const char *key_name(const void *list, int i) {
    (void)list;
    return key_at(i);
}

static enum status unknown_key(const char *key, struct error *e) {
    int n = 0;
    while (key_at(n)) n++;
    const char *near = nearest_name(key, n, key_name, NULL);
    if (near) return fail(e, ST_USAGE, "unknown key '%.60s'; did you mean '%s'?", key, near);
    return fail(e, ST_USAGE, "unknown key '%.60s'; docs/papers.md lists the keys of a plan", key);
}

/* --- values ------------------------------------------------------------------------------------------------------- */

static enum status no_seeds(const char *text, const char *origin, struct error *e) {
    return fail(e, ST_USAGE,
                "seeds=%.60s (%s): expected a whole number from 1 to %d, auto, or a list of seeds such as 3,7 or 4..9, "
                "got '%.60s'",
                text, origin, MOST_SEEDS, text);
}

enum status seeds_parse(const char *text, const char *origin, struct texts *seeds, struct error *e) {
    int64_t count, seed, other;
    if (!parse_int64(text, &count)) {
        TRY(values_expand("seeds", text, seeds, e));
        for (int i = 0; i < seeds->n; i++) {
            if (!parse_int64(seeds->list[i], &seed) || seed < 0) return no_seeds(text, origin, e);
            TRY(row_key_check_option(option_find(config_options, "seed"), seeds->list[i], origin, e));
            for (int k = 0; k < i; k++)
                if (parse_int64(seeds->list[k], &other) && other == seed)
                    return fail(e, ST_USAGE, "seeds=%.60s (%s): seed %s is given twice", text, origin, seeds->list[i]);
        }
        return ST_OK;
    }
    if (count < 1 || count > MOST_SEEDS) return no_seeds(text, origin, e);
    return texts_count(seeds, count, e);
}

/* Checks each option value of a word such as "bdlru:m=1..5" or "s5:length=8". Unknown names and options are reported
 * later, when runs are planned. */
static enum status check_word(const char *kind, const char *word, const char *origin, struct error *e) {
    struct label label;
    struct task_choice *task = calloc(1, sizeof *task);
    if (!task) return fail(e, ST_MEMORY, "no memory for a plan");
    enum status status = label_parse(&label, kind, word, e);
    const struct model *model = status == ST_OK ? model_find(label_name(&label)) : NULL;
    bool known = status == ST_OK && *kind == 't' && task_parse(task, label_name(&label), NULL) == ST_OK;
    const struct option *table = known ? task->task->options : *kind == 'm' && model ? model->options : NULL;
    for (int i = 0; i < label.n && table && status == ST_OK; i++) {
        const struct option *o = option_find(table, label_key(&label, i));
        if (o) status = row_key_check_option(o, label_value(&label, i), origin, e);
    }
    free(task);
    return status;
}

/* Checks a word of `models`, such as "bdlru:m=2@dim=64". */
static enum status check_model(const char *text, const char *origin, struct error *e) {
    struct label flags;
    char mixer[LABEL_TEXT];
    TRY(text_part(&text, "@", mixer, sizeof mixer, e));
    TRY(check_word("model", mixer, origin, e));
    TRY(label_parse_pairs(&flags, "after '@'", text + (*text == '@'), ",", e));
    for (int i = 0; i < flags.n; i++) {
        const char *key = label_key(&flags, i);
        if (!is_flag(row_key_flag(key))) return unknown_key(key, e);
        TRY(row_key_check(key, label_value(&flags, i), origin, e));
    }
    return ST_OK;
}

/* Checks a value without knowing its task or model. Planning the runs reports values that do not fit each other. */
static enum status check_value(const char *key, const char *value, const char *origin, struct error *e) {
    bool models = !strcmp(key, "models"), tasks = !strcmp(key, "tasks");
    if (!strcmp(key, "variants") && strcmp(value, "yes") != 0 && strcmp(value, "no") != 0)
        return fail(e, ST_USAGE, "variants=%.60s (%s): expected yes or no, got '%.60s'", value, origin, value);
    if (!strcmp(key, "measure") && strcmp(value, "accuracy") != 0 && strcmp(value, "speed") != 0)
        return fail(e, ST_USAGE, "measure=%.60s (%s): expected accuracy or speed, got '%.60s'", value, origin, value);
    if (!strcmp(key, "seeds")) {
        struct texts seeds = {0};
        enum status status = seeds_parse(value, origin, &seeds, e);
        texts_free(&seeds);
        return status;
    }
    if (!models && !tasks) return row_key_check(key, value, origin, e);
    for (const char *at = value + strspn(value, " "); *at; at += strspn(at, " ")) {
        char word[LABEL_TEXT];
        TRY(text_part(&at, " ", word, sizeof word, e));
        TRY(models ? check_model(word, origin, e) : check_word("task", word, origin, e));
    }
    return ST_OK;
}

static enum status check_key(const char *key, struct error *e) {
    const char *model = model_of_key(key);
    if (model && strlen(key) >= PLAN_NAME_BYTES)
        return fail(e, ST_USAGE, "%.40s... has %zu characters, expected at most %d; name fewer options", key,
                    strlen(key), PLAN_NAME_BYTES - 1);
    if (model) {
        struct model_choice choice;
        char mixer[LABEL_TEXT];
        TRY(check_model(model, "the plan", e));
        TRY(text_part(&model, "@", mixer, sizeof mixer, e));
        return model_parse(&choice, mixer, e);
    }
    return is_key(key) ? ST_OK : unknown_key(key, e);
}

/* --- text --------------------------------------------------------------------------------------------------------- */

static bool is_expectation(const char *key) {
    return !strncmp(key, PLAN_EXPECT, strlen(PLAN_EXPECT));
}

/* Appends a line that begins with a blank to the value of the line before it. */
static enum status go_on(struct label *lines, const char *text, const char *origin, struct error *e) {
    char key[2 * PLAN_NAME_BYTES], value[LABEL_TEXT];
    if (lines->n == 0) return fail(e, ST_USAGE, "begins with a blank, and no value before it goes on");
    TRY(text_copy(label_key(lines, lines->n - 1), key, sizeof key, e));
    if (is_expectation(key)) return fail(e, ST_USAGE, "begins with a blank; write what is expected in one line");
    TRY(check_value(without_profile(key), text, origin, e));
    int n = snprintf(value, sizeof value, "%s %s", label_value(lines, lines->n - 1), text);
    if (n < 0 || (size_t)n >= sizeof value)
        return fail(e, ST_USAGE, "%.60s is longer than %zu characters", key, sizeof value - 1);
    return label_set(lines, key, value, e);
}

/* Finds the '=' after a line's key; NULL: there is none. In a key differs.MODEL, the model may contain '='; then the
 * last '=' before the first blank counts. */
static char *end_of_key(char *line) {
    char *end = strchr(line, '=');
    if (!end || !model_of_key(without_profile(line))) return end;
    for (char *at = end; *at && *at != ' ' && *at != '\t'; at++)
        if (*at == '=') end = at;
    return end;
}

static bool is_of_profiles(const char *key) {
    int known = find_key(key);
    return known >= 0 && keys[known].about == PROFILE;
}

static enum status check_line(const char *line, bool profiles, struct error *e) {
    const char *key = without_profile(line);
    TRY(check_key(key, e));
    if (is_of_profiles(key) && !profiles)
        return fail(e, ST_USAGE, "%.60s: only a file in profiles/ says so; take the line out", line);
    if (key == line || (strcmp(key, "base") != 0 && strcmp(key, "profile") != 0)) return ST_OK;
    return fail(e, ST_USAGE, "%.60s: every profile has the same %s; write it without the profile's name", line, key);
}

/* Adds a line such as "expect acc >= .99". The gate reads what is expected, and names the line in messages. */
static enum status add_expectation(struct label *lines, const char *text, int number, struct error *e) {
    char key[PLAN_NAME_BYTES];
    text += strspn(text, " \t");
    snprintf(key, sizeof key, PLAN_EXPECT "%d", number);
    return *text ? label_add(lines, key, text, e) : fail(e, ST_USAGE, "expect has no figure and no bound");
}

static enum status add_line(struct label *lines, char *line, bool profiles, int number, const char *origin,
                            struct error *e) {
    bool goes_on = *line == ' ' || *line == '\t';
    line += strspn(line, " \t");
    text_trim(line);
    if (!*line || *line == '#') return ST_OK;
    if (goes_on) return go_on(lines, line, origin, e);
    if (!strncmp(line, "expect", 6) && strchr(" \t", line[6])) return add_expectation(lines, line + 6, number, e);
    char *equals = end_of_key(line);
    if (!equals) return fail(e, ST_USAGE, "'%.60s' is not of the form key=value", line);
    *equals = 0;
    const char *value = equals + 1 + strspn(equals + 1, " \t");
    text_trim(line);
    TRY(check_line(line, profiles, e));
    if (!*value) return fail(e, ST_USAGE, "%.60s has no value; leave the line out, or write one", line);
    if (!strcmp(line, "table") && strcmp(value, "ours") != 0)
        return fail(e, ST_USAGE, "table=%.60s: expected 'ours', or no such line where the table is the paper's", value);
    if (strlen(line) >= 2 * PLAN_NAME_BYTES) return unknown_key(line, e);
    if (label_get(lines, line)) return fail(e, ST_USAGE, "%.60s is given twice", line);
    TRY(check_value(without_profile(line), value, origin, e));
    return label_add(lines, line, value, e);
}

enum status plan_file_parse(struct plan_file *p, const char *name, const char *text, size_t size, struct error *e) {
    *p = (struct plan_file){.name = ""};
    TRY(label_set_name(&p->lines, "", e));
    if (size > PLAN_FILE_MOST_BYTES)
        return fail(e, ST_USAGE, "%.200s has %zu bytes, expected at most %d", name, size, PLAN_FILE_MOST_BYTES);
    const char *end = text + size;
    bool profiles = !strncmp(name, PLAN_PROFILES, strlen(PLAN_PROFILES));
    for (int number = 1; text < end; number++) {
        char line[1024], origin[256];
        struct error why = {ST_OK, ""};
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        size_t n = (size_t)((stop ? stop : end) - text);
        if (n >= sizeof line)
            return fail(e, ST_USAGE, "%.200s line %d has %zu bytes, expected at most %zu", name, number, n,
                        sizeof line - 1);
        memcpy(line, text, n);
        line[n] = 0;
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)line[i] < 0x20 && !strchr("\t\r", line[i] ? line[i] : ' '))
                return fail(e, ST_USAGE, "%.200s line %d has a byte %d, which is no text", name, number, line[i]);
        snprintf(origin, sizeof origin, "%.200s line %d", name, number);
        bool taken = add_line(&p->lines, line, profiles, number, origin, &why) == ST_OK;
        if (!taken && strstr(why.text, origin)) return fail(e, why.status, "%s", why.text);
        if (!taken) return fail(e, why.status, "%s: %.700s", origin, why.text);
        text += n + 1;
    }
    return ST_OK;
}

/* --- files -------------------------------------------------------------------------------------------------------- */

/* Gives the path of a plan, or the name of a built-in plan. above: the plan that names this one as its base; the path
 * is then relative to its folder. NULL: the command line names it. */
static enum status find_file(const char *name, const char *above, char path[PATH_BYTES], struct error *e) {
    char folder[PATH_BYTES];
    bool profiles = above && !strncmp(above, PLAN_PROFILES, strlen(PLAN_PROFILES));
    if (built_in_named(name)) return path_format(path, PATH_BYTES, e, "%s", name);
    if (strchr(name, '/') || text_ends(name, ENDING)) {
        if (*name == '/' || !above || !strchr(above, '/')) return path_format(path, PATH_BYTES, e, "%s", name);
        path_folder(above, folder, sizeof folder);
        return path_format(path, PATH_BYTES, e, "%s/%s", folder, name);
    }
    TRY(path_format(path, PATH_BYTES, e, "%s%s", profiles ? PLAN_PROFILES : PLAN_PAPERS, name));
    if (built_in_named(path)) return ST_OK;
    return fail(e, ST_DATA, "there is no plan '%.60s'; `lrnn list papers` names them, and one of your own is a path",
                name);
}

/* Reads the plan that find_file found, without its bases. ST_DATA: it cannot be read, or is a folder. */
static enum status read_one(struct plan_file *p, const char *path, struct error *e) {
    const struct built_in *b = built_in_named(path);
    struct error why;
    char *text, name[PATH_BYTES + sizeof ENDING];
    size_t size;
    snprintf(name, sizeof name, "%s%s", path, b ? ENDING : "");
    if (b) return plan_file_parse(p, name, b->text, b->size, e);
    enum status status = file_read(path, PLAN_FILE_MOST_BYTES, &text, &size, &why);
    if (status == ST_MEMORY) return fail(e, status, "%s", why.text);
    if (status != ST_OK)
        return fail(e, ST_DATA, "%s; expected a plan, a file of key=value lines (docs/papers.md)", why.text);
    status = plan_file_parse(p, path, text, size, e);
    free(text);
    return status;
}

/* Whether the plan itself sets the other one of steps and epochs, so that the base's `key` does not apply. */
static bool says_length(const struct label *own, const char *key) {
    char line[2 * PLAN_NAME_BYTES];
    const char *plain = without_profile(key), *other = config_other_length(plain);
    snprintf(line, sizeof line, "%.*s%s", (int)(plain - key), key, other ? other : "");
    return other && label_get(own, line);
}

/* Whether two paths lead to the same file. */
static bool is_same(const char *a, const char *b) {
    struct stat of[2];
    if (!strcmp(a, b)) return true;
    return stat(a, &of[0]) == 0 && stat(b, &of[1]) == 0 && of[0].st_dev == of[1].st_dev && of[0].st_ino == of[1].st_ino;
}

/* Adds those lines of a base whose keys the plan itself does not have. The plan was read from `path`. */
static enum status inherit(struct plan_file *p, const struct plan_file *base, const char *path, struct error *e) {
    const struct label own = p->lines;
    for (int i = 0; i < base->lines.n; i++) {
        const char *key = label_key(&base->lines, i), *plain = without_profile(key);
        int known = find_key(plain);
        bool people = known >= 0 && keys[known].about == PEOPLE && !label_get(&base->lines, "profiles");
        if (people || is_expectation(key) || label_get(&own, key) || says_length(&own, key)) continue;
        if (label_add(&p->lines, key, label_value(&base->lines, i), NULL) != ST_OK)
            return fail(e, ST_USAGE, "%.300s and its base are longer than %d characters together", path,
                        LABEL_TEXT - 1);
    }
    return ST_OK;
}

/* Reads a plan. chain[0 .. n-1] are the plans whose bases led to it. */
static enum status read_chain(struct plan_file *p, const char *name, char chain[][PATH_BYTES], int n, struct error *e) {
    struct plan_file base;
    TRY(find_file(name, n ? chain[n - 1] : NULL, chain[n], e));
    for (int i = 0; i < n; i++)
        if (is_same(chain[i], chain[n]))
            return fail(e, ST_USAGE, "%.300s is based on itself, through %.300s", chain[i], chain[n - 1]);
    if (n + 1 == MOST_BASES)
        return fail(e, ST_USAGE, "%.300s is based on more than %d plans", chain[0], MOST_BASES - 2);
    TRY(read_one(p, chain[n], e));
    const char *below = label_get(&p->lines, "base");
    if (!below) return ST_OK;
    TRY(read_chain(&base, below, chain, n + 1, e));
    return inherit(p, &base, chain[n], e);
}

enum status plan_file_read(struct plan_file *p, const char *name, struct error *e) {
    char(*chain)[PATH_BYTES] = calloc(MOST_BASES, sizeof *chain);
    if (!chain) return fail(e, ST_MEMORY, "no memory for a plan");
    enum status status = read_chain(p, name, chain, 0, e);
    free(chain);
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    size_t n = strlen(last) - (text_ends(last, ENDING) ? strlen(ENDING) : 0);
    snprintf(p->name, sizeof p->name, "%.*s", (int)(n < sizeof p->name ? n : sizeof p->name - 1), last);
    return status;
}

/* Returns the value of the key "PROFILE.KEY"; the plain key does not count. */
static const char *of_profile(const struct plan_file *p, const char *profile, const char *key) {
    char line[2 * PLAN_NAME_BYTES];
    snprintf(line, sizeof line, "%.63s.%.63s", profile, key);
    return label_get(&p->lines, line);
}

const char *plan_file_get(const struct plan_file *p, const char *profile, const char *key) {
    const char *value = of_profile(p, profile, key), *other = config_other_length(key);
    if (value) return value;
    return other && of_profile(p, profile, other) ? NULL : label_get(&p->lines, key);
}

const char *plan_file_differs(const struct plan_file *p, const char *profile, int i, const char **model) {
    for (int k = 0; k < p->lines.n; k++) {
        const char *key = without_profile(label_key(&p->lines, k)), *of = model_of_key(key);
        if ((!of && strcmp(key, DIFFERS) != 0) || plan_file_get(p, profile, key) != label_value(&p->lines, k)) continue;
        *model = of ? of : "";
        if (i-- == 0) return label_value(&p->lines, k);
    }
    return NULL;
}

enum status plan_file_settings(const struct plan_file *p, const char *profile, struct label *settings,
                               struct error *e) {
    *settings = (struct label){0};
    TRY(label_set_name(settings, "", e));
    for (int i = 0; i < p->lines.n; i++) {
        const char *key = label_key(&p->lines, i), *plain = without_profile(key);
        int known = find_key(plain);
        if ((known >= 0 && keys[known].about != SETTING) || model_of_key(plain) || is_expectation(key)) continue;
        const char *value = plan_file_get(p, profile, plain);
        if (value && !label_get(settings, plain)) TRY(label_add(settings, plain, value, e));
    }
    return ST_OK;
}
