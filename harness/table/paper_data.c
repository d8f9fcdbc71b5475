/* paper_data.c - see paper_data.h. */
#include "harness/table/paper_data.h"

#include <math.h>

#include "harness/table/paper_verdict.h"

/* --- what a column has of a cell ---------------------------------------------------------------------------------- */

static void put_plan(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)c;
    sheet_text(s, "%s", p->request.file.name);
}

static void put_profile(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)c;
    sheet_text(s, "%s", p->resolved.profile);
}

static void put_protocol(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)c;
    sheet_text(s, "%s", protocol_of(p->protocol)->name);
}

static void put_row(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    sheet_text(s, "%s", p->rows[c->row]);
}

static void put_column(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    sheet_text(s, "%s", p->columns[c->column]);
}

static void put_published(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_real(s, "%g", c->published.value);
}

static void put_ours(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_real(s, "%g", c->ours);
}

static void put_ci_lo(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_real(s, "%g", c->interval.kind == INTERVAL_NONE ? NAN : c->interval.low);
}

static void put_ci_hi(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_real(s, "%g", c->interval.kind == INTERVAL_NONE ? NAN : c->interval.high);
}

static void put_ci_kind(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_text(s, "%s", interval_kind_name(c->interval.kind));
}

static void put_n(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_int(s, c->done);
}

static void put_n_planned(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_int(s, c->planned);
}

static void put_n_failed(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_int(s, c->failed + c->earlier);
}

static void put_steps_least(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_int(s, c->least);
}

static void put_steps_most(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_int(s, c->most);
}

static void put_steps_planned(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_int(s, c->of);
}

static void put_verdict(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_text(s, "%s", c->verdict == PAPER_NONE ? "" : paper_verdict_names[c->verdict]);
}

static void put_cut_off(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_int(s, c->any_cut_off);
}

static void put_other_setting(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_int(s, paper_cell_is_other(c));
}

static void put_run_ids(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_text(s, "%s", c->run_ids ? c->run_ids : "");
}

/* "A; B" */
static void put_differs(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    const char *before = "";
    sheet_text(s, "%s", before);
    for (int k = 0; k < PAPER_MOST_DIFFERENCES; k++) {
        const char *text = paper_difference(p, c->differs, k);
        if (!text) continue;
        sheet_append(s, "%s%s", before, text);
        before = "; ";
    }
}

static void put_published_spread(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_real(s, "%g", c->published.spread);
}

static void put_published_spread_kind(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    (void)p;
    sheet_text(s, "%s", isfinite(c->published.spread) ? c->published.kind : "");
}

/* Of speed alone. */
static void put_quiet(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c) {
    sheet_int(s, p->speed && c->done ? !c->disturbed : -1);
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *heading;
    void (*put)(struct sheet *s, const struct paper_cells *p, const struct paper_cell *c);
} columns[] = {
    {"plan", put_plan},
    {"profile", put_profile},
    {"protocol", put_protocol},
    {"row", put_row},
    {"column", put_column},
    {"published", put_published},
    {"ours", put_ours},
    {"ci_lo", put_ci_lo},
    {"ci_hi", put_ci_hi},
    {"ci_kind", put_ci_kind},
    {"n", put_n},
    {"n_planned", put_n_planned},
    {"n_failed", put_n_failed},
    {"steps_least", put_steps_least},
    {"steps_most", put_steps_most},
    {"steps_planned", put_steps_planned},
    {"verdict", put_verdict},
    {"cut_off", put_cut_off},
    {"other_setting", put_other_setting},
    {"run_ids", put_run_ids},
    {"differs", put_differs},
    {"published_spread", put_published_spread},
    {"published_spread_kind", put_published_spread_kind},
    {"quiet", put_quiet},
};

#define N_COLUMNS (sizeof columns / sizeof *columns)

void paper_add_data(struct sheets *sheets, const struct paper_cells *p) {
    struct sheet *s = sheets_add(sheets);
    for (size_t k = 0; k < N_COLUMNS; k++) sheet_column(s, SHEET_LEFT, "%s", columns[k].heading);
    for (int i = 0; i < p->n_rows * p->n_columns; i++) {
        if (p->cells[i].planned == 0) continue;
        sheet_row(s);
        for (size_t k = 0; k < N_COLUMNS; k++) columns[k].put(s, p, &p->cells[i]);
    }
}
