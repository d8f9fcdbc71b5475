/* setting.c - see setting.h. */
#include "harness/rows/setting.h"

#include <stdlib.h>
#include <string.h>

#include "harness/rows/published.h"
#include "harness/study/row_key.h"

/* Precision is told below the table, because it made no difference in paired runs (docs/results.md). The validation
 * interval and an early end have marks and columns. Other parts of a key (kind of device, numerics) follow from the
 * rest. */
enum setting_place setting_place(const char *key) {
    static const char *const marked[] = {"stop-after", "eval-every"}, *const own[] = {"task", "model"};
    const struct option *o = row_key_flag(key);
    for (int i = 0; i < 2; i++) {
        if (!strcmp(key, marked[i])) return SETTING_MARKED;
        if (!strcmp(key, own[i])) return SETTING_NUMBER;
    }
    if (o) return o->flags & OPT_OPEN ? SETTING_FOOT : SETTING_NUMBER;
    if (!strncmp(key, "task.", 5) || !strncmp(key, "model.", 6)) return SETTING_NUMBER;
    return !strcmp(key, "dtype") ? SETTING_FOOT : SETTING_MARKED;
}

/* --- own runs: the runs of a plan for its paper's table ----------------------------------------------------------- */

/* Whether a list has a word; blanks separate its words. */
static bool has_word(const char *list, const char *word) {
    size_t n = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, " "), at += strspn(at, " "))
        if (strcspn(at, " ") == n && !strncmp(at, word, n)) return true;
    return false;
}

/* Whether a task and its variants must agree in this pair. They need not agree in steps, which follow from the number
 * of examples, nor in options of the task and the model, unless the table's rows or columns use these options. */
static bool is_common(const struct own_runs *runs, const char *name) {
    bool follows = !strcmp(name, "steps") || !strncmp(name, "task.", 5) || !strncmp(name, "model.", 6);
    return !follows || has_word(runs->rows, name) || has_word(runs->columns, name);
}

enum status own_run_describe(const struct own_runs *runs, const struct setup *s, int word, struct own_run *run,
                             struct error *e) {
    struct label all, mixer, group = {0};
    char number[16], hex[RUN_ID_HEX];
    const struct model *model = s->spec.model.model;
    *run = (struct own_run){.differs = false};
    TRY(row_key(s->id.text, &all, e));
    TRY(label_of(&mixer, model->name, model->options, s->spec.model.inst, 0, e));
    record_hash_label(&mixer, hex);
    snprintf(number, sizeof number, "%d", word);
    TRY(label_set_name(&run->key, "", e));
    TRY(label_set_name(&group, number, e));
    TRY(label_add(&group, "asked", hex, e));
    for (int i = 0; i < all.n; i++) {
        const char *name = label_key(&all, i), *value = label_value(&all, i);
        if (setting_place(name) != SETTING_NUMBER) continue;
        TRY(label_add(&run->key, name, value, e));
        if (is_common(runs, name)) TRY(label_add(&group, name, value, e));
    }
    record_hash_label(&group, run->group);
    return ST_OK;
}

/* Chooses those words of the list `own` whose name before ':' is the name of a word of the list `asked`. */
static void choose_words(const char *own, const char *asked, char chosen[LABEL_TEXT]) {
    size_t used = 0;
    chosen[0] = 0;
    for (const char *at = own + strspn(own, " "); *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        size_t n = strcspn(at, " :");
        bool met = false;
        for (const char *b = asked + strspn(asked, " "); *b; b += strcspn(b, " "), b += strspn(b, " "))
            met = met || (strcspn(b, " :") == n && !strncmp(at, b, n));
        if (met) used += (size_t)snprintf(chosen + used, LABEL_TEXT - used, " %.*s", (int)strcspn(at, " "), at);
    }
}

/* Whether the plan names a difference between the run's setting and the paper's. */
static enum status says_difference(const struct plan_file *file, const char *profile, const struct setup *s, bool *says,
                                   struct error *e) {
    const char *model;
    struct label mixer, flags;
    TRY(label_of(&mixer, s->spec.model.model->name, s->spec.model.model->options, s->spec.model.inst, 0, e));
    TRY(row_key(s->id.text, &flags, e));
    *says = false;
    for (int k = 0; plan_file_differs(file, profile, k, &model) != NULL; k++)
        *says = *says || !*model || published_model_fits(model, &mixer, &flags);
    return ST_OK;
}

/* Adds the runs of a plan under the profile that it names. One rate and one seed suffice. */
static enum status add_plan(struct own_runs *runs, const struct plan_file *file, const char *tasks, struct error *e) {
    const char *own = plan_file_get(file, "", "profile"), *words;
    struct plan plan = {0};
    struct resolved resolved;
    struct request *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for a plan");
    own = own ? own : "quick";
    words = plan_file_get(file, own, "tasks");
    size_t used = strlen(runs->tasks);
    snprintf(runs->tasks + used, sizeof runs->tasks - used, " %s", words ? words : "");
    r->file = *file;
    choose_words(words ? words : "", tasks, r->tasks);
    enum status status = request_say(r, "seeds", "1", e);
    if (status == ST_OK) status = request_say(r, "lr", "0.001", e);
    if (status == ST_OK && *r->tasks) status = request_plan(r, &plan, &resolved, e);
    free(r);
    struct own_run *longer = realloc(runs->list, (size_t)(runs->n + plan.n_uses + 1) * sizeof *longer);
    if (status == ST_OK && !longer) status = fail(e, ST_MEMORY, "no memory for a plan");
    runs->list = longer ? longer : runs->list;
    for (int i = 0; i < plan.n_uses && status == ST_OK; i++) {
        const struct setup *s = plan.setups[plan.uses[i].run];
        struct own_run *next = &runs->list[runs->n];
        status = own_run_describe(runs, s, plan.uses[i].word, next, e);
        if (status == ST_OK) status = says_difference(file, own, s, &next->differs, e);
        runs->n += status == ST_OK;
    }
    plan_free(&plan);
    return status == ST_DATA ? ST_OK : status; /* if data must be imported first, there are no own runs */
}

static bool is_of(const struct plan_file *file, const char *arxiv, const char *source) {
    const char *own = plan_file_get(file, "", "profile"), *paper = plan_file_get(file, own ? own : "quick", "paper"),
               *in = plan_file_get(file, own ? own : "quick", "source");
    return paper && in && !strcmp(paper, arxiv) && !strcmp(in, source);
}

/* Whether the plan says that its table is not in the paper. */
static bool is_ours(const struct plan_file *file) {
    const char *table = plan_file_get(file, "", "table");
    return table && !strcmp(table, "ours");
}

enum status own_runs_find(struct own_runs *runs, const char *arxiv, const char *source, const char *tasks,
                          const struct plan_file *at_hand, struct error *e) {
    const char *name;
    bool any = false;
    struct plan_file *file = calloc(1, sizeof *file);
    enum status status = file ? ST_OK : fail(e, ST_MEMORY, "no memory for a plan");
    for (int i = 0; status == ST_OK && (name = plan_file_built_in(PLAN_PAPERS, i)); i++) {
        status = plan_file_read(file, name, e);
        if (status != ST_OK || is_ours(file) || !is_of(file, arxiv, source)) continue;
        any = true;
        status = add_plan(runs, file, tasks, e);
    }
    if (status == ST_OK && !any && at_hand && !is_ours(at_hand)) status = add_plan(runs, at_hand, tasks, e);
    free(file);
    return status;
}

void own_runs_free(struct own_runs *runs) {
    free(runs->list);
    *runs = (struct own_runs){.n = 0};
}

/* --- differences -------------------------------------------------------------------------------------------------- */

/* Counts the SETTING_NUMBER pairs in which a key differs from an own run. Appends them to `text`, unless it is NULL. */
static int differences(const struct own_run *own, const struct label *key, char *text) {
    int n = 0;
    for (int i = 0; i < key->n; i++) {
        const char *name = label_key(key, i), *theirs = label_get(&own->key, name), *ours = label_value(key, i);
        if (setting_place(name) != SETTING_NUMBER || (theirs && !strcmp(ours, theirs))) continue;
        char part[RECORD_TEXT];
        n++;
        snprintf(part, sizeof part, "%s=%.100s (%.100s there)", name, *ours ? ours : "none",
                 !theirs   ? "not"
                 : *theirs ? theirs
                           : "none");
        if (text) unlike_add(text, part);
    }
    return n;
}

static bool is_kin(const struct own_run *own, const struct label *key) {
    static const char *const names[] = {"task", "model"};
    bool kin = true;
    for (int i = 0; i < 2; i++) {
        const char *a = label_get(&own->key, names[i]), *b = label_get(key, names[i]);
        kin = kin && a && b && !strcmp(a, b);
    }
    return kin;
}

const struct own_run *own_runs_nearest(const struct own_runs *runs, const struct label *key, char text[RECORD_TEXT]) {
    const struct own_run *nearest = NULL;
    int least = 0;
    text[0] = 0;
    for (int i = 0; i < runs->n; i++) {
        if (!is_kin(&runs->list[i], key)) continue;
        int n = differences(&runs->list[i], key, NULL);
        if (nearest && n >= least) continue;
        nearest = &runs->list[i];
        least = n;
    }
    if (nearest) differences(nearest, key, text);
    return nearest;
}

void unlike_add(char text[RECORD_TEXT], const char *more) {
    while (*more) {
        size_t n = strcspn(more, ";"), used = strlen(text);
        bool there = false;
        for (const char *at = text; *at && !there;) {
            size_t length = strcspn(at, ";");
            there = length == n && !strncmp(at, more, n);
            at += length;
            at += strspn(at, "; ");
        }
        if (!there && used + n + 8 < RECORD_TEXT)
            snprintf(text + used, RECORD_TEXT - used, "%s%.*s", used ? "; " : "", (int)n, more);
        else if (!there && used + 6 < RECORD_TEXT && !text_ends(text, "; ..."))
            snprintf(text + used, RECORD_TEXT - used, "; ...");
        more += n;
        more += strspn(more, "; ");
    }
}
