/* rows.c - makes rows of run records and computes their numbers; see rows.h. */
#include "harness/rows/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/profile.h"
#include "harness/study/row_key.h"
#include "harness/rows/row_label.h"
#include "harness/rows/setting.h"
#include "harness/store/logs.h"
#include "kernels/lib/gemm.h"
#include "models/model.h"
#include "tasks/task.h"

bool run_failed(const struct run *run) {
    return run->status != RUN_OK || !isfinite(run->metric == METRIC_MACRO_ACC ? run->test_macro_acc : run->test_acc);
}

bool run_not_finite(const struct run *run) {
    return run->status == RUN_NAN || run->status == RUN_DIVERGED || run->test_nonfinite > 0;
}

const char *run_metric_name(const struct run *run) {
    return run->metric == METRIC_MACRO_ACC ? "macro accuracy" : "token accuracy";
}

double run_point_metric(const struct run *run, const struct curve_point *p) {
    return run->metric == METRIC_MACRO_ACC ? p->macro_acc : p->acc;
}

bool run_cut_off(const struct run *run) {
    bool of_itself = !strcmp(run->stop_reason, "target") || !strcmp(run->stop_reason, "patience");
    return !of_itself && run->status == RUN_OK && run->steps < run->max_steps;
}

bool run_has_other_products(const struct run *run) {
    const char *then = run_products(run), *now = gemm_library();
    size_t word = strcspn(now, " ");
    if (!*then || strcmp(run->backend, "cpu") != 0 || REAL_IS_DOUBLE != !strcmp(run->dtype, "fp64")) return false;
    return strcspn(then, " ") != word || strncmp(then, now, word) != 0;
}

double run_chance(const struct run *run) {
    return isfinite(run->chance) ? run->chance : 0;
}

/* Returns the primary metric on the validation split. For a failed run it is the chance level. */
static double run_val_metric(const struct run *run) {
    return run_failed(run) || !isfinite(run->val_metric) ? run_chance(run) : run->val_metric;
}

double run_test_metric(const struct run *run) {
    if (run_failed(run)) return run_chance(run);
    return run->metric == METRIC_MACRO_ACC ? run->test_macro_acc : run->test_acc;
}

double run_step_epochs(const struct run *run) {
    return run->batch < 1 || run->n_train < 1 ? NAN : 1 / (double)((run->n_train - 1) / run->batch + 1);
}

/* --- gathering ---------------------------------------------------------------------------------------------------- */

static bool profile_makes(const char *name, const struct run *run, const struct label *key) {
    return profile_holds(&(struct profile_question){
        .name = name, .task = run->task, .suite = run->suite, .key = key, .lr = run->lr, .n_train = run->n_train});
}

const char *record_profile(const struct run_record *r) {
    return r->custom ? PROFILE_CUSTOM : r->run.profile;
}

static enum status read_key(const struct run_record *r, struct label *key, struct error *e) {
    struct error why;
    if (row_key(r->identity, key, &why) == ST_OK) return ST_OK;
    return fail(e, ST_DATA, "the identity in the record of run %s cannot be read: %.800s", r->run.run_id, why.text);
}

enum status report_load_sound(struct record_set *set, const char *out, FILE *broken, struct error *e) {
    enum status status = records_load_sound(set, out, broken, e);
    int n = status == ST_OK ? set->n : 0;
    set->n = 0;
    for (int i = 0; status == ST_OK && i < n; i++) {
        const struct run *run = &set->list[i].run;
        struct label key;
        status = read_key(&set->list[i], &key, e);
        if (status == ST_OK) set->list[i].custom = !profile_makes(run->profile, run, &key);
        if (status == ST_OK) set->list[set->n++] = set->list[i];
        if (status == ST_DATA && broken && fprintf(broken, "%s\n", e->text) > 0) status = ST_OK;
    }
    if (status != ST_OK) records_free(set);
    return status;
}

enum status report_load(struct record_set *set, const char *out, struct error *e) {
    return report_load_sound(set, out, NULL, e);
}

static int model_rank(const char *name) {
    const struct model *const *list = model_list();
    int i = 0;
    while (list[i] && strcmp(list[i]->name, name) != 0) i++;
    return i;
}

static int compare(double a, double b) {
    return (a > b) - (a < b);
}

static int by_rate_and_seed(const void *left, const void *right) {
    const struct run *a = &(*(const struct run_record *const *)left)->run;
    const struct run *b = &(*(const struct run_record *const *)right)->run;
    int order = compare(a->lr, b->lr);
    if (order) return order;
    if (a->seed != b->seed) return a->seed < b->seed ? -1 : 1;
    order = strcmp(a->run_id, b->run_id);
    return order ? order : compare((double)a->attempt, (double)b->attempt);
}

/* Orders rows by task (in the order of the filter's list), then by profile, by the mixer's place in the list of models,
 * by number of parameters, and by label. */
static int by_model(const void *left, const void *right) {
    const struct report_row *a = left, *b = right;
    int order = a->rank - b->rank;
    if (!order) order = strcmp(a->run->task, b->run->task);
    if (!order) order = strcmp(a->profile, b->profile);
    if (!order) order = model_rank(a->run->model) - model_rank(b->run->model);
    if (!order) order = compare((double)a->run->params, (double)b->run->params);
    return order ? order : row_label_compare(a->label, b->label);
}

/* Returns the smallest place that a run of the row has in the filter's list of runs. */
static int row_rank(const struct report_row *row, const struct filter *filter) {
    int first = filter->asked->n_runs;
    for (int i = 0; i < row->n_all; i++) {
        int rank = filter_run_rank(filter, row->all[i]->run.run_id);
        if (rank < first) first = rank;
    }
    return first;
}

/* Sorts the rows of each task and profile in the order of the filter's list of runs. Insertion sort suffices for few
 * rows, and it is stable. */
static void sort_as_asked(struct report_row *rows, int n, const struct filter *filter) {
    for (int i = 1; i < n; i++)
        for (int k = i; k > 0; k--) {
            bool together = strcmp(rows[k].run->task, rows[k - 1].run->task) == 0 &&
                            strcmp(rows[k].profile, rows[k - 1].profile) == 0;
            if (!together || row_rank(&rows[k], filter) >= row_rank(&rows[k - 1], filter)) break;
            struct report_row swap = rows[k];
            rows[k] = rows[k - 1];
            rows[k - 1] = swap;
        }
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

/* Computes the means over n runs. */
static struct validation validation_of(const struct run_record *const *runs, int n) {
    struct validation sum = {0};
    for (int i = 0; i < n; i++) {
        const struct run *run = &runs[i]->run;
        bool failed = run_failed(run) || !isfinite(run->val_acc) || !isfinite(run->val_loss);
        sum.failed = sum.failed || (run_failed(run) && !runs[i]->set_aside);
        sum.metric += run_val_metric(&runs[i]->run);
        sum.loss += failed ? INFINITY : run->val_loss;
    }
    return (struct validation){sum.metric / n, sum.loss / n, sum.failed};
}

struct validation row_validation(const struct report_row *row) {
    return validation_of(row->chosen, row->n);
}

bool row_pair_next(const struct report_row *const rows[2], int at[2]) {
    while (++at[0] < rows[0]->n) { /* both rows are sorted by seed */
        const struct run_record *one = rows[0]->chosen[at[0]], *const *others = rows[1]->chosen;
        for (at[1] += at[1] < 0; at[1] < rows[1]->n; at[1]++)
            if (others[at[1]]->run.seed >= one->run.seed && !others[at[1]]->set_aside) break;
        if (at[1] < rows[1]->n && others[at[1]]->run.seed == one->run.seed && !one->set_aside) return true;
    }
    return false;
}

bool validation_is_better(const struct validation *v, const struct validation *than) {
    const double rounding = 1e-12; /* largest rounding error of a mean of numbers from 0 to 1 */
    if (v->failed != than->failed) return than->failed;
    if (fabs(v->metric - than->metric) > rounding) return v->metric > than->metric;
    return v->loss < than->loss;
}

/* Only the largest seeds of a row are reported, as many as `confirm` says. Sets *first to the smallest of them, or to
 * UINT64_MAX if `confirm` is 0. ST_USAGE: the row has no further seed for choosing the rate. */
static enum status first_to_confirm(const struct report_row *row, int64_t confirm, uint64_t *first, struct error *e) {
    *first = UINT64_MAX;
    for (int64_t k = 0; k <= confirm; k++) {
        uint64_t next = 0;
        bool any = false;
        for (int i = 0; i < row->n_all; i++) {
            uint64_t seed = row->all[i]->run.seed;
            if (k && seed >= *first) continue;
            if (!any || seed > next) next = seed;
            any = true;
        }
        if (!any)
            return fail(e, ST_USAGE,
                        "--confirm-seeds %lld: %s on %s has %lld seed%s, so no seed is left for choosing the rate; "
                        "confirm fewer seeds",
                        (long long)confirm, row->mixer, row->run->task, (long long)k, k == 1 ? "" : "s");
        if (k < confirm) *first = next;
    }
    return ST_OK;
}

/* Sets chosen, n, lr, n_rates and `uneven` (rates have different numbers of seeds). `all` is sorted by rate, then by
 * seed. Runs with seeds below *fresh choose the rate, the others are reported. If fresh is NULL, all runs do both. */
static void choose_rate(struct report_row *row, const uint64_t *fresh) {
    struct validation best = VALIDATION_NONE;
    int seeds_before = 0;
    row->n_rates = 0;
    row->uneven = false;
    for (int first = 0, last, middle; first < row->n_all; first = last) {
        double lr = row->all[first]->run.lr;
        int seeds = 0;
        for (middle = first; middle < row->n_all && row->all[middle]->run.lr == lr; middle++) {
            if (fresh && row->all[middle]->run.seed >= *fresh) break;
            seeds += !row->all[middle]->set_aside;
        }
        for (last = middle; last < row->n_all && row->all[last]->run.lr == lr;) last++;
        if (middle == first) continue; /* all seeds at this rate are reported, so they do not choose */
        row->uneven = row->uneven || (row->n_rates && seeds != seeds_before);
        seeds_before = seeds;
        struct validation own = validation_of(row->all + first, middle - first);
        row->n_rates++;
        if (!validation_is_better(&own, &best)) continue;
        best = own;
        row->lr = lr;
        row->chosen = row->all + (fresh ? middle : first);
        row->n = (int)(row->all + last - row->chosen);
    }
}

/* The `confirm` largest seeds of the row are reported; the other seeds choose the rate. */
static enum status choose_apart(struct report_row *row, int64_t confirm, struct error *e) {
    uint64_t fresh;
    TRY(first_to_confirm(row, confirm, &fresh, e));
    choose_rate(row, &fresh);
    row->confirm = confirm;
    if (row->n) return ST_OK;
    return fail(
        e, ST_DATA,
        "--confirm-seeds %lld: %s on %s has its best rate at %g, but the seeds to report have no run at this rate; "
        "`lrnn bench --confirm-seeds` trains these runs",
        (long long)confirm, row->mixer, row->run->task, row->lr);
}

static enum status choose(struct report_row *row, const struct report_filter *asked, struct error *e) {
    struct error why;
    enum status status = asked->confirm ? choose_apart(row, asked->confirm, &why) : ST_OK;
    if (asked->confirm && status == ST_OK) return ST_OK;
    if (asked->confirm && !asked->confirm_if_enough) return fail(e, status, "%s", why.text);
    row->confirm = 0;
    choose_rate(row, NULL);
    return ST_OK;
}

/* Finds a measured speed for the chosen rate, else for another rate, because the rate does not change the speed. Runs
 * that differ only in the seed have the same cell_id. */
static void find_speed(struct report_row *row, const char *out) {
    struct perf_row perf;
    bool found = perf_latest(out, row->chosen[0]->run.cell_id, NULL, &perf);
    for (int i = 0; i < row->n_all && !found; i++) found = perf_latest(out, row->all[i]->run.cell_id, NULL, &perf);
    row->tok_per_s = found ? perf.tok_per_s : NAN;
    row->disturbed = found && perf.quiet != 1;
    if (found) row->speed = perf;
}

static double sequence_accuracy(const struct run *run) {
    if (!run_failed(run)) return run->test_seq_acc;
    return isfinite(run->seq_chance) ? run->seq_chance : 0;
}

/* Checks that no two different runs of a row have the same rate and seed. Several attempts at one run are allowed. */
static enum status check_seeds(const struct report_row *row, struct error *e) {
    for (int i = 1; i < row->n_all; i++) {
        const struct run *a = &row->all[i - 1]->run, *b = &row->all[i]->run;
        if (a->lr != b->lr || a->seed != b->seed || strcmp(a->run_id, b->run_id) == 0) continue;
        return fail(e, ST_DATA,
                    "runs %s and %s belong to one row (%s, %s), and both have rate %g and seed %llu; a row may have "
                    "only one such run, so move one of the records away",
                    a->run_id, b->run_id, a->task, row->mixer, a->lr, (unsigned long long)a->seed);
    }
    return ST_OK;
}

/* The own runs (setting.h) of one table of a paper and one task: those that a built-in plan has. */
struct paper_runs {
    const char *arxiv, *source; /* the paper and its table; borrowed */
    char task[RECORD_TEXT];     /* the task's name without options */
    struct own_runs runs;
};

/* Returns the own runs for the row's task and for the paper's table that has the published number v. Looks them up in
 * `tables`, and adds them there if they are missing. NULL with *e set after an error. */
static const struct own_runs *own_runs_of(struct report_tables *tables, const struct report_row *row,
                                          const struct published_value *v, struct error *e) {
    char task[RECORD_TEXT];
    const char *at = row->run->task;
    if (text_part(&at, ":", task, sizeof task, e) != ST_OK) return NULL;
    for (int i = 0; i < tables->n_papers; i++) {
        struct paper_runs *p = &tables->papers[i];
        if (!strcmp(p->arxiv, v->arxiv) && !strcmp(p->source, v->source) && !strcmp(p->task, task)) return &p->runs;
    }
    struct paper_runs *longer = realloc(tables->papers, (size_t)(tables->n_papers + 1) * sizeof *longer);
    if (!longer) fail(e, ST_MEMORY, "no memory for a report");
    if (!longer) return NULL;
    tables->papers = longer;
    struct paper_runs *next = &tables->papers[tables->n_papers++];
    *next = (struct paper_runs){.arxiv = v->arxiv, .source = v->source, .runs = {.rows = "", .columns = ""}};
    memcpy(next->task, task, sizeof task);
    return own_runs_find(&next->runs, v->arxiv, v->source, task, NULL, e) == ST_OK ? &next->runs : NULL;
}

/* Some papers publish one number for a task and its variants (other values of one option): the mean over all of them.
 * Returns this mean. The row may be a variant, so this function searches by the task's name without options. */
static struct published_value published_of_base(const struct published *published, const struct report_row *row) {
    struct run base = *row->run;
    base.task[strcspn(base.task, ":")] = 0;
    struct published_value v = published_of_run(published, &base, &row->key);
    return v.settings ? v : PUBLISHED_NONE;
}

/* Compares the row's setting with the setting of the published number, and describes the differences in row->unlike. */
static enum status compare_setting(struct report_tables *tables, struct report_row *row, struct error *e) {
    struct published_value number = row->published;
    if (!isfinite(number.value)) number = published_of_base(&tables->published, row);
    if (!isfinite(number.value)) return ST_OK;
    const struct own_runs *own = own_runs_of(tables, row, &number, e);
    if (!own) return e->status;
    const struct own_run *nearest = own_runs_nearest(own, &row->key, row->unlike);
    if (!nearest) unlike_add(row->unlike, "no built-in plan for this table has this task and model");
    if (nearest && nearest->differs)
        unlike_add(row->unlike, "the program's plan for this table differs from the paper");
    if (!published_data_fits(row->run)) unlike_add(row->unlike, "its data are not the whole released files");
    row->unlike_published = isfinite(row->published.value) && (*row->unlike || row->published.settings);
    return ST_OK;
}

static enum status compute(struct report_row *row, const struct report_filter *asked, struct report_tables *tables,
                           const char *out, struct error *e) {
    struct arena *arena = &tables->arena;
    row->asked = asked;
    qsort(row->all, (size_t)row->n_all, sizeof *row->all, by_rate_and_seed);
    TRY(check_seeds(row, e));
    TRY(choose(row, asked, e));
    row->value = arena_alloc(arena, (size_t)row->n * sizeof *row->value);
    if (!row->value) return fail(e, ST_MEMORY, "no memory for a report of %d runs", row->n_all);
    row->best = -INFINITY;
    row->seq_acc = 0;
    for (int i = 0; i < row->n_all; i++) {
        const struct run *run = &row->all[i]->run;
        row->n_failed_all += run_failed(run);
        row->n_cut_all += run_cut_off(run);
        if (run_failed(run) || !(run_test_metric(run) > row->best)) continue;
        row->best = run_test_metric(run);
        row->best_cut = run_cut_off(run);
    }
    if (row->n_failed_all == row->n_all) row->best = run_test_metric(&row->all[0]->run);
    for (int i = 0; i < row->n; i++) {
        const struct run *run = &row->chosen[i]->run;
        row->value[i] = run_test_metric(run);
        row->seq_acc += sequence_accuracy(run) / row->n;
        row->n_failed += run_failed(run);
        row->n_cut += run_cut_off(run);
        row->solved += !run_failed(run) && run->solved == 1;
    }
    row->mean = stats_mean(row->value, row->n);
    row->median = stats_median(row->value, row->n);
    row->iqm = stats_iqm(row->value, row->n);
    row->estimate_cut = asked->protocol == PROTOCOL_BEST_OF_GRID ? row->best_cut : row->n_cut > 0;
    row->n_estimate = asked->protocol == PROTOCOL_BEST_OF_GRID ? row->n_all : row->n;
    row->n_estimate_failed = asked->protocol == PROTOCOL_BEST_OF_GRID ? row->n_failed_all : row->n_failed;
    row->estimate = protocol_estimate(asked->protocol, row->value, row->n, row->best, &row->interval);
    row->solve_rate = stats_rate_interval(row->solved, row->n, REPORT_LEVEL);
    row->published = published_of_run(&tables->published, row->run, &row->key);
    TRY(compare_setting(tables, row, e));
    row->delta = (row->published.best ? row->best : row->mean) - row->published.value;
    if (row->n_cut_all || row->unlike_published) row->delta = NAN;
    find_speed(row, out);
    return ST_OK;
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

/* Returns the largest number of bytes that the tables of n records may need, with every allocation rounded up. */
static size_t arena_bytes(int n) {
    size_t each = sizeof(struct report_row) + sizeof(struct report_table) + sizeof(struct row_name) + sizeof(void *) +
                  sizeof(double) + 5 * sizeof(int);
    return (size_t)(n + 1) * (each + 9 * ARENA_ALIGN);
}

/* A hash table that finds a row by its id. */
struct row_slots {
    int *row; /* [n] a row's index plus 1, or 0 for an empty slot */
    size_t n; /* a power of 2 */
};

/* Finds the row of a run among the first n rows, by task and key, and sets *k to the row's index. If the row is new, *k
 * is n and the fields of row n are set. If the run's key does not match the filter, *k is -1. */
static enum status find_row(struct report_row *rows, int n, struct row_slots *slots, const struct run_record *r,
                            struct filter *filter, int *k, struct error *e) {
    struct report_row *next = &rows[n];
    char digits[9];
    const struct run *run = &r->run;
    TRY(read_key(r, &next->key, e));
    *k = -1;
    if (!filter_matches(filter, run, &next->key)) return ST_OK;
    record_hash_label(&next->key, next->id);
    snprintf(digits, sizeof digits, "%.8s", next->id);
    size_t at = strtoul(digits, NULL, 16) & (slots->n - 1);
    for (; slots->row[at]; at = (at + 1) & (slots->n - 1)) {
        *k = slots->row[at] - 1;
        if (!strcmp(rows[*k].id, next->id) && !strcmp(rows[*k].run->task, run->task)) return ST_OK;
    }
    *k = n;
    slots->row[at] = n + 1;
    next->run = run;
    next->rank = filter_task_rank(filter, run->task);
    next->outdated = row_outdated(r);
    row_mixer(r, next->mixer, sizeof next->mixer);
    snprintf(next->label, sizeof next->label, "%s", next->mixer);
    return ST_OK;
}

/* Makes the rows; row->all has the runs of a row. For n records, `rows` has room for n + 1 rows, `runs` for n pointers
 * and `row_of` for n numbers. `slots` is empty at first. */
static enum status gather(struct report_row *rows, int *n_rows, const struct run_record **runs, int *row_of,
                          struct row_slots *slots, const struct record_set *set, struct filter *filter,
                          struct error *e) {
    int used = 0;
    *n_rows = 0;
    for (int i = 0; i < set->n; i++) {
        const struct run_record *r = &set->list[i];
        row_of[i] = -1;
        if (!filter_passes(filter, &r->run)) continue;
        TRY(find_row(rows, *n_rows, slots, r, filter, &row_of[i], e));
        if (row_of[i] < 0) continue;
        if (row_of[i] == *n_rows) ++*n_rows;
        struct report_row *row = &rows[row_of[i]];
        if (run_failed(row->run)) row->run = &r->run; /* a failed run may lack its number of parameters */
        row->n_all++;
    }
    for (int k = 0; k < *n_rows; k++) {
        rows[k].all = runs + used;
        used += rows[k].n_all;
        rows[k].n_all = 0;
    }
    for (int i = 0; i < set->n; i++)
        if (row_of[i] >= 0) rows[row_of[i]].all[rows[row_of[i]].n_all++] = &set->list[i];
    return ST_OK;
}

static bool profile_makes_all(const struct report_row *row, const char *name) {
    for (int i = 0; i < row->n_all; i++) {
        const struct run_record *r = row->all[i];
        if (strcmp(record_profile(r), name) != 0 && !profile_makes(name, &r->run, &row->key)) return false;
    }
    return true;
}

/* Returns the profile that has all runs of the row, or custom. The runs of a row are reported together, so one run with
 * a rate that the profile lacks makes the whole row custom. */
static const char *profile_of_row(const struct report_row *row) {
    for (int i = 0; i < row->n_all; i++)
        if (profile_makes_all(row, record_profile(row->all[i]))) return record_profile(row->all[i]);
    return PROFILE_CUSTOM;
}

/* Returns the profile that all runs of a task share, or custom. */
static const char *profile_of_task(const struct report_row *rows, int n, const char *task) {
    const char *first = NULL;
    for (int k = 0; k < n; k++)
        for (int i = 0; i < rows[k].n_all && !strcmp(rows[k].run->task, task); i++) {
            const char *own = record_profile(rows[k].all[i]);
            if (first && strcmp(first, own) != 0) return PROFILE_CUSTOM;
            first = own;
        }
    return first;
}

static bool has_run_of(const struct report_row *row, const char *profile) {
    for (int i = 0; i < row->n_all; i++)
        if (strcmp(record_profile(row->all[i]), profile) == 0) return true;
    return false;
}

/* Sets each row's profile (report_filter.together says how), and removes rows of other profiles than the filter asks
 * for. */
static enum status name_profiles(struct report_row *rows, int *n_rows, const struct report_filter *by,
                                 struct error *e) {
    int n = 0;
    bool joined = false; /* a row has runs of the profile that the filter asks for */
    for (int i = 0; i < *n_rows; i++)
        rows[i].profile = !by->together   ? profile_of_row(&rows[i])
                          : *by->together ? by->together
                                          : profile_of_task(rows, *n_rows, rows[i].run->task);
    for (int i = 0; i < *n_rows; i++) {
        joined = joined || (by->profile && has_run_of(&rows[i], by->profile));
        if (!by->profile || strcmp(by->profile, rows[i].profile) == 0) rows[n++] = rows[i];
    }
    *n_rows = n;
    if (n || !joined) return ST_OK;
    return fail(e, ST_DATA,
                "every row with runs of profile %s also has other runs, such as runs at rates that the profile lacks; "
                "so these rows belong to --profile " PROFILE_CUSTOM,
                by->profile);
}

/* Divides the sorted rows into tables, one for each task and profile. Returns the number of tables. */
static int cut(struct report_table *list, struct report_row *rows, int n_rows) {
    int n = 0;
    for (int i = 0; i < n_rows; i++) {
        const struct run *run = rows[i].run;
        if (n == 0 || strcmp(list[n - 1].task, run->task) != 0 || strcmp(list[n - 1].profile, rows[i].profile) != 0)
            list[n++] = (struct report_table){.task = run->task, .profile = rows[i].profile, .rows = &rows[i]};
        list[n - 1].n_rows++;
        list[n - 1].n_runs += rows[i].n_all;
    }
    return n;
}

static enum status name_rows(struct report_table *t, struct arena *arena, struct error *e) {
    struct row_name *names = arena_alloc(arena, (size_t)t->n_rows * sizeof *names);
    if (!names) return fail(e, ST_MEMORY, "no memory for a report of %d rows", t->n_rows);
    for (int i = 0; i < t->n_rows; i++)
        names[i] = (struct row_name){
            .key = &t->rows[i].key, .table = "", .text = t->rows[i].label, .size = sizeof t->rows[i].label};
    row_names_tell_apart(names, t->n_rows, NULL, NULL);
    return ST_OK;
}

static enum status fill_tables(struct report_tables *tables, const struct record_set *set, struct filter *filter,
                               const char *out, struct error *e) {
    size_t n = (size_t)set->n + 1;
    TRY(arena_reserve(&tables->arena, arena_bytes(set->n), e));
    struct report_row *rows = arena_alloc(&tables->arena, n * sizeof *rows);
    const struct run_record **runs = arena_alloc(&tables->arena, n * sizeof *runs);
    int *row_of = arena_alloc(&tables->arena, n * sizeof *row_of);
    struct row_slots slots = {.n = 2};
    while (slots.n < 2 * n) slots.n *= 2;
    slots.row = arena_alloc(&tables->arena, slots.n * sizeof *slots.row);
    tables->list = arena_alloc(&tables->arena, n * sizeof *tables->list);
    if (!rows || !runs || !row_of || !slots.row || !tables->list)
        return fail(e, ST_MEMORY, "no memory for a report of %d runs", set->n);
    int n_rows;
    TRY(filter_check_tasks(filter, set, out, e));
    TRY(gather(rows, &n_rows, runs, row_of, &slots, set, filter, e));
    TRY(name_profiles(rows, &n_rows, filter->asked, e));
    if (n_rows == 0) return filter_found_nothing(filter, out, e);
    struct error why;
    tables->protocol = filter->asked->protocol;
    tables->protocol_given = filter->asked->protocol_given;
    tables->confirm = filter->asked->confirm;
    tables->tell_builds = filter->asked->tell_builds;
    tables->has_published = published_read(&tables->published, out, &why) == ST_OK;
    if (!tables->has_published) fprintf(stderr, "lrnn: no published numbers beside ours: %s\n", why.text);
    enum status status = ST_OK;
    for (int i = 0; i < n_rows && status == ST_OK; i++) status = compute(&rows[i], filter->asked, tables, out, e);
    TRY(status);
    qsort(rows, (size_t)n_rows, sizeof *rows, by_model);
    if (filter->asked->runs) sort_as_asked(rows, n_rows, filter);
    tables->n = cut(tables->list, rows, n_rows);
    for (int i = 0; i < tables->n; i++) {
        struct report_table *t = &tables->list[i];
        TRY(name_rows(t, &tables->arena, e));
        if (!filter->asked->runs)
            qsort(t->rows, (size_t)t->n_rows, sizeof *t->rows, by_model); /* name_rows has changed the labels */
    }
    return ST_OK;
}

enum status report_tables_make(struct report_tables *tables, const struct record_set *set,
                               const struct report_filter *filter, const char *out, struct error *e) {
    struct filter read;
    *tables = (struct report_tables){0};
    TRY(filter_read(&read, filter, e));
    enum status status = fill_tables(tables, set, &read, out, e);
    filter_free(&read);
    if (status != ST_OK) report_tables_free(tables);
    return status;
}

void report_tables_free(struct report_tables *tables) {
    for (int i = 0; i < tables->n_papers; i++) own_runs_free(&tables->papers[i].runs);
    free(tables->papers);
    published_free(&tables->published);
    arena_free(&tables->arena);
    *tables = (struct report_tables){0};
}
