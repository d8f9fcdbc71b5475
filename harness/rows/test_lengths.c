/* test_lengths.c - see test_lengths.h. */
#include "harness/rows/test_lengths.h"

#include <string.h>

#include "core/batch.h"

bool is_test_length(const struct eval_point *p) {
    return p->split == SPLIT_TEST && strcmp(p->difficulty, "length") == 0;
}

/* In its place among the different ones; *more: there was no room. */
static void add_length(struct test_lengths *l, int64_t length, bool *more) {
    int at = l->n;
    for (int i = 0; i < l->n; i++)
        if (l->each[i] == length) return;
    *more = *more || l->n == TEST_LENGTHS_FEW;
    if (*more) return;
    for (; at > 0 && l->each[at - 1] > length; at--) l->each[at] = l->each[at - 1];
    l->each[at] = length;
    l->n++;
}

struct test_lengths test_lengths_of(const struct report_table *t) {
    struct test_lengths l = {0};
    bool more = false;
    for (int k = 0; k < t->n_rows; k++)
        for (int i = 0; i < t->rows[k].n; i++) {
            const struct run_record *r = t->rows[k].chosen[i];
            for (int64_t j = 0; j < r->n_evals; j++) {
                int64_t length = r->evals[j].length;
                if (!is_test_length(&r->evals[j])) continue;
                l.shortest = !l.shortest || length < l.shortest ? length : l.shortest;
                l.longest = length > l.longest ? length : l.longest;
                add_length(&l, length, &more);
            }
        }
    if (more) l.n = 0;
    return l;
}
