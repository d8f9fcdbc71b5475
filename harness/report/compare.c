/* compare.c - see compare.h. */
#include "harness/report/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/plan/row_key.h"
#include "harness/rows/row_label.h"
#include "harness/rows/rows.h"
#include "harness/rows/stats.h"

/* What pairs two runs: all that identifies them but the seed and the version of the numerics. */
struct entry {
    const struct run_record *record;
    char cell[RUN_ID_HEX];
    bool told;
};

static enum status read_entries(const struct record_set *set, struct entry **list, struct error *e) {
    struct error why;
    *list = calloc((size_t)set->n + 1, sizeof **list);
    if (!*list) return fail(e, ST_MEMORY, "no memory to compare %d runs", set->n);
    for (int i = 0; i < set->n; i++) {
        struct label key;
        char lr[64];
        const struct run_record *r = &set->list[i];
        (*list)[i].record = r;
        (*list)[i].told = r->set_aside;
        if (row_key(r->identity, &key, &why) != ST_OK)
            return fail(e, ST_DATA, "the identity in the record of run %s cannot be read: %.800s", r->run.run_id,
                        why.text);
        label_remove(&key, "numerics");
        format_double(r->run.lr, lr, sizeof lr);
        TRY(label_set(&key, "lr", lr, e));
        record_hash_bytes(key.text, key.used, (*list)[i].cell);
    }
    return ST_OK;
}

static const struct run *find_pair(const struct entry *list, int n, const struct entry *of) {
    for (int i = 0; i < n; i++)
        if (!list[i].record->set_aside && !strcmp(list[i].cell, of->cell) &&
            list[i].record->run.seed == of->record->run.seed)
            return &list[i].record->run;
    return NULL;
}

static void add_columns(struct sheet *s, const char *const names[2]) {
    sheet_column(s, SHEET_LEFT, "task");
    sheet_column(s, SHEET_LEFT, "model");
    sheet_column(s, SHEET_RIGHT, "lr");
    sheet_column(s, SHEET_RIGHT, "pairs");
    for (int i = 0; i < 2; i++) sheet_column(s, SHEET_RIGHT, "%s", names[i]);
    sheet_column(s, SHEET_RIGHT, "difference");
    sheet_column(s, SHEET_RIGHT, "low");
    sheet_column(s, SHEET_RIGHT, "high");
}

/* The differences of a cell, whose first run in `a` is number `first`, and its row. */
static int add_cell(struct sheet *s, struct entry *a, int n_a, int first, const struct entry *b, int n_b,
                    double *difference) {
    int n = 0;
    double sums[2] = {0, 0};
    for (int i = first; i < n_a; i++) {
        if (a[i].told || strcmp(a[i].cell, a[first].cell) != 0) continue;
        const struct run *other = find_pair(b, n_b, &a[i]), *own = &a[i].record->run;
        if (i != first) a[i].told = true;
        if (!other) continue;
        sums[0] += run_test_metric(own);
        sums[1] += run_test_metric(other);
        difference[n++] = run_test_metric(other) - run_test_metric(own);
    }
    a[first].told = true;
    if (n == 0) return 0;
    const struct run *run = &a[first].record->run;
    struct interval interval = stats_t_interval(difference, n, REPORT_LEVEL);
    char mixer[RECORD_TEXT];
    row_mixer(a[first].record, mixer, sizeof mixer);
    sheet_row(s);
    sheet_text(s, "%s", run->task);
    sheet_text(s, "%s", mixer);
    sheet_real(s, "%g", run->lr);
    sheet_int(s, n);
    for (int i = 0; i < 2; i++) sheet_real(s, "%.4f", sums[i] / n);
    sheet_real(s, "%+.4f", stats_mean(difference, n));
    sheet_real(s, "%+.4f", interval.low);
    sheet_real(s, "%+.4f", interval.high);
    return n;
}

enum status compare_folders(struct sheets *sheets, const struct record_set *a, const struct record_set *b,
                            const char *const names[2], struct error *e) {
    struct entry *left = NULL, *right = NULL;
    int pairs = 0;
    double *difference = calloc((size_t)a->n + 1, sizeof *difference);
    enum status status = difference ? read_entries(a, &left, e) : fail(e, ST_MEMORY, "no memory to compare runs");
    if (status == ST_OK) status = read_entries(b, &right, e);
    if (status == ST_OK) {
        struct sheet *s = sheets_add(sheets);
        add_columns(s, names);
        for (int i = 0; i < a->n; i++)
            if (!left[i].told) pairs += add_cell(s, left, a->n, i, right, b->n, difference);
        sheet_caption(s, "%s against %s: %d pairs of runs", names[1], names[0], pairs);
        sheet_note(
            s,
            "Paired by seed: what is equal in all but the program's build and numerics. difference: %s - %s, the "
            "test metric, with Student's 95 %% interval from two pairs on; failed runs count as chance.",
            names[1], names[0]);
        if (pairs == 0) status = fail(e, ST_DATA, "%s and %s have no run in common", names[0], names[1]);
    }
    free(left);
    free(right);
    free(difference);
    return status;
}
