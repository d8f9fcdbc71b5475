/* expect.c - see expect.h. */
#include "harness/gate/expect.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/rows/rows.h"
#include "harness/store/schema.h"
#include "models/model.h"

#define STEPS_TO "steps_to_"

/* Figures with names of their own, and the least and largest value that each can have. */
static const struct {
    const char *name;
    double low, high;
} own_figures[] = {{"acc", 0, 1}, {"solved", 0, 1}, {STEPS_TO "90", 1, INFINITY}, {FIGURE_SPEED, 0, INFINITY}};
#define OWN_FIGURES (int)(sizeof own_figures / sizeof *own_figures)

static bool is_number(const struct field *f) {
    return f->type == FIELD_INT || f->type == FIELD_REAL;
}

/* Gives the percent of "steps_to_90"; 0: it is another figure. */
static int percent_of(const char *figure) {
    int64_t percent;
    size_t n = strlen(STEPS_TO);
    bool is = !strncmp(figure, STEPS_TO, n) && parse_int64(figure + n, &percent) && percent >= 1 && percent <= 100;
    return is ? (int)percent : 0;
}

/* Returns name number i, for the search of the nearest; NULL past the end. */
static const char *figure_name(const void *list, int i) {
    (void)list;
    if (i < OWN_FIGURES) return own_figures[i].name;
    i -= OWN_FIGURES;
    for (const struct field *f = runs_table.fields; f->name; f++)
        if (is_number(f) && i-- == 0) return f->name;
    return NULL;
}

static enum status find_figure(const char *name, double *low, double *high, struct error *e) {
    int n = 0;
    *low = 0;
    *high = INFINITY;
    for (int i = 0; i < OWN_FIGURES; i++)
        if (!strcmp(own_figures[i].name, name)) {
            *low = own_figures[i].low;
            *high = own_figures[i].high;
            return ST_OK;
        }
    if (percent_of(name)) return ST_OK;
    const struct field *f = table_field(&runs_table, name);
    if (f && is_number(f)) {
        if (!strcmp(f->unit, "0..1")) *high = 1;
        return ST_OK;
    }
    while (figure_name(NULL, n)) n++;
    const char *near = nearest_name(name, n, figure_name, NULL);
    return fail(e, ST_USAGE,
                "unknown figure '%.60s'%s%s%s acc, solved, steps_to_90 and tokens/s are figures, and every number that "
                "`lrnn schema runs` lists",
                name, near ? "; did you mean '" : ";", near ? near : "", near ? "'?" : "");
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* Moves *at past the next word, which ends before a blank or one of `stops`. */
static enum status next_word(const char **at, const char *stops, char *word, size_t size, struct error *e) {
    TRY(text_part(at, stops, word, size, e));
    *at += strspn(*at, " \t");
    return ST_OK;
}

#define FORM "expected 'expect FIGURE >= BOUND', with >=, <= or =, then 'of baseline' and 'for WORD...' if wanted"

static enum status read_line(struct expectation *x, const char *text, struct error *e) {
    char sense[8], bound[64], baseline[16];
    double low, high;
    const char *at = text;
    TRY(next_word(&at, " \t<>=", x->figure, sizeof x->figure, e));
    size_t n = strspn(at, "<>=");
    if (!*x->figure || n == 0 || n >= sizeof sense) return fail(e, ST_USAGE, "'%.60s': " FORM, text);
    snprintf(sense, sizeof sense, "%.*s", (int)n, at);
    int s = 0;
    while (s < SENSES && strcmp(sense_names[s], sense) != 0) s++;
    if (s == SENSES) return fail(e, ST_USAGE, "'%s' is no comparison; " FORM, sense);
    x->sense = (enum sense)s;
    at += n;
    at += strspn(at, " \t");
    TRY(next_word(&at, " \t", bound, sizeof bound, e));
    if (!parse_double(bound, &x->bound) || !isfinite(x->bound))
        return fail(e, ST_USAGE, "'%s' is no number; " FORM, bound);
    if (!strncmp(at, "of", 2) && strchr(" \t", at[2])) {
        TRY(next_word(&at, " \t", baseline, sizeof baseline, e));
        TRY(next_word(&at, " \t", baseline, sizeof baseline, e));
        if (strcmp(baseline, "baseline") != 0) return fail(e, ST_USAGE, "'of %s': expected 'of baseline'", baseline);
        x->of_baseline = true;
    }
    if (!strncmp(at, "for", 3) && strchr(" \t", at[3])) {
        TRY(text_copy(at + 3 + strspn(at + 3, " \t"), x->words, sizeof x->words, e));
        if (!*x->words) return fail(e, ST_USAGE, "'for' names no task and no model; " FORM);
    } else if (*at)
        return fail(e, ST_USAGE, "'%.60s' stands after the bound; " FORM, at);
    TRY(find_figure(x->figure, &low, &high, e));
    if (x->of_baseline && x->bound <= 0)
        return fail(e, ST_USAGE, "%s of baseline: expected a number above 0, such as .9", bound);
    if (!x->of_baseline && !(x->bound >= low && x->bound <= high))
        return fail(e, ST_USAGE, "%s %s %s: no %s is below %g or above %g", x->figure, sense, bound, x->figure, low,
                    high);
    return ST_OK;
}

enum status expectations_read(const struct plan_file *plan, const char *path, struct expectation *list, int *n,
                              struct error *e) {
    size_t prefix = strlen(PLAN_EXPECT);
    *n = 0;
    for (int i = 0; i < plan->lines.n; i++) {
        struct error why = {ST_OK, ""};
        const char *key = label_key(&plan->lines, i);
        if (strncmp(key, PLAN_EXPECT, prefix) != 0) continue;
        if (*n == EXPECT_MOST)
            return fail(e, ST_USAGE, "%.300s line %s: a plan expects at most %d things", path, key + prefix,
                        EXPECT_MOST);
        struct expectation *x = &list[(*n)++];
        *x = (struct expectation){.line = atoi(key + prefix)};
        if (read_line(x, label_value(&plan->lines, i), &why) != ST_OK)
            return fail(e, why.status, "%.300s line %d: %.700s", path, x->line, why.text);
    }
    if (*n) return ST_OK;
    return fail(e, ST_USAGE, "%.300s expects nothing; add a line such as 'expect acc >= .99' (docs/ci.md)", path);
}

/* --- cells -------------------------------------------------------------------------------------------------------- */

bool expectation_is_for(const struct expectation *x, const struct label *task, const struct label *mixer) {
    bool asked[2] = {false, false}, met[2] = {false, false};
    for (const char *at = x->words; *at; at += strspn(at, " \t")) {
        char word[LABEL_TEXT];
        struct label label;
        if (text_part(&at, " \t", word, sizeof word, NULL) != ST_OK ||
            label_parse(&label, "model", word, NULL) != ST_OK)
            return false;
        bool of_mixer = model_find(label_name(&label)) != NULL;
        asked[of_mixer] = true;
        met[of_mixer] = met[of_mixer] || label_includes(of_mixer ? mixer : task, &label);
    }
    return (met[0] || !asked[0]) && (met[1] || !asked[1]);
}

enum status expectation_check_words(const struct expectation *x, const char *path, const struct label *tasks,
                                    const struct label *mixers, int n, struct error *e) {
    for (const char *at = x->words; *at; at += strspn(at, " \t")) {
        struct expectation alone = {.line = x->line};
        bool met = false;
        TRY(text_part(&at, " \t", alone.words, sizeof alone.words, e));
        for (int i = 0; i < n && !met; i++) met = expectation_is_for(&alone, &tasks[i], &mixers[i]);
        if (!met)
            return fail(e, ST_USAGE,
                        "%.300s line %d: the plan has no cell of '%.60s'; one of its cells is %.60s, %.60s", path,
                        x->line, alone.words, label_name(&tasks[0]), label_name(&mixers[0]));
    }
    return ST_OK;
}

double figure_of(const char *figure, const struct run_record *r) {
    int percent = percent_of(figure);
    if (!strcmp(figure, "acc")) return run_test_metric(&r->run);
    if (!strcmp(figure, "solved")) return r->run.solved == 1;
    for (int64_t i = 0; percent && i < r->n_curve; i++)
        if (r->curve[i].split == SPLIT_VAL && run_point_metric(&r->run, &r->curve[i]) >= percent / 100.0)
            return (double)r->curve[i].step;
    if (percent) return INFINITY;
    const struct field *f = table_field(&runs_table, figure);
    const char *at = (const char *)&r->run + f->offset;
    if (f->type == FIELD_REAL) return *(const double *)(const void *)at;
    int64_t whole = *(const int64_t *)(const void *)at;
    return whole == -1 ? NAN : (double)whole;
}
