/* paper_cells.c - see paper_cells.h. */
#include "harness/sweep/paper_cells.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/plan/row_key.h"
#include "harness/rows/load.h"
#include "harness/rows/test_lengths.h"
#include "harness/store/perf_log.h"
#include "harness/store/version.h"

const char *const paper_verdict_names[] = {"-", "not run", "cut off", "unfinished", "within", "above", "below"};

/* --- labels ------------------------------------------------------------------------------------------------------- */

static const char *setting(const struct paper_cells *p, const char *key, const char *fallback) {
    const char *value = plan_file_get(&p->request.file, p->resolved.profile, key);
    return value ? value : fallback;
}

static void word_of(const struct paper_cells *p, int word, char *text, size_t size) {
    const char *at = p->resolved.tasks;
    text[0] = 0;
    for (int i = 0; i <= word; i++) {
        at += strspn(at, " ");
        if (text_part(&at, " ", text, size, NULL) != ST_OK) return;
    }
}

static enum status mixer_of(const struct setup *s, struct label *mixer, struct error *e) {
    return label_of(mixer, s->asked.model->name, s->asked.model->options, s->asked.inst, 0, e);
}

/* The lengths of the test sequences that tell columns apart: "192,384". */
static enum status read_lengths(struct paper_cells *p, struct error *e) {
    const char *list = setting(p, "lengths", NULL);
    p->n_lengths = 1;
    if (!list) return ST_OK;
    if (p->speed)
        return fail(e, ST_USAGE, "%s: lengths=%.60s, but speed is that of training; leave the line out",
                    p->request.file.name, list);
    const char *at = list;
    for (int i = 0;; i++, at++) {
        char number[32];
        if (i == PAPER_MOST_LENGTHS || text_part(&at, ",", number, sizeof number, NULL) != ST_OK ||
            !parse_int64(number, &p->lengths[i]) || p->lengths[i] < 1)
            return fail(e, ST_USAGE, "%s: lengths=%.60s is not a list of at most %d whole numbers, such as 192,384",
                        p->request.file.name, list, PAPER_MOST_LENGTHS);
        p->n_lengths = i + 1;
        if (!*at) return ST_OK;
    }
}

/* "acc", or at a length "acc_384". */
static void name_metric(const struct setup *s, int64_t length, char *text, size_t size) {
    if (length)
        snprintf(text, size, "acc_%" PRId64, length);
    else
        snprintf(text, size, "%s", metric_names[s->task.shape.metric]);
}

/* The number of a task, of any where it is NULL, and of a run's model in the plan's table; *row as the paper says. */
static enum status find_number(const struct paper_cells *p, const struct published *published, const struct setup *s,
                               const char *task, int64_t length, struct published_value *value, const char **row,
                               struct error *e) {
    struct label mixer, flags;
    char metric[64];
    TRY(mixer_of(s, &mixer, e));
    TRY(row_key(s->identity, &flags, e));
    name_metric(s, length, metric, sizeof metric);
    *value = published_of_table(published, setting(p, "paper", ""), setting(p, "source", ""), task, metric, &mixer,
                                &flags, row);
    return ST_OK;
}

/* The value that a run has for a key of `rows` or `columns`: "" where its model or task lacks the option. */
static enum status value_of(const struct paper_cells *p, const struct setup *s, int word, const char *key, char *text,
                            size_t size, struct error *e) {
    struct label l;
    const struct option *o = row_key_flag(key);
    text[0] = 0;
    if (!strcmp(key, "task")) {
        word_of(p, word, text, size);
    } else if (!strncmp(key, "task.", 5)) {
        TRY(label_of(&l, "task", s->task.task->options, s->task.inst, 0, e));
        if (label_get(&l, key + 5)) snprintf(text, size, "%s", label_get(&l, key + 5));
    } else if (!strncmp(key, "model.", 6)) {
        TRY(mixer_of(s, &l, e));
        if (label_get(&l, key + 6)) snprintf(text, size, "%s", label_get(&l, key + 6));
    } else if (o) {
        option_format_value(o, &s->config, text, size);
    } else {
        return fail(e, ST_USAGE, "%s: '%.60s' is no key of rows and columns", p->request.file.name, key);
    }
    return ST_OK;
}

/* The mixer without an option that the columns tell apart. */
static enum status short_mixer(const struct setup *s, const char *columns, char *text, size_t size, struct error *e) {
    struct label l;
    TRY(mixer_of(s, &l, e));
    TRY(label_shorten(&l, s->asked.model->options, OPT_ORDER, e));
    if (!strncmp(columns, "model.", 6)) label_remove(&l, columns + 6);
    return label_format(&l, text, size, e);
}

/* What the paper calls the model, or its label; then " key=value" of the other keys of `rows`. */
static enum status name_row(const struct paper_cells *p, const struct published *published, const struct setup *s,
                            int word, char *text, size_t size, struct error *e) {
    const char *keys = setting(p, "rows", "model"), *row = "";
    char first[LABEL_TEXT];
    struct published_value number;
    bool whole = !strncmp(keys, "model", 5) && (keys[5] == 0 || keys[5] == ' ');
    if (whole) TRY(find_number(p, published, s, NULL, 0, &number, &row, e));
    TRY(whole ? short_mixer(s, setting(p, "columns", "task"), first, sizeof first, e)
              : text_copy(s->asked.model->name, first, sizeof first, e));
    TRY(text_copy(*row ? row : first, text, size, e));
    for (const char *at = keys; *at; at += strspn(at, " ")) {
        char key[128], value[RECORD_TEXT];
        TRY(text_part(&at, " ", key, sizeof key, e));
        if (!strcmp(key, "model")) continue;
        TRY(value_of(p, s, word, key, value, sizeof value, e));
        const char *dot = strrchr(key, '.');
        size_t used = strlen(text);
        int more = *value ? snprintf(text + used, size - used, " %s=%s", dot ? dot + 1 : key, value) : 0;
        if (more < 0 || used + (size_t)more >= size)
            return fail(e, ST_USAGE, "%s: a row's name is longer than %zu characters", p->request.file.name, size - 1);
    }
    return ST_OK;
}

/* Index of the text in a list, which gets it if it lacks it; -1 without memory. */
static int find_or_add(char (**list)[RECORD_TEXT], int *n, const char *text) {
    for (int i = 0; i < *n; i++)
        if (!strcmp((*list)[i], text)) return i;
    char(*longer)[RECORD_TEXT] = realloc(*list, (size_t)(*n + 1) * sizeof *longer);
    if (!longer) return -1;
    *list = longer;
    snprintf(longer[*n], RECORD_TEXT, "%s", text);
    return (*n)++;
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

/* Where each use of the plan stands, at each of the lengths: first all uses at the first of them. */
struct spot {
    int row, column, use;
    int64_t length; /* as the plan says it; 0: all test sequences together */
};

static const struct setup *setup_of(const struct paper_cells *p, const struct spot *spot) {
    return p->plan.setups[p->plan.uses[spot->use].run];
}

static int count_spots(const struct paper_cells *p) {
    return p->plan.n_uses * p->n_lengths;
}

static enum status place(struct paper_cells *p, const struct published *published, struct spot *spot, struct error *e) {
    char row[RECORD_TEXT], column[RECORD_TEXT];
    const struct setup *s = setup_of(p, spot);
    int word = p->plan.uses[spot->use].word;
    TRY(name_row(p, published, s, word, row, sizeof row, e));
    TRY(value_of(p, s, word, setting(p, "columns", "task"), column, sizeof column, e));
    size_t used = strlen(column), room = sizeof column - used;
    if (spot->length && (size_t)snprintf(column + used, room, " at %" PRId64, spot->length) >= room)
        return fail(e, ST_USAGE, "%s: a column's name is longer than %zu characters", p->request.file.name,
                    sizeof column - 1);
    spot->row = find_or_add(&p->rows, &p->n_rows, row);
    spot->column = find_or_add(&p->columns, &p->n_columns, column);
    return spot->row < 0 || spot->column < 0 ? fail(e, ST_MEMORY, "no memory for a table") : ST_OK;
}

static enum status place_uses(struct paper_cells *p, const struct published *published, struct spot *spots,
                              struct error *e) {
    for (int i = 0; i < count_spots(p); i++) {
        spots[i].use = i % p->plan.n_uses;
        spots[i].length = p->lengths[i / p->plan.n_uses];
        TRY(place(p, published, &spots[i], e));
    }
    return ST_OK;
}

static struct paper_cell *cell_at(struct paper_cells *p, int row, int column) {
    return &p->cells[row * p->n_columns + column];
}

static enum status make_cells(struct paper_cells *p, struct error *e) {
    p->cells = calloc((size_t)p->n_rows * (size_t)p->n_columns + 1, sizeof *p->cells);
    if (!p->cells) return fail(e, ST_MEMORY, "no memory for a table");
    for (int r = 0; r < p->n_rows; r++)
        for (int c = 0; c < p->n_columns; c++)
            *cell_at(p, r, c) = (struct paper_cell){
                .row = r, .column = c, .ours = NAN, .published = {NAN, NAN, "", 0}, .least = -1, .most = -1};
    return ST_OK;
}

static enum status find_published(struct paper_cells *p, const struct published *published, struct paper_cell *cell,
                                  const struct spot *spot, struct error *e) {
    struct label task;
    char word[RECORD_TEXT];
    const char *row;
    word_of(p, p->plan.uses[spot->use].word, word, sizeof word);
    TRY(label_parse(&task, "task", word, e));
    bool has_word = published_has_task(published, setting(p, "paper", ""), setting(p, "source", ""), word);
    TRY(find_number(p, published, setup_of(p, spot), has_word ? word : label_name(&task), spot->length,
                    &cell->published, &row, e));
    p->has_published = p->has_published || isfinite(cell->published.value);
    return ST_OK;
}

/* Adds an item to a list, which begins as NULL. */
static enum status add_item(char **list, const char *separator, const char *item, struct error *e) {
    size_t used = *list ? strlen(*list) : 0, size = used + strlen(separator) + strlen(item) + 1;
    char *longer = realloc(*list, size);
    if (!longer) return fail(e, ST_MEMORY, "no memory for a table");
    snprintf(longer + used, size - used, "%s%s", used ? separator : "", item);
    *list = longer;
    return ST_OK;
}

/* Counts a planned run, and what its record says. */
static enum status count_run(struct paper_cell *cell, const struct run *run, struct error *e) {
    cell->planned++;
    if (!run) return ST_OK;
    cell->done++;
    cell->failed += run_failed(run);
    cell->other_builds += !build_made(run);
    cell->any_cut_off = cell->any_cut_off || run_cut_off(run);
    if (run->steps >= 0 && (cell->least < 0 || run->steps < cell->least)) cell->least = run->steps;
    if (run->steps > cell->most) cell->most = run->steps;
    if (run->max_steps > cell->of) cell->of = run->max_steps;
    return add_item(&cell->run_ids, " ", run->run_id, e);
}

/* The latest speed of a planned cell. */
static void take_speed(struct paper_cell *cell, const struct setup *s, const char *out) {
    struct perf_row row;
    cell->planned++;
    if (!perf_latest(out, s->cell_id, &row) || !(row.tok_per_s > 0)) return;
    cell->done++;
    cell->ours = row.tok_per_s;
    cell->disturbed = row.quiet != 1;
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* A number of one setting of a cell: the task, or one of its changes. */
struct number {
    int cell;
    const char *task;
    double value, validation;
    struct interval interval;
    bool cut_off;
};

static double mean_validation(const struct report_row *row) {
    double sum = 0;
    for (int i = 0; i < row->n; i++) sum += run_val_metric(row->chosen[i]);
    return sum / row->n;
}

/* Positions of the test sequences that the plan calls by a length: of images of that side the pixels or patches. 0:
 * there are none. */
static int64_t positions_of(const struct task_shape *shape, int64_t length) {
    int64_t patch = shape->patch > 1 ? shape->patch : 1, side = length / patch;
    if (!shape->height) return length;
    return length % patch ? 0 : side * side;
}

/* The row's number at a length, or of all test sequences. */
static enum status number_of_row(const struct paper_cells *p, const struct report_row *row, const struct spot *spot,
                                 struct length_estimate *number, struct error *e) {
    *number = (struct length_estimate){row->estimate, row->interval, row->estimate_cut};
    if (!spot->length) return ST_OK;
    return length_estimate(row, p->protocol, positions_of(&setup_of(p, spot)->task.shape, spot->length), number, e);
}

/* Of several rows of one setting (a grid of decays) the best: by its number where the protocol takes the best of the
 * grid, else by validation. */
static enum status take_row(const struct paper_cells *p, struct number *number, const struct report_row *row,
                            const struct spot *spot, bool first, struct error *e) {
    struct length_estimate own;
    TRY(number_of_row(p, row, spot, &own, e));
    double by = p->protocol == PROTOCOL_BEST_OF_GRID ? own.value : mean_validation(row);
    if (!first && !(by > number->validation)) return ST_OK;
    number->validation = by;
    number->value = own.value;
    number->interval = own.interval;
    number->cut_off = own.cut;
    return ST_OK;
}

static bool holds_run(const struct report_row *row, const char *run_id) {
    for (int i = 0; i < row->n_all; i++)
        if (!strcmp(row->all[i]->run.run_id, run_id)) return true;
    return false;
}

/* Adds the row's number to each cell that has one of its runs. */
static enum status add_row(struct paper_cells *p, const struct spot *spots, const struct report_row *row,
                           struct number *numbers, int *n, struct error *e) {
    int last = -1;
    for (int i = 0; i < count_spots(p); i++) {
        int cell = spots[i].row * p->n_columns + spots[i].column, k = 0;
        if (cell == last || !holds_run(row, setup_of(p, &spots[i])->run_id)) continue;
        last = cell;
        while (k < *n && (numbers[k].cell != cell || strcmp(numbers[k].task, row->run->task) != 0)) k++;
        bool first = k == *n;
        if (first) numbers[(*n)++] = (struct number){.cell = cell, .task = row->run->task};
        TRY(take_row(p, &numbers[k], row, &spots[i], first, e));
    }
    return ST_OK;
}

/* Settings that the plan has for a cell. */
static int count_settings(const struct paper_cells *p, const struct spot *spots, int cell) {
    int n = 0;
    for (int i = 0; i < count_spots(p); i++) {
        bool earlier = spots[i].row * p->n_columns + spots[i].column != cell;
        const char *task = setup_of(p, &spots[i])->task.name;
        for (int k = 0; k < i && !earlier; k++)
            earlier = spots[k].row * p->n_columns + spots[k].column == cell &&
                      !strcmp(setup_of(p, &spots[k])->task.name, task);
        n += !earlier;
    }
    return n;
}

static void set_numbers(struct paper_cells *p, const struct spot *spots, const struct number *numbers, int n) {
    for (int c = 0; c < p->n_rows * p->n_columns; c++) {
        struct paper_cell *cell = &p->cells[c];
        double sum = 0;
        int settings = 0;
        for (int k = 0; k < n; k++) {
            if (numbers[k].cell != c) continue;
            sum += numbers[k].value;
            cell->interval = numbers[k].interval;
            cell->cut_off = cell->cut_off || numbers[k].cut_off;
            settings++;
        }
        if (settings && settings == count_settings(p, spots, c)) cell->ours = sum / settings;
        if (settings != 1) cell->interval = (struct interval){NAN, NAN, NAN, INTERVAL_NONE};
    }
}

static enum status compute(struct paper_cells *p, const struct spot *spots, const struct record_set *set,
                           const char *out, struct error *e) {
    struct report_tables tables;
    const char **ids = calloc((size_t)p->plan.n + 1, sizeof *ids);
    struct number *numbers = calloc((size_t)count_spots(p) + 1, sizeof *numbers);
    int n = 0;
    enum status status = ids && numbers ? ST_OK : fail(e, ST_MEMORY, "no memory for a table");
    for (int i = 0; i < p->plan.n && status == ST_OK; i++) ids[i] = p->plan.setups[i]->run_id;
    struct report_filter filter = {.runs = ids, .n_runs = p->plan.n, .protocol = p->protocol};
    if (status == ST_OK) status = report_tables_make(&tables, set, &filter, out, e);
    if (status == ST_OK) {
        for (int i = 0; i < tables.n; i++)
            for (int k = 0; k < tables.list[i].n_rows && status == ST_OK; k++)
                status = add_row(p, spots, &tables.list[i].rows[k], numbers, &n, e);
        if (status == ST_OK) set_numbers(p, spots, numbers, n);
        report_tables_free(&tables);
    }
    free(numbers);
    free(ids);
    return status;
}

/* --- verdicts ----------------------------------------------------------------------------------------------------- */

bool paper_cell_is_other(const struct paper_cell *c) {
    return c->other || c->differs;
}

static enum paper_verdict judge(const struct paper_cell *c, enum report_protocol protocol) {
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
static enum status mark_others(struct paper_cells *p, const struct spot *spots, struct error *e) {
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
        status = key_of(setup_of(p, &spots[i]), key, e);
        for (int k = 0; k < plan.n && !found; k++) found = !strcmp(keys[k], key);
        for (int k = i; k < count_spots(p) && !found; k += p->plan.n_uses)
            cell_at(p, spots[k].row, spots[k].column)->other = true;
    }
    free(keys);
    plan_free(&plan);
    free(r);
    return status;
}

/* Says of each cell what the plan says of its row. */
static enum status mark_differences(struct paper_cells *p, const struct spot *spots, struct error *e) {
    const char *model, *text;
    for (int k = 0; (text = plan_file_differs(&p->request.file, p->resolved.profile, k, &model)) != NULL; k++)
        for (int i = 0; i < count_spots(p); i++) {
            struct paper_cell *cell = cell_at(p, spots[i].row, spots[i].column);
            struct label mixer, flags;
            if (cell->differs && strstr(cell->differs, text)) continue;
            TRY(mixer_of(setup_of(p, &spots[i]), &mixer, e));
            TRY(row_key(setup_of(p, &spots[i])->identity, &flags, e));
            if (*model && !published_model_fits(model, &mixer, &flags)) continue;
            TRY(add_item(&cell->differs, "; ", text, e));
        }
    return ST_OK;
}

/* The mean over the columns, where the plan names the paper's row of it. */
static enum status add_overall(struct paper_cells *p, const struct published *published, const struct spot *spots,
                               struct error *e) {
    const char *task = setting(p, "overall", NULL), *row;
    struct published_value theirs;
    if (!task || *p->request.tasks) return ST_OK; /* a part of the tasks has another mean */
    p->overall = calloc(2 * (size_t)p->n_rows + 1, sizeof *p->overall);
    if (!p->overall) return fail(e, ST_MEMORY, "no memory for a table");
    for (int r = 0; r < p->n_rows; r++) {
        int i = 0;
        double sum = 0;
        for (int c = 0; c < p->n_columns; c++) sum += cell_at(p, r, c)->ours;
        while (spots[i].row != r) i++;
        p->overall[2 * r] = sum / p->n_columns;
        TRY(find_number(p, published, setup_of(p, &spots[i]), task, 0, &theirs, &row, e));
        p->overall[2 * r + 1] = theirs.value;
    }
    return ST_OK;
}

/* --- from first to last ------------------------------------------------------------------------------------------- */

static const struct run *find_run(const struct record_set *set, const char *run_id) {
    for (int i = 0; i < set->n; i++)
        if (!set->list[i].set_aside && !strcmp(set->list[i].run.run_id, run_id)) return &set->list[i].run;
    return NULL;
}

static enum status fill(struct paper_cells *p, const struct published *published, const struct record_set *set,
                        struct spot *spots, const char *out, struct error *e) {
    TRY(place_uses(p, published, spots, e));
    TRY(make_cells(p, e));
    for (int i = 0; i < count_spots(p); i++) {
        struct paper_cell *cell = cell_at(p, spots[i].row, spots[i].column);
        int before = cell->done;
        if (cell->planned == 0) TRY(find_published(p, published, cell, &spots[i], e));
        if (p->speed)
            take_speed(cell, setup_of(p, &spots[i]), out);
        else
            TRY(count_run(cell, find_run(set, setup_of(p, &spots[i])->run_id), e));
        if (i >= p->plan.n_uses) continue; /* the same runs at another length */
        p->n_planned++;
        p->n_done += cell->done - before;
    }
    return p->n_done && !p->speed ? compute(p, spots, set, out, e) : ST_OK;
}

/* A key of `rows` or `columns`: the task, an option of some task or model, or a flag; of rows the model as well. */
static enum status check_key(const struct paper_cells *p, const char *line, const char *key, struct error *e) {
    bool rows = !strcmp(line, "rows");
    if (!strcmp(key, "task") || (rows && !strcmp(key, "model")) || row_key_option(key)) return ST_OK;
    return fail(
        e, ST_USAGE,
        "%s: '%.60s' of its %s is neither %stask, an option of a task or model (task.OPTION, model.OPTION), nor "
        "a flag",
        p->request.file.name, key, line, rows ? "model, " : "");
}

/* Rows may be told apart by several keys, columns by one. */
static enum status check_keys(const struct paper_cells *p, struct error *e) {
    const char *columns = setting(p, "columns", "task");
    for (const char *at = setting(p, "rows", "model"); *at; at += strspn(at, " ")) {
        char key[128];
        TRY(text_part(&at, " ", key, sizeof key, e));
        TRY(check_key(p, "rows", key, e));
    }
    if (!strchr(columns, ' ')) return check_key(p, "columns", columns, e);
    return fail(e, ST_USAGE, "%s: columns=%.60s: one key tells columns apart; the others may be of rows",
                p->request.file.name, columns);
}

/* What the plan says of its table. */
static enum status read_table(struct paper_cells *p, struct error *e) {
    struct error why;
    TRY(read_lengths(p, e));
    TRY(check_keys(p, e));
    if (protocol_find(setting(p, "protocol", "val-mean"), &p->protocol, &why) == ST_OK) return ST_OK;
    return fail(e, why.status, "%s: %.800s", p->request.file.name, why.text);
}

enum status paper_cells_check(const struct request *request, const struct resolved *resolved, struct error *e) {
    struct paper_cells *p = calloc(1, sizeof *p);
    if (!p) return fail(e, ST_MEMORY, "no memory for a table");
    p->request = *request;
    p->resolved = *resolved;
    p->speed = resolved->speed;
    enum status status = read_table(p, e);
    free(p);
    return status;
}

/* The paper's numbers; without them, or without the mean that the plan asks for, ours stand alone, which is said. */
static void read_published(const struct paper_cells *p, const char *out, struct published *published) {
    struct error why;
    const char *task = setting(p, "overall", NULL), *paper = setting(p, "paper", NULL), *name = p->request.file.name;
    if (published_read(published, out, &why) != ST_OK)
        fprintf(stderr, "lrnn: no published numbers beside ours: %s\n", why.text);
    else if (task && paper && !published_has_task(published, paper, setting(p, "source", ""), task))
        fprintf(stderr, "lrnn: %s: overall=%.60s: no number of %.60s is called that; the mean of ours stands alone\n",
                name, task, paper);
}

enum status paper_cells_make(struct paper_cells *p, const char *out, struct error *e) {
    struct published published = {0};
    struct record_set set = {0};
    TRY(request_plan(&p->request, &p->plan, &p->resolved, e));
    p->speed = p->resolved.speed;
    TRY(read_table(p, e));
    if (access(out, F_OK) != 0)
        return fail(e, ST_DATA, "there is no folder %s; `lrnn sweep %s --out FOLDER` makes one", out,
                    p->request.file.name);
    TRY(report_load(&set, out, e));
    read_published(p, out, &published);
    struct spot *spots = calloc((size_t)count_spots(p) + 1, sizeof *spots);
    enum status status = spots ? ST_OK : fail(e, ST_MEMORY, "no memory for a table");
    if (status == ST_OK) status = fill(p, &published, &set, spots, out, e);
    if (status == ST_OK) status = mark_others(p, spots, e);
    if (status == ST_OK) status = mark_differences(p, spots, e);
    if (status == ST_OK) status = add_overall(p, &published, spots, e);
    for (int i = 0; i < p->n_rows * p->n_columns && status == ST_OK; i++)
        p->cells[i].verdict = judge(&p->cells[i], p->protocol);
    free(spots);
    published_free(&published);
    records_free(&set);
    return status;
}

void paper_cells_free(struct paper_cells *p) {
    plan_free(&p->plan);
    free(p->rows);
    free(p->columns);
    for (int i = 0; p->cells && i < p->n_rows * p->n_columns; i++) {
        free(p->cells[i].run_ids);
        free(p->cells[i].differs);
    }
    free(p->cells);
    free(p->overall);
    *p = (struct paper_cells){.n_rows = 0};
}
