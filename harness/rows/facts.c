/* facts.c - see facts.h. */
#include "harness/rows/facts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/rows/setting.h"
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

static bool is_drawn_again(const struct run_record *r) {
    return r->replaced > 0;
}

static const struct {
    bool (*is)(const struct run_record *r);
    const char *sentence; /* after "3 of 15 runs " */
} kinds[] = {
    {is_mixed, "went on from a checkpoint of another build (--force-resume): their bits are no one's"},
    {is_dirty, "were made by a program whose sources differed from their commit"},
    {is_of_other_products, OTHER_PRODUCTS_NOTE},
    {is_drawn_again, "were done again (--force); their earlier results are in no number here"},
};
enum { KINDS = sizeof kinds / sizeof *kinds };
_Static_assert(KINDS <= FACTS_MOST, "struct facts has room for them");

/* --- flags -------------------------------------------------------------------------------------------------------- */

/* Fills the flags that the row's profile has otherwise than by default. */
static void find_usual(struct label *usual, const struct report_row *row) {
    const struct profile *p;
    struct label task, flags;
    *usual = (struct label){0};
    if (label_set_name(usual, "", NULL) != ST_OK || label_parse(&task, "task", row->run->task, NULL) != ST_OK ||
        profile_find(label_name(&task), row->run->suite, row->profile, &p, NULL) != ST_OK ||
        profile_flags(p, &flags, NULL) != ST_OK)
        return;
    for (int i = 0; i < flags.n; i++) {
        char value[OPTION_TEXT + 1];
        const char *key = label_key(&flags, i);
        if (row_key_canonical(key, "", label_value(&flags, i), value, sizeof value, NULL) == ST_OK)
            (void)label_set(usual, key, value, NULL);
    }
}

/* Takes away the pairs that another label lacks or has otherwise. */
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
    if (o->flags & OPT_AUTO) return true; /* follows from the sizes, and has a column */
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

void speed_place(const struct report_row *row, char *text, size_t size) {
    const struct perf_row *p = &row->speed;
    snprintf(text, size, "%" PRId64 " thread%s, %s, %s, machine %.8s", p->threads, p->threads == 1 ? "" : "s",
             *p->dtype ? p->dtype : "fp32", *p->device ? p->device : "cpu", *p->machine_id ? p->machine_id : "unknown");
}

static void add_speed(struct facts *f, const struct report_row *row) {
    char own[128], first[128];
    if (!isfinite(row->tok_per_s)) return;
    if (!f->fastest) f->fastest = row;
    speed_place(row, own, sizeof own);
    speed_place(f->fastest, first, sizeof first);
    f->speeds_differ = f->speeds_differ || strcmp(own, first) != 0;
}

/* --- all together ------------------------------------------------------------------------------------------------- */

void facts_add(struct facts *f, const struct report_row *row) {
    struct label usual;
    bool of_another = !f->n_rows || strcmp(f->task, row->run->task) != 0 || strcmp(f->profile, row->profile) != 0;
    if (!f->n_rows) *f = (struct facts){.asked = row->asked, .shared = row->key};
    if (of_another) find_usual(&usual, row);
    if (of_another && f->n_rows) keep_common(&f->usual, &usual);
    if (!f->n_rows) f->usual = usual;
    keep_common(&f->shared, &row->key);
    f->task = row->run->task;
    f->profile = row->profile;
    f->n_rows++;
    f->outdated = f->outdated || row->outdated;
    for (int i = 0; i < row->n_all; i++) {
        if (row->all[i]->set_aside) continue;
        f->n++;
        for (int k = 0; k < KINDS; k++) f->count[k] += kinds[k].is(row->all[i]);
    }
    add_speed(f, row);
}

/* Writes the reader's choice among all runs; false: there is none. */
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
    if (f->outdated && at++ == i) return snprintf(text, FACT_TEXT, "%s", OUTDATED_NOTE) > 0;
    for (int k = 0; k < KINDS; k++)
        if (f->count[k] && at++ == i)
            return snprintf(text, FACT_TEXT, "%d of %d runs %s", f->count[k], f->n, kinds[k].sentence) > 0;
    return selection(f, text) && at == i;
}
