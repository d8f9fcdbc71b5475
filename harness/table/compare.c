/* compare.c - see compare.h. */
#include "harness/table/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/row_key.h"
#include "harness/rows/row_label.h"
#include "harness/store/files.h"
#include "harness/table/report.h"

/* A run with its cell, by which it is paired: everything that identifies the run except the seed, the numerics' version
 * and the compared option. */
struct entry {
    const struct run_record *record;
    struct label key;
    char cell[RUN_ID_HEX]; /* hash of the key */
    bool aside;            /* not compared */
    bool told;
};

/* The pairs of a cell. */
struct pairs {
    const struct run *run;     /* a run of the first side, for task and rate */
    const struct entry *first; /* its entry in the first folder; NULL: rows are compared */
    int n;
    double mean[2], difference;
    struct interval interval;
    int solved[2];
    int cut_off[2], failed[2]; /* numbers of runs that were cut off, that failed */
    bool named;
    char label[4 * RECORD_TEXT];
};

/* --- pairing ------------------------------------------------------------------------------------------------------ */

/* Checks that runs can be paired over this option, and that it takes both values, which are made canonical ("1e-3"
 * becomes "0.001"). */
static enum status check_option(struct comparison *of, char values[2][OPTION_TEXT + 1], struct error *e) {
    const struct option *o = of->key ? row_key_option(of->key) : NULL;
    if (of->key && !strcmp(of->key, "seed"))
        return fail(e, ST_USAGE, "--by seed: runs are paired by their seed; lrnn report has the seeds of a row");
    if (of->key && (!strcmp(of->key, "model") || !strcmp(of->key, "task")))
        return fail(e, ST_USAGE,
                    "--by %s: two of them have other options, too, so that no runs are equal in all else; an option of "
                    "one is called %s.OPTION, and lrnn report has a row for each",
                    of->key, of->key);
    for (int i = 0; i < 2 && o; i++) {
        TRY(option_canonical(o, "--by", o->name, of->values[i], values[i], OPTION_TEXT + 1, e));
        of->values[i] = values[i];
    }
    if (of->key && !strcmp(of->values[0], of->values[1]))
        return fail(e, ST_USAGE, "--by %s: both values are %s; write two", of->key, of->values[0]);
    return ST_OK;
}

/* Checks that a side has runs with its value of the option. */
static enum status check_side(const struct comparison *of, int side, const struct entry *list, bool known,
                              struct error *e) {
    const struct record_set *set = of->sets[side];
    if (!of->key || set->n == 0) return ST_OK;
    if (!known)
        return fail(e, ST_USAGE, "--by %s: no run has an option of that name; a record's `identity` has the names",
                    of->key);
    for (int i = 0; i < set->n; i++)
        if (!list[i].aside) return ST_OK;
    return fail(e, ST_DATA, "--by %s: no run has %s=%s", of->key, of->key, of->values[side]);
}

static enum status read_entries(const struct comparison *of, int side, struct entry **list, struct error *e) {
    const struct record_set *set = of->sets[side];
    struct error why;
    bool known = false;
    *list = calloc((size_t)set->n + 1, sizeof **list);
    if (!*list) return fail(e, ST_MEMORY, "no memory to compare %d runs", set->n);
    for (int i = 0; i < set->n; i++) {
        struct label *key = &(*list)[i].key;
        char lr[64];
        const struct run_record *r = &set->list[i];
        (*list)[i].record = r;
        if (row_key(r->identity, key, &why) != ST_OK)
            return fail(e, ST_DATA, "the identity in the record of run %s cannot be read: %.800s", r->run.run_id,
                        why.text);
        format_double(r->run.lr, lr, sizeof lr);
        TRY(label_set(key, "lr", lr, e));
        const char *value = of->key ? label_get(key, of->key) : NULL;
        known = known || value;
        (*list)[i].aside = r->set_aside || (of->key && (!value || strcmp(value, of->values[side]) != 0));
        (*list)[i].told = (*list)[i].aside;
        label_remove(key, "numerics");
        if (of->key) label_remove(key, of->key);
        record_hash_label(key, (*list)[i].cell);
    }
    return check_side(of, side, *list, known, e);
}

/* Finds the run of a cell and seed; NULL: there is none. ST_DATA: there are two, with different numerics. */
static enum status find_pair(const struct entry *list, const struct entry *of, const char *folder,
                             const struct entry **found, struct error *e) {
    *found = NULL;
    for (; list->record; list++) { /* the last entry has no record */
        const struct run *run = &list->record->run, *earlier = *found ? &(*found)->record->run : NULL;
        if (list->aside || strcmp(list->cell, of->cell) != 0 || run->seed != of->record->run.seed) continue;
        if (earlier)
            return fail(e, ST_DATA,
                        "runs %s and %s of %s differ in the numerics alone (%s, %s), so that it is not clear which is "
                        "to be compared; move one of the records away",
                        earlier->run_id, run->run_id, folder, earlier->numerics, run->numerics);
        *found = list;
    }
    return ST_OK;
}

/* The folders, as entries. */
struct sides {
    struct entry *list[2];
    int n[2];
    const char *const *names;
    bool by_rate; /* cells have no rate: rates are compared, or each row has its own */
    bool for_programs;
};

/* Adds a pair of runs to the sums; `keys` are the keys of their rows. *value: the pair's difference. */
static void add_pair(struct pairs *p, const struct run_record *const pair[2], const struct label *const keys[2],
                     double *value, struct facts *facts) {
    for (int k = 0; k < 2; k++) {
        const struct run *run = &pair[k]->run;
        p->mean[k] += run_test_metric(run);
        p->cut_off[k] += run_cut_off(run);
        p->failed[k] += run_failed(run);
        p->solved[k] += run->solved == 1;
        facts_add_runs(facts, keys[k], record_profile(pair[k]), &pair[k], 1);
    }
    *value = run_test_metric(&pair[1]->run) - run_test_metric(&pair[0]->run);
    p->n++;
}

static void end_pairs(struct pairs *p, const double *values) {
    for (int k = 0; k < 2 && p->n; k++) p->mean[k] /= p->n;
    p->difference = p->n ? stats_mean(values, p->n) : NAN;
    p->interval = stats_t_interval(values, p->n, REPORT_LEVEL);
}

/* Makes the pairs of the cell whose first run in the first folder is number `first`. `values`: room for a number per
 * pair. */
static enum status pair_cell(struct pairs *p, const struct sides *s, int first, double *values, struct facts *facts,
                             struct error *e) {
    struct entry *own = s->list[0];
    *p = (struct pairs){.run = &own[first].record->run, .first = &own[first]};
    for (int i = first; i < s->n[0]; i++) {
        const struct entry *pair[2];
        if (own[i].told || strcmp(own[i].cell, own[first].cell) != 0) continue;
        own[i].told = i != first;
        for (int k = 0; k < 2; k++) TRY(find_pair(s->list[k], &own[i], s->names[k], &pair[k], e));
        if (!pair[1]) continue;
        add_pair(p, (const struct run_record *[]){pair[0]->record, pair[1]->record},
                 (const struct label *[]){&pair[0]->key, &pair[1]->key}, &values[p->n], facts);
    }
    own[first].told = true;
    end_pairs(p, values);
    return ST_OK;
}

/* --- naming ------------------------------------------------------------------------------------------------------- */

static bool is_rate(const void *context, const char *key) {
    (void)context;
    return strcmp(key, "lr") == 0; /* has its own column */
}

/* Labels the rows of each task by the options in which they differ. `names`: room for n. */
static void name_rows(struct pairs *list, int n, struct row_name *names) {
    for (int i = 0; i < n; i++) {
        const char *task = list[i].first->record->run.task;
        int of_task = 0;
        if (list[i].named) continue;
        for (int k = i; k < n; k++) {
            if (strcmp(list[k].first->record->run.task, task) != 0) continue;
            row_mixer(list[k].first->record, list[k].label, sizeof list[k].label);
            names[of_task++] = (struct row_name){
                .key = &list[k].first->key, .table = "", .text = list[k].label, .size = sizeof list[k].label};
            list[k].named = true;
        }
        row_names_tell_apart(names, of_task, is_rate, NULL);
    }
}

/* Orders by task, model and rate. */
static int order_rows(const void *a, const void *b) {
    const struct pairs *p = a, *q = b;
    const struct run *one = p->run, *other = q->run;
    int order = strcmp(one->task, other->task);
    if (!order) order = strcmp(p->label, q->label);
    return order ? order : (one->lr > other->lr) - (one->lr < other->lr);
}

/* --- the sheet ---------------------------------------------------------------------------------------------------- */

static void add_row(struct sheet *s, const struct sides *sides, const struct pairs *p) {
    const struct run *run = p->run;
    sheet_row(s);
    for (int i = 0; i < 2 && sides->for_programs; i++) sheet_text(s, "%s", sides->names[i]);
    sheet_text(s, "%s", run->task);
    sheet_text(s, "%s", p->label);
    if (!sides->by_rate) sheet_real(s, "%g", run->lr);
    sheet_int(s, p->n);
    for (int k = 0; k < 2; k++) {
        sheet_real(s, "%.4f", p->mean[k]);
        marks_append(s, p->cut_off[k], p->failed[k], false);
        sheet_int(s, p->solved[k]);
    }
    sheet_difference(s, 4, p->difference);
    marks_append(s, p->cut_off[0] || p->cut_off[1], p->failed[0] || p->failed[1], false);
    sheet_real(s, "%+.4f", p->interval.low);
    sheet_real(s, "%+.4f", p->interval.high);
    for (int k = 0; k < 2 && sides->for_programs; k++) {
        sheet_int(s, p->cut_off[k]);
        sheet_int(s, p->failed[k]);
    }
}

/* Counts the runs that take part in the comparison. */
static int count_runs(const struct entry *list, int n) {
    int runs = 0;
    for (int i = 0; i < n; i++) runs += !list[i].aside;
    return runs;
}

/* Fills the sheet with the cells, which have n pairs together. how: says what makes two runs a pair. */
static void add_cells(struct sheet *s, const struct sides *sides, const struct pairs *list, int cells, int n,
                      const char *how, const struct facts *facts) {
    struct marks marks = {.runs = 2 * n, .facts = *facts};
    /* programs find the sides' names in two columns, so that no heading depends on them */
    sheet_columns(s, sides->for_programs ? "a|b|task|model" : "task|model");
    sheet_columns(s, sides->by_rate ? ">pairs" : ">lr|>pairs");
    for (int i = 0; i < 2 && !sides->for_programs; i++) {
        sheet_column(s, SHEET_RIGHT, "%s", sides->names[i]);
        sheet_columns(s, ">solved");
    }
    sheet_columns(s, sides->for_programs ? ">mean_a|>solved_a|>mean_b|>solved_b|>difference|>low|>high|>n_cut_off_a|"
                                           ">n_failed_a|>n_cut_off_b|>n_failed_b"
                                         : ">difference|>low|>high");
    for (int i = 0; i < cells; i++) {
        add_row(s, sides, &list[i]);
        marks.cut_off = marks.cut_off || list[i].cut_off[0] || list[i].cut_off[1];
        marks.failed += list[i].failed[0] + list[i].failed[1];
    }
    sheet_caption(s, "%s against %s: %d pair%s of runs", sides->names[1], sides->names[0], n, n == 1 ? "" : "s");
    sheet_name(s, "compare %s %s", sides->names[0], sides->names[1]);
    sheet_note(s,
               "Paired by seed: %s. difference: %s - %s, the test metric, with Student's 95 %% interval from two pairs "
               "on; failed runs count as chance. solved: runs that reached the task's threshold.",
               how, sides->names[1], sides->names[0]);
    marks_note(s, &marks);
}

static enum status fill(struct sheet *s, const struct sides *sides, struct pairs *list, double *values,
                        struct row_name *names, struct error *e) {
    int cells = 0, n = 0;
    struct facts facts = {0};
    const int runs[2] = {count_runs(sides->list[0], sides->n[0]), count_runs(sides->list[1], sides->n[1])};
    for (int i = 0; i < sides->n[0]; i++) {
        if (sides->list[0][i].told) continue;
        TRY(pair_cell(&list[cells], sides, i, values, &facts, e));
        if (list[cells].n) n += list[cells++].n;
    }
    if (n == 0) return fail(e, ST_DATA, "%s and %s have no run in common", sides->names[0], sides->names[1]);
    name_rows(list, cells, names);
    qsort(list, (size_t)cells, sizeof *list, order_rows);
    add_cells(s, sides, list, cells, n, "what is equal in all else but the program's build and numerics", &facts);
    if (runs[0] + runs[1] > 2 * n)
        sheet_note(s, "Without a partner, and in no number here: %d of %d runs of %s, %d of %d of %s.", runs[0] - n,
                   runs[0], sides->names[0], runs[1] - n, runs[1], sides->names[1]);
    return ST_OK;
}

/* --- two rows ----------------------------------------------------------------------------------------------------- */

/* Whether a word names the row's mixer, with some of its options or none. */
static bool names_row(const struct report_row *row, const char *word) {
    struct label asked, own;
    if (label_parse(&asked, "model", word, NULL) != ST_OK) return false;
    if (label_parse(&own, "model", row->mixer, NULL) != ST_OK) return false;
    bool same = !strcmp(label_name(&asked), label_name(&own));
    for (int i = 0; i < asked.n && same; i++) {
        char key[RECORD_TEXT];
        snprintf(key, sizeof key, "model.%.200s", label_key(&asked, i));
        const char *value = label_get(&row->key, key);
        same = value && !strcmp(value, label_value(&asked, i));
    }
    return same;
}

/* Finds the row that the word names, by its label in the table, else by its mixer. NULL: there is none. ST_USAGE: the
 * word names several rows. */
static enum status find_row(const struct report_table *t, const char *word, const struct report_row **row,
                            struct error *e) {
    *row = NULL;
    for (int k = 0; k < t->n_rows && !*row; k++)
        if (!strcmp(t->rows[k].label, word)) *row = &t->rows[k];
    if (*row) return ST_OK;
    for (int k = 0; k < t->n_rows; k++) {
        if (!names_row(&t->rows[k], word)) continue;
        if (*row)
            return fail(e, ST_USAGE,
                        "--rows %s: %s has several rows of that name, '%.300s' and '%.300s'; write one of them, or "
                        "choose by --profile or --where",
                        word, t->task, (*row)->label, t->rows[k].label);
        *row = &t->rows[k];
    }
    return ST_OK;
}

/* Pairs the runs of two rows, each at its own chosen rate, and adds the number of runs without a partner to *alone.
 * `values`: room for a number per run of the first row. */
static void pair_rows(struct pairs *p, const struct report_row *const rows[2], double *values, int *alone,
                      struct facts *facts) {
    const struct label *const keys[2] = {&rows[0]->key, &rows[1]->key};
    *p = (struct pairs){.run = rows[0]->run};
    for (int at[2] = {-1, -1}; row_pair_next(rows, at);)
        add_pair(p, (const struct run_record *[]){rows[0]->chosen[at[0]], rows[1]->chosen[at[1]]}, keys, &values[p->n],
                 facts);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < rows[k]->n; i++) *alone += !rows[k]->chosen[i]->set_aside;
    *alone -= 2 * p->n;
    end_pairs(p, values);
    snprintf(p->label, sizeof p->label, "%.400s lr %g, %.400s lr %g", rows[0]->label, rows[0]->lr, rows[1]->label,
             rows[1]->lr);
}

enum status compare_rows(struct sheets *sheets, const struct report_tables *tables, const char *const words[2],
                         bool for_programs, struct error *e) {
    struct pairs *list = calloc((size_t)tables->n + 1, sizeof *list);
    double *values = NULL;
    struct facts facts = {0};
    int cells = 0, n = 0, alone = 0;
    enum status status = list ? ST_OK : fail(e, ST_MEMORY, "no memory to compare rows");
    for (int i = 0; i < tables->n && status == ST_OK; i++) {
        const struct report_table *t = &tables->list[i];
        const struct report_row *rows[2];
        for (int k = 0; k < 2 && status == ST_OK; k++) status = find_row(t, words[k], &rows[k], e);
        if (status != ST_OK || !rows[0] || !rows[1] || rows[0] == rows[1]) continue;
        double *more = realloc(values, (size_t)(rows[0]->n + 1) * sizeof *values);
        if (more) values = more;
        if (!more) status = fail(e, ST_MEMORY, "no memory to compare rows");
        if (more) pair_rows(&list[cells], rows, values, &alone, &facts);
        if (list[cells].n) n += list[cells++].n;
    }
    if (status == ST_OK && n == 0)
        status = fail(e, ST_DATA, "no task has rows of %s and of %s with a seed in common; lrnn report has all rows",
                      words[0], words[1]);
    if (status == ST_OK) {
        struct sheet *s = sheets_add(sheets);
        const struct sides sides = {.names = words, .by_rate = true, .for_programs = for_programs};
        add_cells(s, &sides, list, cells, n, "the runs of each row at the rate that its validation chose", &facts);
        if (alone) sheet_note(s, "Of a seed that the other row lacks, and in no number here: %d runs.", alone);
    }
    free(values);
    free(list);
    return status;
}

/* --- two folders, or an option ------------------------------------------------------------------------------------ */

enum status compare_runs(struct sheets *sheets, const struct comparison *of, struct error *e) {
    char canonical[2][OPTION_TEXT + 1], numbered[2][PATH_BYTES];
    const char *names[2] = {of->names[0], of->names[1]};
    struct comparison by = *of;
    TRY(check_option(&by, canonical, e));
    for (int i = 0; i < 2 && !strcmp(of->names[0], of->names[1]); i++) {
        snprintf(numbered[i], sizeof numbered[i], "%s (%d)", of->names[i], i + 1);
        names[i] = numbered[i];
    }
    struct sides sides = {.n = {of->sets[0]->n, of->sets[1]->n},
                          .names = names,
                          .by_rate = of->key && !strcmp(of->key, "lr"),
                          .for_programs = of->for_programs};
    size_t n = (size_t)sides.n[0] + 1;
    struct pairs *list = calloc(n, sizeof *list);
    struct row_name *rows = calloc(n, sizeof *rows);
    double *values = calloc(n, sizeof *values);
    enum status status = list && rows && values ? ST_OK : fail(e, ST_MEMORY, "no memory to compare runs");
    for (int i = 0; i < 2 && status == ST_OK; i++) status = read_entries(&by, i, &sides.list[i], e);
    if (status == ST_OK) status = fill(sheets_add(sheets), &sides, list, values, rows, e);
    free(list);
    free(rows);
    free(values);
    free(sides.list[0]);
    free(sides.list[1]);
    return status;
}
