/* across.c - the report "across": tasks of one profile side by side, a row a model, as papers print their suites. A
 * cell is the mean test metric at the chosen rate and, where a paper has one, its number.
 *
 * Options that differ within a task stand in the rows' labels; those that all rows of a task share, and another task
 * has otherwise (its epochs), are told once, with the task. So what stands in one row is one model in one setting. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/row_key.h"
#include "harness/table/across.h"
#include "harness/table/repeats.h"
#include "harness/rows/row_label.h"
#include "tasks/task.h"

/* A row of a table under its label among all rows of the group. */
struct entry {
    const struct report_row *row;
    int table;
    char label[4 * RECORD_TEXT];
};

/* Tables of one profile, or of one of a suite. */
struct group {
    const struct report_table **tables;
    struct entry *entries; /* of all tables, one after the other */
    int n_tables, n;
    enum report_protocol protocol;
    int64_t confirm;
    bool of_suite;
    bool cut, settings;   /* marks that stand in the sheets so far */
    bool published, best; /* some row there has a paper's number; one that is the best of the paper's runs */
    int n_runs, n_failed; /* that the numbers are made of, and those of them that count as chance */
    struct repeats repeats;
};

/* --- labels ------------------------------------------------------------------------------------------------------- */

static bool differ(const struct report_row *a, const struct report_row *b, const char *key) {
    return strcmp(row_key_value(&a->key, key), row_key_value(&b->key, key)) != 0;
}

/* Whether it is the task's, or all rows of each table have one value of it. */
static bool is_of_tables(const void *context, const char *key) {
    const struct group *g = context;
    if (strncmp(key, "task.", 5) == 0) return true;
    for (int t = 0; t < g->n_tables; t++)
        for (int k = 1; k < g->tables[t]->n_rows; k++)
            if (differ(&g->tables[t]->rows[k], &g->tables[t]->rows[0], key)) return false;
    return true;
}

static enum status name_entries(struct group *g, struct error *e) {
    struct row_name *names = calloc((size_t)g->n, sizeof *names);
    if (!names) return fail(e, ST_MEMORY, "no memory for a report of %d rows", g->n);
    for (int i = 0; i < g->n; i++) {
        struct entry *entry = &g->entries[i];
        snprintf(entry->label, sizeof entry->label, "%s", entry->row->mixer);
        names[i] = (struct row_name){.key = &entry->row->key,
                                     .table = g->tables[entry->table]->task,
                                     .text = entry->label,
                                     .size = sizeof entry->label};
    }
    row_names_tell_apart(names, g->n, is_of_tables, g);
    free(names);
    return ST_OK;
}

static bool differs_between_tables(const struct group *g, const char *key) {
    for (int t = 1; t < g->n_tables; t++)
        if (differ(g->tables[t]->rows, g->tables[0]->rows, key)) return true;
    return false;
}

/* Whether another table of the group is of the same task by name, and has another value of the option or none. */
static bool tells_tasks_apart(const struct group *g, const struct label *task, int pair) {
    struct label other;
    for (int t = 0; t < g->n_tables; t++) {
        if (label_parse(&other, "task", g->tables[t]->task, NULL) != ST_OK) continue;
        const char *value = label_get(&other, label_key(task, pair));
        if (strcmp(label_name(&other), label_name(task)) == 0 &&
            (!value || strcmp(value, label_value(task, pair)) != 0))
            return true;
    }
    return false;
}

/* The task without what all tables of it share, for which "..." stands: "arrow:patch=8,...". Its note has the whole. */
static void shorten_task(const struct group *g, int t, char text[RECORD_TEXT]) {
    struct label task, kept = {0};
    bool all = true;
    snprintf(text, RECORD_TEXT, "%s", g->tables[t]->task);
    if (label_parse(&task, "task", text, NULL) != ST_OK || label_set_name(&kept, label_name(&task), NULL) != ST_OK)
        return;
    for (int k = 0; k < task.n; k++) {
        bool keep = tells_tasks_apart(g, &task, k);
        all = all && keep;
        if (keep && label_add(&kept, label_key(&task, k), label_value(&task, k), NULL) != ST_OK) return;
    }
    char brief[RECORD_TEXT];
    if (all || label_format(&kept, brief, sizeof brief, NULL) != ST_OK) return;
    snprintf(text, RECORD_TEXT, "%.*s%s", RECORD_TEXT - 8, brief, kept.n ? ",..." : ":...");
}

/* --- for people --------------------------------------------------------------------------------------------------- */

static const struct report_row *find_row(const struct group *g, int table, const char *label) {
    for (int i = 0; i < g->n; i++)
        if (g->entries[i].table == table && strcmp(g->entries[i].label, label) == 0) return g->entries[i].row;
    return NULL;
}

static bool any_published(const struct report_table *t) {
    for (int k = 0; k < t->n_rows; k++)
        if (isfinite(t->rows[k].published.value)) return true;
    return false;
}

/* "0.444 / 0.89", "0.444 / -" where the paper has others of the task, "0.444" where it has none. */
static void add_cell(struct sheet *s, const struct report_table *t, const struct report_row *row) {
    if (!row) {
        sheet_text(s, "-");
        return;
    }
    sheet_real(s, "%.3f", row->estimate);
    if (row->estimate_cut) sheet_append(s, CUT_OFF_MARK);
    if (row->n_estimate_failed) sheet_append(s, FAILED_MARK);
    if (isfinite(row->published.value))
        sheet_append(s, " / %g%s", row->published.value, published_is_other(&row->published) ? SETTINGS_MARK : "");
    else if (any_published(t))
        sheet_append(s, " / -");
}

/* The fewest and the most steps of the schedules of a table. */
static void range_of_steps(const struct report_table *t, int64_t *least, int64_t *most) {
    *least = *most = t->rows->run->max_steps;
    for (int k = 1; k < t->n_rows; k++) {
        int64_t steps = t->rows[k].run->max_steps;
        *least = steps < *least ? steps : *least;
        *most = steps > *most ? steps : *most;
    }
}

/* "s3: test token accuracy, chance 0.1667, 1580 steps; dim=64 epochs=20.", and what a shortened name stands for. */
static void note_table(struct sheet *s, const struct group *g, int t) {
    const struct report_row *row = g->tables[t]->rows;
    char settings[RECORD_TEXT] = "", range[32] = "", brief[RECORD_TEXT];
    int64_t least, most;
    range_of_steps(g->tables[t], &least, &most);
    if (least < most) snprintf(range, sizeof range, "%" PRId64 " to ", least);
    for (int k = 0; k < row->key.n; k++) {
        const char *key = label_key(&row->key, k);
        const struct option *o = row_key_flag(key);
        size_t used = strlen(settings);
        if (!o || o->flags & OPT_AUTO || !is_of_tables(g, key) || !differs_between_tables(g, key)) continue;
        snprintf(settings + used, sizeof settings - used, "%s%s=%s", used ? " " : "; ", key, label_value(&row->key, k));
    }
    shorten_task(g, t, brief);
    bool whole = strcmp(brief, g->tables[t]->task) == 0;
    sheet_note(s, "%s%s%s: test %s, chance %.4f, at most %s%" PRId64 " steps%s.", whole ? "" : brief,
               whole ? "" : " is ", g->tables[t]->task, run_metric_name(row->run), run_chance(row->run), range, most,
               settings);
}

/* Interquartile mean over the runs of a model on all tasks, each task a stratum (Agarwal et al. 2021). */
static void add_aggregate(struct sheet *s, const struct group *g, const char *label) {
    if (g->n_tables < 1) return;
    int sizes[g->n_tables], n = 0;
    bool everywhere = true, cut = false, failed = false;
    for (int t = 0; t < g->n_tables; t++) {
        const struct report_row *row = find_row(g, t, label);
        everywhere = everywhere && row;
        cut = cut || (row && row->n_cut);
        failed = failed || (row && row->n_failed);
        n += sizes[t] = row ? row->n : 0;
    }
    double *values = everywhere ? calloc((size_t)n + 1, sizeof *values) : NULL;
    if (!values) {
        sheet_text(s, "-");
        return;
    }
    n = 0;
    for (int t = 0; t < g->n_tables; t++)
        for (int i = 0; i < sizes[t]; i++) values[n++] = find_row(g, t, label)->value[i];
    struct interval ci = stats_iqm_interval(values, sizes, g->n_tables, REPORT_LEVEL);
    sheet_real(s, "%.3f", stats_iqm(values, n));
    if (cut) sheet_append(s, CUT_OFF_MARK);
    if (failed) sheet_append(s, FAILED_MARK);
    if (ci.kind != INTERVAL_NONE) sheet_append(s, " [%.3f, %.3f]", ci.low, ci.high);
    free(values);
}

static void fill(struct sheet *s, struct group *g) {
    int models = 0;
    sheet_column(s, SHEET_LEFT, "model");
    sheet_names_rows(s);
    for (int t = 0; t < g->n_tables; t++) {
        char brief[RECORD_TEXT];
        shorten_task(g, t, brief);
        sheet_column(s, SHEET_RIGHT, "%s%s", brief, any_published(g->tables[t]) ? " / published" : "");
    }
    if (g->protocol == PROTOCOL_IQM) sheet_column(s, SHEET_RIGHT, "all");
    for (int i = 0; i < g->n; i++) {
        const struct entry *entry = &g->entries[i];
        bool earlier = false;
        g->cut = g->cut || entry->row->estimate_cut;
        g->n_runs += entry->row->n_estimate;
        g->n_failed += entry->row->n_estimate_failed;
        repeats_count(&g->repeats, entry->row);
        g->settings = g->settings || published_is_other(&entry->row->published);
        g->published = g->published || isfinite(entry->row->published.value);
        g->best = g->best || (isfinite(entry->row->published.value) && entry->row->published.best);
        for (int k = 0; k < i && !earlier; k++) earlier = strcmp(g->entries[k].label, entry->label) == 0;
        if (earlier) continue;
        sheet_row(s);
        sheet_text(s, "%s", entry->label);
        for (int t = 0; t < g->n_tables; t++) add_cell(s, g->tables[t], find_row(g, t, entry->label));
        if (g->protocol == PROTOCOL_IQM) add_aggregate(s, g, entry->label);
        models++;
    }
    for (int c = 1; c <= g->n_tables + (g->protocol == PROTOCOL_IQM); c++) sheet_strong_best(s, c);
    const char *suite = g->tables[0]->rows->run->suite;
    if (g->of_suite)
        sheet_caption(s, "Suite %s, profile %s: %d model%s", suite, g->tables[0]->profile, models,
                      models == 1 ? "" : "s");
    else
        sheet_caption(s, "%d tasks, profile %s: %d model%s", g->n_tables, g->tables[0]->profile, models,
                      models == 1 ? "" : "s");
    for (int t = 0; t < g->n_tables; t++) note_table(s, g, t);
}

static void add_legend(struct sheet *s, const struct group *g) {
    sheet_note(s, "%s%s.", protocol_of(g->protocol)->phrase, g->published ? " / the paper's number" : "");
    if (g->best && g->protocol != PROTOCOL_BEST_OF_GRID)
        sheet_note(s,
                   "Some of the papers' numbers are the best of their runs, ours are not (report --what tables has our "
                   "best).");
    if (g->confirm) sheet_note(s, CONFIRMED_NOTE ".", (long long)g->confirm);
    sheet_note_on_strong(s, "Bold: the best of a task.");
    if (g->protocol == PROTOCOL_IQM)
        sheet_note(s, "all: the interquartile mean over all tasks and seeds, with a bootstrap that draws every task's "
                      "seeds by themselves; of models that have run on all of them.");
    if (g->cut) sheet_note(s, "%s.", CUT_OFF_NOTE);
    if (g->n_failed) sheet_note(s, FAILED_COUNT_NOTE ".", g->n_failed, g->n_runs);
    repeats_note(s, &g->repeats);
    if (g->settings) sheet_note(s, "%s.", SETTINGS_NOTE);
}

/* --- for programs ------------------------------------------------------------------------------------------------- */

static void add_data_columns(struct sheet *s) {
    static const char *const names[] = {"profile",   "model",     "task",   "protocol", "estimate",     "n",
                                        "n_cut_off", "published", "n_grid", "n_failed", "n_failed_grid"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) sheet_column(s, SHEET_LEFT, "%s", names[i]);
}

static void fill_data(struct sheet *s, const struct group *g) {
    for (int i = 0; i < g->n; i++) {
        const struct report_row *row = g->entries[i].row;
        sheet_row(s);
        sheet_text(s, "%s", row->profile);
        sheet_text(s, "%s", g->entries[i].label);
        sheet_text(s, "%s", row->run->task);
        sheet_text(s, "%s", protocol_of(g->protocol)->name);
        sheet_real(s, "%g", row->estimate);
        sheet_int(s, row->n);
        sheet_int(s, row->n_cut);
        sheet_real(s, "%g", row->published.value);
        sheet_int(s, row->n_all);
        sheet_int(s, row->n_failed);
        sheet_int(s, row->n_failed_all);
    }
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

static bool stand_together(const struct group *g, const struct report_table *a, const struct report_table *b) {
    return strcmp(a->profile, b->profile) == 0 &&
           (!g->of_suite || strcmp(a->rows->run->suite, b->rows->run->suite) == 0);
}

/* The tables that stand together with table `first`, in their order; none where an earlier one does. */
static void gather(struct group *g, const struct report_tables *tables, int first) {
    g->n = g->n_tables = 0;
    for (int i = 0; i < first; i++)
        if (stand_together(g, &tables->list[i], &tables->list[first])) return;
    for (int i = first; i < tables->n; i++) {
        if (!stand_together(g, &tables->list[i], &tables->list[first])) continue;
        for (int k = 0; k < tables->list[i].n_rows; k++)
            g->entries[g->n++] = (struct entry){.row = &tables->list[i].rows[k], .table = g->n_tables};
        g->tables[g->n_tables++] = &tables->list[i];
    }
}

/* One sheet a profile with several tasks, each with its legend; one a profile of a suite, the legend below the last; of
 * data one for all. */
static enum status add_groups(struct sheets *sheets, const struct report_tables *tables, struct group *g, bool data,
                              struct error *e) {
    struct sheet *s = NULL;
    int groups = 0;
    for (int i = 0; i < tables->n; i++) {
        gather(g, tables, i);
        if (g->n_tables < (g->of_suite ? 1 : 2)) continue;
        TRY(name_entries(g, e));
        if (!data || !groups) s = sheets_add(sheets);
        if (data && !groups) add_data_columns(s);
        groups++;
        if (data)
            fill_data(s, g);
        else
            fill(s, g);
        if (data || g->of_suite) continue;
        add_legend(s, g);
        g->cut = g->settings = g->published = g->best = false;
        g->n_runs = g->n_failed = 0;
        g->repeats = (struct repeats){0};
    }
    if (!data && g->of_suite && groups) add_legend(s, g);
    return groups ? ST_OK : fail(e, ST_DATA, "no profile has been run on several of these tasks");
}

enum status across_make(struct sheets *sheets, const struct report_tables *tables, bool of_suite, bool data,
                        struct error *e) {
    int rows = 0;
    for (int i = 0; i < tables->n; i++) rows += tables->list[i].n_rows;
    struct group g = {.protocol = tables->protocol,
                      .confirm = tables->confirm,
                      .of_suite = of_suite,
                      .tables = calloc((size_t)tables->n + 1, sizeof *g.tables),
                      .entries = calloc((size_t)rows + 1, sizeof *g.entries)};
    enum status status = g.tables && g.entries ? add_groups(sheets, tables, &g, data, e)
                                               : fail(e, ST_MEMORY, "no memory for a report of %d rows", rows);
    free(g.tables);
    free(g.entries);
    return status;
}

static enum status build(struct sheets *sheets, const struct report_tables *tables, struct error *e) {
    return across_make(sheets, tables, false, false, e);
}

static enum status build_data(struct sheets *sheets, const struct report_tables *tables, struct error *e) {
    return across_make(sheets, tables, false, true, e);
}

const struct report report_across = {
    .name = "across",
    .help = "the tasks of a profile side by side: a row a model, accuracy and the published number",
    .build = build,
    .build_data = build_data,
};
