/* paper_verdict.c - the verdict of a cell of a plan's table (paper_cells.h), and which cells have none, since their
 * runs are of another setting. */
#include "harness/rows/paper_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/row_key.h"

const char *const paper_verdict_names[] = {"-", "not run", "cut off", "unfinished", "within", "above", "below"};

/* --- verdicts ----------------------------------------------------------------------------------------------------- */

bool paper_cell_is_other(const struct paper_cell *c) {
    return c->other || c->differs;
}

/* Whether runs are missing: of those planned, and of a best, which can only grow, of as many as the paper's of each
 * setting. */
static bool is_short(const struct paper_cell *c, bool best) {
    return c->done < c->planned || (best && c->done < c->published.n * c->settings);
}

enum paper_verdict paper_judge(const struct paper_cell *c, enum report_protocol protocol) {
    if (c->done == 0) return PAPER_NOT_RUN;
    if (!isfinite(c->published.value) || paper_cell_is_other(c)) return PAPER_NONE;
    if (!isfinite(c->ours)) return PAPER_UNFINISHED;
    double low = c->ours - PAPER_MARGIN, high = c->ours + PAPER_MARGIN, highest_low = 1 - PAPER_MARGIN;
    if (c->interval.kind != INTERVAL_NONE) {
        low = c->interval.low;
        high = c->interval.high;
        highest_low = 1;
    }
    double half = published_half_width(&c->published) + c->published.rounding + 1e-9; /* 1e-9: of doubles */
    bool below = high < c->published.value - half;
    bool above = low > c->published.value + half;
    /* whether a larger number, at most 1, would have another verdict */
    bool may_rise = below || (!above && highest_low > c->published.value + half);
    bool best = protocol == PROTOCOL_BEST_OF_GRID, missing = is_short(c, best);
    if (may_rise && (c->cut_off || c->any_cut_off)) return PAPER_CUT_OFF;
    if (missing && (may_rise || !best)) return PAPER_UNFINISHED;
    return below ? PAPER_BELOW : above ? PAPER_ABOVE : PAPER_WITHIN;
}

/* --- other settings ----------------------------------------------------------------------------------------------- */

/* Whether a pair of a run's key is of its setting: the task, the model and their options, and the flags but for those
 * that say where and how numbers are computed and for how long at most (OPT_OPEN), where a run ends and how often it is
 * validated on the way. Those are no settings of a paper's: precisions make no difference in pairs of runs
 * (docs/results.md), and --allow-non-causal changes no run of a model that the plan itself has. What a key has besides
 * (the kind of device, numerics) follows from all that. */
static bool is_of_setting(const char *name) {
    const struct option *o = row_key_flag(name);
    if (!strcmp(name, "stop-after") || !strcmp(name, "eval-every")) return false;
    if (o) return !(o->flags & OPT_OPEN);
    return !strcmp(name, "task") || !strcmp(name, "model") || !strncmp(name, "task.", 5) || !strncmp(name, "model.", 6);
}

/* Whether rows or columns are told apart by a key. */
static bool is_named(const struct paper_cells *p, const char *name) {
    const char *const lines[] = {paper_setting(p, "rows", "model"), paper_setting(p, "columns", "task")};
    size_t n = strlen(name);
    for (int i = 0; i < 2; i++)
        for (const char *at = lines[i]; *at; at += strcspn(at, " "), at += strspn(at, " "))
            if (strcspn(at, " ") == n && !strncmp(at, name, n)) return true;
    return false;
}

/* A run of the plan's own profile. */
struct own_run {
    char key[RUN_ID_HEX];   /* of its setting */
    char group[RUN_ID_HEX]; /* of all that runs share whose tasks make one number: a base and its changes */
};

/* Whether a task and its changes share a pair of a setting. Steps follow from the examples, and a change may have
 * fewer; the model is compared as it was asked for, before it was fitted to their length. */
static bool is_common(const struct paper_cells *p, const char *name) {
    bool follows = !strcmp(name, "steps") || !strncmp(name, "task.", 5) || !strncmp(name, "model.", 6);
    return !follows || is_named(p, name);
}

/* Hashes the setting of a run; word: the number of its task in the plan. */
static enum status describe(const struct paper_cells *p, const struct setup *s, int word, struct own_run *run,
                            struct error *e) {
    struct label all, mixer, key = {0}, group = {0};
    char number[16], hex[RUN_ID_HEX];
    TRY(row_key(s->id.text, &all, e));
    TRY(paper_mixer(s, &mixer, e));
    record_hash_label(&mixer, hex);
    snprintf(number, sizeof number, "%d", word);
    TRY(label_set_name(&key, "", e));
    TRY(label_set_name(&group, number, e));
    TRY(label_add(&group, "asked", hex, e));
    for (int i = 0; i < all.n; i++) {
        const char *name = label_key(&all, i), *value = label_value(&all, i);
        if (!is_of_setting(name)) continue;
        TRY(label_add(&key, name, value, e));
        if (is_common(p, name)) TRY(label_add(&group, name, value, e));
    }
    record_hash_label(&key, run->key);
    record_hash_label(&group, run->group);
    return ST_OK;
}

/* Chooses the blank-separated words of `own` whose name, up to a ':', some word of `asked` has. */
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

/* Makes the plan's own runs of the tasks in force. Tasks with data that must be imported first have none: a short
 * profile has other tasks in their place. */
static enum status plan_own(const struct paper_cells *p, struct plan *plan, struct error *e) {
    const char *tasks = plan_file_get(&p->request.file, paper_own_profile(p), "tasks");
    struct resolved resolved;
    struct request *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for a plan");
    r->file = p->request.file;
    choose_words(tasks ? tasks : "", p->resolved.tasks, r->tasks);
    enum status status = request_say(r, "seeds", "1", e);
    if (status == ST_OK) status = request_say(r, "lr", "0.001", e);
    if (status == ST_OK && *r->tasks) status = request_plan(r, plan, &resolved, e);
    free(r);
    return status == ST_DATA ? ST_OK : status;
}

static enum status list_own(const struct paper_cells *p, struct own_run **list, int *n, struct error *e) {
    struct plan plan = {0};
    enum status status = plan_own(p, &plan, e);
    *n = plan.n_uses;
    *list = calloc((size_t)plan.n_uses + 1, sizeof **list);
    if (status == ST_OK && !*list) status = fail(e, ST_MEMORY, "no memory for a plan");
    for (int i = 0; i < plan.n_uses && status == ST_OK; i++)
        status = describe(p, plan.setups[plan.uses[i].run], plan.uses[i].word, &(*list)[i], e);
    plan_free(&plan);
    return status;
}

/* The runs of the table and the runs of the plan's own profile. */
struct comparison {
    const struct paper_cells *p;
    const struct paper_spot *spots;
    struct own_run *uses, *own; /* of the first `plan.n_uses` spots; n_own */
    int n_own;
};

/* Whether a cell has a run of that key. */
static bool cell_has(const struct comparison *c, const struct paper_spot *cell, const char *key) {
    for (int i = 0; i < c->p->plan.n_uses; i++)
        if (c->spots[i].row == cell->row && c->spots[i].column == cell->column && !strcmp(c->uses[i].key, key))
            return true;
    return false;
}

/* Whether the plan's own profile has use number i, and its cell every other setting whose number is part of the
 * cell's: the mean over a task and its changes is none of the task alone. */
static bool is_own(const struct comparison *c, int i) {
    for (int k = 0; k < c->n_own; k++) {
        bool whole = !strcmp(c->own[k].key, c->uses[i].key);
        for (int j = 0; j < c->n_own && whole; j++)
            whole = strcmp(c->own[j].group, c->own[k].group) != 0 || cell_has(c, &c->spots[i], c->own[j].key);
        if (whole) return true;
    }
    return false;
}

/* Marks the cells whose runs the plan's own profile does not have. */
static enum status mark_runs(struct paper_cells *p, const struct paper_spot *spots, struct error *e) {
    int n = p->plan.n_uses;
    struct comparison c = {.p = p, .spots = spots, .uses = calloc((size_t)n + 1, sizeof *c.uses)};
    enum status status = c.uses ? list_own(p, &c.own, &c.n_own, e) : fail(e, ST_MEMORY, "no memory for a plan");
    for (int i = 0; i < n && status == ST_OK; i++) status = describe(p, paper_setup(p, &spots[i]), 0, &c.uses[i], e);
    for (int i = 0; i < n && status == ST_OK; i++) {
        if (is_own(&c, i)) continue;
        for (int k = i; k < paper_count_spots(p); k += n) paper_cell_at(p, spots[k].row, spots[k].column)->other = true;
    }
    free(c.own);
    free(c.uses);
    return status;
}

/* --- differences that the plan says ------------------------------------------------------------------------------- */

static const char *difference(const struct paper_cells *p, int k, const char **model) {
    return plan_file_differs(&p->request.file, p->resolved.profile, k, model);
}

enum status paper_check_differences(const struct paper_cells *p, struct error *e) {
    const char *model;
    if (!difference(p, PAPER_MOST_DIFFERENCES, &model)) return ST_OK;
    return fail(e, ST_USAGE, "%s: it says more than %d differences from the paper's setting; join some of them",
                p->request.file.name, PAPER_MOST_DIFFERENCES);
}

enum status paper_mark_others(struct paper_cells *p, const struct paper_spot *spots, struct error *e) {
    const char *model;
    TRY(mark_runs(p, spots, e));
    for (int k = 0; difference(p, k, &model) != NULL; k++)
        for (int i = 0; i < paper_count_spots(p); i++) {
            struct label mixer, flags;
            TRY(paper_mixer(paper_setup(p, &spots[i]), &mixer, e));
            TRY(row_key(paper_setup(p, &spots[i])->id.text, &flags, e));
            if (*model && !published_model_fits(model, &mixer, &flags)) continue;
            paper_cell_at(p, spots[i].row, spots[i].column)->differs |= UINT64_C(1) << k;
        }
    return ST_OK;
}

const char *paper_difference(const struct paper_cells *p, uint64_t differs, int k) {
    const char *model, *text = differs >> k & 1 ? difference(p, k, &model) : NULL;
    for (int i = 0; i < k && text; i++)
        if (differs >> i & 1 && !strcmp(difference(p, i, &model), text)) return NULL;
    return text;
}
