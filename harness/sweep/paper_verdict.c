/* paper_verdict.c - see paper_verdict.h. */
#include "harness/sweep/paper_verdict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/row_key.h"

const char *const paper_verdict_names[] = {"-", "not run", "cut off", "unfinished", "within", "above", "below"};

/* --- verdicts ----------------------------------------------------------------------------------------------------- */

bool paper_cell_is_other(const struct paper_cell *c) {
    return c->other || c->differs;
}

enum paper_verdict paper_judge(const struct paper_cell *c, enum report_protocol protocol) {
    if (c->done == 0) return PAPER_NOT_RUN;
    if (!isfinite(c->published.value) || paper_cell_is_other(c)) return PAPER_NONE;
    if (!isfinite(c->ours)) return PAPER_UNFINISHED;
    double low = c->ours - PAPER_MARGIN, high = c->ours + PAPER_MARGIN;
    if (c->interval.kind != INTERVAL_NONE) {
        low = c->interval.low;
        high = c->interval.high;
    }
    double half = published_half_width(&c->published) + 1e-9; /* which is for rounding */
    bool below = high<c->published.value - half, above = low> c->published.value + half;
    bool best = protocol == PROTOCOL_BEST_OF_GRID; /* which can only grow, up to that of as many runs as the paper's */
    bool may_rise = best ? below && (c->done < c->planned || c->done < c->published.n) : c->done < c->planned;
    if (below && (c->cut_off || c->any_cut_off)) return PAPER_CUT_OFF;
    if (may_rise) return PAPER_UNFINISHED;
    return below ? PAPER_BELOW : above ? PAPER_ABOVE : PAPER_WITHIN;
}

/* What a run is apart from rate and seed, where it ends, how often it is validated on the way, and its precision, which
 * is no setting of a paper's: in pairs of runs it makes no difference (docs/findings.md). */
static enum status key_of(const struct setup *s, char hex[RUN_ID_HEX], struct error *e) {
    struct label key;
    TRY(row_key(s->identity, &key, e));
    label_remove(&key, "stop-after");
    label_remove(&key, "eval-every");
    label_remove(&key, "precision");
    record_hash_bytes(key.text, key.used, hex);
    return ST_OK;
}

/* Marks the cells whose runs the plan's own profile does not have: all whose data would have to be imported first to
 * know that profile's runs, since a short profile then has others in their place. */
enum status paper_mark_others(struct paper_cells *p, const struct paper_spot *spots, struct error *e) {
    const char *own = plan_file_get(&p->request.file, "", "profile");
    struct plan plan = {0};
    struct resolved resolved;
    bool changed = p->request.args.given.n || p->request.axes.n || p->request.grid.n || *p->request.models;
    if (!changed && !strcmp(p->resolved.profile, own ? own : "quick")) return ST_OK;
    struct request *r = calloc(1, sizeof *r);
    if (!r) return fail(e, ST_MEMORY, "no memory for a plan");
    r->file = p->request.file;
    memcpy(r->tasks, p->request.tasks, sizeof r->tasks);
    snprintf(r->seeds, sizeof r->seeds, "1");
    snprintf(r->rates, sizeof r->rates, "0.001");
    enum status status = request_plan(r, &plan, &resolved, e);
    if (status == ST_DATA) status = ST_OK;
    char(*keys)[RUN_ID_HEX] = calloc((size_t)plan.n + 1, sizeof *keys);
    if (status == ST_OK && !keys) status = fail(e, ST_MEMORY, "no memory for a plan");
    for (int i = 0; i < plan.n && status == ST_OK; i++) status = key_of(plan.setups[i], keys[i], e);
    for (int i = 0; i < p->plan.n_uses && status == ST_OK; i++) {
        char key[RUN_ID_HEX];
        bool found = false;
        status = key_of(paper_setup(p, &spots[i]), key, e);
        for (int k = 0; k < plan.n && !found; k++) found = !strcmp(keys[k], key);
        for (int k = i; k < paper_count_spots(p) && !found; k += p->plan.n_uses)
            paper_cell_at(p, spots[k].row, spots[k].column)->other = true;
    }
    free(keys);
    plan_free(&plan);
    free(r);
    return status;
}

/* Says of each cell what the plan says of its row. */
enum status paper_mark_differences(struct paper_cells *p, const struct paper_spot *spots, struct error *e) {
    const char *model, *text;
    for (int k = 0; (text = plan_file_differs(&p->request.file, p->resolved.profile, k, &model)) != NULL; k++)
        for (int i = 0; i < paper_count_spots(p); i++) {
            struct paper_cell *cell = paper_cell_at(p, spots[i].row, spots[i].column);
            struct label mixer, flags;
            if (cell->differs && strstr(cell->differs, text)) continue;
            TRY(paper_mixer(paper_setup(p, &spots[i]), &mixer, e));
            TRY(row_key(paper_setup(p, &spots[i])->identity, &flags, e));
            if (*model && !published_model_fits(model, &mixer, &flags)) continue;
            TRY(paper_add_item(&cell->differs, "; ", text, e));
        }
    return ST_OK;
}
