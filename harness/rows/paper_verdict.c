/* paper_verdict.c - the verdict of a cell of a plan's table (paper_cells.h). A cell gets no verdict if the setting of
 * its runs differs from the paper's. */
#include "harness/rows/paper_cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/rows/setting.h"
#include "harness/study/row_key.h"

const char *const paper_verdict_names[] = {"-", "not run", "cut off", "unfinished", "within", "above", "below"};

/* --- verdicts ----------------------------------------------------------------------------------------------------- */

bool paper_cell_is_other(const struct paper_cell *c) {
    return c->other || c->differs;
}

/* Whether runs are missing: planned runs, or for a best of several runs as many as the paper has per setting. More runs
 * can only raise a best. */
static bool is_short(const struct paper_cell *c, bool best) {
    return c->done < c->planned || (best && c->done < c->published.n * c->settings);
}

enum paper_verdict paper_judge(const struct paper_cell *c, enum report_protocol protocol) {
    if (c->done == 0) return PAPER_NOT_RUN;
    bool best = protocol == PROTOCOL_BEST_OF_GRID;
    if (!isfinite(c->published.value) || paper_cell_is_other(c)) return PAPER_NONE;
    if (!isfinite(c->ours)) return PAPER_UNFINISHED;
    double low = c->ours - PAPER_MARGIN, high = c->ours + PAPER_MARGIN, highest_low = 1 - PAPER_MARGIN;
    if (c->interval.kind != INTERVAL_NONE) {
        low = c->interval.low;
        high = c->interval.high;
        highest_low = 1;
    }
    double half = published_half_width(&c->published) + c->published.rounding + 1e-9; /* 1e-9: rounding of doubles */
    bool below = high < c->published.value - half;
    bool above = low > c->published.value + half;
    /* a higher number could change the verdict */
    bool may_rise = below || (!above && highest_low > c->published.value + half);
    bool missing = is_short(c, best);
    if (may_rise && (c->cut_off || c->any_cut_off)) return PAPER_CUT_OFF;
    if (missing && (may_rise || !best)) return PAPER_UNFINISHED;
    return below ? PAPER_BELOW : above ? PAPER_ABOVE : PAPER_WITHIN;
}

/* --- other settings ----------------------------------------------------------------------------------------------- */

/* Two lists to compare: the plan's runs, and the runs that the built-in plans have for the paper's table ("own runs",
 * setting.h). */
struct comparison {
    const struct paper_cells *p;
    const struct paper_spot *spots;
    struct own_run *uses; /* the runs of the first `plan.n_uses` spots */
    const struct own_runs *own;
};

static bool same_setting(const struct own_run *a, const struct own_run *b) {
    return a->key.used == b->key.used && !memcmp(a->key.text, b->key.text, a->key.used);
}

/* Whether the cell of a spot has a run with that setting. */
static bool cell_has(const struct comparison *c, const struct paper_spot *cell, const struct own_run *run) {
    for (int i = 0; i < c->p->plan.n_uses; i++)
        if (c->spots[i].row == cell->row && c->spots[i].column == cell->column && same_setting(&c->uses[i], run))
            return true;
    return false;
}

/* Finds the own run with the setting of use number i. NULL: there is none; or the cell lacks another setting of the
 * same group, which a mean over a task and its variants needs. */
static const struct own_run *find_own(const struct comparison *c, int i) {
    for (int k = 0; k < c->own->n; k++) {
        const struct own_run *own = &c->own->list[k];
        bool whole = same_setting(own, &c->uses[i]);
        for (int j = 0; j < c->own->n && whole; j++)
            whole = strcmp(c->own->list[j].group, own->group) != 0 || cell_has(c, &c->spots[i], &c->own->list[j]);
        if (whole) return own;
    }
    return NULL;
}

/* Marks the cells whose runs are not in the paper's table. Also marks cells for which the built-in plan names a
 * difference that this plan does not name. */
static enum status mark_runs(struct paper_cells *p, const struct paper_spot *spots, const struct own_runs *own,
                             struct error *e) {
    int n = p->plan.n_uses;
    struct comparison c = {.p = p, .spots = spots, .uses = calloc((size_t)n + 1, sizeof *c.uses), .own = own};
    enum status status = c.uses ? ST_OK : fail(e, ST_MEMORY, "no memory for a plan");
    for (int i = 0; i < n && status == ST_OK; i++)
        status = own_run_describe(own, paper_setup(p, &spots[i]), 0, &c.uses[i], e);
    for (int i = 0; i < n && status == ST_OK; i++) {
        char unlike[RECORD_TEXT];
        const struct own_run *is = find_own(&c, i);
        if (!is && !own_runs_nearest(own, &c.uses[i].key, unlike)) snprintf(unlike, sizeof unlike, "its task or model");
        for (int k = i; k < paper_count_spots(p); k += n) {
            struct paper_cell *cell = paper_cell_at(p, spots[k].row, spots[k].column);
            if (is && (!is->differs || cell->differs)) continue;
            cell->other = true;
            unlike_add(cell->unlike, is ? "the program's plan for this table differs from the paper" : unlike);
        }
    }
    free(c.uses);
    return status;
}

/* --- differences that the plan names ------------------------------------------------------------------------------ */

static const char *difference(const struct paper_cells *p, int k, const char **model) {
    return plan_file_differs(&p->request.file, p->resolved.profile, k, model);
}

enum status paper_check_differences(const struct paper_cells *p, struct error *e) {
    const char *model;
    if (!difference(p, PAPER_MOST_DIFFERENCES, &model)) return ST_OK;
    return fail(e, ST_USAGE, "%s: it says more than %d differences from the paper's setting; join some of them",
                p->request.file.name, PAPER_MOST_DIFFERENCES);
}

/* Whether the columns are all the tasks of the paper's table. */
static bool is_whole(const struct paper_cells *p, const char *tasks) {
    bool whole = !strcmp(paper_setting(p, "columns", "task"), "task") && !p->lengths[0];
    for (const char *at = tasks; *at && whole; at += strspn(at, " ")) {
        char word[LABEL_TEXT], chosen[LABEL_TEXT];
        bool there = false;
        whole = text_part(&at, " ", word, sizeof word, NULL) == ST_OK;
        for (int i = 0; paper_word(p, i, chosen, sizeof chosen), *chosen; i++) there = there || !strcmp(chosen, word);
        whole = whole && (there || !*word);
    }
    return whole;
}

enum status paper_mark_others(struct paper_cells *p, const struct paper_spot *spots, struct error *e) {
    const char *model;
    struct own_runs own = {.rows = paper_setting(p, "rows", "model"), .columns = paper_setting(p, "columns", "task")};
    for (int k = 0; difference(p, k, &model) != NULL; k++)
        for (int i = 0; i < paper_count_spots(p); i++) {
            struct label mixer, flags;
            TRY(paper_mixer(&paper_setup(p, &spots[i])->spec, &mixer, e));
            TRY(row_key(paper_setup(p, &spots[i])->id.text, &flags, e));
            if (*model && !published_model_fits(model, &mixer, &flags)) continue;
            paper_cell_at(p, spots[i].row, spots[i].column)->differs |= UINT64_C(1) << k;
        }
    enum status status = own_runs_find(&own, paper_setting(p, "paper", ""), paper_setting(p, "source", ""),
                                       p->resolved.tasks, &p->request.file, e);
    if (status == ST_OK) status = mark_runs(p, spots, &own, e);
    p->whole = is_whole(p, own.tasks);
    own_runs_free(&own);
    return status;
}

const char *paper_difference(const struct paper_cells *p, uint64_t differs, int k) {
    const char *model, *text = differs >> k & 1 ? difference(p, k, &model) : NULL;
    for (int i = 0; i < k && text; i++)
        if (differs >> i & 1 && !strcmp(difference(p, i, &model), text)) return NULL;
    return text;
}
