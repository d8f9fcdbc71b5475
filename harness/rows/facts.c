/* facts.c - see facts.h. */
#include "harness/rows/facts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/rows/row_label.h"
#include "harness/rows/setting.h"
#include "harness/store/logs.h"
#include "harness/study/profile.h"
#include "harness/study/row_key.h"
#include "tasks/task.h"

/* --- kinds of runs ------------------------------------------------------------------------------------------------ */

static bool is_mixed(const struct run_record *r) {
    return r->run.mixed_builds == 1;
}

static bool is_dirty(const struct run_record *r) {
    return r->run.git_dirty == 1;
}

static bool is_of_other_products(const struct run_record *r) {
    return run_has_other_products(&r->run);
}

static bool is_walked(const struct run_record *r) {
    return r->run.walked == 1;
}

static bool is_drawn_again(const struct run_record *r) {
    return r->replaced > 0;
}

static bool is_to_be_done_again(const struct run_record *r) {
    return r->again;
}

static const struct {
    bool (*is)(const struct run_record *r); /* says whether a run is of this kind; NULL: use key_sees_future */
    const char *sentence;                   /* after "3 of 15 runs " */
} kinds[] = {
    {NULL, "have the mark " FUTURE_NOTE},
    {is_mixed, "went on from a checkpoint of another build (--force-resume): their bits are no one's"},
    {is_dirty, "were made by a program whose sources differed from their commit"},
    {is_of_other_products, OTHER_PRODUCTS_NOTE},
    {is_walked, "walked their steps on the device instead of replaying a captured step, which is slower"},
    {is_drawn_again, "were done again (--force); their earlier results are in no number here"},
    {is_to_be_done_again, "are being done again, or that was broken off: their former results stand here"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };
_Static_assert(KINDS <= FACTS_MOST, "struct facts has room for them");

/* --- flags -------------------------------------------------------------------------------------------------------- */

/* Adds the default of eval-every for the run: one validation per epoch, but at most 200. */
static void add_validations(struct label *usual, const struct run *run) {
    struct config c = {.batch = run->batch, .steps = run->max_steps};
    char every[32];
    if (run->batch < 1 || run->n_train < 1 || run->max_steps < 1 || label_get(usual, "eval-every")) return;
    snprintf(every, sizeof every, "%" PRId64, config_length(&c, run->n_train).eval_every);
    (void)label_set(usual, "eval-every", every, NULL);
}

/* Lists the flags that the run's profile sets to values other than their defaults. */
static void find_usual(struct label *usual, const struct run *run, const char *profile) {
    const struct profile *p;
    struct label task, flags = {0};
    *usual = (struct label){0};
    if (label_set_name(usual, "", NULL) != ST_OK) return;
    if (label_parse(&task, "task", run->task, NULL) == ST_OK &&
        profile_find(label_name(&task), run->suite, profile, &p, NULL) == ST_OK &&
        profile_flags(p, &flags, NULL) != ST_OK)
        flags.n = 0;
    for (int i = 0; i < flags.n; i++) {
        char value[OPTION_TEXT + 1];
        const char *key = label_key(&flags, i);
        if (row_key_canonical(key, "", label_value(&flags, i), value, sizeof value, NULL) == ST_OK)
            (void)label_set(usual, key, value, NULL);
    }
    add_validations(usual, run);
}

/* Removes the pairs that `other` lacks, or has with another value. */
static void keep_common(struct label *l, const struct label *other) {
    for (int i = l->n - 1; i >= 0; i--) {
        char key[128];
        snprintf(key, sizeof key, "%s", label_key(l, i));
        if (strcmp(row_key_value(other, key), label_value(l, i)) != 0) label_remove(l, key);
    }
}

static bool is_usual(const struct facts *f, const char *key, const char *value) {
    const struct option *o = row_key_flag(key);
    const char *usual = label_get(&f->usual, key);
    char canonical[OPTION_TEXT + 1];
    if (!o) return strcmp(key, "dtype") != 0 || !strcmp(value, REAL_NAME);
    if (o->flags & OPT_AUTO && !usual) return true; /* the flag follows from the sizes, and has its own column */
    if (!usual && row_key_canonical(key, "", o->value, canonical, sizeof canonical, NULL) == ST_OK) usual = canonical;
    return usual && !strcmp(usual, value);
}

void facts_shared(const struct facts *f, char text[FACT_TEXT]) {
    text[0] = 0;
    for (int i = 0; f->n_rows && i < f->shared.n; i++) {
        const char *key = label_key(&f->shared, i), *value = label_value(&f->shared, i);
        size_t used = strlen(text);
        if (!is_usual(f, key, value)) snprintf(text + used, FACT_TEXT - used, "%s%s=%s", used ? " " : "", key, value);
    }
}

/* --- speeds ------------------------------------------------------------------------------------------------------- */

void speed_place(const struct perf_row *p, char *text, size_t size) {
    snprintf(text, size, "%" PRId64 " thread%s, %s, %s, machine %.8s", p->threads, p->threads == 1 ? "" : "s",
             *p->dtype ? p->dtype : "fp32", *p->device ? p->device : "cpu", *p->machine_id ? p->machine_id : "unknown");
}

void facts_add_speed(struct facts *f, const struct perf_row *speed) {
    char own[SPEED_PLACE], first[SPEED_PLACE];
    if (!f->n_speeds++) f->speed = *speed;
    speed_place(speed, own, sizeof own);
    speed_place(&f->speed, first, sizeof first);
    f->speeds_differ = f->speeds_differ || strcmp(own, first) != 0;
    f->builds_differ = f->builds_differ || !perf_is_alike(&f->speed, speed);
}

/* --- all together ------------------------------------------------------------------------------------------------- */

void facts_add_runs(struct facts *f, const struct label *key, const char *profile, const struct run_record *const *runs,
                    int n) {
    struct label usual;
    const struct run *run = &runs[0]->run;
    bool of_another = !f->n_rows || strcmp(f->task, run->task) != 0 || strcmp(f->profile, profile) != 0;
    if (!f->n_rows) f->shared = *key;
    if (of_another) find_usual(&usual, run, profile);
    if (of_another && f->n_rows) keep_common(&f->usual, &usual);
    if (!f->n_rows) f->usual = usual;
    keep_common(&f->shared, key);
    f->task = run->task;
    f->profile = profile;
    f->n_rows++;
    f->outdated = f->outdated || row_outdated(runs[0]);
    for (int i = 0; i < n; i++) {
        if (runs[i]->set_aside) continue;
        f->n++;
        for (int k = 0; k < KINDS; k++) f->count[k] += kinds[k].is ? kinds[k].is(runs[i]) : key_sees_future(key);
    }
}

void facts_add(struct facts *f, const struct report_row *row) {
    if (!f->n_rows) f->asked = row->asked;
    facts_add_runs(f, &row->key, row->profile, row->all, row->n_all);
    f->uneven = f->uneven || row->uneven;
    if (isfinite(row->tok_per_s)) facts_add_speed(f, &row->speed);
}

/* Writes how the user has chosen among all runs; false: the user has not chosen. */
static bool selection(const struct facts *f, char text[FACT_TEXT]) {
    if (!f->asked || !f->asked->where || !*f->asked->where) return false;
    snprintf(text, FACT_TEXT, "Of all runs those alone with --where '%s'", f->asked->where);
    return true;
}

bool facts_sentence(const struct facts *f, int i, char text[FACT_TEXT]) {
    int at = 0;
    char flags[FACT_TEXT];
    facts_shared(f, flags);
    if (*flags && at++ == i) return snprintf(text, FACT_TEXT, "All rows: %.1900s", flags) > 0;
    if (f->uneven && at++ == i)
        return snprintf(text, FACT_TEXT, "The grid is not complete: the rates have different numbers of seeds") > 0;
    if (f->outdated && at++ == i) return snprintf(text, FACT_TEXT, "%s", OUTDATED_NOTE) > 0;
    for (int k = 0; k < KINDS; k++)
        if (f->count[k] && at++ == i)
            return snprintf(text, FACT_TEXT, "%d of %d runs %s", f->count[k], f->n, kinds[k].sentence) > 0;
    return selection(f, text) && at == i;
}
