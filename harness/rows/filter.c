/* filter.c - see filter.h. */
#include "harness/rows/filter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/study/row_key.h"
#include "tasks/task.h"

static const struct report_filter everything = {0};

/* Rewrites a value of the filter, or each of the values between |, in the form that row keys have. If the option does
 * not accept one, it stays unchanged, because an old record may have it; `why` then gets the reason. */
static enum status write_as_in_keys(struct label *where, int i, struct error *why, struct error *e) {
    char key[128], all[LABEL_TEXT] = "", value[LABEL_TEXT], canonical[OPTION_TEXT + 1];
    snprintf(key, sizeof key, "%s", label_key(where, i));
    struct error untaken;
    size_t used = 0;
    for (const char *at = label_value(where, i);; at++) {
        TRY(text_part(&at, "|", value, sizeof value, e));
        bool taken = row_key_canonical(key, "--where", value, canonical, sizeof canonical, &untaken) == ST_OK;
        if (!taken) *why = untaken;
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", taken ? canonical : value, *at ? "|" : "");
        if (used >= sizeof all)
            return fail(e, ST_USAGE, "--where %s: its values are longer than %zu characters; name fewer", key,
                        sizeof all - 1);
        if (!*at) return label_set(where, key, all, e);
    }
}

static int by_id(const void *left, const void *right) {
    const struct run_rank *a = left, *b = right;
    int order = strcmp(a->id, b->id);
    return order ? order : a->rank - b->rank;
}

/* A list of runs is searched once per record. */
static enum status rank_runs(struct filter *f, struct error *e) {
    int n = f->asked->n_runs;
    if (!f->asked->runs) return ST_OK;
    f->ranks = malloc((size_t)n * sizeof *f->ranks + 1);
    if (!f->ranks) return fail(e, ST_MEMORY, "no memory for a report of %d runs", n);
    for (int i = 0; i < n; i++) f->ranks[i] = (struct run_rank){f->asked->runs[i], i};
    qsort(f->ranks, (size_t)n, sizeof *f->ranks, by_id);
    for (int i = 1; i < n; i++)
        if (!strcmp(f->ranks[i].id, f->ranks[i - 1].id)) f->ranks[i].rank = f->ranks[i - 1].rank;
    return ST_OK;
}

enum status filter_read(struct filter *f, const struct report_filter *asked, struct error *e) {
    *f = (struct filter){.asked = asked ? asked : &everything};
    if (f->asked->confirm && f->asked->protocol == PROTOCOL_BEST_OF_GRID)
        return fail(e, ST_USAGE, PROTOCOL_KEEPS_NO_SEEDS "; leave one of the two out");
    TRY(label_parse_pairs(&f->where, "--where", f->asked->where, " ", e));
    if (f->where.n > FILTER_PAIRS)
        return fail(e, ST_USAGE, "--where has %d pairs, expected at most %d", f->where.n, FILTER_PAIRS);
    /* from the last to the first, so that untaken keeps the first one's error */
    for (int i = f->where.n - 1; i >= 0; i--) TRY(write_as_in_keys(&f->where, i, &f->untaken, e));
    return rank_runs(f, e);
}

void filter_free(struct filter *f) {
    free(f->ranks);
}

/* Whether a name that the user asked for is the task's name, with or without its fold. */
static bool names_task(const struct filter *f, const char *name, const char *task) {
    char whole[RECORD_TEXT];
    if (f->asked->exact) return strcmp(name, task) == 0;
    task_label_without(task, OPT_FOLD, whole, sizeof whole);
    return strcmp(name, task) == 0 || strcmp(name, whole) == 0;
}

int filter_task_rank(const struct filter *f, const char *task) {
    char name[RECORD_TEXT];
    if (!f->asked->task) return 0;
    const char *at = f->asked->task;
    for (int i = 0; *(at += strspn(at, " ")); i++) {
        if (text_part(&at, " ", name, sizeof name, NULL) != ST_OK) return -1;
        if (names_task(f, name, task)) return i;
    }
    return -1;
}

int filter_run_rank(const struct filter *f, const char *run_id) {
    int low = 0, high = f->asked->n_runs;
    while (low < high) {
        int middle = low + (high - low) / 2, order = strcmp(f->ranks[middle].id, run_id);
        if (order == 0) return f->ranks[middle].rank;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

bool filter_passes(const struct filter *f, const struct run *run) {
    if (filter_task_rank(f, run->task) < 0) return false;
    return !f->asked->runs || filter_run_rank(f, run->run_id) >= 0;
}

/* Returns the run's value of an option; NULL: it has none. `number` is memory for rate and seed, which the row key
 * lacks. */
static const char *value_of(const struct run *run, const struct label *key, const char *name, char number[64]) {
    if (!strcmp(name, "lr"))
        format_double(run->lr, number, 64);
    else if (!strcmp(name, "seed"))
        snprintf(number, 64, "%" PRIu64, run->seed);
    else
        return label_get(key, name);
    return number;
}

/* Whether a value is one of those between |. */
static bool is_one_of(const char *value, const char *wanted) {
    size_t n = strlen(value);
    for (; wanted; wanted = strchr(wanted, '|'), wanted += wanted != NULL)
        if (!strncmp(wanted, value, n) && (wanted[n] == '|' || !wanted[n])) return true;
    return false;
}

bool filter_matches(struct filter *f, const struct run *run, const struct label *key) {
    bool all = true;
    for (int i = 0; i < f->where.n; i++) {
        char number[64];
        const char *value = value_of(run, key, label_key(&f->where, i), number);
        bool same = value && is_one_of(value, label_value(&f->where, i));
        f->met[i] = f->met[i] || value;
        f->found[i] = f->found[i] || same;
        all = all && same;
    }
    return all;
}

static bool is_on_record(const struct filter *f, const struct record_set *set, const char *name) {
    for (int i = 0; i < set->n; i++)
        if (names_task(f, name, set->list[i].run.task)) return true;
    return false;
}

/* Returns a recorded task with the same name but other options; NULL: there is none. */
static const char *kin_of(const struct record_set *set, const char *asked) {
    const char *kin = NULL;
    size_t n = strcspn(asked, ":");
    for (int i = 0; i < set->n; i++) {
        const char *task = set->list[i].run.task;
        if (!strncmp(task, asked, n) && (task[n] == ':' || !task[n])) kin = task;
    }
    return kin;
}

/* Refuses a task that has no run, because a report of several tasks would lack it without saying so. */
enum status filter_check_tasks(const struct filter *f, const struct record_set *set, const char *out, struct error *e) {
    char name[RECORD_TEXT];
    for (const char *at = f->asked->task ? f->asked->task : ""; *(at += strspn(at, " "));) {
        TRY(text_part(&at, " ", name, sizeof name, e));
        if (is_on_record(f, set, name)) continue;
        const char *kin = kin_of(set, name);
        return fail(e, ST_DATA, "there is no finished run of task %.300s in %s; %s%s%s", name, out,
                    kin ? "it has --task '" : "lrnn bench makes some", kin ? kin : "", kin ? "'" : "");
    }
    return ST_OK;
}

/* A filter by an option that no run has may mean a flag of the report: task and profile are no options of a run.
 * Returns this flag; NULL: there is none. */
static const char *flag_meant(const char *key) {
    return !strcmp(key, "task") ? "--task" : !strcmp(key, "profile") ? "--profile" : NULL;
}

enum status filter_found_nothing(const struct filter *f, const char *out, struct error *e) {
    const struct report_filter *a = f->asked;
    for (int i = 0; i < f->where.n; i++) {
        const char *key = label_key(&f->where, i), *flag = flag_meant(key);
        if (flag && !f->found[i])
            return fail(e, ST_USAGE, "--where %s=%s: no run in %s has that; tables are chosen by %s %s", key,
                        label_value(&f->where, i), out, flag, label_value(&f->where, i));
    }
    for (int i = 0; i < f->where.n; i++)
        if (!f->met[i])
            return fail(
                e, ST_USAGE,
                "--where %s=%s: no run%s%s in %s has an option of that name; a record's `identity` has the names",
                label_key(&f->where, i), label_value(&f->where, i), a->task ? " of " : "", a->task ? a->task : "", out);
    if (f->untaken.status != ST_OK) return fail(e, f->untaken.status, "%.900s", f->untaken.text);
    return fail(e, ST_DATA, "there is no finished run%s%s%s%s%s%s in %s; lrnn bench makes some",
                a->task ? " of task " : "", a->task ? a->task : "", a->profile ? " with profile " : "",
                a->profile ? a->profile : "", a->where ? " where " : "", a->where ? a->where : "", out);
}
