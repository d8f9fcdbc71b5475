/* paper_cells.c - see paper_cells.h. */
#include "harness/table/paper_cells.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/rows/load.h"
#include "harness/rows/test_lengths.h"
#include "harness/store/perf_log.h"
#include "harness/store/version.h"
#include "harness/table/paper_verdict.h"

/* --- cells -------------------------------------------------------------------------------------------------------- */

static enum status make_cells(struct paper_cells *p, struct error *e) {
    p->cells = calloc((size_t)p->n_rows * (size_t)p->n_columns + 1, sizeof *p->cells);
    if (!p->cells) return fail(e, ST_MEMORY, "no memory for a table");
    for (int r = 0; r < p->n_rows; r++)
        for (int c = 0; c < p->n_columns; c++)
            *paper_cell_at(p, r, c) = (struct paper_cell){
                .row = r, .column = c, .ours = NAN, .published = PUBLISHED_NONE, .least = -1, .most = -1};
    return ST_OK;
}

static enum status find_published(struct paper_cells *p, const struct published *published, struct paper_cell *cell,
                                  const struct paper_spot *spot, struct error *e) {
    struct label task;
    char word[RECORD_TEXT];
    const char *row;
    paper_word(p, p->plan.uses[spot->use].word, word, sizeof word);
    TRY(label_parse(&task, "task", word, e));
    bool has_word = published_has_task(published, paper_setting(p, "paper", ""), paper_setting(p, "source", ""), word);
    TRY(paper_find_number(p, published, paper_setup(p, spot), has_word ? word : label_name(&task), spot->length,
                          &cell->published, &row, e));
    p->has_published = p->has_published || isfinite(cell->published.value);
    return ST_OK;
}

/* Settings that the plan has for a cell. */
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

/* Counts a planned run, and what its record says. */
static enum status count_run(struct paper_cell *cell, const struct setup *s, const struct run *run, struct error *e) {
    cell->planned++;
    if (s->shapes.schedule_steps > cell->of) cell->of = s->shapes.schedule_steps;
    if (!run) return ST_OK;
    cell->done++;
    cell->failed += run_failed(run);
    cell->other_builds += !build_made(run);
    cell->other = cell->other || !published_data_fits(run);
    cell->any_cut_off = cell->any_cut_off || run_cut_off(run);
    if (run->steps >= 0 && (cell->least < 0 || run->steps < cell->least)) cell->least = run->steps;
    if (run->steps > cell->most) cell->most = run->steps;
    return paper_add_item(&cell->run_ids, " ", run->run_id, e);
}

/* The latest speed of a planned cell. */
static void take_speed(struct paper_cell *cell, const struct setup *s, const char *out) {
    struct perf_row row;
    cell->planned++;
    if (!perf_latest(out, s->id.cell_id, &row) || !(row.tok_per_s > 0)) return;
    cell->done++;
    cell->ours = row.tok_per_s;
    cell->disturbed = row.quiet != 1;
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* A number of one setting of a cell: the task, or one of its changes. */
struct number {
    int cell;
    const char *task;
    double value;
    struct validation by;
    struct interval interval;
    bool cut_off;
    int without;
};

/* Positions of the test sequences that the plan calls by a length: of images of that side the pixels or patches. 0:
 * there are none. */
static int64_t positions_of(const struct task_shape *shape, int64_t length) {
    int64_t patch = shape->reading.patch > 1 ? shape->reading.patch : 1, side = length / patch;
    if (!shape->height) return length;
    return length % patch ? 0 : side * side;
}

/* The row's number at a length, or of all test sequences. */
static enum status number_of_row(const struct paper_cells *p, const struct report_row *row,
                                 const struct paper_spot *spot, struct length_estimate *number, struct error *e) {
    *number = (struct length_estimate){row->estimate, row->interval, row->estimate_cut, 0};
    if (!spot->length) return ST_OK;
    return length_estimate(row, p->protocol, positions_of(&paper_setup(p, spot)->spec.task.shape, spot->length), number,
                           e);
}

/* Of several rows of one setting (a grid of decays) the best: by its number where the protocol takes the best of the
 * grid, else by validation. */
static enum status take_row(const struct paper_cells *p, struct number *number, const struct report_row *row,
                            const struct paper_spot *spot, bool first, struct error *e) {
    struct length_estimate own;
    TRY(number_of_row(p, row, spot, &own, e));
    struct validation by =
        p->protocol == PROTOCOL_BEST_OF_GRID ? (struct validation){own.value, 0} : row_validation(row);
    if (!first && !validation_is_better(&by, &number->by)) return ST_OK;
    number->by = by;
    number->value = own.value;
    number->interval = own.interval;
    number->cut_off = own.cut;
    number->without = own.without;
    return ST_OK;
}

static bool holds_run(const struct report_row *row, const char *run_id) {
    for (int i = 0; i < row->n_all; i++)
        if (!strcmp(row->all[i]->run.run_id, run_id)) return true;
    return false;
}

/* Adds the row's number to each cell that has one of its runs. */
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

static void set_numbers(struct paper_cells *p, const struct number *numbers, int n) {
    for (int c = 0; c < p->n_rows * p->n_columns; c++) {
        struct paper_cell *cell = &p->cells[c];
        double sum = 0;
        int settings = 0;
        for (int k = 0; k < n; k++) {
            if (numbers[k].cell != c) continue;
            sum += numbers[k].value;
            cell->interval = numbers[k].interval;
            cell->cut_off = cell->cut_off || numbers[k].cut_off;
            cell->without += numbers[k].without;
            settings++;
        }
        if (settings && settings == cell->settings) cell->ours = sum / settings;
        if (settings != 1) cell->interval = (struct interval){NAN, NAN, NAN, INTERVAL_NONE};
    }
}

static enum status compute(struct paper_cells *p, const struct paper_spot *spots, const struct record_set *set,
                           const char *out, struct error *e) {
    struct report_tables tables;
    const char **ids = calloc((size_t)p->plan.n + 1, sizeof *ids);
    struct number *numbers = calloc((size_t)paper_count_spots(p) + 1, sizeof *numbers);
    int n = 0;
    enum status status = ids && numbers ? ST_OK : fail(e, ST_MEMORY, "no memory for a table");
    for (int i = 0; i < p->plan.n && status == ST_OK; i++) ids[i] = p->plan.setups[i]->id.run_id;
    struct report_filter filter = {.runs = ids, .n_runs = p->plan.n, .protocol = p->protocol};
    if (status == ST_OK) status = report_tables_make(&tables, set, &filter, out, e);
    if (status == ST_OK) {
        for (int i = 0; i < tables.n; i++)
            for (int k = 0; k < tables.list[i].n_rows && status == ST_OK; k++)
                status = add_row(p, spots, &tables.list[i].rows[k], numbers, &n, e);
        if (status == ST_OK) set_numbers(p, numbers, n);
        report_tables_free(&tables);
    }
    free(numbers);
    free(ids);
    return status;
}

/* The mean over the columns, where the plan names the paper's row of it. */
static enum status add_overall(struct paper_cells *p, const struct published *published, const struct paper_spot *spots,
                               struct error *e) {
    const char *task = paper_setting(p, "overall", NULL), *row;
    struct published_value theirs;
    if (!task || *p->request.tasks) return ST_OK; /* a part of the tasks has another mean */
    p->overall = calloc((size_t)p->n_rows + 1, sizeof *p->overall);
    if (!p->overall) return fail(e, ST_MEMORY, "no memory for a table");
    for (int r = 0; r < p->n_rows; r++) {
        int i = 0;
        double sum = 0;
        for (int c = 0; c < p->n_columns; c++) sum += paper_cell_at(p, r, c)->ours;
        while (spots[i].row != r) i++;
        TRY(paper_find_number(p, published, paper_setup(p, &spots[i]), task, 0, &theirs, &row, e));
        p->overall[r] = (struct paper_mean){sum / p->n_columns, theirs.value};
    }
    return ST_OK;
}

/* --- from first to last ------------------------------------------------------------------------------------------- */

/* The run's record, or NULL; adds the number of attempts at it that were set aside. */
static const struct run *find_run(const struct record_set *set, const char *run_id, int *earlier) {
    const struct run *found = NULL;
    for (int i = 0; i < set->n; i++) {
        const struct run_record *r = &set->list[i];
        if (strcmp(r->run.run_id, run_id) != 0) continue;
        if (r->set_aside)
            ++*earlier;
        else if (!found)
            found = &r->run;
    }
    return found;
}

static enum status fill(struct paper_cells *p, const struct published *published, const struct record_set *set,
                        struct paper_spot *spots, const char *out, struct error *e) {
    TRY(paper_place(p, published, spots, e));
    TRY(make_cells(p, e));
    for (int c = 0; c < p->n_rows * p->n_columns; c++) p->cells[c].settings = count_settings(p, spots, c);
    for (int i = 0; i < paper_count_spots(p); i++) {
        struct paper_cell *cell = paper_cell_at(p, spots[i].row, spots[i].column);
        int before = cell->done;
        if (cell->planned == 0) TRY(find_published(p, published, cell, &spots[i], e));
        if (p->speed)
            take_speed(cell, paper_setup(p, &spots[i]), out);
        else
            TRY(count_run(cell, paper_setup(p, &spots[i]),
                          find_run(set, paper_setup(p, &spots[i])->id.run_id, &cell->earlier), e));
        if (i >= p->plan.n_uses) continue; /* the same runs at another length */
        p->n_planned++;
        p->n_done += cell->done - before;
    }
    return p->n_done && !p->speed ? compute(p, spots, set, out, e) : ST_OK;
}

/* What the plan says of its table. */
static enum status read_table(struct paper_cells *p, struct error *e) {
    TRY(paper_read_lengths(p, e));
    TRY(paper_check_keys(p, e));
    TRY(paper_check_differences(p, e));
    return paper_protocol(&p->request, p->resolved.profile, &p->protocol, e);
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
    const char *task = paper_setting(p, "overall", NULL), *paper = paper_setting(p, "paper", NULL),
               *name = p->request.file.name;
    if (published_read(published, out, &why) != ST_OK)
        fprintf(stderr, "lrnn: no published numbers beside ours: %s\n", why.text);
    else if (task && paper && !published_has_task(published, paper, paper_setting(p, "source", ""), task))
        fprintf(stderr, "lrnn: %s: overall=%.60s: no number of %.60s is called that; the mean of ours stands alone\n",
                name, task, paper);
}

/* Which runs a plan has follows from the data of its tasks, the sizes and the content that a run's id is made of. */
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
    struct published published = {0};
    struct record_set set = {0};
    TRY(make_plan(p, out, e));
    p->speed = p->resolved.speed;
    TRY(read_table(p, e));
    if (access(out, F_OK) != 0)
        return fail(e, ST_DATA, "there is no folder %s; `lrnn sweep %s --out FOLDER` makes one", out,
                    p->request.file.name);
    TRY(report_load(&set, out, e));
    read_published(p, out, &published);
    struct paper_spot *spots = calloc((size_t)paper_count_spots(p) + 1, sizeof *spots);
    enum status status = spots ? ST_OK : fail(e, ST_MEMORY, "no memory for a table");
    if (status == ST_OK) status = fill(p, &published, &set, spots, out, e);
    if (status == ST_OK) status = paper_mark_others(p, spots, e);
    if (status == ST_OK) status = paper_mark_differences(p, spots, e);
    if (status == ST_OK) status = add_overall(p, &published, spots, e);
    for (int i = 0; i < p->n_rows * p->n_columns && status == ST_OK; i++)
        p->cells[i].verdict = paper_judge(&p->cells[i], p->protocol);
    free(spots);
    published_free(&published);
    records_free(&set);
    return status;
}

void paper_cells_free(struct paper_cells *p) {
    plan_free(&p->plan);
    free(p->rows);
    free(p->columns);
    for (int i = 0; p->cells && i < p->n_rows * p->n_columns; i++) free(p->cells[i].run_ids);
    free(p->cells);
    free(p->overall);
    *p = (struct paper_cells){.n_rows = 0};
}
