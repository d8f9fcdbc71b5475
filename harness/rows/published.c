/* published.c - finds the published number for a run. */
#include "harness/rows/published.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/rows/stats.h"
#include "harness/store/files.h"
#include "models/model.h"
#include "tasks/data/datasets.h"
#include "tasks/task.h"

enum status published_read(struct published *p, const char *out, struct error *e) {
    char path[PATH_BYTES];
    *p = (struct published){0};
    TRY(path_format(path, sizeof path, e, "%s/published.csv", out));
    p->own = access(path, R_OK) == 0;
    if (!p->own) TRY(shipped_file_find("results/published.csv", path, sizeof path, e));
    return csv_read_edited(&p->table, path, e);
}

void published_free(struct published *p) {
    csv_free(&p->table);
}

/* Whether `flags` has every pair of `wanted`. */
static bool flags_include(const struct label *flags, const struct label *wanted) {
    for (int i = 0; i < wanted->n; i++) {
        const char *own = flags ? label_get(flags, label_key(wanted, i)) : NULL;
        if (!own || strcmp(own, label_value(wanted, i)) != 0) return false;
    }
    return true;
}

/* Returns how many options and flags the published model "name:a=1,b=2@flag=3" has, if the mixer has them all; else
 * -1. */
static int count_matches(const char *text, const struct label *mixer, const struct label *flags) {
    struct label wanted, more;
    char name[LABEL_TEXT];
    const struct model *model = model_find(label_name(mixer));
    if (text_part(&text, "@", name, sizeof name, NULL) != ST_OK) return -1;
    if (label_parse(&wanted, "published model", name, NULL) != ST_OK) return -1;
    if (label_parse_pairs(&more, "published model", text + (*text == '@'), ",", NULL) != ST_OK) return -1;
    if (model) (void)label_normalise(&wanted, model->options, NULL);
    return label_includes(mixer, &wanted) && flags_include(flags, &more) ? wanted.n + more.n : -1;
}

bool published_model_fits(const char *text, const struct label *mixer, const struct label *flags) {
    return count_matches(text, mixer, flags) >= 0;
}

/* Papers print accuracies with at least two decimals, but the file may have "1" for 1.00. */
#define LEAST_DECIMALS 2

static struct published_value value_at(const struct published *p, int i) {
    struct published_value v = PUBLISHED_NONE;
    int64_t n = 0;
    const char *value = csv_cell(&p->table, i, "value"), *point = strchr(value, '.'),
               *protocol = csv_text_plain(csv_cell(&p->table, i, "protocol"));
    int printed = point ? (int)strspn(point + 1, "0123456789") : 0;
    v.kind = csv_cell(&p->table, i, "spread_kind");
    v.arxiv = csv_cell(&p->table, i, "arxiv");
    v.source = csv_cell(&p->table, i, "table");
    v.decimals = printed;
    v.rounding = 0.5 * pow(10, -(double)(printed > LEAST_DECIMALS ? printed : LEAST_DECIMALS));
    if (!parse_double(value, &v.value)) v.value = NAN;
    if (!parse_double(csv_cell(&p->table, i, "spread"), &v.spread)) v.spread = NAN;
    if (parse_int64(csv_cell(&p->table, i, "n"), &n) && n > 0 && n < INT_MAX) v.n = (int)n;
    v.settings = strcmp(csv_cell(&p->table, i, "settings"), "variants") == 0;
    v.best = strcmp(protocol, "best-of-grid") == 0;
    v.unsaid = !*protocol;
    return v;
}

void published_format(const struct published_value *v, char format[PUBLISHED_FORMAT_BYTES]) {
    snprintf(format, PUBLISHED_FORMAT_BYTES, "%%.%df", v->decimals > 9 ? 9 : v->decimals);
}

double published_half_width(const struct published_value *v) {
    if (!isfinite(v->spread)) return 0;
    if (!strcmp(v->kind, "sd")) return v->n > 1 ? stats_t_quantile(0.975, v->n - 1) * v->spread / sqrt(v->n) : 0;
    return strncmp(v->kind, "ci", 2) == 0 ? v->spread : 0;
}

static bool is_asked(const struct published *p, int i, const char *column, const char *asked) {
    return !asked || !strcmp(csv_cell(&p->table, i, column), asked);
}

struct published_value published_find(const struct published *p, const struct published_query *q, const char **row) {
    struct published_value found = PUBLISHED_NONE;
    int named = -1, valued = -1; /* matches of the row that gave the name, and of the row that gave the value */
    if (row) *row = "";
    for (int i = 0; i < p->table.rows; i++) {
        if (!is_asked(p, i, "task", q->task) || !is_asked(p, i, "arxiv", q->arxiv) ||
            !is_asked(p, i, "table", q->source))
            continue;
        int matches = count_matches(csv_cell(&p->table, i, "model"), q->mixer, q->flags);
        if (row && matches > named) {
            *row = csv_text_plain(csv_cell(&p->table, i, "row"));
            named = matches;
        }
        if (matches <= valued || !is_asked(p, i, "metric", q->metric)) continue;
        struct published_value v = value_at(p, i);
        if (!isfinite(v.value)) continue;
        found = v;
        valued = matches;
    }
    return found;
}

bool published_has_task(const struct published *p, const char *arxiv, const char *table, const char *task) {
    for (int i = 0; i < p->table.rows; i++)
        if (!strcmp(csv_cell(&p->table, i, "arxiv"), arxiv) && !strcmp(csv_cell(&p->table, i, "table"), table) &&
            !strcmp(csv_cell(&p->table, i, "task"), task))
            return true;
    return false;
}

bool published_data_fits(const struct run *run) {
    bool known = run->n_train > 0 && run->n_val > 0 && run->n_test > 0;
    return !known || dataset_is_whole(run->task, run->n_train + run->n_val + run->n_test);
}

/* Removes the numbers of validation and test examples from a task's label: "parity:max_length=12,n_test=4096" becomes
 * "parity:max_length=12". So a run with another number of test examples still finds the paper's number; setting.h then
 * says that the setting differs. */
static void name_without_counts(const char *task, char *name, size_t size) {
    struct label label;
    snprintf(name, size, "%s", task);
    if (label_parse(&label, "task", task, NULL) != ST_OK) return;
    label_remove(&label, "n_val");
    label_remove(&label, "n_test");
    label_format(&label, name, size, NULL); /* cannot fail: it is no longer than the task's */
}

struct published_value published_of_run(const struct published *p, const struct run *run, const struct label *key) {
    char task[LABEL_TEXT];
    struct label mixer;
    const struct model *model = model_find(run->model);
    if (run_mixer(run, &mixer, NULL) != ST_OK) return PUBLISHED_NONE;
    if (model) (void)label_canonical(&mixer, model->options, NULL);
    name_without_counts(run->task, task, sizeof task);
    return published_find(
        p, &(struct published_query){.task = task, .metric = metric_names[run->metric], .mixer = &mixer, .flags = key},
        NULL);
}
