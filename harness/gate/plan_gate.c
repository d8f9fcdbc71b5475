/* plan_gate.c - the runs of a plan, trained anew, beside what the plan expects and beside its baseline; see gate.h. */
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/file/name.h"
#include "harness/gate/gate.h"
#include "harness/perf/speed.h"
#include "harness/pool/runner.h"
#include "harness/rows/rows.h"
#include "harness/run/signals.h"
#include "harness/store/clock.h"
#include "harness/study/request.h"

#define LEVEL    0.95 /* of the interval over seeds */
#define SITTINGS 5    /* of a speed that is compared with no other program */

struct gating {
    const struct plan_gate *q;
    struct request request;
    struct plan plan;
    struct resolved resolved;
    struct expectation expected[EXPECT_MOST];
    int n_expected;
    struct record_set set;
    struct report_tables tables;
    char out[PATH_BYTES]; /* folder of the records: the request's, or with a number */
};

/* --- before the runs ---------------------------------------------------------------------------------------------- */

static bool is_speed(const struct expectation *x) {
    return !strcmp(x->figure, FIGURE_SPEED);
}

/* Gives the mixer of a layer "MIXER;MLP". */
static enum status mixer_of(const struct identity *s, struct label *mixer, struct error *e) {
    char text[sizeof s->model_label];
    const char *at = s->model_label;
    TRY(text_part(&at, ";", text, sizeof text, e));
    return label_parse(mixer, "model", text, e);
}

/* Refuses what would be found out only once all runs are trained. */
static enum status check_expectations(const struct gating *g, struct error *e) {
    int n = g->plan.n, beside = 0;
    struct label *labels = calloc(2 * (size_t)n, sizeof *labels);
    enum status status = labels ? ST_OK : fail(e, ST_MEMORY, "no memory for a plan");
    for (int i = 0; i < n && status == ST_OK; i++) {
        status = label_parse(&labels[i], "task", g->plan.setups[i]->spec.task.name, e);
        if (status == ST_OK) status = mixer_of(&g->plan.setups[i]->id, &labels[n + i], e);
    }
    for (int i = 0; i < g->n_expected && status == ST_OK; i++) {
        status = expectation_check_words(&g->expected[i], g->q->plan, labels, labels + n, n, e);
        beside += is_speed(&g->expected[i]) && g->expected[i].of_baseline;
    }
    free(labels);
    if (status == ST_OK && *g->q->compare.a && !beside)
        return fail(e, ST_USAGE,
                    "--against %.300s: %.300s expects no speed of a baseline; add 'expect tokens/s >= .9 of baseline'",
                    g->q->compare.a, g->q->plan);
    return status;
}

static enum status make_plan(struct gating *g, struct error *e) {
    const struct baseline *b = g->q->baseline;
    bool done;
    TRY(request_words(&g->request, &g->q->plan, 1, e));
    TRY(expectations_read(&g->request.file, g->q->plan, g->expected, &g->n_expected, e));
    TRY(request_flag(&g->request, "out", g->q->out, &done, e));
    TRY(request_plan(&g->request, &g->plan, &g->resolved, e));
    if (g->resolved.speed)
        return fail(e, ST_USAGE, "%.300s has measure=speed and trains nothing; a gate's plan trains", g->q->plan);
    if (b && strcmp(b->real, REAL_NAME) != 0)
        return fail(e, ST_USAGE, "the baseline of %.300s is of %s, this program computes in %s; --update makes another",
                    g->q->plan, b->real, REAL_NAME);
    TRY(check_expectations(g, e));
    return *g->q->compare.a ? program_check(g->q->compare.a, e) : ST_OK;
}

/* Makes the folder of the records, which no other gate of the same second has. */
static enum status take_folder(struct gating *g, struct error *e) {
    char above[PATH_BYTES];
    path_folder(g->q->out, above, sizeof above);
    TRY(make_folder(above, e));
    TRY(path_format(g->out, sizeof g->out, e, "%s", g->q->out));
    for (int i = 2; mkdir(g->out, 0777) != 0; i++) {
        if (errno != EEXIST) return fail(e, ST_FAIL, "cannot make the folder %s: %s", g->out, strerror(errno));
        TRY(path_format(g->out, sizeof g->out, e, "%s-%d", g->q->out, i));
    }
    for (int i = 0; i < g->plan.n; i++) {
        struct config *c = &g->plan.setups[i]->spec.config;
        TRY(text_copy(g->out, c->out, sizeof c->out, e));
    }
    return ST_OK;
}

static enum status train(struct gating *g, struct error *e) {
    struct runner_options options = {
        .jobs = g->q->jobs ? g->q->jobs : omp_get_num_procs(), .members = 1, .quiet = g->q->quiet};
    struct report_filter filter = {.together = "", .n_runs = g->plan.n};
    const char **runs = calloc((size_t)g->plan.n, sizeof *runs);
    if (!runs) return fail(e, ST_MEMORY, "no memory for %d runs", g->plan.n);
    for (int i = 0; i < g->plan.n; i++) runs[i] = g->plan.setups[i]->id.run_id;
    filter.runs = runs;
    enum status status = place_probe(g->resolved.config.device, e);
    signals_install();
    if (status == ST_OK) status = take_folder(g, e);
    if (status == ST_OK) status = runner_do(&g->plan, &options, e);
    if (status == ST_OK) status = report_load(&g->set, g->out, e);
    if (status == ST_OK) status = report_tables_make(&g->tables, &g->set, &filter, g->out, e);
    free(runs);
    return status;
}

/* --- figures over seeds ------------------------------------------------------------------------------------------- */

static struct interval interval_of(const char *figure, const double *x, int n) {
    int whole = 0;
    for (int i = 0; i < n; i++) {
        if (!isfinite(x[i])) return (struct interval){NAN, NAN, NAN, INTERVAL_NONE};
        whole += x[i] == 1;
    }
    if (!strcmp(figure, "solved")) return stats_rate_interval(whole, n, LEVEL);
    bool share = !strcmp(figure, "acc");
    return stats_interval(x, n, LEVEL, share ? 0 : -INFINITY, share ? 1 : INFINITY);
}

static void set_figure(struct gate_row *row, double value, const struct interval *i, double bound) {
    row->value = value;
    row->low = i->kind == INTERVAL_NONE ? NAN : i->low;
    row->high = i->kind == INTERVAL_NONE ? NAN : i->high;
    row->bound = bound;
}

/* Writes the values themselves where they are too few for an interval. */
static void describe_values(struct gate_row *row) {
    const struct baseline_figure *made = &row->made;
    size_t used = strlen(row->detail);
    if (made->n >= 5) {
        snprintf(row->detail + used, sizeof row->detail - used, "; %d %s", made->n,
                 !strcmp(made->figure, FIGURE_SPEED) ? "sittings" : "seeds");
        return;
    }
    for (int i = 0; i < made->n && used < sizeof row->detail; i++)
        used += (size_t)snprintf(row->detail + used, sizeof row->detail - used, "%s%g", i ? ", " : "; values ",
                                 made->value[i]);
}

static void judge_absolute(const struct expectation *x, struct gate_row *row) {
    const struct baseline_figure *made = &row->made;
    struct interval i = interval_of(x->figure, made->value, made->n);
    set_figure(row, stats_mean(made->value, made->n), &i, x->bound);
    row->verdict = bound_verdict(row->value, &i, x->sense, x->bound);
    for (int k = 0; k < made->n; k++)
        if (x->sense == SENSE_EQUAL && made->value[k] != x->bound) row->verdict = VERDICT_REGRESSED;
}

/* The bits of a run are promised on one machine and system, and under one numerics version; speed on the former. */
static bool is_elsewhere(const struct baseline *b, const struct baseline_figure *then, struct gate_row *row) {
    struct machine m;
    machine_read(&m);
    bool moved = strcmp(b->machine_id, m.id) != 0 || strcmp(b->env_epoch, m.env_epoch) != 0;
    if (moved)
        snprintf(row->detail, sizeof row->detail, "the baseline is of machine %s and its system %s, this is %s and %s",
                 b->machine_id, b->env_epoch, m.id, m.env_epoch);
    else if (strcmp(then->numerics, row->made.numerics) != 0)
        snprintf(row->detail, sizeof row->detail, "numerics %s, in the baseline %s", row->made.numerics,
                 then->numerics);
    return *row->detail != 0;
}

/* Judges speeds, whose sittings are no pairs: the bound is so much of the baseline's mean. */
static void judge_speed(const struct expectation *x, const struct baseline_figure *then, struct gate_row *row) {
    struct expectation absolute = *x;
    absolute.bound = x->bound * stats_mean(then->value, then->n);
    judge_absolute(&absolute, row);
}

/* Judges seed by seed what the figure has more than its bound, which each seed has from the baseline. */
static void judge_pairs(const struct expectation *x, const struct baseline_figure *then, struct gate_row *row) {
    const struct baseline_figure *now = &row->made;
    double more[GATE_VALUES], bound = x->bound * stats_mean(then->value, then->n);
    bool equal = true;
    for (int i = 0; i < now->n; i++) {
        more[i] = now->value[i] == x->bound * then->value[i] ? 0 : now->value[i] - x->bound * then->value[i];
        equal = equal && more[i] == 0;
    }
    struct interval i = interval_of("", more, now->n);
    row->verdict = bound_verdict(stats_mean(more, now->n), &i, x->sense, 0);
    if (x->sense == SENSE_EQUAL) row->verdict = equal ? VERDICT_SAME : VERDICT_REGRESSED;
    i.low += bound;
    i.high += bound;
    set_figure(row, stats_mean(now->value, now->n), &i, bound);
}

static void judge_beside(const struct gating *g, const struct expectation *x, struct gate_row *row) {
    const struct baseline *b = g->q->baseline;
    const struct baseline_figure *now = &row->made;
    const struct baseline_figure *then = b ? baseline_figure(b, row->name, x->figure) : NULL;
    set_figure(row, stats_mean(now->value, now->n), &(struct interval){.kind = INTERVAL_NONE}, NAN);
    if (!then) {
        snprintf(row->detail, sizeof row->detail, "%s",
                 b ? "the baseline has no such cell; --update adds it" : "this run makes the baseline");
        row->compared = !b;
        return;
    }
    if ((is_speed(x) || x->sense == SENSE_EQUAL) && !g->q->compare.force && is_elsewhere(b, then, row)) {
        row->verdict = VERDICT_INCONCLUSIVE;
        return;
    }
    if (is_speed(x)) {
        judge_speed(x, then, row);
        return;
    }
    if (now->n == then->n && memcmp(now->seed, then->seed, (size_t)now->n * sizeof *now->seed) == 0) {
        judge_pairs(x, then, row);
        return;
    }
    row->verdict = VERDICT_REGRESSED;
    snprintf(
        row->detail, sizeof row->detail,
        "the baseline has the %d seeds from %lld on, the plan %d from %lld on; --update takes them if that is meant",
        then->n, (long long)then->seed[0], now->n, (long long)now->seed[0]);
}

/* --- speed -------------------------------------------------------------------------------------------------------- */

static struct setup *setup_of(const struct gating *g, const struct report_row *cell) {
    int i = 0;
    while (strcmp(g->plan.setups[i]->id.run_id, cell->chosen[0]->run.run_id) != 0) i++;
    return g->plan.setups[i];
}

/* Takes sittings on one core; a busy machine makes them inconclusive. */
static enum status sit(const struct gating *g, struct setup *s, struct gate_row *row, double *foreign,
                       struct error *e) {
    *foreign = 0;
    for (row->made.n = 0; row->made.n < SITTINGS; row->made.n++) {
        struct perf_row speed;
        TRY(speed_measure(s, 1, g->q->compare.seconds, &speed, e));
        row->made.seed[row->made.n] = row->made.n + 1;
        row->made.value[row->made.n] = speed.tok_per_s;
        if (speed.foreign > *foreign) *foreign = speed.foreign;
    }
    return ST_OK;
}

/* Compares two programs' steps of the cell in turns: the figure is the ratio of their speeds. */
static enum status compare_programs(const struct gating *g, const struct expectation *x, const struct setup *s,
                                    const struct run *run, struct gate_row *row, struct error *e) {
    char path[PATH_BYTES], config[CONFIG_TEXT];
    TRY(path_format(path, sizeof path, e, "%s/%.32s.conf", g->out, s->id.cell_id));
    TRY(setup_config_text(&s->spec, config, e));
    TRY(write_file_atomic(path, config, strlen(config), e));
    struct gate_bench bench = {.name = row->name, .config = path};
    row->speed = (struct compare_row){.bench = &bench, .floor = GATE_FLOOR};
    enum status status = compare_builds(&g->q->compare, &row->speed, 1, e);
    row->speed.bench = NULL; /* it ends here */
    TRY(status);
    const struct compare_row *c = &row->speed;
    snprintf(row->detail, sizeof row->detail, "%s", c->detail);
    row->compared = c->measured || c->verdict == VERDICT_REGRESSED;
    row->verdict = c->verdict;
    if (!c->measured) return ST_OK;
    struct interval i = {exp(-c->pairs.interval.high), exp(-c->pairs.interval.low), c->pairs.interval.level,
                         c->pairs.interval.kind};
    row->made.n = 1;
    row->made.value[0] = (double)run->tokens / (double)run->steps / c->b;
    set_figure(row, exp(-c->pairs.median), &i, x->bound);
    row->busy = c->foreign > g->q->compare.load;
    bool decided = !row->busy && i.level >= GATE_LEVEL;
    row->verdict = decided ? bound_verdict(row->value, &i, x->sense, x->bound) : VERDICT_INCONCLUSIVE;
    return ST_OK;
}

static enum status judge_speeds(const struct gating *g, const struct expectation *x, const struct report_row *cell,
                                struct gate_row *row, struct error *e) {
    struct setup *s = setup_of(g, cell);
    double foreign;
    if (*g->q->compare.a && x->of_baseline) return compare_programs(g, x, s, cell->run, row, e);
    TRY(sit(g, s, row, &foreign, e));
    if (x->of_baseline)
        judge_beside(g, x, row);
    else
        judge_absolute(x, row);
    if (foreign <= g->q->compare.load) return ST_OK;
    row->busy = true;
    row->verdict = VERDICT_INCONCLUSIVE;
    snprintf(row->detail, sizeof row->detail, "other processes used %.0f %% of the cores, more than %.0f %%",
             100 * foreign, 100 * g->q->compare.load);
    return ST_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static enum status add_row(struct gating *g, const struct expectation *x, const struct report_row *cell,
                           struct gate_result *r, struct error *e) {
    double start = time_now_s();
    int none = 0;
    if (r->n == BASELINE_FIGURES)
        return fail(e, ST_USAGE, "%.300s expects more than %d figures of all cells", g->q->plan, BASELINE_FIGURES);
    if (cell->n > GATE_VALUES)
        return fail(e, ST_USAGE, "%.300s: a gate takes at most %d seeds of a cell", g->q->plan, GATE_VALUES);
    struct gate_row *row = &r->rows[r->n++];
    *row = (struct gate_row){.kind = "expect",
                             .compared = true,
                             .sense = x->sense,
                             .value = NAN,
                             .low = NAN,
                             .high = NAN,
                             .bound = x->bound};
    char name[TRACE_TEXT];
    snprintf(name, sizeof name, "%.150s %.240s", cell->run->task, cell->label);
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->figure, sizeof row->figure, "%s", x->figure);
    struct baseline_figure *made = &row->made;
    snprintf(made->cell, sizeof made->cell, "%s", name);
    snprintf(made->figure, sizeof made->figure, "%s", x->figure);
    snprintf(made->numerics, sizeof made->numerics, "%s", cell->run->numerics);
    if (is_speed(x)) {
        TRY(judge_speeds(g, x, cell, row, e));
    } else {
        for (made->n = 0; made->n < cell->n; made->n++) {
            made->seed[made->n] = (int64_t)cell->chosen[made->n]->run.seed;
            made->value[made->n] = figure_of(x->figure, cell->chosen[made->n]);
            none += !isfinite(made->value[made->n]);
        }
        if (x->of_baseline)
            judge_beside(g, x, row);
        else
            judge_absolute(x, row);
        if (none && !*row->detail) snprintf(row->detail, sizeof row->detail, "%d of %d seeds have none", none, made->n);
    }
    if (!*row->detail) snprintf(row->detail, sizeof row->detail, "line %d", x->line);
    describe_values(row);
    row->seconds = time_now_s() - start;
    return ST_OK;
}

static enum status judge_cells(struct gating *g, struct gate_result *r, struct error *e) {
    for (int t = 0; t < g->tables.n; t++)
        for (int k = 0; k < g->tables.list[t].n_rows; k++) {
            const struct report_row *cell = &g->tables.list[t].rows[k];
            struct label task, mixer;
            TRY(label_parse(&task, "task", cell->run->task, e));
            TRY(run_mixer(cell->run, &mixer, e));
            if (signal_received())
                return fail(e, (enum status)(128 + signal_received()), "stopped before every cell was judged");
            for (int i = 0; i < g->n_expected; i++)
                if (expectation_is_for(&g->expected[i], &task, &mixer)) TRY(add_row(g, &g->expected[i], cell, r, e));
        }
    return ST_OK;
}

static bool is_asked(const struct gate_result *r, const struct baseline_figure *x, int n) {
    for (int i = 0; i < n; i++)
        if (!strcmp(r->rows[i].made.cell, x->cell) && !strcmp(r->rows[i].made.figure, x->figure)) return true;
    return false;
}

/* A figure that nobody asks for any more has been lost, or the baseline is to be made anew. */
static void add_lost(const struct baseline *b, struct gate_result *r) {
    int asked = r->n;
    for (const struct baseline_figure *x = b->figures; x < b->figures + b->n_figures; x++) {
        if (is_asked(r, x, asked)) continue;
        struct gate_row *row = &r->rows[r->n++];
        *row = (struct gate_row){.kind = "expect",
                                 .compared = true,
                                 .verdict = VERDICT_REGRESSED,
                                 .value = NAN,
                                 .bound = NAN,
                                 .low = NAN,
                                 .high = NAN};
        snprintf(row->name, sizeof row->name, "%.*s", TRACE_TEXT - 1, x->cell);
        snprintf(row->figure, sizeof row->figure, "%s", x->figure);
        snprintf(row->detail, sizeof row->detail,
                 "the baseline has it and the plan no more; --update takes it out if that is meant");
    }
}

enum status gate_plan(const struct plan_gate *q, struct gate_result *r, struct error *e) {
    struct gating *g = calloc(1, sizeof *g);
    if (!g) return fail(e, ST_MEMORY, "no memory for a plan");
    g->q = q;
    enum status status = make_plan(g, e);
    if (status == ST_OK) status = train(g, e);
    if (status == ST_OK) status = judge_cells(g, r, e);
    if (status == ST_OK && q->baseline) add_lost(q->baseline, r);
    report_tables_free(&g->tables);
    records_free(&g->set);
    plan_free(&g->plan);
    free(g);
    return status;
}

/* --- another baseline --------------------------------------------------------------------------------------------- */

enum status gate_plan_baseline(const struct gate_result *r, struct baseline *b, struct error *e) {
    b->n_figures = 0;
    for (int i = 0; i < r->n; i++) {
        if (r->rows[i].made.n == 0 || is_asked(r, &r->rows[i].made, i)) continue; /* or by two lines */
        if (b->n_figures == BASELINE_FIGURES)
            return fail(e, ST_USAGE, "a baseline has at most %d figures", BASELINE_FIGURES);
        b->figures[b->n_figures++] = r->rows[i].made;
    }
    return ST_OK;
}

const struct gate_row *gate_busy(const struct gate_result *r) {
    int i = 0;
    while (i < r->n && !r->rows[i].busy) i++;
    return i < r->n ? &r->rows[i] : NULL;
}

static void add_change(struct sheet *s, const struct baseline_figure *of, const struct baseline_figure *then,
                       const struct baseline_figure *now) {
    sheet_row(s);
    sheet_text(s, "%s", of->cell);
    sheet_text(s, "%s", of->figure);
    sheet_real(s, "%.6g", then ? stats_mean(then->value, then->n) : NAN);
    sheet_real(s, "%.6g", now ? stats_mean(now->value, now->n) : NAN);
    sheet_int(s, then ? then->n : -1);
    sheet_int(s, now ? now->n : -1);
}

void gate_plan_changes(const struct baseline *before, const struct baseline *after, struct sheet *s) {
    int same = 0;
    sheet_caption(s, "The baseline, before and after");
    sheet_columns(s, "cell|figure|>before|>after|>values before|>values after");
    for (const struct baseline_figure *now = after->figures; now < after->figures + after->n_figures; now++) {
        const struct baseline_figure *then = baseline_figure(before, now->cell, now->figure);
        bool equal = then && then->n == now->n;
        for (int i = 0; i < now->n && equal; i++)
            equal = then->seed[i] == now->seed[i] && then->value[i] == now->value[i];
        same += equal;
        if (!equal) add_change(s, now, then, now);
    }
    for (const struct baseline_figure *then = before->figures; then < before->figures + before->n_figures; then++)
        if (!baseline_figure(after, then->cell, then->figure)) add_change(s, then, then, NULL);
    sheet_note(s, "%d of %d figures are the same", same, after->n_figures);
}
