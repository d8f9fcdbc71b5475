/* paper_cells.c - see paper_cells.h. */
#include "harness/rows/paper_cells.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/rows/row_label.h"
#include "harness/rows/setting.h"
#include "harness/rows/test_lengths.h"
#include "harness/store/logs.h"
#include "harness/store/version.h"
#include "harness/study/row_key.h"

/* --- cells -------------------------------------------------------------------------------------------------------- */

static enum status find_published(struct paper_cells *p, struct paper_cell *cell, const struct paper_spot *spot,
                                  struct error *e) {
    struct label task;
    char word[RECORD_TEXT];
    const char *row;
    paper_word(p, p->plan.uses[spot->use].word, word, sizeof word);
    TRY(label_parse(&task, "task", word, e));
    const char *paper = paper_setting(p, "paper", ""), *source = paper_setting(p, "source", "");
    bool has_word = published_has_task(&p->published, paper, source, word);
    TRY(paper_find_number(p, paper_setup(p, spot), has_word ? word : label_name(&task), spot->length, &cell->published,
                          &row, e));
    if (!isfinite(cell->published.value)) return ST_OK;
    p->has_published = true;
    if (cell->published.unsaid || cell->published.best == (p->protocol == PROTOCOL_BEST_OF_GRID)) return ST_OK;
    cell->other = true;
    unlike_add(cell->unlike, cell->published.best ? "the paper's number is the best of its runs"
                                                  : "the paper's number is no best of its runs");
    return ST_OK;
}

/* Counts the settings that the plan has for a cell: a task, and variants of it in which one option has another
 * value. */
static int count_settings(const struct paper_cells *p, const struct paper_spot *spots, int cell) {
    int n = 0;
    for (int i = 0; i < paper_count_spots(p); i++) {
        bool earlier = spots[i].row * p->n_columns + spots[i].column != cell;
        const char *task = paper_setup(p, &spots[i])->spec.task.name;
        for (int k = 0; k < i && !earlier; k++)
            earlier = spots[k].row * p->n_columns + spots[k].column == cell &&
                      !strcmp(paper_setup(p, &spots[k])->spec.task.name, task);
        n += !earlier;
    }
    return n;
}

/* Adds the id to a list with blanks between the ids. */
static enum status add_id(char **list, const char *id, struct error *e) {
    size_t used = *list ? strlen(*list) : 0, size = used + strlen(id) + 2;
    char *longer = realloc(*list, size);
    if (!longer) return fail(e, ST_MEMORY, "no memory for a table");
    snprintf(longer + used, size - used, "%s%s", used ? " " : "", id);
    *list = longer;
    return ST_OK;
}

/* Counts a planned run in its cell, with its record (NULL: it has none). */
static enum status count_run(struct paper_cell *cell, const struct setup *s, const struct run *run, struct error *e) {
    struct label key;
    cell->planned++;
    if (s->shapes.schedule_steps > cell->of) cell->of = s->shapes.schedule_steps;
    if (!run) return ST_OK;
    TRY(row_key(s->id.text, &key, e));
    cell->sees_future = cell->sees_future || key_sees_future(&key);
    cell->done++;
    cell->failed += run_failed(run);
    cell->other_builds += !build_made(run);
    if (!published_data_fits(run)) {
        cell->other = true;
        unlike_add(cell->unlike, "its data are not the whole released files");
    }
    cell->any_cut_off = cell->any_cut_off || run_cut_off(run);
    if (run->steps >= 0 && (cell->least < 0 || run->steps < cell->least)) cell->least = run->steps;
    if (run->steps > cell->most) cell->most = run->steps;
    return add_id(&cell->run_ids, run->run_id, e);
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* The number of one setting of a cell: of the task, or of one of its variants. */
struct number {
    int cell;
    const char *task;
    struct validation by; /* the validation of the row that gave the number */
    struct length_estimate own;
};

/* Converts the plan's length to positions of test sequences. For images, the length is their side, and it is converted
 * to pixels or patches. 0: not possible. */
static int64_t positions_of(const struct task_shape *shape, int64_t length) {
    int64_t patch = shape->reading.patch > 1 ? shape->reading.patch : 1, side = length / patch;
    if (!shape->height) return length;
    return length % patch ? 0 : side * side;
}

/* Takes the row's number at the spot's length, or for all test sequences. A setting may have several rows (for example
 * a grid of decays). Then the best row counts: by its number if the protocol takes the best of the grid, else by
 * validation. */
static enum status take_row(const struct paper_cells *p, struct number *number, const struct report_row *row,
                            const struct paper_spot *spot, bool first, struct error *e) {
    struct length_estimate own = {row->estimate, row->interval, row->estimate_cut, 0};
    if (spot->length)
        TRY(length_estimate(row, p->protocol, positions_of(&paper_setup(p, spot)->spec.task.shape, spot->length), &own,
                            e));
    struct validation by = row_validation(row);
    if (p->protocol == PROTOCOL_BEST_OF_GRID)
        by = (struct validation){.metric = own.value, .failed = row->n_failed_all == row->n_all};
    if (!first && !validation_is_better(&by, &number->by)) return ST_OK;
    number->by = by;
    number->own = own;
    return ST_OK;
}

static bool holds_run(const struct report_row *row, const char *run_id) {
    for (int i = 0; i < row->n_all; i++)
        if (!strcmp(row->all[i]->run.run_id, run_id)) return true;
    return false;
}

/* Adds the row's number to each cell with one of the row's runs. */
static enum status add_row(struct paper_cells *p, const struct paper_spot *spots, const struct report_row *row,
                           struct number *numbers, int *n, struct error *e) {
    int last = -1;
    for (int i = 0; i < paper_count_spots(p); i++) {
        int cell = spots[i].row * p->n_columns + spots[i].column, k = 0;
        if (cell == last || !holds_run(row, paper_setup(p, &spots[i])->id.run_id)) continue;
        last = cell;
        while (k < *n && (numbers[k].cell != cell || strcmp(numbers[k].task, row->run->task) != 0)) k++;
        bool first = k == *n;
        if (first) numbers[(*n)++] = (struct number){.cell = cell, .task = row->run->task};
        TRY(take_row(p, &numbers[k], row, &spots[i], first, e));
    }
    return ST_OK;
}

/* Sets the number of each cell to the mean over its settings, if all of them have a number. */
static void set_numbers(struct paper_cells *p, const struct number *numbers, int n) {
    for (int c = 0; c < p->n_rows * p->n_columns; c++) {
        struct paper_cell *cell = &p->cells[c];
        double sum = 0;
        int settings = 0;
        for (int k = 0; k < n; k++) {
            const struct length_estimate *own = &numbers[k].own;
            if (numbers[k].cell != c) continue;
            sum += own->value;
            cell->interval = own->interval;
            cell->cut_off = cell->cut_off || own->cut;
            cell->without += own->without;
            settings++;
        }
        if (settings && settings == cell->settings) cell->ours = sum / settings;
        if (settings != 1) cell->interval = (struct interval){NAN, NAN, NAN, INTERVAL_NONE};
    }
}

/* The ids of the plan's runs, the caller's to free; NULL: no memory. */
static const char **plan_ids(const struct plan *plan, struct error *e) {
    const char **ids = calloc((size_t)plan->n + 1, sizeof *ids);
    if (!ids) fail(e, ST_MEMORY, "no memory for a table");
    for (int i = 0; ids && i < plan->n; i++) ids[i] = plan->setups[i]->id.run_id;
    return ids;
}

static enum status compute(struct paper_cells *p, const struct paper_spot *spots, const struct record_set *set,
                           const char *out, struct error *e) {
    struct report_tables tables;
    const char **ids = plan_ids(&p->plan, e);
    struct number *numbers = calloc((size_t)paper_count_spots(p) + 1, sizeof *numbers);
    int n = 0;
    enum status status = ids && numbers ? ST_OK : fail(e, ST_MEMORY, "no memory for a table");
    struct report_filter filter = {.runs = ids, .n_runs = p->plan.n, .protocol = p->protocol};
    if (status == ST_OK) status = report_tables_make(&tables, set, &filter, out, e);
    if (status == ST_OK) {
        for (int i = 0; i < tables.n; i++)
            for (int k = 0; k < tables.list[i].n_rows && status == ST_OK; k++) {
                facts_add(&p->facts, &tables.list[i].rows[k]);
                status = add_row(p, spots, &tables.list[i].rows[k], numbers, &n, e);
            }
        if (status == ST_OK) set_numbers(p, numbers, n);
        p->facts.asked = NULL; /* the plan has chosen the runs, not the user */
        report_tables_free(&tables);
    }
    free(numbers);
    free(ids);
    return status;
}

/* Adds each row's mean over the columns, if the plan says which number of the paper it is compared with. */
static enum status add_overall(struct paper_cells *p, const struct paper_spot *spots, struct error *e) {
    const char *task = paper_setting(p, "overall", NULL), *row;
    struct published_value theirs;
    if (!task || !p->whole) return ST_OK; /* a mean over only some of the tasks cannot be compared */
    p->overall = calloc((size_t)p->n_rows + 1, sizeof *p->overall);
    if (!p->overall) return fail(e, ST_MEMORY, "no memory for a table");
    for (int r = 0; r < p->n_rows; r++) {
        int i = 0;
        double sum = 0;
        for (int c = 0; c < p->n_columns; c++) sum += paper_cell_at(p, r, c)->ours;
        while (spots[i].row != r) i++;
        TRY(paper_find_number(p, paper_setup(p, &spots[i]), task, 0, &theirs, &row, e));
        p->overall[r] = (struct paper_mean){sum / p->n_columns, theirs};
    }
    return ST_OK;
}

/* Finds the first row above the plan's bound in each column of the longest length. */
static enum status add_least(struct paper_cells *p, const struct paper_spot *spots, struct error *e) {
    const char *row;
    int64_t longest = 0;
    if (!isfinite(p->bound)) return ST_OK;
    for (int i = 0; i < p->n_lengths; i++) longest = p->lengths[i] > longest ? p->lengths[i] : longest;
    p->least = calloc((size_t)p->n_columns + 1, sizeof *p->least);
    if (!p->least) return fail(e, ST_MEMORY, "no memory for a table");
    for (int c = 0; c < p->n_columns; c++) {
        struct paper_least found = {.column = c, .row = -1};
        char task[LABEL_TEXT], name[LABEL_TEXT];
        const char *at = task;
        int i = 0;
        while (spots[i].column != c) i++;
        if (spots[i].length != longest) continue;
        paper_word(p, p->plan.uses[spots[i].use].word, task, sizeof task);
        TRY(text_part(&at, ":", name, sizeof name, e));
        TRY(paper_find_number(p, paper_setup(p, &spots[i]), name, PAPER_LEAST, &found.published, &row, e));
        for (int r = 0; r < p->n_rows && found.row < 0; r++) {
            double ours = paper_cell_at(p, r, c)->ours;
            if (ours > p->bound) found.row = r;
            found.not_run += !isfinite(ours);
        }
        p->least[p->n_least++] = found;
    }
    return ST_OK;
}

/* --- from first to last ------------------------------------------------------------------------------------------- */

/* The record of a planned run, or NULL, and the number of its attempts that were set aside. */
struct found_run {
    const struct run *run;
    int earlier;
};

/* Finds the records of the plan's runs, in the order of its setups. */
static enum status find_runs(const struct plan *plan, const struct record_set *set, struct found_run *found,
                             struct error *e) {
    struct filter filter = {0};
    const char **ids = plan_ids(plan, e);
    enum status status = ids ? ST_OK : ST_MEMORY;
    struct report_filter asked = {.runs = ids, .n_runs = plan->n};
    if (status == ST_OK) status = filter_read(&filter, &asked, e);
    for (int i = 0; i < set->n && status == ST_OK; i++) {
        const struct run_record *r = &set->list[i];
        int at = filter_run_rank(&filter, r->run.run_id);
        if (at >= 0 && r->set_aside) found[at].earlier++;
        if (at >= 0 && !r->set_aside && !found[at].run) found[at].run = &r->run;
    }
    for (int i = 0; i < plan->n && status == ST_OK; i++) found[i] = found[filter_run_rank(&filter, ids[i])];
    filter_free(&filter);
    free(ids);
    return status;
}

static enum status fill(struct paper_cells *p, const struct record_set *set, const struct found_run *found,
                        struct paper_spot *spots, const char *out, struct error *e) {
    TRY(paper_place(p, spots, e));
    p->cells = calloc((size_t)p->n_rows * (size_t)p->n_columns + 1, sizeof *p->cells);
    if (!p->cells) return fail(e, ST_MEMORY, "no memory for a table");
    for (int i = 0; i < p->n_rows * p->n_columns; i++)
        p->cells[i] = (struct paper_cell){.row = i / p->n_columns,
                                          .column = i % p->n_columns,
                                          .settings = count_settings(p, spots, i),
                                          .ours = NAN,
                                          .published = PUBLISHED_NONE,
                                          .least = -1,
                                          .most = -1};
    for (int i = 0; i < paper_count_spots(p); i++) {
        struct paper_cell *cell = paper_cell_at(p, spots[i].row, spots[i].column);
        const struct setup *s = paper_setup(p, &spots[i]);
        struct perf_row speed;
        int before = cell->done;
        if (cell->planned == 0) TRY(find_published(p, cell, &spots[i], e));
        if (!p->speed) {
            const struct found_run *own = &found[p->plan.uses[spots[i].use].run];
            cell->earlier += own->earlier;
            TRY(count_run(cell, s, own->run, e));
        } else {
            cell->planned++;
            if (perf_latest(out, s->id.cell_id, NULL, &speed) && speed.tok_per_s > 0) {
                cell->done++;
                cell->ours = speed.tok_per_s;
                cell->disturbed = speed.quiet != 1;
                cell->speed = speed;
                facts_add_speed(&p->facts, &speed);
            }
        }
        if (i >= p->plan.n_uses) continue; /* the same run is counted only at the first length */
        p->n_planned++;
        p->n_done += cell->done - before;
    }
    return p->n_done && !p->speed ? compute(p, spots, set, out, e) : ST_OK;
}

enum status paper_cells_check(const struct request *request, const struct resolved *resolved, struct error *e) {
    struct paper_cells *p = calloc(1, sizeof *p);
    if (!p) return fail(e, ST_MEMORY, "no memory for a table");
    p->request = *request;
    p->resolved = *resolved;
    p->speed = resolved->speed;
    enum status status = paper_read_table(p, e);
    free(p);
    return status;
}

/* Makes the plan. Run ids depend on the data of tasks, so without the data the plan's runs could not be found. */
static enum status make_plan(struct paper_cells *p, const char *out, struct error *e) {
    struct error why;
    enum status status = request_plan(&p->request, &p->plan, &p->resolved, &why);
    if (status == ST_OK) return ST_OK;
    if (status != ST_DATA) return fail(e, status, "%s", why.text);
    return fail(e, status,
                "%.700s; without the data nobody knows which runs the plan has, but `lrnn report --out %.200s` has the "
                "tables of all records there",
                why.text, out);
}

enum status paper_cells_make(struct paper_cells *p, const char *out, struct error *e) {
    struct record_set own = {0};
    struct error why;
    TRY(make_plan(p, out, e));
    p->speed = p->resolved.speed;
    TRY(paper_read_table(p, e));
    if (access(out, F_OK) != 0)
        return fail(e, ST_DATA, "there is no folder %s; `lrnn sweep %s --out FOLDER` makes one", out,
                    p->request.file.name);
    if (!p->set) TRY(report_load(&own, out, e));
    const struct record_set *set = p->set ? p->set : &own;

    /* without the paper's numbers, or the mean that the plan asks for, the table has only ours */
    const char *task = paper_setting(p, "overall", NULL), *paper = paper_setting(p, "paper", NULL);
    if (published_read(&p->published, out, &why) != ST_OK)
        fprintf(stderr, "lrnn: no published numbers beside ours: %s\n", why.text);
    else if (task && paper && !published_has_task(&p->published, paper, paper_setting(p, "source", ""), task))
        fprintf(stderr, "lrnn: %s: overall=%.60s: no number of %.60s is called that; the mean of ours stands alone\n",
                p->request.file.name, task, paper);
    struct paper_spot *spots = calloc((size_t)paper_count_spots(p) + 1, sizeof *spots);
    struct found_run *found = calloc((size_t)p->plan.n + 1, sizeof *found);
    enum status status = spots && found ? ST_OK : fail(e, ST_MEMORY, "no memory for a table");
    if (status == ST_OK) status = find_runs(&p->plan, set, found, e);
    if (status == ST_OK) status = fill(p, set, found, spots, out, e);
    if (status == ST_OK) status = paper_mark_others(p, spots, e);
    if (status == ST_OK) status = add_overall(p, spots, e);
    if (status == ST_OK) status = add_least(p, spots, e);
    for (int i = 0; i < p->n_rows * p->n_columns && status == ST_OK; i++)
        p->cells[i].verdict = paper_judge(&p->cells[i], p->protocol);
    free(found);
    free(spots);
    records_free(&own);
    return status;
}

void paper_cells_free(struct paper_cells *p) {
    plan_free(&p->plan);
    published_free(&p->published);
    free(p->rows);
    free(p->columns);
    for (int i = 0; p->cells && i < p->n_rows * p->n_columns; i++) free(p->cells[i].run_ids);
    free(p->cells);
    free(p->overall);
    free(p->least);
    *p = (struct paper_cells){.n_rows = 0};
}
